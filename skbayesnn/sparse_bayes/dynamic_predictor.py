"""What a fitted dynamic model predicts: checks of arguments, records, shapes.

A model on lags, or one with hidden states: what differs are the members of its
`prediction.ensemble.Ensemble`.
"""

import functools
import itertools
from numbers import Integral
from typing import NamedTuple

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from .. import _validation as checks
from .._random import draw_seed
from .._saved_state import SavedStateMixin, saved_as
from .._sklearn import DocumentationLinkMixin, on_one_blas_thread
from .._warnings import called_by_scorer, warn_caller
from ..exceptions import (
    DivergenceWarning,
    ExtrapolationWarning,
    MissingInputWarning,
    ScoringWarning,
)
from .attributes import copy_input_attributes
from .learning.result import Fit
from .prediction import ensemble as ensembles
from .prediction.bands import (
    Bands,
    bands_of,
    excess,
    excess_in_gaps,
    gaps_of,
    is_lost,
    widen,
    with_factor,
)
from .prediction.ensemble import Ensemble, LaggedNetwork
from .prediction.streaming import (
    StreamingPredictor,
    check_state,
    resume,
    state_after,
)
from .queries import fill_after_state, make_query, query_after_state, rows_before
from .record_end import RecordEnd, end_for
from .records.layout import typical_step
from .returned_frames import ReturnedFramesMixin
from .scaling import DIVERGENCE_LIMIT
from .training_record import input_names, output_names


@saved_as("DynamicModel")
class DynamicModel(NamedTuple):
    """A fitted model on lags, or with hidden states.

    u_mean, y_mean : (n_inputs,) and (n_outputs,) means of the training record
    step_variance : (n_outputs,) mean square of the steps from row to row
    single_output : whether y had one dimension in fit
    bands : what turns standard deviations into bands
    end : the last rows of the training record, behind which forecasts begin
    focus : "simulation" or "prediction", what the model was fitted for
    """

    ensemble: Ensemble
    u_mean: np.ndarray
    y_mean: np.ndarray
    step_variance: np.ndarray
    single_output: bool
    bands: Bands
    end: RecordEnd
    focus: str = "simulation"


def make_lagged_model(networks, weights, record, seen, single_output, end_time=None):
    """The model of learned networks, and what it keeps of its training record.

    ``seen`` is the part of the record to which the networks were fitted; ``end_time``
    the time of the last row.
    """
    U, Y, lags, starts = record
    members = tuple(LaggedNetwork(network.fitted, lags) for network in networks)
    given = U, Y, starts, seen.Y, single_output, end_time
    return _make_model(Ensemble(members, weights), *given, lags.difference)


def make_state_model(members, given, difference):
    """The model of `StateSpaceNetwork` members, which count alike.

    ``given`` is the `TrainingRecord`; ``difference`` tells whether the members say
    differences of the outputs.
    """
    weights = np.full(len(members), 1.0 / len(members))
    ensemble = Ensemble(tuple(members), weights)
    told = given.Y, given.single_output, given.end_time
    return _make_model(ensemble, given.U, given.Y, given.starts, *told, difference)


def _make_model(ensemble, U, Y, starts, seen, single_output, end_time, difference):
    last = slice(starts[-2], None)
    bands = bands_of(U, Y, difference)
    if not ensemble.is_linear:
        bands = bands._replace(gaps=gaps_of(U))
    return DynamicModel(
        ensemble=ensemble,
        u_mean=np.nanmean(U, axis=0) if U.shape[1] else np.zeros(0),
        y_mean=np.nanmean(Y, axis=0),
        step_variance=typical_step(seen, starts),
        single_output=single_output,
        bands=bands,
        end=end_for(ensemble, U[last], Y[last], end_time),
    )


def estimators_of(estimator, fit, model, *arguments):
    """Each network of an ensemble as an estimator of its own.

    ``arguments`` are those of the estimator's ``_store`` behind the fit and the model.
    """
    parameters = estimator.get_params(deep=False)
    parameters |= {"n_estimators": 1, "n_restarts": 1}
    estimators = []
    for network, member in zip(fit.networks, model.ensemble.members, strict=True):
        one = type(estimator)(**parameters)
        copy_input_attributes(estimator, one)
        alone = Fit((network,), int(network.diverged), fit.interrupted)
        single = model._replace(ensemble=Ensemble((member,), np.ones(1)))
        one._store(alone, single, *arguments)
        estimators.append(one)
    return estimators


