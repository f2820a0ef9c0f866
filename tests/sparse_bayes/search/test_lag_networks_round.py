"""The round of networks of lags: how its grids go on."""

import numpy as np
import pytest
from search_cases import LONG, MODELS, searched_kinds, searched_lags, searched_outputs

from skbayesnn.sparse_bayes.search.members import close_to_best
from skbayesnn.sparse_bayes.search.search_space import Grid


@pytest.mark.parametrize("best", [0.7, 2.0, 6.0, 20.0, 60.0])
def test_strengths_go_on_where_the_end_is_the_best(best):
    table = searched_lags(lambda c: 1.0 + abs(np.log((c.reg_lambda or 0.01) / best)))
    (chosen,) = [c for c in close_to_best(table.comparable()) if c.lag == 5][:1]
    assert abs(np.log(chosen.reg_lambda / best)) < 0.1
    assert len({c.reg_lambda for c in table.errors}) <= 6
    given = searched_lags(
        lambda c: 1.0 / (1.0 + c.reg_lambda), strengths=Grid((3.0, 9.0))
    )
    assert {c.reg_lambda for c in given.errors} == {0.0, 3.0, 9.0}


def test_lags_go_on_where_the_longest_is_the_best():
    def falling(candidate):
        return candidate.lag**-0.2

    table = searched_lags(falling, LONG._replace(n_hidden=1, longest=100))
    lags = {c.lag for c in table.errors if c.model == "network"}
    # with 10 lags a linear model errs 1.504 times as much as with 77
    assert lags == {20, 32, 51, 82}
    assert max(c.lag for c in table.errors if c.model == "linear") == 77
    # where all are too short, the best of the linear ones
    table = searched_lags(lambda c: 1.0 / c.lag, LONG._replace(n_hidden=1, longest=100))
    lags = {c.lag for c in table.errors if c.model == "network"}
    assert lags == {77}
    # what networks of this size cannot afford is left to linear models
    table = searched_lags(falling, LONG._replace(rows=5000))
    lags = {c.lag for c in table.errors if c.model == "network"}
    assert max(lags) < 20
    given = searched_lags(falling, lags=Grid((3, 4)))
    assert {c.lag for c in given.errors} == {3, 4}


@pytest.mark.parametrize("n_outputs, longest", [(1, 10), (3, 5)])
def test_every_output_makes_a_fit_longer(n_outputs, longest):
    table = searched_lags(
        lambda c: c.lag**-0.2,
        LONG._replace(rows=2000, n_signals=4, n_outputs=n_outputs),
    )
    assert max(c.lag for c in table.errors if c.model == "network") == longest


def test_one_step_fits_get_all_strengths_where_they_are_best():
    both = ("simulation", "prediction")
    table = searched_lags(lambda c: 1.0 + (c.fitted_to != "prediction"), fitted_to=both)
    of_networks = [c for c in table.errors if c.model == "network"]
    strengths = {c.reg_lambda for c in of_networks if c.fitted_to == "prediction"}
    assert strengths >= {6.0, 20.0}
    table = searched_lags(lambda c: 1.0 + (c.fitted_to == "prediction"), fitted_to=both)
    of_networks = [c for c in table.errors if c.model == "network"]
    strengths = {c.reg_lambda for c in of_networks if c.fitted_to == "prediction"}
    assert strengths == {6.0}


def test_networks_of_lags_are_tried_on_three_stretches_however_bad():
    """What is far behind on the first may be ahead on the others."""
    table = searched_kinds(lambda c: 0.1 * c.lag if c.model == "network" else 0.1)
    of_lags = [c for c in table.errors if c.model == "network"]
    assert len({c.lag for c in of_lags}) > 1
    for candidate in of_lags:
        assert np.isfinite(table.errors[candidate]).sum() >= 3


def test_strengths_go_on_for_the_best_of_each_output():
    best = {"level": 60.0, "difference": 2.0}

    def error(candidate):
        off = abs(np.log((candidate.reg_lambda or 0.1) / best[candidate.output]))
        return 0.1 + 0.02 * off + 0.01 * (candidate.lag != 5)

    found = searched_outputs(error, kinds=MODELS[:2])[0].errors
    networks = {(c.output, c.reg_lambda) for c in found if c.model == "network"}
    assert networks >= set(best.items())
    assert ("difference", 60.0) not in networks and ("level", 2.0) not in networks
