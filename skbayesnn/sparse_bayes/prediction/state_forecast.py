"""Predictions of one state-space network over whole records: ahead, and in free run.

Each session begins at the state that its first rows tell (`initial_states`). From there
on an extended Kalman filter takes the measured outputs, and every prediction is a free
run from what the filter knows. An input that is missing ends a record: the filter
begins anew behind it.

The variance of a prediction is that of the weights, which the state at the start
follows, of what this state is uncertain by beside them, by the delta method, less what
the filter has seen of their errors, and of the noise since the last measured output.
The latter grows to that of a free run through the training record.
"""

from typing import NamedTuple

import numpy as np

from ..kernels.state_filter import Plan, filter_by_block, run_filter
from ..kernels.state_recursion import sensitivities_by_block
from ..records.residuals import BLOCK_BYTES
from .forecast import Forecast
from .initial_states import (
    Start,
    estimated_start,
    lay_out,
    run_outputs,
    scaled_inputs,
    start_by_weights,
    unknown_start,
)
from .posterior import (
    apply_covariance,
    covariance_factor,
    unit_noise,
    weight_deviations,
)


class Segment(NamedTuple):
    """Rows of a session that one filter goes through.

    begin : the first of them
    told : the first behind those that tell the state at the start
    first : the first that is predicted; of those before, missing outputs are
    stop : the first behind them all
    """

    begin: int
    told: int
    first: int
    stop: int


class Paths(NamedTuple):
    """Scaled predictions of some rows, linearised; NaN where there are none.

    rows : slice of the record
    outputs, noise : (n_rows, n_outputs), without and the variance of what is not in S
    by_weights : (n_rows, n_outputs, n_kept) derivatives, where the start follows
    by_start : (n_rows, n_outputs, n_states)
    """

    rows: slice
    outputs: np.ndarray
    noise: np.ndarray
    by_weights: np.ndarray
    by_start: np.ndarray


class Query(NamedTuple):
    """What is asked of a network: its record in segments, and from where they begin.

    segment : (n_rows,) number of the segment of each row, -1 for none
    start : of all segments
    used : (n_segments,) bool, whether they have rows
    from_measured : whether noise is that since the last measured output
    """

    record: NamedTuple
    segments: list
    segment: np.ndarray
    start: Start
    used: np.ndarray
    run: NamedTuple
    plan: Plan
    horizon: float
    from_measured: bool

    @property
    def of_records(self):
        """Covariances of the states at the starts of segments that have rows."""
        return self.start.covariance[self.used]


def forecast(network, record, n_known, horizon, return_std, from_measured=False):
    """Forecast of one `StateSpaceNetwork`; arguments as in `ensemble.forecast`."""
    scaling, std, least = network.fitted.scaling, None, None
    query = _pose(network, record, n_known, horizon, from_measured)
    given = _given(network, record, n_known, horizon)
    if return_std:
        outputs, variance = np.full_like(record.Y, np.nan), np.zeros_like(record.Y)
        without_weights = np.zeros_like(record.Y)
        for paths in _linearized(network, query):
            rows = paths.rows
            outputs[rows] = paths.outputs
            without_weights[rows] = _of_start(query, paths) + paths.noise
            variance[rows] = _of_weights(network.fitted, paths) + without_weights[rows]
        std, least = (
            np.where(given, 0.0, np.sqrt(part) * scaling.y_scale)
            for part in (variance, without_weights)
        )
    else:
        outputs = _outputs(network, query)
    mean = np.where(given, record.Y, outputs * scaling.y_scale + scaling.y_offset)
    n_diverged = int(_diverged(query, outputs).sum())
    return Forecast(mean, std, n_diverged, least if horizon == np.inf else None)


def draws(network, record, n_known, horizon, n_samples, rng, from_measured=False):
    """Draws of one `StateSpaceNetwork`, and which diverged; as `draws.of_network`.

    Paths are linear in the weights and in the state at the start, and noise is not fed
    back: they have the mean and the variance of `forecast`.
    """
    fitted = network.fitted
    query = _pose(network, record, n_known, horizon, from_measured)
    deviations = weight_deviations(fitted, n_samples, rng)
    moved = [
        rng.standard_normal((n_samples, network.n_states))
        @ covariance_factor(covariance).T
        for covariance in query.start.covariance
    ]
    drawn = np.full((n_samples, *record.Y.shape), np.nan)
    outputs, noise = np.full_like(record.Y, np.nan), np.full_like(record.Y, np.nan)
    for paths in _linearized(network, query):
        rows = paths.rows
        outputs[rows], noise[rows] = paths.outputs, paths.noise
        part = paths.outputs + np.tensordot(deviations, paths.by_weights, (1, 2))
        segment = query.segment[rows]
        for number in np.unique(segment[segment >= 0]):
            of_this = segment == number
            by_start = paths.by_start[of_this]
            part[:, of_this] += np.tensordot(moved[number], by_start, (1, 2))
        drawn[:, rows] = part
    with np.errstate(invalid="ignore"):
        beyond = (np.abs(drawn) > fitted.scaling.limit).any(axis=2)
    beyond |= _diverged(query, outputs)
    lost = beyond.any(axis=1)
    if horizon == np.inf:
        beyond = _to_the_end(beyond, query.segment)
    drawn[beyond] = np.nan
    drawn += unit_noise(fitted, drawn.shape, rng) * np.sqrt(noise)
    drawn = drawn * fitted.scaling.y_scale + fitted.scaling.y_offset
    given = _given(network, record, n_known, horizon)
    drawn = np.where(given, record.Y, drawn)
    return np.ascontiguousarray(np.moveaxis(drawn, 0, -1)), lost


