"""The factor of bands from held-out errors, and what few or alike errors add to it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.signal import lfilter
from scipy.stats import norm
from scipy.stats import t as student_t

from skbayesnn.sparse_bayes.search.learned_factor import typical_factor, widening


def coloured(shape, correlation, rng):
    """Errors of variance 1, whose neighbours along the last axis have a correlation."""
    white = rng.standard_normal((*shape[:-1], shape[-1] + 1000))
    noise = lfilter([np.sqrt(1.0 - correlation**2)], [1.0, -correlation], white)
    return noise[..., 1000:]


def test_the_median_of_the_stretches_counts():
    rng = np.random.default_rng(0)
    parts = [rng.standard_normal(20000) for _ in range(3)]
    for times in 0.25, 1.0, 2.5:
        found = typical_factor([times * part for part in parts])
        assert_allclose(found, times, rtol=0.03)
    with_gaps = [np.append(part, np.nan) for part in parts]
    assert typical_factor(with_gaps) == typical_factor(parts)
    # stretches that differ: the median, however long they are
    unequal = [np.full(10 * k, 1.96 * k) for k in (9, 1, 4, 2, 5)]
    assert_allclose(typical_factor(unequal), 4.0, rtol=1e-4)
    assert_allclose(typical_factor(unequal[:1]), 9.0, rtol=1e-4)
    assert typical_factor([]) == typical_factor([np.array([np.nan])]) == 1.0


def test_a_stretch_tells_of_no_factor_that_would_not_change_it():
    rng = np.random.default_rng(0)
    parts = [0.1 * rng.standard_normal(2000) for _ in range(3)]
    free = typical_factor(parts)
    assert free < 0.11
    # noise and start make up a part of the bands, in nearly all rows
    for floor in 0.02, 0.7, 1.0:
        floors = [np.full(2000, floor) for _ in parts]
        assert_allclose(typical_factor(parts, floors), max(free, floor))
    # in a few rows, as at the start of a run: the others tell
    few = [np.where(np.arange(2000) < 200, 1.0, 0.02) for _ in parts]
    assert typical_factor(parts, few) == free
    # bands that are too narrow are so whatever their floor is
    wide = [30.0 * part for part in parts]
    assert typical_factor(wide, floors) == typical_factor(wide)


def test_many_independent_errors_widen_nothing():
    parts = list(np.random.default_rng(0).standard_normal((5, 4000)))
    assert 1.0 < widening(parts) < 1.01
    # whatever their size, and where some are missing
    assert_allclose(widening([7.0 * part for part in parts]), widening(parts))
    parts[2][::3] = np.nan
    assert 1.0 < widening(parts) < 1.01


@pytest.mark.parametrize("correlation", [0.8, 0.95])
def test_alike_errors_count_as_fewer(correlation):
    """A first-order process has these numbers of independent errors, if it is long."""
    n = 5 * 4000
    parts = list(coloured((5, 4000), correlation, np.random.default_rng(1)))
    of_variance = n * (1.0 - correlation**2) / (1.0 + correlation**2)
    share = (1.0 + correlation) / (1.0 - correlation) / n
    expected = student_t.ppf(0.975, of_variance) / norm.ppf(0.975)
    expected *= np.sqrt((1.0 + share) / (1.0 - share))
    assert_allclose(widening(parts) - 1.0, expected - 1.0, rtol=0.3)


def test_bands_around_a_level_hold_though_noise_is_coloured():
    """A level that is learned as the mean of a record, and used in the next one."""
    rng = np.random.default_rng(2)
    inside = np.zeros((2, 300))
    for k in range(300):
        record, new = coloured((2, 150), 0.9, rng)
        errors = np.split(record - record.mean(), 5)
        for row, wider in zip(inside, (1.0, widening(errors)), strict=True):
            half = 1.96 * wider * typical_factor(errors)
            row[k] = (np.abs(new - record.mean()) < half).mean()
    without, widened = inside.mean(axis=1)
    assert without < 0.87
    assert widened > without + 0.03


def test_nothing_to_tell_from():
    nothing = [], [np.zeros(0)], [np.full(5, np.nan)], [np.zeros(9)]
    assert [widening(parts) for parts in nothing] == [1.0] * 4
    # a single error, and many that are all alike, count as two
    most = student_t.ppf(0.975, 2.0) / norm.ppf(0.975) * np.sqrt(3.0)
    for parts in [np.ones(1)], [np.ones(400)]:
        assert_allclose(widening(parts), most)