class DynamicPredictorMixin(
    ReturnedFramesMixin, DocumentationLinkMixin, SavedStateMixin
):
    """Predictions of estimators that hold a `DynamicModel` as ``_model``."""

    # Metadata routing takes no argument named y for metadata, unless it is requested
    # here; pipelines pass it on to `predict` then.
    __metadata_request__predict = {"y": True}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @on_one_blas_thread
    def predict(
        self,
        X,
        y=None,
        *,
        horizon=1,
        y_init=None,
        X_init=None,
        sessions=None,
        return_std=False,
        state=None,
        return_state=False,
        fill_inputs=None,
    ):
        """Predict a record ahead, or simulate it in free run.

        With ``y``, row t is predicted from the measured rows up to t - ``horizon``.
        Without, the model runs freely: its own outputs take the place of measured
        ones, from ``y_init`` on.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs) or None
            Inputs. None only for an autoregression together with ``y``; to simulate
            an autoregression for n rows pass an array of shape (n, 0).
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Measured outputs, NaN where missing.
        horizon : int or None, default=1
            Steps ahead. None with ``y`` is free run from the first ``max_lag_`` rows
            of each session that hold no missing value; of the rows before, the first
            ``max_lag_`` are returned as measured, and the others are NaN. More than 1
            needs ``y``.
        y_init : array-like of shape (n_init,) or (n_init, n_outputs), default=None
            Measured outputs from which the free run starts. Without ``X_init`` they
            belong to the first rows of ``X``, and these rows are returned as given;
            where they are fewer than ``max_lag_``, the outputs before the record are
            estimated from them, with the inputs there at their first value. With
            ``X_init`` they precede ``X``, at least ``max_lag_`` rows.
            Without ``y_init`` the run starts as if inputs and outputs had been at
            their training means before the first row. Of a model with hidden states,
            they tell the state from which the run starts: any number of rows, with NaN
            where an output is missing, which is predicted then; without them the run
            starts at the mean state of the training record.
        X_init : array-like of shape (n_init, n_inputs), default=None
            Inputs of the rows before ``X``, one per row of ``y_init``.
        sessions : array-like of shape (n_samples,) or "infer", default=None
            The record each row belongs to, as in ``fit``; every record starts anew.
        return_std : bool, default=False
            Return standard deviations of new observations as well. They combine
            the posterior of the weights (delta method) and the noise of every step
            since the last measured output, linearised around the predicted path; with
            hidden states, that of the state at the start as well.
            Where an input of the window is outside the range of the training record, or
            a free run is, they grow with the distance; likewise where an input lies
            between two values, more than half of its range apart, between which the
            record holds none (not of models that were asked to be linear).
        state : SimulationState, StateEstimate or EnsembleState, default=None
            Where an earlier free run stopped; ``X`` holds the rows that follow. The
            predictions are those of one run through all rows.
        return_state : bool, default=False
            Return the state after the last row of a free run as well. It does not hold
            what standard deviations need, so it excludes ``return_std``.
        fill_inputs : {"hold", "interpolate"}, default=None
            What takes the place of a missing input: the last value before it, or a
            straight line between the values around it, which looks into the future.
            None leaves it missing.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            One value per row, in units of y; a frame only after ``set_output``. With
            ``y``, the first ``max_lag_`` rows of each session cannot be predicted and
            are returned as measured (standard deviation 0); the next rows are predicted
            from the first complete window, so over fewer than ``horizon`` steps where
            that is nearer. A row whose window holds a missing value is NaN; in free run
            every row after a missing input is, unless ``fill_inputs`` says what takes
            its place. The window of a model with hidden states are the inputs of the
            ``max_lag_`` rows before: missing outputs do not matter to it. From the row
            on in which a free run diverges (more than 100 standard deviations of the
            training record off, or not finite), it is NaN. With
            ``output="difference"`` that is asked of its steps.
        y_std : ndarray shaped like y_pred
            Only if ``return_std=True``.
        state_after : SimulationState, StateEstimate or EnsembleState
            Only if ``return_state=True``; the second of a model with hidden states, the
            third of an ensemble of both kinds.

        Raises
        ------
        ValueError
            For lengths that differ, a ``y_init`` longer than the record or, with
            ``X_init``, shorter than ``max_lag_``, arguments that contradict each other,
            outputs with other names or in another order than in ``fit``, and times
            that are missing, repeated, not in order, or not the same in X and y, or in
            ``y_init`` and the rows where it belongs.

        Warns
        -----
        DivergenceWarning
            If predictions diverged, with their number.
        ExtrapolationWarning
            If an input is outside the range of the training record, or in such a gap of
            it, by more than a tenth of this range; or, if none is, where a free run is
            so far outside the range of an output that what is unknown exceeds its
            standard deviation.
        MissingInputWarning
            If a free run ends because an input is missing, with its row; or if an input
            is missing so near to the start of a run that hidden states are not told by
            the rows behind it.
        ScoringWarning
            If one of scikit-learn's scorers calls it, which has no measured outputs.
        SamplingWarning
            For holes in time, a sampling time other than ``sampling_time_``, and an
            index of pandas that does not count up.
        """
        check_is_fitted(self)
        model = self._model
        if y is None and y_init is None and state is None and called_by_scorer():
            warn_caller(
                "A scorer of scikit-learn asks for a prediction of X alone: a free run "
                "from the training means, whose first rows count as well. That is not "
                f"what score of this {type(self).__name__} measures. Leave out "
                "scoring, or pass simulation_scorer or one_step_scorer of "
                "skbayesnn.metrics.",
                ScoringWarning,
            )
        with_state = state is not None or return_state
        if with_state:
            _check_state_arguments(y, horizon, sessions, return_std)
        if state is None:
            query = make_query(
                self, X, y, horizon, y_init, X_init, sessions, fill_inputs
            )
        else:
            query = query_after_state(self, X, y, y_init, X_init)
            query = fill_after_state(query, state, fill_inputs)
        names = output_names(self, model.ensemble.n_outputs)
        if with_state:
            forecast, state = _run_on(model.ensemble, query, state)
            _warn_of_rows(self, query, forecast, True)
            mean = _shape_like_y(model, query, forecast.mean)
            mean = self._returned(mean, names, X, y)
            return (mean, state) if return_state else mean
        mean, std = predict_query(self, query, _steps(y, horizon), return_std)
        mean = self._returned(mean, names, X, y)
        return (mean, self._returned(std, names, X, y)) if return_std else mean

    def stream(self, X_init=None, y_init=None, *, state=None):
        """Predict row by row, for use inside a controller.

        Parameters
        ----------
        X_init : array-like of shape (n_init, n_inputs), default=None
            Inputs of the rows before the first step, one per row of ``y_init``.
        y_init : array-like of shape (n_init,) or (n_init, n_outputs), default=None
            Measured outputs of these rows, at least ``max_lag_`` (any number for hidden
            states). Without them, inputs and outputs are taken to have been at their
            training means, or the hidden states at theirs.
        state : SimulationState, StateEstimate or EnsembleState, default=None
            Where an earlier free run stopped, instead of ``X_init`` and ``y_init``.

        Returns
        -------
        stream : StreamingPredictor
            Its ``step(u)`` predicts a row; ``update(y)`` tells it what was measured.

        Raises
        ------
        ValueError
            For ``state`` beside ``X_init`` or ``y_init``, for one of these without the
            other, for too few rows, and for missing outputs that lags read.

        Warns
        -----
        MissingInputWarning
            If an input is missing in the last rows of ``X_init``, and hidden states are
            not told by the rows behind it.
        """
        check_is_fitted(self)
        model = self._model
        if state is None:
            U, Y = rows_before(self, X_init, y_init)
            _warn_of_lost_start(self, U)
            state = state_after(model.ensemble, U, Y)
        elif X_init is not None or y_init is not None:
            raise ValueError(
                "state holds the rows before the first step: pass it, or X_init and "
                "y_init."
            )
        return StreamingPredictor(
            model.ensemble,
            state,
            single_output=model.single_output,
            input_names=getattr(self, "feature_names_in_", None),
            output_names=getattr(self, "output_names_", None),
        )

    @on_one_blas_thread
    def sample_y(
        self,
        X,
        y=None,
        *,
        horizon=1,
        y_init=None,
        X_init=None,
        sessions=None,
        n_samples=100,
        random_state=0,
        fill_inputs=None,
    ):
        """Draw new records from the posterior predictive distribution.

        Each draw has weights of its own, the same in all its rows; the network is
        linear in their deviations from the mode, as their posterior has it. With
        ``focus="prediction"`` every step adds noise, and noise and deviations are fed
        back through the nonlinear network, unlike in ``predict(...,
        return_std=True)``. With ``focus="simulation"`` the noise belongs to the
        measurement and is not fed back, and the whole path is linear in the weights:
        the draws then have the mean and the standard deviation that ``predict`` gives.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_inputs) or None
            Inputs, as in ``predict``.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs), default=None
            Measured outputs. Without them the draws are free runs.
        horizon : int or None, default=1
            Steps ahead, as in ``predict``. Row t of every draw is drawn given
            the measured rows up to t - ``horizon``.
        y_init : array-like of shape (n_init,) or (n_init, n_outputs), default=None
            Measured outputs from which the free runs start.
        X_init : array-like of shape (n_init, n_inputs), default=None
            Inputs of the rows before ``X``, one per row of ``y_init``.
        sessions : array-like of shape (n_rows,) or "infer", default=None
            The record each row belongs to, as in ``predict``.
        n_samples : int, default=100
            Number of draws. Those of an ensemble come from its members in proportion to
            ``estimator_weights_``, in random order.
        random_state : int, RandomState instance or None, default=0
            Source of the draws.
        fill_inputs : {"hold", "interpolate"}, default=None
            What takes the place of a missing input, as in ``predict``.

        Returns
        -------
        y : ndarray of shape (n_rows, n_samples)
            The draws, in units of y; (n_rows, n_outputs, n_samples) when y had two
            dimensions in fit. Rows that ``predict`` returns as measured, or as NaN
            because a value is missing, are so in all draws. A draw that diverges is
            NaN from there on.

        Raises
        ------
        ValueError
            As ``predict`` does, and for ``n_samples`` below 1.

        Warns
        -----
        DivergenceWarning
            If draws diverged, with their number. What is computed from the others alone
            is too narrow.

        Examples
        --------
        >>> import numpy as np
        >>> from skbayesnn import SparseBayesNARXRegressor
        >>> from skbayesnn.datasets import make_cascaded_tanks
        >>> u, y = make_cascaded_tanks(300, return_X_y=True, random_state=0)
        >>> model = SparseBayesNARXRegressor(hidden_layer_sizes=()).fit(u, y)
        >>> draws = model.sample_y(u, y_init=y[:2], n_samples=200)
        >>> lower, upper = np.quantile(draws, [0.05, 0.95], axis=1)
        """
        check_is_fitted(self)
        if not (isinstance(n_samples, Integral) and n_samples >= 1):
            raise ValueError(
                f"n_samples must be a positive integer; got {n_samples!r}."
            )
        query = make_query(self, X, y, horizon, y_init, X_init, sessions, fill_inputs)
        return draw_records(self, query, _steps(y, horizon), n_samples, random_state)

    @on_one_blas_thread
    def score(
        self,
        X,
        y,
        sample_weight=None,
        *,
        sessions=None,
        horizon="auto",
        fill_inputs=None,
    ):
        r"""Coefficient of determination beyond the initialisation.

        This is what cross-validation measures by default: one step ahead of measured
        outputs, or for ``focus="simulation"`` and for hidden states a free run from the
        first ones of each fold. scikit-learn's scorers by name, such as
        ``scoring="r2"``, know ``X`` alone; what they would measure is a free run from
        the training means, and they warn. ``cross_val_predict`` gives such runs. Use
        :func:`~skbayesnn.metrics.simulation_scorer` and
        :func:`~skbayesnn.metrics.one_step_scorer` in their place.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs) or None
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Measured outputs. The first ``max_lag_`` rows of each session start the
            prediction and are not scored, nor are rows with a missing value in their
            window, nor those of a free run behind a missing input.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in the score.
        sessions : array-like of shape (n_samples,) or "infer", default=None
            The record each row belongs to, as in ``predict``.
        horizon : int, None or "auto", default="auto"
            Steps ahead; None scores the free run from the first ``max_lag_`` measured
            outputs. "auto" scores what the model was fitted for: one step, or the
            free run with ``focus="simulation"`` and with hidden states.
        fill_inputs : {"hold", "interpolate"}, default=None
            What takes the place of a missing input, as in ``predict``.

        Returns
        -------
        score : float
            :math:`R^2`, averaged over outputs; minus infinity if a prediction
            diverged.

        Raises
        ------
        ValueError
            If no row can be scored, and as ``predict``.
        """
        check_is_fitted(self)
        if y is None:
            raise ValueError(
                "y must hold the measured outputs with which predictions are compared; "
                "got None."
            )
        if isinstance(horizon, str) and horizon == "auto":
            horizon = None if self._model.focus == "simulation" else 1
        ensemble = self._model.ensemble
        query = make_query(self, X, y, horizon, None, None, sessions, fill_inputs)
        steps = _steps(y, horizon)
        forecast = ensembles.forecast(
            ensemble, query.record, query.n_known, steps, False
        )
        if forecast.n_diverged:
            return -np.inf
        rows = _scored_rows(ensemble, query.record)
        # a free run ends where an input is missing
        rows = rows[np.isfinite(forecast.mean[rows]).all(axis=1)]
        if not len(rows):
            raise ValueError(
                "y holds no row to score: an input is missing before the first of "
                f"them, or no session has max_lag_={ensemble.max_lag} complete rows "
                "one behind the other, from which a run could begin."
            )
        Y = query.record.Y
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight)
            checks.check_lengths(sample_weight, Y, "sample_weight", "y")
            sample_weight = sample_weight[rows]
        return r2_score(Y[rows], forecast.mean[rows], sample_weight=sample_weight)


