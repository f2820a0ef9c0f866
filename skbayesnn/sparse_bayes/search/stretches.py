"""The stretches into which a record is cut, which fits leave out in turn."""

import numpy as np

from ..learning.session_parts import stretches

# Stretches without which candidates cannot be told apart.
LEAST_STRETCHES = 5


def rows_for(lag):
    """Rows of a stretch that holds two windows."""
    return 2 * (lag + 1)


def cut_for(starts, n_folds, lags):
    """Folds, see `cut`, that allow a lag as long as can be of the sorted ``lags``."""
    for lag in reversed(lags):
        folds = cut(starts, n_folds, lag, lags[0])
        if longest_lag(starts, folds) >= lag:
            break
    return folds


def cut_measured(starts, measured, n_folds, lags):
    """Folds of all rows, of which each has as many ``measured`` ones as `cut_for` says.

    A stretch in a hole of the record has nothing to be scored. Other rows are in the
    fold of the measured one before them, or behind them at the start of a session.

    Returns
    -------
    folds : (n_rows,)
    longest : int
        The longest lag that they allow.
    """
    if not measured.any():
        measured = np.ones(len(measured), dtype=bool)
    before = np.append(0, np.cumsum(measured))[starts]
    sessions = np.unique(before)
    folds = cut_for(sessions, n_folds, lags)
    longest = longest_lag(sessions, folds)
    first = np.repeat(before[:-1], np.diff(starts))
    nearest = np.maximum(np.cumsum(measured) - 1, first)
    return folds[np.minimum(nearest, len(folds) - 1)], longest


def cut(starts, n_folds, lag, shortest_lag):
    """The number of the fold that each row is in, below ``n_folds``.

    Every session is cut into as many stretches as there are folds, if these hold two
    windows of ``lag`` rows. Shorter sessions are cut into fewer, or left whole, and the
    folds are dealt out to the stretches of all of them in turn; a few short ones are
    cut into `LEAST_STRETCHES` together. Sessions that do not hold two windows of
    ``shortest_lag`` share the fold of the one before: nothing can be scored there.
    """
    lengths = np.diff(starts)
    # also of what no integer of NumPy holds
    n_folds = int(min(n_folds, lengths.sum()))
    long_enough = lengths >= rows_for(shortest_lag)
    counts = np.clip(lengths // rows_for(lag), 1, n_folds) * long_enough
    least = least_stretches(n_folds)
    if 0 < counts.sum() < least:
        shares = least * lengths / lengths[long_enough].sum()
        counts = np.clip(np.ceil(shares).astype(int), 1, n_folds) * long_enough
    first = np.cumsum(counts) - counts
    first = np.where(long_enough, first, np.maximum(first - 1, 0))
    return (np.repeat(first, lengths) + stretches(starts, counts)) % n_folds


def least_stretches(n_folds):
    """Number of the stretches without which there is no search."""
    return min(n_folds, LEAST_STRETCHES)


def numbered(starts, folds):
    """The number of the stretch that each row is in, through all sessions."""
    begins = np.diff(folds, prepend=folds[0]) != 0
    begins[starts[1:-1]] = True
    return np.cumsum(begins)


def longest_lag(starts, folds):
    """The longest lag for which every fold has a stretch that holds two windows."""
    n_folds = folds.max() + 1
    lengths = [
        np.bincount(folds[start:stop], minlength=n_folds)
        for start, stop in zip(starts[:-1], starts[1:], strict=True)
    ]
    return int(np.max(lengths, axis=0).min()) // 2 - 1
