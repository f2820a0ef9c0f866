"""Draws of whole records: weights from the posterior, noise in every step.

The posterior is that of the network linearised in its weights, so a draw takes the
linearised network as well. Weights that the data determine only in their sum, as those
of two units in their linear range, go far and cancel each other there; in the network
itself they saturate, and cancel no more. A network that was fitted to the errors of
free runs is linearised in its whole path, as its posterior is.

Each function returns the draws (n_rows, n_outputs, n_samples) and, for each, whether
it diverged.
"""

import numpy as np

from ..kernels import sampled_runs as kernels
from ..records.lags import build_lag_matrix, complete_rows
from . import forecast as simulation
from . import posterior
from .forecast import Forecast, copy_initial_rows


def of_network(network, record, n_known, horizon, n_samples, rng):
    """Draws of one `LaggedNetwork`; arguments as in `ensemble.draws`."""
    arguments = (*network, record.U, record.Y, record.starts)
    if horizon == 1:
        return one_step(*arguments, n_samples, rng)
    if horizon < np.inf:
        return ahead(*arguments, int(horizon), n_samples, rng)
    return free_run(*arguments, n_known, n_samples, rng)


def one_step(model, lags, U, Y, starts, n_samples, rng):
    """Draws of every row, given the measured rows before it."""
    known_rows = simulation.one_step(model, lags, U, Y, starts, False).mean
    drawn = np.repeat(known_rows[:, :, None], n_samples, axis=2)
    rows = complete_rows(U, np.zeros_like(Y), lags, starts)
    Z = build_lag_matrix(U, Y, lags, rows)
    complete = np.isfinite(Z).all(axis=1)
    drawn[rows[complete]] = posterior.draws(model, Z[complete], n_samples, rng)
    return drawn, np.zeros(n_samples, dtype=bool)


def ahead(model, lags, U, Y, starts, horizon, n_samples, rng):
    """Draws of every row, given the measured rows up to ``horizon`` rows before it."""
    deviations = draw_deviations(model, n_samples, rng)
    paths = _step_noise(model, (n_samples, *Y.shape), rng)
    recursion, linear = simulation.make_recursion(model, lags), _path_is_linear(model)
    # as `simulation.ahead`: the kernel's windows span the lags that survived
    kept_lag = int(recursion.lag.max(initial=0))
    diverged = np.zeros(n_samples, dtype=bool)
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        first = start + lags.max_lag - kept_lag
        if first + kept_lag < stop:
            common = (*_network(model, deviations), recursion, linear, U, Y)
            diverged |= kernels.predict_ahead_draws(
                *common, horizon, paths, first, stop
            )
    if _path_is_linear(model):
        alone = simulation.ahead(_certain(model), lags, U, Y, starts, horizon, True)
        _add_noise(model, paths, alone.std, rng)
    return _with_initial_rows(paths, Y, starts, lags.max_lag), diverged


def free_run(model, lags, U, Y, starts, n_known, n_samples, rng):
    """Draws of free runs from the first ``n_known`` rows of each session."""
    deviations = draw_deviations(model, n_samples, rng)
    paths = _step_noise(model, (n_samples, *Y.shape), rng)
    recursion, linear = simulation.make_recursion(model, lags), _path_is_linear(model)
    diverged = np.zeros(n_samples, dtype=bool)
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        first = start + n_known
        if first < stop:
            paths[:, start:first] = Y[start:first]
            common = (*_network(model, deviations), recursion, linear, U)
            diverged |= kernels.simulate_draws(*common, paths, first, stop)
    if _path_is_linear(model):
        std = np.broadcast_to(_free_run_std(model), Y.shape)
        _add_noise(model, paths, std, rng)
    return _with_initial_rows(paths, Y, starts, n_known), diverged


def draw_deviations(model, n_samples, rng):
    """Weights less their mode, (n_samples, n_parameters), zero where pruned."""
    keep = model.network.keep
    deviations = np.zeros((n_samples, len(keep)))
    deviations[:, keep] = posterior.weight_deviations(model, n_samples, rng)
    return deviations


def _network(model, deviations):
    network = model.network
    return network.theta, deviations, network.sizes, network.activation


def _path_is_linear(model):
    """Whether the posterior is that of free runs linearised in the weights."""
    return model.free_run_std is not None


def _step_noise(model, shape, rng):
    """What every step adds and feeds back, in the user's units.

    Nothing for a network that was fitted to the errors of free runs: they are then
    those of the measurement.
    """
    if _path_is_linear(model):
        return np.zeros(shape)
    noise = rng.standard_normal(shape)
    noise *= model.noise_std * model.scaling.y_scale
    return noise


def _free_run_std(model):
    return model.free_run_std * model.scaling.y_scale


def _certain(model):
    """The model as if its weights were known: its deviations are those of the noise."""
    return model._replace(covariance=np.zeros(int(model.network.keep.sum())))


def _add_noise(model, paths, std, rng):
    """Noise that is not fed back; ``std`` is NaN where the mode itself diverged."""
    std = np.where(np.isfinite(std), std, _free_run_std(model))
    noise = rng.standard_normal(paths.shape)
    noise *= std
    paths += noise


def _with_initial_rows(paths, Y, starts, n_rows):
    """The draws along the last axis, the rows that start each session as measured."""
    drawn = np.ascontiguousarray(np.moveaxis(paths, 0, -1))
    copy_initial_rows(Forecast(drawn, None, 0), Y[:, :, None], starts, n_rows)
    return drawn
