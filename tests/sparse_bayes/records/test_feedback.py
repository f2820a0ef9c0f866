"""Inputs of controllers, which the outputs tell by an exact equation."""

import warnings

import numpy as np
import pytest
from grids import first_by_default
from scipy.signal import lfilter

from skbayesnn import DynamicSystemRegressor, SparseBayesNARXRegressor
from skbayesnn.sparse_bayes.records.feedback import (
    inputs_computed_from_outputs,
    inputs_of_controllers,
)

N_ROWS = 600


def found(U, Y, starts=(0, N_ROWS)):
    return inputs_of_controllers(
        U.reshape(N_ROWS, -1), Y.reshape(N_ROWS, -1), np.array(starts)
    ).tolist()


def computed(U, Y):
    signals = U.reshape(N_ROWS, -1), Y.reshape(N_ROWS, -1)
    return inputs_computed_from_outputs(*signals, np.array([0, N_ROWS])).tolist()


def steps(rng, length=20):
    return np.repeat(rng.uniform(0.2, 0.8, N_ROWS // length), length)


def closed_loop(set_point, rng, derivative=0.0, noise=0.01, delay=0):
    """Input and output of a nonlinear tank under a controller of two or three terms."""
    U, Y, level, integral = np.zeros(N_ROWS), np.zeros(N_ROWS), 0.3, 0.5
    for t in range(N_ROWS):
        Y[t] = level + noise * rng.standard_normal()
        seen = max(0, t - delay)
        error = set_point[t] - Y[seen]
        integral += 0.05 * error
        moved = Y[seen] - Y[max(0, seen - 1)]
        U[t] = np.clip(integral + error - derivative * moved, 0.2, 1.0)
        level = max(0.0, level + 0.2 * (U[t] ** 2 - np.sqrt(level)))
    return U, Y


CONTROLLERS = {
    "of two terms": {},
    "of three terms": {"derivative": 0.5},
    "that answers in the next row": {"delay": 1},
    "of a system with little noise": {"noise": 0.001},
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("controller", CONTROLLERS.values(), ids=CONTROLLERS)
def test_controllers_with_a_constant_set_point_are_found(controller, seed):
    """Beside other inputs, in rounded files, and between missing values."""
    rng = np.random.default_rng(seed)
    u, y = closed_loop(np.full(N_ROWS, 0.25), rng, **controller)
    weather = rng.standard_normal(N_ROWS)
    assert found(np.column_stack([weather, u]), y) == [False, True]
    assert found(np.round(u, 5), np.round(y, 5)) == [True]
    u[::50], y[20::50] = np.nan, np.nan
    assert found(u, y, [0, 200, N_ROWS]) == [True]


@pytest.mark.parametrize("controller", CONTROLLERS.values(), ids=CONTROLLERS)
def test_set_points_among_the_inputs_tell_the_outputs(controller):
    """Steps of the set point make a good record, but not if they are an input."""
    rng = np.random.default_rng(0)
    set_point = steps(rng)
    u, y = closed_loop(set_point, rng, **controller)
    assert found(u, y) == [False]
    assert found(np.column_stack([u, set_point]), y) == [True, False]


def open_loops(rng):
    """Inputs that nobody has chosen by the outputs."""
    t = np.arange(N_ROWS)
    walk = np.cumsum(rng.standard_normal(N_ROWS))
    return [
        steps(rng),
        np.repeat(rng.choice([-1.0, 1.0], N_ROWS // 5), 5),
        rng.standard_normal(N_ROWS),
        np.sin(t / 10.0),
        np.sin(t / 10.0) + np.sin(t / 23.0),
        (t > 100) * 1.0,
        t / 50.0,
        walk,
        np.cumsum(walk),
        np.ones(N_ROWS),
    ]


@pytest.mark.parametrize("seed", first_by_default(range(5), 2))
def test_systems_without_noise_are_no_controllers(seed):
    """Linear and nonlinear, with and without delay, one of them integrating."""
    rng = np.random.default_rng(seed)
    slowest = 1.0 if seed == 0 else 0.9
    denominator = np.poly([slowest, *rng.uniform(0.0, 1.0, seed % 3)])
    for gains in ([1.0], [0.0, 1.0], [1.0, 0.5, -0.2]):
        for u in open_loops(rng):
            y = lfilter(gains, denominator, u)
            other = rng.standard_normal(N_ROWS)
            assert found(u, y) == [False]
            assert found(u, np.tanh(y)) == [False]
            assert found(np.column_stack([u, other]), y) == [False, False]
            # an input that others tell, as the sum of what a meter has counted
            counted = np.column_stack([u, np.cumsum(u)])
            assert found(counted, y) == [False, False]
            assert computed(u, y) == computed(u, np.tanh(y)) == [False]


def test_records_that_are_too_short_tell_nothing():
    rng = np.random.default_rng(0)
    u, y = closed_loop(np.full(N_ROWS, 0.25), rng)
    few = u[:12, None], y[:12, None], np.array([0, 12])
    assert inputs_of_controllers(*few).tolist() == [False]
    whole = np.array([0, N_ROWS])
    assert inputs_of_controllers(u[:, None][:, :0], y[:, None], whole).size == 0


@pytest.mark.parametrize(
    "model",
    [
        SparseBayesNARXRegressor(2, 2, hidden_layer_sizes=()),
        DynamicSystemRegressor("linear", lags=[2]),
    ],
)
def test_fits_warn_once_of_controllers_by_name(model):
    rng = np.random.default_rng(0)
    u, y = closed_loop(np.full(N_ROWS, 0.25), rng)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(np.column_stack([rng.standard_normal(N_ROWS), u]), y)
    texts = [str(one.message) for one in caught if "controller" in str(one.message)]
    (text,) = texts
    assert text.startswith("The changes of input x1 from row to row")
    u, y = closed_loop(steps(rng), rng)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*controller")
        model.fit(u[:, None], y)


def test_outputs_among_the_inputs_are_found():
    """In another unit and rounded, also of one of two outputs; not a row later."""
    rng = np.random.default_rng(0)
    u, y = closed_loop(steps(rng), rng)
    z = np.roll(y, 7) + 0.1 * rng.standard_normal(N_ROWS)
    fahrenheit = np.round(1.8 * y + 32.0, 3)
    fahrenheit[5::50] = np.nan
    U, Y = np.column_stack([u, fahrenheit, np.roll(y, 1)]), np.column_stack([z, y])
    for outputs in (Y, Y[:, 1:]):
        assert computed(U, outputs) == [False, True, False]
    assert computed(U, z) == [False, False, False]
    assert computed(y, y) == computed(0.3 - 5.0 * y, y) == [True]
    # squares underflow
    assert computed(1e-200 * u, y) == computed(u, 1e-200 * y) == [False]
    model = SparseBayesNARXRegressor(2, 2, hidden_layer_sizes=())
    with pytest.warns(UserWarning, match="^Input x1 is a linear function of the outp"):
        model.fit(U, y)
