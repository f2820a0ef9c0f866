"""Scorers: what they ask of an estimator, and what they do with its answer."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skbayesnn.exceptions import DivergenceWarning
from skbayesnn.metrics import one_step_scorer, simulation_scorer

N, MAX_LAG = 20, 3
X = np.zeros((N, 1))
Y = np.random.default_rng(0).normal(size=(N, 2))


class Lagged(RegressorMixin, BaseEstimator):
    """A fitted lagged model that predicts a given record, and may warn."""

    def __init__(self, y_pred, warning=None):
        self.y_pred = y_pred
        self.warning = warning
        self.max_lag_ = MAX_LAG

    def fit(self, X, y):
        return self

    def predict(self, X, y=None, *, y_init=None):
        if self.warning is not None:
            warnings.warn("something happened", self.warning, stacklevel=2)
        self.was_given = {"y": y, "y_init": y_init}
        return self.y_pred


def expected_rmse(y, y_pred):
    return np.mean(np.sqrt(np.mean((y - y_pred)[MAX_LAG:] ** 2, axis=0)))


@pytest.mark.parametrize("y", [Y, Y[:, 0]])
def test_simulation_starts_from_the_first_rows_and_scores_the_rest(y):
    model = Lagged(0.5 * y)
    score = simulation_scorer(model, X, y)
    assert score == pytest.approx(-expected_rmse(y, 0.5 * y))
    np.testing.assert_array_equal(model.was_given["y_init"], y[:MAX_LAG])
    assert model.was_given["y"] is None


@pytest.mark.parametrize("y", [Y, Y[:, 0]])
def test_one_step_scores_rows_that_are_measured_and_predicted(y):
    y_pred, measured = 0.5 * y, y.copy()
    y_pred[7], measured[9] = np.nan, np.nan
    model = Lagged(y_pred)
    rows = np.setdiff1d(np.arange(MAX_LAG, N), [7, 9])
    score = one_step_scorer(model, X, measured)
    assert score == pytest.approx(r2_score(y[rows], y_pred[rows]))
    assert model.was_given["y"] is measured


def test_a_pipeline_is_scored_like_its_last_step():
    model = Lagged(0.5 * Y)
    pipeline = make_pipeline(FunctionTransformer().fit(X), model)
    assert simulation_scorer(pipeline, X, Y) == simulation_scorer(model, X, Y)
    assert one_step_scorer(pipeline, X, Y) == one_step_scorer(model, X, Y)


def test_a_divergence_is_the_worst_score_and_no_warning():
    y_pred = 0.5 * Y
    y_pred[10:] = np.nan
    assert simulation_scorer(Lagged(y_pred, DivergenceWarning), X, Y) == -np.inf


@pytest.mark.parametrize("scorer", [simulation_scorer, one_step_scorer])
def test_only_divergences_are_silent(scorer):
    scorer(Lagged(0.5 * Y, DivergenceWarning), X, Y)
    with pytest.warns(RuntimeWarning, match="something happened"):
        scorer(Lagged(0.5 * Y, RuntimeWarning), X, Y)
