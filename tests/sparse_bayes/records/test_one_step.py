"""Data one step ahead: the interface that the solvers see."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn.sparse_bayes.learning.curvature import Dual, Full, linearize
from skbayesnn.sparse_bayes.network import init_network
from skbayesnn.sparse_bayes.records import residuals as data_module
from skbayesnn.sparse_bayes.records.one_step import OneStepData

NAMES = ["tanh", "relu", "logistic"]


def make_case(n_outputs=2, n_samples=70, skip=True):
    rng = np.random.default_rng(0)
    network = init_network((3, 4, n_outputs), "tanh", rng, skip)
    network = network._replace(theta=rng.standard_normal(len(network.theta)))
    data = OneStepData(
        XT=rng.standard_normal((3, n_samples)),
        YT=rng.standard_normal((n_outputs, n_samples)),
        weights=rng.uniform(0.5, 1.5, size=n_outputs),
    )
    return network, data, rng


def dense(network, data):
    """Noise-weighted residuals and Jacobian, outputs first."""
    layers = naive.unflatten(network.theta, network.sizes)
    X, activation = data.XT.T, NAMES[network.activation]
    residual = (naive.forward(layers, activation, X) - data.YT.T) * data.weights
    J = naive.jacobian(layers, activation, X) * data.weights[:, None]
    return residual.T, J.transpose(1, 0, 2)


@pytest.mark.parametrize("block_bytes", [1, 2**22])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_observation_weights_multiply_squared_errors(
    n_outputs, block_bytes, monkeypatch
):
    monkeypatch.setattr(data_module, "BLOCK_BYTES", block_bytes)
    network, plain, rng = make_case(n_outputs)
    w = np.where(rng.uniform(size=plain.YT.shape) < 0.2, 0.0, rng.uniform(0.1, 2.0))
    w *= rng.uniform(size=w.shape)
    data = plain.with_observation_weights(w)
    residual, J = dense(network, plain)
    for one in (plain, data):
        assert_allclose(one.residuals(network), residual, rtol=1e-11, atol=1e-13)
    expected = np.sum(w * (residual / data.weights[:, None]) ** 2, axis=1)
    assert_allclose(data.squared_errors(network), expected, rtol=1e-11)
    residual, J = residual * np.sqrt(w), J * np.sqrt(w)[:, :, None]
    loss, gradient = data.loss_gradient(network)
    assert_allclose(loss, 0.5 * np.sum(residual**2), rtol=1e-11)
    by_parameters = np.einsum("osp,os->p", J, residual)
    assert_allclose(gradient, by_parameters, rtol=1e-10, atol=1e-11)
    diag = np.sum(J**2, axis=(0, 1))
    assert_allclose(data.ggn_diag(network), diag, rtol=1e-11)
    for form in (Full, Dual):
        found = linearize(network, data, form)
        assert_allclose(found.squared_error, np.sum(residual**2), rtol=1e-11)
        assert_allclose(found.gradient, by_parameters, rtol=1e-10, atol=1e-11)
    curvature = linearize(network, data, Full).curvature.JTJ
    expected = np.einsum("osp,osq->pq", J, J)
    assert_allclose(curvature, expected, rtol=1e-10, atol=1e-11)


def test_samples_keep_their_weights():
    network, data, rng = make_case()
    w = rng.uniform(size=data.YT.shape)
    data = data.with_observation_weights(w)
    rows = np.array([3, 5, 60])
    assert_array_equal(data.take(rows).observation_weights, w[:, rows])
    parts = [data.take(np.arange(a, a + 35)) for a in (0, 35)]
    total = sum(part.squared_errors(network) for part in parts)
    assert_allclose(total, data.squared_errors(network), rtol=1e-12)
    assert data.select_inputs(np.arange(3)).observation_weights is w


def test_without_observation_weights_they_are_ones():
    network, data, _ = make_case()
    ones = data.with_observation_weights(np.ones(data.YT.shape))
    for one, other in zip(
        data.blocks(network, False), ones.blocks(network, False), strict=True
    ):
        assert_allclose(one[0], other[0], rtol=1e-14)
        assert_allclose(one[1], other[1], rtol=1e-14)
    assert ones.with_observation_weights(None).observation_weights is None
