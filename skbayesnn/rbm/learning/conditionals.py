"""What a new hidden unit does to a model, with its visible states summed out.

The log-likelihood changes by E_data[a(v)] - log E_model[exp(a(v))], where the unit of
input x = w . v + b has a(v) = softplus(x) - s x (see `unit_search`), so that

    exp(a(v)) = exp(-s x) + exp((1 - s) x).

At the hidden states h of a standard RBM, the visible ones are independent, with inputs
A = a + h W, and the mean of both terms is known: with t = -s and t = 1 - s,

    E[exp(t x) | h] = exp(t b + sum_i softplus(A_i + t w_i) - softplus(A_i)).

So only the hidden states are drawn. Means over visible states as well would miss those
that are rare now, and frequent with the unit: a unit that makes up such states would
seem to gain what it does not. Without hidden units, one draw says all.
"""

from typing import NamedTuple

import numpy as np

from ..kernels import tilts
from ..states import by_feature, draw_from, product
from ..threads import share_out

# Additions that take as long as one input of a visible unit (measured: 23 and 47).
_WORK = 25
# Inputs at all draws, 32 megabytes: with many features, some draws are left out.
_MOST_INPUTS = 2**23


class Conditionals(NamedTuple):
    """Visible units at draws of the hidden ones."""

    inputs: np.ndarray
    """A, (n_draws, n_features) float32"""
    log_normalisers: np.ndarray
    """sum over i of softplus(A_i), (n_draws, 1) float64"""


class LogMean(NamedTuple):
    """log E_model[exp(a(v))] of a unit, and its slopes."""

    value: float
    weights: np.ndarray
    """slope by the weights, (n_features,) float64"""
    bias: float
    input: float
    """mean of x in the model with the unit: minus the slope by s"""


def draw(rbm, states, place):
    """`Conditionals` of a standard RBM, given draws of its visible states.

    ``place`` is the seed and the numbers of a draw. Without hidden units there is one.
    """
    if len(rbm.weights):
        states = states[: max(1, _MOST_INPUTS // states.shape[1])]
        h = draw_from(states, by_feature(rbm.weights), rbm.hidden, place)
        inputs = product(h, rbm.weights)
        inputs += rbm.visible
    else:
        inputs = rbm.visible[None].copy()
    # by the kernel of those with a unit: one without weights changes nothing at all
    none = np.zeros_like(rbm.visible)
    return Conditionals(inputs, _log_normalisers(inputs, none, np.zeros(2))[:, :1])


def log_mean(conditionals, weights, bias, shift):
    """The value of `LogMean`, and the effective number of draws over their number.

    The latter are weighted to the model with the unit.
    """
    log_ratios, _ = _log_ratios(conditionals, weights, bias, shift)
    return _log_mean(log_ratios)[:2]


def log_mean_and_slopes(conditionals, weights, bias, shift):
    """The `LogMean` of a unit of weights (n_features,) float32."""
    log_ratios, t = _log_ratios(conditionals, weights, bias, shift)
    value, _, shares = _log_mean(log_ratios)
    means, of_draws = np.empty((2, len(weights))), shares.astype(np.float32)
    tilt = t.astype(np.float32)

    def call(first, last):
        inputs = conditionals.inputs
        tilts.weighted_means(inputs, weights, tilt, of_draws, means, first, last)

    share_out(call, len(weights), _WORK * conditionals.inputs.size)
    of_bias = float(shares.sum(axis=0) @ t)
    input_ = bias + float(weights @ means.sum(axis=0))
    return LogMean(value, t @ means, of_bias, input_)


def _log_ratios(conditionals, weights, bias, shift):
    """Logarithms of both terms of exp(a(v)) for each draw (n_draws, 2), and their t."""
    t = np.array([-shift, 1.0 - shift])
    after = _log_normalisers(conditionals.inputs, weights, t)
    return after - conditionals.log_normalisers + t * bias, t


def _log_normalisers(inputs, weights, t):
    total, tilt = np.empty((len(inputs), 2)), t.astype(np.float32)

    def call(first, last):
        tilts.log_normalisers(inputs, weights, tilt, total, first, last)

    share_out(call, len(inputs), _WORK * inputs.size)
    return total


def _log_mean(log_ratios):
    """Logarithm of the mean, effective fraction, and share of each term."""
    largest = log_ratios.max()
    ratios = np.exp(log_ratios - largest)
    of_draws, total = ratios.sum(axis=1), ratios.sum()
    effective = total**2 / np.square(of_draws).sum() / len(of_draws)
    return float(largest + np.log(of_draws.mean())), float(effective), ratios / total
