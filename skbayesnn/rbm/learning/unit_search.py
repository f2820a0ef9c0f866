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
with weight c, visible biases change by -c s w, and the contribution of the other units
to the log probability changes by o(v), which is zero for a standard RBM. With s = 0 and
o = 0 it never exceeds the first, by Jensen's inequality. The scalar s is searched
together with the unit: to first order a new unit changes the visible biases by c w / 2,
which moves the model's means away from the data's. At the best s they agree along w.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from ..kernels import bits
from ..kernels import units as kernels
from ..model import BLOCK_ROWS
from ..states import by_feature, product
from ..threads import share_out
from .conditionals import Conditionals, LogMean, log_mean, log_mean_and_slopes

# Points from which a search may start, and the norm of their weights.
_N_STARTS = 8
_START_NORM = 2.0
# Iterates of a search that are compared on other samples.
_CHECKED = (1, 2, 3, 5, 10)
# Without a penalty the linearised objective has no maximum.
_MAX_WEIGHT = 100.0


class PackedRows:
    """Binary rows, one bit per value: passes over them are bound by memory."""

    def __init__(self, packed, n_features):
        self.packed = packed
        self.n_features = n_features
        # a masked addition is a sixteenth of one by itself
        self._work = packed.size // 2

    def __len__(self):
        return self.packed.shape[1]

    def take(self, index):
        """Some rows as float32."""
        return bits.unpack_rows(self.packed[:, index], self.n_features)

    def states(self, rows):
        """A slice of the rows as they are multiplied with many units."""
        return self.take(rows).astype(np.uint8)

    def thin(self, n):
        """Every k-th row, at most ``n``."""
        step = -(-len(self) // n)
        return PackedRows(self.packed[:, ::step].copy(), self.n_features)

    def inputs(self, weights, bias):
        """Inputs of a unit, (n_rows,) float32."""
        padded = np.zeros(8 * len(self.packed), dtype=np.float32)
        padded[: self.n_features] = weights
        x = np.empty(len(self), dtype=np.float32)

        def call(first, last):
            bits.forward(self.packed, padded, np.float32(bias), x, first, last)

        share_out(call, len(x), self._work)
        return x

    def weighted_sum(self, s):
        """Sum of the rows, each times its ``s`` (float32); float64."""
        total = np.empty(8 * len(self.packed))

        def call(first, last):
            bits.backward(self.packed[first:last], s, total[8 * first : 8 * last])

        share_out(call, len(self.packed), self._work)
        return total[: self.n_features]


class DenseRows:
    """The same for rows of probabilities, float32."""

    def __init__(self, V):
        self.V = V

    def __len__(self):
        return len(self.V)

    def take(self, index):
        return self.V[index]

    def states(self, rows):
        return self.V[rows]

    def thin(self, n):
        return DenseRows(self.V[:: -(-len(self.V) // n)])

    def inputs(self, weights, bias):
        return self.V @ weights + np.float32(bias)

    def weighted_sum(self, s):
        return (s @ self.V).astype(np.float64)


class Samples(NamedTuple):
    """Samples on which a unit is evaluated."""

    data: PackedRows | DenseRows
    model: PackedRows | DenseRows
    """draws from the current model"""
    data_offset: np.ndarray | None = None
    """(n_samples,) the o(v) of the data; None for zeros"""
    model_offset: np.ndarray | None = None
    """(n_chains,)"""
    conditionals: Conditionals | None = None
    """of the model, which take the place of its draws for one unit; None for a model or
    a unit that is fractional"""


class Objective(NamedTuple):
    """Which gain is maximised, and under which penalty."""

    kind: str
    """"linearized" or "likelihood\""""
    unit_penalty: float
    radius: float | None
    """radius of the ball |w| <= C; None for the penalty alone"""
    unit_weight: float = 1.0


class Gain(NamedTuple):
    """Value of a unit on some samples."""

    value: float
    """nats per sample, without the penalty"""
    effective_sample_size: float
    """of the model samples, weighted to the model with the unit"""


class UnitGains(NamedTuple):
    """Of each unit of a model, (n_units,), nats per sample, without the penalty."""

    linear: np.ndarray
    """E_data[softplus(x)] - E_model[softplus(x)]"""
    removal: np.ndarray
    """the exact gain of taking it out"""


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


def pack(V):
    """Rows (n_rows, n_features), 0 and 1 as uint8, or float32 in [0, 1]."""
    if _is_binary(V):
        return PackedRows(bits.pack_rows(V), V.shape[1])
    return DenseRows(V)


def gather(rows, index):
    """The same of training rows, block by block; ``rows.states(index)`` gives them."""
    blocks = []
    for start in range(0, len(index), BLOCK_ROWS):
        V = rows.states(index[start : start + BLOCK_ROWS])
        if not _is_binary(V):
            return DenseRows(rows.states(index))
        blocks.append(bits.pack_rows(V))
    return PackedRows(np.concatenate(blocks, axis=1), V.shape[1])


def gain(objective, samples, unit):
    """Gain of a unit, without penalty, and the effective sample size behind it."""
    return gains(objective, samples, [unit], (1.0,))[0]


def gains(objective, samples, units, fractions):
    """The same of units that enter together, scaled by each of some fractions."""
    fractions = np.float32(fractions)
    values = np.zeros(len(fractions))
    for unit in units:
        at_data = samples.data.inputs(unit.weights, unit.bias)
        for k, fraction in enumerate(fractions):
            values[k] += _change(objective, fraction * at_data, unit.shift).mean()
    if _is_summed_out(objective, samples) and len(units) == 1:
        pairs = zip(values, fractions, strict=True)
        return [_summed_out_gain(samples, *units, *pair) for pair in pairs]
    terms = np.zeros((len(fractions), len(samples.model)))
    for unit in units:
        at_model = samples.model.inputs(unit.weights, unit.bias)
        for k, fraction in enumerate(fractions):
            terms[k] += _change(objective, fraction * at_model, unit.shift)
    return [_gain(objective, samples, *one) for one in zip(values, terms, strict=True)]


def _is_summed_out(objective, samples):
    """Whether the gain of a unit is a mean over hidden states of the model."""
    return objective.kind == "likelihood" and samples.conditionals is not None


def _summed_out_gain(samples, unit, value, fraction):
    """`Gain` of a fraction of a unit, from E_data and hidden states of the model."""
    part = fraction * unit.weights, float(fraction) * unit.bias
    expected, effective = log_mean(samples.conditionals, *part, unit.shift)
    return Gain(float(value - expected), effective * len(samples.model))


def _gain(objective, samples, value, terms):
    """From E_data and the values at the model of the change of the log probability."""
    log_ratio = terms
    if samples.model_offset is not None:
        log_ratio = terms + samples.model_offset
    ratio = np.exp(log_ratio - log_ratio.max())
    size = ratio.sum() ** 2 / np.square(ratio).sum()
    if objective.kind == "linearized":
        return Gain(float(value - terms.mean()), float(size))
    if samples.data_offset is not None:
        value = value + samples.data_offset.mean()
    return Gain(float(value - _log_mean_exp(log_ratio)), float(size))


def unit_gains(rbm, samples):
    """What each unit of a model is worth on samples, as `UnitGains`."""
    data, model = (_unit_outputs(rbm, rows) for rows in samples[:2])
    c, at_data = rbm.unit_weights.astype(np.float64), _mean(data)
    removal = -c * at_data - _log_mean_exp(-c[:, None] * model)
    return UnitGains(at_data - _mean(model), removal)


def total_outputs(rbm, rows):
    """Sum of softplus over the units, each with weight 1, (n_rows,) float64."""
    total, ones = np.zeros(len(rows)), np.ones_like(rbm.hidden)
    transposed = by_feature(rbm.weights)
    for start in range(0, len(rows), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        x = product(rows.states(part), transposed)
        kernels.softplus_sum(x, rbm.hidden, ones, total[part])
    return total


def mean_state(rows, unit):
    """Mean of a unit's states."""
    return _mean(_respond(rows, unit.weights, unit.bias).mean)


def penalty(objective, unit):
    """c lambda / 2 |w, b|^2."""
    strength = objective.unit_weight * objective.unit_penalty
    square = np.square(unit.weights, dtype=np.float64).sum() + float(unit.bias) ** 2
    return 0.5 * strength * float(square)


def penalties(objective, rbm):
    """The same for each unit of a model, with its own c."""
    squares = np.square(rbm.weights, dtype=np.float64).sum(axis=1)
    squares += np.square(rbm.hidden)
    return 0.5 * objective.unit_penalty * rbm.unit_weights * squares


def search(objective, samples, start, max_iter, tol, checked=None):
    """Maximise the penalised objective by L-BFGS.

    ``start`` (n_features + 2,) is (w, b, s); with a ball, (w, b) is a point of the
    space that is mapped into it. With ``checked``, other samples, the search ends at
    that of some iterates which gains most there: in many dimensions the last one has
    learned its samples by heart.
    """
    visited = []

    def negative(z):
        w, pull_back = _into_ball(z[:-1], objective.radius)
        value, slope, shift_slope = value_and_gradient(objective, samples, w, z[-1])
        return -value, -np.append(pull_back(slope), shift_slope)

    result = minimize(
        negative,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=lambda z: visited.append(z.copy()),
        # s is a mean of the unit's states; outside [0, 1] it would fit noise
        bounds=[(-_MAX_WEIGHT, _MAX_WEIGHT)] * (len(start) - 1) + [(0.0, 1.0)],
        options={"maxiter": max_iter, "ftol": tol, "gtol": 0.0, "maxcor": 10},
    )
    z, value = result.x, -float(result.fun)
    if checked is not None and visited:
        z = _best_on(objective, checked, visited)
        w, _ = _into_ball(z[:-1], objective.radius)
        value = value_and_gradient(objective, samples, w, z[-1])[0]
    return _unit(objective, z, float(value), int(result.nfev))


def _unit(objective, z, value=np.nan, n_evaluations=0):
    """The unit of a point that a search has visited."""
    w, _ = _into_ball(z[:-1], objective.radius)
    weights, bias = w[:-1].astype(np.float32), float(w[-1])
    return Unit(weights, bias, float(z[-1]), value, n_evaluations)


def _best_on(objective, samples, visited):
    """That of some points of a search that gains most on other samples."""
    numbers = sorted({*(n for n in _CHECKED if n <= len(visited)), len(visited)})
    points = [visited[number - 1] for number in numbers]
    units = [_unit(objective, point) for point in points]
    values = [gain(objective, samples, unit).value for unit in units]
    return points[int(np.argmax(values))]


def choose_start(objective, samples, rng):
    """The best of some units that each tell one training row from the mean.

    At zero weights the gradient vanishes in every direction: a search from there, or
    from near it, often makes no progress.
    """
    n = len(samples.data)
    center = samples.data.weighted_sum(np.ones(n, dtype=np.float32)) / n
    index = rng.choice(n, size=min(_N_STARTS, n), replace=False)
    directions = samples.data.take(index) - center
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    weights = directions * (_START_NORM / np.maximum(lengths, 1e-6))
    # half way between the mean and the row
    biases = -(weights * (center + 0.5 * directions)).sum(axis=1)
    shift = 0.0 if objective.kind == "linearized" else 0.5
    values = []
    for w, bias in zip(weights.astype(np.float32), biases, strict=True):
        unit = Unit(w, float(bias), shift, np.nan, 0)
        values.append(gain(objective, samples, unit).value - penalty(objective, unit))
    best = int(np.argmax(values))
    return np.concatenate([weights[best], [biases[best], shift]])


def value_and_gradient(objective, samples, w, shift):
    """Penalised objective, its gradient by w (the bias last), its slope by the shift.

    Sums are float64. The shift of the linearised objective stays where it is.
    """
    weights, c = w[:-1].astype(np.float32), objective.unit_weight
    data = _respond(samples.data, weights, w[-1])
    if _is_summed_out(objective, samples):
        expected = log_mean_and_slopes(samples.conditionals, weights, w[-1], shift)
    else:
        expected = _mean_over_draws(objective, samples, weights, w[-1], shift)
    value = _data_value(objective, samples, data, shift) - expected.value
    s_data = np.float32(c / len(samples.data)) * (data.mean - np.float32(shift))
    slope = np.empty_like(w)
    slope[:-1] = samples.data.weighted_sum(s_data) - expected.weights
    slope[-1] = s_data.sum(dtype=np.float64) - expected.bias
    strength = c * objective.unit_penalty
    value -= 0.5 * strength * float(w @ w)
    slope -= strength * w
    is_searched = objective.kind == "likelihood"
    shift_slope = c * (expected.input - _mean(data.x)) if is_searched else 0.0
    return float(value), slope, float(shift_slope)


def _mean_over_draws(objective, samples, weights, bias, shift):
    """The `LogMean` by draws of visible states; linearised, the mean."""
    model = _respond(samples.model, weights, bias)
    c, n_model = objective.unit_weight, len(samples.model)
    terms, log_ratio = _model_terms(objective, samples, model, shift)
    if objective.kind == "linearized":
        value = terms.mean()
        fractions = np.full(n_model, 1.0 / n_model)
    else:
        value = _log_mean_exp(log_ratio)
        fractions = np.exp(log_ratio - value) / n_model
    s = (c * fractions * (model.mean - shift)).astype(np.float32)
    slopes = samples.model.weighted_sum(s), s.sum(dtype=np.float64)
    return LogMean(value, *slopes, fractions @ model.x)


def _change(objective, x, shift):
    """c (softplus(x) - s x), float64."""
    softplus, mean = np.empty((2, *x.shape), dtype=np.float32)
    bits.activate(x, softplus, mean)
    return objective.unit_weight * (softplus - shift * x.astype(np.float64))


class _Response(NamedTuple):
    """A unit on rows, each (n_rows,) float32."""

    x: np.ndarray
    softplus: np.ndarray
    mean: np.ndarray


def _respond(rows, weights, bias):
    x = rows.inputs(weights, bias)
    response = _Response(x, np.empty_like(x), np.empty_like(x))
    bits.activate(*response)
    return response


def _unit_outputs(rbm, rows):
    """softplus of each unit, (n_units, n_rows) float32."""
    x = product(rows.states(slice(None)), by_feature(rbm.weights))
    x += rbm.hidden
    x = np.ascontiguousarray(x.T)
    softplus, mean = np.empty((2, x.size), dtype=np.float32)
    bits.activate(x.ravel(), softplus, mean)
    return softplus.reshape(x.shape)


def _data_value(objective, samples, data, shift):
    """E_data[a(v)]; the linearised objective knows of no offset."""
    value = objective.unit_weight * (_mean(data.softplus) - shift * _mean(data.x))
    if objective.kind == "linearized" or samples.data_offset is None:
        return value
    return value + samples.data_offset.mean()


def _model_terms(objective, samples, model, shift):
    """a(v) of the draws from the model, without their offsets and with them."""
    x, softplus = model.x.astype(np.float64), model.softplus.astype(np.float64)
    terms = objective.unit_weight * (softplus - shift * x)
    offset = samples.model_offset
    return terms, (terms if offset is None else terms + offset)


def _into_ball(z, radius):
    """A point of the ball for any ``z``, and the map of gradients back to ``z``.

    Points far inside of the ball stay where they are: a large one is no limit.
    """
    if radius is None:
        return z, lambda slope: slope
    inside = z / radius
    length = np.sqrt(1.0 + inside @ inside)

    def pull_back(slope):
        return (slope - (slope @ inside) / length**2 * inside) / length

    return z / length, pull_back


def _is_binary(V):
    """Whether all values are 0 or 1: those are their own squares."""
    return V.dtype == np.uint8 or bool((V * V == V).all())


def _mean(values):
    """Over the last axis, float64."""
    return values.mean(axis=-1, dtype=np.float64)


def _log_mean_exp(values):
    """Of float64 values, over the last axis."""
    highest = values.max(axis=-1, keepdims=True)
    return highest[..., 0] + np.log(_mean(np.exp(values - highest)))
