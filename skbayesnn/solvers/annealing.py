"""The log partition function: annealed importance sampling, and enumeration.

Annealed importance sampling (Salakhutdinov and Murray, 2008) leads chains from
independent visible units with the biases ``base``, whose partition function is known,
to the model, through

    log f_beta(v) = (1 - beta) base . v + beta b . v + sum_i c_i softplus(beta x_i),

x_i = w_i . v + b_i. The mean of the chains' weights is an unbiased estimate of the
ratio of both partition functions. The reverse run starts at the model, and estimates
the inverse ratio: its logarithm errs to the other side.
"""

from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.special import log_expit, logsumexp

from ..kernels import rbm as kernels
from .rbm import Chains, gibbs, is_standard

# Chains of a block, whatever the number of jobs: matrix products of the same shapes
# round in the same way, so the split changes no result.
BLOCK_CHAINS = 50
MAX_EXACT_UNITS = 25
# 500 temperatures uniformly up to 0.5, 4,000 up to 0.9 and 10,000 up to 1.
PAPER_BETAS = ((500, 0.0, 0.5), (4000, 0.5, 0.9), (10000, 0.9, 1.0))
# Gibbs steps at the model before a reverse run.
_REVERSE_BURN_IN = 100


class LogPartition(NamedTuple):
    """Estimate of a log partition function, in nats."""

    log_partition: float
    interval: tuple
    log_weight_std: float
    effective_sample_size: float


def make_betas(betas):
    """An increasing array from 0 to 1, from a number of temperatures or "paper"."""
    if isinstance(betas, str):
        parts = [
            np.linspace(start, stop, n, endpoint=False)
            for n, start, stop in PAPER_BETAS
        ]
        return np.append(np.concatenate(parts), 1.0)
    if np.ndim(betas) == 0:
        return np.linspace(0.0, 1.0, int(betas))
    return np.asarray(betas, dtype=np.float64)


def base_log_partition(rbm, base):
    """Log partition function at beta = 0."""
    visible = -log_expit(-np.asarray(base, dtype=np.float64)).sum()
    units = np.asarray(rbm.unit_weights, dtype=np.float64).sum() * np.log(2.0)
    return float(visible + units)


def ais(rbm, base, betas, n_chains, seed, n_jobs=None, reverse=False):
    """Estimate by ``n_chains`` chains, in blocks that run side by side.

    The caller limits BLAS to one thread: beside other jobs, and for the rounding to be
    the same everywhere.
    """
    base = np.asarray(base, dtype=np.float32)
    seeds = np.random.SeedSequence(int(seed)).generate_state(3, np.uint64)
    blocks = [
        (first, min(BLOCK_CHAINS, n_chains - first))
        for first in range(0, n_chains, BLOCK_CHAINS)
    ]
    parallel = Parallel(n_jobs=n_jobs, prefer="threads")
    forward = parallel(
        delayed(_forward)(rbm, base, betas, seeds[0], first, n, reverse)
        for first, n in blocks
    )
    log_weights = np.concatenate([weights for weights, _ in forward])
    if not reverse:
        return summarise(log_weights, base_log_partition(rbm, base), 1.0)
    states = _resample(log_weights, np.concatenate([v for _, v in forward]), seeds[1])
    backward = parallel(
        delayed(_backward)(rbm, base, betas, states[first : first + n], seeds[2], first)
        for first, n in blocks
    )
    log_weights = np.concatenate(backward)
    return summarise(log_weights, base_log_partition(rbm, base), -1.0)


def summarise(log_weights, offset, sign):
    """Mean of the weights on the log scale, with three standard errors of it.

    The interval is symmetric on the log scale, so it reaches further up than that of
    the mean itself: heavy-tailed weights err downwards.
    """
    n = len(log_weights)
    log_mean = logsumexp(log_weights) - np.log(n)
    relative = np.exp(log_weights - log_mean)
    error = 3.0 * relative.std(ddof=1) / np.sqrt(n) if n > 1 else np.inf
    value = offset + sign * log_mean
    return LogPartition(
        log_partition=float(value),
        interval=(float(value - error), float(value + error)),
        log_weight_std=float(log_weights.std(ddof=1)) if n > 1 else np.nan,
        effective_sample_size=float(relative.sum() ** 2 / np.square(relative).sum()),
    )


def annealed_chains(rbm, base, betas, n_chains, seed, clamp=None):
    """Chains led from independent units to the model; ``clamp`` holds features."""
    base = np.asarray(base, dtype=np.float32)
    v = np.zeros((n_chains, len(base)), dtype=np.float32)
    slope = np.empty(n_chains)
    seed = np.uint64(seed)
    kernels.anneal_visible(v, base, rbm.visible, 0.0, seed, 0, 0, slope)
    if clamp is not None:
        np.copyto(v, clamp.values, where=clamp.mask)
    _, v, step = _anneal(rbm, base, betas, v, slope, seed, 0, clamp=clamp)
    return Chains(v, seed, step, 0)


