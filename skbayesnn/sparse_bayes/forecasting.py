"""Forecasts: what follows on a record, with bands and possible paths."""

from numbers import Real

import numpy as np
from scipy.special import ndtri
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from .. import _validation as checks
from .._sklearn import on_one_blas_thread
from .._time_axis import (
    check_alone,
    check_continuation,
    split_record,
    split_time,
    times_after,
)
from .dynamic_predictor import draw_records, predict_query
from .queries import Query, check_inputs, check_outputs, make_record
from .record_end import end_for, last_window
from .records.missing_inputs import check_way, fill_missing
from .training_record import output_names


class ForecastMixin:
    """``forecast`` of estimators that hold a `DynamicModel` as ``_model``."""

    @on_one_blas_thread
    def forecast(
        self,
        n_steps=None,
        X_future=None,
        *,
        X_past=None,
        y_past=None,
        coverage=0.95,
        n_paths=0,
        random_state=0,
        fill_inputs=None,
    ):
        """Forecast the rows that follow the training record, or another one.

        The model runs freely from the last complete window of the record on; with
        hidden states, from the state that its last 2,000 rows tell.

        Parameters
        ----------
        n_steps : int, default=None
            How many rows; None for as many as ``X_future`` has.
        X_future : array-like of shape (n_steps, n_inputs), default=None
            Inputs of these rows: planned or assumed. None only for an autoregression.
        X_past : array-like of shape (n_past, n_inputs), default=None
            Inputs of another record to follow on, NaN where missing.
        y_past : array-like of shape (n_past,) or (n_past, n_outputs), default=None
            Its measured outputs, NaN where missing; at least ``max_lag_`` rows. None
            stands for the training record, whose last session is followed on.
        coverage : float, default=0.95
            Probability with which the band of a row shall hold its measured value.
        n_paths : int, default=0
            Number of possible records to draw, as ``sample_y`` draws them.
        random_state : int, RandomState instance or None, default=0
            Source of these draws.
        fill_inputs : {"hold", "interpolate"}, default=None
            What takes the place of a missing input, as in ``predict``.

        Returns
        -------
        forecast : :class:`~sklearn.utils.Bunch`
            Dictionary-like object, with the following attributes.

            y_pred : ndarray of shape (n_steps,) or (n_steps, n_outputs)
                Forecast of each row, in units of y.
            y_std : ndarray shaped like y_pred
                Its standard deviation: that of ``predict`` with ``y`` so many steps
                ahead of the record, times ``band_factor_`` if the model has it.
            lower, upper : ndarray shaped like y_pred
                Band of normal errors of the given coverage.
            paths : ndarray of shape (n_steps, n_paths) or (n_steps, n_outputs, n_paths)
                The draws.
            time : ndarray of shape (n_steps,) or None
                Time of each row, where that of the record is known; universal time, if
                it has a time zone. Months, quarters, years and working days go on by
                the calendar, if pandas finds one in the index or the column of times.

            After ``set_output`` all but paths and time are frames, with times in the
            time zone of the record.

        Raises
        ------
        ValueError
            For lengths that differ, inputs that are missing as an argument, a record
            without a complete window of ``max_lag_`` rows, and inputs of the future
            whose times do not follow on the record.

        Warns
        -----
        DivergenceWarning, ExtrapolationWarning, MissingInputWarning
            As ``predict`` does.
        SamplingWarning
            If there is a hole between the record and the inputs of the future.

        Examples
        --------
        >>> from skbayesnn import SparseBayesNARXRegressor
        >>> from skbayesnn.datasets import make_cascaded_tanks
        >>> u, y = make_cascaded_tanks(300, return_X_y=True, random_state=0)
        >>> model = SparseBayesNARXRegressor(hidden_layer_sizes=())
        >>> model = model.fit(u[:280], y[:280])
        >>> ahead = model.forecast(20, u[280:], n_paths=50)
        >>> ahead.y_pred.shape, ahead.paths.shape
        ((20,), (20, 50))
        """
        check_is_fitted(self)
        n_paths = checks.check_count(n_paths, "n_paths", 0)
        if not (isinstance(coverage, Real) and 0.0 < coverage < 1.0):
            raise ValueError(
                f"coverage must be a number between 0 and 1; got {coverage!r}."
            )
        check_way(fill_inputs)
        end, zone = self._model.end, getattr(self, "_time_zone", None)
        calendar = getattr(self, "_calendar", None)
        if y_past is not None:
            end, zone, calendar = _end_of_past(self, X_past, y_past)
        elif X_past is not None:
            raise ValueError("X_past needs y_past with as many rows; got y_past=None.")
        X_future, axis = split_time(X_future, "X_future")
        U = _future_inputs(self, n_steps, X_future)
        sampling_time = getattr(self, "sampling_time_", None)
        time = check_continuation(end.time, axis, sampling_time)
        if time is None:
            time = times_after(end.time, sampling_time, len(U), calendar, zone)
        else:
            zone = axis.zone
        query = _query_after(self, end, U, fill_inputs)
        mean, std = predict_query(self, query, np.inf, True)
        z = ndtri(0.5 + 0.5 * coverage)
        paths = np.empty((*mean.shape, 0))
        if n_paths:
            paths = draw_records(self, query, np.inf, n_paths, random_state)
        columns = dict(
            y_pred=mean, y_std=std, lower=mean - z * std, upper=mean + z * std
        )
        names = output_names(self, self._model.ensemble.n_outputs)
        for name, values in columns.items():
            columns[name] = self._returned_at(values, names, time, zone)
        return Bunch(**columns, paths=paths, time=time)


