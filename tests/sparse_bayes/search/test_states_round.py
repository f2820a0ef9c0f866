"""The round of networks of hidden states: which of them are worth their fits."""

import numpy as np
import pytest
from search_cases import LIMITS, of_differences, searched_kinds, searched_outputs, times

from skbayesnn.sparse_bayes.search.search_space import Grid


def test_hidden_states_that_are_far_behind_are_tried_once():
    errors = {"linear": 0.5, "network": 0.1, "states": 0.4}
    table = searched_kinds(lambda candidate: errors[candidate.model])
    tried = [c for c in table.errors if c.model == "states"]
    assert [(c.n_states, c.activation) for c in tried] == [(4, "tanh")]
    assert np.isfinite(table.errors[tried[0]]).sum() == 3


def test_both_activations_are_tried_once():
    """Those that are too far behind with the first may be closer with the other."""

    def errors(candidate):
        if candidate.model != "states":
            return 0.1
        return {"tanh": 0.25, "relu": 0.16}[candidate.activation] / candidate.n_states

    def far(candidate):
        return errors(candidate) * (4.0 if candidate.model == "states" else 1.0)

    table = searched_kinds(far)
    tried = [c for c in table.errors if c.model == "states"]
    assert [c.activation for c in tried].count("tanh") == 1
    assert {c.activation for c in tried if c.n_states > 4} == {"relu"}
    table = searched_kinds(far, activations=("tanh",))
    assert len([c for c in table.errors if c.model == "states"]) == 1


def units_tried(errors, **options):
    """Numbers of units and states of the networks that are tried, in their order."""
    options = {"activations": ("tanh",), "units": Grid((8,), True), **options}
    tried = searched_kinds(errors, **options).errors
    return [(c.n_units, c.n_states) for c in tried if c.model == "states"]


