"""Networks without their least state: the balanced basis, and what is left there."""

import numpy as np
import pytest
import state_space_cases as cases

from skbayesnn.sparse_bayes.learning import cycle
from skbayesnn.sparse_bayes.learning.order_search import _hopeless
from skbayesnn.sparse_bayes.learning.prior import init_prior
from skbayesnn.sparse_bayes.learning.problem import settings_of
from skbayesnn.sparse_bayes.learning.restarts import learn
from skbayesnn.sparse_bayes.learning.stages import FIRST_STAGE_CYCLES
from skbayesnn.sparse_bayes.learning.state_order import (
    _balance,
    _transformed,
    count_states,
    price,
    reduce_order,
    without_least_state,
)
from skbayesnn.sparse_bayes.learning.state_space_problem import pose_state_space
from skbayesnn.sparse_bayes.network import init_network, join_layers, split_layers
from skbayesnn.sparse_bayes.parameters import learning_options
from skbayesnn.sparse_bayes.records.layout import Stage
from skbayesnn.sparse_bayes.records.state_runs import lay_out_for_fit
from skbayesnn.sparse_bayes.state_space_network import SparseBayesStateSpaceRegressor

STARTS = np.array([0, 120, 200])
N_STATES = 3


def posed(hidden=(2,), seed=0):
    """Settings, stage and state of a random network of 3 states in two sessions."""
    rng = np.random.default_rng(seed)
    U, y, _, _ = cases.records(noise=0.05)
    Y = y[:, None] / y.std()
    data = lay_out_for_fit(U, Y, STARTS, N_STATES, np.ones(1))
    sizes = (N_STATES + 1 + 2, *hidden, N_STATES + 1)
    network = init_network(sizes, "tanh", rng, skip=bool(hidden))
    network = network._replace(theta=0.4 * rng.standard_normal(len(network.theta)))
    model = SparseBayesStateSpaceRegressor(hidden_layer_sizes=hidden, reg_lambda=1.0)
    options = learning_options(model._fixed_parameters(), 1)
    settings = settings_of(options, options.likelihood, sizes, data.n_observations)
    prior = init_prior(sizes, ("element",), bool(hidden))
    state = cycle.init(settings, data, network, prior)
    return settings, Stage(data, np.inf), state


@pytest.mark.parametrize("hidden", [(), (2,), (3, 2)])
def test_another_basis_is_the_same_function(hidden):
    _, _, state = posed(hidden)
    network, data = state.network, state.data
    T, inverse = _balance(network, data)
    np.testing.assert_allclose(T @ inverse, np.eye(3), atol=1e-9)
    other, dense = _transformed(network, data.run.state, T, inverse)
    assert dense.any()
    assert not np.allclose(other.theta, network.theta)
    np.testing.assert_allclose(data.residuals(other), data.residuals(network))


def test_in_the_balanced_basis_states_have_unit_covariance_and_the_last_matters_least():
    _, _, state = posed()
    network, data = state.network, state.data
    other, _ = _transformed(network, data.run.state, *_balance(network, data))
    T, _ = _balance(other, data)
    np.testing.assert_allclose(np.abs(T), np.eye(3), atol=1e-5)


def test_without_its_least_state_a_network_has_one_less():
    _, _, state = posed()
    assert count_states(state.network, N_STATES) == 3
    network, prior = without_least_state(state)
    assert count_states(network, N_STATES) == 2
    assert len(network.theta) == len(prior.labels[0])
    # nothing leads to the states that are gone
    to_states = split_layers(network.theta, network.sizes, network.skip)[-1][0]
    assert np.count_nonzero(np.abs(to_states[:, :N_STATES]).sum(axis=0)) == 2


def test_a_state_that_copies_another_one_is_gone_without_a_change():
    _, _, state = posed(())
    layers = split_layers(state.network.theta.copy(), state.network.sizes)
    weights, biases = layers[0]
    weights[2], weights[:, 2], biases[2] = 0.0, weights[:, 0], biases[0]
    weights[0, :], weights[2, :] = weights[0] / 2.0, weights[0] / 2.0
    network = state.network._replace(theta=join_layers(layers))
    state = state._replace(network=network)
    smaller, _ = without_least_state(state)
    data = state.data.select_inputs(smaller.units[0])
    expected = state.data.residuals(network)
    np.testing.assert_allclose(data.residuals(smaller), expected, atol=1e-3)


def test_states_go_as_long_as_the_objective_allows():
    settings, stage, state = posed(())
    rng = np.random.default_rng(0)
    assert not list(reduce_order(settings, stage, state, 20, rng))
    for _ in range(100):
        state, _ = cycle.step(settings, state, rng)
        if cycle.converged(state):
            break
    first = state.objective
    found = [state for state, _ in reduce_order(settings, stage, state, 20, rng)]
    assert count_states(found[-1].network, N_STATES) == 2
    assert found[-1].objective < first + price(settings, stage.data)


def test_a_state_costs_a_logarithm_for_each_of_its_parameters():
    settings, stage, _ = posed()
    assert price(settings, stage.data) == pytest.approx(2 * np.log(200))
    heated = settings._replace(reg_lambda=np.full(3, 5.0))
    assert price(heated, stage.data) == pytest.approx(10 * np.log(200))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_starts_that_cannot_catch_up_do_not_go_on():
    """Few states are fitted to the end only where the screening is close."""
    U, y, number, _ = cases.records((100, 60), noise=0.05)
    model = SparseBayesStateSpaceRegressor(hidden_layer_sizes=(), max_cycles=3)
    options = learning_options(model._fixed_parameters(), 1)
    starts = np.array([0, 100, 160])
    problem = pose_state_space(options, U, y[:, None], starts, 2, 5)
    fit = learn(problem, 0, n_starts=4)
    assert learn(problem, 0, n_starts=4, hopeless=-np.inf) is None
    same = learn(problem, 0, n_starts=4, hopeless=np.inf)
    assert same.networks[0].objective == fit.networks[0].objective
    # what it has still won, or half a nat per observation, and the price of states
    best, of_a_state = fit.networks[0], price(problem.settings, problem.data)
    screened = best.history["objective_pruned"][:FIRST_STAGE_CYCLES][-1]
    still = max(0.5 * 160, 2.0 * (screened - best.objective))
    expected = best.objective + (2 - 1) * of_a_state + still
    assert _hopeless(problem, fit, 1) == pytest.approx(expected)
