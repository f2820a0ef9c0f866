"""Runs of fitted networks through the stretches that their fits did not see."""

from typing import NamedTuple

import numpy as np

from ..records.lags import complete_rows, union_of_lags
from ..records.layout import Record

# Rows before a stretch from which a free run through it begins, at most.
RUN_UP = 2000


class HeldOutRun(NamedTuple):
    """A part of one session, from rows before a stretch to its end.

    record : Record
    n_known : rows at its start that a run takes as measured
    judged : (n_rows,) bool, the rows of the stretch behind them
    target : (n_rows, n_outputs), NaN where outputs are missing or doubtful
    """

    record: Record
    n_known: int
    judged: np.ndarray
    target: np.ndarray


def by_stretch(networks, kept):
    """The fits of the candidates that were kept, by the stretch that they did not see.

    ``networks`` are those of all candidates, by candidate and stretch.
    """
    found = {}
    for (candidate, fold), network in networks.items():
        if candidate in kept:
            found.setdefault(fold, []).append(network)
    return dict(sorted(found.items()))


def held_out_runs(networks, fold, data):
    """`HeldOutRun` through a stretch, one per session, which all networks can make."""
    of_lags = [network.lags for network in networks if hasattr(network, "lags")]
    lags = union_of_lags(of_lags) if of_lags else None
    n_known = max(network.max_lag for network in networks)
    for start, stop in zip(data.starts[:-1], data.starts[1:], strict=True):
        held_out = start + np.flatnonzero(data.folds[start:stop] == fold)
        rows = _rows(data, lags, held_out, start)
        if rows is None:
            continue
        U, Y = data.U[rows], data.Y[rows]
        judged = data.folds[rows] == fold
        judged[:n_known] = False
        target = data.without_doubtful(data.Y)[rows]
        record = Record(U, Y, lags, np.array([0, len(U)]))
        yield HeldOutRun(record, n_known, judged, target)


def _rows(data, lags, held_out, first):
    """Rows of the free run through a stretch; None where none can begin before it."""
    if not len(held_out):
        return None
    begin = max(first, held_out[0] - RUN_UP)
    stop = held_out[-1] + 1
    part = slice(begin, stop)
    if lags is None:
        # hidden states need no complete window
        return part
    complete = complete_rows(
        data.U[part], data.Y[part], lags, np.array([0, stop - begin])
    )
    return slice(begin + complete[0] - lags.max_lag, stop) if len(complete) else None
