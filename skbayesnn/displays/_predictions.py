"""Predictions of a record as displays need them: shaped, and with their beginnings."""

import warnings
from numbers import Integral
from typing import NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .. import _validation as checks
from .._validation import session_starts


class Record(NamedTuple):
    """Predictions (n, n_outputs) of measured outputs; std is None unless asked for.

    is_initial : (n,) bool, rows that the prediction was given
    """

    y_true: np.ndarray
    y_pred: np.ndarray
    y_std: np.ndarray | None
    is_initial: np.ndarray
    starts: np.ndarray


def final_model(estimator):
    """The estimator, or the last step of a pipeline."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def members(estimator):
    """Fitted networks and their weights: those of a committee, or the one model."""
    check_is_fitted(estimator)
    model = final_model(estimator)
    networks = getattr(model, "estimators_", None)
    if networks is None:
        return [model], np.ones(1)
    return list(networks), np.asarray(model.estimator_weights_, dtype=np.float64)


def as_outputs(y, name):
    y = checks.check_outputs(y, name)
    return y.reshape(len(y), -1)


def initial_rows(starts, n_rows):
    """Whether a row is among the first ``n_rows`` of its session."""
    first = np.repeat(starts[:-1], np.diff(starts))
    return np.arange(starts[-1]) - first < n_rows


def given_record(y_true, y_pred, y_std, n_initialization, sessions):
    """A record predicted elsewhere, checked."""
    y_true, y_pred = as_outputs(y_true, "y_true"), as_outputs(y_pred, "y_pred")
    others = [(y_pred, "y_pred")]
    if y_std is not None:
        y_std = as_outputs(y_std, "y_std")
        others.append((y_std, "y_std"))
    for array, name in others:
        checks.check_lengths(y_true, array, "y_true", name)
        if array.shape != y_true.shape:
            raise ValueError(
                f"y_true and {name} must have as many outputs; got "
                f"{y_true.shape[1]} and {array.shape[1]}."
            )
    n_rows = len(y_true)
    if not 0 <= n_initialization < n_rows:
        raise ValueError(
            "n_initialization must be at least 0 and less than the number of rows, "
            f"{n_rows}; got {n_initialization}."
        )
    starts = session_starts(checks.check_sessions(sessions, n_rows), n_rows)
    is_initial = initial_rows(starts, n_initialization)
    return Record(y_true, y_pred, y_std, is_initial, starts)


def predicted_record(
    estimator, X, y, *, horizon, sessions, return_std, y_init=None, n_init=None
):
    """The record as a fitted estimator, lagged or static, predicts it."""
    check_is_fitted(estimator)
    y_true = as_outputs(y, "y")
    n_rows = len(y_true)
    starts = session_starts(checks.check_sessions(sessions, n_rows), n_rows)
    n_known = getattr(final_model(estimator), "max_lag_", None)
    if y_init is not None or n_init is not None:
        y_init = _start_of_free_run(y, y_init, n_init, n_known, horizon, starts)
        arguments, n_known = {"y_init": y_init}, len(y_init)
    elif n_known is None:
        arguments, n_known = {}, 0
    else:
        arguments = {"y": y, "horizon": horizon, "sessions": sessions}
    with warnings.catch_warnings():
        # the picture says it
        warnings.filterwarnings("ignore", "[0-9]+ predicted rows", RuntimeWarning)
        if return_std:
            y_pred, y_std = estimator.predict(X, **arguments, return_std=True)
            y_std = np.reshape(y_std, y_true.shape)
        else:
            y_pred, y_std = estimator.predict(X, **arguments), None
    y_pred = np.reshape(y_pred, y_true.shape)
    return Record(y_true, y_pred, y_std, initial_rows(starts, n_known), starts)


def _start_of_free_run(y, y_init, n_init, max_lag, horizon, starts):
    if max_lag is None:
        raise ValueError(
            "y_init and n_init start a free run; this estimator is static. Leave them "
            "out."
        )
    if y_init is not None and n_init is not None:
        raise ValueError("Pass y_init or n_init, not both.")
    if horizon is not None:
        raise ValueError(
            "y_init and n_init start a free run, which has horizon=None; got "
            f"horizon={horizon!r}."
        )
    if len(starts) > 2:
        raise ValueError(
            "y_init and n_init start one session, but sessions names "
            f"{len(starts) - 1}. Leave them out to start each from its own first rows."
        )
    if y_init is not None:
        return np.asarray(y_init)
    if not isinstance(n_init, Integral) or not 1 <= n_init <= starts[-1]:
        raise ValueError(
            f"n_init must be an integer from 1 to the number of rows, {starts[-1]}; "
            f"got {n_init!r}."
        )
    return np.asarray(y)[:n_init]


def describe_horizon(estimator, horizon):
    if getattr(final_model(estimator), "max_lag_", None) is None:
        return "prediction"
    if horizon is None:
        return "free run"
    return "one step ahead" if horizon == 1 else f"{horizon} steps ahead"


def output_names(n_outputs):
    return ["y"] if n_outputs == 1 else [f"y{k}" for k in range(n_outputs)]
