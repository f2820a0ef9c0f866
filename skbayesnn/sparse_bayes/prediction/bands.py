"""What turns the standard deviations of a free run into bands that hold.

A posterior that is linearised around its mode, and noise that is fed back, leave out a
part of what a free run errs by, or count it twice: on test records of measured systems
their bands of 95 % held between 88 and 100 % of the rows. A factor that is learned on
held-out stretches corrects a part of this. Outside the range of the training record a
network extrapolates, and nothing that was learned there tells how wrong it may be.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..._saved_state import saved_as

# Fraction of the range of a signal by which it may leave this range, in the rows that
# a test has more than the training.
TOLERANCE = 0.1
# Fraction of the range of an input in which the training record may hold no value.
GAP = 0.5
# Fraction of a signal's size below which differences are those of rounding, also of
# what was float32 once.
_ROUNDING = 1e-7


@saved_as("Bands")
class Bands(NamedTuple):
    """What a model knows of its bands.

    factor : (n_outputs,) of the standard deviations of free runs
    low_inputs, high_inputs : (n_inputs,) range of the training record
    low_outputs, high_outputs : (n_outputs,)
    gaps : (n_inputs, 2), see `gaps_of`; None in files of earlier versions
    """

    factor: np.ndarray
    low_inputs: np.ndarray
    high_inputs: np.ndarray
    low_outputs: np.ndarray
    high_outputs: np.ndarray
    gaps: np.ndarray | None = None


def bands_of(U, Y, difference=False):
    """`Bands` of a training record, whose factors are 1.

    A model of differences does not depend on the level of its outputs: no level is out
    of its range.
    """
    low, high = (
        f(U, axis=0) if U.shape[1] else np.zeros(0) for f in (np.nanmin, np.nanmax)
    )
    infinite = np.full(Y.shape[1], np.inf)
    outputs = (-infinite, infinite)
    if not difference:
        outputs = np.nanmin(Y, axis=0), np.nanmax(Y, axis=0)
    return Bands(np.ones(Y.shape[1]), low, high, *outputs)


def gaps_of(U):
    """The values between which each input holds none, more than half of its range.

    As one that is switched between two levels, or has a single step. Of a system that
    may be nonlinear, such a record does not tell what happens between them.

    Returns
    -------
    gaps : (n_inputs, 2)
        NaN of inputs without such a gap.
    """
    gaps = np.full((U.shape[1], 2), np.nan)
    for gap, u in zip(gaps, U.T, strict=True):
        values = np.unique(u[~np.isnan(u)])
        steps = np.diff(values)
        rounding = _ROUNDING * np.abs(values).max(initial=0.0)
        if steps.max(initial=rounding) > max(GAP * np.ptp(values), rounding):
            k = steps.argmax()
            gap[:] = values[k : k + 2]
    return gaps


def excess(values, low, high):
    """How far values (n_rows, n_signals) are out of their range.

    In multiples of the range beyond `TOLERANCE`; 0 within it and where missing. A
    signal that was constant, but for rounding, is out of range by 1 wherever it differs
    by more than that.
    """
    return np.maximum(_relative_distance(values, low, high) - TOLERANCE, 0.0)


def excess_in_gaps(bands, U):
    """How far inputs (n_rows, n_inputs) are from both ends of a gap, as `excess`."""
    near, _ = _within_gaps(bands, U)
    return np.maximum(near - TOLERANCE, 0.0)


def _within_gaps(bands, U):
    """Distances (n_rows, n_inputs) from the nearer and the farther end of a gap.

    In multiples of the range; 0 outside of gaps, and where missing.
    """
    if bands.gaps is None:
        return np.zeros(U.shape), np.zeros(U.shape)
    width = np.where(
        np.isnan(bands.gaps[:, 0]), 1.0, bands.high_inputs - bands.low_inputs
    )
    with np.errstate(invalid="ignore"):
        ends = (U - bands.gaps[:, 0]) / width, (bands.gaps[:, 1] - U) / width
        near, far = np.minimum(*ends), np.maximum(*ends)
    within = near > 0.0
    return np.where(within, near, 0.0), np.where(within, far, 0.0)


def _relative_distance(values, low, high):
    """Distances from the range, in multiples of it; 0 where values are missing."""
    width, distance = high - low, _distance(values, low, high)
    rounding = _ROUNDING * np.maximum(np.abs(low), np.abs(high))
    differs = distance > rounding
    with np.errstate(divide="ignore", invalid="ignore"):
        multiples = np.where(width > rounding, distance / width, 1.0 + TOLERANCE)
    return np.where(differs, multiples, 0.0)


def _distance(values, low, high):
    """Distances from the range in the unit of the values; 0 where these are missing."""
    with np.errstate(invalid="ignore"):
        distance = np.fmax(low - values, values - high)
    return np.where(distance > 0.0, distance, 0.0)


def _unknown(relative):
    """What a model may err by at a distance from its range, both in multiples of it.

    At the end of the range it still knows value and slope; what it does not know, the
    curvature, adds the square of the distance. Beyond `TOLERANCE` the slope is unknown
    as well, and the distance itself is added.
    """
    return np.maximum(relative**2, relative - TOLERANCE)


def _unknown_of_inputs(bands, U):
    """The same for inputs (n_rows, n_inputs), also within gaps.

    At both ends of a gap the value is known. What a curve may deviate from the line
    between them is the product of the distances from the ends, times the range of the
    output: twice its standard deviation if it follows such an input.
    """
    near, far = _within_gaps(bands, U)
    distance = _relative_distance(U, bands.low_inputs, bands.high_inputs)
    return np.maximum(_unknown(distance), 2.0 * near * far)


def range_of(X, used):
    """Least and largest values (2, n_inputs) of the inputs ``used``, by their numbers.

    NaN of others, which are never out of their range.
    """
    known_range = np.full((2, X.shape[1]), np.nan)
    known_range[:, used] = X[:, used].min(axis=0), X[:, used].max(axis=0)
    return known_range


def unknown_beyond(known_range, X):
    """What a network may err by in rows (n_rows,), in deviations of the outputs.

    By the input that is farthest out of its range, of a network that has no lags.
    """
    # of inputs of 1e200 the square overflows
    with np.errstate(over="ignore"):
        unknown = _unknown(_relative_distance(X, *known_range))
    return unknown.max(axis=1, initial=0.0)


def with_factor(bands, forecast, record):
    """Standard deviations (n_rows, n_outputs) of a free run, with their factor.

    No factor makes them smaller than noise and start ask for: the noise is known from
    all rows of the training record, and what the first rows do not tell of the hidden
    states is one draw for a whole run, of which a record has few. And none makes them
    smaller where a run has met inputs that the training record has not: the factor was
    learned within its range, and what went wrong beyond it may stay in the states.
    """
    outside = _has_been_outside(bands, forecast, record)[:, None]
    factor = np.where(outside, np.maximum(bands.factor, 1.0), bands.factor)
    return np.maximum(factor * forecast.std, forecast.least)


def _has_been_outside(bands, forecast, record):
    """Whether an input of a free run was out of range, in a row or an earlier one.

    Or within a gap. By more than `TOLERANCE`, in the same session.
    """
    beyond = excess(record.U, bands.low_inputs, bands.high_inputs)
    outside = (beyond + excess_in_gaps(bands, record.U)).any(axis=1)
    # rows that were given are not those of the run
    outside &= (forecast.std != 0.0).any(axis=1)
    for start, stop in pairwise(record.starts):
        np.logical_or.accumulate(outside[start:stop], out=outside[start:stop])
    return outside


def widen(bands, forecast, record, max_lag, is_free_run, y_scale):
    """Standard deviations (n_rows, n_outputs) of bands, from those of a `Forecast`.

    Those of free runs get their factor. Where an input in the window of a row is out of
    range, what is `_unknown` at this distance is added, times the outputs' standard
    deviation ``y_scale``; and times the range of an output where a free run itself is
    out of it, in that row and those whose window it is in.
    """
    std = forecast.std
    # a run that is 1e200 off is uncertain by infinity
    with np.errstate(over="ignore", invalid="ignore"):
        variance = std**2
        if is_free_run:
            of_run = _of_run(bands, forecast.mean, max_lag, record.starts)
            variance = with_factor(bands, forecast, record) ** 2 + of_run**2
        of_rows = _unknown_of_inputs(bands, record.U).max(axis=1, initial=0.0)
        of_rows = _within(of_rows, max_lag, record.starts)
        variance = variance + (of_rows[:, None] * y_scale) ** 2
    # rows that were given stay exact
    return np.where(std == 0.0, 0.0, np.sqrt(variance))


def is_lost(bands, mean, y_scale):
    """Where a free run (n_rows, n_outputs) is too far out of range to say anything.

    What is unknown there is more than the outputs' standard deviation ``y_scale``, by
    which the mean of the training record errs.
    """
    # of a run that is 1e200 off the square overflows
    with np.errstate(over="ignore"):
        return _beyond_range(bands, mean) > y_scale


def _of_run(bands, mean, max_lag, starts):
    """What is unknown where a free run (n_rows, n_outputs) is out of its range."""
    unknown = _beyond_range(bands, mean)
    columns = [_within(column, max_lag, starts) for column in unknown.T]
    return np.column_stack(columns)


def _beyond_range(bands, mean):
    """The same by each row alone."""
    low, high = bands.low_outputs, bands.high_outputs
    distance, width = _distance(mean, low, high), high - low
    if not distance.any():
        return distance
    narrow = ~((width > 0.0) & (width < np.inf))
    width = np.where(narrow, 1.0, width)
    return np.where(narrow, distance, width * _unknown(distance / width))


def _within(values, n_before, starts):
    """The largest of each row's value and those of so many rows before, by session."""
    largest = values.copy()
    if not values.any():
        return largest
    for start, stop in pairwise(starts):
        for lag in range(1, min(n_before, stop - start - 1) + 1):
            part = largest[start + lag : stop]
            np.maximum(part, values[start : stop - lag], out=part)
    return largest
