"""Scorers for model selection, which leave the initialisation out."""

import warnings

import numpy as np
from sklearn.metrics import r2_score
from sklearn.pipeline import Pipeline

from .._time_axis import outputs_alone
from ..exceptions import (
    DivergenceWarning,
    ExtrapolationWarning,
    MissingInputWarning,
)
from ._scores import simulation_rmse


def _max_lag(estimator):
    """``max_lag_`` of a fitted model, or of the last step of a pipeline."""
    model = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    return model.max_lag_


def _predict_silently(estimator, X, **arguments):
    with warnings.catch_warnings():
        # the score is that of a divergence; and where folds differ, it tells
        warnings.simplefilter("ignore", DivergenceWarning)
        warnings.simplefilter("ignore", ExtrapolationWarning)
        warnings.simplefilter("ignore", MissingInputWarning)
        return estimator.predict(X, **arguments)


def simulation_scorer(estimator, X, y):
    """Negative root mean squared error of the free run, for model selection.

    Starts from the first ``max_lag_`` rows without missing values, as ``predict`` with
    ``horizon=None`` does, and scores the rest.

    Parameters
    ----------
    estimator : dynamic regressor of this package, or Pipeline that ends in one
        A fitted model.
    X : array-like of shape (n_samples, n_inputs)
        Inputs of one record.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Measured outputs, NaN where missing.

    Returns
    -------
    score : float
        Greater is better; the average over outputs, minus infinity after a divergence.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
    >>> from skbayesnn import SparseBayesNARXRegressor
    >>> from skbayesnn.metrics import simulation_scorer
    >>> search = GridSearchCV(
    ...     SparseBayesNARXRegressor(),
    ...     {"reg_lambda": [1.0, 4.0]},
    ...     scoring=simulation_scorer,
    ...     cv=TimeSeriesSplit(3),
    ... )
    """
    predicted = _predict_silently(estimator, X, y=y, horizon=None)
    y, predicted = outputs_alone(y, "y"), outputs_alone(predicted, "y_pred")
    n_init = _n_before(predicted) + _max_lag(estimator)
    return -float(np.mean(simulation_rmse(y, predicted, n_initialization=n_init)))


def _n_before(predicted):
    """Number of rows before those from which a free run (n_rows, n_outputs) starts.

    Where a record begins with missing values, these are NaN, as is the end of a run
    that diverges, behind which nothing is predicted.
    """
    lost = np.isnan(predicted).any(axis=1)
    known = np.flatnonzero(~lost)
    before = np.flatnonzero(lost[: known[-1]]) if len(known) else []
    return int(before[-1]) + 1 if len(before) else 0


def one_step_scorer(estimator, X, y):
    """Coefficient of determination one step ahead, for model selection.

    Starts from the first ``max_lag_`` measured outputs and scores the rest.

    Parameters
    ----------
    estimator : dynamic regressor of this package, or Pipeline that ends in one
        A fitted model.
    X : array-like of shape (n_samples, n_inputs)
        Inputs of one record.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Measured outputs, NaN where missing.

    Returns
    -------
    score : float
        Greater is better, 1 is perfect.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score, TimeSeriesSplit
    >>> from skbayesnn import SparseBayesNARXRegressor
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> from skbayesnn.metrics import one_step_scorer
    >>> u, y = make_cascaded_tanks(300, return_X_y=True, random_state=0)
    >>> model = SparseBayesNARXRegressor(hidden_layer_sizes=(), random_state=0)
    >>> scores = cross_val_score(
    ...     model, u, y, scoring=one_step_scorer, cv=TimeSeriesSplit(3)
    ... )
    >>> bool((scores > 0.9).all())
    True
    """
    n_init = _max_lag(estimator)
    predicted = _predict_silently(estimator, X, y=y)
    y, predicted = outputs_alone(y, "y"), outputs_alone(predicted, "y_pred")
    rows = np.isfinite(predicted).all(axis=1) & np.isfinite(y).all(axis=1)
    rows[:n_init] = False
    return r2_score(y[rows], predicted[rows])
