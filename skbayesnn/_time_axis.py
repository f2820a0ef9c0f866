"""When the rows of a record were taken: stamps, their order, holes between them.

Stamps come as an index of times, of pandas, or as a column named "time" of X or y. An
index of numbers, as pandas gives every frame, tells no time; but where it jumps, rows
are missing or in another order. An index of texts tells none either, and may hold times
that were not read.
"""

import functools
import re
import sys
import warnings
from typing import NamedTuple

import numpy as np

from ._calendar import calendar_times, could_be_months, find_calendar
from ._validation import (
    as_columns,
    check_container,
    check_names_differ,
    check_sessions,
    columns_of_times,
    session_starts,
)
from ._warnings import warn_caller
from .exceptions import SamplingWarning

__all__ = [
    "TimeAxis",
    "check_continuation",
    "check_time",
    "outputs_alone",
    "split_record",
    "split_sessions",
    "split_time",
    "times_after",
    "without_time",
]

COLUMN = "time"
# A step of so many sampling times is a hole.
HOLE = 1.5
# What texts of times hold at least: hours and minutes, a year, or a date with slashes.
# Pandas makes times of more than these, such as of "12" or "1.2.3".
TIME_IN_TEXT = re.compile(r"\d:\d\d|(?<!\w)(1[6-9]|2[01])\d\d(?!\d)|\d/\d+/\d\d")
# Fraction by which the sampling times of two records may differ.
TOLERANCE = 0.01


class TimeAxis(NamedTuple):
    """Stamps of the rows of a record.

    stamps : (n_rows,) datetime64, timedelta64 or numbers, NaT or NaN where missing
    is_time : False for numbers of rows
    zone : name of the time zone of stamps, which are in universal time then
    texts : what has an index of texts that look like times, and the first of these;
        stamps are the numbers of the rows then
    frequency : offset of pandas that the index has, or None
    """

    stamps: np.ndarray
    is_time: bool
    zone: str | None = None
    texts: tuple | None = None
    frequency: object = None

    @property
    def values(self):
        """The stamps as numbers: seconds since the first, or what was given."""
        if self.stamps.dtype.kind in "mM":
            return (self.stamps - self.stamps[0]) / np.timedelta64(1, "s")
        return self.stamps.astype(np.float64)

    @property
    def calendar(self):
        """Name of the steps in pandas, such as "MS"; None for a fixed span."""
        return find_calendar(self.stamps, self.zone, self.frequency)

    def text(self, row):
        """The stamp of a row for a message."""
        return f"{self.stamps[row]} UTC" if self.zone else f"{self.stamps[row]}"

    @property
    def unit(self):
        """Of `values`: "s", or None where it is not known."""
        return "s" if self.stamps.dtype.kind in "mM" else None


def split_time(data, name):
    """The data without a column named "time", and its `TimeAxis` or None."""
    check_container(data, name)
    data, axis = _split_column(data, name)
    if axis is None:
        axis = _axis_of_index(getattr(data, "index", None), name)
    _refuse_other_times(data, name)
    return data, axis


def _split_column(data, name):
    """The same, of the column alone, not of an index."""
    columns = getattr(data, "columns", None)
    if columns is None or COLUMN not in list(columns):
        return data, None
    check_names_differ(data, name)
    stamps, zone = _without_zone(data[COLUMN])
    stamps = np.asarray(stamps)
    if stamps.dtype.kind not in "mMiuf":
        raise ValueError(
            f"The column {COLUMN!r} of {name} is the time of each row: expected "
            f"dates, durations or numbers, got {stamps.dtype}. Convert it, as "
            "pandas.to_datetime does, or rename it if it is no time."
        )
    # polars takes no keyword, pandas no bare name
    is_polars = type(data).__module__.startswith("polars")
    data = data.drop(COLUMN) if is_polars else data.drop(columns=COLUMN)
    return data, TimeAxis(stamps, True, zone)


def without_time(data, name):
    """The data without a column named "time"; an index may be what it is."""
    check_container(data, name)
    return _split_column(data, name)[0]


