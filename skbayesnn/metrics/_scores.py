"""Scores of predicted records, and of predictive distributions."""

import numpy as np
from scipy.special import ndtr
from sklearn.utils import check_consistent_length

from .. import _validation as checks
from .._time_axis import outputs_alone, without_time


def _scored_rows(arrays, n_initialization, allow_inf=False):
    """Named records as (n, n_outputs), without the initialisation.

    ``allow_inf`` allows infinite values in all but the first.
    """
    arrays = {name: without_time(array, name) for name, array in arrays.items()}
    (first, *names) = arrays
    rows = [checks.as_columns(arrays[first], first)]
    rows += [checks.as_columns(arrays[n], n, allow_inf=allow_inf) for n in names]
    check_consistent_length(*rows)
    for name, y in zip(names, rows[1:], strict=True):
        checks.check_n_outputs(rows[0], y, first, name)
    checks.check_initialization(n_initialization, len(rows[0]))
    return [y[n_initialization:] for y in rows]


def _scored(y_true, y_pred, n_initialization):
    """Both records without the initialisation, and a mask of the measured values."""
    arrays = {"y_true": y_true, "y_pred": y_pred}
    y_true, y_pred = _scored_rows(arrays, n_initialization)
    # only unmeasured values are left out; a missing prediction counts as an error
    return y_true, y_pred, np.isfinite(y_true)


def simulation_rmse(y_true, y_pred, *, n_initialization=0):
    r"""Root mean squared error of a simulated record.

    .. math:: \sqrt{\tfrac{1}{n} \sum_t (y_t - \hat y_t)^2}

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Measured outputs. Missing values, NaN, are left out, for each output separately.
    y_pred : array-like shaped like y_true
        Simulated outputs. NaN, as after a divergence, makes the error infinite.
    n_initialization : int, default=0
        Rows at the start that are not scored because the simulation starts from them.

    Returns
    -------
    rmse : float or ndarray of shape (n_outputs,)
        In units of y; a float for a single output.

    Raises
    ------
    ValueError
        For shapes that differ, and if no row is left to score.

    Examples
    --------
    >>> from skbayesnn.metrics import simulation_rmse
    >>> simulation_rmse([0.0, 1.0, 2.0], [9.0, 1.0, 4.0], n_initialization=1)
    1.414...
    """
    y_true, y_pred, measured = _scored(y_true, y_pred, n_initialization)
    error = _squared_error(y_true, y_pred, measured)
    return _per_output(np.sqrt(error / _count(measured)))


def fit_index(y_true, y_pred, *, n_initialization=0):
    r"""Fit index in percent, as in system identification.

    .. math:: 100 \left(1 - \frac{\|y - \hat y\|}{\|y - \bar y\|}\right)

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Measured outputs. Missing values, NaN, are left out, for each output separately.
    y_pred : array-like shaped like y_true
        Predicted or simulated outputs. NaN makes the index minus infinity.
    n_initialization : int, default=0
        Rows at the start that are not scored.

    Returns
    -------
    fit : float or ndarray of shape (n_outputs,)
        100 is perfect, 0 is as good as the mean; not bounded from below.

    Raises
    ------
    ValueError
        For shapes that differ, and if no row is left to score.

    Examples
    --------
    >>> from skbayesnn.metrics import fit_index
    >>> fit_index([0.0, 1.0, 2.0], [0.0, 1.0, 2.0])
    100.0
    """
    y_true, y_pred, measured = _scored(y_true, y_pred, n_initialization)
    error = _squared_error(y_true, y_pred, measured)
    _count(measured)
    mean = np.nanmean(np.where(measured, y_true, np.nan), axis=0)
    spread = _squared_error(y_true, np.broadcast_to(mean, y_true.shape), measured)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(error == 0.0, 0.0, np.sqrt(error / spread))
    return _per_output(100.0 * (1.0 - ratio))


