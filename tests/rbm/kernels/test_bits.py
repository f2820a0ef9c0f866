"""The passes over packed rows against their slow references.

Also run with bounds checks and without the compiler: sizes stay small.
"""

import itertools

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rbm_kept_inputs import kept

from skbayesnn.rbm.kernels import bits

# n_rows, n_features: one of each, around a byte and a vector, and more than one block
SHAPES = [(1, 1), (1, 20), (3, 8), (2, 9), (15, 7), (16, 16), (33, 23), (2060, 3)]
# of a float32 sum, relative to the sum of its terms' sizes
ROUNDING = 1e-6


@pytest.fixture(autouse=True)
def _wrap_around():
    """Without the compiler: a NaN is cast to an integer."""
    with np.errstate(invalid="ignore"):
        yield


def states(shape, seed=0):
    return np.random.default_rng((*shape, seed)).integers(0, 2, shape, dtype=np.uint8)


def normal(size, seed=0):
    return np.random.default_rng((size, seed)).normal(0.0, 2.0, size).astype(np.float32)


def padded(weights, packed):
    """What lies behind the last feature must not count."""
    behind = np.full(8 * len(packed) - len(weights), np.nan, dtype=np.float32)
    return kept(np.append(weights, behind))


def forward(packed, weights, bias):
    x = np.full(packed.shape[1], np.nan, dtype=np.float32)
    # in two calls, as two threads would make
    for part in [(0, len(x) // 3), (len(x) // 3, len(x))]:
        w = padded(weights, packed)
        bits.forward(kept(packed), w, np.float32(bias), x, *part)
    return x


def backward(packed, s):
    total = np.full(8 * len(packed), np.nan)
    bits.backward(kept(packed), kept(s), total)
    return total


@pytest.mark.parametrize("shape", SHAPES)
def test_packing(shape):
    V = states(shape)
    expected = naive.pack_bits(V)
    for values in [V, V.astype(bool), V.astype(np.float32), np.asfortranarray(V)]:
        packed = bits.pack_rows(values)
        assert packed.flags.c_contiguous
        assert_array_equal(packed, expected, strict=True)
    unpacked = bits.unpack_rows(packed, shape[1])
    assert unpacked.flags.c_contiguous
    assert_array_equal(unpacked, V.astype(np.float32), strict=True)


@pytest.mark.parametrize("shape", SHAPES)
def test_inputs(shape):
    V, weights = states(shape), normal(shape[1])
    x = forward(naive.pack_bits(V), weights, 0.7)
    size = V @ np.abs(weights) + 0.7
    assert np.all(np.abs(x - (V @ weights.astype(float) + 0.7)) < ROUNDING * size)


def test_inputs_do_not_depend_on_where_rows_are_split():
    V = states((37, 20))
    packed, w = bits.pack_rows(V), np.append(normal(20), np.zeros(4, np.float32))
    whole, parts = np.empty((2, 37), dtype=np.float32)
    bits.forward(packed, w, np.float32(0.7), whole, 0, 37)
    for cut in range(1, 37):
        for part in [(0, cut), (cut, 37)]:
            bits.forward(packed, w, np.float32(0.7), parts, *part)
        assert_array_equal(parts, whole)


@pytest.mark.parametrize("shape", SHAPES)
def test_sums_of_rows(shape):
    V, s = states(shape), normal(shape[0])
    total = backward(naive.pack_bits(V), s)
    size = np.abs(s).astype(float) @ V + 1e-30
    assert np.all(np.abs(total[: shape[1]] - s.astype(float) @ V) < ROUNDING * size)
    assert_array_equal(total[shape[1] :], 0.0)


def test_blocks_are_added_in_float64():
    s = np.zeros(bits._BLOCK + 1, dtype=np.float32)
    # float32 has no number between this one and the next even one
    s[0], s[-1] = 2.0**24, 1.0
    total = backward(bits.pack_rows(np.ones((len(s), 1), dtype=np.uint8)), s)
    assert total[0] == 2.0**24 + 1.0


def test_what_is_off_is_not_read():
    """A diverged weight reaches the rows that have it, and no others."""
    V = states((9, 11))
    V[:, 4] = np.arange(9) % 2
    weights, s = normal(11), normal(9)
    for value in (np.nan, np.inf):
        weights[4] = value
        x = forward(bits.pack_rows(V), weights, 0.0)
        assert_array_equal(np.isfinite(x), V[:, 4] == 0)
        s[5] = value
        total = backward(bits.pack_rows(V), s)[:11]
        assert_array_equal(np.isfinite(total), V[5] == 0)


@pytest.mark.parametrize("n", [1, 16, 150])
def test_outputs(n):
    x = np.resize(np.float32([-100.0, -5.0, -0.3, 0.0, 1e-4, 2.0, 17.0, 100.0]), n)
    x += 0.01 * normal(n)
    softplus, mean = np.full((2, n), np.nan, dtype=np.float32)
    bits.activate(x, softplus, mean)
    exact = x.astype(np.float64)
    assert_allclose(softplus, naive.softplus(exact), rtol=5e-7, atol=1e-37)
    assert_allclose(mean, naive.logistic(exact), rtol=5e-7, atol=1e-37)


@pytest.mark.parametrize("n", [3, 7, 20, 33])
def test_outputs_do_not_depend_on_the_place_in_memory(n):
    """Arrays side by side are computed value by value, others in whole vectors."""
    for x in 3.0 * np.random.default_rng(0).standard_normal((50, n), dtype=np.float32):
        apart = np.empty((2, n), dtype=np.float32)
        bits.activate(x, *apart)
        for order in itertools.permutations(range(3)):
            together = np.empty((3, n), dtype=np.float32)
            given, *outputs = (together[k] for k in order)
            given[:] = x
            bits.activate(given, *outputs)
            assert_array_equal(outputs, apart)


def test_outputs_keep_nan():
    x = np.float32([np.nan, np.inf, -np.inf, 1.0])
    softplus, mean = np.zeros((2, 4), dtype=np.float32)
    bits.activate(x, softplus, mean)
    assert_array_equal(np.isnan(softplus), [True, False, False, False])
    assert_array_equal(np.isnan(mean), [True, False, False, False])
    assert softplus[1] == np.inf and mean[1] == 1.0
    assert softplus[2] < 1e-37 and mean[2] < 1e-37
