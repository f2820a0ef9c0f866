"""Errors that are alike from row to row tell as much as fewer independent ones."""

import numpy as np
import pytest

from skbayesnn.sparse_bayes.learning.independent_errors import independent_errors


def coloured(n, correlation, seed=0):
    """Errors (n,) of which neighbours have this correlation."""
    errors = np.random.default_rng(seed).normal(size=n)
    errors[1:] *= np.sqrt(1.0 - correlation**2)
    for k in range(1, n):
        errors[k] += correlation * errors[k - 1]
    return errors


def test_independent_errors_count_nearly_as_they_are():
    of_variance, of_mean = independent_errors([coloured(2000, 0.0)])
    assert 1300 < of_variance < 1700
    assert of_mean == pytest.approx(2000, rel=0.1)


@pytest.mark.parametrize("r", [0.5, 0.9])
def test_alike_errors_count_as_the_sums_over_their_correlations_say(r):
    """Of correlations r^j these are geometric. Those of the squares are cautious."""
    of_variance, of_mean = independent_errors([coloured(20_000, r)])
    exact = 20_000 * (1 - r**2) / (1 + r**2)
    assert 0.4 * exact < of_variance < exact
    assert of_mean == pytest.approx(20_000 * (1 - r) / (1 + r), rel=0.2)


def test_errors_of_all_runs_count_and_missing_ones_do_not():
    whole = coloured(4000, 0.7)
    of_whole = independent_errors([whole])[1]
    assert independent_errors(np.split(whole, 4))[1] == pytest.approx(of_whole, rel=0.1)
    whole[1000:2000] = np.nan
    assert independent_errors([whole])[1] == pytest.approx(0.75 * of_whole, rel=0.1)


def test_nothing_to_tell_from():
    assert independent_errors([]) is None
    assert independent_errors([np.zeros(5), np.full(3, np.nan)]) is None
