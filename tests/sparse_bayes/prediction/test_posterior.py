"""The posterior at given rows: relevance of inputs."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose
from random_networks import CODES, Case

from skbayesnn.sparse_bayes.fitted import FittedNetwork
from skbayesnn.sparse_bayes.network import Network
from skbayesnn.sparse_bayes.prediction import posterior
from skbayesnn.sparse_bayes.scaling import Scaling


def fitted_network(case, used, n_features):
    """The network of a case reads some of the features; scales are not one."""
    rng = np.random.default_rng(1)
    n_outputs = case.sizes[-1]
    network = Network(
        theta=case.theta,
        keep=case.keep,
        sizes=case.sizes,
        units=(used, *(np.arange(size) for size in case.sizes[1:])),
        full_sizes=(n_features, *case.sizes[1:]),
        activation=case.code,
        skip=case.skip,
    )
    scaling = Scaling(
        rng.standard_normal(n_features),
        rng.uniform(0.5, 2.0, size=n_features),
        rng.standard_normal(n_outputs),
        rng.uniform(0.5, 2.0, size=n_outputs),
    )
    covariance = np.ones(int(case.keep.sum()))
    return FittedNetwork(network, scaling, covariance, np.ones(n_outputs))


@pytest.mark.parametrize(
    "block_bytes", [1, pytest.param(4000, marks=pytest.mark.slow), 2**25]
)
@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("pruned", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("hidden", [(), (4,), (4, 3)])
@pytest.mark.parametrize("activation", CODES)
def test_sensitivity(activation, hidden, pruned, skip, block_bytes, monkeypatch):
    monkeypatch.setattr(posterior, "BLOCK_BYTES", block_bytes)
    case = Case((3, *hidden, 2), activation, n_samples=20, pruned=pruned, skip=skip)
    used = np.array([0, 2, 4])
    fitted = fitted_network(case, used, 5)
    offset, scale = fitted.scaling.x_offset, fitted.scaling.x_scale
    X = np.random.default_rng(2).standard_normal((20, 5))
    X[:, used] = case.X * scale[used] + offset[used]
    square = naive.input_sensitivity(*case.reference, case.X)
    relevance = posterior.sensitivity(fitted, X)
    assert_allclose(relevance[used], np.sqrt(square / 2), rtol=1e-10, atol=1e-12)
    assert not relevance[[1, 3]].any()
