r"""Whether lags beyond those of a model would explain what it leaves over.

The residuals r of the training rows, and the next lags of a signal, both without what
the regressors Z of the model say of them linearly: the fraction of :math:`\|r\|^2` that
a least-squares fit on these lags takes away, corrected for their number (adjusted
:math:`R^2`). A model that uses its regressors badly is not blamed on its lags.
"""

import numpy as np

from ..records.lags import Lags, build_lag_matrix, complete_rows

# Lags behind the longest of a signal: so many, as a dead time may lie between, or fewer
# where there are less than ten rows for each of them.
FEWEST, MOST, ROWS_EACH = 5, 20, 10


def explained_by_longer_lags(record, residuals):
    """Fractions of the residuals' variance that longer lags explain.

    Parameters
    ----------
    record : records.layout.Record
    residuals : (n, n_outputs)
        Of the rows whose windows are complete, in their order.

    Returns
    -------
    explained : list of float
        For each signal, inputs first; 0 where its lags do not help, NaN where rows are
        too few to tell.
    """
    U, Y, lags, starts = record
    rows = complete_rows(U, Y, lags, starts)
    explained = []
    for signal in range(lags.n_inputs + lags.n_outputs):
        further = _further(lags, signal, len(rows))
        known = np.isin(rows, complete_rows(U, Y, further, starts))
        Z = build_lag_matrix(U, Y, lags, rows[known])
        more = build_lag_matrix(U, Y, further, rows[known])
        explained.append(adjusted_fraction(Z, more, residuals[known]))
    return explained


def _further(lags, signal, n_rows):
    """The next lags of a signal behind the longest that the model has."""
    last = int(lags.lag[lags.signal == signal].max(initial=0))
    n_further = int(np.clip(n_rows // ROWS_EACH, FEWEST, MOST))
    lag = last + 1 + np.arange(n_further, dtype=np.int64)
    return Lags(np.full(n_further, signal), lag, *lags[2:])


def adjusted_fraction(Z, more, residuals):
    """The fraction that ``more`` regressors explain of what ``Z`` leave over.

    NaN where rows are too few to tell.
    """
    n_free = len(Z) - Z.shape[1] - 1
    n_left = n_free - more.shape[1]
    if n_left < 1:
        return np.nan
    known = np.column_stack([np.ones(len(Z)), Z])
    left = _without(known, residuals)
    total = np.sum(left**2)
    if not total > 0.0:
        return 0.0
    rest = np.sum(_without(_without(known, more), left) ** 2)
    return float(max(0.0, 1.0 - rest / total * n_free / n_left))


def _without(X, columns):
    """What is left of some columns after a least-squares fit on ``X``."""
    scale = np.linalg.norm(X, axis=0)
    X = X / np.where(scale > 0.0, scale, 1.0)
    return columns - X @ np.linalg.lstsq(X, columns)[0]
