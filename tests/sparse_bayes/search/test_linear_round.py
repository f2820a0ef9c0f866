"""The round of linear models: what is worth a network."""

import pytest
from search_cases import of_differences, searched_lags, searched_outputs, times


@pytest.mark.parametrize(
    ("gain", "expected"), [(0.9, False), (0.99, True), (1.03, True)]
)
def test_current_input_is_left_out_where_that_helps(gain, expected):
    """Linear models without it have so much of the error; networks follow."""

    def error(candidate):
        return 1.0 if candidate.current_input else gain

    table = searched_lags(error, current_input="auto")
    assert {c.model for c in table.errors} == {"linear", "network"}
    # the other linear models do not compete
    assert {c.current_input for c in table.errors} == {expected}
    given = searched_lags(error, current_input=not expected)
    assert {c.current_input for c in given.errors} == {not expected}


def test_differences_that_are_far_behind_cost_three_linear_fits():
    table, asked = searched_outputs(times(3.1))
    assert [c.model for c in of_differences(asked)] == ["linear"] * 3
    assert not of_differences(table.errors)
    assert not of_differences(searched_outputs(times(0.1), outputs=("level",))[1])
