"""Inputs and hidden units leave a network that does not need them."""

import numpy as np
import pytest
from grids import first_by_default

from skbayesnn import SparseBayesMLPRegressor, SparseBayesStateSpaceRegressor
from skbayesnn.sparse_bayes.learning import cycle, unneeded_units
from skbayesnn.sparse_bayes.learning.prior import init_prior
from skbayesnn.sparse_bayes.learning.problem import pose
from skbayesnn.sparse_bayes.learning.restarts import learn
from skbayesnn.sparse_bayes.learning.state_order import reduce_order
from skbayesnn.sparse_bayes.learning.state_space_problem import pose_state_space
from skbayesnn.sparse_bayes.learning.unneeded_units import (
    _by_rise,
    _of_unit,
    justified_strength,
    remove_hidden_units,
    remove_units,
)
from skbayesnn.sparse_bayes.network import init_network, split_layers
from skbayesnn.sparse_bayes.parameters import learning_options


def noisy(seed, n_rows=300, n_irrelevant=3, noise=0.3):
    """Three inputs that matter, and others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3 + n_irrelevant))
    truth = np.tanh(2.0 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]
    return X, truth + noise * rng.normal(size=n_rows), truth


def state_of(sizes, skip=False):
    X, y, _ = noisy(0, n_irrelevant=sizes[0] - 3)
    parameters = SparseBayesMLPRegressor(sizes[1:-1]).get_params(deep=False)
    options = learning_options({**parameters, "skip_connection": skip}, 1)
    problem = pose(options, X, y[:, None])
    network = init_network(sizes, "tanh", np.random.default_rng(0), skip=skip)
    prior = init_prior(sizes, ("row", "column"), skip)
    state = cycle.init(problem.settings, problem.data, network, prior)
    return problem.settings, state


@pytest.mark.parametrize("skip", [False, True])
def test_a_unit_is_all_that_leads_to_it_and_away_from_it(skip):
    _, state = state_of((4, 3, 2, 1), skip)
    network = state.network

    def parts(layer, unit):
        mask = _of_unit(network, layer, unit)
        return split_layers(mask, network.sizes, skip)

    first, second, last, *more = parts(0, 2)
    assert first[0][2].all() and first[0].sum() == 3 and not first[1].any()
    assert not (second[0].any() or second[1].any() or last[0].any())
    if skip:
        assert more[0][0][2].all() and more[0][0].sum() == 1
    first, second, last, *more = parts(1, 1)
    assert first[0][:, 1].all() and first[0].sum() == 4
    assert list(first[1]) == [False, True, False]
    assert second[0][1].all() and second[0].sum() == 2 and not second[1].any()
    assert not (last[0].any() or any(part.any() for part, _ in more))


def test_those_that_add_least_to_the_errors_come_first():
    _, state = state_of((5, 3, 1))
    drops = _by_rise(state)
    # three units and all inputs
    assert len(drops) == 8
    errors = []
    for drop in drops:
        theta = state.network.theta.copy()
        theta[drop] = 0.0
        (squared,) = state.data.squared_errors(state.network._replace(theta=theta))
        errors.append(squared)
    assert errors == sorted(errors) and errors[0] < errors[-1]
    # the last unit of a layer stays
    assert len(_by_rise(state_of((5, 1, 1))[1])) == 5


@pytest.mark.parametrize("n_seeds", first_by_default([2, 4]))
def test_irrelevant_inputs_leave_and_the_others_stay(n_seeds):
    """Most of them stayed, with small weights, before there were trials."""
    kept, lost, gains = 0, 0, []
    for seed in range(n_seeds):
        X, y, truth = noisy(seed)
        model = SparseBayesMLPRegressor(random_state=seed).fit(X, y)
        relevant = model.feature_relevance_ > 0.0
        kept += relevant[3:].sum()
        lost += (~relevant[:3]).sum()
        gains.append(np.sqrt(np.mean((model.predict(X) - truth) ** 2)))
    assert kept <= n_seeds // 2 and lost == 0
    assert np.median(gains) < 0.15


def test_noise_leaves_its_mean():
    X, _, _ = noisy(1)
    y = np.random.default_rng(2).normal(size=len(X))
    model = SparseBayesMLPRegressor(random_state=0).fit(X, y)
    assert not model.feature_relevance_.any()
    np.testing.assert_allclose(model.predict(X), y.mean(), atol=0.05)


@pytest.mark.parametrize(
    "fixed",
    [
        {"kappa_variance": 0.0, "kappa_weight": 0.0},
        {"reweight": False},
        {"curvature": "diag"},
        {"reg_lambda": np.array([0.0, 1.0])},
    ],
)
def test_what_keeps_all_units(fixed):
    settings, state = state_of((6, 3, 1))
    state = state._replace(idle_cycles=cycle.PATIENCE)

    def cycles(settings, state):
        rng = np.random.default_rng(0)
        return list(remove_units(settings, None, state, 20, rng))

    assert cycles(settings, state)
    assert not cycles(settings._replace(**fixed), state)
    # nor does a fit that did not end by itself
    assert not cycles(settings, state._replace(idle_cycles=0))


@pytest.mark.parametrize("n_seeds", first_by_default([1, 4]))
def test_a_signal_in_much_noise_is_not_given_up(n_seeds):
    """The objective of the mean is smaller: it has no price for order and signs."""
    gains = []
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1.0, 1.0, (250, 2))
        truth = np.cos(2.0 * np.pi * X[:, 0]) * X[:, 1]
        y = truth + 0.5 * rng.normal(size=250)
        model = SparseBayesMLPRegressor(random_state=seed).fit(X, y)
        gains.append(np.std(model.predict(X) - truth) / np.std(truth))
    assert np.median(gains) < 0.6


@pytest.mark.slow
def test_a_strength_above_one_gives_up_nothing_that_the_data_support():
    """The objective alone would leave the mean in five of six such fits."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 8))
    y = X[:, 0] * X[:, 1] + np.cos(X[:, 2:5].sum(axis=1))
    y += 0.3 * X[:, 5:].sum(axis=1) + 0.1 * rng.normal(size=150)
    model = SparseBayesMLPRegressor(reg_lambda=3.0, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.5


def spring(noise, drift=0.0, n_rows=400):
    """Force and position of a mass on a spring that becomes harder.

    With noise, and with a disturbance that changes slowly.
    """
    rng = np.random.default_rng(0)
    u = np.repeat(rng.normal(size=n_rows // 5), 5)
    slow = np.zeros(n_rows)
    for k in range(1, n_rows):
        slow[k] = 0.97 * slow[k - 1] + 0.24 * rng.normal()
    y, position, speed = np.zeros(n_rows), 0.0, 0.0
    for k in range(n_rows):
        y[k] = position
        speed += 0.3 * (u[k] - 0.5 * speed - position - position**3)
        position += 0.3 * speed
    return u[:, None], y + noise * rng.normal(size=n_rows) + drift * slow


def fit_of_states(u, y, strength):
    """Settings, stage and state of a fit of two states with all of its units."""
    model = SparseBayesStateSpaceRegressor(
        2, hidden_layer_sizes=6, reg_lambda=strength, activation="tanh"
    )
    options = learning_options(model._fixed_parameters(), 1)
    starts = np.array([0, len(y)])
    problem = pose_state_space(options, u, y[:, None], starts, 2, 5)
    problem = problem._replace(reduce=None)
    (learned,) = learn(problem, 0, n_starts=2).networks
    start, stage = learned.start, problem.stages[-1]
    state = cycle.init(
        problem.settings, stage.data, start.network, start.prior, start.noise
    )
    return problem.settings, stage, state._replace(idle_cycles=cycle.PATIENCE)


def without_units(settings, stage, state):
    """The states in which networks without units ended, the first one included."""
    rng = np.random.default_rng(0)
    cycles = remove_hidden_units(settings, stage, state, 30, rng)
    return [state, *(smaller for smaller, _ in cycles)]


@pytest.mark.parametrize("strength", first_by_default([5.0, 1.0]))
def test_hidden_units_of_free_runs_leave_where_errors_are_alike(strength):
    """Such errors tell as much as a few, which support few units."""
    fit = fit_of_states(*spring(0.01, drift=0.05), strength)
    assert justified_strength(fit[-1]) > 5.0
    first, *_, last = without_units(*fit)
    assert last.network.sizes[1] < first.network.sizes[1]
    assert last.objective < first.objective
    # they followed the disturbance at most
    assert last.noise < 1.1 * first.noise


def test_units_that_independent_errors_support_stay(monkeypatch):
    """The objective alone, at a strength of 5, gives them up."""
    fit = fit_of_states(*spring(0.02), 5.0)
    assert justified_strength(fit[-1]) < 2.0
    kept = without_units(*fit)[-1]
    monkeypatch.setattr(unneeded_units, "justified_strength", lambda state: np.inf)
    alone = without_units(*fit)[-1]
    assert alone.network.sizes[1] < kept.network.sizes[1] < fit[-1].network.sizes[1]
    assert alone.noise > 1.05 * kept.noise


@pytest.mark.parametrize(
    "fixed", [{"kappa_variance": 0.0, "kappa_weight": 0.0}, {"curvature": "diag"}]
)
def test_what_keeps_all_hidden_units(fixed):
    settings, stage, state = fit_of_states(*spring(0.01, drift=0.05), 5.0)
    assert len(without_units(settings._replace(**fixed), stage, state)) == 1


def test_a_fit_of_hidden_states_has_few_units():
    """Of each of three seeds it kept three of six."""
    u, y = spring(0.01, drift=0.05)
    model = SparseBayesStateSpaceRegressor(
        2, hidden_layer_sizes=6, n_restarts=2, activation="tanh", random_state=0
    ).fit(u, y)
    (hidden,) = model._model.ensemble.members[0].fitted.network.sizes[1:-1]
    assert hidden < 3


def test_units_stay_where_states_at_the_starts_of_sessions_could_replace_them():
    u, y = spring(0.01, drift=0.05)
    model = SparseBayesStateSpaceRegressor(
        2, hidden_layer_sizes=6, n_restarts=2, activation="tanh", random_state=0
    )
    options = learning_options(model._fixed_parameters(), 1)

    def reduce_of(starts, difference):
        arguments = u, y[:, None], np.array(starts), 2, 5, difference
        return pose_state_space(options, *arguments).reduce

    several = [0, 200, 400]
    assert reduce_of([0, 400], True) is remove_hidden_units
    assert reduce_of(several, True) is None
    assert reduce_of(several, False) is reduce_order
