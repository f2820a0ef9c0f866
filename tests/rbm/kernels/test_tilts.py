"""Sums over tilted visible units against their slow references.

Also run with bounds checks and without the compiler: sizes stay small.
"""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn.rbm.kernels import tilts

# n_draws, n_features: one of each, around a vector and a block
SHAPES = [(1, 1), (3, 15), (5, 64), (17, 70)]
TILTS = np.float32([-0.3, 0.7])


def draws(shape):
    rng = np.random.default_rng(shape)
    inputs = 5.0 * rng.standard_normal(shape, dtype=np.float32)
    # far out on both sides, where exponentials leave float32
    inputs[0, 0] = -300.0
    inputs[-1, -1] = 300.0
    return inputs, rng.standard_normal(shape[1], dtype=np.float32)


def tilted(inputs, weights):
    w = TILTS.astype(float)[:, None] * weights.astype(float)
    return inputs.astype(float)[:, None] + w


@pytest.mark.parametrize("shape", SHAPES)
def test_log_normalisers(shape):
    inputs, weights = draws(shape)
    total = np.full((shape[0], 2), np.nan)
    # in two calls, as two threads would make
    for first, last in [(0, shape[0] // 2), (shape[0] // 2, shape[0])]:
        tilts.log_normalisers(inputs, weights, TILTS, total, first, last)
    expected = naive.softplus(tilted(inputs, weights)).sum(axis=2)
    assert_allclose(total, expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_weighted_means(shape):
    inputs, weights = draws(shape)
    fractions = np.random.default_rng(1).random((shape[0], 2), dtype=np.float32)
    total, whole = np.full((2, 2, shape[1]), np.nan)
    for first, last in [(0, shape[1] // 2), (shape[1] // 2, shape[1])]:
        tilts.weighted_means(inputs, weights, TILTS, fractions, total, first, last)
    means = naive.logistic(tilted(inputs, weights))
    expected = np.einsum("ik,ikj->kj", fractions.astype(float), means)
    assert_allclose(total, expected, rtol=2e-6, atol=1e-6)
    tilts.weighted_means(inputs, weights, TILTS, fractions, whole, 0, shape[1])
    assert_array_equal(whole, total)
