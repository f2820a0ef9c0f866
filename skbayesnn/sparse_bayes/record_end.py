"""The end of a record, from which a forecast starts."""

from typing import NamedTuple

import numpy as np

from .._saved_state import saved_as
from .records.lags import can_begin

# Of a record whose states are estimated: a filter has forgotten what was before.
MOST_ROWS = 2000


@saved_as("RecordEnd")
class RecordEnd(NamedTuple):
    """The last rows of a record: all from which a forecast may start.

    Inputs may be missing in them, and can still be filled.

    U, Y : (n_rows, n_inputs) and (n_rows, n_outputs), NaN where missing
    time : of the last row, as the stamps of the record; None where it is not known
    """

    U: np.ndarray
    Y: np.ndarray
    time: object


def end_for(ensemble, U, Y, time=None):
    """The `RecordEnd` of one session from which networks of any kind go on."""
    first = len(U)
    if not ensemble.has_states:
        first = _first_needed(U, Y, ensemble)
    if ensemble.filters:
        first = min(first, max(0, len(U) - MOST_ROWS))
    return RecordEnd(U[first:].copy(), Y[first:].copy(), time)


def last_window(U, Y, ensemble):
    """First row of the last window from which a run can start, or None.

    It has ``max_lag`` rows without a missing input, the last of which, as far as lags
    of outputs reach, have no missing output.
    """
    # in the row behind the record as well
    U, Y = (np.pad(array, [(0, 1), (0, 0)]) for array in (U, Y))
    session = np.array([0, len(Y)])
    ready = can_begin(U, Y, session, ensemble.max_lag, ensemble.output_reach)
    behind = np.flatnonzero(ready)
    return int(behind[-1]) - ensemble.max_lag if len(behind) else None


def _first_needed(U, Y, ensemble):
    """Where the rows begin in which the last window is, whether inputs are filled."""
    first = last_window(U, Y, ensemble)
    if first is not None:
        # once inputs are filled there may be a later one, behind this one
        return first
    first = last_window(np.zeros_like(U), Y, ensemble)
    if first is None:
        return len(Y)
    known = np.isfinite(U[: first + 1])
    # back to where each input that is missing there was measured
    last = [np.flatnonzero(column)[-1:] for column in known.T]
    return min((int(found[0]) for found in last if len(found)), default=first)
