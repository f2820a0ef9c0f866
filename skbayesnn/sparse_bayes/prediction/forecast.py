"""Predictions of one lagged network over whole records: ahead, and in free run."""

from typing import NamedTuple

import numpy as np

from ..records.lags import added_outputs, build_lag_matrix, complete_rows
from . import posterior
from .runs import free_runs, laid_out, runs_ahead, simulate, simulate_variance

# Rows of short runs that are laid out at a time.
BATCH_ROWS = 2**15


class Forecast(NamedTuple):
    """mean, std : (n_rows, n_outputs); std is None unless asked for.

    n_diverged : rows that became NaN because the recursion left the plausible range
    least : (n_rows, n_outputs) what std would be if the weights were known: by the
        noise, not fed back unless it is that of steps ahead, and the hidden states at
        the start. For free runs with std
    """

    mean: np.ndarray
    std: np.ndarray | None
    n_diverged: int
    least: np.ndarray | None = None


def of_network(network, record, n_known, horizon, return_std, from_measured=False):
    """Forecast of one `LaggedNetwork`; arguments as in `ensemble.forecast`."""
    if horizon == 1:
        return one_step(network, record, return_std)
    if horizon < np.inf:
        return ahead(network, record, int(horizon), return_std)
    return free_run(network, record, n_known, return_std, from_measured)


def one_step(network, record, return_std):
    """Predict every row from the measured rows before it.

    The first ``max_lag`` rows of a session are returned as measured; rows whose window
    holds a missing value are NaN.
    """
    fitted, lags = network
    forecast = _empty_forecast(record, lags.max_lag, return_std)
    rows, Z = known_windows(record, lags)
    last = added_outputs(record.Y, lags, rows)
    forecast.mean[rows] = posterior.mean(fitted, Z) + last
    if return_std:
        forecast.std[rows] = posterior.std(fitted, Z)
    return forecast


def known_windows(record, lags):
    """Rows whose regressors are all measured, and these."""
    U, Y, starts = record.U, record.Y, record.starts
    # a missing present output does not prevent its prediction
    rows = complete_rows(U, np.zeros_like(Y), lags, starts)
    Z = build_lag_matrix(U, Y, lags, rows)
    known = np.isfinite(Z).all(axis=1)
    known &= np.isfinite(added_outputs(Y, lags, rows)).all(axis=1)
    return rows[known], Z[known]


def ahead(network, record, horizon, return_std):
    """Predict every row from the measured rows up to ``horizon`` rows before it."""
    max_lag = network.lags.max_lag
    batches = runs_ahead(record.starts, max_lag, horizon, BATCH_ROWS)
    found = _run(network, record, max_lag, batches, True, return_std)
    return found._replace(least=None)


def free_run(network, record, n_known, return_std, from_measured=False):
    """Simulate each session from its first ``n_known`` rows of ``Y``.

    The noise is that of steps ``from_measured`` ones, or of free runs. Rows of ``Y``
    after those are not looked at.
    """
    batches = [free_runs(record.starts, n_known)]
    found = _run(network, record, n_known, batches, from_measured, return_std)
    fitted = network.fitted
    if not return_std or fitted.free_run_std is not None:
        return found
    # 0 in rows that were given
    least = np.minimum(found.std, fitted.squared_std * fitted.scaling.y_scale)
    return found._replace(least=least)


def _run(network, record, n_initial, batches, from_measured, return_std):
    """The forecast by batches of runs; ``least`` is what the noise alone gives."""
    fitted, scaling = network.fitted, network.fitted.scaling
    mean, std, n_diverged, _ = _empty_forecast(record, n_initial, return_std)
    least = None if std is None else std.copy()
    for runs in batches:
        run, ends = laid_out(network, record, runs), runs.ends
        if return_std:
            path = simulate_variance(fitted, run, from_measured)
            std[runs.rows[ends]] = np.sqrt(path.variance[ends]) * scaling.y_scale
            least[runs.rows[ends]] = np.sqrt(path.of_noise[ends]) * scaling.y_scale
        else:
            path = simulate(fitted, run)
        mean[runs.rows[ends]] = path.outputs[ends] * scaling.y_scale + scaling.y_offset
        n_diverged += int(np.count_nonzero(path.diverged[ends]))
    return Forecast(mean, std, n_diverged, least)


def _empty_forecast(record, n_initial, return_std):
    """A forecast that holds the rows that start each session alone."""
    mean = np.full(record.Y.shape, np.nan)
    std = np.full(record.Y.shape, np.nan) if return_std else None
    forecast = Forecast(mean, std, 0)
    copy_initial_rows(forecast, record.Y, record.starts, n_initial)
    return forecast


def copy_initial_rows(forecast, Y, starts, n_rows):
    """Put the rows that start each session into the forecast, as measured."""
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        head = slice(start, min(start + n_rows, stop))
        forecast.mean[head] = Y[head]
        if forecast.std is not None:
            # of a value that is not there nothing is known
            forecast.std[head] = np.where(np.isnan(Y[head]), np.nan, 0.0)
