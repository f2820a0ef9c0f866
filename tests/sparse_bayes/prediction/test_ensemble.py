"""Ensembles: how members are combined, and how draws are allocated to them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn.sparse_bayes.prediction.ensemble import allocate_draws, combine
from skbayesnn.sparse_bayes.prediction.forecast import Forecast


def forecasts(values, stds=None):
    """Of one output and one row each."""
    values = np.asarray(values, dtype=float)[:, None, None]
    stds = [None] * len(values) if stds is None else np.reshape(stds, values.shape)
    lost = np.isnan(values).ravel()
    return [Forecast(*one) for one in zip(values, stds, lost.astype(int), strict=True)]


@pytest.mark.parametrize(
    "values, weights, median",
    [
        ([3.0], [1.0], 3.0),
        ([1.0, 2.0, 9.0], [1 / 3] * 3, 2.0),
        ([9.0, 1.0, 2.0, 4.0], [0.25] * 4, 3.0),
        ([1.0, 2.0, 9.0], [0.2, 0.2, 0.6], 9.0),
        ([np.nan, 2.0, 9.0], [0.2, 0.4, 0.4], 5.5),
        # less than half of the weight is left
        ([np.nan, 2.0, 9.0], [0.6, 0.2, 0.2], np.nan),
    ],
)
def test_the_mean_is_the_weighted_median(values, weights, median):
    found = combine(forecasts(values), np.array(weights))
    assert_allclose(found.mean[0, 0], median)
    assert found.std is None
    assert found.n_diverged == int(np.isnan(median))


def test_the_variance_is_that_of_the_mixture():
    weights = np.array([0.5, 0.3, 0.2])
    values, stds = np.array([1.0, 2.0, 2.5]), np.array([0.1, 0.2, 0.3])
    found = combine(forecasts(values, stds), weights)
    center = found.mean[0, 0]
    expected = weights @ (stds**2 + (values - center) ** 2)
    assert_allclose(found.std[0, 0] ** 2, expected, rtol=1e-12)


@pytest.mark.parametrize("value, std", [(80.0, 0.3), (2.0, 50.0), (-1e6, 1e9)])
def test_a_member_that_is_about_to_diverge_does_not_spoil_the_variance(value, std):
    values = np.array([1.0, 1.5, 2.0, 2.0, value])
    stds = np.array([0.5, 0.5, 0.5, 0.5, std])
    found = combine(forecasts(values, stds), np.full(5, 0.2))
    assert_allclose(found.mean[0, 0], np.median(values))
    square = stds**2 + (values - found.mean[0, 0]) ** 2
    # 9 times what the median member has; the others count as they are
    expected = (np.sort(square)[:4].sum() + 9.0 * np.median(square)) / 5.0
    assert_allclose(found.std[0, 0] ** 2, expected, rtol=1e-12)


def test_a_part_of_the_members_that_is_wild_is_no_outlier():
    values, stds = np.array([1.0, 50.0]), np.array([0.5, 0.5])
    found = combine(forecasts(values, stds), np.full(2, 0.5))
    assert_allclose(found.std[0, 0] ** 2, 0.25 + 24.5**2, rtol=1e-12)


def test_what_noise_and_start_ask_for_is_that_of_the_mixture():
    one, other = forecasts([1.0, 1.0], [0.5, 0.5])
    one = one._replace(least=np.full_like(one.std, 0.3))
    found = combine([one, other._replace(least=0.4 * one.std)], np.array([0.75, 0.25]))
    assert_allclose(found.least[0, 0] ** 2, 0.75 * 0.3**2 + 0.25 * 0.2**2)
    # predictions ahead have none
    assert combine([one, other], np.array([0.75, 0.25])).least is None


def test_a_single_member_is_the_ensemble():
    one = forecasts([2.0], [0.5])
    assert combine(one, np.ones(1)) is one[0]
    assert_array_equal(one[0].mean, [[2.0]])


def test_counts_of_an_ensemble():
    weights = np.array([0.62, 0.0, 0.3, 0.08])
    counts = np.array(
        [
            allocate_draws(weights, 10, np.random.default_rng(seed))
            for seed in range(4000)
        ]
    )
    assert (counts.sum(axis=1) == 10).all()
    assert (np.abs(counts - 10 * weights) < 1.0).all()
    assert_allclose(counts.mean(axis=0), 10 * weights, atol=5 * 0.5 / np.sqrt(4000))
    assert (
        allocate_draws(np.array([0.5, 0.5, 0.0]), 7, np.random.default_rng(0)) >= 0
    ).all()
    assert allocate_draws([1.0], 3, np.random.default_rng(0)).tolist() == [3]
