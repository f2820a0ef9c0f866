"""The stretches into which a record is cut."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skbayesnn.sparse_bayes.search.stretches import (
    cut,
    cut_for,
    cut_measured,
    longest_lag,
    numbered,
    rows_for,
)


def folds_of(lengths, n_folds=8, lag=10, shortest=1):
    """Folds of every session, and the longest lag."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    folds = cut(starts, n_folds, lag, shortest)
    assert len(folds) == starts[-1]
    return np.split(folds, starts[1:-1]), longest_lag(starts, folds)


@pytest.mark.parametrize("lengths", [[180], [1000, 300], [176, 177, 5000]])
@pytest.mark.parametrize("n_folds", [2, 8])
def test_long_sessions_are_cut_into_all_folds(lengths, n_folds):
    found, longest = folds_of(lengths, n_folds)
    for folds in found:
        assert (np.diff(folds) >= 0).all()
        counts = np.bincount(folds, minlength=n_folds)
        assert len(counts) == n_folds and np.ptp(counts) <= 1
        assert rows_for(longest) <= max(lengths) // n_folds
    starts = np.concatenate([[0], np.cumsum(lengths)])
    numbers = numbered(starts, np.concatenate(found))
    assert_array_equal(np.unique(numbers), np.arange(n_folds * len(lengths)))


def test_stretches_have_as_many_measured_rows():
    """Whatever holes a record has; none is held out in vain."""
    starts, measured = np.array([0, 300, 1000, 1040]), np.ones(1040, dtype=bool)
    assert_array_equal(
        cut_measured(starts, measured, 4, [1, 2])[0], cut_for(starts, 4, [1, 2])
    )
    measured[200:700] = False
    measured[1000:] = False
    folds, longest = cut_measured(starts, measured, 4, [1, 2])
    counts = np.bincount(folds[measured])
    assert len(counts) == 4 and np.ptp(counts) <= 4
    assert rows_for(longest) <= 75
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        assert (np.diff(folds[start:stop]) >= 0).all()
    # rows of a hole are with those before it, or behind it where a session begins so
    assert (folds[200:300] == folds[199]).all()
    assert (folds[300:700] == folds[700]).all()
    # without anything measured, as without a hole
    none = np.zeros(1040, dtype=bool)
    assert_array_equal(
        cut_measured(starts, none, 4, [1, 2])[0], cut_for(starts, 4, [1, 2])
    )


def test_short_sessions_are_left_whole():
    found, longest = folds_of([40] * 12)
    assert [set(folds.tolist()) for folds in found] == [{k % 8} for k in range(12)]
    assert longest == 19


def test_sessions_of_middle_length_are_cut_into_fewer():
    found, longest = folds_of([70, 70, 70])
    assert [np.unique(folds).tolist() for folds in found] == [
        *([0, 1, 2], [3, 4, 5]),
        # dealt out in turn
        [0, 6, 7],
    ]
    assert longest == 10


@pytest.mark.parametrize(
    ("lengths", "n_folds", "expected"), [([60], 8, 5), ([60], 3, 3), ([30, 30], 8, 6)]
)
def test_a_few_short_sessions_are_cut_into_enough_stretches(lengths, n_folds, expected):
    """Though they allow shorter lags than are wanted."""
    found, longest = folds_of(lengths, n_folds)
    assert len(np.unique(np.concatenate(found))) == expected
    assert longest < 10 if n_folds > 3 else longest == 9


def test_a_session_without_two_windows_is_no_stretch():
    for lengths, expected in (
        ([3, 200], [{0}, set(range(8))]),
        ([40, 3, 40, 3], [{0, 1, 2}, {2}, {3, 4, 5}, {5}]),
    ):
        found, longest = folds_of(lengths, lag=5)
        assert [set(folds.tolist()) for folds in found] == expected
        assert longest > 1
    # nor one for which the shortest lag is too long
    found, longest = folds_of([40, 3, 40, 11], lag=5, shortest=5)
    assert [set(folds.tolist()) for folds in found][1::2] == [{2}, {5}]
    # nothing can be cut
    _, longest = folds_of([3, 3, 3])
    assert longest < 1


@pytest.mark.parametrize(
    ("n_rows", "lags", "expected"),
    [
        # no stretch is long enough for the longest; nor for others
        (300, [3, 6, 100], 8),
        (60, [5, 10], 5),
        (60, list(range(1, 11)), 5),
        (48, [2, 5], 8),
        # nothing is
        (300, [100], 5),
    ],
)
def test_it_is_cut_for_the_longest_lag_that_can_be(n_rows, lags, expected):
    starts = np.array([0, n_rows])
    folds = cut_for(starts, 8, lags)
    assert folds.max() + 1 == expected


def test_more_folds_than_rows():
    found, longest = folds_of([50], 10**30, lag=1)
    assert longest == 1 and len(np.unique(found[0])) == 12
