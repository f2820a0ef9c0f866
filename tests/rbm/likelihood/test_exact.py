"""The log partition function by enumeration, and the references of all."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose
from rbm_models import SIZES, random_model

from skbayesnn.rbm.likelihood import annealing, exact


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("n_units, n_features", SIZES)
def test_exact_log_partition(n_units, n_features, fractional):
    rbm, model = random_model(n_units, n_features, fractional=fractional)
    expected = naive.rbm_log_partition(model)
    assert_allclose(exact.log_partition(rbm), expected, rtol=1e-12)
    side = n_features if fractional and n_units else min(n_units, n_features)
    is_pair = n_units == n_features == 1 and not fractional
    # a forest is not enumerated
    assert exact.size(rbm) == (0 if is_pair else side)


@pytest.mark.parametrize(
    "n_units, n_features, fractional",
    [
        (15, 16, False),
        pytest.param(16, 15, False, marks=pytest.mark.slow),
        (3, 15, True),
        (20, 21, False),
    ],
)
def test_exact_log_partition_of_many_states(n_units, n_features, fractional):
    """Summed over the other side, or, where that takes too long, without blocks."""
    rbm, model = random_model(n_units, n_features, 1, 2.0, fractional)
    W, hidden, visible, c = model
    if n_units == 20:
        # pairs of units that see features of their own: a product of small sums
        parts = []
        W = np.zeros_like(W)
        for i in range(0, 20, 2):
            W[i : i + 2, i : i + 2] = model[0][i : i + 2, i : i + 2]
            pair = slice(i, i + 2)
            small = (W[pair, pair], hidden[pair], visible[pair], c[pair])
            parts.append(naive.rbm_log_partition(small))
        rbm = rbm._replace(weights=np.float32(W))
        expected = sum(parts) + naive.softplus(visible[20])
    elif fractional:
        expected = naive.rbm_log_partition(model)
    else:
        larger = naive.all_states(max(n_units, n_features))
        if n_units < n_features:
            logs = larger @ visible + naive.softplus(larger @ W.T + hidden).sum(axis=1)
        else:
            logs = larger @ hidden + naive.softplus(larger @ W + visible).sum(axis=1)
        expected = naive.log_sum(logs)
    assert_allclose(exact.log_partition(rbm), expected, rtol=1e-12)


def test_references_agree_with_the_joint_distribution():
    _, model = random_model(3, 4)
    V, H = naive.all_states(4), naive.all_states(3)
    joint = np.array([[naive.joint_log_probability(model, v, h) for h in H] for v in V])
    by_joint = np.log(np.exp(joint).sum(axis=1))
    assert_allclose(naive.rbm_log_probability(model, V), by_joint, rtol=1e-12)
    p_v = np.exp(joint).sum(axis=1) / np.exp(joint).sum()
    assert_allclose(naive.rbm_distribution(model)[1], p_v, rtol=1e-12)
    up = np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True)
    down = np.exp(joint) / np.exp(joint).sum(axis=0)
    assert_allclose(naive.gibbs_transition(model), up @ down.T, rtol=1e-10)


@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
def test_references_of_the_chains_are_reversible(fractional, clamped):
    _, model = random_model(2, 3, fractional=fractional)
    T, p = naive.gibbs_transition(model), naive.rbm_distribution(model)[1]
    if clamped:
        mask, values = np.array([True, False, False]), np.array([1.0, 0.0, 0.0])
        T = naive.gibbs_transition(model, mask, values)
        _, p = naive.rbm_conditional(model, mask, values)
    assert_allclose(T.sum(axis=1), 1.0)
    flow = p[:, None] * T
    assert_allclose(flow, flow.T, atol=1e-15)


@pytest.mark.parametrize("n_units", [0, 3])
def test_base_log_partition(n_units):
    rbm, _ = random_model(n_units, 4, fractional=True)
    base = np.array([-2.0, 0.0, 1.0, 30.0])
    rbm0 = (np.zeros((n_units, 4)), np.zeros(n_units), base, rbm.unit_weights)
    expected = naive.rbm_log_partition(tuple(np.float64(a) for a in rbm0))
    assert_allclose(annealing.base_log_partition(rbm, base), expected, rtol=1e-12)
