"""Fits that ended in a poor optimum begin anew."""

import numpy as np
import pytest
from grids import first_by_default
from scipy.linalg import LinAlgError
from scipy.stats import norm

from skbayesnn import SparseBayesMLPRegressor, SparseBayesNARXRegressor
from skbayesnn.sparse_bayes.learning import better_optima, cycle
from skbayesnn.sparse_bayes.learning.prior import init_prior
from skbayesnn.sparse_bayes.learning.problem import pose
from skbayesnn.sparse_bayes.network import init_network
from skbayesnn.sparse_bayes.parameters import learning_options
from skbayesnn.sparse_bayes.records.layout import Stage


def noisy(seed, n_rows, n_irrelevant):
    """Three inputs that matter, and others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3 + n_irrelevant))
    truth = np.tanh(2.0 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]
    return X, truth + 0.3 * rng.normal(size=n_rows)


def waves(seed, n_rows=250):
    """A target that rises and falls five times along one of two inputs."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n_rows, 2))
    return X, np.sin(8.0 * X[:, 0]) * np.cos(3.0 * X[:, 1])


def posed(X, y, hidden=(3,), weights=None, **parameters):
    """Settings, and a state at random weights from which no cycle leads away."""
    model = SparseBayesMLPRegressor(hidden, **parameters)
    options = learning_options(model.get_params(deep=False), 1)
    problem = pose(options, X, y[:, None], None, weights)
    rng = np.random.default_rng(0)
    network = init_network(problem.sizes, "tanh", rng, problem.skip)
    prior = init_prior(problem.sizes, ("row", "column"), problem.skip)
    state = cycle.init(problem.settings, problem.data, network, prior)
    return problem.settings, state._replace(idle_cycles=cycle.PATIENCE)


def begun_anew(settings, state, draw=None):
    """The cycles, and how often a start was drawn."""
    drawn = []

    def drawing():
        drawn.append(True)
        return draw()

    stage, rng = Stage(state.data, 1.0), np.random.default_rng(0)
    arguments = settings, stage, state, 20, rng, draw and drawing
    return list(better_optima.begin_anew(*arguments)), len(drawn)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_fit_that_follows_its_noise_begins_anew(seed):
    """With 680 weights for 200 rows, one of three passed through all of them."""
    X, y = noisy(seed, 200, 30)
    model = SparseBayesMLPRegressor(random_state=0).fit(X, y)
    assert model.noise_variance_**0.5 == pytest.approx(0.3, rel=0.25)
    relevant = model.feature_relevance_ > 0.0
    assert relevant[:2].all() and relevant[3:].sum() <= 2
    X_new, y_new = noisy(seed + 100, 1000, 30)
    mean, std = model.predict(X_new, return_std=True)
    assert np.mean(np.abs(y_new - mean) < 1.96 * std) > 0.85


@pytest.mark.parametrize("seed", first_by_default(range(3)))
def test_a_signal_that_was_taken_for_noise_is_found(seed):
    """All three fits had ended at the mean of the target."""
    X, truth = waves(seed)
    y = truth + 0.1 * np.random.default_rng(seed).normal(size=len(truth))
    model = SparseBayesMLPRegressor(random_state=seed).fit(X, y)
    X_new, y_new = waves(seed + 100, 1000)
    assert np.std(model.predict(X_new) - y_new) < 0.4 * np.std(y_new)


@pytest.mark.slow
def test_a_signal_in_an_input_of_a_dynamic_system_is_found():
    """All fits had ended with the linear part alone."""
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        u, y, told = rng.uniform(-1.0, 1.0, 400), np.zeros(400), np.zeros(400)
        for t in range(1, 400):
            told[t] = 0.5 * y[t - 1] + np.sin(8.0 * u[t - 1])
            y[t] = told[t] + 0.1 * rng.normal()
        model = SparseBayesNARXRegressor(2, 2, random_state=0).fit(u[:, None], y)
        errors.append(np.std((model.predict(u[:, None], y) - told)[2:]))
    assert np.count_nonzero(np.array(errors) < 0.1) >= 2