def outputs_alone(data, name):
    """Measured or predicted outputs (n_rows, n_outputs), without a column "time"."""
    return as_columns(without_time(data, name), name)


def _refuse_other_times(data, name):
    """Refuse times in a column that is no signal: libraries make numbers of them."""
    times = columns_of_times(data)
    if times:
        raise ValueError(
            f"The column {times[0]!r} of {name} holds times, which are no signal. If "
            f"they are those of the rows, rename it to {COLUMN!r}, or make it the "
            "index of a frame of pandas; leave it out otherwise."
        )


def _axis_of_index(index, name):
    """The `TimeAxis` of an index of pandas, or None; ``name`` is what has the index."""
    dtype = getattr(index, "dtype", None)
    if dtype is None:
        return None
    if getattr(index, "nlevels", 1) > 1:
        return _refuse_levels_of_times(index)
    if hasattr(index, "to_timestamp"):
        index = index.to_timestamp()
    frequency = getattr(index, "freq", None)
    index, zone = _without_zone(index)
    kind = getattr(index.dtype, "kind", "O")
    if kind in "mMiu":
        stamps = index.to_numpy()
        return TimeAxis(stamps, kind in "mM", zone, frequency=frequency)
    if not (type(index).__module__.startswith("pandas") and len(index)):
        return None
    # the first and the last one: a record may be long
    if _is_text_of_time(index[0]) and _is_text_of_time(index[-1]):
        return TimeAxis(np.arange(len(index)), False, texts=(name, index[0]))
    return None


def _is_text_of_time(label):
    """Whether a label of an index of pandas is a text that can be read as a time."""
    return isinstance(label, str) and _can_be_read(label)


# a prediction row by row asks several times about the same texts
@functools.lru_cache(maxsize=32)
def _can_be_read(label):
    """Whether a text looks like a time, and pandas reads it as one."""
    if not TIME_IN_TEXT.search(label):
        return False
    try:
        # a number, such as a year
        float(label)
        return False
    except ValueError:
        pass
    with warnings.catch_warnings():
        # of formats that are ambiguous
        warnings.simplefilter("ignore")
        try:
            # imported by whoever made the index
            sys.modules["pandas"].to_datetime(label)
        except (ValueError, OverflowError):
            return False
    return True


def _refuse_levels_of_times(index):
    """Refuse an index of several levels of which one is a time; others tell none."""
    # a zone makes a type of pandas, whose kind is that of times
    are_times = [getattr(level.dtype, "kind", "O") in "mM" for level in index.levels]
    if not any(are_times):
        return None
    other = are_times.index(False) if False in are_times else 0
    raise ValueError(
        f"The index has {index.nlevels} levels, {list(index.names)}, one of them a "
        "time: lags would reach from one record into the next. Keep the level of times "
        f"alone, as X.droplevel({other}) does, and pass the other one as sessions, as "
        f"X.index.get_level_values({other}) gives it."
    )


def _without_zone(stamps):
    """Stamps in universal time, in which no hour is twice, and their zone or None."""
    dtype = getattr(stamps, "dtype", None)
    zone = getattr(dtype, "time_zone", None)
    if zone is not None:
        # a series of polars
        return stamps.dt.convert_time_zone("UTC").dt.replace_time_zone(None), zone
    zone = getattr(dtype, "tz", None)
    if zone is None:
        return stamps, None
    if hasattr(stamps, "dt"):
        return stamps.dt.tz_convert("UTC").dt.tz_localize(None), str(zone)
    return stamps.tz_convert("UTC").tz_localize(None), str(zone)


def split_record(X, y, names=("X", "y")):
    """X and y without a column "time", and the `TimeAxis` of both, or None.

    ``names`` are what messages call them.

    Raises
    ------
    ValueError
        If the rows of X and y are not of the same times, or are the same rows of an
        index in another order.
    """
    X, of_inputs = split_time(X, names[0])
    y, of_outputs = split_time(y, names[1])
    _check_agreement(of_inputs, of_outputs, names)
    for axis in (of_inputs, of_outputs):
        if axis is not None and axis.is_time:
            return X, y, axis
    return X, y, of_inputs if of_inputs is not None else of_outputs


