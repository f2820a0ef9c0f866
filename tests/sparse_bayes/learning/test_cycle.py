"""The cycles of learning, against closed forms and conditions of optimality."""

import naive
import numpy as np
import pytest
from grids import each_value_once
from learning_cases import (
    GROUPS,
    linear_record,
    make_settings,
    naive_objective,
    outputs,
    random_data,
    random_drop,
    random_network,
    random_prior,
    run_cycles,
    weighted_jacobian,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Lasso

from skbayesnn.sparse_bayes.learning import cycle
from skbayesnn.sparse_bayes.learning import prior as priors
from skbayesnn.sparse_bayes.learning.curvature import (
    choose_form,
    squared_error,
)
from skbayesnn.sparse_bayes.learning.weights import (
    SOLVERS,
    WeightFit,
    WeightProblem,
    fit_weights,
)
from skbayesnn.sparse_bayes.network import (
    bias_mask,
    count_parameters,
    expand,
    init_network,
    join_layers,
    prune,
    split_layers,
)
from skbayesnn.sparse_bayes.records.one_step import OneStepData

STRENGTHS = [1.0, 4.0, (1.0, 4.0), (0.0, 2.0), 0.0]


@pytest.mark.parametrize("curvature", ["full", "diag"])
@pytest.mark.parametrize("n_samples", [5, 50])
@pytest.mark.parametrize(
    "strength, skip",
    [
        *((strength, False) for strength in STRENGTHS),
        (4.0, True),
        ((1.0, 4.0, 2.0), True),
    ],
    ids=str,
)
def test_objective(strength, skip, n_samples, curvature):
    network = random_network((3, 3, 2), skip=skip)
    settings = make_settings(2 + skip, reg_lambda=strength, curvature=curvature)
    prior = random_prior(network.sizes, ("row", "column"), skip=skip)
    data = random_data(network, n_samples)
    rng = np.random.default_rng(0)
    pruned, index = prune(network, random_drop(network, 0.3, rng))
    state = cycle.init(settings, data, pruned, priors.take(prior, index))
    assert_allclose(state.objective, naive_objective(settings, state), rtol=1e-10)
    found = cycle.assess(settings, state)
    assert_allclose(found.objective, state.objective, rtol=1e-13)
    if strength == 1.0:
        value = cycle.log_marginal_likelihood(settings, state)
        assert_allclose(value, -0.5 * state.objective, rtol=1e-12)


@pytest.mark.parametrize("n_samples", [4, 40])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_linear_evidence_has_a_closed_form(n_samples, n_outputs):
    network = random_network((3, n_outputs))
    data = random_data(network, n_samples)
    settings = make_settings(1, max_iter=300, tol=1e-15)
    prior = random_prior(network.sizes, ("element",))
    state = cycle.init(settings, data, network, prior)
    precision = 1.0 / priors.parameter_variance(prior)
    form = choose_form("full", len(network.theta), data.YT.size)
    problem = WeightProblem(data, precision, state.noise, form, 300, 1e-14)
    start = WeightFit(network, state.linearization, 1e-2)
    fit = fit_weights("lm", problem, start, None)
    state = state._replace(network=fit.network, linearization=fit.linearization)
    V, _ = split_layers(priors.parameter_variance(prior), network.sizes)[0]
    expected = 0.0
    for o in range(n_outputs):
        covariance = data.XT.T @ np.diag(V[:, o]) @ data.XT + priors.BIAS_VARIANCE
        covariance += np.eye(n_samples) * state.noise / data.weights[o] ** 2
        expected += naive.gaussian_log_density(data.YT[o], covariance)
    found = cycle.log_marginal_likelihood(settings, state)
    assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize(
    "strength",
    [
        pytest.param(1.0, marks=pytest.mark.slow),
        30.0,
        pytest.param(70.0, marks=pytest.mark.slow),
    ],
)
def test_without_reweighting_single_weights_are_a_lasso(strength):
    data = linear_record()
    noise, n_samples = 0.3, data.YT.shape[1]
    settings = make_settings(
        1,
        reg_lambda=strength,
        reweight=False,
        noise_variance=noise,
        kappa_weight=1e-7,
        max_iter=5,
        tol=1e-14,
    )
    network = init_network((6, 1), "tanh", np.random.default_rng(0))
    state, infos = run_cycles(data, network, settings, ("element",), 300)
    weights, biases = expand(state.network, state.network.theta)
    # |r|^2 / noise + 2 lambda |w| is 2 n / noise times scikit-learn's objective
    lasso = Lasso(alpha=strength * noise / n_samples, tol=1e-12, max_iter=10**5)
    lasso.fit(data.XT.T, data.YT[0])
    assert_allclose(weights[0][:, 0], lasso.coef_, atol=1e-5)
    assert_allclose(biases[0], 0.0, atol=1e-8)
    penalty = 2.0 * strength * np.abs(lasso.coef_).sum()
    residual = data.YT[0] - lasso.predict(data.XT.T)
    constant = n_samples * np.log(2.0 * np.pi * noise)
    expected = residual @ residual / noise + penalty + constant
    assert_allclose(state.objective, expected, rtol=1e-6)
    if strength == 70.0:
        assert (lasso.coef_ == 0.0).any()
        assert_array_equal(weights[0][:, 0] == 0.0, lasso.coef_ == 0.0)


@pytest.mark.parametrize(
    *each_value_once(strength=[10.0, 60.0], groups=["row", "column"])
)
def test_without_reweighting_groups_are_a_group_lasso(groups, strength):
    data = linear_record(n_outputs=2)
    # some mean is left, for the weakly penalised biases
    data = data._replace(YT=data.YT + 0.5)
    noise, n_samples = 0.3, data.YT.shape[1]
    settings = make_settings(
        1,
        reg_lambda=strength,
        reweight=False,
        noise_variance=noise,
        kappa_weight=1e-7,
        max_iter=5,
        tol=1e-14,
    )
    network = init_network((6, 2), "tanh", np.random.default_rng(0))
    state, _ = run_cycles(data, network, settings, (groups,), 300)
    design = np.vstack([data.XT, np.ones(n_samples)]).T
    # parameters of the reference: all of the first output, then of the second
    A = np.kron(np.eye(2), design) / np.sqrt(noise)
    index = np.arange(14).reshape(2, 7)
    members = list(index[:, :6].T if groups == "row" else index[:, :6])
    ridge = np.zeros(14)
    ridge[index[:, 6]] = strength / priors.BIAS_VARIANCE
    y = data.YT.ravel() / np.sqrt(noise)
    expected = naive.group_lasso(A, y, members, strength, ridge, n_iter=3000)
    weights, biases = expand(state.network, state.network.theta)
    found = np.vstack([weights[0], biases[0]]).T.ravel()
    assert_allclose(found, expected, atol=1e-5)
    if groups == "row" and strength == 60.0:
        assert (expected.reshape(2, 7)[0] == 0.0).any()


CYCLE_GROUPS = [
    ("element",),
    ("row", "column"),
    ("element", "row", "column"),
    ("layer", "row"),
]


@pytest.mark.parametrize("curvature", ["full", "diag"])
@pytest.mark.parametrize("reweight", [True, False])
@pytest.mark.parametrize(
    *each_value_once(
        solver=list(SOLVERS), groups=CYCLE_GROUPS, strength=[1.0, 4.0, (1.0, 4.0)]
    )
)
def test_no_cycle_ascends(solver, groups, reweight, strength, curvature):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3, 60))
    Y = np.sin(X[:1]) + 0.1 * rng.standard_normal((1, 60))
    data = OneStepData(X, Y, np.ones(1))
    settings = make_settings(
        reg_lambda=strength,
        reweight=reweight,
        curvature=curvature,
        solver=solver,
        noise_variance="auto",
        kappa_variance=1e-4,
        kappa_weight=1e-2,
        tol=1e-4,
    )
    network = init_network((3, 3, 1), "tanh", rng)
    check_cycles(*run_cycles(data, network, settings, groups, 8))


