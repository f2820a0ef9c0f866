"""The lower bound of the partition function by states in data."""

import naive
import numpy as np
import pytest
from rbm_models import random_model, random_states

from skbayesnn.rbm import model as rbm_model
from skbayesnn.rbm.likelihood.bound import log_partition_bound


@pytest.fixture
def rbm_and_states():
    """A model, all of its states, and their unnormalised log probabilities."""
    rbm, model = random_model(3, 6, 0)
    states = ((np.arange(64)[:, None] >> np.arange(6)) & 1).astype(np.uint8)
    return rbm, states, naive.rbm_log_probability(model, states.astype(float))


def test_all_states_are_the_partition_function(rbm_and_states):
    rbm, states, expected = rbm_and_states
    values = rbm_model.unnormalised_log_probability(rbm, states)
    exact = np.logaddexp.reduce(expected)
    found = log_partition_bound(values)
    # states of nearly the same value count once
    assert exact - 0.5 < found < exact
    # states that are repeated, in any order and in other blocks, add nothing
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(64), 5))
    blocks = np.array_split(states[order], 7)
    values = [rbm_model.unnormalised_log_probability(rbm, block) for block in blocks]
    assert log_partition_bound(np.concatenate(values)) == pytest.approx(found, abs=1e-4)


def test_a_few_states_are_below(rbm_and_states):
    _, _, values = rbm_and_states
    exact = np.logaddexp.reduce(values)
    for n_rows in (1, 3, 10):
        some = values[:n_rows]
        bound = log_partition_bound(some)
        assert some.max() - 0.01 < bound <= np.logaddexp.reduce(some) < exact


def test_probabilities_count_once(rbm_and_states):
    """Of many rows, each is below the likeliest state, but their sum is not."""
    rbm, _, values = rbm_and_states
    rows = random_states(2000, 6) * 0.6 + np.float32(0.2)
    rows = rows + np.random.default_rng(0).normal(0.0, 0.03, rows.shape)
    found = rbm_model.unnormalised_log_probability(rbm, rows.astype(np.float32))
    assert log_partition_bound(found) > np.logaddexp.reduce(values)
    bound = log_partition_bound(found, are_states=False)
    assert bound == found.max() <= values.max()
