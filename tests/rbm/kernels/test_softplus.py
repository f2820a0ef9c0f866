"""Sums of softplus in double precision, against NumPy's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn.rbm.kernels import softplus as kernels


def sums(x, y, factors):
    total = np.full((len(y), len(x)), 99.0)
    kernels.sum_softplus_of_pairs(x, y, factors, total)
    return total


@pytest.mark.parametrize("n_x, n_y, n_units", [(1, 1, 1), (5, 3, 17), (4, 2, 100)])
def test_sums_of_pairs(n_x, n_y, n_units):
    rng = np.random.default_rng((n_x, n_y, n_units))
    x, y = rng.normal(0.0, 10.0, (n_x, n_units)), rng.normal(0, 10.0, (n_y, n_units))
    factors = rng.uniform(0.2, 3.0, n_units)
    expected = np.logaddexp(0.0, y[:, None] + x) @ factors
    assert_allclose(sums(x, y, factors), expected, rtol=1e-14)
    # pruned units, and none at all
    assert_array_equal(sums(x, y, 0.0 * factors), np.zeros((n_y, n_x)))
    nothing = np.zeros((2, 0))
    assert_array_equal(sums(nothing, nothing, np.zeros(0)), np.zeros((2, 2)))


def test_softplus_over_its_whole_range():
    x = np.linspace(-690.0, 690.0, 20001)[:, None].copy()
    total = sums(x, np.zeros((1, 1)), np.ones(1))[0]
    assert_allclose(total, np.logaddexp(0.0, x[:, 0]), rtol=2e-15)
    x = np.array([-1e300, -np.inf, 0.0, 800.0, 1e300, np.inf])[:, None]
    total = sums(x, np.zeros((1, 1)), np.ones(1))[0]
    expected = [0.0, 0.0, np.log(2.0), 800.0, 1e300, np.inf]
    assert_allclose(total, expected, rtol=2e-16, atol=1e-300)


def test_a_nan_stays():
    x, y = np.zeros((3, 4)), np.zeros((2, 4))
    x[1, 2] = np.nan
    total = sums(x, y, np.ones(4))
    assert_array_equal(np.isnan(total), [[False, True, False]] * 2)