def interval_coverage(y_true, lower, upper, *, n_initialization=0):
    r"""Fraction of the measured values that lie inside an interval.

    .. math:: \frac{1}{n} \sum_t \mathbf 1\{l_t \le y_t \le u_t\}

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Measured outputs. Missing values, NaN, are left out, for each output separately.
    lower : array-like shaped like y_true
        Lower ends of the intervals, which include them.
    upper : array-like shaped like y_true
        Upper ends, also included. Where an end is NaN, as after a divergence, the
        value counts as outside.
    n_initialization : int, default=0
        Rows at the start that are not scored.

    Returns
    -------
    coverage : float or ndarray of shape (n_outputs,)
        Between 0 and 1; a float for a single output. It is close to the level of the
        interval if the predictive distribution is calibrated.

    Raises
    ------
    ValueError
        For shapes that differ, a lower end above its upper one, and if no row is left
        to score.

    References
    ----------
    .. [1] T. Gneiting, A. E. Raftery, "Strictly Proper Scoring Rules, Prediction, and
       Estimation", Journal of the American Statistical Association 102 (2007),
       section 6.

    Examples
    --------
    >>> from skbayesnn.metrics import interval_coverage
    >>> interval_coverage([0.0, 1.0, 2.0, 3.0], [0, 0, 0, 0], [1, 1, 1, 1])
    0.5
    """
    arrays = {"y_true": y_true, "lower": lower, "upper": upper}
    y_true, lower, upper = _scored_rows(arrays, n_initialization, allow_inf=True)
    if np.any(lower > upper):
        row = int(np.argmax(np.any(lower > upper, axis=1))) + n_initialization
        raise ValueError(
            f"lower must not exceed upper; it does in row {row}. Were they swapped?"
        )
    measured = np.isfinite(y_true)
    inside = (lower <= y_true) & (y_true <= upper)
    return _per_output(np.sum(inside & measured, axis=0) / _count(measured))


def crps_gaussian(y_true, y_pred, y_std, *, n_initialization=0):
    r"""Score Gaussian predictions by the continuous ranked probability score (CRPS).

    The mean over rows of the squared distance between the predicted distribution
    function and the step at the measured value, eq. (20) of [1]_:

    .. math:: \int_{-\infty}^{\infty} (F_t(x) - \mathbf 1\{x \ge y_t\})^2 \, dx
        = \sigma_t \left( z (2 \Phi(z) - 1) + 2 \varphi(z)
        - \frac{1}{\sqrt\pi} \right), \qquad z = \frac{y_t - \mu_t}{\sigma_t}

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Measured outputs. Missing values, NaN, are left out, for each output separately.
    y_pred : array-like shaped like y_true
        Means. NaN, as after a divergence, makes the score infinite.
    y_std : array-like shaped like y_true
        Standard deviations of new observations, not negative. Where it is 0 the score
        is the absolute error; NaN makes it infinite.
    n_initialization : int, default=0
        Rows at the start that are not scored.

    Returns
    -------
    score : float or ndarray of shape (n_outputs,)
        In units of y, smaller is better; a float for a single output.

    Raises
    ------
    ValueError
        For shapes that differ, negative standard deviations, and if no row is left to
        score.

    See Also
    --------
    crps_samples : The same score from draws.

    References
    ----------
    .. [1] T. Gneiting, A. E. Raftery, "Strictly Proper Scoring Rules, Prediction, and
       Estimation", Journal of the American Statistical Association 102 (2007).

    Examples
    --------
    >>> from skbayesnn.metrics import crps_gaussian
    >>> crps_gaussian([0.0, 1.0], [0.0, 1.0], [1.0, 1.0])
    0.2336...
    """
    arrays = {"y_true": y_true, "y_pred": y_pred, "y_std": y_std}
    y_true, mean, std = _scored_rows(arrays, n_initialization)
    if np.any(std < 0.0):
        row = int(np.argmax(np.any(std < 0.0, axis=1))) + n_initialization
        raise ValueError(f"y_std must not be negative; it is in row {row}.")
    error = y_true - mean
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = error / std
    # the limit for a vanishing std is used there, where z is infinite or NaN
    exact = (std == 0.0) | np.isinf(z)
    z = np.where(exact, 0.0, z)
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    score = error * (2.0 * ndtr(z) - 1.0) + std * (2.0 * density - 1.0 / np.sqrt(np.pi))
    return _mean_score(np.where(exact, np.abs(error), score), np.isfinite(y_true))