def _steps(y, horizon):
    """Steps ahead, infinite for a free run; no more than there are rows."""
    return np.inf if y is None or horizon is None else min(horizon, len(y))


def predict_query(estimator, query, steps, return_std):
    """Predictions of a query and their standard deviations, or None, shaped like y."""
    model = estimator._model
    arguments = query.record, query.n_known, steps, return_std, query.from_measured
    forecast = ensembles.forecast(model.ensemble, *arguments)
    _warn_of_rows(estimator, query, forecast, steps == np.inf)
    mean = _shape_like_y(model, query, forecast.mean)
    if not return_std:
        return mean, None
    return mean, _shape_like_y(model, query, _bands(model, query, forecast, steps))


def draw_records(estimator, query, steps, n_samples, random_state):
    """Draws of a query, the last axis of the result."""
    model = estimator._model
    arguments = n_samples, draw_seed(random_state), query.from_measured
    drawn, n_diverged = ensembles.draws(
        model.ensemble, query.record, query.n_known, steps, *arguments
    )
    if steps == np.inf and (model.bands.factor != 1.0).any():
        drawn = _as_wide_as_bands(model, query, drawn)
    if n_diverged:
        warn_caller(
            f"{n_diverged} of {n_samples} draws diverged (beyond "
            f"{DIVERGENCE_LIMIT:.0f} standard deviations of the "
            "training record) and are NaN from there on.",
            DivergenceWarning,
        )
    elif steps == np.inf:
        _warn_of_missing_inputs(estimator, query, drawn.mean(axis=2))
    if steps == np.inf:
        _warn_of_lost_starts(estimator, query)
    # a draw may leave the range of outputs by noise: only the mean run tells
    _warn_of_extrapolation(estimator, query)
    return _shape_like_y(model, query, drawn)


