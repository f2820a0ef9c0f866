"""The log partition function by annealed importance sampling.

Annealed importance sampling (Salakhutdinov and Murray, 2008) leads chains from
independent visible units with the biases ``base``, whose partition function is known,
to the model, through

    log f_beta(v) = (1 - beta) base . v + beta b . v + sum_i c_i softplus(beta x_i),

x_i = w_i . v + b_i. The mean of the chains' weights is an unbiased estimate of the
ratio of both partition functions. The reverse run starts at the model, and estimates
the inverse ratio, so the error of its logarithm has the opposite sign on average.
"""

from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.special import logsumexp

from ..._random import Stream, derived_seed, generator
from ..kernels import units as kernels
from ..model import RBM, Chains, Clamp, gibbs, is_standard
from ..states import by_feature, product

# Chains of a block, regardless of the number of jobs: products of the same shapes round
# in the same way, so the number of jobs does not change the result.
_BLOCK_CHAINS = 128
# 500 temperatures uniformly up to 0.5, 4,000 up to 0.9 and 10,000 up to 1.
PAPER_BETAS = ((500, 0.0, 0.5), (4000, 0.5, 0.9), (10000, 0.9, 1.0))
# Gibbs steps at the model before a reverse run.
_REVERSE_BURN_IN = 100


class Path(NamedTuple):
    """The path from independent units to the model: what does not change along it."""

    rbm: RBM
    transposed: np.ndarray
    """(n_features, n_units) the weights by visible unit"""
    base: np.ndarray
    """(n_features,) biases of the independent units, float32"""
    betas: np.ndarray
    """in the order they are gone through"""
    clamp: Clamp | None


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
    visible = rbm.units.log_partitions(np.asarray(base, dtype=np.float64)).sum()
    units = np.asarray(rbm.unit_weights, dtype=np.float64).sum() * np.log(2.0)
    return float(visible + units)


def ais(rbm, base, betas, n_chains, seed, n_jobs=None, reverse=False):
    """Estimate by ``n_chains`` chains, in blocks that run side by side.

    The caller limits BLAS to one thread: beside other jobs, and for the rounding to be
    the same everywhere.
    """
    path = make_path(rbm, base, betas)
    forward_seed = derived_seed(seed, Stream.FORWARD_ANNEALING)
    blocks = _blocks(n_chains)
    parallel = Parallel(n_jobs=n_jobs, prefer="threads")
    forward = parallel(
        delayed(_forward)(path, forward_seed, first, n, reverse) for first, n in blocks
    )
    log_weights = np.concatenate([weights for weights, _ in forward])
    if not reverse:
        return summarise(log_weights, base_log_partition(rbm, base), 1.0)
    states = np.concatenate([states for _, states in forward])
    states = _resample(log_weights, states, seed)
    reverse_seed = derived_seed(seed, Stream.REVERSE_ANNEALING)
    back = path._replace(betas=path.betas[::-1])
    backward = parallel(
        delayed(_backward)(back, states[first : first + n], reverse_seed, first)
        for first, n in blocks
    )
    log_weights = np.concatenate(backward)
    return summarise(log_weights, base_log_partition(rbm, base), -1.0)


def make_path(rbm, base, betas, clamp=None):
    """The path to a model along ``betas``."""
    base = np.asarray(base, dtype=np.float32)
    return Path(rbm, by_feature(rbm.weights), base, np.asarray(betas), clamp)


