"""Contrastive divergence, plain and persistent: ``init`` and ``step``.

The gradient of the mean log-likelihood by the weights is E_data[h v'] - E_model[h v']
(4). Contrastive divergence takes the second term from chains that start at the data of
the batch and run k Gibbs steps; persistent contrastive divergence from chains that are
carried on from batch to batch. In a fractional RBM, h has the weight c of its unit.

The gradient may be centred (Melchior, Fischer and Wiskott, 2016): with offsets mu and
lambda, the weights see (h - lambda)(v - mu)', and the biases what that leaves.
"""

from typing import NamedTuple

import numpy as np

from ..kernels import rbm as kernels
from .rbm import RBM, Chains, gibbs, hidden_means, is_standard

# Weights beyond are the sign of a divergence: a unit then is a step function.
MAX_WEIGHT = 1e3
# Share of the past in the running mean of the hidden units, for centring.
_MEMORY = 0.99


class Settings(NamedTuple):
    """What stays the same over a fit."""

    n_gibbs_steps: int
    persistent: bool
    momentum: float
    weight_decay: float
    centered: bool


class State(NamedTuple):
    """A model under training; ``step`` updates its arrays in place."""

    rbm: RBM
    velocity: RBM
    chains: np.ndarray
    """persistent chains, float32: hidden states (n_chains, n_units) of a standard RBM,
    which saves a product, visible states (n_chains, n_features) of a fractional one"""
    visible_offset: np.ndarray
    """(n_features,) mean of the data, float32"""
    hidden_offset: np.ndarray
    """(n_units,) running mean of the hidden units, float32"""
    step: int


class Info(NamedTuple):
    """What a step knew anyway."""

    mean_error: float
    """mean squared difference between the visible means of the data and the chains"""


class Diverged(ArithmeticError):
    """The weights left the range in which they mean something."""


def init(rbm, visible_offset, hidden_offset, chains, seed):
    """The state before the first step.

    Takes over the arrays of ``rbm``. ``chains`` (n_chains, n_features) are visible
    states for the persistent chains: draws from the model, or data.
    """
    if is_standard(rbm):
        chains = chains @ rbm.weights.T
        kernels.sample_units(chains, rbm.hidden, np.uint64(seed), 0, 0)
    return State(
        rbm,
        RBM(*(np.zeros_like(array) for array in rbm)),
        chains,
        np.asarray(visible_offset, dtype=np.float32),
        np.array(hidden_offset, dtype=np.float32),
        1,
    )


def copy(state):
    """A state whose arrays no later step changes."""
    return state._replace(
        rbm=RBM(*(array.copy() for array in state.rbm)),
        velocity=RBM(*(array.copy() for array in state.velocity)),
        hidden_offset=state.hidden_offset.copy(),
    )


def step(settings, state, batch, learning_rate, seed):
    """One update from a mini-batch (n_rows, n_features), float32 in [0, 1]."""
    n_rows = len(batch)
    if not is_standard(state.rbm):
        sample = _fractional_sample
    else:
        sample = _persistent_sample if settings.persistent else _sample_from_batch
    states, means, chains = sample(settings, state, batch, np.uint64(seed))
    n_chains = len(states) - n_rows

    # means as matrix products, in a third of the time
    of_data = np.full(n_rows, 1.0 / n_rows, dtype=np.float32)
    of_model = np.full(n_chains, 1.0 / n_chains, dtype=np.float32)
    mean_v = of_data @ states[:n_rows] - of_model @ states[n_rows:]
    data_h = of_data @ means[:n_rows]
    mean_h = data_h - of_model @ means[n_rows:]
    error = float(np.dot(mean_v, mean_v)) / len(mean_v)
    if settings.centered:
        hidden_offset = state.hidden_offset
        hidden_offset *= np.float32(_MEMORY)
        hidden_offset += np.float32(1.0 - _MEMORY) * data_h
        states -= state.visible_offset
        means -= hidden_offset
    # both outer products in one matrix product
    means[:n_rows] *= np.float32(1.0 / n_rows)
    means[n_rows:] *= np.float32(-1.0 / n_chains)
    gradient = means.T @ states
    if settings.centered:
        # what the weights' update does not move already
        mean_v -= hidden_offset @ gradient
        mean_h -= gradient @ state.visible_offset
    _update(settings, state, learning_rate, gradient, mean_h, mean_v)
    return state._replace(chains=chains, step=state.step + 1), Info(error)


