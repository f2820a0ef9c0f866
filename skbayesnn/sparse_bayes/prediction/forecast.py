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


def of_network(network, record, n_known, horizon, return_std):
    """Forecast of one `LaggedNetwork`; arguments as in `ensemble.forecast`."""
    arguments = (*network, record.U, record.Y, record.starts)
    if horizon == 1:
        return one_step(*arguments, return_std)
    if horizon < np.inf:
        return ahead(*arguments, int(horizon), return_std)
    return free_run(*arguments, n_known, return_std)


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
