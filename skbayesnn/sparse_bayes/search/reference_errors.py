"""Errors of predictions that need no model: the mean, and the last value."""

import numpy as np

from ..learning.output_errors import joint_error, mean_squares
from .cut_record import output_variance


def reference_errors(data, focus):
    """Errors of the references on every fold, in standard deviations of the outputs.

    "mean" predicts the mean of the rows outside a fold. "last value" predicts the
    output of the row before; in free run, the last one before the stretch.

    Returns
    -------
    errors : dict of str to (n_folds,) array, NaN for folds without an output
    """
    n_folds = int(data.folds.max()) + 1
    variance = output_variance(data)
    errors = {"mean": np.full(n_folds, np.nan), "last value": np.full(n_folds, np.nan)}
    for fold in range(n_folds):
        held_out = data.folds == fold
        outside = data.Y[~held_out]
        judged = held_out if data.scored is None else held_out & data.scored
        if np.isfinite(outside).any():
            mean = np.nanmean(outside, axis=0)
            errors["mean"][fold] = _joint_error(data.Y[judged] - mean, variance)
        last = _last_values(data, held_out if focus == "simulation" else None)
        difference = data.Y[judged] - last[judged]
        errors["last value"][fold] = _joint_error(difference, variance)
    return errors


def _joint_error(difference, variance):
    """The `joint_error` of differences (n, n_outputs), of which some may be NaN."""
    sums = np.nansum(difference**2, axis=0)
    squared = mean_squares(sums, np.count_nonzero(~np.isnan(difference), axis=0))
    return joint_error(squared, variance)


def _last_values(data, hidden):
    """The last known output before each row of a session; NaN where there is none.

    Of the ``hidden`` rows, only the first one of a session that holds an output is
    known: a free run starts from it.
    """
    before = np.full_like(data.Y, np.nan)
    for start, stop in zip(data.starts[:-1], data.starts[1:], strict=True):
        known = data.Y[start:stop].copy()
        if hidden is not None:
            first = np.isfinite(known).argmax(axis=0)
            not_known = hidden[start:stop, None] & (
                np.arange(len(known))[:, None] != first
            )
            known[not_known] = np.nan
        rows = np.where(np.isfinite(known), np.arange(stop - start)[:, None], -1)
        rows = np.maximum.accumulate(rows, axis=0)[:-1]
        filled = np.take_along_axis(known, np.maximum(rows, 0), axis=0)
        before[start + 1 : stop] = np.where(rows >= 0, filled, np.nan)
    return before
