"""The states that a fitted network had in its training record."""

import numpy as np
import pytest
import state_space_cases as cases

from skbayesnn.sparse_bayes.prediction.hidden_states import make_network
from skbayesnn.sparse_bayes.records.layout import Record
from skbayesnn.sparse_bayes.records.state_runs import lay_out_for_fit

N_ROWS = 2_000


def trained(network):
    """The same with what a record of so many rows tells of its states."""
    U = np.random.default_rng(5).standard_normal((N_ROWS, 1))
    Y = np.zeros((N_ROWS, 1))
    data = lay_out_for_fit(U, Y, np.array([0, N_ROWS]), 2, np.ones(1))
    return make_network(network.fitted, data)


def with_theta(network, theta):
    changed = network.fitted.network._replace(theta=theta)
    return network._replace(fitted=network.fitted._replace(network=changed))


def started(network, x):
    """The linear network with weights that say where its session begins."""
    theta = network.fitted.network.theta.copy()
    theta[9:11] = x  # behind the weights of two states and an input
    return with_theta(network, theta)


def test_mean_and_covariance_are_those_of_the_training_record():
    network = trained(started(cases.linear_network(), [3.0, -2.0]))
    U, x = np.random.default_rng(5).standard_normal((N_ROWS, 1)), [3.0, -2.0]
    states = np.empty((N_ROWS, 2))
    for t, u in enumerate(U):
        states[t], x = x, cases.A @ x + cases.B @ u
    np.testing.assert_allclose(network.mean, states.mean(axis=0), atol=1e-10)
    exact = np.cov(states.T, bias=True)
    # a thousandth of the spread keeps it from being singular
    exact += 1e-3 * 0.5 * np.trace(exact) * np.eye(2)
    np.testing.assert_allclose(network.covariance, exact, rtol=1e-8)
    distances = np.abs(network.visited[:, None] - states).max(axis=2)
    assert (distances.min(axis=1) < 1e-10).all()
    assert len(network.visited) == 64


def test_states_follow_weights_into_another_basis():
    network = trained(started(cases.linear_network(), [3.0, -2.0]))
    root, changes = cases.bases(network)
    found = np.einsum("nkj,ke->enj", network.followed, root)
    of_mean = np.einsum("eij,j->ei", changes, network.mean)
    np.testing.assert_allclose(found[:, :, 0], of_mean, atol=1e-6)
    np.testing.assert_allclose(found[:, :, 1:], changes, atol=1e-6)


@pytest.mark.parametrize("n_known", [0, 1, 2, 8])
def test_a_basis_that_is_not_known_widens_no_band(n_known):
    """However little the first rows tell of the state."""
    network = trained(started(cases.linear_network(), [3.0, -2.0]))
    root, _ = cases.bases(network)
    U, Y = cases.record_from(np.array([2.0, -1.0]))
    Y[n_known:] = np.nan
    record = Record(U, Y, None, np.array([0, 30]))

    def std(covariance):
        fitted = network.fitted._replace(covariance=covariance)
        one = network._replace(fitted=fitted)
        return one.forecast(record, n_known, np.inf, True).std[n_known:]

    np.testing.assert_allclose(std(root @ root.T), std(0.0 * root @ root.T), rtol=1e-4)


def test_derivatives_beyond_all_numbers_are_not_followed():
    """The states stay at 0, and so does what they double in every row."""
    network = cases.linear_network()
    theta = np.zeros_like(network.fitted.network.theta)
    theta[0] = theta[4] = 2.0
    found = trained(with_theta(network, theta))
    assert found.followed.shape == (2, len(theta), 3)
    np.testing.assert_array_equal(found.followed, 0.0)
