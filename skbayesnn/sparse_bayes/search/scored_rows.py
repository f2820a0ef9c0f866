"""The rows whose errors count: those that models of all kinds can predict."""

import numpy as np

from ..records.lags import is_complete, n_complete_before


def rows_for_all(data, n_before, focus):
    """The data, where errors count only in rows that models of all kinds can predict.

    A prediction begins behind rows without a missing value: lags need a complete
    window, and hidden states need some rows to be estimated from. Predictions of single
    steps need such rows before each row. A free run needs them before its first row
    alone, and goes on until an input is missing. Where this would leave less than half
    of the measured rows of some fold, fewer complete rows are asked for.

    Parameters
    ----------
    data : CutRecord
    n_before : int
        Complete rows that are asked for.
    focus : {"simulation", "prediction"}

    Returns
    -------
    data : CutRecord
        With ``scored``.
    """
    measured = _predictable(data, 0, focus)
    n_measured = np.bincount(data.folds[measured], minlength=1)
    # bound: halved down to no row
    while n_before:
        scored = _predictable(data, n_before, focus)
        left = np.bincount(data.folds[scored], minlength=len(n_measured))
        if (2 * left >= n_measured).all():
            return data._replace(scored=scored)
        n_before //= 2
    return data._replace(scored=measured)


def _predictable(data, n_before, focus):
    """Measured rows that a prediction reaches, with complete rows before it."""
    U, Y, starts = data.U, data.Y, data.starts
    if focus != "simulation":
        return is_complete(U, Y) & (n_complete_before(U, Y, starts) >= n_before)
    known, _, has_begun = runs_between_missing_inputs(U, Y, starts, n_before)
    return known & np.isfinite(Y).any(axis=1) & has_begun


def runs_between_missing_inputs(U, Y, starts, n_before):
    """Free runs that begin behind ``n_before`` complete rows.

    They end where an input is missing.

    Returns
    -------
    known : (n_rows,) bool, whether all inputs of a row are known
    stretch : (n_rows,) first row of the stretch of known inputs that each row is in
    has_begun : (n_rows,) bool, whether a run has begun in this stretch, in the row or
        before it
    """
    rows, known = np.arange(len(Y)), is_complete(U, Y[:, :0])
    stretch = rows - n_complete_before(U, Y[:, :0], starts)
    may_begin = known & (n_complete_before(U, Y, starts) >= n_before)
    last_begin = np.maximum.accumulate(np.where(may_begin, rows, -1))
    return known, stretch, last_begin >= stretch


def rows_behind(starts):
    """For each row, the number of rows before it in its session."""
    return np.arange(starts[-1]) - np.repeat(starts[:-1], np.diff(starts))
