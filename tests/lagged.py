"""Runs of a lagged network by the package, called like the references of `naive`.

A network is (theta, sizes, code of the activation, recursion), everything around it in
the user's units; rows ``start`` to ``stop`` are predicted. Results go through the
layout in scaled units on which the kernels work.
"""

from typing import NamedTuple

import numpy as np

from skbayesnn.sparse_bayes.fitted import FittedNetwork
from skbayesnn.sparse_bayes.kernels.layers import n_layer_parameters
from skbayesnn.sparse_bayes.kernels.sampled_runs import draw_paths
from skbayesnn.sparse_bayes.network import Network
from skbayesnn.sparse_bayes.prediction import forecast, runs
from skbayesnn.sparse_bayes.prediction.draws import linear_paths
from skbayesnn.sparse_bayes.prediction.ensemble import LaggedNetwork
from skbayesnn.sparse_bayes.records.lags import Lags
from skbayesnn.sparse_bayes.records.layout import Record
from skbayesnn.sparse_bayes.scaling import Scaling


class Recursion(NamedTuple):
    """Regressors (signals count inputs first, then outputs) and scales."""

    signal: np.ndarray
    lag: np.ndarray
    x_offset: np.ndarray
    x_scale: np.ndarray
    y_offset: np.ndarray
    y_scale: np.ndarray
    limit: float


def make_network(theta, sizes, code, recursion, U, posterior=None):
    """A `LaggedNetwork`; ``posterior`` as `simulate_variance` takes it."""
    n_outputs = len(recursion.y_scale)
    keep, covariance = np.ones(len(theta), dtype=bool), np.zeros(len(theta))
    noise, free_run_std = np.zeros(n_outputs), None
    if posterior is not None:
        column, matrix, variances, noise, ceiling = posterior
        keep = column >= 0
        covariance = matrix if len(matrix) else variances
        free_run_std = np.sqrt(ceiling) if np.isfinite(ceiling).all() else None
    network = Network(
        theta=theta,
        keep=keep,
        sizes=np.asarray(sizes, dtype=np.int64),
        units=tuple(np.arange(size) for size in sizes),
        full_sizes=tuple(sizes),
        activation=code,
        skip=len(theta) > n_layer_parameters(np.asarray(sizes, dtype=np.int64)),
    )
    scaling = Scaling(*recursion[2:])
    fitted = FittedNetwork(network, scaling, covariance, noise, free_run_std)
    return LaggedNetwork(
        fitted, Lags(recursion.signal, recursion.lag, U.shape[1], n_outputs)
    )


def lay_out(network, U, Y, start, stop):
    """One run from row ``start`` on."""
    starts = np.array([0, stop])
    record = Record(U[:stop], Y[:stop], network.lags, starts)
    return runs.laid_out(network, record, runs.free_runs(starts, start))


def store(network, path, Y, V, start, stop):
    """Rows in the user's units; returns the first that diverged or -1."""
    scaling = network.fitted.scaling
    Y[start:stop] = path.outputs * scaling.y_scale + scaling.y_offset
    if V is not None:
        V[start:stop] = path.variance * scaling.y_scale**2
    return start + int(path.diverged.argmax()) if path.diverged.any() else -1


def simulate(theta, sizes, code, recursion, U, Y, start, stop):
    network = make_network(theta, sizes, code, recursion, U)
    path = runs.simulate(network.fitted, lay_out(network, U, Y, start, stop))
    return store(network, path, Y, None, start, stop)


def simulate_variance(theta, sizes, code, recursion, *arguments):
    *posterior, U, Y, V, start, stop = arguments
    network = make_network(theta, sizes, code, recursion, U, posterior)
    run = lay_out(network, U, Y, start, stop)
    path = runs.simulate_variance(network.fitted, run, True)
    return store(network, path, Y, V, start, stop)


def _ahead(network, U, Y, horizon, out, V, start, stop):
    part = slice(start, stop)
    starts = np.array([0, stop - start])
    record = Record(U[part], Y[part], network.lags, starts)
    found = forecast.ahead(network, record, horizon, V is not None)
    first = network.lags.max_lag
    out[start + first : stop] = found.mean[first:]
    if V is not None:
        V[start + first : stop] = found.std[first:] ** 2
    return found.n_diverged


def predict_ahead(theta, sizes, code, recursion, U, Y, horizon, out, start, stop):
    network = make_network(theta, sizes, code, recursion, U)
    return _ahead(network, U, Y, horizon, out, None, start, stop)


def predict_ahead_variance(theta, sizes, code, recursion, *arguments):
    *posterior, U, Y, horizon, out, V, start, stop = arguments
    network = make_network(theta, sizes, code, recursion, U, posterior)
    return _ahead(network, U, Y, horizon, out, V, start, stop)


def _draw(fitted, run, deviations, linear, noise):
    """Draws in the user's units; ``noise`` too, none with ``linear``."""
    scaling = fitted.scaling
    if linear:
        assert not noise.any()
        paths, lost = linear_paths(fitted, run, deviations)
    else:
        paths = np.ascontiguousarray(noise / scaling.y_scale)
        lost = draw_paths(fitted.network.layers, run, deviations, paths)
    return paths * scaling.y_scale + scaling.y_offset, lost


def simulate_draws(arguments, deviations, linear, U, paths, start, stop):
    """Fill ``paths``, which come with the noise; returns which diverged."""
    network = make_network(*arguments, U)
    Y = np.full((stop, paths.shape[2]), np.nan)
    Y[:start] = paths[0, :start] if len(paths) else 0.0
    run = lay_out(network, U, Y, start, stop)
    paths[:, start:stop], lost = _draw(
        network.fitted, run, deviations, linear, paths[:, start:stop]
    )
    return lost


def predict_ahead_draws(arguments, deviations, linear, U, Y, horizon, paths):
    """Each row as the end of its own run, the noise of a row the same in all."""
    network = make_network(*arguments, U)
    record = Record(U, Y, network.lags, np.array([0, len(U)]))
    max_lag = network.lags.max_lag
    noise, diverged = paths.copy(), np.zeros(len(paths), dtype=bool)
    for part in runs.runs_ahead(record.starts, max_lag, horizon, 7):
        run = runs.laid_out(network, record, part)
        drawn, lost = _draw(
            network.fitted, run, deviations, linear, noise[:, part.rows]
        )
        paths[:, part.rows[part.ends]] = drawn[:, part.ends]
        diverged |= lost
    return diverged