def _as_wide_as_bands(model, query, drawn):
    """Draws (n_rows, n_outputs, n_samples) of free runs, with the factor of bands."""
    arguments = query.record, query.n_known, np.inf, True, query.from_measured
    forecast = ensembles.forecast(model.ensemble, *arguments)
    mean, std = forecast.mean[:, :, None], forecast.std
    with np.errstate(over="ignore", invalid="ignore"):
        wide = with_factor(model.bands, forecast, _as_read(model, query.record))
        factor = wide / np.where(std > 0.0, std, 1.0)
    # a run that is 1e200 off is uncertain by infinity
    factor = np.where(np.isfinite(factor), factor, model.bands.factor)
    return mean + factor[:, :, None] * (drawn - mean)


def _bands(model, query, forecast, steps):
    """Standard deviations with what the bands add to them."""
    ensemble, record = model.ensemble, query.record
    scale = ensemble.members[0].fitted.scaling.y_scale
    arguments = _as_read(model, record), ensemble.max_lag, steps == np.inf, scale
    return widen(model.bands, forecast, *arguments)


def _as_read(model, record):
    """The record without inputs that are no regressors: none is out of its range."""
    U = np.where(model.ensemble.reads_input, record.U, np.nan)
    return record._replace(U=U)


def _warn_of_rows(estimator, query, forecast, is_free_run):
    """Warn of rows without a prediction, and of those that are extrapolated."""
    run = None
    if forecast.n_diverged:
        warn_caller(
            f"{forecast.n_diverged} predicted rows diverged (beyond "
            f"{DIVERGENCE_LIMIT:.0f} standard deviations of the "
            "training record) and are NaN.",
            DivergenceWarning,
        )
    elif is_free_run:
        run = forecast.mean
        _warn_of_missing_inputs(estimator, query, run)
    if is_free_run:
        _warn_of_lost_starts(estimator, query)
    _warn_of_extrapolation(estimator, query, run)


