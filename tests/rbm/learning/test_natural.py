"""The natural gradient by the hidden factor of the Fisher information."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rbm_models import PLAIN, start_state

from skbayesnn.rbm import model as rbm_model
from skbayesnn.rbm.learning import contrastive, natural
from skbayesnn.rbm.likelihood import exact

DAMPING = 0.1


def covariance(means, n_rows):
    """C_h of half data and half chains, with the variance of states given rows."""
    parts = means[:n_rows], means[n_rows:]
    between = sum(np.cov(part.T, ddof=0) for part in parts) / 2.0
    return between + np.diag((means * (1.0 - means)).mean(axis=0))


@pytest.mark.parametrize("n_units", [5, 60])
def test_divides_by_the_damped_covariance(n_units):
    """With fewer units than rows and with more, which takes another way."""
    rng = np.random.default_rng(n_units)
    means = rng.random((30, n_units)).astype(np.float32)
    x = rng.standard_normal((4, n_units)).astype(np.float32)
    divided = natural.divide(means, 20, DAMPING, x)
    matrix = covariance(means.astype(float), 20) + 0.25 * DAMPING * np.eye(n_units)
    signed = means * np.repeat([1.0 / 20, -1.0 / 10], [20, 10])[:, None]
    for values, given in [(divided.vectors, x), (divided.rows, signed)]:
        expected = 0.25 * (1.0 + DAMPING) * np.linalg.solve(matrix, given.T).T
        assert_allclose(values, expected, rtol=2e-3, atol=1e-4)


def test_a_model_without_units():
    means, vectors = np.empty((6, 0), np.float32), np.empty((2, 0), np.float32)
    divided = natural.divide(means, 3, DAMPING, vectors)
    assert divided.rows.shape == (6, 0)
    assert divided.vectors.shape == (2, 0)


def two_modes(n_rows, n_features, rng):
    """Rows of which all features are on or off, but for one in ten."""
    mode = rng.integers(2, size=(n_rows, 1))
    return (mode ^ (rng.random((n_rows, n_features)) < 0.1)).astype(np.uint8)


def test_units_are_independent_where_two_modes_make_copies_of_them():
    """What all units have in common moves less, and what tells them apart more."""
    rng = np.random.default_rng(0)
    mode = rng.integers(2, size=(100, 1))
    common = mode + np.zeros(8)
    means = np.clip(0.02 + 0.9 * common + 0.05 * rng.random((100, 8)), 0, 1)
    vectors = np.float32([[1] * 8, [1, -1] * 4])
    divided = natural.divide(means.astype(np.float32), 50, DAMPING, vectors)
    same, apart = np.linalg.norm(divided.vectors, axis=1)
    assert same < 0.3 * np.sqrt(8)
    assert apart > 1.2 * np.sqrt(8)


@pytest.mark.parametrize("centered", [False, True])
def test_limit_of_the_change_holds_for_the_natural_gradient(centered):
    """The log probabilities of rows change by what the slopes say."""
    rng = np.random.default_rng(1)
    V = two_modes(16, 20, rng)
    rbm = rbm_model.make_rbm(
        0.2 * rng.standard_normal((4, 20)), np.zeros(4), np.zeros(20)
    )
    settings = PLAIN._replace(
        persistent=True, centered=centered, damping=DAMPING, max_change=1e-3
    )
    state = start_state(rbm, two_modes(16, 20, rng), V.mean(axis=0), np.full(4, 0.5))
    before = contrastive.copy(state)
    after, info = contrastive.step(settings, state, V, 0.2, 3)
    assert info.rate < 0.2
    # the chains of the step, which the judged rows include
    h = before.chains
    v = rbm.units.draw_from(h, rbm.weights, rbm.visible, (np.uint64(3), 2, 0))
    rows = np.concatenate([V, v]).astype(np.float32)
    change = rbm_model.unnormalised_log_probability(after.rbm, rows)
    change -= rbm_model.unnormalised_log_probability(before.rbm, rows)
    assert_allclose(change.std(), 1e-3, rtol=0.05)


def test_the_step_is_the_gradient_divided_by_the_factor():
    rng = np.random.default_rng(2)
    V = two_modes(16, 20, rng)
    W = 0.2 * rng.standard_normal((4, 20)).astype(np.float32)
    rbm = rbm_model.make_rbm(W, np.zeros(4), np.zeros(20))
    settings = PLAIN._replace(persistent=True, centered=True, damping=DAMPING)
    mu = V.mean(axis=0)
    state = start_state(rbm, two_modes(16, 20, rng), mu, np.full(4, 0.5))
    h = state.chains
    v = rbm.units.draw_from(h, rbm.weights, rbm.visible, (np.uint64(3), 2, 0))
    after, _ = contrastive.step(settings, state, V, 0.1, 3)
    states = np.concatenate([V, v]).astype(float)
    means = 1.0 / (1.0 + np.exp(-(states @ W.T)))
    # the offset of the step has moved to the mean of the data by 1 %
    offset = 0.99 * 0.5 + 0.01 * means[:16].mean(axis=0)
    h = (means - offset) * np.repeat([1.0 / 16, -1.0 / 16], 16)[:, None]
    plain = h.T @ (states - mu)
    matrix = covariance(means, 16) + 0.25 * DAMPING * np.eye(4)
    expected = 0.1 * 0.25 * (1.0 + DAMPING) * np.linalg.solve(matrix, plain)
    assert_allclose(after.rbm.weights - W, expected, atol=1e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_found_as_without(value):
    rbm = rbm_model.make_rbm(np.full((4, 20), value), np.zeros(4), np.zeros(20))
    V = two_modes(16, 20, np.random.default_rng(3))
    settings = PLAIN._replace(persistent=True, damping=DAMPING)
    state = start_state(rbm, V)
    with pytest.raises(contrastive.Diverged):
        contrastive.check(contrastive.step(settings, state, V, 0.1, 3)[0])


@pytest.mark.slow
def test_units_learn_more_than_the_distance_of_two_modes():
    """Each mode has four parts: the plain gradient hardly finds them, this one does."""
    rng = np.random.default_rng(4)
    mode, part = rng.integers(2, size=(400, 1)), rng.integers(2, size=(400, 2))
    centre = np.hstack([np.repeat(mode, 200, 1), np.repeat(part, 15, 1)])
    V = (centre ^ (rng.random(centre.shape) < 0.05)).astype(np.uint8)
    likelihoods = []
    for damping in (None, DAMPING):
        W = 0.01 * np.random.default_rng(5).standard_normal((6, V.shape[1]))
        rbm = rbm_model.make_rbm(W, np.zeros(6), np.zeros(V.shape[1]))
        settings = PLAIN._replace(
            persistent=True, centered=True, damping=damping, max_change=1.0
        )
        state = start_state(rbm, V[:100], V.mean(axis=0), np.full(6, 0.5))
        for k in range(150):
            state, _ = contrastive.step(settings, state, V[k % 4 :: 4], 0.2, 3)
        values = rbm_model.unnormalised_log_probability(state.rbm, V.astype(np.float32))
        likelihoods.append(values.mean() - exact.log_partition(state.rbm))
    plain, natural_one = likelihoods
    assert natural_one > plain + 5.0