def _check_agreement(of_inputs, of_outputs, names):
    if of_inputs is None or of_outputs is None:
        return
    if of_inputs.texts or of_outputs.texts:
        return
    one, other = of_inputs.stamps, of_outputs.stamps
    if len(one) != len(other) or one.dtype.kind != other.dtype.kind:
        # numbers of rows that are compared later, or one index that is no time
        return
    differ = np.flatnonzero(one != other)
    if not len(differ):
        return
    row = differ[0]
    if of_inputs.is_time:
        raise ValueError(
            f"The times of {' and '.join(names)} contradict each other in "
            f"{len(differ)} rows, the first of them row {row}: "
            f"{of_inputs.text(row)} and {of_outputs.text(row)}. Join both by time, or "
            "pass arrays, whose rows are taken by their order."
        )
    if np.array_equal(np.sort(one), np.sort(other)):
        raise ValueError(
            f"The indices of {' and '.join(names)} have the same rows in another "
            f"order, from row {row} on: {one[row]} and {other[row]}. Sort both alike, "
            "as y.loc[X.index] does, or pass arrays."
        )


def split_sessions(sessions, axis, n_rows):
    """First row of every session, and the end; holes end one for "infer"."""
    if not (isinstance(sessions, str) and sessions == "infer"):
        return session_starts(check_sessions(sessions, n_rows), n_rows)
    if axis is not None and axis.texts:
        raise ValueError(
            f"sessions='infer' splits a record where time has a hole. {_of_texts(axis)}"
        )
    if axis is None:
        raise ValueError(
            "sessions='infer' splits a record where time has a hole: X or y must have "
            "an index of times, or a column named 'time'. Pass the id of the record "
            "of each row instead."
        )
    starts = np.array([0, n_rows])
    _check_order(axis, starts)
    steps = _steps(axis, starts)
    holes = 1 + np.flatnonzero(steps > HOLE * _sampling_time(steps))
    return np.concatenate([[0], holes, [n_rows]]).astype(np.int64)


def check_time(axis, starts, expected=None):
    """Sampling time of a record, seconds or what its stamps are in; None without.

    Parameters
    ----------
    axis : TimeAxis or None
    starts : (n_sessions + 1,) array
        First row of every session, and the end.
    expected : float, default=None
        The sampling time of the training record.

    Raises
    ------
    ValueError
        For stamps that are missing, repeated or not in order within a session.

    Warns
    -----
    SamplingWarning
        For holes within a session, another sampling time than expected, numbers of rows
        that are not in order, and texts that look like times.
    """
    if axis is None or len(axis.stamps) < 2:
        return None
    if axis.texts:
        warn_caller(_of_texts(axis), SamplingWarning)
        return None
    if not axis.is_time:
        _warn_of_rows(axis, starts)
        return None
    _check_order(axis, starts)
    steps = _steps(axis, starts)
    sampling_time = _sampling_time(steps)
    if not np.isfinite(sampling_time):
        return None
    _warn_of_holes(axis, steps, sampling_time, len(starts) > 2)
    if expected is not None and _differ(axis, sampling_time, expected):
        warn_caller(
            f"The rows are {_span(sampling_time, axis)} apart, and "
            f"{_span(expected, axis)} in the training record: lags count rows, so the "
            "model predicts another speed. Resample the record.",
            SamplingWarning,
        )
    return sampling_time


