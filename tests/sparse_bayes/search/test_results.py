"""What a search tells of its choice."""

import numpy as np
import pytest

from skbayesnn.sparse_bayes.search.candidates import Candidate, Table
from skbayesnn.sparse_bayes.search.results import summarize, summary


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        ([0.1, 0.3, 0.2], ""),
        ([0.1, 0.57, 0.05], "; from 0.05 to 0.57 on single stretches"),
        # of those that were tried
        ([0.1, np.nan, 0.3], ""),
    ],
)
def test_an_error_that_depends_on_the_stretch_is_told(errors, told):
    table, candidate = Table(3), Candidate("network", "simulation", 2, 6.0, True)
    for fold, error in enumerate(errors):
        if np.isfinite(error):
            table.add(candidate, fold, error)
    references = {"mean": np.ones(3), "last value": np.ones(3)}
    results = summarize(table, [candidate], references)
    assert summary(results).endswith(f"(mean 1, last value 1){told}")


@pytest.mark.parametrize(
    ("drift", "told"),
    [
        (0.31, "; expect more in a new record, where fits drift apart by 0.31"),
        (0.1, ""),
        # where nothing integrates, it is not measured
        (None, ""),
    ],
)
def test_a_drift_that_exceeds_the_error_is_told(drift, told):
    table, candidate = Table(3), Candidate("network", "simulation", 2, 6.0, True)
    for fold in range(3):
        table.add(candidate, fold, 0.2)
    if drift is not None:
        table.drifts[candidate] = drift
    references = {"mean": np.ones(3), "last value": np.ones(3)}
    results = summarize(table, [candidate], references)
    assert summary(results).endswith(f"(mean 1, last value 1){told}")
