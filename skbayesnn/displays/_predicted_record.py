"""Measured and predicted outputs of a record, in the form that displays draw."""

import warnings
from numbers import Integral
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import _validation as checks
from .._frames import check_names, column_names
from .._time_axis import (
    TimeAxis,
    outputs_alone,
    split_record,
    split_sessions,
    without_time,
)
from .._validation import as_columns
from ..exceptions import DivergenceWarning, MissingInputWarning
from ._estimators import final_model, output_names


class PredictedRecord(NamedTuple):
    """Measured outputs, their predictions, and where sessions start.

    y_true, y_pred : (n, n_outputs)
    y_std : (n, n_outputs), or None if not requested
    is_initial : (n,) bool, rows whose outputs the prediction was given
    starts : (n_sessions + 1,) int64, first row of every session, and n
    names : list of str, of the outputs
    time : TimeAxis, or None
    """

    y_true: np.ndarray
    y_pred: np.ndarray
    y_std: np.ndarray | None
    is_initial: np.ndarray
    starts: np.ndarray
    names: list
    time: TimeAxis | None


def initial_rows(starts, n_rows):
    """Mask of the rows that are among the first ``n_rows`` of their session."""
    first = np.repeat(starts[:-1], np.diff(starts))
    return np.arange(starts[-1]) - first < n_rows


def given_record(y_true, y_pred, y_std, n_initialization, sessions):
    """A record whose predictions are given, checked."""
    _, y_true, axis = split_record(None, y_true)
    y_pred, y_std = without_time(y_pred, "y_pred"), without_time(y_std, "y_std")
    names = column_names(y_true)
    for array, name in ((y_pred, "y_pred"), (y_std, "y_std")):
        # a series of another name holds predictions of the one that is measured
        if names is not None and np.ndim(y_true) == 2:
            check_names(array, names, name)
    y_true, y_pred = as_columns(y_true, "y_true"), as_columns(y_pred, "y_pred")
    others = [(y_pred, "y_pred")]
    if y_std is not None:
        y_std = as_columns(y_std, "y_std")
        others.append((y_std, "y_std"))
    for array, name in others:
        checks.check_lengths(y_true, array, "y_true", name)
        checks.check_n_outputs(y_true, array, "y_true", name)
    n_rows = len(y_true)
    checks.check_initialization(n_initialization, n_rows)
    starts = split_sessions(sessions, axis, n_rows)
    is_initial = initial_rows(starts, n_initialization)
    names = names or output_names(None, y_true.shape[1])
    return PredictedRecord(
        y_true, y_pred, y_std, is_initial, starts, names, _of_time(axis)
    )


def _of_time(axis):
    """The axis, if it tells more than numbers of rows."""
    return axis if axis is not None and axis.is_time else None


def predicted_record(
    estimator, X, y, *, horizon, sessions, return_std, y_init=None, n_init=None
):
    """The record and its prediction by a fitted estimator, lagged or static."""
    check_is_fitted(estimator)
    _, y_alone, axis = split_record(X, y)
    y_true = as_columns(y_alone, "y")
    starts = split_sessions(sessions, axis, len(y_true))
    n_known = getattr(final_model(estimator), "max_lag_", None)
    if y_init is not None or n_init is not None:
        y_init = _start_of_free_run(y_alone, y_init, n_init, n_known, horizon, starts)
        arguments, n_known = {"y_init": y_init}, len(y_init)
    elif n_known is None:
        arguments, n_known = {}, 0
    else:
        arguments = {"y": y, "horizon": horizon, "sessions": sessions}
    with warnings.catch_warnings():
        # the figure marks the rows without a prediction
        warnings.simplefilter("ignore", DivergenceWarning)
        warnings.simplefilter("ignore", MissingInputWarning)
        if return_std:
            y_pred, y_std = estimator.predict(X, **arguments, return_std=True)
            y_std = outputs_alone(y_std, "y_std")
        else:
            y_pred, y_std = estimator.predict(X, **arguments), None
    y_pred = outputs_alone(y_pred, "y_pred")
    names = output_names(final_model(estimator), y_true.shape[1])
    is_initial = initial_rows(starts, n_known)
    return PredictedRecord(
        y_true, y_pred, y_std, is_initial, starts, names, _of_time(axis)
    )


def _start_of_free_run(y, y_init, n_init, max_lag, horizon, starts):
    """Outputs that a free run of one session starts from, checked."""
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
        return y_init
    if not isinstance(n_init, Integral) or not 1 <= n_init <= starts[-1]:
        raise ValueError(
            f"n_init must be an integer from 1 to the number of rows, {starts[-1]}; "
            f"got {n_init!r}."
        )
    # a frame keeps the names of its columns
    return y[:n_init] if hasattr(y, "shape") else np.asarray(y)[:n_init]
