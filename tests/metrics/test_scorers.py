"""Scorers: what they ask of an estimator, and what they do with its answer."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import TimeSeriesSplit, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skbayesnn import SparseBayesNARXRegressor, SparseBayesStateSpaceRegressor
from skbayesnn.datasets import make_cascaded_tanks
from skbayesnn.exceptions import DivergenceWarning
from skbayesnn.metrics import one_step_scorer, simulation_rmse, simulation_scorer

N, MAX_LAG = 20, 3
X = np.zeros((N, 1))
Y = np.random.default_rng(0).normal(size=(N, 2))
TANKS = make_cascaded_tanks(150, return_X_y=True, random_state=0)
SCORERS = pytest.mark.parametrize("scorer", [simulation_scorer, one_step_scorer])


class Lagged(RegressorMixin, BaseEstimator):
    """A fitted lagged model that predicts a given record, and may warn."""

    def __init__(self, y_pred, warning=None):
        self.y_pred = y_pred
        self.warning = warning
        self.max_lag_ = MAX_LAG

    def fit(self, X, y):
        return self

    def predict(self, X, y=None, *, horizon=1):
        if self.warning is not None:
            warnings.warn("something happened", self.warning, stacklevel=2)
        self.was_given = {"y": y, "horizon": horizon}
        return self.y_pred


def expected_rmse(y, y_pred):
    return np.mean(np.sqrt(np.mean((y - y_pred)[MAX_LAG:] ** 2, axis=0)))


@pytest.mark.parametrize("y", [Y, Y[:, 0]])
def test_simulation_starts_from_the_first_rows_and_scores_the_rest(y):
    model = Lagged(0.5 * y)
    score = simulation_scorer(model, X, y)
    assert score == pytest.approx(-expected_rmse(y, 0.5 * y))
    assert model.was_given["y"] is y and model.was_given["horizon"] is None


@pytest.mark.parametrize("y", [Y, Y[:, 0]])
def test_one_step_scores_rows_that_are_measured_and_predicted(y):
    y_pred, measured = 0.5 * y, y.copy()
    y_pred[7], measured[9] = np.nan, np.nan
    model = Lagged(y_pred)
    rows = np.setdiff1d(np.arange(MAX_LAG, N), [7, 9])
    score = one_step_scorer(model, X, measured)
    assert score == pytest.approx(r2_score(y[rows], y_pred[rows]))
    assert model.was_given["y"] is measured and model.was_given["horizon"] == 1


def test_a_pipeline_is_scored_like_its_last_step():
    model = Lagged(0.5 * Y)
    pipeline = make_pipeline(FunctionTransformer().fit(X), model)
    assert simulation_scorer(pipeline, X, Y) == simulation_scorer(model, X, Y)
    assert one_step_scorer(pipeline, X, Y) == one_step_scorer(model, X, Y)


def test_a_divergence_is_the_worst_score_and_no_warning():
    y_pred = 0.5 * Y
    y_pred[10:] = np.nan
    assert simulation_scorer(Lagged(y_pred, DivergenceWarning), X, Y) == -np.inf


@SCORERS
def test_only_divergences_are_silent(scorer):
    scorer(Lagged(0.5 * Y, DivergenceWarning), X, Y)
    with pytest.warns(RuntimeWarning, match="something happened"):
        scorer(Lagged(0.5 * Y, RuntimeWarning), X, Y)


def narx(*lags, **parameters):
    settings = dict(hidden_layer_sizes=(), max_cycles=5, random_state=0)
    return SparseBayesNARXRegressor(*lags, **settings, **parameters)


def fit(model, u, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(u, y)


@pytest.fixture(scope="module")
def tanks():
    return fit(narx(2, 2), *TANKS)


@pytest.mark.parametrize(
    "model, power",
    [
        (narx(2, 2), [1]),
        (narx(5, 1, n_estimators=2, focus="simulation"), [1]),
        (narx(1, 3), [1, 2]),
        (
            SparseBayesStateSpaceRegressor(
                2, hidden_layer_sizes=(), n_restarts=1, max_cycles=5, random_state=0
            ),
            [1],
        ),
    ],
)
def test_a_free_run_is_the_one_from_the_first_outputs(model, power):
    u, y = TANKS
    y = y if power == [1] else y[:, None] ** power
    model = fit(model, u, y)
    n_init = model.max_lag_
    free = model.predict(u, y_init=y[:n_init])
    rmse = simulation_rmse(y, free, n_initialization=n_init)
    assert simulation_scorer(model, u, y) == -float(np.mean(rmse))


@pytest.mark.parametrize("missing", [[0], [1], [1, 3, 5], [0, 60]])
def test_a_record_may_begin_with_missing_values(tanks, missing):
    u, y = TANKS[0], TANKS[1].copy()
    y[missing] = np.nan
    first = max(row for row in missing if row < 10) + 1
    expected = simulation_scorer(tanks, u[first:], y[first:])
    assert simulation_scorer(tanks, u, y) == pytest.approx(expected, rel=1e-9)
    assert one_step_scorer(tanks, u, y) > 0.9


def test_a_fold_that_begins_with_a_hole_has_a_score():
    u, y = TANKS[0], TANKS[1].copy()
    y[[50, 100]] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        scores = cross_validate(
            narx(2, 2), u, y, cv=TimeSeriesSplit(2), scoring=simulation_scorer
        )
    assert np.isfinite(scores["test_score"]).all()


def test_a_run_that_diverges_behind_missing_values_has_the_worst_score():
    y_pred, y = 0.5 * Y, Y.copy()
    y_pred[0], y[0], y_pred[10:] = np.nan, np.nan, np.nan
    assert simulation_scorer(Lagged(y_pred, DivergenceWarning), X, y) == -np.inf


@SCORERS
def test_a_model_without_lags_is_scored(scorer):
    model = fit(narx(0, 0), *TANKS)
    assert model.max_lag_ == 0
    expected = model.predict(*TANKS)
    if scorer is one_step_scorer:
        assert scorer(model, *TANKS) == r2_score(TANKS[1], expected)
    else:
        assert scorer(model, *TANKS) == -simulation_rmse(TANKS[1], expected)


@SCORERS
def test_a_column_of_times_is_no_output(scorer):
    u, y = TANKS
    time = pd.date_range("2024-05-01", periods=len(y), freq="4s")
    framed = pd.DataFrame({"time": time, "level": y})
    model = fit(narx(2, 2), u, framed)
    assert scorer(model, u, framed) == scorer(model, u, y)


@SCORERS
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_predictions_may_be_frames_with_times(scorer, library):
    u, y = TANKS
    times = np.datetime64("2024-05-01") + np.arange(len(y)) * np.timedelta64(4000, "ms")
    framed = pytest.importorskip(library).DataFrame({"time": times, "pump": u[:, 0]})
    model = fit(narx(2, 2), framed, y)
    expected = scorer(model, framed, y)
    assert scorer(model.set_output(predict=library), framed, y) == expected
