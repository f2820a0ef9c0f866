"""The exact sum over a forest of units, against enumeration."""

import numpy as np
import pytest
from grids import each_value_once
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from sklearn.neural_network import BernoulliRBM

from skbayesnn import FrankWolfeRBM
from skbayesnn.rbm import model as rbm_model
from skbayesnn.rbm.likelihood import exact, forest
from skbayesnn.rbm.states import all_states


def sparse_rbm(n_units, n_features, share, seed):
    rng = np.random.default_rng(seed)
    weights = rng.normal(0.0, 4.0, (n_units, n_features))
    weights *= rng.random(weights.shape) < share
    return rbm_model.make_rbm(
        weights, rng.normal(size=n_units), rng.normal(size=n_features)
    )


def enumerated(rbm):
    states = all_states(rbm.weights.shape[1])
    return logsumexp(-rbm_model.free_energy(rbm, states))


@pytest.mark.parametrize(*each_value_once(share=[0.0, 0.1, 0.2], n_units=range(7)))
def test_the_sum_is_that_over_all_states(n_units, share):
    models = [sparse_rbm(n_units, 6, share, seed) for seed in range(20)]
    forests = [rbm for rbm in models if forest.is_forest(rbm)]
    assert forests
    for rbm in forests:
        assert_allclose(forest.log_partition(rbm), enumerated(rbm), rtol=1e-6)
        assert exact.size(rbm) == 0


def test_a_cycle_is_no_forest():
    weights = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])
    rbm = rbm_model.make_rbm(weights, np.zeros(2), np.zeros(3))
    assert forest.is_forest(rbm)
    weights[1, 0] = 1.0
    rbm = rbm_model.make_rbm(weights, np.zeros(2), np.zeros(3))
    assert not forest.is_forest(rbm)
    assert_allclose(exact.log_partition(rbm), enumerated(rbm), rtol=1e-6)


def test_units_of_other_weights_are_no_forest():
    weights, halves = np.array([[1.0, 2.0]]), np.array([0.5])
    rbm = rbm_model.make_rbm(weights, np.zeros(1), np.zeros(2), halves)
    assert not forest.is_forest(rbm)
    assert_allclose(exact.log_partition(rbm), enumerated(rbm), rtol=1e-6)


def test_a_chain_of_near_copies_is_scored_exactly():
    # annealing errs by tenths of a nat; a chain is a product of matrices
    n_features = 40
    weights = np.zeros((n_features - 1, n_features))
    pairs = np.arange(n_features - 1)
    weights[pairs, pairs] = weights[pairs, pairs + 1] = 10.0
    visible = np.linspace(-12.0, -8.0, n_features)
    bernoulli = BernoulliRBM()
    bernoulli.components_ = weights
    bernoulli.intercept_hidden_ = np.full(len(pairs), -10.0)
    bernoulli.intercept_visible_ = visible
    bernoulli.n_features_in_ = n_features
    bernoulli.h_samples_ = np.zeros((1, len(pairs)))
    model = FrankWolfeRBM.from_bernoulli_rbm(bernoulli)
    pair = np.log1p(np.exp([[-10.0, 0.0], [0.0, 10.0]]))
    logs = np.array([0.0, visible[0]])
    for bias in visible[1:]:
        logs = logsumexp(logs[:, None] + pair, axis=0) + [0.0, bias]
    assert_allclose(model.log_partition_, logsumexp(logs), rtol=1e-6)
    found = model.log_partition("exact")
    assert_allclose(found.log_partition, logsumexp(logs), rtol=1e-6)
    assert found.interval == (found.log_partition, found.log_partition)