def crps_samples(y_true, y_draws, *, n_initialization=0):
    r"""Score draws of a prediction by the continuous ranked probability score (CRPS).

    This is the fair estimator [2]_: for any number m of draws it is unbiased for the
    score of the distribution that they come from, eq. (21) of [1]_.

    .. math:: \frac{1}{m} \sum_i |x_i - y|
        - \frac{1}{2 m (m - 1)} \sum_{i, j} |x_i - x_j|

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Measured output. Missing values, NaN, are left out.
    y_draws : array-like of shape (n_samples, n_draws)
        Independent draws of the predictive distribution, at least 2 per row. NaN,
        as after a divergence, makes the score infinite.
    n_initialization : int, default=0
        Rows at the start that are not scored.

    Returns
    -------
    score : float
        Mean over rows, in units of y; smaller is better. It may be negative by chance.

    Raises
    ------
    ValueError
        For shapes that do not fit, fewer than 2 draws, and if no row is left to score.

    See Also
    --------
    crps_gaussian : The closed form for a mean and a standard deviation.

    References
    ----------
    .. [1] T. Gneiting, A. E. Raftery, "Strictly Proper Scoring Rules, Prediction, and
       Estimation", Journal of the American Statistical Association 102 (2007).
    .. [2] C. A. T. Ferro, "Fair scores for ensemble forecasts", Quarterly Journal of
       the Royal Meteorological Society 140 (2014).

    Examples
    --------
    >>> from skbayesnn.metrics import crps_samples
    >>> crps_samples([0.0], [[-1.0, 1.0, 3.0]])
    0.333...
    """
    y_true = outputs_alone(y_true, "y_true")
    if y_true.shape[1] != 1:
        raise ValueError(
            f"y_true must hold one output; got {y_true.shape[1]}. Score them one by "
            "one."
        )
    draws = checks.as_columns(y_draws, "y_draws")
    n_draws = draws.shape[1]
    if np.ndim(y_draws) != 2 or n_draws < 2:
        raise ValueError(
            "y_draws must have shape (n_samples, n_draws) with at least 2 draws; got "
            f"shape {np.shape(y_draws)}."
        )
    check_consistent_length(y_true, draws)
    checks.check_initialization(n_initialization, len(y_true))
    y_true, draws = y_true[n_initialization:], draws[n_initialization:]
    distance = np.mean(np.abs(draws - y_true), axis=1)
    # after sorting, the sum over pairs is a sum over ranks: O(m log m), not O(m^2)
    ranks = 2.0 * np.arange(n_draws) - (n_draws - 1)
    spread = np.sort(draws, axis=1) @ ranks / (n_draws * (n_draws - 1))
    return _mean_score((distance - spread)[:, None], np.isfinite(y_true))


def _mean_score(score, measured):
    """Mean over measured rows; a missing prediction makes it infinite."""
    score = np.where(measured, score, 0.0)
    score = np.where(np.isnan(score), np.inf, score)
    return _per_output(np.sum(score, axis=0) / _count(measured))


def _per_output(values):
    return float(values[0]) if len(values) == 1 else values


def _squared_error(y_true, y_pred, measured):
    error = np.where(measured, y_true - y_pred, 0.0)
    error = np.where(np.isnan(error), np.inf, error)
    return np.sum(error * error, axis=0)


def _count(measured):
    count = measured.sum(axis=0)
    if not count.all():
        raise ValueError("y_true holds no measured value to score; all are NaN.")
    return count
