"""The horizontal axis of a record: its times, a sampling time, or row numbers."""

from typing import NamedTuple

import numpy as np

from .._time_axis import TimeAxis


class DrawnTime(NamedTuple):
    """Where the rows lie on the horizontal axis.

    values : (n_rows,) float64; of dates, as matplotlib counts days
    text : label of the axis
    are_dates : whether the ticks are dates
    """

    values: np.ndarray
    text: str
    are_dates: bool = False

    def prepare(self, axes):
        """Give the axes their limits and ticks."""
        if self.are_dates:
            from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

            locator = AutoDateLocator()
            axes.xaxis.set_major_locator(locator)
            axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        axes.set_xlim(self.values[0], self.values[-1] if len(self.values) > 1 else None)


def drawn_time(stamps, n_rows, sampling_time, unit):
    """The `DrawnTime` of so many rows.

    Parameters
    ----------
    stamps : (n_rows,) dates, durations or numbers, or None
    sampling_time : float or None
        Takes the place of the stamps, in this unit.
    """
    if sampling_time is not None:
        return DrawnTime(np.arange(n_rows) * sampling_time, f"Time ({unit})")
    if stamps is None:
        return DrawnTime(np.arange(n_rows) * 1.0, "Row")
    stamps = np.asarray(stamps)
    values, text = TimeAxis(stamps, True).values, "Time"
    if not (np.diff(values) > 0.0).all():
        # sessions whose clocks begin anew
        return DrawnTime(np.arange(n_rows) * 1.0, "Row")
    if stamps.dtype.kind == "M":
        from matplotlib.dates import date2num

        return DrawnTime(np.asarray(date2num(stamps)), text, True)
    if stamps.dtype.kind == "m":
        text = "Time (s)"
        values = stamps / np.timedelta64(1, "s")
    return DrawnTime(values, text)
