"""The log partition function by annealed importance sampling.

Annealed importance sampling (Salakhutdinov and Murray, 2008) leads chains from
independent visible units with the biases ``base``, whose partition function is known,
to the model, through

    log f_beta(v) = (1 - beta) base . v + beta b . v + sum_i c_i softplus(beta x_i),

x_i = w_i . v + b_i. The mean of the chains' weights is an unbiased estimate of the
ratio of both partition functions. The reverse run starts at the model, and estimates
the inverse ratio, so the error of its logarithm has the opposite sign on average.
What follows from the weights is in `estimates`, the choice of temperatures in
`adaptation`.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from joblib import delayed

from ..._parallel import Shared, at_hand, in_order, with_shared
from ..._random import Stream, derived_seed, generator
from ..._saved_state import saved_as
from ..kernels import units as kernels
from ..kernels.annealed_path import anneal_small
from ..model import RBM, Chains, Clamp, gibbs, is_standard
from ..states import ByFeature, by_feature, is_small, product
from ..visible import BinaryUnits
from .estimates import summarise

# Chains of a block, regardless of the number of jobs: products of the same shapes round
# in the same way, so the number of jobs does not change the result.
_BLOCK_CHAINS = 128
# 500 temperatures uniformly up to 0.5, 4,000 up to 0.9 and 10,000 up to 1.
PAPER_BETAS = ((500, 0.0, 0.5), (4000, 0.5, 0.9), (10000, 0.9, 1.0))
# Gibbs steps at the model before a reverse run.
_REVERSE_BURN_IN = 100
# Parts of a path, with equal numbers of temperatures, whose work is recorded.
N_PARTS = 20


class Path(NamedTuple):
    """The path from independent units to the model: what does not change along it."""

    rbm: RBM
    transposed: ByFeature
    """its weights"""
    base: np.ndarray
    """(n_features,) biases of the independent units, float32"""
    betas: np.ndarray
    """in the order they are gone through"""
    clamp: Clamp | None


class Run(NamedTuple):
    """Chains that went along a path in one direction."""

    log_weights: np.ndarray
    """(n_chains,) float64"""
    works: np.ndarray
    """(n_parts, n_chains) growth of the log weights in each part of the path, in its
    order: at most `N_PARTS` parts with equal numbers of temperatures"""
    states: np.ndarray
    """(n_chains, n_features) at the end"""
    step: int
    """of the next random numbers"""


@saved_as("Pair")
class Pair(NamedTuple):
    """Log weights (n_chains,) of runs in both directions along the same path.

    Minus those of the reverse run estimate the same as those of the forward run.
    """

    betas: np.ndarray
    """increasing"""
    forward: np.ndarray
    reverse: np.ndarray
    lengths: np.ndarray
    """(n_parts,) standard deviation of the work of a chain in each part, root mean
    square of both directions"""


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
    """Estimate in one direction; a reverse run needs a forward one to start from.

    The caller limits BLAS to one thread: beside other jobs, and for the rounding to be
    the same everywhere.
    """
    path = make_path(rbm, base, betas)
    offset = base_log_partition(rbm, base)
    ahead = run_forward(path, n_chains, seed, n_jobs)
    if not reverse:
        return summarise(ahead.log_weights, offset, 1.0)
    starts = resample(ahead.log_weights, ahead.states, seed)
    back = run_back(path, starts, seed, n_jobs)
    return summarise(back.log_weights, offset, -1.0)


def run_forward(path, n_chains, seed, n_jobs=None):
    """Lead chains from independent units to the model, in blocks side by side."""
    seed = derived_seed(seed, Stream.FORWARD_ANNEALING)
    shared = Shared(path)
    calls = (
        delayed(with_shared)(_forward, shared, seed, first, n)
        for first, n in _blocks(n_chains)
    )
    with at_hand(shared):
        return _joined(list(in_order(calls, n_jobs, "threads")))


def run_back(path, states, seed, n_jobs=None):
    """Lead chains from ``states`` to independent units, after steps at the model."""
    seed = derived_seed(seed, Stream.REVERSE_ANNEALING)
    shared = Shared(path._replace(betas=path.betas[::-1]))
    calls = (
        delayed(with_shared)(_reverse, shared, states[first : first + n], seed, first)
        for first, n in _blocks(len(states))
    )
    with at_hand(shared):
        return _joined(list(in_order(calls, n_jobs, "threads")))


def run_both(path, n_chains, seed, n_jobs=None, draws=None):
    """A forward run, and one back.

    That starts at ``draws(n_chains)``, states of the model; without, at states drawn
    from the forward run by their weights, which lack the modes that it has missed.
    """
    ahead = run_forward(path, n_chains, seed, n_jobs)
    if draws is None:
        starts = resample(ahead.log_weights, ahead.states, seed)
    else:
        starts = draws(n_chains)
    back = run_back(path, starts, seed, n_jobs)
    variances = ahead.works.var(axis=1) + back.works[::-1].var(axis=1)
    lengths = np.sqrt(0.5 * variances)
    return Pair(path.betas, ahead.log_weights, back.log_weights, lengths)


def resample(log_weights, states, seed):
    """Draw states in proportion to their weights (systematic resampling)."""
    weights = np.exp(log_weights - log_weights.max())
    n = len(weights)
    u = (generator(seed, Stream.RESAMPLING).random() + np.arange(n)) / n
    edges = np.cumsum(weights / weights.sum())
    edges[-1] = 1.0
    return states[np.searchsorted(edges, u)]


def _joined(runs):
    """The run of all blocks."""
    return Run(
        np.concatenate([run.log_weights for run in runs]),
        np.concatenate([run.works for run in runs], axis=1),
        np.concatenate([run.states for run in runs]),
        runs[0].step,
    )


def make_path(rbm, base, betas, clamp=None):
    """The path to a model along ``betas``."""
    base = np.asarray(base, dtype=np.float32)
    return Path(rbm, by_feature(rbm.weights), base, np.asarray(betas), clamp)


def _blocks(n_chains):
    """First chain and number of chains of each block, two at least for two cores."""
    n_blocks = max(-(-n_chains // _BLOCK_CHAINS), min(2, n_chains))
    parts = np.array_split(np.arange(n_chains), n_blocks)
    return [(int(part[0]), len(part)) for part in parts]


def annealed_chains(rbm, base, betas, n_chains, seed, clamp=None):
    """Chains led from independent units to the model; ``clamp`` holds features.

    Returns
    -------
    chains : Chains
    log_masses : ndarray of shape (n_chains,)
        By each chain, the log of an unbiased estimate of the sum of the unnormalised
        probabilities of all states with the features that are held.
    """
    path = make_path(rbm, base, betas, clamp)
    seed = derived_seed(seed, Stream.ANNEALED_SAMPLES)
    v, slope = _start(path, n_chains, (seed, 0, 0))
    run = _anneal(path, v, slope, (seed, 1, 0))
    log_masses = run.log_weights + _log_mass_at_start(path)
    return Chains(run.states, seed, run.step, 0), log_masses


def _log_mass_at_start(path):
    """The same sum at beta = 0: a number, or with a clamp for each chain."""
    if path.clamp is None:
        return base_log_partition(path.rbm, path.base)
    base = path.base.astype(np.float64)
    sums = path.rbm.units.log_partitions(base)
    visible = np.where(path.clamp.mask, path.clamp.values * base, sums).sum(axis=1)
    return visible + path.rbm.unit_weights.sum(dtype=np.float64) * np.log(2.0)


def _forward(path, seed, first_row, n_chains):
    v, slope = _start(path, n_chains, (seed, 0, first_row))
    run = _anneal(path, v, slope, (seed, 1, first_row))
    chains = Chains(run.states, np.uint64(seed), run.step, first_row)
    chains, _ = gibbs(path.rbm, chains, 1)
    return run._replace(states=chains.states, step=chains.step)


def _reverse(path, states, seed, first_row):
    """A run of chains that start at the model, along the temperatures given."""
    chains = Chains(states, np.uint64(seed), 0, first_row)
    chains, _ = gibbs(path.rbm, chains, _REVERSE_BURN_IN)
    slope = path.rbm.units.slope(chains.states, path.base, path.rbm.visible)
    return _anneal(path, chains.states, slope, (seed, chains.step, first_row))


def _start(path, n_chains, place):
    """States of independent units, and their slope."""
    y = np.zeros((n_chains, len(path.base)), dtype=np.float32)
    return _draw_visible(path, y, 0.0, place)


def _anneal(path, v, slope, place):
    """Lead the states ``v`` along the path; returns a `Run`.

    ``slope`` is that of the log weights by beta, through the visible biases. ``place``
    is (seed, step, row).
    """
    go = _small_moves if _is_small(path, v) else _moves
    seed, step, first_row = place
    n_moves = len(path.betas) - 1
    edges = np.linspace(0, n_moves, min(N_PARTS, n_moves) + 1).astype(int)
    log_weights, course = np.zeros(len(v)), []
    for first, last in pairwise(edges):
        course.append(log_weights.copy())
        part = path._replace(betas=path.betas[first : last + 1])
        v, slope = go(part, v, slope, (seed, step + first, first_row), log_weights)
    works = np.diff([*course, log_weights], axis=0)
    return Run(log_weights, works, v, step + n_moves)


def _is_small(path, v):
    """Whether `anneal_small` leads these states."""
    rbm = path.rbm
    return (
        isinstance(rbm.units, BinaryUnits)
        and path.clamp is None
        and is_standard(rbm)
        and is_small(v, len(rbm.hidden))
    )


def _small_moves(path, v, slope, place, log_weights):
    """What `_moves` does, but for the last bits, for what `_is_small` finds small."""
    rbm, (seed, step, first_row) = path.rbm, place
    v, slope = v.copy(), slope.copy()
    anneal_small(
        np.ascontiguousarray(path.betas),
        path.transposed.panels,
        np.ascontiguousarray(rbm.weights),
        rbm.hidden,
        path.base,
        rbm.visible,
        (np.uint64(seed), step, first_row),
        slope,
        log_weights,
        v,
    )
    return v, slope


def _moves(path, v, slope, place, log_weights):
    """Lead the states along the temperatures; returns them and their slope.

    Adds their growth to ``log_weights``.
    """
    move = _standard_move if is_standard(path.rbm) else _fractional_move
    seed, step, first_row = place
    for number, (before, beta) in enumerate(pairwise(path.betas)):
        log_weights += (beta - before) * slope
        place = seed, step + number, first_row
        v, slope = move(path, v, slope, (before, beta), place, log_weights)
    return v, slope


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
    if path.clamp is not None:
        v = units.hold(v, path.clamp)
        slope = units.slope(v, path.base, path.rbm.visible)
    return v, slope
