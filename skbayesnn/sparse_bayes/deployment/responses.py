r"""Responses of a model from rest and its static gain, with bands by the weights.

Each network of an ensemble rests at outputs of its own; the ensemble is the mixture of
their responses, as in its forecasts. With :math:`x_{t+1} = f(x_t, u_t; \theta)` the
derivatives of a response by the weights obey

.. math:: S_{t+1} = A_t S_t + \partial f / \partial \theta,

from those of the state of rest, :math:`S_0 = (I - A)^{-1} \partial f/\partial\theta`:
other weights rest elsewhere. An integrating model rests at every level, so for it
:math:`S_0 = 0`.
"""

from typing import NamedTuple

import numpy as np

from ..prediction.ensemble import combine
from ..prediction.forecast import Forecast
from ..prediction.posterior import apply_covariance
from . import operating_points as points


class Response(NamedTuple):
    """How outputs move after a change of an input.

    Parameters
    ----------
    time : ndarray of shape (n_steps,)
        Time since the change, in units of the sampling time, or in rows.
    mean : ndarray of shape (n_steps, n_outputs)
        Outputs less those without the change, in units of y.
    std : ndarray of shape (n_steps, n_outputs)
        Standard deviation, of the posterior of the weights and of the spread of an
        ensemble; without the noise of measured outputs.
    """

    time: np.ndarray
    mean: np.ndarray
    std: np.ndarray


class StaticGain(NamedTuple):
    """Outputs at rest over one input.

    Parameters
    ----------
    u : ndarray of shape (n_values,)
        Values of the input.
    y : ndarray of shape (n_values, n_outputs)
        Outputs at rest.
    std : ndarray of shape (n_values, n_outputs)
        Standard deviation, of the posterior of the weights and of the spread of an
        ensemble; without the noise of measured outputs.
    slope : ndarray of shape (n_values, n_outputs)
        The gain: derivative of the outputs at rest by the input.
    """

    u: np.ndarray
    y: np.ndarray
    std: np.ndarray
    slope: np.ndarray


def respond(equations, u, y, change):
    """Mean and std (n_steps, n_outputs) of the response to changes of the inputs.

    change : (n_steps, n_inputs), added to the inputs u (n_inputs,) of rest
    y : (n_outputs,), level of an integrating model; others rest where u has them
    """
    parts = [_respond_alone(one, u, y, change) for one in equations.members]
    return combine(parts, equations.weights)


def _respond_alone(equations, u, y, change):
    (step,) = equations.steps
    guesses = equations.guesses()
    if equations.n_levels:
        Y = points.settle(equations, u, y, guesses)
    elif equations.is_integrating:
        Y = equations.of_all(y)
    else:
        _, Y = points.find(equations, u, np.full(len(y), np.nan), guesses)
    start = equations.constant_state(u, Y)
    S = _at_rest_by_weights(equations, start, u)
    moved, moved_by_weights = _run(equations, step, start, S, u + change)
    still, still_by_weights = _run(
        equations, step, start, S, np.tile(u, (len(change), 1))
    )
    by_weights = moved_by_weights - still_by_weights
    return Forecast(moved - still, _std(step.fitted, by_weights), 0)


def _std(fitted, by_weights):
    """Standard deviations of values by their derivatives (..., n_kept)."""
    flat = by_weights.reshape(-1, by_weights.shape[-1])
    spread = apply_covariance(fitted.covariance, flat.T)
    variance = np.einsum("ij,ji->i", flat, spread).reshape(by_weights.shape[:-1])
    return np.sqrt(np.maximum(variance, 0.0))


def _by_weights(equations, step, v):
    """Derivatives of the next state (n_states, n_kept) and of the outputs."""
    of_outputs = step.by_weights(v)
    every = np.concatenate([np.zeros((len(v), of_outputs.shape[1])), of_outputs])
    return every[equations.source], of_outputs[equations.n_hidden :]


def _at_rest_by_weights(equations, x, u):
    """Derivatives of the state of rest by the weights."""
    (step,) = equations.steps
    of_state, _ = _by_weights(equations, step, np.concatenate([x, u]))
    if equations.is_integrating:
        return np.zeros_like(of_state)
    A = equations.jacobians(x, u)[0]
    return np.linalg.solve(np.eye(len(A)) - A, of_state)


def _run(equations, step, x, S, U):
    """Outputs, and their derivatives by the weights."""
    out = np.empty((len(U), equations.n_outputs))
    by_weights = np.empty((len(U), equations.n_outputs, S.shape[1]))
    for t, u in enumerate(U):
        v = np.concatenate([x, u])
        A, _, C, _ = equations.jacobians(x, u)
        of_state, of_outputs = _by_weights(equations, step, v)
        by_weights[t] = C @ S + of_outputs
        S = A @ S + of_state
        x, out[t] = equations.step(x, u)
    return out, by_weights


def static_gain(equations, u, values, k):
    """`StaticGain` over values (n_values,) of input k, the others as in u."""
    parts, slopes = [], []
    for one in equations.members:
        part, slope = _gain_alone(one, u, values, k)
        parts.append(part)
        slopes.append(slope)
    whole = combine(parts, equations.weights)
    means = np.swapaxes([part.mean for part in parts], 0, 1)
    picks = np.array([equations.picks(Y) for Y in means])
    slope = np.einsum("tmo,mto->to", picks, np.array(slopes))
    seen = (part[:, equations.n_hidden :] for part in (whole.mean, whole.std, slope))
    return StaticGain(values, *seen)


def _gain_alone(equations, u, values, k):
    (step,) = equations.steps
    u, free = u.copy(), np.full(equations.n_outputs, np.nan)
    shape = len(values), equations.n_hidden + equations.n_outputs
    mean, std, slope = (np.empty(shape) for _ in range(3))
    guesses = equations.guesses()
    for t, value in enumerate(values):
        u[k] = value
        _, Y = points.find(equations, u, free, guesses)
        # the branch of the value before, if there are several
        guesses = [(u, Y), *equations.guesses()]
        rest = points.at_rest(equations, u, Y)
        v = np.concatenate([equations.constant_state(u, Y), u])
        scaled = step.by_weights(v) / step.fitted.scaling.y_scale[:, None]
        by_weights = -np.linalg.solve(rest.by_y, scaled)
        mean[t], std[t] = Y[0], _std(step.fitted, by_weights)
        slope[t] = -np.linalg.solve(rest.by_y, rest.by_u[:, k])
    return Forecast(mean, std, 0), slope
