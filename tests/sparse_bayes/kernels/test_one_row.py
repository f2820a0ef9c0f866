"""The compiled passes of one sample against their slow references."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from random_networks import CODES, Case

from skbayesnn.sparse_bayes.kernels import layers as mlp
from skbayesnn.sparse_bayes.kernels import one_row as row
from skbayesnn.sparse_bayes.kernels.activations import BLOCK

ROWS = [
    dict(sizes=(3, 2)),
    dict(sizes=(3, 4, 1)),
    dict(sizes=(2, 3, 4, 2), pruned=0.4),
    # wider than a block of samples
    dict(sizes=(2, BLOCK + 6, 2)),
    dict(sizes=(2, 0, 3)),
    dict(sizes=(0, 0, 1)),
    dict(sizes=(3, 2), skip=True),
    dict(sizes=(3, 4, 2), skip=True),
    dict(sizes=(3, 4, 3, 2), skip=True, pruned=0.4),
    dict(sizes=(3, 0, 2), skip=True),
]


@pytest.mark.parametrize("activation", CODES)
@pytest.mark.parametrize("options", ROWS, ids=str)
def test_row(options, activation):
    case = Case(**options, activation=activation, n_samples=3)
    n_in, n_out = case.sizes[0], case.sizes[-1]
    memory = row.row_memory(*case.network)
    a, power, bits = memory.a, memory.power, memory.bits
    delta, places = np.empty_like(a), mlp.parameter_places(*case.network)
    for x, seed in zip(case.X, case.Y, strict=True):
        # what the last sample left behind is not read
        a[n_in:] = delta[:] = np.nan
        a[:n_in] = x
        row.forward_row(*case.network, a, power, bits)
        assert_array_equal(a[:n_in], x)
        expected = naive.forward(*case.reference, x)
        assert_allclose(a[len(a) - n_out :], expected, rtol=1e-12, atol=1e-13)

        delta[len(delta) - n_out :] = seed
        row.backward_row(*case.network, a, delta)
        found = memory.values[places.source] * delta[places.target]
        expected = naive.backpropagation(*case.reference, x, seed)
        assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
        expected = seed @ naive.input_jacobian(*case.reference, x[None])[0]
        assert_allclose(delta[:n_in], expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("activation", CODES)
def test_row_and_block_agree_at_all_units(activation):
    case = Case((3, 5, 4, 2), activation, n_samples=1, skip=True)
    memory = row.row_memory(*case.network)
    a, power, bits = memory.a, memory.power, memory.bits
    a[:3] = case.X[0]
    row.forward_row(*case.network, a, power, bits)
    hidden = naive.activate(
        activation, case.X[0] @ case.layers[0][0] + case.layers[0][1]
    )
    assert_allclose(a[3:8], hidden, rtol=1e-13, atol=1e-14)
    out = mlp.forward(*case.network, case.XT)
    assert_allclose(a[-2:], out[:, 0], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("activation", CODES)
def test_a_missing_value_reaches_the_outputs_of_a_row(activation):
    case = Case((2, 3, 2), activation)
    memory = row.row_memory(*case.network)
    a, power, bits = memory.a, memory.power, memory.bits
    a[:2] = 0.3, np.nan
    with np.errstate(all="ignore"):
        row.forward_row(*case.network, a, power, bits)
    assert np.isnan(a[2:]).all()


@pytest.mark.parametrize("activation", CODES)
@pytest.mark.parametrize("options", ROWS, ids=str)
def test_tangent(options, activation):
    case = Case(**options, activation=activation, n_samples=3)
    n_in, n_out = case.sizes[0], case.sizes[-1]
    memory = row.row_memory(*case.network)
    a, power, bits = memory.a, memory.power, memory.bits
    tangent = np.empty_like(a)
    deviation = np.random.default_rng(1).standard_normal(len(case.theta))
    for x in case.X:
        tangent[:] = np.nan
        a[:n_in] = x
        row.forward_row(*case.network, a, power, bits)
        row.tangent_row(*case.network, deviation, a, tangent)
        expected = naive.jacobian(*case.reference, x[None])[0] @ deviation
        assert_allclose(tangent[len(a) - n_out :], expected, rtol=1e-10, atol=1e-11)
        assert not tangent[:n_in].any()
