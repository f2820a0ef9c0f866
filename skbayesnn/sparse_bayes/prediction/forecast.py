"""Predictions of a lagged model over whole records: ahead, and in free run."""

from typing import NamedTuple

import numpy as np

from ..fitted import FittedNetwork
from ..kernels import recursion as narx
from ..network import column_index
from ..records.lags import Lags, build_lag_matrix, complete_rows
from . import posterior


class Forecast(NamedTuple):
    """mean, std : (n_rows, n_outputs); std is None unless asked for.

    n_diverged : rows that became NaN because the recursion left the plausible range
    """

    mean: np.ndarray
    std: np.ndarray | None
    n_diverged: int


def make_recursion(model, lags):
    """How the kernels gather the regressors that a pruned network still reads."""
    used = model.network.units[0]
    scaling = model.scaling
    return narx.Recursion(
        signal=lags.signal[used],
        lag=lags.lag[used],
        x_offset=scaling.x_offset[used],
        x_scale=scaling.x_scale[used],
        y_offset=scaling.y_offset,
        y_scale=scaling.y_scale,
        limit=scaling.limit,
    )


def _network_arguments(model):
    network = model.network
    return network.theta, network.sizes, network.activation


def _posterior_arguments(model, from_measured):
    """What the variance recursions need: the other of matrix and diagonal is empty.

    The noise of each step is fed back. Where the errors of a free run are known, their
    variance is its ceiling, and in a free run it is that from the first row on.
    """
    covariance = model.covariance
    full = covariance.ndim == 2
    noise, ceiling = model.noise_std, np.full(len(model.noise_std), np.inf)
    if model.free_run_std is not None:
        ceiling = model.free_run_std**2
        noise = noise if from_measured else model.free_run_std
    return (
        column_index(model.network.keep),
        covariance if full else np.empty((0, 0)),
        np.diagonal(covariance).copy() if full else covariance,
        noise,
        ceiling,
    )


def one_step(model: FittedNetwork, lags: Lags, U, Y, starts, return_std):
    """Predict every row from the measured rows before it.

    The first ``max_lag`` rows of a session are returned as measured; rows whose window
    holds a missing value are NaN.
    """
    mean = np.full(Y.shape, np.nan)
    std = np.full(Y.shape, np.nan) if return_std else None
    copy_initial_rows(Forecast(mean, std, 0), Y, starts, lags.max_lag)
    # a missing present output does not prevent its prediction
    rows = complete_rows(U, np.zeros_like(Y), lags, starts)
    Z = build_lag_matrix(U, Y, lags, rows)
    known = np.isfinite(Z).all(axis=1)
    rows, Z = rows[known], Z[known]
    mean[rows] = posterior.mean(model, Z)
    if return_std:
        std[rows] = posterior.std(model, Z)
    return Forecast(mean, std, 0)


def copy_initial_rows(forecast, Y, starts, n_rows):
    """Put the rows that start each session into the forecast, as measured."""
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        head = slice(start, min(start + n_rows, stop))
        forecast.mean[head] = Y[head]
        if forecast.std is not None:
            forecast.std[head] = 0.0


def ahead(model, lags, U, Y, starts, horizon, return_std):
    """Predict every row from the measured rows up to ``horizon`` rows before it."""
    mean = np.full(Y.shape, np.nan)
    variance = np.full(Y.shape, np.nan) if return_std else None
    copy_initial_rows(Forecast(mean, variance, 0), Y, starts, lags.max_lag)
    # the kernel's windows span the lags that survived; a row before the longest of all
    # is part of the initialisation all the same
    recursion = make_recursion(model, lags)
    kept_lag = int(recursion.lag.max(initial=0))
    n_diverged = 0
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        first = start + lags.max_lag - kept_lag
        if first + kept_lag >= stop:
            continue
        common = (*_network_arguments(model), recursion)
        if return_std:
            n_diverged += narx.predict_ahead_variance(
                *common,
                *_posterior_arguments(model, True),
                U,
                Y,
                horizon,
                mean,
                variance,
                first,
                stop,
            )
        else:
            n_diverged += narx.predict_ahead(*common, U, Y, horizon, mean, first, stop)
    return Forecast(mean, np.sqrt(variance) if return_std else None, n_diverged)


def free_run(model, lags, U, Y, starts, n_known, return_std):
    """Simulate each session from its first ``n_known`` rows of ``Y``, taken as exact.

    Rows of ``Y`` after those are not looked at.
    """
    mean = np.full(Y.shape, np.nan)
    variance = np.full(Y.shape, np.nan) if return_std else None
    copy_initial_rows(Forecast(mean, variance, 0), Y, starts, n_known)
    recursion = make_recursion(model, lags)
    spread = _posterior_arguments(model, False) if return_std else ()
    n_diverged = 0
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        first = start + n_known
        if first >= stop:
            continue
        common = (*_network_arguments(model), recursion)
        if return_std:
            row = narx.simulate_variance(
                *common, *spread, U, mean, variance, first, stop
            )
        else:
            row = narx.simulate(*common, U, mean, first, stop)
        n_diverged += stop - row if row >= 0 else 0
    return Forecast(mean, np.sqrt(variance) if return_std else None, n_diverged)


def combine(forecasts, weights):
    """The forecast of a committee: the mixture of its members' forecasts.

    Its mean is the members' weighted median, which one member that leaves the range on
    new data cannot spoil; its variance is that of the mixture. A member that diverged
    has no say from there on; where those left have less than half of the weight, the
    committee has diverged.
    """
    means = np.array([forecast.mean for forecast in forecasts])
    known = np.isfinite(means)
    share = np.where(known, weights[:, None, None], 0.0)
    total = share.sum(axis=0)
    lost = total < 0.5
    share = share / np.where(lost, 1.0, total)
    mean = np.where(lost, np.nan, _weighted_median(means, share))
    std = None
    if forecasts[0].std is not None:
        square = np.array([forecast.std for forecast in forecasts]) ** 2
        square += (means - mean) ** 2
        variance = np.sum(np.where(known, square * share, 0.0), axis=0)
        std = np.sqrt(np.where(lost, np.nan, variance))
    n_diverged = sum(np.array([forecast.n_diverged for forecast in forecasts]) > 0)
    rows = int(np.count_nonzero(lost.any(axis=1))) if n_diverged else 0
    return Forecast(mean, std, rows)


def _weighted_median(values, share):
    """Along the first axis; between two values where their shares are equal."""
    order = np.argsort(values, axis=0)
    values = np.take_along_axis(np.nan_to_num(values), order, axis=0)
    cumulated = np.cumsum(np.take_along_axis(share, order, axis=0), axis=0)
    rounding = 1e-9
    low = np.argmax(cumulated >= 0.5 - rounding, axis=0)[None]
    high = np.argmax(cumulated > 0.5 + rounding, axis=0)[None]
    pick = np.take_along_axis
    return 0.5 * (pick(values, low, axis=0) + pick(values, high, axis=0))[0]
