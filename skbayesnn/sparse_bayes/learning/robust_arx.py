"""A linear ARX model that a few wrong rows do not steer.

Its errors follow Student's t distribution. That limits what a wrong value does as an
output, not what it does among the regressors of the next rows: a fit that begins with
all rows may explain these by small weights of the past outputs. So it begins without
the rows whose window holds a jump.
"""

from typing import NamedTuple

import numpy as np

from ..records.feedback import centred
from ..records.lags import build_lag_matrix, complete_rows

# Degrees of freedom: tails so heavy that what a linear model cannot describe of a
# nonlinear system is no surprise. And the median of the errors' magnitude, in scales.
FREEDOM, MEDIAN = 3.0, 0.765
# Second differences of so many scales are jumps; without more rows than this fraction
# the record is nothing but jumps, and all count.
JUMP, FEWEST = 5.0, 0.3
N_STEPS, TOLERANCE = 30, 1e-3
# Rows that have to be like one which is judged by them, or so many times less leverage
# than usual; and eigenvalues of their products, relative to the largest, that are none.
ALIKE, USUAL, SINGULAR = 10, 3.0, 1e-9
# Rows of a fit at most, evenly spread; scales below this fraction of the spread of the
# output are rounding.
FIT_ROWS, ROUNDING = 10_000, 1e-10


class RobustARX(NamedTuple):
    """A fitted model of one output.

    feedback : (n_lags,) weights of its own past values
    scale : of its errors
    residuals : (n_rows,) errors one step ahead, NaN where the window is not complete,
        by the values in place of missing ones
    is_judged : (n_rows,) bool, False where the fit has hardly seen a row with inputs
        like these, so that a large residual may be that of a right one
    """

    feedback: np.ndarray
    scale: float
    residuals: np.ndarray
    is_judged: np.ndarray


def misfit(errors):
    """Minus the logarithm of the density of errors in scales, 0 at 0."""
    return 0.5 * (FREEDOM + 1.0) * np.log1p(errors**2 / FREEDOM)


def weights_of(errors):
    """Weights of least squares that have the gradient of `misfit`."""
    return (FREEDOM + 1.0) / (FREEDOM + errors**2)


def scale_of(errors):
    """Scale of errors, without NaN, that follow Student's t distribution."""
    first = np.median(np.abs(errors)) / MEDIAN
    if first == 0.0:
        return float(np.sqrt(np.mean(errors**2)))
    # in its units, the squares of small errors do not underflow
    errors, scale = errors / first, 1.0
    for _ in range(N_STEPS):
        before = scale
        weights = weights_of(errors / scale)
        scale = np.sqrt(np.mean(weights * errors**2))
        if abs(scale - before) <= TOLERANCE * before:
            break
    return float(first * scale)


def robust_error_of_function(target, columns):
    """Scale of what the best linear function leaves, in scales of the target.

    A minority of the rows does not count, such as those in which a set point moves.
    """
    usual = scale_of(target - np.median(target))
    if usual == 0.0:
        return 0.0
    return _reweighted(_with_ones(centred(columns)), target)[1] / usual


def fit_robust_arx(U, measured, cleaned, starts, output, lags):
    """The `RobustARX` of one output.

    Parameters
    ----------
    U : (n_rows, n_inputs)
    measured : tuple of (n_rows, n_outputs) arrays
        The record whose residuals are wanted, and with what stands for missing values.
    cleaned : (n_rows, n_outputs) or None
        What the fit sees of it: wrong rows filled, or NaN. None for a first fit.
    output : int
    lags : Lags

    Returns
    -------
    model : RobustARX, or None where the rows are too few
    """
    measured, filled = measured
    seen = measured if cleaned is None else cleaned
    rows = complete_rows(U, seen, lags, starts)
    if cleaned is None and len(rows):
        smooth = ~_near_jumps(measured, lags.max_lag)[rows]
        rows = rows[smooth] if smooth.mean() >= FEWEST else rows
    if len(rows) < 4 * (len(lags.lag) + 1):
        return None
    if len(rows) > FIT_ROWS:
        rows = rows[np.linspace(0, len(rows) - 1, FIT_ROWS).astype(int)]
    Z, target = build_lag_matrix(U, seen, lags, rows), seen[rows, output]
    center, spread = Z.mean(axis=0), Z.std(axis=0)
    spread[spread == 0.0] = 1.0
    coef, scale = _reweighted(_with_ones((Z - center) / spread), target)
    of_inputs = lags.signal < U.shape[1]
    seen_inputs = (Z[:, of_inputs] - center[of_inputs]) / spread[of_inputs]
    residuals = np.full(len(measured), np.nan)
    # a missing output makes its own residual NaN
    rows = complete_rows(U, np.nan_to_num(filled), lags, starts)
    Z = (build_lag_matrix(U, filled, lags, rows) - center) / spread
    residuals[rows] = filled[rows, output] - _with_ones(Z) @ coef
    is_judged = np.ones(len(measured), dtype=bool)
    is_judged[rows] = _are_like(Z[:, of_inputs], seen_inputs)
    own = lags.signal == U.shape[1] + output
    scale = max(scale, ROUNDING * float(target.std()), _rounding_of(target))
    return RobustARX(coef[1:][own] / spread[own], scale, residuals, is_judged)


def _are_like(inputs, seen):
    """Which rows (n_rows, n_regressors) of inputs are like some that a fit has seen.

    The leverage of a row is one over the number of rows with such inputs. Of a
    nonlinear system, a linear model may say nothing of the response to inputs that a
    record has once; and if it was fitted to rest alone, nothing of any response.
    """
    inputs, seen = _with_ones(inputs), _with_ones(seen)
    values, vectors = np.linalg.eigh(seen.T @ seen)
    # along directions in which the rows that were seen do not vary, none is like them
    vectors /= np.sqrt(np.maximum(values, SINGULAR * values[-1]))
    usual = np.square(seen @ vectors).sum(axis=1).mean()
    leverage = np.square(inputs @ vectors).sum(axis=1)
    return leverage <= max(1.0 / ALIKE, USUAL * usual)


def _rounding_of(y):
    """Standard deviation of the rounding of an output; next to 0 if it is not rounded.

    Where the noise is less than a step, most rows may be fitted exactly.
    """
    steps = np.diff(np.unique(y))
    return float(steps.min()) / np.sqrt(12.0) if len(steps) else 0.0


def _with_ones(Z):
    return np.column_stack([np.ones(len(Z)), Z])


def _near_jumps(Y, n_lags):
    """Rows whose window holds a second difference that is far from the others."""
    near = np.zeros(len(Y), dtype=bool)
    for y in Y.T:
        second = np.zeros(len(y))
        second[1:-1] = np.abs(y[2:] - 2.0 * y[1:-1] + y[:-2])
        known = np.isfinite(second)
        jumps = np.where(known, second, 0.0) > JUMP * scale_of(second[known])
        near |= np.convolve(jumps, np.ones(n_lags + 2))[: len(y)] > 0.0
    return near


def _reweighted(Z, target):
    """Coefficients and scale, by least squares with the weights of the errors."""
    weights = np.ones(len(Z))
    for _ in range(N_STEPS):
        root = np.sqrt(weights)
        coef = np.linalg.lstsq(Z * root[:, None], target * root, rcond=None)[0]
        errors = target - Z @ coef
        scale = scale_of(errors)
        # where most rows are fitted exactly, further steps only shrink the scale
        if scale <= ROUNDING * target.std():
            break
        before, weights = weights, weights_of(errors / scale)
        if np.abs(weights - before).max() <= TOLERANCE:
            break
    return coef, scale
