r"""How many lags a model gets that was given none.

Linear ARX models with more and more lags are fitted without one stretch of the record
at a time, and their one-step errors there are compared. Of the numbers that err hardly
more than the best one, the smallest is taken. Where the record shows dead times, lags
behind them are compared with lags that begin at once.

The rows of each stretch are reduced to the triangle of their QR decomposition, which
has the same squared errors: the fits without a stretch, and the errors in it, follow
from the triangles. So a number of lags costs one pass through the record.
"""

from functools import partial

import numpy as np

from ..records.lags import (
    added_outputs,
    build_lag_matrix,
    complete_rows,
    n_complete_before,
    usual_length,
)
from .session_parts import stretches

CANDIDATES = (1, 2, 3, 5, 7, 10, 14, 20, 30)
# Stretches of every session that are left out in turn.
N_STRETCHES = 5
# Errors that differ by less are equal; and smaller ones, in standard deviations.
EQUAL, LEAST_ERROR = 1.02, 1e-10
# Rows per weight of a linear model, at least.
ROWS_PER_WEIGHT = 4


def choose_lag(make_record, dead_times=()):
    """The number of lags of all signals that have none given, and their dead times.

    Parameters
    ----------
    make_record : callable
        ``make_record(n, times)`` gives the training record with n lags of these
        signals, those of the inputs behind the dead times.
    dead_times : tuple of int
        Of each input, in rows; empty for none.

    Returns
    -------
    n_lags : int
        The first candidate where the record is too short to compare any.
    dead_times : tuple of int
        As given if the best error with them is the least, else empty.
    """
    candidates, rows = {}, np.arange(0)
    for times in dict.fromkeys([(), dead_times]):
        found, rows = _comparable(partial(make_record, times=times), rows)
        candidates |= {(n, times): record for n, record in found.items()}
    if len(candidates) < 2:
        return CANDIDATES[0], ()
    errors = {c: _held_out_error(record, rows) for c, record in candidates.items()}
    _, chosen = min(errors, key=errors.get)
    limit = EQUAL * min(errors.values())
    return next(c for c in errors if c[1] == chosen and errors[c] <= limit)


def longest_between_gaps(Y, starts):
    """The most lags of outputs with enough windows between gaps in ``Y``.

    Half as many as a single lag has are enough. Infinite where few outputs are missing,
    of ``Y`` (n_rows, n_outputs). Lags of inputs may be longer, and reach over gaps.
    """
    known = np.isfinite(Y).all(axis=1)
    if known.all():
        return np.inf
    before = n_complete_before(Y[:, :0], Y, starts)
    n_windows = {n: np.count_nonzero(known & (before >= n)) for n in CANDIDATES}
    enough = max(1, n_windows[CANDIDATES[0]] / 2)
    longest = max((n for n in CANDIDATES if n_windows[n] >= enough), default=1)
    return np.inf if longest == CANDIDATES[-1] else longest


def _comparable(make_record, rows):
    """Records by their number of lags, and rows with a complete window in all.

    Numbers that would cost half of the rows, because these lie in short sessions or
    beside gaps, or that leave too few rows for a fit, are left out. ``rows`` are those
    that others have; none at first.
    """
    candidates = {}
    for n in CANDIDATES:
        record = make_record(n)
        U, Y, lags, starts = record
        complete = complete_rows(U, Y, lags, starts)
        fits = len(complete) >= ROWS_PER_WEIGHT * (len(lags.lag) + 1)
        fits &= 2 * lags.max_lag < usual_length(starts)
        if not fits or 2 * len(complete) < len(rows):
            break
        candidates[n] = record
        rows = complete if not len(rows) else np.intersect1d(rows, complete)
    return candidates, rows


def _held_out_error(record, rows):
    """Geometric mean over the stretches, in standard deviations of the target."""
    U, Y, lags, starts = record
    regressors = build_lag_matrix(U, Y, lags, rows)
    target = Y[rows] - added_outputs(Y, lags, rows)
    columns = np.column_stack([np.ones(len(rows)), _standardised(regressors)])
    columns = np.column_stack([columns, _standardised(target)])
    parts = _held_out_parts(starts, rows)
    triangles = [np.linalg.qr(columns[part], mode="r") for part in parts]
    n_rows = [np.count_nonzero(part) for part in parts]
    n_known = columns.shape[1] - Y.shape[1]
    errors = []
    for k, held_out in enumerate(triangles):
        others = np.concatenate(triangles[:k] + triangles[k + 1 :])
        weights = np.linalg.lstsq(others[:, :n_known], others[:, n_known:])[0]
        left = held_out[:, n_known:] - held_out[:, :n_known] @ weights
        errors.append(np.linalg.norm(left) / np.sqrt(n_rows[k]))
    return float(np.exp(np.log(np.maximum(errors, LEAST_ERROR)).mean()))


def _held_out_parts(starts, rows):
    """Which of the ``rows`` are in each stretch that is left out, as masks.

    Rows that all are in one stretch of their sessions, as where outputs were measured
    for a short time only, are cut by themselves.
    """
    stretch = stretches(starts, N_STRETCHES)[rows]
    if len(np.unique(stretch)) == 1:
        stretch = stretches([0, len(rows)], N_STRETCHES)
    return [stretch == k for k in np.unique(stretch)]


def _standardised(columns):
    """Of mean 0 and variance 1; constant ones are 0."""
    columns = columns - columns.mean(axis=0)
    scale = columns.std(axis=0)
    return columns / np.where(scale > 0.0, scale, 1.0)
