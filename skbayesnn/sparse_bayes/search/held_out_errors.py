"""Errors of fitted models, in rows that their fits have not seen or in all rows."""

import numpy as np

from ..learning.later_starts import errors_of_later_starts
from ..learning.output_errors import joint_error, mean_squared_errors, mean_squares
from ..learning.runs_to_score import free_runs_through, steps_through
from ..prediction.hidden_states import StateSpaceNetwork
from ..records.layout import Record
from .cut_record import output_variance
from .scored_rows import rows_behind, runs_between_missing_inputs


def error_against(model, data, target, focus):
    """The `joint_error` of all outputs, in the rows in which ``target`` is not NaN.

    It is that of free runs through the record, or of single steps for
    ``focus="prediction"``, in standard deviations of the outputs.

    Parameters
    ----------
    model : estimator, fitted
        With one network.
    data : CutRecord
    target : (n_rows, n_outputs) array
    focus : {"simulation", "prediction"}
    """
    network = model._model.ensemble.members[0]
    target = data.only_scored(target)
    if isinstance(network, StateSpaceNetwork):
        squared = _errors_of_states(network, data, target, focus)
        return joint_error(squared, output_variance(data))
    fitted, lags = network
    record = Record(data.U, data.Y, lags, data.starts)
    through = free_runs_through if focus == "simulation" else steps_through
    scored = through(record, fitted.scaling, target)
    squared = mean_squared_errors(fitted.network, scored)
    # in units of y: a model of differences has scaled its steps
    return joint_error(squared * fitted.scaling.y_scale**2, output_variance(data))


def error_over_record(model, data, focus):
    """The error over all rows of a record, of runs that begin in several rows.

    A network that has learned a disturbance by heart errs little in a run that begins
    where that of its fit began, and more in one that begins later. Errors of single
    steps, and those of hidden states, are those of `error_against`.
    """
    error = error_against(model, data, data.Y, focus)
    network = model._model.ensemble.members[0]
    if focus != "simulation" or isinstance(network, StateSpaceNetwork):
        return error
    (network, scaling), lags = network.fitted[:2], network.lags
    record, target = Record(data.U, data.Y, lags, data.starts), data.only_scored(data.Y)
    later = errors_of_later_starts(network, scaling, record, target)
    variance = output_variance(data) / scaling.y_scale**2
    errors = [error, *(joint_error(one, variance) for one in later)]
    return float(np.sqrt(np.nanmean(np.square(errors))))


def _errors_of_states(network, data, target, focus):
    """Mean squared errors (n_outputs,) of a network of hidden states.

    The first rows of each session tell the state there, and are not scored. Where
    models of lags can be tried as well (``data.scored`` is set), a free run begins anew
    behind missing inputs, as theirs does, with enough complete rows before it. A
    filter, which predicts single steps, begins anew by itself.
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
    """The record without missing inputs, and its target.

    Each stretch of known inputs becomes a session that begins with ``n_known`` complete
    rows. Stretches of which no row is scored are left out.
    """
    U, Y, starts = record.U, record.Y, record.starts
    known, stretch, has_begun = runs_between_missing_inputs(U, Y, starts, n_known)
    last = np.searchsorted(stretch, stretch, side="right") - 1
    behind = np.minimum(np.arange(len(Y)) + n_known, last)
    scored = known & np.isfinite(target).any(axis=1)
    kept = known & has_begun[behind]
    kept &= np.bincount(stretch, scored)[stretch] > 0.0
    starts = np.flatnonzero(np.diff(stretch[kept], prepend=-1))
    starts = np.append(starts, np.count_nonzero(kept))
    return Record(U[kept], Y[kept], None, starts), target[kept]
