"""Filters and free runs of state-space networks against slow references."""

import naive
import numpy as np
import pytest
import state_space_cases as cases
from free_run_cases import oscillator
from grids import each_value_once, first_by_default

from skbayesnn import SparseBayesStateSpaceRegressor
from skbayesnn.sparse_bayes.prediction.initial_states import estimated_start
from skbayesnn.sparse_bayes.prediction.state_forecast import belief_after
from skbayesnn.sparse_bayes.records.layout import Record

STARTS = np.array([0, 30])
NETWORKS = {"linear": cases.linear_network, "two outputs": cases.tanh_network}


def measured(network):
    """A record in the user's units, with missing outputs."""
    rng = np.random.default_rng(4)
    U = 0.5 + 2.0 * rng.standard_normal((30, 1))
    Y = 3.0 + 4.0 * rng.standard_normal((30, network.n_outputs))
    Y[[3, 15, 16, 22]] = np.nan
    Y[18, -1] = np.nan
    return U, Y


def parts(network):
    """Layers, their sizes, and the inputs of a record in scaled units."""
    theta, sizes = network.fitted.network.theta, tuple(network.fitted.network.sizes)
    U, Y = measured(network)
    inputs = np.hstack([(U - 0.5) / 2.0, np.zeros_like(U)])
    return theta, sizes, inputs, (Y - 3.0) / 4.0


def naive_forecast(network, horizon, start):
    """`naive.state_space_filter` behind the rows that tell the start."""
    theta, sizes, inputs, Y = parts(network)
    Y[: network.max_lag] = np.nan
    layers, noise = naive.unflatten(theta, sizes), network.noise[:2]
    S = naive.state_space_derivatives(theta, sizes, "tanh", inputs, start[0])
    S = S[:, : len(theta)].reshape(*Y.shape, len(theta))
    return naive.state_space_filter(layers, "tanh", inputs, Y, start, noise, horizon, S)


def grown(network, since):
    """The variance since the last measured output, up to that of a free run."""
    if network.spread is None:
        return since
    one_step, free_run = network.spread
    most = np.maximum((cases.NOISE**2 - network.measurement) / free_run, 1.0)
    part = np.clip((since - one_step) / (free_run - one_step), 0.0, 1.0)
    return since * (1.0 + (most - 1.0) * part)


@pytest.mark.parametrize(
    *each_value_once(
        kind=list(NETWORKS), horizon=[1, 2, 5], spread=[None, (0.3, 0.5), (0.1, 2.0)]
    )
)
def test_steps_ahead_are_those_of_a_textbook_filter(kind, horizon, spread):
    network = NETWORKS[kind]()
    if spread is not None:
        # in multiples of what free runs have
        known = cases.NOISE**2 - network.measurement
        network = network._replace(spread=np.outer(spread, known))
    U, Y = measured(network)
    record = Record(U, Y, None, STARTS)
    n_told = network.max_lag
    start = estimated_start(network, U[:n_told], Y[:n_told])
    start = start.state[0], start.covariance[0]
    mean, variance, left = naive_forecast(network, horizon, start)
    # near the start, over fewer steps
    first = naive_forecast(network, 1, start)
    near = n_told + horizon - 1
    forecast = network.forecast(record, n_told, horizon, True)
    rows = slice(near, None)
    np.testing.assert_allclose(forecast.mean[rows], 3.0 + 4.0 * mean[rows])
    np.testing.assert_allclose(forecast.mean[n_told], 3.0 + 4.0 * first[0][n_told])
    of_weights, of_start = left[..., :-2], left[..., -2:]
    # the start that the first rows tell follows the weights
    theta, sizes, inputs, scaled = parts(network)
    S = naive.state_space_derivatives(theta, sizes, "tanh", inputs[:n_told], start[0])
    S = S[np.isfinite(scaled[:n_told]).ravel()] / cases.NOISE
    of_weights = of_weights - of_start @ start[1] @ S[:, -2:].T @ S[:, :-2]
    square = np.einsum(
        "toi,ij,toj->to", of_weights, network.fitted.covariance, of_weights
    )
    by_start = np.einsum("toi,ij,toj->to", of_start, start[1], of_start)
    since = grown(network, variance - by_start)
    noise = np.minimum(since + network.measurement, cases.NOISE**2)
    std = 4.0 * np.sqrt(square + by_start + noise)
    np.testing.assert_allclose(forecast.std[rows], std[rows], rtol=1e-6)
    np.testing.assert_array_equal(forecast.mean[:n_told], Y[:n_told])
    known = np.isfinite(Y[:n_told])
    assert (forecast.std[:n_told][known] == 0.0).all()
    alone = network.forecast(record, n_told, horizon, False)
    np.testing.assert_allclose(alone.mean, forecast.mean, rtol=1e-12)