@pytest.mark.parametrize("groups", CYCLE_GROUPS, ids="+".join)
@pytest.mark.parametrize("strength", [1.0, (1.0, 4.0, 2.0)], ids=str)
@pytest.mark.parametrize("solver", list(SOLVERS))
def test_no_cycle_ascends_with_a_skip_connection(solver, strength, groups):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3, 60))
    Y = X[:1] + np.sin(X[1:2]) + 0.1 * rng.standard_normal((1, 60))
    data = OneStepData(X, Y, np.ones(1))
    settings = make_settings(
        3,
        reg_lambda=strength,
        solver=solver,
        noise_variance="auto",
        kappa_variance=1e-4,
        kappa_weight=1e-2,
        tol=1e-4,
    )
    network = init_network((3, 3, 1), "tanh", rng, skip=True)
    state, infos = run_cycles(data, network, settings, groups, 8)
    check_cycles(state, infos)
    # what is linear goes through it; a few epochs of Adam do not get that far
    weights = expand(state.network, state.network.theta)[0][-1][:, 0]
    assert solver == "adam" or np.argmax(np.abs(weights)) == 0


def check_cycles(state, infos):
    """The objective falls, and the reports are those of the state."""
    for info in infos:
        scale = max(1.0, abs(info.objective_start))
        assert info.objective <= info.objective_start + 1e-10 * scale
        assert info.noise > 0.0
        assert np.isfinite(info.objective_pruned)
    assert infos[-1].objective < infos[0].objective_start
    weights = state.network.keep & ~bias_mask(state.network)
    assert infos[-1].n_weights == np.count_nonzero(weights)
    assert infos[-1].n_units == state.network.sizes[1:-1].sum()
    errors = state.data.squared_errors(state.network)
    assert_allclose(infos[-1].squared_errors, errors)