def _warn_of_extrapolation(estimator, query, run=None):
    """Warn of the first input that leaves the range of the training record.

    If none does, of the first one within a gap of it; and if there is none either, of
    the first output of which a free ``run`` (n_rows, n_outputs) says nothing any more.
    """
    model = estimator._model
    bands, scaling = model.bands, model.ensemble.members[0].fitted.scaling
    low, high = bands.low_inputs, bands.high_inputs
    inputs = _as_read(model, query.record).U
    out = _rows_of_user(query, excess(inputs, low, high) > 0.0)
    in_gap = _rows_of_user(query, excess_in_gaps(bands, inputs) > 0.0)
    if not out.any() and in_gap.any():
        _warn_of_gap(bands, input_names(estimator), in_gap)
        return
    if out.any():
        names, kind, far = input_names(estimator), "Input", "outside"
        signals = inputs, low, high
    elif run is not None:
        out = _rows_of_user(query, is_lost(bands, run, scaling.y_scale))
        names = output_names(estimator, run.shape[1])
        kind, far = "The run of output", "far outside"
        signals = run, bands.low_outputs, bands.high_outputs
    if not out.any():
        return
    k = int(np.flatnonzero(out.any(axis=0))[0])
    values, low, high = (of_all[..., k] for of_all in signals)
    rows, values = out[:, k], _rows_of_user(query, values)
    found = np.nanmin(values), np.nanmax(values)
    low, high, *found = _distinct_texts(low, high, *found)
    warn_caller(
        f"{kind} {names[k]} is {far} the range of the training record, {low} to "
        f"{high}, in {np.count_nonzero(rows)} rows, the first of them row "
        f"{rows.argmax()}: found {found[0]} to {found[1]}. "
        "The model extrapolates there, and is fitted to nothing that says how well.",
        ExtrapolationWarning,
    )