@pytest.mark.parametrize("seed", first_by_default(range(3)))
def test_bands_of_a_disturbed_system_hold_at_every_horizon(seed):
    """Its noise enters one state only, and the filter has it in all directions."""
    u, y = oscillator(3200, disturbance=0.05, seed=seed)
    model = SparseBayesStateSpaceRegressor(
        2, hidden_layer_sizes=(), n_restarts=1, random_state=0
    ).fit(u[:700], y[:700])
    u, y = u[700:], y[700:]
    for horizon in (1, 2, 3, 5, 20):
        mean, std = model.predict(u, y, horizon=horizon, return_std=True)
        held = (np.abs(y - mean) < 1.96 * std)[20:]
        # errors of neighbouring rows are alike
        assert 0.91 < held.mean() < 0.98, horizon
    _, of_free_run = model.predict(u, y, horizon=None, return_std=True)
    np.testing.assert_allclose(std[100:], of_free_run[100:], rtol=0.1)


def test_variance_of_a_free_run_is_that_of_weights_start_and_noise():
    network = cases.linear_network()
    theta, sizes, inputs, _ = parts(network)
    U, Y = measured(network)
    record = Record(U, np.full_like(Y, np.nan), None, STARTS)
    forecast = network.forecast(record, 0, np.inf, True)
    layers = naive.unflatten(theta, sizes)
    mean = naive.state_space_run(layers, "tanh", inputs, network.mean, 1)
    np.testing.assert_allclose(forecast.mean, 3.0 + 4.0 * mean)
    S = naive.state_space_derivatives(theta, sizes, "tanh", inputs, network.mean)
    joint = np.zeros((len(theta) + 2,) * 2)
    joint[:-2, :-2] = network.fitted.covariance
    joint[-2:, -2:] = network.covariance
    variance = np.einsum("ij,jk,ik->i", S, joint, S) + cases.NOISE**2
    np.testing.assert_allclose(forecast.std[:, 0], 4.0 * np.sqrt(variance))
    alone = network.forecast(record, 0, np.inf, False)
    np.testing.assert_allclose(alone.mean, forecast.mean, rtol=1e-12)


def test_a_basis_of_the_states_that_is_not_known_widens_no_band():
    """Weights may say the same in another basis: the start has to follow them."""
    network = cases.linear_network()
    root, _ = cases.bases(network)
    sure, unsure = (
        network._replace(
            covariance=1e6 * np.eye(2),
            fitted=network.fitted._replace(covariance=covariance),
        )
        for covariance in (0.0 * root @ root.T, root @ root.T)
    )
    U, Y = cases.record_from(np.array([2.0, -1.0]))
    record, n_known = Record(U, Y, None, STARTS), network.max_lag
    for horizon in (1, np.inf):
        one, other = (
            net.forecast(record, n_known, horizon, True) for net in (sure, unsure)
        )
        np.testing.assert_allclose(other.std, one.std, rtol=1e-4)


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_free_run_begins_where_a_filter_through_the_known_rows_ends(kind):
    network = NETWORKS[kind]()
    U, Y = measured(network)
    n_known = 20
    forecast = network.forecast(Record(U, Y, None, STARTS), n_known, np.inf, False)
    mean, covariance = belief_after(network, U[:n_known], Y[:n_known])
    behind = network._replace(mean=mean, covariance=covariance)
    unknown, starts = np.full_like(Y[n_known:], np.nan), np.array([0, 30 - n_known])
    rest = Record(U[n_known:], unknown, None, starts)
    np.testing.assert_allclose(
        behind.forecast(rest, 0, np.inf, False).mean, forecast.mean[n_known:]
    )


def test_rows_behind_a_divergence_are_nan():
    network = cases.linear_network()
    U, Y = measured(network)
    U[10] = 1e6
    record = Record(U, np.full_like(Y, np.nan), None, STARTS)
    forecast = network.forecast(record, 0, np.inf, True)
    assert forecast.n_diverged == 20
    for values in (forecast.mean, forecast.std):
        assert np.isfinite(values[:10]).all()
        assert np.isnan(values[10:]).all()


