"""Simulated systems and quick fits that tests of free runs share."""

import warnings

import numpy as np
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import SparseBayesNARXRegressor

NOISE = 0.1


FAST = dict(focus="simulation", hidden_layer_sizes=3, reg_lambda=4.0, max_cycles=15)


def output_error(n_rows=300, seed=0, noise=NOISE, linear=False):
    """Inputs, measured and true outputs; the noise does not enter the system."""
    rng = np.random.default_rng(seed)
    u = np.repeat(rng.uniform(-2, 2, size=-(-n_rows // 3)), 3)[:n_rows, None]
    x = np.zeros(n_rows)
    for t in range(2, n_rows):
        drive = u[t - 1, 0] if linear else np.tanh(1.5 * u[t - 1, 0])
        x[t] = 1.2 * x[t - 1] - 0.4 * x[t - 2] + 0.5 * drive
    return u, x + noise * rng.standard_normal(n_rows), x


def oscillator(n_rows, noise=0.0, disturbance=0.0, seed=0):
    """Steps of an input, and an output that is measured with noise, or disturbed."""
    rng = np.random.default_rng(seed)
    u = np.repeat(rng.uniform(-2.0, 2.0, (n_rows // 8, 1)), 8, axis=0)
    y, pushed = np.zeros(n_rows), disturbance * rng.standard_normal(n_rows)
    for t in range(2, n_rows):
        y[t] = 1.5 * y[t - 1] - 0.6 * y[t - 2] + 0.1 * u[t - 1, 0] + pushed[t]
    return u, y + noise * rng.standard_normal(n_rows)


def two_by_two(n_rows=200, seed=0, noise=0.05):
    rng = np.random.default_rng(seed)
    U, Y = rng.standard_normal((n_rows, 2)), np.zeros((n_rows, 2))
    for t in range(1, n_rows):
        Y[t, 0] = 0.5 * Y[t - 1, 0] + 0.3 * Y[t - 1, 1] + U[t, 0]
        Y[t, 1] = 0.4 * Y[t - 1, 1] + np.tanh(U[t - 1, 1])
    return U, [100.0, -3.0] + [10.0, 0.1] * (Y + noise * rng.standard_normal(Y.shape))


def missing(y, *rows):
    y = y.copy()
    y[list(rows)] = np.nan
    return y


def in_closed_loop(n_rows=300, seed=0):
    """An unstable system, held by a controller: no free run can follow its record."""
    rng = np.random.default_rng(seed)
    u, y = np.zeros((n_rows, 1)), np.zeros(n_rows)
    for t in range(1, n_rows):
        y[t] = 1.4 * y[t - 1] + u[t - 1, 0] + 0.1 * rng.standard_normal()
        u[t] = -1.1 * y[t] + rng.standard_normal()
    return u, y


def rms(error):
    return float(np.sqrt(np.mean(np.square(error))))


def fit(u, y, input_lags=2, output_lags=2, sessions=None, **options):
    options = {"random_state": 0, **FAST, **options}
    model = SparseBayesNARXRegressor(input_lags, output_lags, **options)
    with warnings.catch_warnings():
        # a few cycles are enough here
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(u, y, sessions=sessions)


def assert_same_fit(a, b):
    for first, second in zip(a.coefs_, b.coefs_, strict=True):
        assert_array_equal(first, second)
    assert_array_equal(a.history_["objective"], b.history_["objective"])


def inside_range(path, y, n_before):
    """Rows of a run in the range of ``y``, as the ``n_before`` rows before them are."""
    inside = np.isfinite(path) & (path > y.min()) & (path < y.max())
    near = inside.copy()
    for lag in range(1, n_before + 1):
        near[lag:] &= inside[:-lag]
    return near