@pytest.mark.parametrize(
    *each_value_once(
        curvature=["full", "diag"], strength=[1.0, (1.0, 4.0)], n_samples=[15, 60]
    )
)
def test_objective_along_a_fit(curvature, strength, n_samples):
    """The objective a fit reports is that of its state, pruned or not."""
    network = random_network((4, 4, 2))
    data = random_data(network, n_samples)
    settings = make_settings(
        reg_lambda=strength,
        curvature=curvature,
        noise_variance="auto",
        kappa_variance=1e-3,
        kappa_weight=1e-1,
    )
    rng = np.random.default_rng(0)
    prior = priors.init_prior(network.sizes, ("row", "column"))
    state = cycle.init(settings, data, network, prior)
    sizes = []
    for _ in range(60):
        state, info = cycle.step(settings, state, rng)
        expected = naive_objective(settings, state)
        assert_allclose(info.objective_pruned, expected, rtol=1e-8, atol=1e-8)
        assert state.objective == info.objective_pruned
        sizes.append(state.network.sizes.sum())
    assert sizes[-1] < sizes[0]


def test_the_start_of_a_cycle_has_the_old_weights_and_the_new_curvature():
    network = random_network((3, 3, 1))
    data = random_data(network)
    settings = make_settings()
    prior = random_prior(network.sizes, ("row", "column"))
    before = cycle.init(settings, data, network, prior)
    after, info = cycle.step(settings, before, np.random.default_rng(0))
    expected = naive_objective(settings, before, at=after.network)
    assert_allclose(info.objective_start, expected, rtol=1e-9)


def weight_limit(settings, groups, prior):
    """How large a weight can be that the thresholds drop.

    A weight below ``kappa_weight`` is dropped whatever its variance. One that goes by
    its variance v < kappa has, in one of its S group sets, a group whose new variance
    is below S kappa. The update that led there was
    ``v_new^2 = v_old^2 |W|^2 / sum gamma_i v_i``, with gamma <= 1 and v_i <= v_old, so
    ``|W|^2 <= v_new^2 n / v_old`` for a group of n weights; and v_old >= kappa, or the
    weight would have gone before.
    """
    kappa = settings.kappa_variance
    largest = max(np.bincount(label[label >= 0]).max() for label in prior.labels)
    return max(settings.kappa_weight, len(groups) * np.sqrt(kappa * largest))


