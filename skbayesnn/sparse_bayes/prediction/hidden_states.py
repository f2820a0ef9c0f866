r"""Free runs of fitted state-space networks, from states that a few outputs tell.

The state at the start of a record minimises

.. math:: \sum_t \|\hat y_t(x_0) - y_t\|^2 / \sigma^2 + (x_0 - m)^T P^{-1} (x_0 - m)

over the first rows, with the mean m and the covariance P that the states had in the
training record. An output may hide the sign of a state, so the sum may have several
minima: the search begins at the best of many states of the training record.
"""

from typing import NamedTuple

import numpy as np

from ..._saved_state import saved_as
from ..fitted import FittedNetwork
from ..kernels.state_recursion import run_state_sensitivities, run_states
from ..records.state_runs import lay_out_for_prediction, select_features
from .forecast import Forecast
from .posterior import apply_covariance

# States of the training record from which the search looks, and of them those from
# which it descends.
N_CANDIDATES = 64
N_DESCENTS = 4
MAX_ITER = 20
# Of the variance of the states, added to their covariance, which may be singular.
RIDGE = 1e-3


@saved_as("StateSpaceNetwork")
class StateSpaceNetwork(NamedTuple):
    """A fitted network, and the states that it had in its training record.

    mean, covariance : (n_states,) and (n_states, n_states)
    visited : (n_candidates, n_states), some of these states
    """

    fitted: FittedNetwork
    mean: np.ndarray
    covariance: np.ndarray
    visited: np.ndarray

    @property
    def n_states(self):
        return len(self.mean)


class Start(NamedTuple):
    """States at the starts of sessions, and their covariances.

    state : (n_sessions, n_states)
    covariance : (n_sessions, n_states, n_states)
    """

    state: np.ndarray
    covariance: np.ndarray


def make_network(fitted, data):
    """The network that was fitted to `StateRunData`, with the states it had there."""
    network = fitted.network
    n_outputs = len(fitted.noise_std)
    run = select_features(data.run, network.units[0])
    states, _ = run_states(network.layers, run, n_outputs)
    # the row before each session holds no state
    states = states[~data.run.begin]
    states = states[np.isfinite(states).all(axis=1)]
    centred = states - states.mean(axis=0)
    covariance = centred.T @ centred / len(states)
    spread = max(float(np.trace(covariance)) / len(covariance), 1e-6)
    covariance[np.diag_indices_from(covariance)] += RIDGE * spread
    rows = np.linspace(0, len(states) - 1, N_CANDIDATES).astype(int)
    visited = states[np.unique(rows)]
    return StateSpaceNetwork(fitted, states.mean(axis=0), covariance, visited)


def unknown_start(network, n_sessions):
    """Each session begins at the mean of the training record, with its spread."""
    return Start(
        np.tile(network.mean, (n_sessions, 1)),
        np.tile(network.covariance, (n_sessions, 1, 1)),
    )


def estimated_start(network, U, Y):
    """The start of one session from the outputs Y (n, n_outputs) of its first rows.

    Both in the user's units; U (n, n_inputs) holds the inputs of these rows, and NaN in
    Y stands for an output that is not known.
    """
    fitted = network.fitted
    Y = (Y - fitted.scaling.y_offset) / fitted.scaling.y_scale / fitted.noise_std
    U, precision = _scaled(network, U), np.linalg.inv(network.covariance)
    costs = [_cost(network, U, Y, precision, x) for x in network.visited]
    best = np.argsort(costs, kind="stable")[:N_DESCENTS]
    found = [_descend(network, U, Y, precision, network.visited[k]) for k in best]
    cost, state, covariance = min(found, key=lambda one: one[0])
    if not np.isfinite(cost):
        return unknown_start(network, 1)
    return Start(state[None], covariance[None])


def _cost(network, U, Y, precision, x):
    outputs = _run(network, U, np.array([0, len(U)]), x[None])[1]
    misfit = outputs / network.fitted.noise_std - Y
    deviation = x - network.mean
    lost = np.isnan(outputs).any()
    squared = np.nansum(misfit**2) + deviation @ precision @ deviation
    return np.inf if lost else float(squared)


