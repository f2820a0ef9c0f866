"""Steps where all states are listed: against enumeration, up to a maximum."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn.rbm.learning import exact_ascent
from skbayesnn.rbm.likelihood.exact import log_partition
from skbayesnn.rbm.model import make_rbm
from skbayesnn.rbm.states import all_states
from skbayesnn.rbm.training.rows import Rows


def some_rbm(n_units, n_features, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (n_units, n_features), n_units, n_features
    return make_rbm(*(rng.normal(size=shape) for shape in shapes))


def likelihood(rbm, of_data, weight_decay=0.0):
    """By all states of both sides."""
    states, hidden = naive.all_states(len(rbm.visible)), all_states(len(rbm.hidden))
    weights = rbm.weights.astype(np.float64)
    energies = hidden @ weights @ states.T + (hidden @ rbm.hidden)[:, None]
    values = np.log(np.exp(energies + states @ rbm.visible).sum(axis=0))
    penalty = 0.5 * weight_decay * (weights**2).sum()
    return of_data @ values - np.log(np.exp(values).sum()) - penalty


def test_fractions_and_probabilities_belong_to_the_same_states():
    states = all_states(3)
    rows = Rows(np.concatenate([states, states[[5, 5]]]), 0.5)
    assert_array_equal(rows.fractions_of_states()[[4, 5]], [0.1, 0.3])
    rbm = some_rbm(4, 3)
    for state, found in zip(states, exact_ascent.probabilities(rbm), strict=True):
        exact = likelihood(rbm, (states == state).all(axis=1))
        assert found == pytest.approx(np.exp(exact), rel=1e-5)
    assert exact_ascent.probabilities(rbm).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_the_end_is_a_maximum(weight_decay):
    rng = np.random.default_rng(1)
    of_data = rng.dirichlet(np.full(8, 2.0))
    rbm = exact_ascent.ascend(some_rbm(2, 3), of_data, 1000, weight_decay)
    highest = likelihood(rbm, of_data, weight_decay)
    for _ in range(50):
        near = make_rbm(
            *(part + 1e-2 * rng.normal(size=part.shape) for part in rbm[:3])
        )
        assert likelihood(near, of_data, weight_decay) < highest + 1e-6
    if not weight_decay:
        # at a maximum, the model has the means of the data
        means = exact_ascent.probabilities(rbm) @ all_states(3)
        assert_allclose(means, of_data @ all_states(3), atol=1e-4)


def test_more_steps_never_lower_it():
    of_data = np.random.default_rng(0).dirichlet(np.ones(16))
    found = [
        likelihood(exact_ascent.ascend(some_rbm(3, 4), of_data, n, 0.0), of_data)
        for n in (1, 3, 10, 30)
    ]
    assert (np.diff(found) > 0.0).all()


def test_few_rows_leave_the_weights_finite():
    """Of a single state, the likelihood grows with the weights forever."""
    of_data = np.eye(8)[3]
    rbm = exact_ascent.ascend(some_rbm(2, 3), of_data, 1000, 0.0)
    assert np.isfinite(log_partition(rbm))
    assert max(np.abs(part).max() for part in rbm[:3]) <= 100.0
