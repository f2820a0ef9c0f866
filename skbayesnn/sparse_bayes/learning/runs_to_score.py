"""Free runs and single steps through a record, laid out for their errors."""

import numpy as np

from ..records.lags import added_outputs, build_lag_matrix, complete_rows
from ..records.layout import free_run_data
from .problem import scaled_data


def free_runs_through(record, scaling, Y):
    """Data of free runs through a record, scored against ``Y`` where that is not NaN.

    Each run starts from measured outputs, passes through those that are missing, and
    ends where an input is, or with the last row that is scored. Errors of single steps
    hardly differ between starts of a fit; a free run shows whether they add up.
    """
    U, measured, lags, starts = record
    weights = np.ones(Y.shape[1])
    data, _ = free_run_data(U, measured, lags, starts, scaling, weights, Y)
    return data


def free_runs_of(record, scaling, Y, pieces):
    """`FreeRunData` of slices of a record that have no gap in what the lags read."""
    lags, n_outputs = record.lags, Y.shape[1]
    U = np.concatenate([record.U[:0], *(record.U[rows] for rows in pieces)])
    known = np.concatenate([record.Y[:0], *(record.Y[rows] for rows in pieces)])
    target = [Y[rows][lags.max_lag :] for rows in pieces]
    target = np.concatenate([Y[:0], *target])
    starts = np.cumsum([0, *(rows.stop - rows.start for rows in pieces)])
    # values that no lag reads may be missing among the first rows
    U, known = np.nan_to_num(U), np.nan_to_num(known)
    data, _ = free_run_data(U, known, lags, starts, scaling, np.ones(n_outputs))
    return data._replace(Y=(target - scaling.y_offset) / scaling.y_scale)


def gap_free_stretches(record):
    """First and last row of every stretch whose windows are all complete."""
    rows = complete_rows(record.U, record.Y, record.lags, record.starts)
    first = rows[np.flatnonzero(np.diff(rows, prepend=-2) > 1)]
    last = rows[np.flatnonzero(np.diff(rows, append=rows[-1] + 2) > 1)]
    return zip(first - record.lags.max_lag, last + 1, strict=True)


def steps_through(record, scaling, Y):
    """Data of single steps through a record, against the complete rows of ``Y``."""
    U, measured, lags, starts = record
    rows = complete_rows(U, measured, lags, starts)
    rows = rows[np.isfinite(Y[rows]).all(axis=1)]
    Z = build_lag_matrix(U, measured, lags, rows)
    target = Y[rows] - added_outputs(measured, lags, rows)
    return scaled_data(Z, target, scaling, np.ones(Y.shape[1]))