def _descend(network, U, Y, precision, x):
    """Gauss-Newton with halved steps: cost, state and its covariance."""
    cost, covariance = _cost(network, U, Y, precision, x), network.covariance
    for _ in range(MAX_ITER):
        outputs, S = _by_initial(network, U, x)
        if not (np.isfinite(cost) and np.isfinite(S).all()):
            return np.inf, x, covariance
        misfit = (outputs / network.fitted.noise_std - Y).ravel()
        known = np.isfinite(misfit)
        J, misfit = S[known], misfit[known]
        covariance = np.linalg.inv(precision + J.T @ J)
        step = covariance @ (J.T @ misfit + precision @ (x - network.mean))
        before = cost
        for _ in range(8):
            trial = _cost(network, U, Y, precision, x - step)
            if trial < cost:
                x, cost = x - step, trial
                break
            step = 0.5 * step
        if not before - cost > 1e-6 * before:
            break
    return cost, x, covariance


def _by_initial(network, U, x):
    """Outputs, and derivatives (n * n_outputs, n_states) over the noise."""
    run = _lay_out(network, U, np.array([0, len(U)]), x[None])
    noise = network.fitted.noise_std
    nothing = np.zeros(0, dtype=np.int64)
    with np.errstate(all="ignore"):
        _, outputs, S = run_state_sensitivities(
            network.fitted.network.layers, run, len(noise), nothing, by_initial=True
        )
    return outputs, S / np.tile(noise, len(U))[:, None]


def _scaled(network, U):
    scaling, first = network.fitted.scaling, network.n_states
    inputs = slice(first, first + U.shape[1])
    return (U - scaling.x_offset[inputs]) / scaling.x_scale[inputs]


def _lay_out(network, U, starts, initial):
    fitted = network.fitted
    n_features = len(fitted.scaling.x_offset)
    run = lay_out_for_prediction(U, starts, initial, n_features)
    return select_features(run, fitted.network.units[0])


def _run(network, U, starts, initial):
    run = _lay_out(network, U, starts, initial)
    fitted = network.fitted
    return run_states(fitted.network.layers, run, len(fitted.noise_std))


def free_run(network, U, starts, start, return_std):
    """`Forecast` of inputs (n, n_inputs) in the user's units from a `Start`.

    The variance is that of the weights and of the state at the start, both by the delta
    method, and of the noise. Rows behind a divergence are NaN.
    """
    fitted, U = network.fitted, _scaled(network, U)
    scaling, std = fitted.scaling, None
    if return_std:
        outputs, variance = _with_variance(network, U, starts, start)
        std = np.sqrt(variance) * scaling.y_scale
    else:
        _, outputs = _run(network, U, starts, start.state)
    lost = int(np.isnan(outputs).any(axis=1).sum())
    return Forecast(outputs * scaling.y_scale + scaling.y_offset, std, lost)


def _with_variance(network, U, starts, start):
    fitted = network.fitted
    run, n_outputs = _lay_out(network, U, starts, start.state), len(fitted.noise_std)
    kept = np.flatnonzero(fitted.network.keep)
    _, outputs, S = run_state_sensitivities(
        fitted.network.layers, run, n_outputs, kept, by_initial=True
    )
    of_weights, of_start = S[:, : len(kept)], S[:, len(kept) :]
    # the derivatives of an unstable run may exceed all numbers where it does not
    with np.errstate(all="ignore"):
        variance = np.einsum(
            "ij,ji->i", of_weights, apply_covariance(fitted.covariance, of_weights.T)
        )
        session = np.repeat(np.arange(len(starts) - 1), np.diff(starts) * n_outputs)
        variance += np.einsum(
            "ij,ijk,ik->i", of_start, start.covariance[session], of_start
        )
    variance = variance.reshape(outputs.shape) + fitted.noise_std**2
    return outputs, np.where(np.isnan(outputs), np.nan, variance)
