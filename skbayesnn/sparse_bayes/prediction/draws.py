"""Draws of whole records of one network: weights from its posterior, and noise.

The posterior is that of the network linearised in its weights, so a draw takes the
linearised network as well. Weights that the data determine only in their sum, as those
of two units in their linear range, go far and cancel each other there; in the network
itself they saturate, and no longer cancel. A network that was fitted to the errors of
free runs is linearised in its whole path, as its posterior is.

Each function returns the draws (n_rows, n_outputs, n_samples) and, for each, whether
it diverged.
"""

import numpy as np

from ..kernels.sampled_runs import draw_paths
from ..records.lags import added_outputs
from . import posterior
from .forecast import (
    Forecast,
    copy_initial_rows,
    known_windows,
)
from .forecast import (
    ahead as forecast_ahead,
)
from .forecast import (
    one_step as forecast_one_step,
)
from .runs import draw_noise, free_runs, laid_out, linearize, runs_ahead

# Memory of the runs of all draws at a time.
BATCH_BYTES = 32 * 2**20


def of_network(network, record, n_known, horizon, n_samples, rng, from_measured=False):
    """Draws of one `LaggedNetwork`; arguments as in `ensemble.draws`."""
    if horizon == 1:
        return one_step(network, record, n_samples, rng)
    if horizon < np.inf:
        return ahead(network, record, int(horizon), n_samples, rng)
    return free_run(network, record, n_known, n_samples, rng, from_measured)


def one_step(network, record, n_samples, rng):
    """Draws of every row, given the measured rows before it."""
    known = forecast_one_step(network, record, False).mean
    drawn = np.repeat(known[:, :, None], n_samples, axis=2)
    rows, Z = known_windows(record, network.lags)
    last = added_outputs(record.Y, network.lags, rows)
    drawn[rows] = posterior.draws(network.fitted, Z, n_samples, rng) + last[:, :, None]
    return drawn, np.zeros(n_samples, dtype=bool)


def ahead(network, record, horizon, n_samples, rng):
    """Draws of every row, given the measured rows up to ``horizon`` rows before it.

    Runs of one draw that pass through the same row meet the same noise there.
    """
    fitted, lags = network
    row_bytes = 8 * max(1, n_samples) * len(fitted.noise_std)
    batches = runs_ahead(
        record.starts, lags.max_lag, horizon, max(1, BATCH_BYTES // row_bytes)
    )
    drawn, diverged = _run(network, record, batches, n_samples, rng)
    if _path_is_linear(fitted):
        std = forecast_ahead(_certain(network), record, horizon, True).std
        _add_noise(fitted, drawn, std, rng)
    return _with_initial_rows(drawn, record, lags.max_lag), diverged


def free_run(network, record, n_known, n_samples, rng, from_measured=False):
    """Draws of free runs from the first ``n_known`` rows of each session."""
    fitted, runs = network.fitted, free_runs(record.starts, n_known)
    drawn, diverged = _run(network, record, [runs], n_samples, rng)
    if _path_is_linear(fitted):
        run = laid_out(network, record, runs)
        noise = draw_noise(fitted, run, from_measured, n_samples, rng)
        drawn[:, runs.rows] += noise * fitted.scaling.y_scale
    return _with_initial_rows(drawn, record, n_known), diverged


def _certain(network):
    """The network as if its weights were known: its deviations are those of noise."""
    fitted = network.fitted
    n_kept = np.count_nonzero(fitted.network.keep)
    return network._replace(fitted=fitted._replace(covariance=np.zeros(n_kept)))


def _run(network, record, batches, n_samples, rng):
    """Draws (n_samples, n_rows, n_outputs) by batches of runs, in the user's units.

    The errors of a network that was fitted to those of free runs are errors of the
    measurement: its steps add no noise.
    """
    fitted, scaling = network.fitted, network.fitted.scaling
    deviations = posterior.weight_deviations(fitted, n_samples, rng)
    shape = (n_samples, *record.Y.shape)
    linear = _path_is_linear(fitted)
    noise = None
    if not linear:
        noise = posterior.unit_noise(fitted, shape, rng) * fitted.noise_std
    drawn, diverged = np.full(shape, np.nan), np.zeros(n_samples, dtype=bool)
    for runs in batches:
        run = laid_out(network, record, runs)
        if linear:
            paths, lost = linear_paths(fitted, run, deviations)
        else:
            paths = np.ascontiguousarray(noise[:, runs.rows])
            lost = draw_paths(
                fitted.network.layers, run, _of_all(fitted, deviations), paths
            )
        ends = paths[:, runs.ends]
        drawn[:, runs.rows[runs.ends]] = ends * scaling.y_scale + scaling.y_offset
        diverged |= lost
    return drawn, diverged


def _of_all(fitted, deviations):
    """Deviations of all parameters, zero where pruned."""
    keep = fitted.network.keep
    every = np.zeros((len(deviations), len(keep)))
    every[:, keep] = deviations
    return every


def linear_paths(fitted, run, deviations):
    """Paths that are linear in the weights, and which of them diverged.

    The path at the mode has no limit of its own: that of each draw counts.
    """
    limit = run.feedback.limit
    run = run._replace(feedback=run.feedback._replace(limit=np.inf))
    paths = np.empty((len(deviations), len(run.X), len(fitted.noise_std)))
    missing = np.zeros(len(run.X), dtype=bool)
    with np.errstate(all="ignore"):
        for rows, outputs, S, _, diverged in linearize(fitted, run):
            paths[:, rows] = outputs + np.tensordot(deviations, S, (1, 2))
            missing[rows] = np.isnan(outputs).any(axis=1) & ~diverged
        # a NaN fails this comparison, too
        lost = ~(np.abs(_said(run, paths)) <= limit).all(axis=2) & ~missing
    # from a row that is beyond the limit to the end of its run
    last = np.maximum.accumulate(np.where(lost, np.arange(len(run.X)), -1), axis=1)
    paths[last >= run.origin] = np.nan
    return paths, lost.any(axis=1)


def _said(run, paths):
    """What the network says of each row: the outputs, or their differences."""
    if not len(run.before):
        return paths
    previous = np.empty_like(paths)
    previous[:, 1:] = paths[:, :-1]
    first = run.origin == np.arange(len(run.origin))
    previous[:, first] = run.before[first]
    return paths - previous - run.feedback.drift


def _path_is_linear(fitted):
    """Whether the posterior is that of free runs linearised in the weights."""
    return fitted.free_run_std is not None


def _free_run_std(fitted):
    return fitted.free_run_std * fitted.scaling.y_scale


def _add_noise(fitted, drawn, std, rng):
    """Noise that is not fed back; ``std`` is NaN where the mode itself diverged."""
    std = np.where(np.isfinite(std), std, _free_run_std(fitted))
    noise = posterior.unit_noise(fitted, drawn.shape, rng)
    noise *= std
    drawn += noise


def _with_initial_rows(drawn, record, n_rows):
    """The draws along the last axis, the rows that start each session as measured."""
    drawn = np.ascontiguousarray(np.moveaxis(drawn, 0, -1))
    forecast = Forecast(drawn, None, 0)
    copy_initial_rows(forecast, record.Y[:, :, None], record.starts, n_rows)
    return drawn
