"""What the arguments of a prediction describe: a record, and what is known of it."""

import itertools
from numbers import Integral
from typing import NamedTuple

import numpy as np

from .. import _validation as checks
from .._frames import check_names
from .._time_axis import (
    check_start,
    check_time,
    split_record,
    split_sessions,
    split_time,
)
from .records.lags import can_begin
from .records.layout import Record, outputs_before
from .records.missing_inputs import check_way, fill_missing


class Query(NamedTuple):
    """A record to predict.

    record : outputs at and after a prediction are NaN in free run
    n_known : rows at the start of each session that are given
    n_before : those of them that precede what the user asked for
    from_measured : whether the noise of a free run is that of steps ahead of the rows
        that are given
    """

    record: Record
    n_known: int
    n_before: int = 0
    from_measured: bool = False


def check_inputs(estimator, X, name="X"):
    """Inputs as an array (n_rows, n_inputs); a column of times is left out."""
    X, _ = split_time(X, name)
    if estimator.n_features_in_ == 0:
        shape = np.shape(X)
        if len(shape) != 2 or shape[1] != 0:
            raise ValueError(
                f"{name} must have shape (n_samples, 0): the model was fitted "
                f"without inputs (X=None). Got shape {shape}."
            )
        return np.empty(shape)
    U = checks.validate_data(
        estimator,
        X,
        dtype=np.float64,
        order="C",
        ensure_all_finite="allow-nan",
        reset=False,
    )
    checks.check_magnitude(U, name)
    return checks.own(U)


def _check_free_run_inputs(X):
    if X is None:
        raise ValueError(
            "X must not be None in free run: it says how many rows to simulate. "
            "For an autoregression pass an array of shape (n_rows, 0)."
        )


def check_outputs(estimator, y, name):
    """Outputs as an array (n_rows, n_outputs); their names are compared."""
    model = estimator._model
    y, _ = split_time(y, name)
    check_names(y, getattr(estimator, "output_names_", None), name)
    Y = checks.check_outputs(y, name)
    Y = Y.reshape(len(Y), -1)
    n_outputs = model.ensemble.n_outputs
    if Y.shape[1] != n_outputs:
        raise ValueError(
            f"{name} must hold {n_outputs} outputs, as y did in fit; got {Y.shape[1]}."
        )
    checks.check_magnitude(Y, name)
    return checks.own(Y)


def make_query(estimator, X, y, horizon, y_init, X_init, sessions, fill_inputs=None):
    """The record that the arguments of `predict` describe."""
    _check_arguments(y, horizon, y_init, X_init)
    check_way(fill_inputs)
    if y is not None:
        query = _query_measured(estimator, X, y, sessions)
    else:
        query = _query_alone(
            estimator,
            X,
            y_init,
            X_init,
            sessions,
            fill_inputs if X_init is None else None,
        )
    query = with_filled_inputs(query, fill_inputs)
    is_free_run = y is not None and horizon is None
    # hidden states need no complete window
    if is_free_run and not estimator._model.ensemble.has_states:
        reach = estimator._model.ensemble.output_reach
        query = _from_complete_windows(query, reach)
    return query


def _from_complete_windows(query, reach):
    """The query whose free runs begin behind the first complete rows of each session.

    Outputs count as far back as they are read, ``reach`` rows. Rows before these become
    a session of their own, in which nothing is predicted.
    """
    U, Y, _, starts = query.record
    ready = can_begin(U, Y, starts, query.n_known, reach)
    first = [
        start + ready[start:stop].argmax() - query.n_known
        for start, stop in itertools.pairwise(starts)
        if ready[start:stop].any()
    ]
    starts = np.union1d(starts, np.array(first, dtype=np.int64))
    return query._replace(record=query.record._replace(starts=starts))


def with_filled_inputs(query, way):
    """The query with missing inputs filled in.

    ``way`` is one of those of `missing_inputs`; None leaves them missing.
    """
    record = query.record
    U = fill_missing(record.U, record.starts, way)
    return query._replace(record=record._replace(U=U))


