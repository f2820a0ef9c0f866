"""How well a simulator predicts one step ahead.

What is fitted to free runs explains what the inputs do. Where much of an output comes
from disturbances that last, its errors one step ahead are far from white: the values
before would tell most of them, and a fit to one-step errors would use that.
"""

import numpy as np

from ..learning.longer_lags import adjusted_fraction
from ..prediction import ensemble as ensembles
from ..records.lags import build_lag_matrix, complete_rows, make_lags
from ..records.layout import Record

# Rows that are looked at, at the end of the longest session, and lags of all signals.
ROWS, LAGS = 1000, 5
# Rows for each weight of the linear model: of fewer, it explains noise.
ROWS_PER_WEIGHT = 4


def explained_by_lags(ensemble, given):
    """The fraction of the squared one-step errors that a linear model of lags explains.

    Of all outputs together, each in units of its standard deviation, on training rows;
    NaN where there are too few.

    Parameters
    ----------
    ensemble : Ensemble
    given : TrainingRecord
    """
    longest = int(np.argmax(np.diff(given.starts)))
    end = given.starts[longest + 1]
    part = slice(max(given.starts[longest], end - ROWS), end)
    U, Y, n_known = given.U[part], given.Y[part], ensemble.max_lag
    if len(Y) <= n_known:
        return np.nan
    starts = np.array([0, len(Y)])
    record = Record(U, Y, None, starts)
    predicted = ensembles.forecast(ensemble, record, n_known, 1, False).mean
    lags = make_lags(U.shape[1], Y.shape[1], LAGS, LAGS, True)
    rows = complete_rows(U, Y, lags, starts)
    rows = rows[(rows >= n_known) & np.isfinite(predicted[rows]).all(axis=1)]
    if len(rows) < ROWS_PER_WEIGHT * (len(lags.lag) + 1):
        return np.nan
    scale = Y[rows].std(axis=0)
    errors = (Y - predicted)[rows] / np.where(scale > 0.0, scale, 1.0)
    regressors = build_lag_matrix(U, Y, lags, rows)
    return adjusted_fraction(np.empty((len(rows), 0)), regressors, errors)
