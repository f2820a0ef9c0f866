"""Months, quarters, working days: steps of time that are no fixed span.

pandas knows them. Without it, times of rows that follow in such steps are not known.
"""

import warnings

import numpy as np

__all__ = ["calendar_times", "could_be_months", "find_calendar"]

# Rows at the end by which a calendar is known: a year of months and more.
KNOWN_BY = 25
DAY = 86400.0
MONTH = 30.436875 * DAY
# A step of months is not shorter or longer than their mean by more: February is.
SHORTER, LONGER = 2.5 * DAY, 1.5 * DAY


def find_calendar(stamps, zone, frequency=None):
    """Name that pandas has for the steps of stamps; None where they are a fixed span.

    Parameters
    ----------
    stamps : (n_rows,) array
    zone : str or None
        Time zone, in which days may have 23 or 25 hours.
    frequency : offset of pandas, default=None
        That of their index, where it has one.
    """
    if stamps.dtype.kind != "M" or len(stamps) < 2:
        return None
    if stamps[-1] - stamps[-2] < np.timedelta64(20, "h"):
        return None
    try:
        from pandas.tseries import offsets
        from pandas.tseries.frequencies import to_offset
    except ImportError:
        return None
    frequency = frequency or _inferred(stamps[-KNOWN_BY:], zone)
    if frequency is None:
        return None
    # days are ticks in older releases
    are_days = isinstance(frequency, offsets.Day | offsets.Week)
    if zone is None if are_days else isinstance(frequency, offsets.Tick):
        return None
    try:
        # holidays are not part of a name
        is_named = to_offset(frequency.freqstr) == frequency
    except ValueError:
        return None
    return frequency.freqstr if is_named else None


def _inferred(stamps, zone):
    """The offset of pandas by which stamps follow each other, or None."""
    from pandas import infer_freq
    from pandas.tseries.frequencies import to_offset

    if len(stamps) < 3:
        return None
    with warnings.catch_warnings():
        # of what a future release returns
        warnings.simplefilter("ignore")
        return to_offset(infer_freq(_in_zone(stamps, zone)))


def _in_zone(stamps, zone):
    """Stamps, in universal time if they have a zone, as an index of pandas."""
    from pandas import DatetimeIndex

    index = DatetimeIndex(stamps)
    return index if zone is None else index.tz_localize("UTC").tz_convert(zone)


def calendar_times(last, calendar, zone, n_rows):
    """Times (n_rows,) that follow on a last one by a calendar; None if not known."""
    try:
        from pandas import date_range
    except ImportError:
        return None
    start = _in_zone(np.array([last]), zone)
    try:
        times = date_range(start[0], periods=n_rows + 1, freq=calendar)
    except ValueError:
        # releases differ in names, and times end somewhere
        return None
    if times[0] != start[0]:
        return None
    times = times[1:]
    return (times if zone is None else times.tz_convert("UTC").tz_localize(None)).values


def could_be_months(seconds):
    """How many months a step may be, 0 where it is none."""
    n_months = round(seconds / MONTH)
    off = seconds - n_months * MONTH
    return n_months if -SHORTER <= off <= LONGER else 0