def _end_of_past(estimator, X, y):
    """The end of the record that is followed on, its time zone and calendar or None."""
    X, y, axis = split_record(X, y, ("X_past", "y_past"))
    Y = check_outputs(estimator, y, "y_past")
    if X is None and estimator.n_features_in_:
        raise ValueError(
            f"X_past must hold the {estimator.n_features_in_} inputs of the rows of "
            "y_past; got None."
        )
    U = np.empty((len(Y), 0)) if X is None else check_inputs(estimator, X, "X_past")
    checks.check_lengths(U, Y, "X_past", "y_past")
    check_alone(axis, getattr(estimator, "sampling_time_", None))
    time, zone, calendar = None, None, None
    if axis is not None and axis.is_time:
        time, zone, calendar = axis.stamps[-1], axis.zone, axis.calendar
    return end_for(estimator._model.ensemble, U, Y, time), zone, calendar


def _future_inputs(estimator, n_steps, X):
    """Inputs (n_steps, n_inputs) of the rows to forecast."""
    if n_steps is None and X is None:
        raise ValueError("Pass n_steps, or X_future, whose rows are forecast.")
    if n_steps is not None:
        n_steps = checks.check_count(n_steps, "n_steps", 1)
    if X is None:
        if estimator.n_features_in_:
            raise ValueError(
                f"X_future must hold the {estimator.n_features_in_} inputs of the rows "
                "to forecast, planned or assumed; got None."
            )
        return np.empty((n_steps, 0))
    U = check_inputs(estimator, X, "X_future")
    if n_steps is not None and len(U) != n_steps:
        raise ValueError(
            f"X_future must have n_steps={n_steps} rows; got {len(U)}. Leave n_steps "
            "out to forecast all of them."
        )
    return U


def _query_after(estimator, end, U, fill_inputs):
    """The record of the rows of the end, and those that are asked for behind them."""
    ensemble = estimator._model.ensemble
    n_before = n_known = len(end.U)
    U = np.concatenate([end.U, U])
    Y = np.concatenate([end.Y, np.full((len(U) - n_before, end.Y.shape[1]), np.nan)])
    U = fill_missing(U, np.array([0, len(U)]), fill_inputs)
    if not ensemble.has_states:
        max_lag = ensemble.max_lag
        first = last_window(U[:n_before], Y[:n_before], ensemble)
        if first is None:
            raise ValueError(
                f"The record has no max_lag_={max_lag} rows in turn with all inputs, "
                f"and with the last {ensemble.output_reach} outputs, from which a "
                "forecast could start. Pass a longer X_past and y_past, or fill_inputs "
                "if only inputs are missing."
            )
        n_known = first + max_lag
        if not ensemble.filters:
            # nothing but this window counts
            U, Y, n_known, n_before = U[first:], Y[first:], max_lag, n_before - first
    starts = np.array([0, len(U)])
    return Query(make_record(U, Y, starts), n_known, n_before, from_measured=True)
