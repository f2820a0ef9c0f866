"""Candidates that are tried on more and more stretches, and how far they drift."""

import numpy as np
import pytest
from search_cases import comparison_of, searched_table, space_of_kinds

from skbayesnn.sparse_bayes.search.candidates import Candidate

RIVAL = Candidate("states", "simulation", 0, 5.0, True, 4, "tanh", 15)


@pytest.mark.parametrize("measures_drift", [False, True])
@pytest.mark.parametrize(
    ("changed", "ratio", "n_stretches"),
    [
        ({"activation": "relu"}, 1.8, 1),
        ({"reg_lambda": 15.0, "n_states": 6}, 1.8, 1),
        ({"reg_lambda": 15.0, "n_states": 6}, 1.7, 3),
        # fits until the end take longer, and have to be as good
        ({"max_cycles": 200}, 1.03, 1),
        ({"max_cycles": 200}, 1.01, 3),
    ],
)
def test_those_behind_on_the_first_stretch_are_not_tried_on_others(
    changed, ratio, n_stretches, measures_drift
):
    other = RIVAL._replace(**changed)
    comparison = comparison_of(lambda one: 0.1 if one == RIVAL else 0.1 * ratio)
    # one fit does not show how far a candidate drifts
    comparison.measures_drift = measures_drift
    comparison.try_hopeful([RIVAL, other], [RIVAL])
    errors, n_tried = comparison.table.errors, 3 if measures_drift else n_stretches
    assert np.isfinite(errors[RIVAL]).sum() == 3
    tried = np.flatnonzero(np.isfinite(errors[other]))
    assert list(tried) == sorted(comparison.all_folds[:n_tried])


def test_what_one_fit_drifts_is_not_known():
    """It is taken for that of linear models, which are tried on more stretches."""

    def drift(candidate):
        if candidate.model != "linear":
            return np.nan
        return candidate.lag + (10.0 if candidate.output == "difference" else 0.0)

    space = space_of_kinds(outputs=("level", "difference"))
    drifts = searched_table(lambda c: 0.1, space, drift=drift).drifts
    for output, least in (("level", 1.0), ("difference", 11.0)):
        found = [
            d for c, d in drifts.items() if c[0] != "linear" and c.output == output
        ]
        assert found and set(found) == {least}