def test_a_missing_input_ends_a_free_run_and_interrupts_a_filter():
    network = cases.linear_network()
    U, Y = measured(network)
    U[12] = np.nan
    record = Record(U, Y, None, STARTS)
    run = network.forecast(record, 8, np.inf, True)
    assert run.n_diverged == 0
    assert np.isfinite(run.mean[:12]).all()
    assert np.isnan(run.mean[12:]).all() and np.isnan(run.std[12:]).all()
    ahead = network.forecast(record, 8, 2, True)
    assert ahead.n_diverged == 0
    lost = np.isnan(ahead.mean[:, 0])
    # eight rows behind the gap tell the state anew
    np.testing.assert_array_equal(np.flatnonzero(lost), [3, *range(12, 21)])
    alone = Record(U[13:], Y[13:], None, np.array([0, 17]))
    there = network.forecast(alone, 8, 2, True)
    np.testing.assert_allclose(ahead.mean[21:], there.mean[8:])
    np.testing.assert_allclose(ahead.std[21:], there.std[8:])


@pytest.mark.parametrize("horizon", [1, 3, np.inf])
def test_draws_have_the_mean_and_the_deviation_of_the_forecast(horizon):
    network = cases.tanh_network()
    U, Y = measured(network)
    record = Record(U, Y, None, STARTS)
    n_samples = 4000
    rng = np.random.default_rng(0)
    drawn, lost = network.draws(record, 8, horizon, n_samples, rng)
    assert drawn.shape == (30, 2, n_samples) and not lost.any()
    forecast = network.forecast(record, 8, horizon, True)
    np.testing.assert_array_equal(np.isnan(drawn[:, :, 0]), np.isnan(forecast.mean))
    known = np.isfinite(Y[:8])
    assert (drawn[:8][known] == Y[:8][known][:, None]).all()
    mean, std = drawn[8:].mean(axis=2), drawn[8:].std(axis=2)
    error = np.abs(mean - forecast.mean[8:]) / forecast.std[8:]
    assert error.max() < 5.0 / np.sqrt(n_samples)
    np.testing.assert_allclose(std, forecast.std[8:], rtol=0.1)


def test_gross_errors_move_a_filter_little():
    network = cases.linear_network()
    U, Y = measured(network)
    robust = network._replace(
        fitted=network.fitted._replace(degrees_of_freedom=3.0),
    )
    Y[14] += 400.0
    plain, weighted = (
        one.forecast(Record(U, Y, None, STARTS), 8, 1, False).mean[15:]
        for one in (network, robust)
    )
    Y[14] = np.nan
    without = network.forecast(Record(U, Y, None, STARTS), 8, 1, False).mean[15:]
    assert np.abs(weighted - without).max() < 0.1 * np.abs(plain - without).max()


def ball_on_a_beam(seed, n_rows=600):
    """Angles that a controller sets, and positions, which integrate them twice."""
    rng = np.random.default_rng(seed)
    targets = np.repeat(rng.choice([-0.1, 0.0, 0.1], n_rows // 50), 50)
    u, y, place, speed = np.empty((n_rows, 1)), np.empty(n_rows), 0.0, 0.0
    for t in range(n_rows):
        y[t] = place + 0.002 * rng.standard_normal()
        pull = 0.5 * (targets[t] - y[t]) - 0.6 * speed
        u[t] = pull + 0.02 * rng.standard_normal()
        for _ in range(10):
            speed += 0.01 * (5.0 * np.sin(u[t, 0]) - 0.1 * speed)
            place += 0.01 * speed
    return u, y


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.ExtrapolationWarning")
def test_bands_of_an_integrating_system_hold_in_new_runs():
    """What a run errs by is what its first rows do not tell of place and speed."""
    model = SparseBayesStateSpaceRegressor(
        4, n_restarts=4, output="difference", reg_lambda=15.0, random_state=0
    )
    model.fit(*ball_on_a_beam(7))
    held = []
    for seed in range(20, 40):
        u, y = ball_on_a_beam(seed)
        mean, std = model.predict(u, y_init=y[:20], return_std=True)
        held.append(np.mean(np.abs(mean - y)[20:] < 1.96 * std[20:]))
        # no wider than what 20 rows tell of the speed makes of the place
        assert std.max() < 0.035
    assert np.mean(held) > 0.9