def check(state):
    """Raise `Diverged` when the weights have left their range."""
    # the maximum of NumPy, through which a NaN comes
    largest = np.max([np.abs(array).max(initial=0.0) for array in state.rbm[:3]])
    if not largest <= MAX_WEIGHT:
        raise Diverged(float(largest))


def _persistent_sample(settings, state, batch, seed):
    """Data and chains below each other: visible states, hidden means, new chains."""
    rbm, n_rows = state.rbm, len(batch)
    h = state.chains
    n_chains = len(h)
    states = np.empty((n_rows + n_chains, batch.shape[1]), dtype=np.float32)
    states[:n_rows] = batch
    v = states[n_rows:]
    number = 2 * settings.n_gibbs_steps * state.step
    for _ in range(settings.n_gibbs_steps - 1):
        h = _gibbs_from_hidden(rbm, h, v, seed, number)
        number += 2
    np.matmul(h, rbm.weights, out=v)
    kernels.sample_units(v, rbm.visible, seed, number, 0)
    means = states @ rbm.weights.T
    chains = np.empty_like(h)
    kernels.mean_units(means[:n_rows], rbm.hidden)
    kernels.mean_and_sample_units(
        means[n_rows:], rbm.hidden, seed, number + 1, 0, chains
    )
    return states, means, chains


def _sample_from_batch(settings, state, batch, seed):
    """The same with chains that start at the batch."""
    rbm, n_rows = state.rbm, len(batch)
    states = np.empty((2 * n_rows, batch.shape[1]), dtype=np.float32)
    states[:n_rows] = batch
    v = states[n_rows:]
    means = np.empty((2 * n_rows, len(rbm.weights)), dtype=np.float32)
    np.matmul(batch, rbm.weights.T, out=means[:n_rows])
    h = np.empty_like(means[:n_rows])
    number = 2 * settings.n_gibbs_steps * state.step
    kernels.mean_and_sample_units(means[:n_rows], rbm.hidden, seed, number, 0, h)
    for _ in range(settings.n_gibbs_steps - 1):
        h = _gibbs_from_hidden(rbm, h, v, seed, number + 1)
        number += 2
    np.matmul(h, rbm.weights, out=v)
    kernels.sample_units(v, rbm.visible, seed, number + 1, 0)
    np.matmul(v, rbm.weights.T, out=means[n_rows:])
    kernels.mean_units(means[n_rows:], rbm.hidden)
    return states, means, state.chains


def _fractional_sample(settings, state, batch, seed):
    """The same by Metropolis-Hastings steps, for units of any weights."""
    start = state.chains if settings.persistent else batch
    chains = Chains(start, seed, settings.n_gibbs_steps * state.step, 0)
    chains, _ = gibbs(state.rbm, chains, settings.n_gibbs_steps)
    states = np.concatenate([batch, chains.states])
    return states, hidden_means(state.rbm, states), chains.states


def _gibbs_from_hidden(rbm, h, v, seed, number):
    """One step; ``v`` is memory for the visible states between."""
    np.matmul(h, rbm.weights, out=v)
    kernels.sample_units(v, rbm.visible, seed, number, 0)
    h = v @ rbm.weights.T
    kernels.sample_units(h, rbm.hidden, seed, number + 1, 0)
    return h


def _update(settings, state, learning_rate, gradient, mean_h, mean_v):
    rbm, velocity = state.rbm, state.velocity
    rate, momentum = float(learning_rate), float(settings.momentum)
    decay = float(settings.weight_decay)
    kernels.add_update(rbm.weights, velocity.weights, gradient, rate, momentum, decay)
    for values, speed, slope in [
        (rbm.hidden, velocity.hidden, mean_h),
        (rbm.visible, velocity.visible, mean_v),
    ]:
        kernels.add_update(values[None], speed[None], slope[None], rate, momentum, 0.0)