def _forward(rbm, base, betas, seed, first_row, n_chains, keep_states):
    v = np.zeros((n_chains, len(base)), dtype=np.float32)
    slope = np.empty(n_chains)
    kernels.anneal_visible(v, base, rbm.visible, 0.0, seed, 0, first_row, slope)
    log_weights, v, step = _anneal(rbm, base, betas, v, slope, seed, first_row)
    if not keep_states:
        return log_weights, None
    chains, _ = gibbs(rbm, Chains(v, np.uint64(seed), step, first_row), 1)
    return log_weights, chains.states


def _backward(rbm, base, betas, states, seed, first_row):
    """Weights of chains that start at the model."""
    chains = Chains(states, np.uint64(seed), 0, first_row)
    chains, _ = gibbs(rbm, chains, _REVERSE_BURN_IN)
    slope = chains.states.astype(np.float64) @ (rbm.visible - base)
    log_weights, _, _ = _anneal(
        rbm, base, betas[::-1], chains.states, slope, seed, first_row, chains.step
    )
    return log_weights


def _anneal(rbm, base, betas, v, slope, seed, first_row, step=1, clamp=None):
    """Lead the states ``v`` along ``betas``; returns log weights, states, steps.

    With features held, the weights mean nothing.
    """
    move = _standard_move if is_standard(rbm) else _fractional_move
    log_weights = np.zeros(len(v))
    for before, beta in zip(betas[:-1], betas[1:], strict=True):
        log_weights += (beta - before) * slope
        place = seed, step, first_row
        v = move(rbm, base, v, (before, beta), place, log_weights, slope, clamp)
        step += 1
    return log_weights, v, step


def _standard_move(rbm, base, v, betas, place, log_weights, slope, clamp):
    """Add the hidden units' share of the weights, then one Gibbs step at the new beta.

    Returns the new states, and writes their slope.
    """
    before, beta = betas
    seed, step, first_row = place
    x = v @ rbm.weights.T
    kernels.anneal_hidden(
        x, rbm.hidden, before, beta, seed, 2 * step, first_row, log_weights
    )
    y = x @ rbm.weights
    kernels.anneal_visible(
        y, base, rbm.visible, beta, seed, 2 * step + 1, first_row, slope
    )
    if clamp is not None:
        np.copyto(y, clamp.values, where=clamp.mask)
    return y


def _fractional_move(rbm, base, v, betas, place, log_weights, slope, clamp):
    """The same with a Metropolis-Hastings step."""
    before, beta = betas
    seed, step, first_row = place
    old, new, excess, proposed_excess, proposed_slope = np.empty((5, len(v)))
    c = rbm.unit_weights
    x = v @ rbm.weights.T
    kernels.fractional_softplus(x, rbm.hidden, c, before, old, excess)
    kernels.fractional_softplus(x, rbm.hidden, c, beta, new, excess)
    log_weights += new - old
    kernels.fractional_hidden(x, rbm.hidden, c, beta, seed, 2 * step, first_row, excess)
    y = x @ rbm.weights
    kernels.anneal_visible(
        y, base, rbm.visible, beta, seed, 2 * step + 1, first_row, proposed_slope
    )
    if clamp is not None:
        np.copyto(y, clamp.values, where=clamp.mask)
    x = y @ rbm.weights.T
    kernels.fractional_softplus(x, rbm.hidden, c, beta, new, proposed_excess)
    log_ratio = proposed_excess - excess
    v = v.copy()
    kernels.metropolis(v, y, log_ratio, seed, 2 * step, first_row)
    slope[:] = v.astype(np.float64) @ (rbm.visible - base)
    return v


def _resample(log_weights, states, seed):
    """Draw states in proportion to their weights (systematic resampling)."""
    weights = np.exp(log_weights - log_weights.max())
    n = len(weights)
    u = (np.random.default_rng(int(seed)).random() + np.arange(n)) / n
    edges = np.cumsum(weights / weights.sum())
    edges[-1] = 1.0
    return states[np.searchsorted(edges, u)]


def exact_log_partition(rbm):
    """Sum over all states of the smaller side, in float64.

    Only the visible side can be summed over when units have weights other than 1.
    """
    weights, hidden, visible, unit_weights = (
        np.asarray(array, dtype=np.float64) for array in rbm
    )
    n_units, n_features = weights.shape
    if is_standard(rbm) and n_units < n_features:
        outer, inner, matrix, ones = hidden, visible, weights, np.ones(n_features)
    else:
        outer, inner, matrix, ones = visible, hidden, weights.T, unit_weights
    n_low = min(len(outer), 12)
    low = all_states(n_low)
    low_inputs = low @ matrix[:n_low] + inner
    low_energy = low @ outer[:n_low]
    parts = []
    for number in range(2 ** (len(outer) - n_low)):
        high = (number >> np.arange(len(outer) - n_low)) & 1
        x = low_inputs + high @ matrix[n_low:]
        total = -log_expit(-x) @ ones + low_energy + high @ outer[n_low:]
        parts.append(logsumexp(total))
    return float(logsumexp(parts))


def exact_size(rbm):
    """Units of the side that `exact_log_partition` sums over."""
    n_units, n_features = rbm.weights.shape
    return min(n_units, n_features) if is_standard(rbm) else n_features


def all_states(n_units):
    """(2**n_units, n_units), float64."""
    numbers = np.arange(2**n_units)[:, None]
    return ((numbers >> np.arange(n_units)) & 1).astype(np.float64)
