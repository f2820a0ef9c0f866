"""Values far beyond all others, such as codes of missing values."""

import numpy as np
import pytest
from grids import first_by_default
from numpy.testing import assert_array_equal

from skbayesnn.sparse_bayes.records.far_values import far_inputs, far_outputs

N_ROWS = 600


def record(seed=0, n_rows=N_ROWS):
    """A slow linear system, driven by steps and by a smooth input."""
    rng = np.random.default_rng(seed)
    steps = np.repeat(rng.uniform(-1.0, 1.0, n_rows // 5), 5)
    U = np.column_stack([steps, np.sin(0.05 * np.arange(n_rows))])
    y = np.zeros(n_rows)
    for t in range(1, n_rows):
        y[t] = 0.8 * y[t - 1] + 0.3 * U[t - 1, 0] + 0.1 * U[t - 1, 1]
    return U, y + 0.01 * rng.standard_normal(n_rows), rng


def outputs(U, y, starts=None):
    starts = np.array([0, len(y)]) if starts is None else np.asarray(starts)
    return np.flatnonzero(far_outputs(U.reshape(len(y), -1), y[:, None], starts))


def inputs(u, y):
    far = far_inputs(u.reshape(len(y), -1), y[:, None], np.array([0, len(y)]))
    return np.argwhere(far).tolist()


ROWS = {
    "one": [300],
    "the first": [0],
    "the last": [N_ROWS - 1],
    "a run": [40, 41, 42],
    "a run and others": [40, 41, 42, 43, 44, 120, 500],
    "the start of a session": [200, 201],
    "beside missing ones": [98, 104, 400],
    "a fraction": np.arange(3, N_ROWS, 25),
}


@pytest.mark.parametrize("seed", first_by_default(range(3)))
@pytest.mark.parametrize("code", [-999.0, 1e6, 20.0])
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_codes_among_outputs_are_found(rows, code, seed):
    U, y, _ = record(seed)
    y[99:104] = np.nan
    y[rows] = code
    assert_array_equal(outputs(U, y, [0, 200, N_ROWS]), rows)
    assert_array_equal(outputs(np.empty((N_ROWS, 0)), y, [0, 200, N_ROWS]), rows)


def test_outputs_that_are_rounded_or_held_are_searched():
    U, y, _ = record()
    for z in (np.round(2.0 * y), np.repeat(y[::10], 10)):
        z[300] = -999.0
        assert_array_equal(outputs(U, z), [300])


def test_a_logger_that_fails_writes_all_signals():
    U, y, _ = record()
    U[[250, 251]], y[[250, 251]] = -999.0, -999.0
    assert_array_equal(outputs(U, y), [250, 251])
    right = np.where(y == -999.0, np.nan, y)
    assert inputs(U, right) == [[250, 0], [250, 1], [251, 0], [251, 1]]


def test_a_code_is_one_beside_unusual_inputs_too():
    U, y, _ = record()
    U[295:298, 0] = 20.0
    y[[100, 299]] = -50.0
    assert_array_equal(outputs(U, y), [100, 299])
    y[100] = y[99]
    assert not len(outputs(U, y))


def floods(rng, n):
    """A fast rise and a slower fall, by rain with heavy tails."""
    rain = np.where(rng.random(n) < 0.1, rng.lognormal(0.0, 2.0, n), 0.0)
    y = np.zeros(n)
    for t in range(1, n):
        y[t] = 0.6 * y[t - 1] + 0.01 * rain[t] ** 2
    return rain, 0.1 + y + 0.01 * rng.random(n)


def shocks(rng, n):
    """Disturbances of a system that is at rest otherwise."""
    y, noise = np.zeros(n), 0.01 * rng.standard_normal(n)
    noise[[100, 400]] = 50.0, -20.0
    for t in range(1, n):
        y[t] = 0.5 * y[t - 1] + noise[t]
    return np.zeros((n, 0)), y


def levels(rng, n):
    """A few rows at another level, with a noise of their own."""
    y = np.where((np.arange(n) > 300) & (np.arange(n) < 310), 50.0, 0.0)
    return rng.standard_normal(n), y + 0.1 * rng.standard_normal(n)


def one_pulse(rng, n):
    """The only pulse of a record, without any memory."""
    u = 1.0 * (np.arange(n) == 300)
    return u, 50.0 * u + 0.1 * rng.standard_normal(n)


def delayed_pulse(rng, n):
    u = rng.uniform(-1.0, 1.0, n)
    u[200] = 30.0
    return u, np.roll(u, 25) + 0.1 * rng.standard_normal(n)


def large_pulse_of_a_cubic(rng, n):
    u = rng.choice([-1.0, 1.0], n)
    u[300] = 4.0
    return u, u**3 + 0.1 * rng.standard_normal(n)


def derivative(rng, n):
    """A step among slow changes, of which the output is the derivative."""
    u = np.sin(0.01 * np.arange(n)) + 5.0 * (np.arange(n) > n // 2)
    return u, np.diff(u, prepend=0.0) + 1e-3 * rng.standard_normal(n)


def rare_rain(rng, n):
    y = np.where(rng.random(n) < 0.02, rng.lognormal(0.0, 2.0, n), 0.0)
    return rng.standard_normal(n), y


def transient(rng, n):
    y = 100.0 * 0.5 ** np.arange(n) + 0.01 * rng.standard_normal(n)
    return rng.standard_normal(n), y


def heavy_tails(rng, n):
    return rng.standard_normal(n), rng.standard_t(3.0, n)


RIGHT = [
    floods,
    shocks,
    levels,
    one_pulse,
    delayed_pulse,
    large_pulse_of_a_cubic,
    derivative,
    rare_rain,
    transient,
    heavy_tails,
]


@pytest.mark.parametrize("make", RIGHT)
def test_right_outputs_are_not_far_off(make):
    for seed in range(10):
        u, y = make(np.random.default_rng(seed), N_ROWS)
        assert not len(outputs(u, y))


@pytest.mark.parametrize("y", [np.ones(99), np.full(99, np.nan), np.arange(9.0) ** 9])
def test_what_tells_no_range(y):
    y[4] = -1e9
    assert not len(outputs(np.zeros((len(y), 1)), y))


@pytest.mark.parametrize("rows", [[300], [40, 41, 42, 120], np.arange(3, N_ROWS, 25)])
def test_codes_among_inputs_are_found(rows):
    for seed in range(4):
        U, y, _ = record(seed)
        U[rows, 1] = -999.0
        assert inputs(U, y) == [[row, 1] for row in rows]


def of_pulses(rng, n):
    return 1.0 * (np.arange(n) == 300)


def of_equal_pulses(rng, n):
    return 0.1 * rng.standard_normal(n) * (np.arange(n) % 50 > 0) + 30.0 * (
        np.arange(n) % 50 == 0
    )


def of_pulses_on_steps(rng, n):
    """Doses of several sizes beside a rate that changes by steps."""
    rate = np.repeat(rng.uniform(10.0, 30.0, n // 20), 20)
    return rate + np.where(rng.random(n) < 0.02, rng.uniform(300.0, 900.0, n), 0.0)


def of_classes(rng, n):
    return np.eye(4)[rng.choice(4, n, p=[0.97, 0.01, 0.01, 0.01])]


def of_rain(rng, n):
    return floods(rng, n)[0]


@pytest.mark.parametrize(
    "make", [of_pulses, of_equal_pulses, of_pulses_on_steps, of_classes, of_rain]
)
def test_right_inputs_are_not_far_off(make):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        u = make(rng, N_ROWS).reshape(N_ROWS, -1)
        y = np.zeros(N_ROWS)
        for t in range(1, N_ROWS):
            y[t] = 0.9 * y[t - 1] + u[t - 1].sum()
        assert not inputs(u, y + 0.1 * y.std() * rng.standard_normal(N_ROWS))
