"""Errors on rows that fits did not see."""

import numpy as np
import pytest
from grids import first_by_default
from search_cases import dynamic, integrator, quietly, record, with_gaps

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.sparse_bayes.learning.session_parts import stretches
from skbayesnn.sparse_bayes.search import held_out_errors
from skbayesnn.sparse_bayes.search.cut_record import CutRecord
from skbayesnn.sparse_bayes.search.held_out_errors import error_against
from skbayesnn.sparse_bayes.training_record import TrainingRecord


@pytest.mark.parametrize("focus", ["prediction", "simulation"])
@pytest.mark.parametrize("output", ["level", "difference"])
def test_held_out_errors_are_in_standard_deviations_of_the_outputs(output, focus):
    # not of the steps of a model of differences
    u, y = integrator(200)
    starts = np.array([0, 200])
    given = TrainingRecord(u, y[:, None], starts, True, {})
    data = CutRecord(given, stretches(starts, 4))
    model = SparseBayesNARXRegressor(
        2, 2, output=output, hidden_layer_sizes=(), reg_lambda=0.0
    ).fit(u, y)
    start = model.max_lag_
    target = np.where((data.folds == 2)[:, None], data.Y, np.nan)
    free = model.predict(u, y_init=y[:start])
    predicted = free if focus == "simulation" else model.predict(u, y)
    expected = np.sqrt(np.mean((predicted - y)[data.folds == 2] ** 2)) / y.std()
    error = error_against(model, data, target, focus)
    assert error == pytest.approx(expected, rel=1e-6)
    assert error < 0.1


@pytest.mark.usefixtures("quick_states")
@pytest.mark.parametrize("focus", first_by_default(["simulation", "prediction"]))
def test_all_kinds_are_scored_on_the_same_rows(monkeypatch, focus):
    """What would be scored by some of the candidates alone does not count."""
    of_states, rows = held_out_errors._errors_of_states, []

    def of_kind(network, given, target, focus):
        rows.append(np.flatnonzero(np.isfinite(target).any(axis=1)))
        return of_states(network, given, target, focus)

    def of_lags(through):
        def scored(record, scaling, target):
            rows.append(np.flatnonzero(np.isfinite(target).any(axis=1)))
            return through(record, scaling, target)

        return scored

    monkeypatch.setattr(held_out_errors, "_errors_of_states", of_kind)
    for name in ("free_runs_through", "steps_through"):
        monkeypatch.setattr(
            held_out_errors, name, of_lags(getattr(held_out_errors, name))
        )
    quietly(dynamic(focus=focus), *with_gaps(record()))
    gaps = {*range(8), 30, *range(70, 79)}
    if focus == "prediction":
        # single steps need the rows directly before
        gaps |= {*range(30, 39)}
    folds = [set(range(75)) - gaps, set(range(75, 150)) - gaps]
    found = [set(one.tolist()) for one in rows]
    assert all(fold in found for fold in folds)
    assert all(one in folds or one == folds[0] | folds[1] for one in found)
