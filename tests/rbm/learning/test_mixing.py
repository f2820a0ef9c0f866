"""Chains of a training while the model stands still."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from rbm_models import (
    check_distribution,
    exact_draws,
    random_model,
    random_states,
    start_state,
)

from skbayesnn.rbm import model as rbm_model
from skbayesnn.rbm.learning import contrastive, mixing


@pytest.mark.parametrize("fractional", [False, True])
def test_chains_that_forget_are_not_correlated(fractional):
    """Of 2,000 independent chains, by the standard error of a correlation."""
    rbm, _ = random_model(3, 5, 2, 0.1, fractional=fractional)
    chains = random_states(2000, 5, dtype=np.uint8)
    state = start_state(rbm, chains)
    found = mixing.chain_correlation(state, 20, 3)
    assert abs(found) < 5.0 / np.sqrt(2000)


def test_chains_that_stand_still_are_correlated():
    """Two modes with a barrier between them, which a few steps do not cross."""
    rbm = rbm_model.make_rbm(np.full((2, 6), 8.0), np.full(2, -24.0), np.full(6, -8.0))
    half = np.repeat([[0], [1]], 50, axis=0).astype(np.uint8)
    state = start_state(rbm, np.repeat(half, 6, axis=1))
    kept = contrastive.copy(state)
    assert mixing.chain_correlation(state, 20, 3) > 0.95
    assert_array_equal(state.chains, kept.chains)
    # all in one state: nothing tells that they move
    alike = start_state(rbm, np.zeros((50, 6), dtype=np.uint8))
    assert mixing.chain_correlation(alike, 1, 3) == 1.0


KINDS = ["standard", "jumps", "fractional", "replicas", "replicas with jumps"]


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow) if "replicas" in kind else kind
        for kind in KINDS
    ],
)
def test_draws_are_of_the_model(kind):
    """By chains that started elsewhere, and stay where they are."""
    has_replicas = kind.startswith("replicas")
    rbm, model = random_model(3, 4, 1, 0.8, fractional=kind == "fractional")
    state = start_state(rbm, random_states(20000, 4, dtype=np.uint8))
    if has_replicas:
        state = contrastive.temper(state, np.zeros(4), 3, 0)
    kept = contrastive.copy(state)
    rows = random_states(5, 4, dtype=np.uint8) if "jumps" in kind else None
    found = mixing.draws(rbm, state, 20000, 7, rows)
    _, p = naive.rbm_distribution(model)
    check_distribution(found.astype(float), p)
    before, after = (
        one.chains.states if has_replicas else one.chains for one in (kept, state)
    )
    assert_array_equal(before, after)
    assert_array_equal(found, mixing.draws(rbm, state, 20000, 7, rows))


def test_more_draws_than_chains_are_of_later_steps():
    rbm, model = random_model(3, 4, 1, 0.5)
    state = start_state(rbm, exact_draws(model, 10, dtype=np.uint8))
    found = mixing.draws(rbm, state, 25, 0)
    assert found.shape == (25, 4)
    assert_array_equal(mixing.draws(rbm, state, 10, 0), found[:10])
    assert not np.array_equal(found[:10], found[10:20])
