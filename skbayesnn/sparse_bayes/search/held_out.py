"""Fits that do not see a stretch of the record, and their errors there."""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError
from sklearn.exceptions import ConvergenceWarning

from ... import _validation as checks
from ..learning.later_starts import errors_of_later_starts
from ..learning.output_errors import joint_error, mean_squared_errors, mean_squares
from ..learning.problem import CONSTANT_OUTPUT, Start
from ..learning.result import Fit
from ..learning.runs_to_score import free_runs_through, steps_through
from ..narx import SparseBayesNARXRegressor
from ..prediction.ensemble import LaggedNetwork
from ..prediction.hidden_states import StateSpaceNetwork
from ..records.lags import is_complete, n_complete_before
from ..records.layout import Record
from ..state_space_network import SparseBayesStateSpaceRegressor
from ..training_record import TrainingRecord
from .candidates import Candidate
from .stretches import numbered

# Starts whose error over the whole record is so many times that of the best start
# ended in a worse optimum.
SETTLED = 1.5
# Where hardly any start ends in the best optimum, which one does is a matter of chance,
# and so is its error in a new record: the median of a few is safer.
N_SETTLED = 3
# Cycles of the last stage of a fit that is only scored. All candidates get the same
# number; a fit that would go on is neither preferred nor rejected for it.
SCORED_CYCLES = 15
# Least squares need no more.
LINEAR_CYCLES = 5


class Task(NamedTuple):
    """One fit: of a candidate from one start, and the fold that it does not see.

    A fit to the whole record may go on from the one that did not see the fold
    ``goes_on_from``.
    """

    candidate: Candidate
    seed: int
    fold: int | None
    goes_on_from: int | None = None

    @property
    def name(self):
        """Of its stage in a checkpoint."""
        parts = (*self.candidate, *self[1:])
        return " ".join(map(str, parts)).replace(".", ",")


class Score(NamedTuple):
    """A fit that did not see a fold.

    error : there, in standard deviations of the outputs
    network : LaggedNetwork or StateSpaceNetwork, None if the fit failed
    seen : the error on the rows that it was fitted to; 0 for linear models, which have
        one optimum
    start : of a fit that goes on from there; None for networks of lags
    """

    error: float
    network: LaggedNetwork | StateSpaceNetwork | None
    seen: float = 0.0
    start: Start | None = None


class Settings(NamedTuple):
    """Parameters that all fits take over from the search.

    focus : errors that are compared
    lags, states : dict of parameters of networks of lags and of hidden states
    input_names : by which dead times are told
    longest_outputs : lags of outputs, however long those of inputs are, see
        `longest_between_gaps`
    """

    focus: str
    lags: dict
    states: dict
    input_names: tuple = ()
    longest_outputs: float = np.inf


