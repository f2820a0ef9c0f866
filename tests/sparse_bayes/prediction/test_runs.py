"""Runs of a lagged network through a record, against slow references.

Also run with bounds checks and without the compiler: sizes stay small.
"""

import lagged as narx
import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from random_networks import CODES, SYSTEMS, System


@pytest.mark.parametrize("activation", CODES)
@pytest.mark.parametrize("options", SYSTEMS, ids=str)
def test_simulate(options, activation):
    system = System(**options, activation=activation)
    expected, diverged = naive.free_run(
        system.model, system.U, system.Y, system.start, system.stop
    )
    Y = system.Y.copy()
    # what is simulated is not read
    Y[system.start :] = 1e6
    found = narx.simulate(*system.arguments, system.U, Y, system.start, system.stop)
    assert found == diverged == -1
    assert_allclose(Y, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("options", SYSTEMS, ids=str)
def test_simulate_variance(options, diagonal):
    system = System(**options)
    posterior, full = system.posterior(diagonal)
    expected, V_expected, _ = naive.free_run_variance(
        system.model, system.U, system.Y, system.start, system.stop, full, system.noise
    )
    Y, V = system.Y.copy(), np.full(system.Y.shape, -1.0)
    diverged = narx.simulate_variance(
        *system.arguments, *posterior, system.U, Y, V, system.start, system.stop
    )
    assert diverged == -1
    rows = slice(system.start, system.stop)
    assert_allclose(Y, expected, rtol=1e-11, atol=1e-12)
    assert_allclose(V[rows], V_expected[rows], rtol=1e-10)
    # rows before the start are the caller's
    assert (V[: system.start] == -1.0).all()


@pytest.mark.parametrize("activation", ["relu", "logistic"])
def test_simulate_variance_of_other_activations(activation):
    system = System(activation=activation, n_outputs=2, hidden=(3, 2))
    posterior, full = system.posterior(False)
    rows = (system.start, system.stop)
    _, V_expected, _ = naive.free_run_variance(
        system.model, system.U, system.Y, *rows, full, system.noise
    )
    Y, V = system.Y.copy(), np.full(system.Y.shape, np.nan)
    narx.simulate_variance(*system.arguments, *posterior, system.U, Y, V, *rows)
    assert_allclose(V, V_expected, rtol=1e-10)


@pytest.mark.parametrize("start", [3, 5, 8])
def test_simulate_variance_from_any_row(start):
    system = System(n_outputs=2)
    posterior, full = system.posterior(False)
    _, V_expected, _ = naive.free_run_variance(
        system.model, system.U, system.Y, start, 12, full, system.noise
    )
    Y, V = system.Y.copy(), np.full(system.Y.shape, np.nan)
    narx.simulate_variance(*system.arguments, *posterior, system.U, Y, V, start, 12)
    assert_allclose(V, V_expected, rtol=1e-10)
    assert_array_equal(Y[12:], system.Y[12:])


@pytest.mark.parametrize("horizon", [1, 2, 4, 30])
@pytest.mark.parametrize("options", SYSTEMS, ids=str)
def test_predict_ahead(options, horizon):
    system = System(**options, n_rows=10)
    posterior, full = system.posterior(False)
    U, Y = system.U, system.Y
    mean_expected, V_expected, _ = naive.predict_ahead(
        system.model, U, Y, horizon, 1, 10, full, system.noise
    )
    mean, V = np.full(Y.shape, np.nan), np.full(Y.shape, np.nan)
    n_diverged = narx.predict_ahead(*system.arguments, U, Y, horizon, mean, 1, 10)
    assert n_diverged == 0
    assert_allclose(mean, mean_expected, rtol=1e-11, atol=1e-12)
    mean[:] = np.nan
    n_diverged = narx.predict_ahead_variance(
        *system.arguments, *posterior, U, Y, horizon, mean, V, 1, 10
    )
    assert n_diverged == 0
    assert_allclose(mean, mean_expected, rtol=1e-11, atol=1e-12)
    assert_allclose(V, V_expected, rtol=1e-10)


def test_predict_ahead_with_a_long_horizon_is_the_free_run():
    system = System(n_outputs=2)
    mean = np.full(system.Y.shape, np.nan)
    narx.predict_ahead(*system.arguments, system.U, system.Y, 99, mean, 0, system.stop)
    Y = system.Y.copy()
    narx.simulate(*system.arguments, system.U, Y, system.start, system.stop)
    assert_allclose(mean[system.start :], Y[system.start :], rtol=1e-12)


def test_predict_ahead_skips_what_is_missing():
    system = System(n_rows=16)
    system.Y[7] = np.nan
    system.U[12] = np.nan
    expected, _, _ = naive.predict_ahead(system.model, system.U, system.Y, 2, 0, 16)
    mean = np.full(system.Y.shape, np.nan)
    n_diverged = narx.predict_ahead(
        *system.arguments, system.U, system.Y, 2, mean, 0, 16
    )
    assert n_diverged == 0
    assert_allclose(mean, expected, rtol=1e-11)
    assert np.isnan(mean[system.start :]).any() and np.isfinite(mean).any()


def test_recursions_take_read_only_arrays():
    system = System()
    posterior, _ = system.posterior(False)
    Y = system.Y.copy()
    narx.simulate(*system.arguments, system.U, Y, system.start, system.stop)
    system.U.flags.writeable = False
    again, V = system.Y.copy(), np.empty_like(Y)
    narx.simulate_variance(
        *system.arguments, *posterior, system.U, again, V, system.start, system.stop
    )
    assert_array_equal(again, Y)


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_fed_back_noise_has_a_ceiling(n_outputs):
    system = System(n_outputs=n_outputs, hidden=(), gain=0.3)
    (*posterior, _), full = system.posterior(False)
    # between the variance in the first row and that in the last
    ceiling = 1.01 * system.noise**2
    rows = (system.start, system.stop)
    record = (system.model, system.U, system.Y, *rows, full, system.noise)
    _, V_expected, _ = naive.free_run_variance(*record, ceiling)
    _, V_free, _ = naive.free_run_variance(*record)
    assert (V_expected < V_free)[-1].all() and (V_expected == V_free)[rows[0]].all()
    Y, V = system.Y.copy(), np.full(system.Y.shape, np.nan)
    arguments = (*system.arguments, *posterior, ceiling, system.U)
    narx.simulate_variance(*arguments, Y, V, *rows)
    assert_allclose(V, V_expected, rtol=1e-10)
    out, V = system.Y.copy(), np.full(system.Y.shape, np.nan)
    narx.predict_ahead_variance(*arguments, system.Y, 99, out, V, 0, system.stop)
    assert_allclose(V, V_expected, rtol=1e-10)


@pytest.mark.parametrize("horizon", [2, 3, 99])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_measured_outputs_err_where_one_step_errs_more_than_a_free_run(
    n_outputs, horizon
):
    system = System(n_outputs=n_outputs, gain=0.3)
    (*posterior, _), full = system.posterior(False)
    of_free_run = np.array([0.5, 0.8])[:n_outputs] * system.noise
    rows = (system.start, system.stop)
    model, U, Y = system.model, system.U, system.Y
    expected = np.full(Y.shape, np.nan)
    for row in range(*rows):
        begin = max(row - horizon + 1, system.start)
        run = (model, U, Y, begin, row + 1)
        of_weights = naive.free_run_variance(*run, full, 0.0 * system.noise)[1][row]
        fed_back = naive.free_run_variance(*run, 0.0 * full, system.noise)[1][row]
        by_errors = naive.variance_of_measured_errors(*run, of_free_run)
        more = (system.noise**2 - of_free_run**2) * by_errors[-1] / by_errors[0]
        ceiling = (of_free_run**2 + more) * model.y_scale**2
        expected[row] = of_weights + np.minimum(fed_back, ceiling)
    arguments = (*system.arguments, *posterior, of_free_run**2, U)
    out, V = Y.copy(), np.full(Y.shape, np.nan)
    narx.predict_ahead_variance(*arguments, Y, horizon, out, V, 0, system.stop)
    assert_allclose(V[system.start :], expected[system.start :], rtol=1e-10)


# noise that may add as much as it does
FREE = np.full(1, np.inf)


def autoregression(*coefficients, intercept=0.0, limit=100.0):
    """A linear network on its own past, without inputs or scales."""
    n = len(coefficients)
    recursion = narx.Recursion(
        signal=np.zeros(n, dtype=np.int64),
        lag=np.arange(1, n + 1),
        x_offset=np.zeros(n),
        x_scale=np.ones(n),
        y_offset=np.zeros(1),
        y_scale=np.ones(1),
        limit=limit,
    )
    theta = np.array([*coefficients, intercept])
    return theta, np.array([n, 1]), CODES["tanh"], recursion


@pytest.mark.parametrize("with_variance", [False, True])
def test_divergence_is_reported_and_blanks_what_follows(with_variance):
    arguments = autoregression(2.0)
    U, Y = np.empty((12, 0)), np.zeros((12, 1))
    Y[0], Y[10:] = 1.0, 5.0
    V = np.zeros_like(Y)
    if with_variance:
        column = np.array([0, 1])
        posterior = (column, np.eye(2), np.ones(2), np.ones(1), FREE)
        row = narx.simulate_variance(*arguments, *posterior, U, Y, V, 1, 10)
        assert np.isfinite(V[:7]).all() and np.isnan(V[7:10]).all()
        assert (V[10:] == 0.0).all()
    else:
        row = narx.simulate(*arguments, U, Y, 1, 10)
    # 2^7 is the first power beyond 100
    assert row == 7
    assert_array_equal(Y[:7, 0], 2.0 ** np.arange(7))
    assert np.isnan(Y[7:10]).all()
    assert (Y[10:] == 5.0).all()


def test_a_value_at_the_limit_has_not_diverged():
    arguments = autoregression(2.0, limit=64.0)
    Y = np.ones((9, 1))
    assert narx.simulate(*arguments, np.empty((9, 0)), Y, 1, 9) == 7


def test_the_limit_is_one_of_scaled_outputs():
    theta, sizes, code, recursion = autoregression(2.0, limit=64.0)
    wide = recursion._replace(x_scale=np.full(1, 1e6), y_scale=np.full(1, 1e6))
    Y = np.full((9, 1), 1e6)
    assert narx.simulate(theta, sizes, code, wide, np.empty((9, 0)), Y, 1, 9) == 7
    assert_allclose(Y[6], 64e6)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_predictions_have_diverged(value):
    arguments = autoregression(1.0, intercept=value)
    Y = np.ones((4, 1))
    with np.errstate(all="ignore"):
        assert narx.simulate(*arguments, np.empty((4, 0)), Y, 1, 4) == 1
    assert np.isnan(Y[1:]).all()


def test_predictions_that_are_not_numbers_have_diverged():
    arguments = autoregression(1.0, intercept=np.nan)
    Y = np.ones((4, 1))
    assert narx.simulate(*arguments, np.empty((4, 0)), Y, 1, 4) == 1


def test_every_diverged_row_ahead_is_counted():
    arguments = autoregression(2.0)
    U = np.empty((6, 0))
    Y = np.array([1.0, 60.0, 1.0, 30.0, 1.0, 1.0])[:, None]
    for horizon, diverged in [(1, [2]), (2, [3, 5]), (3, [4])]:
        model = naive.Recursion(
            [(np.array([[2.0]]), np.zeros(1))],
            "tanh",
            [(0, 1)],
            *([np.zeros(1), np.ones(1)] * 2),
            100.0,
        )
        expected, _, n_expected = naive.predict_ahead(model, U, Y, horizon, 0, 6)
        mean, V = np.full(Y.shape, np.nan), np.full(Y.shape, np.nan)
        n_diverged = narx.predict_ahead(*arguments, U, Y, horizon, mean, 0, 6)
        assert n_diverged == n_expected == len(diverged)
        assert_array_equal(mean, expected)
        assert_array_equal(np.flatnonzero(np.isnan(mean[1:, 0])) + 1, diverged)
        posterior = (np.array([0, 1]), np.eye(2), np.ones(2), np.ones(1), FREE)
        n_diverged = narx.predict_ahead_variance(
            *arguments, *posterior, U, Y, horizon, mean, V, 0, 6
        )
        assert n_diverged == len(diverged)
        assert_array_equal(np.isnan(V[1:]), np.isnan(mean[1:]))


@pytest.mark.parametrize("with_variance", [False, True])
@pytest.mark.parametrize("output_lags", [(), (1,)])
def test_missing_inputs_are_not_divergence(output_lags, with_variance):
    system = System(output_lags=output_lags)
    system.U[6] = np.nan
    rows = (system.start, system.stop)
    posterior, full = system.posterior(False)
    expected, V_expected, _ = naive.free_run_variance(
        system.model, system.U, system.Y, *rows, full, system.noise
    )
    Y, V = system.Y.copy(), np.full(system.Y.shape, np.nan)
    if with_variance:
        row = narx.simulate_variance(
            *system.arguments, *posterior, system.U, Y, V, *rows
        )
        assert_allclose(V, V_expected, rtol=1e-10)
    else:
        row = narx.simulate(*system.arguments, system.U, Y, *rows)
    assert row == -1
    assert_allclose(Y, expected, rtol=1e-11)
    # with its own past the recursion never recovers, without it does at once
    missing = np.flatnonzero(np.isnan(Y[:, 0]))
    assert_array_equal(missing, range(6, 14) if output_lags else [6, 8])


def test_variance_after_a_gap_does_not_remember_what_was_before_it():
    # only the output two rows back is fed back, so odd rows never see the gap
    system = System(n_inputs=1, input_lags=(0,), output_lags=(2,), n_rows=20)
    system.U[8] = np.nan
    posterior, full = system.posterior(False)
    rows = (system.start, system.stop)
    _, V_expected, _ = naive.free_run_variance(
        system.model, system.U, system.Y, *rows, full, system.noise
    )
    Y, V = system.Y.copy(), np.full(system.Y.shape, np.nan)
    narx.simulate_variance(*system.arguments, *posterior, system.U, Y, V, *rows)
    assert_allclose(V, V_expected, rtol=1e-10)
    assert np.isnan(V[8::2]).all() and np.isfinite(V[3::2]).all()


def test_missing_initial_outputs():
    Y = np.array([np.nan, 1.0, 0.0, 0.0])[:, None]
    row = narx.simulate(*autoregression(0.5, 0.1), np.empty((4, 0)), Y, 2, 4)
    assert row == -1
    assert np.isnan(Y[2:]).all() and Y[1] == 1.0


def test_noise_of_an_autoregression_reaches_its_stationary_variance():
    a1, a2, noise = 0.5, 0.3, 0.2
    n_rows = 150
    Y, V = np.zeros((n_rows, 1)), np.zeros((n_rows, 1))
    posterior = (np.arange(3), np.empty((0, 0)), np.zeros(3), np.array([noise]), FREE)
    arguments = autoregression(a1, a2)
    U = np.empty((n_rows, 0))
    narx.simulate_variance(*arguments, *posterior, U, Y, V, 2, n_rows)
    psi = [1.0, a1]
    while len(psi) < n_rows - 2:
        psi.append(a1 * psi[-1] + a2 * psi[-2])
    assert_allclose(V[2:, 0], noise**2 * np.cumsum(np.square(psi)), rtol=1e-12)
    stationary = noise**2 * (1 - a2) / ((1 + a2) * ((1 - a2) ** 2 - a1**2))
    assert_allclose(V[-1], stationary, rtol=1e-6)


def test_weight_variance_of_an_autoregression():
    a, y0, spread = 0.8, 3.0, 0.01
    n_rows = 20
    Y, V = np.zeros((n_rows, 1)), np.zeros((n_rows, 1))
    Y[0] = y0
    matrix, variances = np.eye(1) * spread, np.full(1, spread)
    posterior = (np.array([0, -1]), matrix, variances, np.zeros(1), FREE)
    U = np.empty((n_rows, 0))
    narx.simulate_variance(*autoregression(a), *posterior, U, Y, V, 1, n_rows)
    t = np.arange(n_rows)
    assert_allclose(Y[:, 0], y0 * a**t, rtol=1e-13)
    # the derivative of y0 a^t by a
    assert_allclose(V[1:, 0], (spread * (y0 * t * a ** (t - 1.0)) ** 2)[1:], rtol=1e-12)


def test_a_fully_pruned_recursion_predicts_a_constant():
    theta, sizes = np.array([0.7]), np.array([0, 0, 1])
    empty = np.empty(0)
    recursion = narx.Recursion(
        np.empty(0, dtype=np.int64),
        np.empty(0, dtype=np.int64),
        empty,
        empty,
        np.array([1.0]),
        np.array([2.0]),
        100.0,
    )
    U, Y, V = np.zeros((5, 2)), np.zeros((5, 1)), np.zeros((5, 1))
    arguments = (theta, sizes, CODES["tanh"], recursion)
    posterior = (np.zeros(1, dtype=np.int64), np.eye(1) * 0.5, np.full(1, 0.5))
    posterior = (*posterior, np.array([0.1]), FREE)
    assert narx.simulate_variance(*arguments, *posterior, U, Y, V, 0, 5) == -1
    assert_allclose(Y, 2.4)
    assert_allclose(V, 4.0 * (0.5 + 0.01))
    out, out_V = np.zeros_like(Y), np.zeros_like(Y)
    narx.predict_ahead(*arguments, U, Y, 3, out, 0, 5)
    assert_allclose(out, 2.4)
    narx.predict_ahead_variance(*arguments, *posterior, U, Y, 3, out, out_V, 0, 5)
    assert_allclose(out_V, V)