def test_a_fit_that_explains_its_outputs_stays():
    X, _ = waves(0)
    settings, state = posed(X, X[:, 0])
    *_, (state, _) = cycle.steps(settings, state._replace(idle_cycles=0), None, 200)
    assert cycle.converged(state)
    assert begun_anew(settings, state, draw=None) == ([], 0)
    fresh = posed(X, X[:, 0])[1]
    cycles, n_drawn = begun_anew(settings, state, lambda: (fresh.network, fresh.prior))
    assert not cycles and n_drawn == 0


@pytest.mark.parametrize(
    "weights, normalize", [(None, True), (None, False), ("some", True)]
)
def test_what_is_left_is_compared_with_the_variance(weights, normalize):
    """Not with the squares, which are large where the mean is."""
    X, truth = waves(0)
    y = truth + (0.0 if normalize else 5.0)
    if weights:
        # half of the rows count for nothing, and may be far away
        weights = np.tile([1.0, 1e-9], len(y) // 2)
        y[1::2] += 30.0
    settings, state = posed(X, y, weights=weights, normalize=normalize)
    network = state.network
    nothing = network._replace(theta=np.zeros_like(network.theta))
    # the bias of the output is the last parameter
    nothing.theta[-1] = 0.0 if normalize else 5.0
    state = state._replace(network=nothing)
    assert better_optima.misses_much(state)
    fresh = posed(X, y, weights=weights, normalize=normalize)[1]
    draw = fresh.network, fresh.prior
    assert begun_anew(settings, state, lambda: draw)[1] == 1
    # a former fit is not given up, nor one that did not end by itself
    assert begun_anew(settings, state, None) == ([], 0)
    unfinished = state._replace(idle_cycles=0)
    assert begun_anew(settings, unfinished, lambda: draw) == ([], 0)


@pytest.mark.parametrize("failure", [FloatingPointError, LinAlgError])
def test_a_fit_that_fails_by_another_way_stays(failure, monkeypatch):
    X, truth = waves(0)
    settings, state = posed(X, truth)
    fresh = posed(X, truth)[1]

    def fails(*_):
        raise failure

    monkeypatch.setattr(cycle, "step", fails)
    assert begun_anew(settings, state, lambda: (fresh.network, fresh.prior)) == ([], 1)


@pytest.mark.parametrize(
    "fixed",
    [{"reweight": False}, {"curvature": "diag"}, {"reg_lambda": np.array([0.0, 1.0])}],
)
def test_without_evidence_there_is_nothing_to_compare(fixed):
    X, truth = waves(0)
    settings, state = posed(X, truth)
    settings = settings._replace(**fixed)
    assert begun_anew(settings, state, lambda: None) == ([], 0)


def test_left_out_is_what_fits_without_an_observation_predict():
    """Exact for a linear network with known variances."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = X @ [1.0, -0.5, 0.0] + 0.4 * rng.normal(size=30)
    settings, state = posed(X, y, hidden=())
    state = state._replace(noise=0.3)
    network = state.network
    prior = cycle.effective_variance(settings, state)
    ((residual, J),) = state.data.blocks(network, in_one=True)
    target = J.T @ network.theta - residual

    def fit(J, target):
        precision = J @ J.T / state.noise + np.diag(1.0 / prior)
        covariance = np.linalg.inv(precision)
        return covariance @ J @ target / state.noise, covariance

    best, _ = fit(J, target)
    state = state._replace(network=network._replace(theta=best))
    state = cycle.with_data(settings, state, state.data)
    expected = 0.0
    for k in range(30):
        others = np.arange(30) != k
        mean, covariance = fit(J[:, others], target[others])
        variance = state.noise + J[:, k] @ covariance @ J[:, k]
        error = target[k] - J[:, k] @ mean
        expected -= 2.0 * norm.logpdf(error, scale=variance**0.5)
    assert better_optima.left_out(settings, state) == pytest.approx(expected, rel=1e-9)