def _warn_of_gap(bands, names, in_gap):
    """Warn of the first input between two values that are far apart in its record."""
    k = int(np.flatnonzero(in_gap.any(axis=0))[0])
    rows = in_gap[:, k]
    low, high = _distinct_texts(*bands.gaps[k])
    warn_caller(
        f"Input {names[k]} is between {low} and {high} in {np.count_nonzero(rows)} "
        f"rows, the first of them row {rows.argmax()}. The training record has no "
        "value between these two, so nothing says how well the model interpolates "
        "there. Fit a record whose input takes more levels.",
        ExtrapolationWarning,
    )


def _distinct_texts(*numbers):
    """The numbers with as many digits as tell how they differ, four at least."""
    numbers = np.array(numbers, dtype=np.float64)
    least = 0.1 * np.diff(np.unique(numbers)).min(initial=np.inf)
    for n_digits in range(4, 18):
        texts = [f"{number:.{n_digits}g}" for number in numbers]
        if (np.abs(np.array(texts, dtype=np.float64) - numbers) <= least).all():
            break
    return texts


def _warn_of_missing_inputs(estimator, query, mean):
    """Warn of the first input for lack of which a free run ends."""
    lost = _rows_of_user(query, np.isnan(mean).any(axis=1))
    everywhere = np.isnan(query.record.U)
    if not (lost.any() and everywhere.any()):
        return
    missing = _rows_of_user(query, everywhere)
    if missing.any():
        row = int(missing.any(axis=1).argmax())
        signal, place = missing[row].argmax(), f"in row {row}"
    else:
        signal, place = everywhere.any(axis=0).argmax(), "before the first row"
    warn_caller(
        f"Input {input_names(estimator)[int(signal)]} is missing {place}, and "
        f"{everywhere.any(axis=1).sum()} rows lack an input: a free run cannot go on, "
        f"{lost.sum()} rows are NaN, the first of them row {lost.argmax()}. Pass "
        "fill_inputs='hold' or 'interpolate', or measured outputs and a horizon.",
        MissingInputWarning,
    )


