r"""States of fitted state-space networks at which predictions start.

The state at the start of a record minimises

.. math:: \sum_t \|\hat y_t(x_0) - y_t\|^2 / \sigma^2 + (x_0 - m)^T P^{-1} (x_0 - m)

over the first rows, with the mean m and the covariance P that the states had in the
training record. An output may hide the sign of a state, so the sum may have several
minima: the search begins at the best of many states of the training record.

Other weights would tell of another state from the same rows. They would also have had
other states in the training record, so the prior follows them: a regression of the
derivatives of these states by the weights on the states themselves says how,
:math:`R(x)`. With the derivatives :math:`J_x, J_w` of the outputs in the first rows by
state and weights, over the noise, and the covariance
:math:`C = (P^{-1} + J_x^T J_x)^{-1}` of the state, this is

.. math:: d x_0 / d w = R - C J_x^T (J_w + J_x R)

Without it, weights that say the same in another basis of the states would seem to say
something else.
"""

from typing import NamedTuple

import numpy as np

from ..kernels.state_recursion import run_state_sensitivities, run_states
from ..records.state_runs import lay_out_for_prediction, select_features

# States of the training record from which the search looks, and of them those from
# which it descends.
N_CANDIDATES = 64
N_DESCENTS = 4
MAX_ITER = 20
_NOTHING = np.zeros(0, dtype=np.int64)


class Start(NamedTuple):
    """States at the starts of sessions, and their covariances.

    state : (n_sessions, n_states)
    covariance : (n_sessions, n_states, n_states)
    """

    state: np.ndarray
    covariance: np.ndarray


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
    scaling = network.fitted.scaling
    Y = (Y - scaling.y_offset) / scaling.y_scale
    return start_of_scaled(network, scaled_inputs(network, U), Y)


def start_of_scaled(network, U, Y):
    """As `estimated_start`, from scaled inputs and outputs."""
    Y, precision = Y / network.fitted.noise_std, np.linalg.inv(network.covariance)
    costs = [_cost(network, U, Y, precision, x) for x in network.visited]
    best = np.argsort(costs, kind="stable")[:N_DESCENTS]
    found = [_descend(network, U, Y, precision, network.visited[k]) for k in best]
    cost, state, covariance = min(found, key=lambda one: one[0])
    if not np.isfinite(cost):
        return unknown_start(network, 1)
    return Start(state[None], covariance[None])


def _cost(network, U, Y, precision, x):
    outputs = run_outputs(network, lay_out(network, U, [0], x[None]))
    misfit = outputs / network.fitted.noise_std - Y
    deviation = x - network.mean
    lost = np.isnan(outputs).any()
    squared = np.nansum(misfit**2) + deviation @ precision @ deviation
    return np.inf if lost else float(squared)


def _descend(network, U, Y, precision, x):
    """Gauss-Newton with halved steps: cost, state and its covariance."""
    cost, covariance = _cost(network, U, Y, precision, x), network.covariance
    for _ in range(MAX_ITER):
        outputs, S = _derivatives(network, U, x, _NOTHING)
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


def _derivatives(network, U, x, kept):
    """Outputs, and their derivatives (n * n_outputs, n_kept + n_states) over the noise.

    By weights, and by the state x at the start.
    """
    run = lay_out(network, U, [0], x[None])
    noise = network.fitted.noise_std
    with np.errstate(all="ignore"):
        _, outputs, S = run_state_sensitivities(
            network.fitted.network.layers, run, len(noise), kept, by_initial=True
        )
    return outputs, S / np.tile(noise, len(U))[:, None]


def start_by_weights(network, U, Y, state, covariance):
    """Derivatives (n_states, n_kept) of an estimated start by the weights in use.

    The arguments are those of `estimated_start` and what it found.
    """
    deviation = np.append(1.0, state - network.mean)
    with np.errstate(all="ignore"):
        by_prior = network.followed @ deviation
    known = np.isfinite(Y).ravel()
    if not known.any():
        return by_prior
    kept = np.flatnonzero(network.fitted.network.keep)
    scaled = scaled_inputs(network, U)
    S = _derivatives(network, scaled, state, kept)[1][known]
    by_weights, by_state = np.split(S, [len(kept)], axis=1)
    with np.errstate(all="ignore"):
        changed = by_weights + by_state @ by_prior
        return by_prior - covariance @ (by_state.T @ changed)


def scaled_inputs(network, U):
    scaling, first = network.fitted.scaling, network.n_states
    inputs = slice(first, first + U.shape[1])
    return (U - scaling.x_offset[inputs]) / scaling.x_scale[inputs]


def lay_out(network, U, first, initial):
    """`StateRun` of scaled inputs whose records begin in the rows ``first``."""
    fitted = network.fitted
    n_features = len(fitted.scaling.x_offset)
    run = lay_out_for_prediction(U, first, initial, n_features)
    return select_features(run, fitted.network.units[0])


def run_outputs(network, run):
    """Scaled outputs (n, n_outputs) of free runs."""
    fitted = network.fitted
    return run_states(fitted.network.layers, run, len(fitted.noise_std))[1]
