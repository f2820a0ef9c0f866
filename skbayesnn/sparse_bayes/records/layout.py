"""Training records laid out for a free run through them."""

import itertools
from numbers import Real
from typing import NamedTuple

import numpy as np

from ..kernels.recursion import FreeRun, make_feedback
from .free_runs import FreeRunData
from .initial_outputs import estimate_initial
from .lags import Lags, added_outputs, build_lag_matrix
from .one_step import OneStepData

DEFAULT_HORIZONS = (1, 8, 32, 128, np.inf)


class Record(NamedTuple):
    """Inputs and outputs of one or several sessions, NaN where missing."""

    U: np.ndarray
    Y: np.ndarray
    lags: Lags
    starts: np.ndarray


class Stage(NamedTuple):
    """The errors that a part of a fit squares.

    horizon : rows that a free run lasts, infinite for whole records
    step_variance : (n_outputs,) of the random walk of unknown initial outputs, if any
    """

    data: OneStepData | FreeRunData
    horizon: float
    step_variance: np.ndarray | None = None


def check_horizons(schedule):
    """Increasing horizons, infinite for None."""
    if isinstance(schedule, str):
        return DEFAULT_HORIZONS
    horizons = [np.inf if horizon is None else horizon for horizon in schedule]
    whole = all(
        isinstance(h, Real) and (h == np.inf or (h >= 1 and h == int(h)))
        for h in horizons
    )
    increasing = whole and all(a < b for a, b in itertools.pairwise(horizons))
    if not horizons or not increasing:
        raise ValueError(
            "horizon_schedule must be 'auto' or increasing positive integers, the last "
            f"of them None for the whole record; got {schedule!r}."
        )
    return tuple(horizons)


def simulation_stages(record, data, scaling, horizons, step_variance):
    """Stages of a fit: one step ahead, then free runs that last longer and longer.

    With ``step_variance``, the outputs before each session are estimated, and every
    session is simulated from its first row.
    """
    U, Y, lags, starts = record
    if step_variance is None:
        free, can_start = free_run_data(U, Y, lags, starts, scaling, data.weights)
    else:
        free, can_start = with_unknown_start(U, Y, lags, starts, scaling, data.weights)
    if not len(free.origin):
        raise ValueError(
            f"y holds no {lags.output_reach} measured rows in turn from which a free "
            "run could start. Shorten output_lags, fill the gaps, or set "
            "initial_conditions='estimated'."
        )
    longest = int(np.max(np.arange(len(free.origin)) - free.origin)) + 1
    stages = []
    for horizon in horizons:
        if horizon == 1:
            stages.append(Stage(data, 1.0))
        elif horizon < longest or horizon == horizons[-1]:
            run = with_horizon(free, can_start, horizon)
            stages.append(Stage(run, float(horizon), step_variance))
    return tuple(stages)


def typical_step(Y, starts):
    """Mean square of the outputs' steps from row to row; their variance without any."""
    steps = np.diff(Y, axis=0)
    steps[starts[1:-1] - 1] = np.nan
    variance = np.nanvar(Y, axis=0)
    with np.errstate(invalid="ignore"):
        known = np.isfinite(steps)
        square = np.where(known, steps, 0.0) ** 2
        mean = square.sum(axis=0) / known.sum(axis=0)
    mean = np.where(np.isfinite(mean) & (mean > 0.0), mean, variance)
    return np.where(mean > 0.0, mean, 1.0)


def free_run_data(U, Y, lags, starts, scaling, weights, target=None):
    """Records as `FreeRunData` over their longest stretches without a missing input.

    A stretch starts where a complete window of measured outputs precedes it, and ends
    where an input is missing. Outputs may be missing within: the run continues
    through them, and no error counts there. With a ``target`` (n_rows, n_outputs),
    errors count against it in place of ``Y``, and runs end with its last value.
    """
    session = np.repeat(starts[:-1], np.diff(starts))
    can_start = _complete_windows(Y, lags, session)
    rows, origin = _stretches(can_start, _inputs_known(U, lags, session), lags, session)
    if target is None:
        target = Y
    else:
        rows, origin = _up_to_the_last(np.isfinite(target).any(axis=1), rows, origin)
    every = np.arange(len(lags.lag))
    run = lay_out(Record(U, Y, lags, starts), lags, scaling, every, rows, origin)
    shape = (len(rows), Y.shape[1])
    data = FreeRunData(
        X=run.X,
        Y=(target[rows] - scaling.y_offset) / scaling.y_scale,
        feedback=run.feedback,
        origin=origin,
        given=run.given,
        initial=np.zeros(shape),
        unknown=np.full(shape, -1, dtype=np.int64),
        weights=weights,
        before=run.before,
    )
    return data, can_start[rows]


