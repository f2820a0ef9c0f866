"""The rounds of a search one after the other: kinds, levels and differences, drift."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from search_cases import LIMITS, MODELS, searched_kinds, searched_outputs, times

from skbayesnn.sparse_bayes.search.candidates import Table
from skbayesnn.sparse_bayes.search.comparison import Comparison
from skbayesnn.sparse_bayes.search.members import close_to_best
from skbayesnn.sparse_bayes.search.rounds import run_rounds
from skbayesnn.sparse_bayes.search.search_space import OUTPUTS, SearchSpace


def test_both_kinds_are_tried_before_the_time_may_be_over():
    """Networks of all lags, with one strength, and hidden states; then the others."""
    calls = []

    def errors(candidate):
        calls.append(candidate)
        return {"linear": 0.5, "network": 0.1, "states": 0.4}[candidate.model]

    searched_kinds(errors)
    order = list(dict.fromkeys(c for c in calls if c.model != "linear"))
    (place,) = (k for k, c in enumerate(order) if c.model == "states")
    assert {c.lag for c in order[:place]} == {5, 10, 20}
    assert {c.reg_lambda for c in order[:place]} == {6.0}
    assert {c.reg_lambda for c in order[place + 1 :]} > {20.0}
    # on all of the stretches that compare them
    first = calls.index(order[place + 1])
    assert calls[:first].count(order[0]) == calls[:first].count(order[place]) == 3


@pytest.mark.parametrize(
    ("ratio", "expected"), [(0.5, True), (1.0, True), (1.39, True), (1.41, False)]
)
def test_differences_are_chosen_where_they_are_close(ratio, expected):
    table, asked = searched_outputs(
        lambda c: times(1.0 if c.model == "linear" else ratio)(c)
    )
    kept = close_to_best(table.comparable())
    assert {c.output for c in kept} == {"difference" if expected else "level"}
    assert {c.model for c in kept} <= {"network", "states"}
    # both are searched alike, and come into the last round where they are close
    for kind in MODELS:
        assert {c.output for c in asked if c.model == kind} == set(OUTPUTS)
    final = [c for c in table.comparable().best_first() if c.model == "network"]
    assert ({c.output for c in final} == set(OUTPUTS)) == (ratio >= 1.0)


@pytest.mark.parametrize("ratio", [0.7, 1.3])
@pytest.mark.parametrize(
    ("of_levels", "of_differences", "expected"),
    [(0.3, 0.0, "difference"), (0.0, 0.3, "level"), (0.3, 0.3, "difference")],
)
def test_what_drifts_less_is_chosen(ratio, of_levels, of_differences, expected):
    drifts = {"level": of_levels, "difference": of_differences}
    table = Table(8)

    def drift(candidate):
        assert np.isfinite(table.errors[candidate]).sum() >= 3
        return drifts[candidate.output]

    searched_outputs(times(ratio), kinds=MODELS[:2], drift=drift, table=table)
    assert set(table.drifts) == set(table.errors)
    kept = close_to_best(table.comparable())
    assert {c.output for c in kept} == {expected}
    error = times(ratio)(kept[0])
    assert_allclose(table.held_out(kept[0]), error)
    total = np.hypot(error, drifts[expected])
    assert_allclose(table.error(kept[0]), np.sqrt(error * total))


def test_of_one_output_the_candidate_that_drifts_less_is_chosen():
    table, _ = searched_outputs(times(1.0), drift=lambda c: 0.3 * (c.lag != 20))
    assert {c.lag for c in close_to_best(table.comparable())} == {20}


def test_drift_is_not_asked_for_where_differences_are_not_tried():
    def refuse(candidate):
        raise AssertionError(candidate)

    assert not searched_outputs(times(3.1), drift=refuse)[0].drifts
    assert not searched_outputs(times(0.1), outputs=("level",), drift=refuse)[0].drifts


@pytest.mark.parametrize("kinds", [MODELS, ("states",)])
def test_drift_is_compared_where_there_are_only_differences(kinds):
    options = {"kinds": kinds, "outputs": ("difference",)}
    table, _ = searched_outputs(times(1.0), drift=lambda c: 0.2, **options)
    assert (
        set(table.drifts) == set(table.errors) >= {table.comparable().best_first()[0]}
    )


def test_networks_may_be_of_levels_though_linear_models_are_not():

    def error(candidate):
        better = "level" if candidate.model == "network" else "difference"
        of_network = 1.0 if candidate.model == "network" else 1.1
        return of_network * (0.1 if candidate.output == better else 0.2)

    kept = close_to_best(searched_outputs(error, kinds=MODELS[:2])[0].comparable())
    assert {(c.model, c.output) for c in kept} == {("network", "level")}


def test_hidden_states_alone_are_told_by_linear_models_as_well():
    table, asked = searched_outputs(times(1.1), kinds=("states",))
    assert {c.model for c in table.errors} == {"states"}
    assert {c.model for c in asked} == {"states", "linear"}
    assert {c.output for c in close_to_best(table.comparable())} == {"difference"}
    table, _ = searched_outputs(times(3.1), kinds=("states",))
    assert {c.output for c in table.errors} == {"level"}


def test_a_short_search_ends_with_levels():
    """The time is over behind the first fit."""
    table = Table(8)

    def evaluate(pairs):
        if not table.errors:
            table.add(*pairs[0], 0.5)

    space = SearchSpace(LIMITS, kinds=MODELS, outputs=OUTPUTS)
    run_rounds(Comparison(table, evaluate), space)
    assert [c.output for c in close_to_best(table.comparable())] == ["level"]