def _warn_of_lost_starts(estimator, query):
    """Warn of the first session whose hidden states few rows tell at the start."""
    record = query.record
    for start, stop in itertools.pairwise(record.starts):
        U = record.U[start : min(start + query.n_known, stop)]
        if _warn_of_lost_start(estimator, U):
            return


def _warn_of_lost_start(estimator, U):
    """Warn if a missing input leaves few rows (n_known, n_inputs) that tell a state.

    Returns whether there was something to warn of.
    """
    ensemble = estimator._model.ensemble
    rows = np.flatnonzero(np.isnan(U).any(axis=1))
    if not (len(rows) and ensemble.filters):
        return False
    n_left = len(U) - 1 - rows[-1]
    if n_left >= ensemble.max_lag:
        return False
    signal = int(np.isnan(U[rows[-1]]).argmax())
    warn_caller(
        f"Input {input_names(estimator)[signal]} is missing in row {rows[-1]} of the "
        f"{len(U)} rows whose outputs are known. Hidden states begin anew behind it: "
        f"{n_left} rows tell them, and max_lag_={ensemble.max_lag} should. Pass "
        "fill_inputs='hold' or 'interpolate', or rows with all inputs.",
        MissingInputWarning,
    )
    return True


def _rows_of_user(query, values):
    """Without the rows before each session."""
    keep = np.ones(len(values), dtype=bool)
    for start in query.record.starts[:-1]:
        keep[start : start + query.n_before] = False
    return values[keep]


def _shape_like_y(model, query, values):
    """Without the rows before each session, and flat for a single output."""
    values = _rows_of_user(query, values)
    return values[:, 0] if model.single_output else values


def _scored_rows(ensemble, record):
    """Rows whose window is complete for all members."""
    U, Y, _, starts = record
    complete = [member.rows_to_score(U, Y, starts) for member in ensemble.members]
    rows = functools.reduce(np.intersect1d, complete)
    if not len(rows):
        raise ValueError(
            f"y holds no row to score: the first max_lag_={ensemble.max_lag} rows of "
            f"each session start the prediction; got {len(Y)} rows in "
            f"{len(starts) - 1} sessions."
        )
    return rows


def _check_state_arguments(y, horizon, sessions, return_std):
    if sessions is not None:
        raise ValueError(
            "state and return_state belong to one record and exclude sessions: predict "
            "the records one by one."
        )
    if return_std:
        raise ValueError(
            "return_std excludes state and return_state: a state does not "
            "hold the covariances that standard deviations need."
        )
    if y is not None and horizon is not None:
        raise ValueError(
            "A state is that of a free run: pass y_init instead of y, or y with "
            "horizon=None; `stream` steps ahead of measured outputs."
        )


def _run_on(ensemble, query, state):
    """Free run behind a state, or behind the known rows, and the state after it."""
    U, Y, _, starts = query.record
    # rows before the last start are those from which no run could begin
    start = starts[-2]
    begin = min(start + query.n_known, len(Y))
    head = query.record._replace(
        U=U[:begin], Y=Y[:begin], starts=np.append(starts[:-1], begin)
    )
    before = ensembles.forecast(ensemble, head, query.n_known, np.inf, False).mean
    if state is None:
        state = state_after(ensemble, U[start:begin], Y[start:begin])
    state = check_state(ensemble, state)
    forecast, state = resume(ensemble, state, U[begin:])
    return forecast._replace(mean=np.concatenate([before, forecast.mean])), state