def check_continuation(last, axis, sampling_time):
    """Times of rows that follow on a record (n_rows,), or None where not known.

    Parameters
    ----------
    last : stamp of the last row of the record, or None
    axis : TimeAxis or None
        Of the rows that follow.
    sampling_time : float or None

    Raises
    ------
    ValueError
        If they begin before the record ends, or are not in order.

    Warns
    -----
    SamplingWarning
        For a hole between both, or other ones as `check_time` tells.
    """
    if axis is None or not (axis.is_time or axis.texts):
        return None
    check_alone(axis, sampling_time)
    if axis.texts:
        return None
    if last is None or np.asarray(last).dtype.kind != axis.stamps.dtype.kind:
        return axis.stamps
    first = axis.stamps[0]
    if not last < first:
        raise ValueError(
            f"The rows to forecast must follow on the record, which ends at {last}; "
            f"they begin at {first}."
        )
    names = "The record", "the rows to forecast", "X_past and y_past"
    _warn_of_gap(last, first, sampling_time, *names)
    return axis.stamps


def check_alone(axis, sampling_time):
    """As `check_time`, of rows of one session."""
    if axis is not None:
        check_time(axis, np.array([0, len(axis.stamps)]), sampling_time)


def _warn_of_gap(last, first, sampling_time, record, rows, remedy):
    """Warn where rows do not follow directly on a record."""
    axis = TimeAxis(np.array([last, first]), True)
    step = axis.values[1] - axis.values[0]
    if sampling_time is not None and step > HOLE * sampling_time:
        warn_caller(
            f"{record} ends at {last}, and {rows} begin {_span(step, axis)} later, at "
            f"{first}; the sampling time is {_span(sampling_time, axis)}. They are "
            f"taken to follow without a gap: pass {remedy} up to their begin.",
            SamplingWarning,
        )


def check_start(axis, X_init, y_init, sampling_time):
    """Check the times of rows from which a run starts.

    Without ``X_init`` they are the first of the rows to predict, whose ``axis`` is a
    `TimeAxis` or None; with it they come before these. ``sampling_time`` is that of the
    training record, or None.

    Raises
    ------
    ValueError
        If their times say otherwise, or contradict each other.

    Warns
    -----
    SamplingWarning
        For holes among rows that come before, and behind them, and as `check_time`.
    """
    _, of_outputs = split_time(y_init, "y_init")
    if X_init is not None:
        _, of_inputs = split_time(X_init, "X_init")
        _check_agreement(of_inputs, of_outputs, ("X_init", "y_init"))
        of_outputs = of_outputs if of_inputs is None else of_inputs
        # texts in the index of X are warned of already
        if axis is None or not axis.texts:
            check_alone(of_outputs, sampling_time)
    if not _are_comparable(axis, of_outputs):
        return
    first, known = axis.stamps, of_outputs.stamps
    if X_init is None and not np.array_equal(first[: len(known)], known):
        raise ValueError(
            f"y_init begins at {known[0]} and ends at {known[-1]}, but without X_init "
            "it holds the outputs of the first rows of X, which begin at "
            f"{first[0]}. For outputs before X, pass their inputs as X_init, or pass "
            "arrays."
        )
    if X_init is not None and not known[-1] < first[0]:
        raise ValueError(
            f"X must follow on X_init and y_init, which end at {known[-1]}; it begins "
            f"at {first[0]}."
        )
    if X_init is not None:
        names = "X_init", "the rows of X", "X_init and y_init"
        _warn_of_gap(known[-1], first[0], sampling_time, *names)


def _are_comparable(one, other):
    """Whether both are times of one kind."""
    if one is None or other is None or not (one.is_time and other.is_time):
        return False
    return one.stamps.dtype.kind == other.stamps.dtype.kind


def times_after(last, sampling_time, n_rows, calendar=None, zone=None):
    """Times of rows that follow on a record (n_rows,), None if its are not known.

    Parameters
    ----------
    last : stamp of the last row of the record, or None
    sampling_time : float or None
    n_rows : int
    calendar, zone : of the `TimeAxis` of the record
    """
    if last is None or sampling_time is None:
        return None
    kind = np.asarray(last).dtype.kind
    if kind == "M" and calendar is not None:
        return calendar_times(last, calendar, zone, n_rows)
    if kind == "M" and could_be_months(sampling_time):
        # they differ in length
        return None
    behind = sampling_time * np.arange(1, n_rows + 1)
    if kind not in "mM":
        return last + behind
    return last + np.round(behind * 1e9).astype("timedelta64[ns]")