def _query_alone(estimator, X, y_init, X_init, sessions, fill_inputs):
    """A record of which no outputs are measured but the first ones."""
    _check_free_run_inputs(X)
    X, axis = split_time(X, "X")
    U = check_inputs(estimator, X)
    starts = _sessions_in_time(estimator, sessions, axis, len(U))
    if y_init is not None:
        sampling_time = getattr(estimator, "sampling_time_", None)
        check_start(axis, X_init, y_init, sampling_time)
    U = fill_missing(U, starts, fill_inputs)
    return _query_free_run(estimator, U, starts, y_init, X_init)


def _sessions_in_time(estimator, sessions, axis, n_rows):
    """First row of every session, and the end; their times are checked."""
    starts = split_sessions(sessions, axis, n_rows)
    check_time(axis, starts, getattr(estimator, "sampling_time_", None))
    return starts


def _check_arguments(y, horizon, y_init, X_init):
    if horizon is not None and not (isinstance(horizon, Integral) and horizon >= 1):
        raise ValueError(
            f"horizon must be a positive integer or None; got {horizon!r}."
        )
    if y is None and horizon is not None and horizon > 1:
        raise ValueError(
            f"horizon={horizon} counts steps from measured outputs: pass them as y, or "
            "leave horizon out for a free run."
        )
    if y is not None and (y_init is not None or X_init is not None):
        raise ValueError(
            "y_init and X_init start a free run, which uses no y: pass y, or "
            "y_init; or y with horizon=None to start from its first rows."
        )
    if X_init is not None and y_init is None:
        raise ValueError("X_init needs y_init with as many rows; got y_init=None.")


def _query_measured(estimator, X, y, sessions):
    """A record with measured outputs."""
    model = estimator._model
    X, y, axis = split_record(X, y)
    Y = check_outputs(estimator, y, "y")
    U = np.empty((len(Y), 0)) if X is None else check_inputs(estimator, X)
    if X is None and estimator.n_features_in_:
        raise ValueError(
            f"X must hold the {estimator.n_features_in_} inputs; got None."
        )
    checks.check_lengths(U, Y, "X", "y")
    starts = _sessions_in_time(estimator, sessions, axis, len(Y))
    return Query(make_record(U, Y, starts), model.ensemble.max_lag)


def _query_free_run(estimator, U, starts, y_init, X_init):
    """A record whose outputs are known in its first rows, or before them, only."""
    model = estimator._model
    if y_init is None:
        n_known = model.ensemble.n_required
        before = np.tile(model.u_mean, (n_known, 1))
        return _prepend(model, U, starts, before, np.tile(model.y_mean, (n_known, 1)))
    known = _check_initial_outputs(estimator, U, starts, y_init, X_init)
    if X_init is not None:
        before = check_inputs(estimator, X_init, "X_init")
        checks.check_lengths(before, known, "X_init", "y_init")
        return _prepend(model, U, starts, before, known)
    if len(known) < model.ensemble.n_required:
        return _start_before(model, U, known)
    Y = np.full((len(U), known.shape[1]), np.nan)
    Y[: len(known)] = known
    return Query(make_record(U, Y, starts), len(known))


def _check_initial_outputs(estimator, U, starts, y_init, X_init):
    known = check_outputs(estimator, y_init, "y_init")
    ensemble = estimator._model.ensemble
    if len(starts) > 2:
        raise ValueError(
            f"y_init starts one session, but sessions names {len(starts) - 1}. "
            "Pass y with horizon=None to start each from its own first rows, or "
            "simulate them one by one."
        )
    shortest = 1 if X_init is None else max(1, ensemble.n_required)
    longest = len(U) if X_init is None else np.inf
    if not shortest <= len(known) <= longest:
        expected = f"at least one row and at most the {len(U)} rows of X"
        if X_init is not None:
            expected = f"beside X_init at least {_required(ensemble)}"
        raise ValueError(f"y_init must have {expected}; got {len(known)}.")
    missing = ~np.isfinite(known).all(axis=1)
    # networks of lags do not read the rows before these
    missing[: -ensemble.output_reach or None] = False
    if missing.any() and not ensemble.has_states:
        row = int(missing.argmax())
        raise ValueError(
            f"y_init must hold no missing values, got NaN in row {row}: networks of "
            "lags take each of these outputs (those of hidden states may do without). "
            "Fill it in, or leave out the rows of X and y_init up to the last missing "
            "one."
        )
    return known


