"""Jumps of hidden states against enumerated distributions."""

import naive
import numpy as np
import pytest
from rbm_models import check_distribution, random_model, start_state

from skbayesnn.rbm import model as rbm_model
from skbayesnn.rbm.learning import contrastive, jumps, mixing


def hidden_distribution(model):
    """Probabilities of all hidden states."""
    W, hidden, visible, _ = model
    H = naive.all_states(len(hidden))
    logs = H @ hidden + naive.softplus(H @ W + visible).sum(axis=1)
    return H, np.exp(logs - naive.log_sum(logs))


def test_jumps_and_flips_leave_the_distribution_as_it_is():
    rbm, model = random_model(4, 5, 0, 1.5)
    H, p = hidden_distribution(model)
    rng = np.random.default_rng(0)
    h = H[rng.choice(len(H), size=20000, p=p)].astype(np.uint8)
    x = rng.integers(2, size=(7, rbm.weights.shape[1])) @ rbm.weights.T
    moved, inputs = jumps.move(rbm, x.astype(np.float32), h, 3, 5)
    np.testing.assert_allclose(inputs, moved @ rbm.weights, atol=1e-4)
    assert (moved != h).any(axis=1).mean() > 0.2
    check_distribution(moved.astype(float), p)


def test_chains_reach_the_other_mode():
    """All features on or off, two thirds of the mass off: Gibbs steps cross never."""
    n, weight = 30, 6.0
    rbm = rbm_model.make_rbm(
        np.full((1, n), weight),
        np.full(1, -0.5 * weight * n - np.log(2.0)),
        np.full(n, -0.5 * weight),
    )
    rows = np.repeat(np.uint8([[0], [1]]), n, axis=1)
    x = (rows @ rbm.weights.T).astype(np.float32)
    h = np.ones((600, 1), dtype=np.uint8)
    for number in range(10):
        h, _ = jumps.move(rbm, x, h, 1, number)
    assert abs(h.mean() - 1.0 / 3.0) < 0.08


def test_flips_find_a_mode_without_data():
    """Its mass is 1,000 times that of the only row of data."""
    rbm = rbm_model.make_rbm(
        np.zeros((2, 10)), np.array([0.0, np.log(1000.0)]), np.zeros(10)
    )
    # the row says that the second unit is off
    x = np.float32([[0.0, -30.0]])
    h = np.zeros((200, 2), dtype=np.uint8)
    for number in range(10):
        h, _ = jumps.move(rbm, x, h, 2, number)
    assert h[:, 1].mean() > 0.95


def test_correlation_of_chains_counts_their_jumps():
    """Chains in two modes stand still without, and change places with them."""
    n, weight = 30, 6.0
    weights = np.full((1, n), weight)
    rbm = rbm_model.make_rbm(weights, [-0.5 * weight * n], np.full(n, -0.5 * weight))
    rows = np.repeat(np.uint8([[0], [1]] * 50), n, axis=1)
    state = start_state(rbm, rows)
    assert mixing.chain_correlation(state, 20, 0) > 0.8
    assert abs(mixing.chain_correlation(state, 20, 0, rows)) < 0.4


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((100, 100, 1, 1000), 1),
        ((100, 100, 1, 180), 2),
        ((100, 100, 1, 60), 3),
        ((100, 100, 1, 17), 4),
        ((100, 100, 10, 60), 1),
        ((1000, 10, 1, 17), 2),
    ],
)
def test_jumps_are_as_frequent_as_they_are_cheap(shape, expected):
    assert jumps.interval(*shape) == expected


def test_chains_jump_to_rows_with_many_features_in_the_update_that_learns_them():
    """Two thirds of the mass are where none of the chains is."""
    n = 900
    rbm = rbm_model.make_rbm(
        np.full((1, n), 0.2), np.full(1, -0.1 * n - np.log(2.0)), np.full(n, -0.1)
    )
    rows = np.repeat(np.uint8([[0], [1]] * 50), n, axis=1)
    state = start_state(rbm, rows)
    state = state._replace(chains=np.ones((600, 1), dtype=np.uint8))
    settings = contrastive.Settings(1, True, 0.0, 0.0, False, 0.0, jumps=True)
    for number in (1, 2, 3):
        assert state.step == number
        state, _ = contrastive.step(settings, state, rows, 0.0, 7)
    assert abs(state.chains.mean() - 1.0 / 3.0) < 0.08
