"""Candidates of a search: their errors by stretch, and their names."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from search_cases import arx, network, table_of

from skbayesnn.sparse_bayes.search.candidates import Candidate, Table
from skbayesnn.sparse_bayes.search.members import close_to_best


def test_errors_are_cut_off():
    table = table_of({network(5): [np.inf, np.nan, 7.0, 0.0, 3.0]})
    assert_array_equal(table.errors[network(5)], [3.0, 3.0, 3.0, 0.0, 3.0])
    assert 0.0 < table.error(network(5)) < 0.1


def test_a_candidate_with_fewer_folds_is_not_chosen():
    """Unless the time was over before any had them all."""
    table = table_of({network(5): [1.0] * 5, network(9): [2.0] * 5})
    table.add(network(7), 0, 0.1)
    assert [c.lag for c in close_to_best(table.comparable())] == [5]
    table = Table(5)
    table.add(network(7), 0, 0.1)
    assert [c.lag for c in close_to_best(table.comparable())] == [7]


@pytest.mark.parametrize(("error", "lag"), [(0.5, 7), (0.9, 2)])
def test_networks_and_linear_models_are_compared_on_the_same_stretches(error, lag):
    """Linear models have been tried on all of them when the time is over."""
    table = table_of({arx(2): [0.8, 0.8, 0.1, 0.1, 0.1]})
    for fold in range(2):
        table.add(network(7), fold, error)
    table.add(network(9), 0, 0.1)
    comparable = table.comparable()
    assert [c.lag for c in close_to_best(comparable)] == [lag]
    assert np.isfinite(comparable.errors[arx(2)]).tolist() == [True] * 2 + [False] * 3
    # what was found stays as it is
    assert np.isfinite(table.errors[arx(2)]).all() and len(table.errors) == 3


def test_names_of_candidates():
    of_lags = Candidate("network", "simulation", 3, 6.0, False, output="difference")
    assert str(of_lags) == (
        "network of lags 1 to 3 for differences, reg_lambda 6 (free-run)"
    )
    kind = 4, "relu", 15, "difference"
    assert str(Candidate("states", "simulation", 0, 5.0, True, *kind)) == (
        "network of 4 hidden states for differences, relu, reg_lambda 5, "
        "up to 15 cycles (free-run)"
    )
