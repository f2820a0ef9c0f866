"""Tempered chains: replicas from independent features to the model swap their states.

Where the modes of a model are far apart, Gibbs steps do not move between them. Replicas
at the inverse temperatures beta sample

    log f_beta(v) = (1 - beta) base . v + beta b . v + sum_j softplus(beta x_j),

x_j = w_j . v + b_j: at 0 independent features, between which nothing is in the way, and
at 1 the model. Neighbours swap their states by a Metropolis step, which leaves the
distributions of both as they are (Desjardins et al., 2010; Cho, Raiko and Ilin, 2010).
The inverse temperatures move to where swaps are refused, until all pairs swap equally
often.
"""

from typing import NamedTuple

import numpy as np

from ..._random import Stream, generator
from ..._saved_state import saved_as
from ..kernels.units import softplus_sum
from ..states import draw, product

# Updates from one change of the temperatures to the next, the fraction of the way that
# they move, and that of an update in the running mean of the swaps.
_SPACED, _MOVED, _FORGOTTEN = 50, 0.5, 0.01
# Least refusal of a pair that counts: a pair which always swaps keeps some distance.
_LEAST_REFUSED = 0.02
# Steps of the replicas before the first one is used.
_BURN_IN = 100


@saved_as("Replicas")
class Replicas(NamedTuple):
    """Chains at several temperatures."""

    states: np.ndarray
    """(n_replicas, n_chains, n_features) uint8, those of the model last"""
    betas: np.ndarray
    """(n_replicas,) inverse temperatures, from 0 to 1"""
    swapped: np.ndarray
    """(n_replicas - 1,) running mean of the fraction of neighbours that swap"""
    base: np.ndarray
    """(n_features,) biases of the independent features, float32"""


def start(rbm, transposed, base, n_replicas, n_chains, seed):
    """Replicas that have run long enough to be used."""
    base = np.asarray(base, dtype=np.float32)
    x = np.zeros((n_replicas * n_chains, len(base)), dtype=np.float32)
    states = rbm.units.draw(x, base, (np.uint64(seed), 0, 0))
    replicas = Replicas(
        states.reshape(n_replicas, n_chains, len(base)),
        np.linspace(0.0, 1.0, n_replicas),
        np.full(n_replicas - 1, 0.5),
        base,
    )
    for number in range(1, _BURN_IN + 1):
        replicas = advance(rbm, transposed, replicas, seed, number)
    return replicas


def advance(rbm, transposed, replicas, seed, number):
    """Replicas after swaps, and one Gibbs step of each.

    ``transposed`` holds the weights of ``rbm``, a standard one; ``number`` tells the
    random numbers of this step from those of others.
    """
    n_replicas, n_chains, n_features = replicas.states.shape
    x = product(replicas.states.reshape(-1, n_features), transposed)
    x = x.reshape(n_replicas, n_chains, -1)
    rng = generator(seed, Stream.SWAPS, number)
    # pairs take turns: a state that goes on in one direction travels fastest
    order, swapped = _swap(rbm, replicas, x, number % 2, rng)
    # a chain takes over the inputs of the states that it gets
    x = x.reshape(n_replicas * n_chains, -1)[order.ravel()].reshape(x.shape)
    betas = replicas.betas.astype(np.float32)
    h = np.empty(x.shape, dtype=np.uint8)
    for k, beta in enumerate(betas):
        place = np.uint64(seed), 2 * number, k * n_chains
        h[k] = draw(beta * x[k], beta * rbm.hidden, place)
    y = product(h.reshape(n_replicas * n_chains, -1), rbm.weights)
    y = y.reshape(replicas.states.shape)
    states = np.empty_like(replicas.states)
    for k, beta in enumerate(betas):
        place = np.uint64(seed), 2 * number + 1, k * n_chains
        bias = (np.float32(1.0) - beta) * replicas.base + beta * rbm.visible
        states[k] = rbm.units.draw(beta * y[k], bias, place)
    betas = _respace(replicas.betas, swapped) if number % _SPACED == 0 else None
    return Replicas(
        states, replicas.betas if betas is None else betas, swapped, replicas.base
    )


def _swap(rbm, replicas, x, first, rng):
    """Which chain each one continues, and the new running mean of the swaps.

    Every second pair tries, from the pair ``first`` on.
    """
    n_replicas, n_chains, _ = replicas.states.shape
    order = np.arange(n_replicas * n_chains).reshape(n_replicas, n_chains)
    swapped = replicas.swapped.copy()
    flat = replicas.states.reshape(n_replicas * n_chains, -1)
    base = rbm.units.fast_log_factor(flat, replicas.base).reshape(order.shape)
    full = rbm.units.fast_log_factor(flat, rbm.visible).reshape(order.shape)
    total = np.empty(n_chains)

    def gain(k, before, after):
        """Of the log probability of the chains k, from one temperature to the other."""
        result = (after - before) * (full[k] - base[k])
        for beta, sign in ((after, 1.0), (before, -1.0)):
            beta = np.float32(beta)
            softplus_sum(beta * x[k], beta * rbm.hidden, rbm.unit_weights, total)
            result += sign * total
        return result

    for k in range(first, n_replicas - 1, 2):
        low, high = replicas.betas[k : k + 2]
        both = gain(k, low, high) + gain(k + 1, high, low)
        taken = np.log(rng.random(n_chains)) < both
        order[k : k + 2] = np.where(taken, order[k : k + 2][::-1], order[k : k + 2])
        swapped[k] += _FORGOTTEN * (taken.mean() - swapped[k])
    return order, swapped


def _respace(betas, swapped):
    """Inverse temperatures that move to where swaps are refused."""
    refused = np.maximum(1.0 - swapped, _LEAST_REFUSED)
    course = np.concatenate([[0.0], np.cumsum(refused)])
    wanted = np.interp(np.linspace(0.0, course[-1], len(betas)), course, betas)
    betas = (1.0 - _MOVED) * betas + _MOVED * wanted
    betas[[0, -1]] = 0.0, 1.0
    return betas
