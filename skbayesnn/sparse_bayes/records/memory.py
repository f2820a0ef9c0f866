"""Whether the past of a record tells anything of its next rows.

Rows that were shuffled, or drawn with replacement, have no past: what a lagged model
learns of them is noise. An array does not tell that it was shuffled, but its
correlations do.
"""

import numpy as np
from scipy.special import ndtri

# Fewer rows do not tell a weak memory from none, more are not needed.
FEWEST_ROWS, MOST_ROWS = 250, 20_000
LAGS = 10
# Probability with which rows without any memory pass for some that have one.
LEVEL = 0.01


def has_memory(U, Y, starts):
    """Whether outputs are correlated with anything in the rows before them.

    Compared are the outputs and their squares with all signals and their squares at
    lags of 1 to 10. True where rows are too few to tell, or outputs are constant.

    Parameters
    ----------
    U, Y : (n_rows, n_inputs) and (n_rows, n_outputs), NaN where missing
    starts : (n_sessions + 1,)
    """
    n_rows = min(len(Y), MOST_ROWS)
    if np.isfinite(Y[:n_rows]).sum(axis=0).max(initial=0) < FEWEST_ROWS:
        return True
    session = np.repeat(np.arange(len(starts) - 1), np.diff(starts))[:n_rows]
    outputs = _with_squares(Y[:n_rows])
    if not outputs.any():
        # constant outputs are in any order
        return True
    signals = np.hstack([_with_squares(U[:n_rows]), outputs])
    n_tests = LAGS * outputs.shape[1] * signals.shape[1]
    bound = ndtri(1.0 - 0.5 * LEVEL / n_tests)
    for lag in range(1, LAGS + 1):
        together = (session[lag:] == session[:-lag])[:, None]
        later = np.where(together, outputs[lag:], 0.0)
        correlation = later.T @ np.where(together, signals[:-lag], 0.0)
        # missing values are 0, and no part of a sum
        n_pairs = (later != 0.0).T.astype(float) @ (signals[:-lag] != 0.0)
        if (np.abs(correlation) > bound * np.sqrt(n_pairs)).any():
            return True
    return False


def _with_squares(values):
    """Columns and their squares, of mean 0 and variance 1; 0 where missing."""
    both = np.hstack([values, values**2])
    # what is infinite by its square is left out, as what is missing
    both[~np.isfinite(both)] = np.nan
    known = np.isfinite(both)
    count = np.maximum(known.sum(axis=0), 1)
    both = np.where(known, both, 0.0)
    both -= both.sum(axis=0) / count
    both[~known] = 0.0
    spread = np.sqrt((both**2).sum(axis=0) / count)
    return both / np.where(spread > 0.0, spread, 1.0)
