"""Predictions of one state-space network over whole records: ahead, and in free run.

Each session begins at the state that its first rows tell (`initial_states`). From there
on an extended Kalman filter takes the measured outputs, and every prediction is a free
run from what the filter knows. An input that is missing ends a record: the filter
begins anew behind it.

The variance of a prediction is that of the weights and of the state at the start, by
the delta method, less what the filter has seen of their errors, and of the noise since
the last measured output. The latter is at most that of a free run through the training
record.
"""

from typing import NamedTuple

import numpy as np

from ..kernels.state_filter import Filtered, Plan, run_filter
from ..kernels.state_recursion import run_state_sensitivities
from .forecast import Forecast
from .initial_states import (
    estimated_start,
    lay_out,
    run_outputs,
    scaled_inputs,
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
    """Scaled predictions, linearised, of the rows of some segments; elsewhere NaN.

    outputs, noise : (n_rows, n_outputs), without and the variance of what is not in S
    by_weights : (n_rows, n_outputs, n_kept) derivatives
    by_start : (n_rows, n_outputs, n_states)
    covariance : (n_segments, n_states, n_states) of the states at the starts
    segment : (n_rows,) number of the segment of each row, -1 for none
    diverged : (n_rows,) bool
    """

    outputs: np.ndarray
    noise: np.ndarray
    by_weights: np.ndarray
    by_start: np.ndarray
    covariance: np.ndarray
    segment: np.ndarray
    diverged: np.ndarray


def forecast(network, record, n_known, horizon, return_std):
    """Forecast of one `StateSpaceNetwork`; arguments as in `ensemble.forecast`."""
    scaling, std = network.fitted.scaling, None
    paths = _paths(network, record, n_known, horizon, return_std)
    given = _given(network, record, n_known, horizon)
    outputs = paths.outputs * scaling.y_scale + scaling.y_offset
    if return_std:
        std = np.sqrt(_variance(network.fitted, paths)) * scaling.y_scale
        std = np.where(given, 0.0, std)
    mean = np.where(given, record.Y, outputs)
    return Forecast(mean, std, int(paths.diverged.sum()))


def draws(network, record, n_known, horizon, n_samples, rng):
    """Draws of one `StateSpaceNetwork`, and which diverged; as `draws.of_network`.

    Paths are linear in the weights and in the state at the start, and noise is not fed
    back: they have the mean and the variance of `forecast`.
    """
    fitted = network.fitted
    paths = _paths(network, record, n_known, horizon, True)
    deviations = weight_deviations(fitted, n_samples, rng)
    drawn = paths.outputs + np.tensordot(deviations, paths.by_weights, (1, 2))
    for number, covariance in enumerate(paths.covariance):
        rows = paths.segment == number
        factor = covariance_factor(covariance)
        moved = rng.standard_normal((n_samples, len(factor))) @ factor.T
        drawn[:, rows] += np.tensordot(moved, paths.by_start[rows], (1, 2))
    with np.errstate(invalid="ignore"):
        beyond = (np.abs(drawn) > fitted.scaling.limit).any(axis=2)
    beyond |= paths.diverged
    lost = beyond.any(axis=1)
    if horizon == np.inf:
        beyond = _to_the_end(beyond, paths.segment)
    drawn[beyond] = np.nan
    drawn += unit_noise(fitted, drawn.shape, rng) * np.sqrt(paths.noise)
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
        last_run = first if horizon == np.inf else stop - length
        plan.Y[told:last_run] = scaled[told:last_run]
        plan.filtered[begin:last_run] = True
        if first < stop:
            plan.first[first] = first
            plan.last[first] = first + length - 1
        if horizon == np.inf:
            gaps = begin + np.flatnonzero(np.isnan(record.Y[begin:first]).any(axis=1))
            plan.first[gaps] = plan.last[gaps] = gaps
        later = np.arange(first + 1, last_run + 1)
        plan.first[later] = plan.last[later] = later + length - 1
    return plan


def _paths(network, record, n_known, horizon, linearized):
    """`Paths` of a record, without derivatives and noise unless ``linearized``."""
    segments = _segments(network, record, n_known, horizon)
    start = _starts(network, record, segments)
    plan = _plan(network, record, segments, horizon)
    segment = np.full(len(record.U), -1)
    for number, (begin, _, _, stop) in enumerate(segments):
        segment[begin:stop] = number
    begins = [one.begin for one in segments if one.begin < one.stop]
    used = np.array([one.begin < one.stop for one in segments], dtype=bool)
    U = scaled_inputs(network, record.U)
    run = lay_out(network, U, begins, start.state[used])
    fitted = network.fitted
    kept = np.flatnonzero(fitted.network.keep) if linearized else None
    if not linearized and np.isnan(plan.Y).all():
        outputs = np.where(segment[:, None] >= 0, run_outputs(network, run), np.nan)
        found = Filtered(outputs, None, np.zeros((plan.Y.size, 0)), None, None, None)
    else:
        layers, covariance = fitted.network.layers, start.covariance[used]
        of_free_run = None
        if linearized:
            # zero where this run diverges: what the weights add is not known there
            n_outputs = network.n_outputs
            _, _, of_free_run = run_state_sensitivities(layers, run, n_outputs, kept)
        found = run_filter(layers, run, covariance, network.noise, plan, of_free_run)
    n_kept, n_states = (len(kept), network.n_states) if linearized else (0, 0)
    of_weights, of_start = np.split(found.S, [n_kept], axis=1)
    paths = Paths(
        found.outputs,
        None,
        of_weights.reshape(*record.Y.shape, n_kept),
        of_start.reshape(*record.Y.shape, n_states),
        start.covariance,
        segment,
        _diverged(record, segments, found.outputs),
    )
    if linearized:
        paths = paths._replace(noise=_noise(network, found, paths, horizon))
    return paths


def _diverged(record, segments, outputs):
    """Rows without a prediction, but for those behind a missing input."""
    diverged = np.zeros(len(outputs), dtype=bool)
    missing = ~np.isfinite(record.U).all(axis=1)
    for _, _, first, stop in segments:
        gap = first + int(np.argmax(np.append(missing[first:stop], True)))
        diverged[first:gap] = np.isnan(outputs[first:gap]).any(axis=1)
    return diverged


def _of_start(paths):
    """Variance of each prediction by that of the state at the start of its segment."""
    if not len(paths.covariance):
        return np.zeros_like(paths.outputs)
    covariance = paths.covariance[paths.segment]
    return np.einsum(
        "toi,tij,toj->to", paths.by_start, covariance, paths.by_start, optimize=True
    )


def _noise(network, found, paths, horizon):
    """Variance of the noise since the last measured output."""
    fitted = network.fitted
    of_free_run = np.where(np.isnan(paths.outputs), np.nan, fitted.noise_std**2)
    if horizon == np.inf:
        return of_free_run
    with np.errstate(all="ignore"):
        since = np.maximum(found.variance - _of_start(paths), 0.0)
    return np.minimum(since + network.measurement, of_free_run)


def _variance(fitted, paths):
    n_rows, n_outputs, n_kept = paths.by_weights.shape
    flat = paths.by_weights.reshape(-1, n_kept)
    # the derivatives of an unstable run may exceed all numbers where it does not
    with np.errstate(all="ignore"):
        variance = np.einsum(
            "ij,ji->i", flat, apply_covariance(fitted.covariance, flat.T)
        ).reshape(n_rows, n_outputs)
        variance += _of_start(paths) + paths.noise
    return variance