def _blocks(n_chains):
    """First chain and number of chains of each block, two at least for two cores."""
    n_blocks = max(-(-n_chains // _BLOCK_CHAINS), min(2, n_chains))
    parts = np.array_split(np.arange(n_chains), n_blocks)
    return [(int(part[0]), len(part)) for part in parts]


def summarise(log_weights, offset, sign):
    """Mean of the weights on the log scale, with three standard errors of it.

    The interval is symmetric on the log scale, so it reaches further up than that of
    the mean itself: the error of heavy-tailed weights is mostly downwards.
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
    path = make_path(rbm, base, betas, clamp)
    seed = derived_seed(seed, Stream.ANNEALED_SAMPLES)
    v, slope = _start(path, n_chains, (seed, 0, 0))
    _, v, step = _anneal(path, v, slope, (seed, 1, 0))
    return Chains(v, seed, step, 0)


def _forward(path, seed, first_row, n_chains, keep_states):
    v, slope = _start(path, n_chains, (seed, 0, first_row))
    log_weights, v, step = _anneal(path, v, slope, (seed, 1, first_row))
    if not keep_states:
        return log_weights, None
    chains, _ = gibbs(path.rbm, Chains(v, np.uint64(seed), step, first_row), 1)
    return log_weights, chains.states


def _backward(path, states, seed, first_row):
    """Weights of chains that start at the model."""
    chains = Chains(states, np.uint64(seed), 0, first_row)
    chains, _ = gibbs(path.rbm, chains, _REVERSE_BURN_IN)
    slope = path.rbm.units.slope(chains.states, path.base, path.rbm.visible)
    place = seed, chains.step, first_row
    log_weights, _, _ = _anneal(path, chains.states, slope, place)
    return log_weights


def _start(path, n_chains, place):
    """States of independent units, and their slope."""
    y = np.zeros((n_chains, len(path.base)), dtype=np.float32)
    return _draw_visible(path, y, 0.0, place)


def _anneal(path, v, slope, place):
    """Lead the states ``v`` along the path; returns log weights, states, steps.

    ``slope`` is that of the log weights by beta, through the visible biases. ``place``
    is (seed, step, row). With features held, the weights mean nothing.
    """
    move = _standard_move if is_standard(path.rbm) else _fractional_move
    seed, step, first_row = place
    log_weights = np.zeros(len(v))
    for before, beta in zip(path.betas[:-1], path.betas[1:], strict=True):
        log_weights += (beta - before) * slope
        place = seed, step, first_row
        v, slope = move(path, v, slope, (before, beta), place, log_weights)
        step += 1
    return log_weights, v, step


def _standard_move(path, v, slope, betas, place, log_weights):
    """Add the hidden units' part of the weights, then one Gibbs step at the new beta.

    Returns the new states and their slope.
    """
    rbm, (before, beta), (seed, step, first_row) = path.rbm, betas, place
    x = product(v, path.transposed)
    h = np.empty(x.shape, dtype=np.uint8)
    kernels.anneal_hidden(
        x, rbm.hidden, before, beta, seed, 2 * step, first_row, log_weights, h
    )
    y = product(h, rbm.weights)
    return _draw_visible(path, y, beta, (seed, 2 * step + 1, first_row))


def _fractional_move(path, v, slope, betas, place, log_weights):
    """The same with a Metropolis-Hastings step."""
    rbm, (before, beta), (seed, step, first_row) = path.rbm, betas, place
    old, new, excess, proposed_excess = np.empty((4, len(v)))
    b, c = rbm.hidden, rbm.unit_weights
    x = product(v, path.transposed)
    kernels.fractional_softplus(x, b, c, before, old, excess)
    kernels.fractional_softplus(x, b, c, beta, new, excess)
    log_weights += new - old
    kernels.fractional_hidden(x, b, c, beta, seed, 2 * step, first_row, excess)
    y = x @ rbm.weights
    proposal, proposed = _draw_visible(path, y, beta, (seed, 2 * step + 1, first_row))
    x = product(proposal, path.transposed)
    kernels.fractional_softplus(x, b, c, beta, new, proposed_excess)
    accepted = np.empty(len(v), dtype=np.bool_)
    kernels.metropolis(proposed_excess - excess, seed, 2 * step, first_row, accepted)
    v = np.where(accepted[:, None], proposal, v)
    return v, np.where(accepted, proposed, slope)


def _draw_visible(path, y, beta, place):
    """Visible states at ``beta`` from their inputs, and their slope."""
    units = path.rbm.units
    v, slope = units.draw_annealed(y, path.base, path.rbm.visible, beta, place)
    # the slope of states with values held is not needed
    return (v if path.clamp is None else units.hold(v, path.clamp)), slope


def _resample(log_weights, states, seed):
    """Draw states in proportion to their weights (systematic resampling)."""
    weights = np.exp(log_weights - log_weights.max())
    n = len(weights)
    u = (generator(seed, Stream.RESAMPLING).random() + np.arange(n)) / n
    edges = np.cumsum(weights / weights.sum())
    edges[-1] = 1.0
    return states[np.searchsorted(edges, u)]