def _complete_windows(Y, lags, session):
    """Rows before which all outputs are measured as far as lags of outputs reach.

    Those whose ``max_lag`` rows before are in the session.
    """
    missing = np.concatenate([[0], np.cumsum(~np.isfinite(Y).all(axis=1))])
    row = np.arange(len(Y))
    inside = row - lags.max_lag >= session
    first = np.where(inside, row - lags.output_reach, row)
    return inside & (missing[row] == missing[first])


def _inputs_known(U, lags, session):
    row = np.arange(len(U))
    known = np.ones(len(U), dtype=bool)
    for signal, lag in zip(lags.signal, lags.lag, strict=True):
        if signal < lags.n_inputs:
            past = np.maximum(row - lag, session)
            known &= np.isfinite(U[past, signal])
    return known


def _stretches(can_start, has_inputs, lags, session):
    """Rows to simulate, and the number among them from which each is simulated."""
    row = np.arange(len(session))
    may_run = has_inputs & (row - session >= lags.max_lag)
    # the first row behind the last one that no run passes
    free = np.maximum.accumulate(np.where(may_run, session, row + 1))
    started = np.maximum.accumulate(np.where(may_run & can_start, row, -1))
    running = may_run & (started >= free)
    rows = np.flatnonzero(running)
    first = (np.diff(rows, prepend=-2) > 1) | (free[rows] == rows)
    return rows, np.maximum.accumulate(np.where(first, np.arange(len(rows)), 0))


def _up_to_the_last(counts, rows, origin):
    """The same without what is behind the last row of a run that ``counts``."""
    place = np.arange(len(rows))
    last = np.full(len(rows), -1)
    np.maximum.at(last, origin, np.where(counts[rows], place, -1))
    kept = place <= last[origin]
    return rows[kept], (np.cumsum(kept) - 1)[origin[kept]]


def lay_out(record, lags, scaling, used, rows, origin):
    """Runs through a record in the layout of the kernels.

    Parameters
    ----------
    record : Record
        Holds the rows that lags reach from ``rows``.
    used : (n_used,) int
        The regressors that the network still reads.
    rows : (n,) int
        Rows of the record, run after run.
    origin : (n,) int
        Place among ``rows`` of the first row of the run of each.
    """
    lags = lags._replace(signal=lags.signal[used], lag=lags.lag[used])
    scaling = scaling._replace(
        x_offset=scaling.x_offset[used], x_scale=scaling.x_scale[used]
    )
    X = build_lag_matrix(record.U, record.Y, lags, rows)
    X -= scaling.x_offset
    X /= scaling.x_scale
    given = np.zeros(len(rows), dtype=bool)
    before = np.zeros((0, 0))
    if lags.difference:
        before = added_outputs(record.Y, lags, rows) - scaling.y_offset
        before /= scaling.y_scale
    return FreeRun(feedback_of(lags, scaling), X, origin, given, before)


def feedback_of(lags, scaling):
    """Which regressors are past outputs, and how scaled outputs become regressors.

    The scaling of a network that predicts differences is that of differences. Outputs
    in its units are measured from the same offset, which is arbitrary for them, and is
    added again in each row.
    """
    position = np.flatnonzero(lags.signal >= lags.n_inputs)
    output = lags.signal[position] - lags.n_inputs
    offset = -scaling.x_offset[position]
    if not lags.difference:
        offset = scaling.y_offset[output] - scaling.x_offset[position]
    return make_feedback(
        position=position,
        output=output,
        lag=lags.lag[position],
        slope=scaling.y_scale[output] / scaling.x_scale[position],
        offset=offset / scaling.x_scale[position],
        limit=scaling.limit,
        drift=scaling.y_offset / scaling.y_scale if lags.difference else None,
    )


