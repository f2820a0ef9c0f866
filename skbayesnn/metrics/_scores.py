"""Scores of predicted records, and scorers that leave the initialisation out."""

import warnings

import numpy as np
from scipy.special import ndtr
from sklearn.metrics import r2_score
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, check_consistent_length

from ._residual_correlations import residual_analysis

__all__ = [
    "crps_gaussian",
    "crps_samples",
    "fit_index",
    "interval_coverage",
    "one_step_scorer",
    "residual_analysis",
    "simulation_rmse",
    "simulation_scorer",
]


def _as_rows(y, name, infinite=False):
    """An array as (n, n_outputs); NaN is allowed, infinity on demand."""
    y = check_array(
        y,
        dtype=np.float64,
        ensure_2d=False,
        ensure_all_finite=False if infinite else "allow-nan",
        input_name=name,
    )
    return y.reshape(len(y), -1)


def _check_initialization(n_initialization, n_samples):
    if not 0 <= n_initialization < n_samples:
        raise ValueError(
            "n_initialization must be at least 0 and less than the number of rows, "
            f"{n_samples}; got {n_initialization}."
        )


def _scored_rows(arrays, n_initialization, infinite=False):
    """Records, by their names, from the first scored row on, as (n, n_outputs)."""
    (first, *names) = arrays
    rows = [_as_rows(arrays[first], first)]
    rows += [_as_rows(arrays[name], name, infinite) for name in names]
    check_consistent_length(*rows)
    for name, y in zip(names, rows[1:], strict=True):
        if y.shape != rows[0].shape:
            raise ValueError(
                f"{first} and {name} must have as many outputs; got "
                f"{rows[0].shape[1]} and {y.shape[1]}."
            )
    _check_initialization(n_initialization, len(rows[0]))
    return [y[n_initialization:] for y in rows]


def _scored(y_true, y_pred, n_initialization):
    """Both records from the first scored row on, and what of it was measured."""
    arrays = {"y_true": y_true, "y_pred": y_pred}
    y_true, y_pred = _scored_rows(arrays, n_initialization)
    # a row that was not measured cannot be judged; one that was not predicted can
    return y_true, y_pred, np.isfinite(y_true)


def simulation_rmse(y_true, y_pred, *, n_initialization=0):
    r"""Root mean squared error of a simulated record.

    .. math:: \sqrt{\tfrac{1}{n} \sum_t (y_t - \hat y_t)^2}

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Measured outputs. Rows that hold NaN are left out.
    y_pred : array-like shaped like y_true
        Simulated outputs. NaN, as after a divergence, makes the error infinite.
    n_initialization : int, default=0
        Rows at the start that are not scored, because the simulation was given them.

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
        Measured outputs. Rows that hold NaN are left out.
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
    r"""Share of the measured values that lie inside an interval.

    .. math:: \frac{1}{n} \sum_t \mathbf 1\{l_t \le y_t \le u_t\}

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Measured outputs. Rows that hold NaN are left out.
    lower : array-like shaped like y_true
        Lower ends, which belong to the intervals.
    upper : array-like shaped like y_true
        Upper ends, likewise. Where an end is NaN, as after a divergence, the value
        counts as outside.
    n_initialization : int, default=0
        Rows at the start that are not scored.

    Returns
    -------
    coverage : float or ndarray of shape (n_outputs,)
        Between 0 and 1; a float for a single output. Near the level of the interval
        if its predictive distribution is calibrated.

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
    y_true, lower, upper = _scored_rows(arrays, n_initialization, infinite=True)
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
        Measured outputs. Rows that hold NaN are left out.
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
    # the limit for a vanishing std; written out, because z is infinite there, or NaN
    exact = (std == 0.0) | np.isinf(z)
    z = np.where(exact, 0.0, z)
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    score = error * (2.0 * ndtr(z) - 1.0) + std * (2.0 * density - 1.0 / np.sqrt(np.pi))
    return _mean_score(np.where(exact, np.abs(error), score), np.isfinite(y_true))


