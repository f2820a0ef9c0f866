"""The end of a record, from which a forecast starts."""

from typing import NamedTuple

import numpy as np

from .._saved_state import saved_as

# Of a record whose states are estimated, for each state.
ROWS_PER_STATE = 50


@saved_as("RecordEnd")
class RecordEnd(NamedTuple):
    """The last complete window of a record, and what follows it.

    For networks with states, the last rows.

    U, Y : (n_rows, n_inputs) and (n_rows, n_outputs), the window first; no rows where
        there is none
    time : of the last row, as the stamps of the record; None where it is not known
    is_complete : whether there is a window
    """

    U: np.ndarray
    Y: np.ndarray
    time: object
    is_complete: bool


def end_for(ensemble, U, Y, time=None):
    """The `RecordEnd` of one session from which networks of any kind go on."""
    if ensemble.has_states:
        return _end_of_states(U, Y, ensemble.members[0].n_states, time)
    return end_of_record(U, Y, ensemble.max_lag, time)


def _end_of_states(U, Y, n_states, time):
    """The last rows behind a missing input: a filter takes those outputs it finds."""
    missing = np.flatnonzero(~np.isfinite(U).all(axis=1))
    first = max(len(U) - ROWS_PER_STATE * n_states, 0, *(missing[-1:] + 1))
    return RecordEnd(U[first:].copy(), Y[first:].copy(), time, True)


def end_of_record(U, Y, max_lag, time=None):
    """The `RecordEnd` of one session.

    Parameters
    ----------
    U, Y : (n_rows, n_inputs) and (n_rows, n_outputs)
    max_lag : int
        Rows of a window.
    """
    complete = np.isfinite(U).all(axis=1) & np.isfinite(Y).all(axis=1)
    # rows before each one that are complete without a gap
    gaps = np.where(complete, -1, np.arange(len(Y)))
    length = np.arange(len(Y)) - np.maximum.accumulate(gaps)
    ends = np.flatnonzero(length >= max_lag)
    if max_lag == 0:
        return RecordEnd(U[:0].copy(), Y[:0].copy(), time, True)
    if not len(ends):
        return RecordEnd(U[:0].copy(), Y[:0].copy(), time, False)
    first = ends[-1] + 1 - max_lag
    return RecordEnd(U[first:].copy(), Y[first:].copy(), time, True)
