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
from ..kernels import units as kernels
from ..states import product

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
    flat, betas = replicas.states.reshape(-1, n_features), replicas.betas
    x = product(flat, transposed)
    # pairs take turns: a state that goes on in one direction travels fastest
    order, swapped = _swap(rbm, replicas, x, number % 2, seed, number)
    h = np.empty((n_replicas, n_chains, x.shape[1]), dtype=np.uint8)
    place = np.uint64(seed), 2 * number
    betas32 = betas.astype(np.float32)
    kernels.sample_tempered_units(x, order, rbm.hidden, betas32, *place, h)
    y = product(h.reshape(len(x), -1), rbm.weights).reshape(replicas.states.shape)
    states = np.empty_like(replicas.states)
    for k, beta in enumerate(betas32):
        place = np.uint64(seed), 2 * number + 1, k * n_chains
        states[k], _ = rbm.units.draw_annealed(
            y[k], replicas.base, rbm.visible, beta, place
        )
    if number % _SPACED == 0:
        betas = _respace(betas, swapped)
    return Replicas(states, betas, swapped, replicas.base)


def _swap(rbm, replicas, x, first, seed, number):
    """Which chain each one continues, and the new running mean of the swaps.

    Every second pair tries, from the pair ``first`` on. ``x`` are the inputs of the
    hidden units of all chains.
    """
    n_replicas, n_chains, n_features = replicas.states.shape
    order = np.arange(n_replicas * n_chains).reshape(n_replicas, n_chains)
    swapped = replicas.swapped.copy()
    gains = np.empty((n_replicas - 1, n_chains))
    betas = replicas.betas.astype(np.float32)
    x = x.reshape(n_replicas, n_chains, -1)
    kernels.swap_gains(x, rbm.hidden, betas, first, gains)
    flat = replicas.states.reshape(-1, n_features)
    full = rbm.units.fast_log_factor(flat, rbm.visible)
    slopes = full - rbm.units.fast_log_factor(flat, replicas.base)
    slopes = slopes.reshape(order.shape)
    spans = np.diff(replicas.betas)[:, None]
    gains[first::2] += (spans * (slopes[:-1] - slopes[1:]))[first::2]
    rng = generator(seed, Stream.SWAPS, number)
    for k in range(first, n_replicas - 1, 2):
        taken = np.log(rng.random(n_chains)) < gains[k]
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