def crps_samples(y_true, y_draws, *, n_initialization=0):
    r"""Score draws of a prediction by the continuous ranked probability score (CRPS).

    The fair estimator: unbiased for the score of the distribution from which the m
    draws come, eq. (21) of [1]_, whatever their number.

    .. math:: \frac{1}{m} \sum_i |x_i - y|
        - \frac{1}{2 m (m - 1)} \sum_{i, j} |x_i - x_j|

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Measured output. Rows that hold NaN are left out.
    y_draws : array-like of shape (n_samples, n_draws)
        Independent draws of the predictive distribution, at least 2 a row. NaN, as
        after a divergence, makes the score infinite.
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
    y_true = _as_rows(y_true, "y_true")
    if y_true.shape[1] != 1:
        raise ValueError(
            f"y_true must hold one output; got {y_true.shape[1]}. Score them one by "
            "one."
        )
    draws = _as_rows(y_draws, "y_draws")
    n_draws = draws.shape[1]
    if np.ndim(y_draws) != 2 or n_draws < 2:
        raise ValueError(
            "y_draws must have shape (n_samples, n_draws) with at least 2 draws; got "
            f"shape {np.shape(y_draws)}."
        )
    check_consistent_length(y_true, draws)
    _check_initialization(n_initialization, len(y_true))
    y_true, draws = y_true[n_initialization:], draws[n_initialization:]
    distance = np.mean(np.abs(draws - y_true), axis=1)
    # sorted, the sum over pairs is one over ranks: m log m in place of m^2
    ranks = 2.0 * np.arange(n_draws) - (n_draws - 1)
    spread = np.sort(draws, axis=1) @ ranks / (n_draws * (n_draws - 1))
    return _mean_score((distance - spread)[:, None], np.isfinite(y_true))


def _mean_score(score, measured):
    """Mean over measured rows; not predicted is infinitely bad."""
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


def _max_lag(estimator):
    """``max_lag_`` of a fitted model, or of the last step of a pipeline."""
    model = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    return model.max_lag_


def _predict_silently(estimator, X, **arguments):
    with warnings.catch_warnings():
        # the score says it
        warnings.filterwarnings("ignore", "[0-9]+ predicted rows", RuntimeWarning)
        return estimator.predict(X, **arguments)


def simulation_scorer(estimator, X, y):
    """Negative root mean squared error of the free run, for model selection.

    Starts from the first ``max_lag_`` measured outputs and scores the rest.

    Parameters
    ----------
    estimator : SparseBayesNARXRegressor or Pipeline that ends in one
        A fitted model.
    X : array-like of shape (n_samples, n_inputs)
        Inputs of one record.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Measured outputs.

    Returns
    -------
    score : float
        Greater is better; averaged over outputs, minus infinity after a divergence.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
    >>> from skbayesnn import SparseBayesNARXRegressor
    >>> from skbayesnn.metrics import simulation_scorer
    >>> search = GridSearchCV(
    ...     SparseBayesNARXRegressor(),
    ...     {"reg_lambda": [1.0, 4.0]},
    ...     scoring=simulation_scorer,
    ...     cv=TimeSeriesSplit(3),
    ... )
    """
    n_init = _max_lag(estimator)
    y = np.asarray(y, dtype=np.float64)
    predicted = _predict_silently(estimator, X, y_init=y[:n_init])
    return -float(np.mean(simulation_rmse(y, predicted, n_initialization=n_init)))


def one_step_scorer(estimator, X, y):
    """Coefficient of determination one step ahead, for model selection.

    Starts from the first ``max_lag_`` measured outputs and scores the rest.

    Parameters
    ----------
    estimator : SparseBayesNARXRegressor or Pipeline that ends in one
        A fitted model.
    X : array-like of shape (n_samples, n_inputs)
        Inputs of one record.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Measured outputs, NaN where missing.

    Returns
    -------
    score : float
        Greater is better, 1 is perfect.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score, TimeSeriesSplit
    >>> from skbayesnn import SparseBayesNARXRegressor
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> from skbayesnn.metrics import one_step_scorer
    >>> u, y = make_cascaded_tanks(300, return_X_y=True, random_state=0)
    >>> model = SparseBayesNARXRegressor(hidden_layer_sizes=(), random_state=0)
    >>> scores = cross_val_score(
    ...     model, u, y, scoring=one_step_scorer, cv=TimeSeriesSplit(3)
    ... )
    >>> bool((scores > 0.9).all())
    True
    """
    n_init = _max_lag(estimator)
    predicted = _predict_silently(estimator, X, y=y)
    y = np.asarray(y, dtype=np.float64).reshape(len(predicted), -1)
    predicted = np.reshape(predicted, y.shape)
    rows = np.isfinite(predicted).all(axis=1) & np.isfinite(y).all(axis=1)
    rows[:n_init] = False
    return r2_score(y[rows], predicted[rows])