@pytest.mark.parametrize(
    *each_value_once(
        strength=[4.0, 16.0],
        groups=GROUPS[:4],
        sizes=[(5, 1), (4, 5, 1), (5, 2), (3, 4, 3, 2)],
    )
)
def test_pruning_raises_the_objective_by_no_more_than_the_thresholds_allow(
    strength, groups, sizes
):
    """Without the dropped weights ``w_P`` all terms but two can only fall.

    Their prior terms are not negative, and the determinant of ``I + V^1/2 H V^1/2`` is
    at least that of any principal submatrix. What may rise is the data term,

    ``|r|^2`` by ``-2 g_P w_P + w_P' H_PP w_P`` to second order (exactly, if linear),

    and, if not linear, the determinant because the Jacobian moves, and the prior of
    biases that take up constant units.
    """
    rng = np.random.default_rng(1)
    n_layers = len(sizes) - 1
    network = init_network(sizes, "tanh", rng)
    X = rng.standard_normal((sizes[0], 60))
    Y = np.sin(X[:1]) + 0.3 * X[1:2] + 0.3 * rng.standard_normal((sizes[-1], 60))
    data = OneStepData(X, Y, np.ones(sizes[-1]))
    settings = make_settings(
        n_layers,
        reg_lambda=strength,
        noise_variance="auto",
        kappa_variance=1e-4,
        kappa_weight=1e-2,
    )
    unpruned_settings = settings._replace(kappa_variance=0.0, kappa_weight=0.0)
    prior = priors.init_prior(sizes, groups)
    state = cycle.init(settings, data, network, prior)
    n_pruned = 0
    for _ in range(80):
        # the same cycle twice, without and with its last step
        whole, _ = cycle.step(unpruned_settings, state, rng)
        limit = weight_limit(settings, groups, state.prior)
        state, info = cycle.step(settings, state, rng)
        assert_allclose(whole.objective, info.objective, rtol=1e-12)
        if info.n_weights == _count(whole.network):
            assert info.objective_pruned == info.objective
            continue
        n_pruned += 1
        drop = dropped(settings, whole, state)
        w = np.where(drop, whole.network.theta, 0.0)
        assert np.abs(w).max() <= limit * (1.0 + 1e-9)

        J = weighted_jacobian(whole.network, whole.data)
        residual = outputs(whole.network, data.XT) - data.YT
        # those of the noise of each output, as J has them
        residual *= whole.data.weights[:, None]
        gradient, w = J.T @ residual.ravel(), w[whole.network.keep]
        data_rise = (2.0 * np.abs(gradient * w).sum() + w @ (J.T @ J) @ w) / whole.noise
        at_limit = np.where(w == 0.0, 0.0, limit)
        allowed = 2.0 * np.abs(gradient) @ at_limit
        allowed += at_limit @ np.abs(J.T @ J) @ at_limit
        assert data_rise <= allowed / whole.noise * (1.0 + 1e-9)

        zeroed = whole.network._replace(theta=np.where(drop, 0.0, whole.network.theta))
        misfit_rise = squared_error(zeroed, whole.data) - squared_error(
            whole.network, whole.data
        )
        misfit_rise /= whole.noise
        if n_layers == 1:
            # a difference of two sums of squares, rounded
            rounding = 1e-12 * whole.linearization.squared_error / whole.noise
            assert misfit_rise <= data_rise * (1.0 + 1e-9) + rounding
            assert state.objective <= whole.objective + data_rise * (1.0 + 1e-9) + 1e-9
            continue
        # third order in small weights, beside the first two
        assert misfit_rise <= 1.5 * data_rise
        moved = naive_objective(settings, whole, zeroed, at=zeroed)
        moved -= naive_objective(settings, whole, zeroed, at=whole.network)
        rise = misfit_rise + max(moved, 0.0) + bias_rise(settings, whole, state)
        assert state.objective - whole.objective <= rise + 1e-8
    assert n_pruned