def _required(ensemble):
    """How many rows a run needs before it, in words."""
    return "one row" if ensemble.has_states else f"max_lag_={ensemble.max_lag} rows"


def _start_before(model, U, known):
    """A record whose rows before the first are estimated from a few outputs."""
    n_before = model.ensemble.max_lag
    # hidden states need no rows before the first
    of_lags = next(m for m in model.ensemble.members if m.n_required)
    estimated = outputs_before(*of_lags, U[: len(known)], known, model.step_variance)
    # another member may look back further than the one that estimates
    estimated = np.pad(estimated, ((n_before - len(estimated), 0), (0, 0)), "edge")
    U = np.concatenate([np.tile(U[:1], (n_before, 1)), U])
    Y = np.full((len(U), known.shape[1]), np.nan)
    Y[:n_before] = estimated
    Y[n_before : n_before + len(known)] = known
    record = make_record(U, Y, np.array([0, len(Y)]))
    return Query(record, n_before + len(known), n_before)


def _prepend(model, U, starts, before, known):
    """Every session with rows before it from which it starts."""
    n_before = len(known)
    records, outputs = [], []
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        records += [before, U[start:stop]]
        outputs += [known, np.full((stop - start, known.shape[1]), np.nan)]
    shift = n_before * np.arange(len(starts))
    U, Y = np.concatenate(records), np.concatenate(outputs)
    return Query(make_record(U, Y, starts + shift), n_before, n_before)


def query_after_state(estimator, X, y, y_init, X_init):
    """The rows that follow a state."""
    if not (y is None and y_init is None and X_init is None):
        raise ValueError(
            "state holds the rows before X: pass neither y, y_init nor X_init with it."
        )
    _check_free_run_inputs(X)
    U = check_inputs(estimator, X)
    model = estimator._model
    Y = np.empty((len(U), model.ensemble.n_outputs))
    return Query(make_record(U, Y, np.array([0, len(U)])), 0)


def fill_after_state(query, state, way):
    """The query behind a state, whose inputs may be the last ones before a gap."""
    check_way(way)
    record = query.record
    before = np.asarray(getattr(state, "inputs", np.empty(0)), dtype=np.float64)
    if way is None or before.ndim != 2 or before.shape[1:] != record.U.shape[1:]:
        # what is no state of this model is refused later
        return query
    U = np.concatenate([before, record.U])
    U = fill_missing(U, np.array([0, len(U)]), way)[len(before) :]
    return query._replace(record=record._replace(U=U))


def rows_before(estimator, X_init, y_init):
    """Inputs and outputs of the rows before the first step of a stream."""
    ensemble = estimator._model.ensemble
    if X_init is None and y_init is not None and not ensemble.n_inputs:
        X_init = np.empty((len(y_init), 0))
    if (X_init is None) != (y_init is None):
        raise ValueError(
            "X_init and y_init hold the rows before the first step: pass both, or "
            "none to start from the training means."
        )
    if y_init is not None:
        check_start(None, X_init, y_init, getattr(estimator, "sampling_time_", None))
    nothing = np.empty((0, ensemble.n_inputs)), np.array([0, 0])
    query = _query_free_run(estimator, *nothing, y_init, X_init)
    return query.record.U, query.record.Y


def make_record(U, Y, starts):
    """A `Record` without lags: every member of an ensemble has its own, or states."""
    return Record(U, Y, None, starts)
