"""Frank-Wolfe for restricted Boltzmann machines: the search for one hidden unit.

With q a distribution over hidden units, the penalised mean log-likelihood (6) is
concave in q, and a Frank-Wolfe step adds the unit w that maximises its linearisation
(9). Both objectives here are functions of the unit and of samples alone, with
x = w . v + b the input of the unit, and the norm of (w, b) in the penalty: in the
paper, the bias is the weight of a constant feature.

linearized
    c (E_data[softplus(x)] - E_model[softplus(x)]) - c lambda / 2 |w, b|^2

likelihood
    E_data[a(v)] - log E_model[exp(a(v))] - c lambda / 2 |w, b|^2,
    a(v) = c (softplus(x) - s x) + o(v),

the exact change of the mean log-likelihood (up to the penalty) when the unit enters
with weight c, visible biases change by -c s w, and the others' share of the log
probability changes by o(v), which is zero for a standard RBM. With s = 0 and o = 0 it
never exceeds the first, by Jensen's inequality. The scalar s is searched together with
the unit: to first order a new unit is a change of the visible biases, c w / 2, which
moves the model's means away from the data's. At the best s they agree along w.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp

# Points from which a search may start, and the norm of their weights.
_N_STARTS = 8
_START_NORM = 2.0
# Without a penalty the linearised objective has no maximum.
_MAX_WEIGHT = 100.0


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
    shift: float
    """the s of the search; 0 for the linearised objective"""
    value: float
    """penalised objective on the samples of the search"""
    n_evaluations: int


def gain(objective, samples, unit):
    """Gain of a unit, without penalty, and the effective sample size behind it."""
    c = objective.unit_weight
    x_data = samples.data @ unit.weights + np.float32(unit.bias)
    x_model = samples.model @ unit.weights + np.float32(unit.bias)
    data = c * (_softplus(x_data) - unit.shift * x_data)
    model = c * (_softplus(x_model) - unit.shift * x_model)
    log_ratio = model + _or_zero(samples.model_offset)
    ratio = np.exp(log_ratio - log_ratio.max())
    size = ratio.sum() ** 2 / np.square(ratio).sum()
    if objective.kind == "linearized":
        return Gain(float(data.mean() - model.mean()), float(size))
    change = (data + _or_zero(samples.data_offset)).mean()
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


def penalty(objective, unit):
    """c lambda / 2 |w, b|^2."""
    strength = objective.unit_weight * objective.reg_lambda
    square = np.square(unit.weights, dtype=np.float64).sum() + float(unit.bias) ** 2
    return 0.5 * strength * float(square)


def penalties(objective, rbm):
    """The same for each unit of a model, with its own c."""
    squares = np.square(rbm.weights, dtype=np.float64).sum(axis=1)
    squares += np.square(rbm.hidden)
    return 0.5 * objective.reg_lambda * rbm.unit_weights * squares


def search(objective, samples, start, max_iter, tol):
    """Maximise the penalised objective by L-BFGS.

    ``start`` (n_features + 2,) is (w, b, s); with a ball, (w, b) is a point of the
    space that is mapped into it.
    """

    def negative(z):
        w, pull_back = _into_ball(z[:-1], objective.radius)
        value, slope, shift_slope = value_and_gradient(objective, samples, w, z[-1])
        return -value, -np.append(pull_back(slope), shift_slope)

    result = minimize(
        negative,
        start,
        jac=True,
        method="L-BFGS-B",
        # s is a mean of the unit's states; beyond, it fits the noise of the samples
        bounds=[(-_MAX_WEIGHT, _MAX_WEIGHT)] * (len(start) - 1) + [(0.0, 1.0)],
        options={"maxiter": max_iter, "ftol": tol, "gtol": 0.0, "maxcor": 10},
    )
    w, _ = _into_ball(result.x[:-1], objective.radius)
    return Unit(
        w[:-1].astype(np.float32),
        float(w[-1]),
        float(result.x[-1]),
        -float(result.fun),
        int(result.nfev),
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
    shift = 0.0 if objective.kind == "linearized" else 0.5
    values = [value_and_gradient(objective, samples, w, shift)[0] for w in starts]
    return np.append(starts[int(np.argmax(values))], shift)


def value_and_gradient(objective, samples, w, shift):
    """Penalised objective, its gradient by w (the bias last), its slope by the shift.

    Sums are float64. The shift of the linearised objective stays where it is.
    """
    weights, bias = w[:-1].astype(np.float32), np.float32(w[-1])
    x_data = (samples.data @ weights + bias).astype(np.float64)
    x_model = (samples.model @ weights + bias).astype(np.float64)
    c = objective.unit_weight
    data = c * (_softplus(x_data) - shift * x_data)
    model = c * (_softplus(x_model) - shift * x_model)
    n_data, n_model = len(x_data), len(x_model)
    if objective.kind == "linearized":
        value = data.mean() - model.mean()
        shares = np.full(n_model, 1.0 / n_model)
        shift_slope = 0.0
    else:
        log_ratio = model + _or_zero(samples.model_offset)
        log_sum = logsumexp(log_ratio)
        value = (data + _or_zero(samples.data_offset)).mean()
        value -= log_sum - np.log(n_model)
        shares = np.exp(log_ratio - log_sum)
        shift_slope = c * (shares @ x_model - x_data.mean())
    s_data = (c / n_data) * (expit(x_data) - shift)
    s_model = c * shares * (expit(x_model) - shift)
    slope = np.empty_like(w)
    slope[:-1] = s_data.astype(np.float32) @ samples.data
    slope[:-1] -= s_model.astype(np.float32) @ samples.model
    slope[-1] = s_data.sum() - s_model.sum()
    strength = c * objective.reg_lambda
    value -= 0.5 * strength * float(w @ w)
    slope -= strength * w
    return float(value), slope, float(shift_slope)


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
    return -log_expit(-np.asarray(x, dtype=np.float64))


def _or_zero(offset):
    return 0.0 if offset is None else offset
