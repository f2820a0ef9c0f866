"""Runs that begin later than the fit did: they tell what was learned by heart."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.sparse_bayes.learning.later_starts import errors_of_later_starts
from skbayesnn.sparse_bayes.records.layout import Record
from skbayesnn.sparse_bayes.search.cut_record import CutRecord, output_variance
from skbayesnn.sparse_bayes.search.held_out_errors import (
    error_against,
    error_over_record,
)
from skbayesnn.sparse_bayes.training_record import TrainingRecord


def record(disturbance, n_rows=300):
    """Two lags of an input, and a random walk, which it says nothing of."""
    rng = np.random.default_rng(0)
    u = rng.standard_normal((n_rows, 1))
    y = np.convolve(u[:, 0], [0.0, 0.5, 0.3])[:n_rows]
    walk = np.cumsum(rng.standard_normal(n_rows))
    return u, y + disturbance * walk + 0.01 * rng.standard_normal(n_rows)


def fit(disturbance, focus="simulation"):
    """The model, and the texts of what was warned of."""
    model = SparseBayesNARXRegressor(
        10, 10, hidden_layer_sizes=8, focus=focus, max_cycles=40, random_state=0
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(*record(disturbance))
    texts = [str(one.message) for one in told if one.filename == __file__]
    return model, [text for text in texts if "begin where" in text]


def test_a_disturbance_that_was_learned_by_heart():
    """The run of the fit follows a random walk that the inputs say nothing of."""
    model, (said,) = fit(0.3)
    u, y = record(0.3)
    later = model.predict(u, y_init=y[:100])[100:] - y[100:]
    assert np.sqrt(np.mean(later**2)) > y.std() > 2 * model.history_["rmse"][-1]
    assert "Increase reg_lambda" in said


@pytest.mark.parametrize(
    ("disturbance", "focus"),
    [pytest.param(0, "simulation", marks=pytest.mark.slow), (0.3, "prediction")],
)
def test_what_follows_from_all_rows_is_not_told(disturbance, focus):
    _, told = fit(disturbance, focus)
    assert told == []


def test_errors_are_those_of_predictions():
    """From eighths of the first half of each session that is long enough."""
    u, y = record(0.1)
    model = SparseBayesNARXRegressor(2, 2, hidden_layer_sizes=(), random_state=0)
    starts = np.array([0, 200, 290, 300])
    model.fit(u, y, sessions=np.repeat([0, 1, 2], np.diff(starts)))
    fitted, lags = model._model.ensemble.members[0]
    given = Record(u, y[:, None], lags, starts)
    found = errors_of_later_starts(fitted.network, fitted.scaling, given, given.Y)
    begins = [25, 50, 75, 100, 211, 222, 233, 245]
    expected = []
    for begin, stop in zip(begins, [200] * 4 + [290] * 4, strict=True):
        run = model.predict(u[begin:stop], y_init=y[begin : begin + 2])
        expected.append(np.mean((run - y[begin:stop])[2:] ** 2))
    assert_allclose(np.ravel(found) * fitted.scaling.y_scale**2, expected, rtol=1e-6)


def test_a_search_judges_members_by_several_starts():
    """And by the rows that count, without those that are doubtful."""
    u, y = record(0.1)
    model = SparseBayesNARXRegressor(2, 2, hidden_layer_sizes=(), random_state=0)
    model.fit(u, y)
    rows, outputs = np.arange(300), y[:, None].copy()
    outputs[250] += 100.0
    given = TrainingRecord(u, outputs, np.array([0, 300]), True, {})
    data = CutRecord(given, rows // 60, rows < 280, (rows == 250)[:, None])
    errors = []
    for begin in [0, 37, 75, 112, 150]:
        run = model.predict(u[begin:], y_init=y[begin : begin + 2])
        scored = (rows < 280) & (rows != 250) & (rows >= begin + 2)
        errors.append(np.mean((run - y[begin:])[scored[begin:]] ** 2))
    expected = np.sqrt(np.mean(errors) / output_variance(data)[0])
    found = error_over_record(model, data, "simulation")
    assert found == pytest.approx(expected, rel=1e-6)
    assert found != error_against(model, data, outputs, "simulation")
    # a run that passes no row that counts tells nothing
    data = data._replace(scored=rows < 60)
    assert error_against(model, data, outputs, "simulation") < np.inf
    assert error_over_record(model, data, "simulation") < np.inf
    # single steps begin in every row
    found = error_over_record(model, data, "prediction")
    assert found == error_against(model, data, outputs, "prediction")
