"""Centred rows against the covariance that they are a factor of.

Also run with bounds checks and without the compiler.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rbm_kept_inputs import kept

from skbayesnn.rbm.kernels import centring as kernels

DAMPING = np.float32(0.1)


def means_of(n_units):
    """Of five rows of data and three of chains."""
    means = np.random.default_rng(n_units).random((8, n_units)).astype(np.float32)
    return kept(means)


def centred(means, n_rows, whiten):
    rows, centres = np.empty_like(means), np.empty((2, means.shape[1]), np.float32)
    diagonal = np.empty(means.shape[1], np.float32)
    kernels.centre_rows(means, n_rows, DAMPING, whiten, rows, centres, diagonal)
    return rows, centres, diagonal


@pytest.mark.parametrize("n_units", [1, 16, 19])
@pytest.mark.parametrize("whiten", [False, True])
def test_factor_of_the_covariance(n_units, whiten):
    means = means_of(n_units)
    rows, centres, diagonal = centred(means, 5, whiten)
    m = means.astype(float)
    parts = m[:5], m[5:]
    assert_allclose(centres, [part.mean(axis=0) for part in parts], rtol=1e-6)
    assert_allclose(diagonal, (m * (1.0 - m)).mean(axis=0) + 0.1, rtol=1e-6)
    expected = sum(np.cov(part.T, ddof=0).reshape(n_units, -1) for part in parts) / 2.0
    if whiten:
        expected /= np.sqrt(np.outer(diagonal, diagonal))
    assert_allclose(rows.T @ rows, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n_units", [1, 16, 19])
@pytest.mark.parametrize("whiten", [False, True])
def test_weighing_undoes_the_centring(n_units, whiten):
    """What comes is the difference of means, row by row."""
    means = means_of(n_units)
    rows, centres, diagonal = centred(means, 5, whiten)
    scale = np.sqrt(diagonal) if whiten else np.ones_like(diagonal)
    kernels.weigh_about_centres(rows, 5, scale, centres)
    weights = np.repeat([1.0 / 5.0, -1.0 / 3.0], [5, 3])
    assert_allclose(rows, weights[:, None] * means, rtol=1e-5, atol=1e-6)


def test_a_nan_stays_in_its_unit():
    means = means_of(3).copy()
    means[1, 2] = np.nan
    for array in centred(means, 5, True):
        here = np.isnan(array)
        assert here[..., 2].any()
        assert_array_equal(here[..., :2], False)