def _steps(axis, starts):
    """Time from each row to the next (n_rows - 1,), NaN from session to session."""
    steps = np.diff(axis.values)
    steps[starts[1:-1] - 1] = np.nan
    return steps


def _sampling_time(steps):
    """The median step, NaN without any."""
    steps = steps[np.isfinite(steps)]
    return float(np.median(steps)) if len(steps) else np.nan


def _differ(axis, sampling_time, expected):
    """Whether a record has another sampling time; months differ in length."""
    if abs(sampling_time / expected - 1.0) <= TOLERANCE:
        return False
    if axis.stamps.dtype.kind != "M":
        return True
    n_months = could_be_months(sampling_time)
    return not n_months or n_months != could_be_months(expected)


def _span(seconds, axis):
    """A span of time, with its unit where that is known."""
    return f"{seconds:.6g} {axis.unit}" if axis.unit else f"{seconds:.6g}"


def _check_order(axis, starts):
    """Refuse stamps that are missing, repeated or not in order."""
    stamps = axis.stamps
    missing = np.flatnonzero(stamps != stamps)
    if len(missing):
        raise ValueError(
            f"The time is missing in {len(missing)} rows, the first of them row "
            f"{missing[0]}. Fill it in, or leave the rows out."
        )
    steps = _steps(axis, starts)
    for wrong, what, remedy in (
        (steps < 0.0, "not in order", "Sort the record by time"),
        (steps == 0.0, "repeated", "Keep one row of each time"),
    ):
        rows = 1 + np.flatnonzero(wrong)
        if len(rows):
            row = rows[0]
            raise ValueError(
                f"Times are {what} in {len(rows)} rows, the first of them row {row}: "
                f"{axis.text(row - 1)} and {axis.text(row)}. {remedy}; if a new record "
                "begins there, pass sessions. Local times come twice, or go back, "
                "where summer time ends: give them their time zone, or take UTC."
            )


def _warn_of_holes(axis, steps, sampling_time, with_sessions):
    holes = steps > HOLE * sampling_time
    rows = 1 + np.flatnonzero(holes | (steps < sampling_time / HOLE))
    if not len(rows):
        return
    row = rows[0]
    remedy = (
        "Lags count rows: pass sessions='infer' to begin a new record after each hole, "
        "or resample the record."
    )
    if with_sessions and holes.any():
        remedy = (
            "Lags count rows, and the sessions that were passed contain these holes: "
            "begin a new id after each, or resample the records. sessions='infer', in "
            "place of ids, begins a new record after each hole, and so also separates "
            "records between which there is one."
        )
    elif with_sessions:
        remedy = "Lags count rows: resample the records."
    warn_caller(
        f"Most rows are {_span(sampling_time, axis)} apart in time; {len(rows)} of the "
        f"steps differ. The first of these leads to row {row}, from "
        f"{axis.text(row - 1)} to {axis.text(row)}. {remedy}",
        SamplingWarning,
    )


def _of_texts(axis):
    """What is to be done about an index of texts that look like times."""
    name, text = axis.texts
    return (
        f"The index of {name} holds texts that look like times ({text!r}). They are "
        "not read. Use pd.read_csv(..., parse_dates=True), or "
        f"{name}.index = pd.to_datetime({name}.index)."
    )


def _warn_of_rows(axis, starts):
    """Warn of numbers of rows that do not count up."""
    steps = _steps(axis, starts)
    uneven = (steps != _sampling_time(steps)) | (steps <= 0.0)
    rows = 1 + np.flatnonzero(uneven & np.isfinite(steps))
    if len(rows):
        row = rows[0]
        warn_caller(
            f"The index of the rows does not count up evenly in {len(rows)} places; "
            f"the first is row {row}, from {axis.stamps[row - 1]} to "
            f"{axis.stamps[row]}. Lags count rows, which must be in the order of time "
            "without gaps: cross-validate by TimeSeriesSplit, without shuffling or "
            "bootstrap, pass sessions where records meet, or reset the index.",
            SamplingWarning,
        )
