"""Data of a free run as the solvers see them: errors, gradients, blocks, curvature."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn.sparse_bayes.kernels.recursion import make_feedback
from skbayesnn.sparse_bayes.learning import cycle
from skbayesnn.sparse_bayes.learning import prior as priors
from skbayesnn.sparse_bayes.learning.curvature import (
    Diagonal,
    Dual,
    Full,
    diagonal_of,
    linearize,
    squared_error,
)
from skbayesnn.sparse_bayes.learning.cycle import Settings
from skbayesnn.sparse_bayes.learning.likelihood import Gaussian
from skbayesnn.sparse_bayes.learning.weights import (
    WeightFit,
    WeightProblem,
    fit_weights,
)
from skbayesnn.sparse_bayes.network import bias_mask, init_network, prune, split_layers
from skbayesnn.sparse_bayes.records import residuals as data_module
from skbayesnn.sparse_bayes.records.free_runs import FreeRunData
from skbayesnn.sparse_bayes.records.initial_outputs import estimate_initial

NAMES = ["tanh", "relu", "logistic"]


def make_network(n_features, n_outputs, hidden=(3,), activation="tanh", **options):
    """Small random weights, of which ``pruned`` are dropped but keep their places."""
    rng = np.random.default_rng(options.get("seed", 0))
    sizes = (n_features, *hidden, n_outputs)
    network = init_network(sizes, activation, rng, options.get("skip", False))
    theta = 0.3 * rng.standard_normal(len(network.theta))
    keep = rng.uniform(size=len(theta)) >= options.get("pruned", 0.0)
    keep |= bias_mask(network)
    return network._replace(theta=np.where(keep, theta, 0.0), keep=keep)


def make_data(
    n_outputs=1,
    n_rows=12,
    lags=(1, 3),
    starts=(0,),
    n_given=0,
    seed=0,
    difference=False,
):
    """Two inputs, one measured; rows at the head of each run may be given.

    Their outputs are unknown, but for the last ones.
    """
    rng = np.random.default_rng(seed)
    pairs = np.array([(o, lag) for o in range(n_outputs) for lag in lags])
    n_fed = len(pairs)
    # inputs at both ends
    position = np.arange(1, n_fed + 1)[::-1].copy()
    slope, offset = rng.uniform(0.5, 1.5, size=n_fed), rng.standard_normal(n_fed)
    drift = rng.standard_normal(n_outputs) if difference else None
    feedback = make_feedback(
        position, pairs[:, 0].copy(), pairs[:, 1].copy(), slope, offset, 100.0, drift
    )
    shape = (n_rows, n_outputs)
    before = rng.standard_normal(shape) if difference else np.zeros((0, 0))
    Y = rng.standard_normal(shape)
    Y[rng.uniform(size=shape) < 0.2] = np.nan
    origin = np.array([max(s for s in starts if s <= t) for t in range(n_rows)])
    given = np.arange(n_rows) - origin < n_given
    initial = np.where(given[:, None], rng.standard_normal(shape), 0.0)
    unknown = np.full(shape, -1)
    free = np.flatnonzero(given)[:-1]
    unknown[free] = rng.permutation(len(free) * n_outputs).reshape(-1, n_outputs)
    return FreeRunData(
        X=rng.standard_normal((n_rows, n_fed + 2)),
        Y=Y,
        feedback=feedback,
        origin=origin,
        given=given,
        initial=initial,
        unknown=unknown,
        weights=rng.uniform(0.5, 1.5, size=n_outputs),
        before=before,
    )


def naive_run(data):
    feedback = list(zip(*data.feedback[:5], strict=True))
    limit, drift = data.feedback.limit, data.feedback.drift
    return naive.FreeRun(
        feedback,
        data.X,
        data.origin,
        data.given,
        limit,
        data.before,
        drift if len(drift) else None,
    )


def naive_path(network, data):
    layers = naive.unflatten(network.theta, network.sizes)
    path, diverged = naive.run_path(
        layers, NAMES[network.activation], naive_run(data), data.initial
    )
    assert diverged == -1
    return path


def unknown_places(data):
    """In the order of their numbers."""
    places = list(zip(*np.nonzero(data.unknown >= 0), strict=True))
    return sorted(places, key=lambda place: data.unknown[place])


def dense(network, data):
    """Weighted residuals (m,) and Jacobian (m, n_parameters) of what is measured."""
    J = naive.path_derivatives(
        network.theta,
        network.sizes,
        NAMES[network.activation],
        naive_run(data),
        data.initial,
        [],
    )
    residual = (naive_path(network, data) - data.Y) * data.weights
    measured = np.isfinite(data.Y)
    return residual[measured], (J * data.weights[:, None])[measured]


CASES = [
    (dict(), dict()),
    (dict(n_outputs=2, lags=(1, 2, 4)), dict(skip=True)),
    (dict(n_outputs=2, starts=(0, 4, 9)), dict(pruned=0.4, activation="relu")),
    (dict(n_given=3), dict(pruned=0.5, skip=True, activation="logistic")),
    (dict(n_outputs=2, n_given=2, starts=(0, 6)), dict(hidden=())),
    (dict(n_outputs=2, difference=True, starts=(0, 4, 9)), dict(pruned=0.4)),
    (dict(n_given=3, difference=True), dict(skip=True)),
]


def make_case(case, **options):
    data = make_data(**{**case[0], **options})
    return make_network(data.X.shape[1], data.Y.shape[1], **case[1]), data


@pytest.mark.parametrize("case", CASES, ids=str)
def test_errors_and_gradient(case):
    network, data = make_case(case)
    path = data.path(network)
    assert_allclose(path, naive_path(network, data), rtol=1e-11)
    residual, J = dense(network, data)
    assert data.n_observations == len(residual) < data.Y.size
    squares = np.nansum((path - data.Y) ** 2, axis=0)
    assert_allclose(data.squared_errors(network), squares, rtol=1e-11)
    assert_allclose(squared_error(network, data), residual @ residual, rtol=1e-11)
    assert_array_equal(data.counts, np.sum(np.isfinite(data.Y), axis=0))
    loss, gradient = data.loss_gradient(network)
    assert_allclose(loss, 0.5 * residual @ residual, rtol=1e-11)
    assert_allclose(gradient, J.T @ residual, rtol=1e-9, atol=1e-10)
    diag = np.where(network.keep, np.sum(J**2, axis=0), 0.0)
    assert_allclose(data.ggn_diag(network), diag, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize("form", [Full, Dual, Diagonal])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_linearize(case, form, ones):
    network, data = make_case(case)
    if ones:
        data = data._replace(weights=np.ones_like(data.weights))
    residual, J = dense(network, data)
    J = J[:, network.keep]
    found = linearize(network, data, form)
    assert_allclose(found.squared_error, residual @ residual, rtol=1e-11)
    assert_allclose(found.gradient, J.T @ residual, rtol=1e-9, atol=1e-10)
    tol = dict(rtol=1e-9, atol=1e-10)
    if form is Full:
        assert_allclose(found.curvature.JTJ, J.T @ J, **tol)
    elif form is Dual:
        assert_allclose(found.curvature.JT, J.T, **tol)
    assert_allclose(diagonal_of(found.curvature), np.sum(J**2, axis=0), **tol)


@pytest.mark.parametrize("case", CASES[:4], ids=str)
def test_blocks_of_rows(monkeypatch, case):
    network, data = make_case(case, n_rows=150)
    whole = linearize(network, data, Full)
    diag = data.ggn_diag(network)
    assert len(list(data.blocks(network, False))) == 1
    monkeypatch.setattr(data_module, "BLOCK_BYTES", 1)
    measured = np.isfinite(data.Y)
    # 64 rows at least
    sizes = [np.count_nonzero(measured[k : k + 64]) for k in (0, 64, 128)]
    blocks = data.blocks(network, False)
    assert [len(residual) for residual, _ in blocks] == sizes
    blocked = linearize(network, data, Full)
    tol = dict(rtol=1e-11, atol=1e-11)
    assert_allclose(blocked.squared_error, whole.squared_error, **tol)
    assert_allclose(blocked.gradient, whole.gradient, **tol)
    assert_allclose(blocked.curvature.JTJ, whole.curvature.JTJ, **tol)
    assert_allclose(data.ggn_diag(network), diag, **tol)
    # the dual form takes all in one
    ((residual, JT),) = data.blocks(network, True)
    assert JT.shape == (network.keep.sum(), data.n_observations) and len(residual)


def test_a_block_holds_the_longest_lag(monkeypatch):
    monkeypatch.setattr(data_module, "BLOCK_BYTES", 1)
    data = make_data(lags=(1, 70), n_rows=150)
    network = make_network(4, 1)
    rows = [rows for rows, _, _ in data.sensitivities(network, False)]
    assert [len(r) for r in rows] == [70, 70, 10]
    assert_array_equal(np.concatenate(rows), np.arange(150))
    residual, J = dense(network, data)
    found = linearize(network, data, Full)
    assert_allclose(found.curvature.JTJ, J.T @ J, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_sensitivities_by_the_unknown_initial_outputs(n_outputs):
    data = make_data(n_outputs, n_given=3, starts=(0, 7))
    network = make_network(data.X.shape[1], n_outputs, pruned=0.4)
    places = unknown_places(data)
    assert len(places) == 5 * n_outputs
    expected = naive.path_derivatives(
        network.theta, network.sizes, "tanh", naive_run(data), data.initial, places
    )
    columns = np.flatnonzero([*network.keep, *[True] * len(places)])
    ((rows, residual, S),) = data.sensitivities(network, False)
    assert_array_equal(rows, np.arange(12))
    assert_allclose(residual, naive_path(network, data) - data.Y, rtol=1e-11)
    S = S.reshape(expected[..., columns].shape)
    assert_allclose(S, expected[..., columns], rtol=1e-10, atol=1e-12)
    assert np.abs(S[3:7, :, -len(places) :]).max() > 0.0
    # the solvers' blocks leave them out
    ((_, JT),) = data.blocks(network, False)
    assert len(JT) == np.count_nonzero(network.keep)


@pytest.mark.parametrize("lost", [[0], [1, 2], [3], [0, 2, 5], [1, 2, 3, 4], range(6)])
def test_the_path_stays_without_inputs_that_are_not_read(lost):
    lost = list(lost)
    data = make_data(n_outputs=2, n_given=1, starts=(0, 5))
    network = make_network(6, 2, skip=True)
    drop = np.zeros(len(network.theta), dtype=bool)
    layers = split_layers(drop, network.sizes, skip=True)
    layers[0][0][lost] = layers[-1][0][lost] = True
    zeroed = network._replace(theta=np.where(drop, 0.0, network.theta), keep=~drop)
    pruned, index = prune(network, drop)
    assert len(pruned.units[0]) == 6 - len(lost)
    selected = data.select_inputs(pruned.units[0])
    assert_array_equal(selected.X, data.X[:, pruned.units[0]])
    assert selected.X.flags.c_contiguous
    assert len(selected.feedback.lag) == len(set(range(1, 5)) - set(lost))
    expected = naive_path(zeroed, data)
    assert_allclose(selected.path(pruned), expected, rtol=1e-11, atol=1e-13)
    whole, part = (
        linearize(*pair, Full) for pair in [(zeroed, data), (pruned, selected)]
    )
    if len(pruned.theta) == np.count_nonzero(zeroed.keep):
        assert_array_equal(index, np.flatnonzero(zeroed.keep))
        assert_allclose(part.curvature.JTJ, whole.curvature.JTJ, rtol=1e-9, atol=1e-10)
    # what is not looked at does not change
    assert selected.Y is data.Y and selected.origin is data.origin


def test_inputs_may_be_selected_twice():
    data = make_data(n_outputs=2)
    once = data.select_inputs(np.array([1, 2, 5]))
    twice = data.select_inputs(np.array([1, 2, 4, 5])).select_inputs(
        np.array([0, 1, 3])
    )
    assert_array_equal(once.X, twice.X)
    for a, b in zip(once.feedback, twice.feedback, strict=True):
        assert_array_equal(a, b)


def test_divergence():
    data = make_data()
    network = make_network(4, 1, hidden=())
    network = network._replace(theta=1e3 * network.theta)
    assert data.path(network) is None
    assert_array_equal(data.squared_errors(network), [np.inf])
    assert squared_error(network, data) == np.inf
    loss, gradient = data.loss_gradient(network)
    assert loss == np.inf and np.isfinite(gradient).all()
    for form in [Full, Dual, Diagonal]:
        with pytest.raises(FloatingPointError, match="diverged"):
            linearize(network, data, form)


def test_data_stay_as_they_are():
    network, data = make_case(CASES[3])
    arrays = [*(a for a in data if isinstance(a, np.ndarray)), *data.feedback[:5]]
    before = [array.copy() for array in arrays]
    linearize(network, data, Full)
    data.loss_gradient(network)
    data.select_inputs(np.array([0, 2]))
    for array, copy in zip(arrays, before, strict=True):
        assert_array_equal(array, copy)


# unknown initial outputs


def initial_objective(network, data, noise, step_variance, values):
    """Weighted squared error over the noise, and the random walk over what is unknown.

    Its last step leads to the first value after it that is given or measured.
    """
    initial = data.initial.copy()
    for place, value in zip(unknown_places(data), values, strict=True):
        initial[place] = value
    data = data._replace(initial=initial)
    residual = (naive_path(network, data) - data.Y) * data.weights
    total = np.nansum(residual**2) / noise
    known = np.where(data.given[:, None], initial, data.Y)
    for row, o in unknown_places(data):
        following = next(v for v in known[row + 1 :, o] if np.isfinite(v))
        total += (following - initial[row, o]) ** 2 / step_variance[o]
    return total


@pytest.mark.parametrize("spread", [0.1, 10.0])
@pytest.mark.parametrize("all_unknown", [False, True])
@pytest.mark.parametrize("activation", ["tanh", "logistic"])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_initial_outputs_are_those_of_least_squares(
    n_outputs, activation, all_unknown, spread
):
    data = make_data(n_outputs, n_given=3, starts=(0, 7), seed=1)
    if all_unknown:
        numbers = np.arange(6 * n_outputs).reshape(-1, n_outputs)
        data.unknown[data.given] = numbers
        # the walk then leads to what is measured, not to what is missing
        data.Y[3:5] = [[np.nan], [0.7]]
    network = make_network(data.X.shape[1], n_outputs, activation=activation)
    step_variance = spread * np.linspace(1.0, 2.0, n_outputs)

    def objective(values):
        return initial_objective(network, data, 0.3, step_variance, values)

    before = data.initial.copy()
    found = estimate_initial(network, data, 0.3, step_variance)
    places = unknown_places(data)
    start, end = (np.array([z[p] for p in places]) for z in (before, found.initial))
    slope = naive.finite_differences(objective, end)
    # it stops where a step wins less than one part in a million
    first = np.abs(naive.finite_differences(objective, start)).max()
    assert np.abs(slope).max() < 1e-2 * first
    assert objective(end) < objective(start)
    for direction in np.eye(len(end)):
        for step in (-0.05, 0.05):
            assert objective(end + step * direction) > objective(end)
    # nothing else moves
    fixed = data.unknown < 0
    assert_array_equal(found.initial[fixed], before[fixed])
    assert_array_equal(data.initial, before)
    assert found.Y is data.Y


# fits


def simulated(network, n_rows=60, noise=0.0):
    """A record that the network has made, with gaps in the outputs."""
    data = make_data(n_rows=n_rows, seed=3)
    Y = data.path(network)
    Y += noise * np.random.default_rng(4).standard_normal(Y.shape)
    return data._replace(Y=np.where(np.isfinite(data.Y), Y, np.nan))


@pytest.mark.parametrize("form", [Full, Dual])
def test_a_fit_of_the_free_run_finds_the_system(form):
    truth = make_network(4, 1, hidden=(), seed=1)
    data = simulated(truth)
    network = truth._replace(theta=np.zeros_like(truth.theta))
    fit = WeightFit(network, linearize(network, data, form), 1e-2)
    precision = np.full(len(network.theta), 1e-10)
    problem = WeightProblem(data, precision, 1.0, form, 100, 1e-16)
    fit = fit_weights("lm", problem, fit, None)
    assert_allclose(fit.network.theta, truth.theta, rtol=1e-5, atol=1e-6)
    assert fit.linearization.squared_error < 1e-8


@pytest.mark.parametrize("solver", ["lm", "lbfgs"])
@pytest.mark.parametrize("curvature", ["full", "diag"])
@pytest.mark.parametrize("groups", [("layer",), ("row", "column")], ids="+".join)
def test_no_cycle_ascends(groups, curvature, solver):
    data = simulated(make_network(4, 1, hidden=(), seed=1), noise=0.1)
    network = make_network(4, 1, seed=5, skip=True)
    settings = Settings(
        likelihood=Gaussian(),
        reg_lambda=np.array([2.0, 2.0, 1.0]),
        reweight=True,
        kappa_variance=1e-3,
        kappa_weight=1e-2,
        curvature=curvature,
        solver=solver,
        max_iter=3,
        tol=1e-4,
    )
    prior = priors.init_prior(network.sizes, groups, skip=True)
    state = cycle.init(settings, data, network, prior)
    rng, infos = np.random.default_rng(0), []
    for _ in range(25):
        state, info = cycle.step(settings, state, rng)
        infos.append(info)
        assert info.objective <= info.objective_start + 1e-9 * abs(info.objective_start)
        # inputs leave the data with the network
        assert state.data.X.shape[1] == state.network.sizes[0]
        found = state.data.squared_errors(state.network)
        assert_allclose(info.squared_errors, found)
    assert infos[-1].objective < infos[0].objective_start
    assert infos[-1].n_weights < infos[0].n_weights


@pytest.mark.parametrize("case", CASES, ids=str)
def test_observation_weights_multiply_squared_errors(case):
    network, plain = make_case(case)
    rng = np.random.default_rng(1)
    w = np.where(rng.uniform(size=plain.Y.shape) < 0.2, 0.0, rng.gamma(2.0, size=1))
    w *= rng.uniform(size=w.shape)
    data = plain.with_observation_weights(w)
    residuals = data.residuals(network)
    assert_array_equal(residuals, plain.residuals(network))
    assert_array_equal(np.isfinite(residuals), np.isfinite(plain.Y))
    expected = np.nansum(w * (residuals / data.weights) ** 2, axis=0)
    assert_allclose(data.squared_errors(network), expected, rtol=1e-11)
    residual, J = dense(network, plain)
    root = np.sqrt(w[np.isfinite(plain.Y)])
    residual, J = residual * root, J * root[:, None]
    loss, gradient = data.loss_gradient(network)
    assert_allclose(loss, 0.5 * residual @ residual, rtol=1e-11)
    assert_allclose(gradient, J.T @ residual, rtol=1e-9, atol=1e-10)
    found = linearize(network, data, Full)
    J = J[:, network.keep]
    assert_allclose(found.squared_error, residual @ residual, rtol=1e-11)
    assert_allclose(found.curvature.JTJ, J.T @ J, rtol=1e-9, atol=1e-11)
    ones = plain.with_observation_weights(np.ones_like(w))
    assert_array_equal(
        linearize(network, ones, Full).curvature.JTJ,
        linearize(network, plain, Full).curvature.JTJ,
    )
    # they stay with the rows when the network stops reading inputs
    assert data.select_inputs(np.arange(plain.X.shape[1])).observation_weights is w
    assert data.with_observation_weights(None).observation_weights is None


def test_initial_outputs_follow_the_observation_weights():
    network, data = make_case((dict(n_given=3, n_rows=30), dict()))
    step = np.ones(1)
    # an observation of weight zero is one that is missing
    w = np.ones(data.Y.shape)
    w[5:9] = 0.0
    missing = data._replace(Y=np.where(w > 0.0, data.Y, np.nan))
    found = estimate_initial(network, data.with_observation_weights(w), 0.1, step)
    expected = estimate_initial(network, missing, 0.1, step)
    assert not np.array_equal(found.initial, data.initial)
    assert_allclose(found.initial, expected.initial, rtol=1e-9)