def _given(network, record, n_known, horizon):
    """Outputs (n_rows, n_outputs) that are returned as they were measured."""
    n_rows = n_known if horizon == np.inf else network.max_lag
    first = np.repeat(record.starts[:-1], np.diff(record.starts))
    is_first = np.arange(len(record.Y)) - first < n_rows
    return is_first[:, None] & np.isfinite(record.Y)


def _to_the_end(beyond, segment):
    """Rows (n_draws, n_rows) from the first marked one to the end of the segment."""
    rows = np.arange(len(segment))
    first = np.zeros(len(segment), dtype=np.int64)
    edges = np.flatnonzero(np.diff(segment, prepend=-2))
    first[edges] = edges
    first = np.maximum.accumulate(first)
    last = np.maximum.accumulate(np.where(beyond, rows, -1), axis=1)
    return last >= first


def belief_after(network, U, Y):
    """Mean and covariance of the state behind rows in the user's units, of one session.

    Y is NaN where an output is not known, and the state that of the training record
    where there are no rows.
    """
    record = _OneSession(U, Y, np.array([0, len(U)]))
    segments = _segments(network, record, len(U), np.inf)
    if not len(U) or segments[0].begin == len(U):
        return network.mean.copy(), network.covariance.copy()
    start = _starts(network, record, segments)
    plan = _plan(network, record, segments, np.inf)
    run = lay_out(network, scaled_inputs(network, U), [segments[0].begin], start.state)
    layers = network.fitted.network.layers
    belief = run_filter(layers, run, start.covariance, network.noise, plan).belief
    return belief.mean, belief.covariance


class _OneSession(NamedTuple):
    U: np.ndarray
    Y: np.ndarray
    starts: np.ndarray


def _segments(network, record, n_known, horizon):
    """The `Segment` of each part of a record that can be predicted."""
    missing = ~np.isfinite(record.U).all(axis=1)
    segments = []
    for start, stop in zip(record.starts[:-1], record.starts[1:], strict=True):
        gaps = start + np.flatnonzero(missing[start:stop])
        if horizon == np.inf:
            first = min(start + n_known, stop)
            gaps = gaps[gaps < first]
            begin = int(gaps[-1]) + 1 if len(gaps) else start
            told = min(begin + network.max_lag, first)
            segments.append(Segment(begin, told, first, stop))
            continue
        for begin, end in zip([start, *gaps + 1], [*gaps, stop], strict=True):
            first = begin + network.max_lag
            if first < end:
                segments.append(Segment(begin, first, first, end))
    return segments


def _starts(network, record, segments):
    """The `Start` of all segments, from the outputs of the rows that tell it."""
    start = unknown_start(network, len(segments))
    for number, (begin, told, _, _) in enumerate(segments):
        U, Y = record.U[begin:told], record.Y[begin:told]
        if np.isfinite(Y).any():
            found = estimated_start(network, U, Y)
            start.state[number] = found.state[0]
            start.covariance[number] = found.covariance[0]
    return start


def _plan(network, record, segments, horizon):
    """The `Plan` of predictions so many steps ahead, infinite for free runs."""
    scaling, n_rows = network.fitted.scaling, len(record.Y)
    scaled = (record.Y - scaling.y_offset) / scaling.y_scale
    plan = Plan(
        np.full_like(scaled, np.nan),
        np.zeros(n_rows, dtype=bool),
        np.full(n_rows, -1),
        np.zeros(n_rows, dtype=np.int64),
    )
    for begin, told, first, stop in segments:
        length = int(min(horizon, stop - first))
        if horizon == np.inf:
            # the filter goes on without outputs
            plan.Y[told:first] = scaled[told:first]
            plan.filtered[begin:stop] = True
            gaps = begin + np.flatnonzero(np.isnan(record.Y[begin:first]).any(axis=1))
            alone = np.append(gaps, np.arange(first, stop))
            plan.first[alone] = plan.last[alone] = alone
            continue
        last_run = stop - length
        plan.Y[told:last_run] = scaled[told:last_run]
        plan.filtered[begin:last_run] = True
        if first < stop:
            plan.first[first] = first
            plan.last[first] = first + length - 1
        later = np.arange(first + 1, last_run + 1)
        plan.first[later] = plan.last[later] = later + length - 1
    return plan


