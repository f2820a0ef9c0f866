"""Errors of several outputs, joined to one number."""

import numpy as np
from numpy.testing import assert_allclose

from skbayesnn.sparse_bayes.learning.output_errors import joint_error


def test_the_errors_of_all_outputs_as_one():
    """By factors: the hundredth part of one is worth as much as that of another."""
    squares, variance = np.array([4.0, 1e-8]), np.array([16.0, 1.0])
    assert joint_error(squares[:1], variance[:1]) == 0.5
    assert_allclose(joint_error(squares, variance), np.sqrt(0.5 * 1e-4))
    better = joint_error(squares * [1.0, 1e-4], variance)
    assert_allclose(better, joint_error(squares * [1e-4, 1.0], variance))
    # what does not change, or is not scored, does not count
    assert joint_error(squares, np.array([16.0, 0.0])) == 0.5
    assert joint_error(np.array([4.0, np.nan]), variance) == 0.5
    assert joint_error(np.array([4.0, np.inf]), variance) == np.inf
    assert np.isnan(joint_error(np.array([np.nan]), variance[:1]))
    assert joint_error(np.array([1.0, 0.0]), np.ones(2)) > 0.0