class Data(NamedTuple):
    """The record of a fit, and the stretches that are held out of it.

    given : TrainingRecord
    folds : (n_rows,) number of the fold of each row
    scored : (n_rows,) bool, rows whose errors count, see `rows_for_all`; None for all
        rows that a model can predict, of hidden states across gaps as well
    doubtful : (n_rows, n_outputs) bool, outputs that free runs may start from, but that
        are neither fitted nor scored; None for none
    """

    given: TrainingRecord
    folds: np.ndarray
    scored: np.ndarray | None = None
    doubtful: np.ndarray | None = None

    @property
    def U(self):
        return self.given.U

    @property
    def Y(self):
        return self.given.Y

    @property
    def starts(self):
        return self.given.starts

    def without_doubtful(self, Y):
        """Outputs (n_rows, n_outputs), NaN where they are doubtful."""
        return Y if self.doubtful is None else np.where(self.doubtful, np.nan, Y)

    def that_counts(self, Y):
        """The same, and NaN in rows whose errors do not count."""
        Y = self.without_doubtful(Y)
        return Y if self.scored is None else np.where(self.scored[:, None], Y, np.nan)

    def seen(self, hidden=False):
        """The `TrainingRecord` of a fit, without outputs that are hidden from it."""
        Y = self.without_doubtful(self.Y)
        return self.given._replace(Y=np.where(hidden, np.nan, Y))

    def thinned(self, n_rows):
        """The first rows of every stretch, about ``n_rows``, each its own session."""
        if len(self.Y) <= n_rows:
            return self
        block = numbered(self.starts, self.folds)
        first = np.flatnonzero(np.diff(block, prepend=-1))
        behind = np.arange(len(block))
        behind -= np.repeat(first, np.diff(np.append(first, len(block))))
        rows = np.flatnonzero(behind < -(-n_rows // len(first)))
        given = self.given._replace(
            U=self.U[rows],
            Y=self.Y[rows],
            starts=checks.session_starts(block[rows], len(rows)),
        )
        doubtful = None if self.doubtful is None else self.doubtful[rows]
        return Data(given, self.folds[rows], doubtful=doubtful)


def rows_for_all(data, n_before, focus):
    """The data, where errors count only in rows that models of all kinds can predict.

    Lags need a complete window, hidden states some rows that tell them: ``n_before``
    rows without a missing value. A single step needs them before each row, a free run
    before its first row alone, from where it goes on until an input is missing. These
    are fewer where half of the measured rows of a stretch would not be left.
    """
    measured = _predictable(data, 0, focus)
    n_measured = np.bincount(data.folds[measured], minlength=1)
    # bound: halved down to no row
    while n_before:
        scored = _predictable(data, n_before, focus)
        left = np.bincount(data.folds[scored], minlength=len(n_measured))
        if (2 * left >= n_measured).all():
            return data._replace(scored=scored)
        n_before //= 2
    return data._replace(scored=measured)


def _predictable(data, n_before, focus):
    """Measured rows that a prediction behind ``n_before`` complete ones reaches."""
    U, Y, starts = data.U, data.Y, data.starts
    if focus != "simulation":
        return is_complete(U, Y) & (n_complete_before(U, Y, starts) >= n_before)
    known, _, has_begun = _runs(U, Y, starts, n_before)
    return known & np.isfinite(Y).any(axis=1) & has_begun


def _runs(U, Y, starts, n_before):
    """Free runs that begin behind ``n_before`` complete rows, and end without inputs.

    Returns
    -------
    known : (n_rows,) bool, whether all inputs are
    stretch : (n_rows,) first row of the stretch of known inputs that each row is in
    has_begun : (n_rows,) bool, whether a run has begun in it by then
    """
    rows, known = np.arange(len(Y)), is_complete(U, Y[:, :0])
    stretch = rows - n_complete_before(U, Y[:, :0], starts)
    may_begin = known & (n_complete_before(U, Y, starts) >= n_before)
    last_begin = np.maximum.accumulate(np.where(may_begin, rows, -1))
    return known, stretch, last_begin >= stretch


def check_windows(data, lags):
    """Refuse a record on which no model of ``lags``, or "auto", can be tried."""
    if not has_windows(data, lags):
        lag = _shortest(lags)
        raise ValueError(
            f"X and y hold too few complete windows of {lag + 1} rows without a "
            "missing value for models of lags. Those with hidden states pass over "
            "missing outputs: SparseBayesStateSpaceRegressor, or a "
            "DynamicSystemRegressor with 'states' among its kinds; or fill the gaps."
        )


def has_windows(data, lags):
    """Whether two folds at least hold a row without a gap in the shortest lag."""
    before = n_complete_before(data.U, data.Y, data.starts)
    rows = is_complete(data.U, data.Y) & (before >= _shortest(lags))
    return len(np.unique(data.folds[rows])) > 1


def _shortest(lags):
    return 1 if isinstance(lags, str) else lags[0]


def fit_or_score(task, settings, data, sample, start=None):
    """A model of a sample, or the `Score` of a fit that did not see a fold.

    The fit sees a ``sample`` of the record; its free run passes through all of it.
    A fit to the whole record goes on from a ``start``, if there is one.
    """
    candidate, seed, fold, _ = task
    model = make_model(candidate, seed, settings)
    if fold is None:
        options = {} if start is None else {"start": start}
        return _fit(model, sample.seen(), **options)
    least_squares = candidate.model == "linear" and candidate.reg_lambda == 0.0
    enough = LINEAR_CYCLES if least_squares else SCORED_CYCLES
    # how long hidden states are fitted is a part of what is chosen
    enough = candidate.max_cycles or enough
    model.set_params(max_cycles=min(model.max_cycles, enough))
    seen = sample.seen(hidden=(sample.folds == fold)[:, None])
    try:
        checks.check_any_value(seen.Y, "y")
        _fit(model, seen)
    except (ValueError, FloatingPointError, LinAlgError):
        # nothing is left without the fold, or nothing that it could be fitted to
        return Score(np.inf, None)
    target = np.where((data.folds == fold)[:, None], data.Y, np.nan)
    score = Score(
        error_against(model, data, target, settings.focus),
        model._model.ensemble.members[0],
    )
    if candidate.model != "linear":
        of_seen = error_against(model, sample, seen.Y, settings.focus)
        score = score._replace(seen=of_seen)
    if candidate.model == "states":
        score = score._replace(start=model._learned.start)
    return score


def to_store(result):
    """What a checkpoint keeps of a result of `fit_or_score`."""
    if isinstance(result, Score):
        return result
    n_diverged = int(result.history_["n_diverged_starts"])
    return Fit((result._learned,), n_diverged, False)


def restored(stored, task, settings, sample):
    """The result of `fit_or_score` from what `to_store` has made of it."""
    if isinstance(stored, Score):
        return stored
    model = make_model(task.candidate, task.seed, settings)
    return _fit(model, sample.seen(), fit=stored)


def make_model(candidate, seed, settings):
    """The estimator that a candidate stands for."""
    if candidate.model == "states":
        return SparseBayesStateSpaceRegressor(
            candidate.n_states,
            output=candidate.output,
            reg_lambda=candidate.reg_lambda,
            activation=candidate.activation,
            max_cycles=candidate.max_cycles,
            random_state=seed,
            **settings.states,
        )
    parameters = dict(settings.lags)
    parameters["focus"] = candidate.fitted_to
    if candidate.model == "linear":
        parameters["hidden_layer_sizes"] = ()
    return SparseBayesNARXRegressor(
        candidate.input_lags(settings.input_names),
        min(candidate.lag, settings.longest_outputs),
        include_current_input=candidate.current_input,
        output=candidate.output,
        reg_lambda=candidate.reg_lambda,
        selection="evidence",
        random_state=seed,
        **parameters,
    )


def _fit(model, given, **earlier):
    with warnings.catch_warnings():
        # the error, or the ensemble, says it
        warnings.simplefilter("ignore", ConvergenceWarning)
        # as the search does, once
        warnings.filterwarnings("ignore", CONSTANT_OUTPUT, UserWarning)
        return model._learn(given, **earlier)


def error_against(model, data, target, focus):
    """The `joint_error` of the outputs, where ``target`` is not NaN.

    Of free runs through the record, or of single steps for ``focus="prediction"``.
    """
    network = model._model.ensemble.members[0]
    target = data.that_counts(target)
    if isinstance(network, StateSpaceNetwork):
        squared = _errors_of_states(network, data, target, focus)
        return joint_error(squared, output_variance(data))
    fitted, lags = network
    record = Record(data.U, data.Y, lags, data.starts)
    through = free_runs_through if focus == "simulation" else steps_through
    scored = through(record, fitted.scaling, target)
    squared = mean_squared_errors(fitted.network, scored)
    # scaled variables are in units of the steps for a model of differences
    return joint_error(squared * fitted.scaling.y_scale**2, output_variance(data))


def error_over_record(model, data, focus):
    """The same against the outputs that were fitted, of runs from several starts.

    What has learned a disturbance by heart errs little where its run begins as in the
    fit, and more from other rows.
    """
    error = error_against(model, data, data.Y, focus)
    network = model._model.ensemble.members[0]
    if focus != "simulation" or isinstance(network, StateSpaceNetwork):
        return error
    (network, scaling), lags = network.fitted[:2], network.lags
    record, target = Record(data.U, data.Y, lags, data.starts), data.that_counts(data.Y)
    later = errors_of_later_starts(network, scaling, record, target)
    variance = output_variance(data) / scaling.y_scale**2
    errors = [error, *(joint_error(one, variance) for one in later)]
    return float(np.sqrt(np.nanmean(np.square(errors))))


def _errors_of_states(network, data, target, focus):
    """Mean squared errors (n_outputs,) of hidden states, as `mean_squared_errors`.

    The first rows of each record tell the state there, and are not scored. A free run
    begins anew where inputs are missing, as those of lags do, if it is compared with
    these, and behind as many complete rows; so does a filter.
    """
    record, horizon = Record(data.U, data.Y, None, data.starts), 1
    if focus == "simulation":
        horizon = np.inf
        if data.scored is not None:
            record, target = _between_gaps(record, target, network.max_lag)
    found = network.forecast(record, network.max_lag, horizon, False)
    scored = np.isfinite(target)
    scored &= (rows_behind(record.starts) >= network.max_lag)[:, None]
    # a filter that has begun anew is told its state
    scored &= np.isfinite(found.mean)
    errors = np.where(scored, found.mean - target, 0.0)
    if found.n_diverged or not scored.any():
        return np.full(target.shape[1], np.inf)
    sums = np.einsum("ij,ij->j", errors, errors)
    return mean_squares(sums, np.count_nonzero(scored, axis=0))


def _between_gaps(record, target, n_known):
    """Records without a missing input, as far as one of their rows is scored.

    Each begins with ``n_known`` complete rows. Also their targets.
    """
    U, Y, starts = record.U, record.Y, record.starts
    known, stretch, has_begun = _runs(U, Y, starts, n_known)
    last = np.searchsorted(stretch, stretch, side="right") - 1
    behind = np.minimum(np.arange(len(Y)) + n_known, last)
    scored = known & np.isfinite(target).any(axis=1)
    kept = known & has_begun[behind]
    kept &= np.bincount(stretch, scored)[stretch] > 0.0
    starts = np.flatnonzero(np.diff(stretch[kept], prepend=-1))
    starts = np.append(starts, np.count_nonzero(kept))
    return Record(U[kept], Y[kept], None, starts), target[kept]


def rows_behind(starts):
    """Number of the rows before each in its session."""
    return np.arange(starts[-1]) - np.repeat(starts[:-1], np.diff(starts))


def output_variance(data):
    """Variance of the outputs (n_outputs,), by those that are not held to be wrong.

    0 of those that do not change, which are not judged; 1 if there are no others.
    """
    variance = np.nanvar(data.without_doubtful(data.Y), axis=0)
    return variance if variance.any() else np.ones_like(variance)


def output_deviation(data):
    """Standard deviations (n_outputs,) of the outputs; 1 where these do not change."""
    variance = output_variance(data)
    return np.sqrt(np.where(variance > 0.0, variance, 1.0))


def settled(models, n_wanted, data, focus):
    """Fits of one candidate, without those that ended in a clearly worse optimum.

    At most ``n_wanted``, and if these are as many, at least the best `N_SETTLED`. The
    order stays: the least error over the record that was fitted may be that of the
    start that fits its noise best.
    """
    if len(models) < 2:
        return models[:n_wanted]
    errors = np.array([error_over_record(model, data, focus) for model in models])
    limit = SETTLED * errors.min()
    if n_wanted >= N_SETTLED:
        limit = max(limit, np.sort(errors)[:N_SETTLED][-1])
    good = [m for m, error in zip(models, errors, strict=True) if error <= limit]
    return (good or models)[:n_wanted]


def reference_errors(data, focus):
    """Errors, in standard deviations of the outputs, of what needs no model.

    The mean of the rows outside a stretch, and the last value: that of the row
    before, or in free run that before the stretch.

    Returns
    -------
    errors : dict of str to (n_folds,) array, NaN for stretches without an output
    """
    n_folds = int(data.folds.max()) + 1
    variance = output_variance(data)
    errors = {"mean": np.full(n_folds, np.nan), "last value": np.full(n_folds, np.nan)}
    for fold in range(n_folds):
        held_out = data.folds == fold
        outside = data.Y[~held_out]
        judged = held_out if data.scored is None else held_out & data.scored
        if np.isfinite(outside).any():
            mean = np.nanmean(outside, axis=0)
            errors["mean"][fold] = _joint_error(data.Y[judged] - mean, variance)
        last = _last_values(data, held_out if focus == "simulation" else None)
        difference = data.Y[judged] - last[judged]
        errors["last value"][fold] = _joint_error(difference, variance)
    return errors


def _joint_error(difference, variance):
    """The `joint_error` of differences (n, n_outputs), of which some may be NaN."""
    sums = np.nansum(difference**2, axis=0)
    squared = mean_squares(sums, np.count_nonzero(~np.isnan(difference), axis=0))
    return joint_error(squared, variance)


def _last_values(data, hidden):
    """The last output before each row, NaN at the start.

    None of the hidden ones but the first of a session, from which a free run starts.
    """
    before = np.full_like(data.Y, np.nan)
    for start, stop in zip(data.starts[:-1], data.starts[1:], strict=True):
        known = data.Y[start:stop].copy()
        if hidden is not None:
            first = np.isfinite(known).argmax(axis=0)
            not_known = hidden[start:stop, None] & (
                np.arange(len(known))[:, None] != first
            )
            known[not_known] = np.nan
        rows = np.where(np.isfinite(known), np.arange(stop - start)[:, None], -1)
        rows = np.maximum.accumulate(rows, axis=0)[:-1]
        filled = np.take_along_axis(known, np.maximum(rows, 0), axis=0)
        before[start + 1 : stop] = np.where(rows >= 0, filled, np.nan)
    return before