def dropped(settings, whole, pruned):
    """Weights below the thresholds that are gone, in the arrays before."""
    small = priors.parameter_variance(whole.prior) < settings.kappa_variance
    small |= np.abs(whole.network.theta) < settings.kappa_weight
    small &= whole.network.keep & ~bias_mask(whole.network)
    position = np.arange(len(small))
    position, left = (
        join_layers(list(zip(*expand(network, values, fill=fill), strict=True)))
        for network, values, fill in [
            (whole.network, position, -1),
            (pruned.network, pruned.network.keep, False),
        ]
    )
    gone = np.zeros(len(small), dtype=bool)
    gone[position[position >= 0]] = ~left[position >= 0]
    return small & gone


def bias_rise(settings, whole, pruned):
    """Rise of the prior of the biases that are left."""
    total = 0.0
    for strength, *layers in zip(
        settings.reg_lambda,
        *(
            expand(s.network, np.where(bias_mask(s.network), s.network.theta, 0))[1]
            for s in (whole, pruned)
        ),
        strict=True,
    ):
        before, after = (b**2 for b in layers)
        total += strength * np.sum(np.maximum(after - before, 0.0))
    return total / priors.BIAS_VARIANCE


def _count(network):
    return np.count_nonzero(network.keep & ~bias_mask(network))


@pytest.mark.parametrize("strength, spurious", [(1.0, 1), (4.0, 0)])
@pytest.mark.parametrize("seed", range(4))
def test_only_relevant_inputs_are_left(seed, strength, spurious):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.7, 1.7, size=(8, 250))
    Y = np.sin(2.0 * X[[0]]) + 0.5 * X[[3]] + 0.1 * rng.standard_normal((1, 250))
    Y = (Y - Y.mean()) / Y.std()
    data = OneStepData(X, Y, np.ones(1))
    settings = make_settings(
        reg_lambda=strength,
        noise_variance="auto",
        kappa_variance=1e-3,
        kappa_weight=1e-2,
        tol=1e-4,
    )
    network = init_network((8, 6, 1), "tanh", rng)
    prior = priors.init_prior(network.sizes, ("row", "column"))
    state = cycle.init(settings, data, network, prior)
    sizes = [count_parameters(network.sizes)]
    for _ in range(150):
        state, _ = cycle.step(settings, state, rng)
        network = state.network
        sizes.append(count_parameters(network.sizes))
        # later cycles work on smaller arrays
        assert len(network.theta) == len(state.prior.labels[0]) == sizes[-1]
        assert len(state.data.XT) == network.sizes[0]
        assert len(state.linearization.gradient) == network.keep.sum()
        assert len(state.linearization.curvature.JTJ) == network.keep.sum()
        if cycle.converged(state):
            break
    assert (np.diff(sizes) <= 0).all()
    assert sizes[-1] < sizes[0] * 0.6
    left = state.network.units[0]
    # the evidence may be taken in by chance correlations, the tempered one is not
    assert {0, 3} <= set(left.tolist()) and len(left) <= 2 + spurious
    assert_array_equal(state.data.XT, X[left])
    # close to the noise that was put in
    scaled = state.noise * (np.sin(2.0 * X[0]) + 0.5 * X[3]).var()
    assert 0.7 * 0.01 < scaled < 1.5 * 0.01


def test_noise_is_learned_and_may_be_given():
    data = linear_record(n_samples=400)
    network = init_network((6, 1), "tanh", np.random.default_rng(0))
    given = make_settings(1, noise_variance=0.7)
    state, infos = run_cycles(data, network, given, ("element",), 5)
    assert state.noise == 0.7 and all(info.noise == 0.7 for info in infos)
    learned = make_settings(1, noise_variance="auto")
    state, infos = run_cycles(data, network, learned, ("element",), 40)
    # the standard error of a variance from 400 observations is 7 %
    assert_allclose(state.noise, 0.25, rtol=0.3)
    # stationary: |r|^2 = noise (n - sum gamma)
    gamma = cycle.assess(learned, state).gamma
    free = data.YT.size - gamma.sum()
    assert_allclose(state.noise, squared_error(state.network, data) / free, rtol=1e-4)