@pytest.mark.parametrize("needed", [8, 4, 2, 1])
def test_units_are_halved_as_long_as_fewer_are_as_good(needed):
    def errors(candidate):
        if candidate.model != "states":
            return 0.1
        return 0.1 if candidate.n_units >= needed else 0.12

    found = units_tried(errors)
    least = max(needed // 2, 1)
    numbers = [n for n in (8, 4, 2, 1) if n >= least]
    assert list(dict.fromkeys(n for n, _ in found)) == numbers
    # each of them once, before all that follows, which has as many as are needed
    assert found[: len(numbers)] == [(n, 4) for n in numbers]
    assert {n for n, _ in found[len(numbers) :]} == {needed}


def test_units_that_are_given_stay():
    for given in (0, 3):
        found = units_tried(lambda candidate: 0.1, units=Grid((given,)))
        assert {n for n, _ in found} == {given}


def test_fewer_units_are_tried_with_the_better_activation():
    def errors(candidate):
        if candidate.model != "states":
            return 0.1
        return {"tanh": 0.1, "relu": 0.09}[candidate.activation]

    both = ("tanh", "relu")
    tried = searched_kinds(errors, activations=both, units=Grid((8,), True)).errors
    found = [(c.activation, c.n_units) for c in tried if c.model == "states"]
    assert found[:5] == [("tanh", 8), *(("relu", n) for n in (8, 4, 2, 1))]
    assert set(found[5:]) == {("relu", 1)}


@pytest.mark.parametrize("better", [15, 200])
def test_fits_until_the_end_are_tried_once(better):
    """And the grids go on with those that are better."""

    def errors(candidate):
        if candidate.model != "states":
            return 0.1
        return (0.1 if candidate.max_cycles == better else 0.11) / candidate.n_states

    tried = searched_kinds(
        errors, activations=("tanh",), states_cycles=(15, 200)
    ).errors
    found = [(c.n_states, c.max_cycles) for c in tried if c.model == "states"]
    assert found[:2] == [(4, 15), (4, 200)]
    assert {cycles for _, cycles in found[2:]} == {better}


def test_hidden_states_that_come_close_are_tried_with_more():
    by_states = {4: 0.1, 6: 0.08, 8: 0.05, 10: 0.047}

    def errors(candidate):
        if candidate.model != "states":
            return 0.1
        off = abs(np.log(candidate.reg_lambda / 1.667))
        off += candidate.activation == "tanh"
        return by_states[candidate.n_states] * (1.0 + 0.01 * off)

    table = searched_kinds(errors)
    tried = {c for c in table.errors if c.model == "states"}
    # the last step from 8 to 10 is too small, and none follows anyway
    assert {c.n_states for c in tried} == {4, 6, 8, 10}
    best = min(tried, key=table.error)
    assert best.n_states == 10 and best.reg_lambda == 1.667
    assert best.activation == "relu"
    # the best is tried on all stretches
    assert np.isfinite(table.errors[best]).sum() == 5
    small = searched_kinds(lambda c: 0.1)
    # a single step finds no gain
    assert {c.n_states for c in small.errors if c.model == "states"} == {4, 6}


@pytest.mark.parametrize("gain, most", [(1.01, 4), (1.05, 6)])
def test_more_states_that_gain_nothing_are_no_place_to_go_on_from(gain, most):
    """A step of two states is tried; other strengths are at the fewest that equal."""

    def errors(candidate):
        if candidate.model != "states":
            return 0.1
        by_strength = 1.0 if candidate.reg_lambda == 5.0 else 1.1
        return 0.1 * by_strength / (gain if candidate.n_states > 4 else 1.0)

    tried = searched_kinds(errors, activations=("tanh",)).errors
    found = [(c.n_states, c.reg_lambda) for c in tried if c.model == "states"]
    assert {n for n, _ in found} == {4, 6}
    assert max(n for n, strength in found if strength != 5.0) == most


@pytest.mark.parametrize("gain, cycles", [(1.01, 15), (1.05, 200)])
def test_more_cycles_that_gain_nothing_are_no_place_to_go_on_from(gain, cycles):
    """Other strengths, and more states, are tried with the cheaper of equal fits."""

    def errors(candidate):
        if candidate.model != "states":
            return 0.1
        return 0.1 / (gain if candidate.max_cycles > 15 else 1.0)

    options = dict(activations=("tanh",), states_cycles=(15, 200))
    tried = searched_kinds(errors, **options).errors
    states = [c for c in tried if c.model == "states"]
    assert {c.max_cycles for c in states if c.reg_lambda != 5.0} == {cycles}
    assert {c.max_cycles for c in states if c.n_states > 4} == {cycles}


def test_other_strengths_are_tried_with_the_best_number_of_states():
    """One that is found for too few is another for more."""

    def errors(candidate):
        if candidate.model != "states":
            return 0.1
        worse = 1.1 if candidate.reg_lambda > 5.0 else 1.05
        return (worse if candidate.reg_lambda != 5.0 else 1.0) * (
            0.1 if candidate.n_states < 8 else 0.08
        )

    def rising(candidate):
        return errors(candidate) * (1.5 if candidate.n_states == 4 else 1.0)

    def found(errors):
        tried = searched_kinds(errors, activations=("tanh",)).errors
        return [(c.n_states, c.reg_lambda) for c in tried if c.model == "states"]

    more = [(4, 5.0), (6, 5.0), (8, 5.0), (10, 5.0), (8, 15.0), (8, 1.667)]
    assert found(rising) == more
    # a step that gains nothing is the last one
    assert found(errors) == [(4, 5.0), (6, 5.0), (4, 15.0), (4, 1.667)]


def test_every_level_needs_a_state():
    two = LIMITS._replace(n_outputs=2)
    _, asked = searched_outputs(times(1.0), states=Grid((1, 3)), limits=two)
    states = {(c.n_states, c.output) for c in asked if c.model == "states"}
    assert states >= {(1, "level"), (3, "level"), (3, "difference")}
    assert (1, "difference") not in states
    _, asked = searched_outputs(times(1.0))
    assert {c.n_states for c in of_differences(asked) if c.model == "states"} >= {2, 4}
