"""Products of states and of probabilities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rbm_models import random_states

from skbayesnn.rbm import states as products


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_products_of_states_and_of_probabilities(dtype):
    V = random_states(30, 9, dtype=dtype)
    if dtype == np.float32:
        V = 0.1 + np.float32(0.7) * V
    rng = np.random.default_rng(0)
    values = rng.normal(size=(9, 4)).astype(np.float32)
    others = rng.normal(size=(30, 4)).astype(np.float32)
    result = products.product(V, values)
    assert result.dtype == np.float32
    assert_allclose(result, V.astype(float) @ values, atol=2e-6)
    # into a part of another array
    whole = np.zeros((40, 4), dtype=np.float32)
    assert_array_equal(products.product(V, values, whole[5:35]), result)
    assert_array_equal(whole[5:35], result)
    assert not whole[:5].any() and not whole[35:].any()
    result = products.transposed_product(V, others)
    assert result.dtype == np.float32 and result.flags.c_contiguous
    assert_allclose(result, V.T.astype(float) @ others, atol=1e-5)
    result = products.sum_states(V)
    assert result.dtype == np.float32
    assert_allclose(result, V.astype(float).sum(axis=0), rtol=1e-6)
