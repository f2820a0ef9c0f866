"""Tempered chains against enumerated distributions."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from rbm_models import check_distribution, random_model, random_states, start_state

from skbayesnn.rbm import model as rbm_model
from skbayesnn.rbm.learning import contrastive, tempering
from skbayesnn.rbm.states import by_feature

BASE = np.array([0.5, -0.3, 0.2, -1.0], dtype=np.float32)


def replicas_of(rbm, n_replicas, n_chains, base=BASE, seed=0):
    transposed = by_feature(rbm.weights)
    return tempering.start(rbm, transposed, base, n_replicas, n_chains, seed)


def tempered(model, beta):
    """Probabilities of all states at an inverse temperature."""
    W, hidden, visible, _ = model
    V = naive.all_states(len(visible))
    logs = V @ ((1.0 - beta) * BASE + beta * visible)
    logs += naive.softplus(beta * (V @ W.T + hidden)).sum(axis=1)
    return np.exp(logs - naive.log_sum(logs))


def test_each_replica_has_its_distribution():
    """After swaps and steps, which leave it as it is."""
    rbm, model = random_model(3, 4, 2, 1.5)
    replicas = replicas_of(rbm, 4, 5000)
    assert replicas.betas[0] == 0.0 and replicas.betas[-1] == 1.0
    assert (np.diff(replicas.betas) > 0.0).all()
    for states, beta in zip(replicas.states, replicas.betas, strict=True):
        assert states.dtype == np.uint8
        check_distribution(states.astype(float), tempered(model, beta))


def two_modes(n_features=30, weight=6.0):
    """All features on or all off, with the same probability."""
    half = 0.5 * n_features
    return rbm_model.make_rbm(
        np.full((1, n_features), weight),
        np.full(1, -weight * half),
        np.full(n_features, -0.5 * weight),
    )


def test_replicas_find_the_other_mode():
    """Where chains at one temperature stay in theirs."""
    rbm = two_modes()
    base = np.zeros(30)
    replicas = replicas_of(rbm, 12, 100, base, 1)
    # the cold ones begin in one mode, which they leave by swaps only
    replicas.states[-4:] = 1
    for number in range(101, 400):
        replicas = tempering.advance(rbm, by_feature(rbm.weights), replicas, 1, number)
    on = replicas.states[-1].mean(axis=1)
    assert set(np.round(on)) == {0.0, 1.0}
    assert 0.3 < on.mean() < 0.7
    still = start_state(rbm, np.zeros((100, 30), dtype=np.uint8))
    for _ in range(100):
        still, _ = contrastive.step(
            SETTINGS, still, np.zeros((5, 30), dtype=np.uint8), 0.0, 0
        )
    assert not still.chains.any()


SETTINGS = contrastive.Settings(1, True, 0.0, 0.0, True, averaging=0.0)


def test_temperatures_move_to_where_swaps_are_refused():
    rbm = two_modes()
    first = np.linspace(0.0, 1.0, 8)
    replicas = replicas_of(rbm, 8, 50, np.zeros(30))
    assert replicas.betas[0] == 0.0 and replicas.betas[-1] == 1.0
    assert (np.diff(replicas.betas) > 0.0).all()
    assert not np.allclose(replicas.betas, first)
    assert ((replicas.swapped >= 0.0) & (replicas.swapped <= 1.0)).all()


@pytest.mark.parametrize("n_replicas", [2, 5])
def test_a_step_of_training_takes_the_replicas_of_the_model(n_replicas):
    """And gives the same again from a copy."""
    rbm, _ = random_model(3, 4, 2)
    batch = random_states(6, 4, dtype=np.uint8)
    state = start_state(rbm, batch)
    assert contrastive.n_replicas(state) == 1
    state = contrastive.temper(state, BASE, n_replicas, 3)
    assert contrastive.n_replicas(state) == n_replicas
    assert state.chains.states.shape == (n_replicas, 6, 4)
    kept = contrastive.copy(state)
    before = state.chains.states.copy()
    one, info = contrastive.step(SETTINGS, state, batch, 0.1, 7)
    assert_array_equal(kept.chains.states, before)
    two, _ = contrastive.step(SETTINGS, kept, batch, 0.1, 7)
    assert_array_equal(one.rbm.weights, two.rbm.weights)
    assert_array_equal(one.chains.states, two.chains.states)
    difference = batch.mean(axis=0) - one.chains.states[-1].mean(axis=0)
    assert info.mean_error == pytest.approx(np.mean(difference**2), rel=1e-4)


def test_replicas_jump_where_swaps_are_refused():
    """Between modes of 200 features, with temperatures that are far apart."""
    n, weight = 200, 6.0
    rbm = rbm_model.make_rbm(
        np.full((1, n), weight), [-0.5 * weight * n], np.full(n, -0.5 * weight)
    )
    batch = np.repeat(np.uint8([[0], [1]] * 20), n, axis=1)
    state = start_state(rbm, batch)
    state = contrastive.temper(state, np.full(n, -3.0), 2, 3)
    still = contrastive.copy(state)
    settings = SETTINGS._replace(jumps=True)
    for _ in range(40):
        state, _ = contrastive.step(settings, state, batch, 0.0, 7)
        still, _ = contrastive.step(SETTINGS, still, batch, 0.0, 7)
    on, still_on = (one.chains.states[-1].mean(axis=1) > 0.5 for one in (state, still))
    assert 0.2 < on.mean() < 0.8
    assert not still_on.any()