def _pose(network, record, n_known, horizon, from_measured):
    """The `Query` of a record."""
    segments = _segments(network, record, n_known, horizon)
    start = _starts(network, record, segments)
    segment = np.full(len(record.U), -1)
    for number, (begin, _, _, stop) in enumerate(segments):
        segment[begin:stop] = number
    used = np.array([one.begin < one.stop for one in segments], dtype=bool)
    begins = [one.begin for one in segments if one.begin < one.stop]
    run = lay_out(network, scaled_inputs(network, record.U), begins, start.state[used])
    plan = _plan(network, record, segments, horizon)
    from_measured |= horizon < np.inf
    begun = start, used, run, plan
    return Query(record, segments, segment, *begun, horizon, from_measured)


def _outputs(network, query):
    """Scaled predictions (n_rows, n_outputs)."""
    if np.isnan(query.plan.Y).all():
        outputs = run_outputs(network, query.run)
        return np.where(query.segment[:, None] >= 0, outputs, np.nan)
    layers, noise = network.fitted.network.layers, network.noise
    return run_filter(layers, query.run, query.of_records, noise, query.plan).outputs


def _linearized(network, query):
    """Yield the `Paths` of a record, some rows at a time, which fit into the cache."""
    layers = network.fitted.network.layers
    kept = np.flatnonzero(network.fitted.network.keep)
    n_outputs, n_rows = network.n_outputs, len(query.record.Y)
    n_columns = (len(kept) + network.n_states) * n_outputs
    block = n_rows
    if query.horizon in (1, np.inf):
        # other predictions run ahead through several rows
        block = max(1, BLOCK_BYTES // (8 * n_columns))
    # zero where this run diverges: what the weights add is not known there
    free = sensitivities_by_block(layers, query.run, n_outputs, kept, max(1, block))
    followed = _starts_by_weights(network, query)
    arguments = query.run, query.of_records, network.noise, query.plan, free
    for rows, found in filter_by_block(layers, *arguments):
        of_weights, of_start = np.split(found.S, [len(kept)], axis=1)
        of_weights = of_weights.reshape(*found.outputs.shape, len(kept))
        of_start = of_start.reshape(*found.outputs.shape, network.n_states)
        segment = query.segment[rows]
        for number in np.unique(segment[segment >= 0]):
            of_this = segment == number
            of_weights[of_this] += of_start[of_this] @ followed[number]
        paths = Paths(rows, found.outputs, None, of_weights, of_start)
        yield paths._replace(noise=_noise(network, query, paths, found))


def _starts_by_weights(network, query):
    """How the start of each segment follows the weights, by `start_by_weights`."""
    record, start, followed = query.record, query.start, []
    for number, (begin, told, _, _) in enumerate(query.segments):
        part = slice(begin, told)
        arguments = record.U[part], record.Y[part]
        found = start.state[number], start.covariance[number]
        followed.append(start_by_weights(network, *arguments, *found))
    return followed


def _diverged(query, outputs):
    """Rows without a prediction, but for those behind a missing input."""
    diverged = np.zeros(len(outputs), dtype=bool)
    missing = ~np.isfinite(query.record.U).all(axis=1)
    for _, _, first, stop in query.segments:
        gap = first + int(np.argmax(np.append(missing[first:stop], True)))
        diverged[first:gap] = np.isnan(outputs[first:gap]).any(axis=1)
    return diverged


def _of_start(query, paths):
    """Variance of each prediction by that of the state at the start of its segment."""
    if not len(query.segments):
        return np.zeros_like(paths.outputs)
    covariance = query.start.covariance[query.segment[paths.rows]]
    with np.errstate(all="ignore"):
        return np.einsum(
            "toi,tij,toj->to", paths.by_start, covariance, paths.by_start, optimize=True
        )


def _noise(network, query, paths, found):
    """Variance of the noise since the last measured output."""
    fitted = network.fitted
    of_free_run = np.where(np.isnan(paths.outputs), np.nan, fitted.noise_std**2)
    if not query.from_measured:
        return of_free_run
    with np.errstate(all="ignore"):
        since = np.maximum(found.variance - _of_start(query, paths), 0.0)
        since = since * _growth(network, since)
    return np.minimum(since + network.measurement, of_free_run)


def _growth(network, since):
    """Factors of the variance that the states have got since the last measured output.

    It grows with the steps from what it is one step ahead to what it is in a free run.
    The first is right, but the direction of the noise in the states is a guess, and the
    second may be less than the errors of free runs tell. What is lacking is added in
    proportion to that growth.
    """
    if network.spread is None:
        return 1.0
    one_step, free_run = network.spread
    grows = free_run > one_step
    known = network.fitted.noise_std**2 - network.measurement
    most = np.maximum(known / np.where(grows, free_run, 1.0), 1.0)
    grown = (since - one_step) / np.where(grows, free_run - one_step, 1.0)
    return np.where(grows, 1.0 + (most - 1.0) * np.clip(grown, 0.0, 1.0), 1.0)


def _of_weights(fitted, paths):
    """Variance of each prediction by that of the weights."""
    n_rows, n_outputs, n_kept = paths.by_weights.shape
    flat = paths.by_weights.reshape(-1, n_kept)
    # the derivatives of an unstable run may exceed all numbers where it does not
    with np.errstate(all="ignore"):
        variance = np.einsum(
            "ij,ji->i", flat, apply_covariance(fitted.covariance, flat.T)
        )
    return variance.reshape(n_rows, n_outputs)
