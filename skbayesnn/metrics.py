"""Errors of simulated records, and scorers that leave the initialisation out."""

import warnings

import numpy as np
from sklearn.metrics import r2_score
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, check_consistent_length

__all__ = ["fit_index", "one_step_scorer", "simulation_rmse", "simulation_scorer"]


def _scored(y_true, y_pred, n_initialization):
    """Both records from the first scored row on, as (n, n_outputs)."""
    arrays = []
    for y, name in ((y_true, "y_true"), (y_pred, "y_pred")):
        y = check_array(
            y,
            dtype=np.float64,
            ensure_2d=False,
            ensure_all_finite="allow-nan",
            input_name=name,
        )
        arrays.append(y.reshape(len(y), -1))
    check_consistent_length(*arrays)
    if arrays[0].shape != arrays[1].shape:
        raise ValueError(
            "y_true and y_pred must have as many outputs; got "
            f"{arrays[0].shape[1]} and {arrays[1].shape[1]}."
        )
    if not 0 <= n_initialization < len(arrays[0]):
        raise ValueError(
            "n_initialization must be at least 0 and less than the number of rows, "
            f"{len(arrays[0])}; got {n_initialization}."
        )
    y_true, y_pred = (y[n_initialization:] for y in arrays)
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
    rmse = np.sqrt(error / _count(measured))
    return float(rmse[0]) if len(rmse) == 1 else rmse


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
    fit = 100.0 * (1.0 - ratio)
    return float(fit[0]) if len(fit) == 1 else fit


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
