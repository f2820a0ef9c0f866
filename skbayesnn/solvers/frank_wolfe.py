"""Frank-Wolfe for restricted Boltzmann machines: the search for one hidden unit.

With q a distribution over hidden units, the penalised mean log-likelihood (6) is
concave in q, and a Frank-Wolfe step adds the unit w that maximises its linearisation
(9). Both objectives here are functions of w and of samples alone, with x = w . v the
input of the unit (its bias is the weight of a constant feature, as in the paper):

linearized
    c (E_data[softplus(x)] - E_model[softplus(x)]) - c lambda / 2 |w|^2

likelihood
    E_data[c softplus(x) + o(v)] - log E_model[exp(c softplus(x) + o(v))]
    - c lambda / 2 |w|^2,

the exact change of the mean log-likelihood (up to the penalty) when the unit enters
with weight c and the others' share of the log probability changes by o(v): zero for a
standard RBM. By Jensen's inequality it never exceeds the first.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp

# Points from which a search may start, and the norm of their weights.
_N_STARTS = 8
_START_NORM = 2.0


class Samples(NamedTuple):
    """What a unit is judged by."""

    data: np.ndarray
    """(n_samples, n_features) float32"""
    model: np.ndarray
    """(n_chains, n_features) float32 draws from the current model"""
    data_offset: np.ndarray | None = None
    """(n_samples,) the o(v) of the data; None for zeros"""
    model_offset: np.ndarray | None = None
    """(n_chains,)"""


class Objective(NamedTuple):
    """Which gain is maximised, and under which penalty."""

    kind: str
    """"linearized" or "likelihood\""""
    reg_lambda: float
    radius: float | None
    """radius of the ball |w| <= C; None for the penalty alone"""
    unit_weight: float = 1.0


class Gain(NamedTuple):
    """Value of a unit on some samples."""

    value: float
    """nats a sample, without the penalty"""
    effective_sample_size: float
    """of the model samples, weighted to the model with the unit"""


class Unit(NamedTuple):
    """A unit that a search found."""

    weights: np.ndarray
    """(n_features,) float32"""
    bias: float
    value: float
    """penalised objective on the samples of the search"""
    n_evaluations: int


def gain(objective, samples, weights, bias):
    """Gain of a unit, without penalty, and the effective sample size behind it."""
    data = _softplus(samples.data @ weights + np.float32(bias))
    model = _softplus(samples.model @ weights + np.float32(bias))
    c = objective.unit_weight
    log_ratio = c * model + _or_zero(samples.model_offset)
    ratio = np.exp(log_ratio - log_ratio.max())
    size = ratio.sum() ** 2 / np.square(ratio).sum()
    if objective.kind == "linearized":
        return Gain(float(c * (data.mean() - model.mean())), float(size))
    change = (c * data + _or_zero(samples.data_offset)).mean()
    change -= logsumexp(log_ratio) - np.log(len(log_ratio))
    return Gain(float(change), float(size))


def unit_outputs(rbm, V):
    """softplus of each unit, (n_samples, n_units) float64."""
    return _softplus(V @ rbm.weights.T + rbm.hidden)


def removal_gains(rbm, data, model):
    """Exact gain of taking out each unit, without the penalty, nats a sample.

    ``data`` and ``model`` are the `unit_outputs` of samples from both.
    """
    model = -rbm.unit_weights * model
    log_means = logsumexp(model, axis=0) - np.log(len(model))
    return -rbm.unit_weights * data.mean(axis=0) - log_means


def penalty(objective, weights, bias):
    """c lambda / 2 |w|^2, with the bias among the weights."""
    strength = objective.unit_weight * objective.reg_lambda
    return 0.5 * strength * (float(weights @ weights) + float(bias) ** 2)


def penalties(objective, rbm):
    """The same for each unit of a model, with its own c."""
    squares = np.square(rbm.weights, dtype=np.float64).sum(axis=1)
    squares += np.square(rbm.hidden)
    return 0.5 * objective.reg_lambda * rbm.unit_weights * squares


def search(objective, samples, start, max_iter, tol):
    """Maximise the penalised objective by L-BFGS from ``start`` (n_features + 1,).

    With a ball, ``start`` is a point of the space that is mapped into it.
    """

    def negative(z):
        w, pull_back = _into_ball(z, objective.radius)
        value, slope = _value_and_gradient(objective, samples, w)
        return -value, -pull_back(slope)

    result = minimize(
        negative,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "ftol": tol, "gtol": 0.0, "maxcor": 10},
    )
    w, _ = _into_ball(result.x, objective.radius)
    return Unit(
        w[:-1].astype(np.float32), float(w[-1]), -float(result.fun), int(result.nfev)
    )


def choose_start(objective, samples, rng):
    """The best of some units that each tell one training row from the mean.

    Without weights a unit gains nothing in any direction: a search from there, or from
    near it, often stays.
    """
    data = samples.data
    center = data.mean(axis=0)
    index = rng.choice(len(data), size=min(_N_STARTS, len(data)), replace=False)
    directions = data[index] - center
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    weights = directions * (_START_NORM / np.maximum(lengths, 1e-6))
    # half way between the mean and the row
    biases = -(weights * (center + 0.5 * directions)).sum(axis=1)
    starts = np.column_stack([weights, biases]).astype(np.float64)
    values = [_value_and_gradient(objective, samples, w)[0] for w in starts]
    return starts[int(np.argmax(values))]


def _value_and_gradient(objective, samples, w):
    """Penalised objective and its gradient by w, the bias last; float64 sums."""
    weights, bias = w[:-1].astype(np.float32), np.float32(w[-1])
    x_data = samples.data @ weights + bias
    x_model = samples.model @ weights + bias
    data, model = _softplus(x_data), _softplus(x_model)
    c = objective.unit_weight
    n_data, n_model = len(x_data), len(x_model)
    if objective.kind == "linearized":
        value = c * (data.mean() - model.mean())
        shares = np.full(n_model, 1.0 / n_model)
    else:
        log_ratio = c * model + _or_zero(samples.model_offset)
        log_sum = logsumexp(log_ratio)
        value = (c * data + _or_zero(samples.data_offset)).mean()
        value -= log_sum - np.log(n_model)
        shares = np.exp(log_ratio - log_sum)
    s_data = (c / n_data) * expit(x_data)
    s_model = (c * shares * expit(x_model)).astype(np.float32)
    slope = np.empty_like(w)
    slope[:-1] = s_data @ samples.data - s_model @ samples.model
    slope[-1] = s_data.sum(dtype=np.float64) - s_model.sum(dtype=np.float64)
    strength = c * objective.reg_lambda
    value -= 0.5 * strength * float(w @ w)
    slope -= strength * w
    return float(value), slope


def _into_ball(z, radius):
    """A point of the ball for any ``z``, and the map of gradients back to ``z``."""
    if radius is None:
        return z, lambda slope: slope
    length = np.sqrt(1.0 + z @ z)
    w = (radius / length) * z

    def pull_back(slope):
        return (radius / length) * (slope - (slope @ z) / length**2 * z)

    return w, pull_back


def _softplus(x):
    return -log_expit(-x.astype(np.float64))


def _or_zero(offset):
    return 0.0 if offset is None else offset
