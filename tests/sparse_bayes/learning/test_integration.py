"""Whether a system may integrate its inputs, by the roots of linear models."""

import numpy as np
import pytest

from skbayesnn.sparse_bayes.learning.integration import may_integrate

NOISE = 0.02


def response(poles, n_rows=400, seed=0, noise=NOISE):
    """A linear system with these poles, from steps of its input."""
    rng = np.random.default_rng(seed)
    u, coefs = np.repeat(rng.uniform(-1, 1, n_rows // 8), 8), -np.poly(poles)[1:].real
    y = np.zeros(n_rows)
    for t in range(len(coefs), n_rows):
        y[t] = u[t - 1] + coefs @ y[t - len(coefs) : t][::-1]
    return u[:, None], y + noise * y.std() * rng.standard_normal(n_rows)


@pytest.mark.parametrize(
    ("poles", "expected"),
    [
        ((1.0,), True),
        ((1.0, 0.7), True),
        ((1.0, 0.8 + 0.3j, 0.8 - 0.3j), True),
        # a quarter of the record
        ((0.997,), True),
        ((0.97,), False),
        ((0.9, 0.7), False),
        # an oscillation that hardly decays
        ((0.999 * np.exp(0.3j), 0.999 * np.exp(-0.3j)), False),
        ((-0.999,), False),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_roots_tell_what_may_integrate(poles, expected, seed):
    u, y = response(poles, seed=seed)
    starts = np.array([0, 150, 400])
    assert may_integrate(u, y[:, None], starts, 60.0) == expected
    # the units do not matter, nor a missing value, nor an output that forgets
    Y = np.column_stack([1e3 * y - 7e5, response((0.5,), seed=seed)[1]])
    Y[77] = np.nan
    assert may_integrate(u, Y, starts, 60.0) == expected


def test_short_and_constant_records():
    ramp = np.arange(5.0)[:, None]
    assert may_integrate(np.zeros((5, 0)), ramp, np.array([0, 5]), 2.0)
    assert not may_integrate(ramp, np.ones((5, 1)), np.array([0, 5]), 2.0)


@pytest.mark.parametrize("seed", range(3))
def test_as_many_weights_as_rows_tell_no_roots(seed):
    """57 rows of seven signals: a model of five lags fits every row."""
    rng = np.random.default_rng(seed)
    U, Y = rng.standard_normal((57, 5)), np.zeros((57, 2))
    for t in range(1, 57):
        Y[t] = 0.6 * Y[t - 1] + U[t, :2] + U[t - 1, 2:4] + rng.standard_normal(2)
    assert not may_integrate(U, Y, np.array([0, 57]), 14.0)
    Y = np.cumsum(Y, axis=0)
    assert may_integrate(U, Y, np.array([0, 57]), 14.0)