@pytest.mark.slow
def test_a_weight_is_not_pruned_while_it_passes_through_zero():
    """Two lags of an oscillation: whatever the start, both are kept.

    The inputs are nearly equal. So the weight of the second goes to -1 slowly, and from
    some of the starts it is near zero when the first cycle ends.
    """
    rng = np.random.default_rng(0)
    y = np.sin(0.3 * np.arange(200)) + 0.01 * rng.standard_normal(200)
    y /= y.std()
    data = OneStepData(np.stack([y[1:-1], y[:-2]]), y[None, 2:], np.ones(1))
    settings = make_settings(
        1,
        noise_variance="auto",
        kappa_variance=1e-6,
        kappa_weight=1e-2,
        tol=1e-3,
        # slow, where a whole step of the other solver is at the minimum at once
        solver="lbfgs",
        max_iter=2,
    )
    network = init_network((2, 1), "tanh", rng)
    first, last = [], []
    for start in np.linspace(0.5, 1.5, 101):
        network = network._replace(theta=np.array([2.0, start, 0.0]))
        state, _ = run_cycles(data, network, settings, ("row", "column"), 1)
        first.append(state.network.theta[1])
        state, infos = run_cycles(data, network, settings, ("row", "column"), 30)
        assert infos[-1].n_weights == 2
        last.append(state.objective)
    assert np.abs(first).min() < settings.kappa_weight
    # with one weight the objective is about 100
    assert_allclose(last, last[0], rtol=1e-3)


def test_without_a_prior_nothing_is_pruned():
    data = linear_record()
    network = init_network((6, 1), "tanh", np.random.default_rng(0))
    settings = make_settings(
        1,
        reg_lambda=0.0,
        noise_variance="auto",
        kappa_variance=10.0,
        kappa_weight=10.0,
    )
    state, _ = run_cycles(data, network, settings, ("element",), 10)
    assert state.network.keep.all()
    expected = np.linalg.lstsq(data.XT.T, data.YT[0], rcond=None)[0]
    assert_allclose(state.network.theta[:6], expected, rtol=1e-6)
    assert_allclose(state.noise, squared_error(state.network, data) / 60, rtol=1e-4)


def test_everything_may_be_pruned():
    # nothing to explain: no weight is missed
    data = linear_record()
    noise = np.random.default_rng(1).standard_normal((1, 60))
    data = data._replace(YT=0.1 * (noise - noise.mean()))
    network = init_network((6, 3, 1), "tanh", np.random.default_rng(0))
    settings = make_settings(kappa_weight=1e3, noise_variance=1.0)
    state, infos = run_cycles(data, network, settings, ("row", "column"), 4)
    assert_array_equal(state.network.sizes, [0, 0, 1])
    assert infos[-1].n_weights == infos[-1].n_units == 0
    assert_allclose(state.network.theta, 0.0, atol=1e-6)
    assert_allclose(state.objective, naive_objective(settings, state), rtol=1e-10)


def test_a_fit_goes_on_where_it_was_left():
    network = random_network((3, 3, 1))
    data = random_data(network)
    settings = make_settings(noise_variance="auto", solver="adam", max_iter=2)
    prior = priors.init_prior(network.sizes, ("row",))
    state = cycle.init(settings, data, network, prior)
    kept = state.network.theta.copy()
    first, info = cycle.step(settings, state, np.random.default_rng(1))
    again, again_info = cycle.step(settings, state, np.random.default_rng(1))
    # a step is a function of its state
    assert_array_equal(state.network.theta, kept)
    assert_array_equal(first.network.theta, again.network.theta)
    assert info.objective == again_info.objective


def test_a_fit_ends():
    data = linear_record()
    network = init_network((6, 1), "tanh", np.random.default_rng(0))
    settings = make_settings(1, noise_variance="auto", tol=1e-3)
    rng = np.random.default_rng(0)
    prior = priors.init_prior(network.sizes, ("element",))
    state = cycle.init(settings, data, network, prior)
    assert not cycle.converged(state)
    n_cycles = 0
    while not cycle.converged(state) and n_cycles < 200:
        state, _ = cycle.step(settings, state, rng)
        n_cycles += 1
    assert 1 < n_cycles < 200
