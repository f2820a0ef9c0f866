"""Fractions of the rows of a record that changes slowly."""

import numpy as np
from state_space_cases import slow_record

from skbayesnn.sparse_bayes.learning.dense_rows import choose_fraction, take_fraction


def test_the_fraction_is_the_largest_that_misses_little():
    _, Y = slow_record()
    # a line misses a sine of this period by (m pi / 400)^2 / 2 at most
    assert choose_fraction(Y, np.array([0, 4000])) == 4
    assert choose_fraction(slow_record(130.0)[1], np.array([0, 4000])) == 2
    assert choose_fraction(slow_record(40.0)[1], np.array([0, 4000])) == 1
    noise = np.random.default_rng(0).standard_normal(Y.shape)
    assert choose_fraction(Y + 0.01 * noise, np.array([0, 4000])) == 1
    Y[100] = np.nan
    assert choose_fraction(Y, np.array([0, 4000])) == 4


def test_inputs_are_averaged_within_sessions():
    U, Y = np.arange(11.0)[:, None], 10.0 * np.arange(11.0)[:, None]
    u, y, starts = take_fraction(U, Y, np.array([0, 7, 11]), 3)
    np.testing.assert_array_equal(u[:, 0], [1.0, 4.0, 6.0, 8.0, 10.0])
    np.testing.assert_array_equal(y[:, 0], [0.0, 30.0, 60.0, 70.0, 100.0])
    np.testing.assert_array_equal(starts, [0, 3, 5])