def with_horizon(data, can_start, horizon):
    """The data with runs that start anew after ``horizon`` rows, where they can."""
    if horizon == np.inf:
        return data
    origin = data.origin.copy()
    first = -1
    for row in range(len(origin)):
        stretch = data.origin[row]
        if first < stretch or (row - first >= horizon and can_start[row]):
            first = row
        origin[row] = first
    return data._replace(origin=origin)


def with_unknown_start(U, Y, lags, starts, scaling, weights):
    """Records that are simulated from their first row, from unknown outputs before it.

    Before each session stand ``max_lag`` rows in which the inputs hold their first
    value; their outputs are to be estimated, and start at the first measured ones.
    """
    before = lags.max_lag
    pieces = [
        _with_rows_before(U[a:b], Y[a:b], before, scaling.y_offset)
        for a, b in zip(starts[:-1], starts[1:], strict=True)
    ]
    U = np.concatenate([piece[0] for piece in pieces])
    Y = np.concatenate([piece[1] for piece in pieces])
    starts = starts + before * np.arange(len(starts))
    data, can_start = free_run_data(U, Y, lags, starts, scaling, weights)
    scaled = (Y - scaling.y_offset) / scaling.y_scale
    return _give_rows_before(data, can_start, scaled, lags, starts)


def _with_rows_before(U, Y, before, fallback):
    """One session with rows before it, the outputs there at a first guess."""
    known = np.isfinite(Y)
    first = Y[known.argmax(axis=0), np.arange(Y.shape[1])]
    first = np.where(np.isfinite(first), first, fallback)
    head_u, head_y = np.tile(U[:1], (before, 1)), np.tile(first, (before, 1))
    return np.concatenate([head_u, U]), np.concatenate([head_y, Y])


def _give_rows_before(data, can_start, scaled, lags, starts):
    """Put the rows before each session into the data, as unknowns."""
    before, n_outputs = lags.max_lag, scaled.shape[1]
    # row 0 of every session of `data` is the first after those rows
    lengths = np.diff(starts) - before
    first = np.concatenate([[0], np.cumsum(lengths)])
    if len(data.X) != first[-1]:
        raise ValueError(
            "X must hold no missing values with initial_conditions='estimated'. Fill "
            "them, or start another session behind each gap."
        )
    insert = np.repeat(first[:-1], before)
    n_unknown = len(insert) * n_outputs
    is_given = np.insert(data.given, insert, True)
    unknown = np.full((len(is_given), n_outputs), -1)
    unknown[is_given] = np.arange(n_unknown).reshape(-1, n_outputs)
    initial = np.zeros((len(is_given), n_outputs))
    head = np.concatenate([a + np.arange(before) for a in starts[:-1]])
    initial[is_given] = scaled[head]
    session = np.repeat(np.arange(len(lengths)), lengths + before)
    start = (first[:-1] + before * np.arange(len(lengths)))[session]
    behind = np.arange(len(is_given)) - start
    windows = np.insert(can_start, insert, False) & (behind >= 2 * before)
    before_rows = data.before
    if lags.difference:
        before_rows = np.insert(before_rows, insert, np.nan, axis=0)
    return data._replace(
        before=before_rows,
        X=np.insert(data.X, insert, 0.0, axis=0),
        Y=np.insert(data.Y, insert, np.nan, axis=0),
        origin=start,
        given=is_given,
        initial=initial,
        unknown=unknown,
    ), windows


def outputs_before(model, lags, U, Y, step_variance):
    """Outputs of the ``max_lag`` rows before a record, from its first few rows.

    ``Y`` holds the outputs measured so far; the inputs hold their first value in the
    rows before.
    """
    if not np.isfinite(U).all():
        # the run ends there
        return np.tile(Y[:1], (lags.max_lag, 1))
    scaling = model.scaling
    starts = np.array([0, len(Y)])
    weights = 1.0 / np.maximum(model.squared_std, 1e-9)
    data, _ = with_unknown_start(U, Y, lags, starts, scaling, weights)
    data = data.select_inputs(model.network.units[0])
    scaled_steps = step_variance / scaling.y_scale**2
    data = estimate_initial(model.network, data, 1.0, scaled_steps)
    return data.initial[: lags.max_lag] * scaling.y_scale + scaling.y_offset
