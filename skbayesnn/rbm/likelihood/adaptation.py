"""Temperatures of annealed importance sampling that suit a model.

A first, short run in both directions finds out where the work of the chains varies, and
the temperatures of the next run are placed so that it varies equally in all parts of
the path (the thermodynamic length of Crooks, 2007, is divided into equal parts). While
the estimate is poor, or does not tell whether rows of data miss something, the number
of temperatures is multiplied. No run that is weighted has placed its own temperatures:
its weights stay unbiased.
"""

import numpy as np

from ..._random import Stream, derived_seed
from .annealing import N_PARTS, make_path, run_both
from .estimates import HALF_WIDTH, combine, differ, is_contested

# Steps, in each direction, of the run that only places the temperatures and of the
# next: together they cost as much as 2,000 temperatures in one direction.
_FIRST, _SECOND = 200, 800
# Of the last run, if none before is good enough. All runs together have at most 50,000,
# and with more chains as much work as 150,000.
_LAST = 12800
# By what the number of temperatures is multiplied from run to run.
_LEAST_FACTOR, _LARGEST_FACTOR = 2.0, 4.0
# Fraction of the temperatures that are uniformly spaced, so that none is far from the
# next one where the first run saw no variation.
_UNIFORM = 0.2
# By what the number of chains is multiplied where few carry the estimate: their error
# falls to a half, for at most twice the cost of all runs before.
_MORE_CHAINS = 4


def run_adapted(rbm, base, n_chains, seed, n_jobs=None, rows=None):
    """Run in both directions along adapted temperatures, until it is enough.

    ``rows`` is the estimate by rows of data that stands beside the result, a
    `LogPartition` without the part of the base model. Returns the last `Pair`. The
    caller limits BLAS to one thread.
    """
    n_steps, betas = _SECOND, np.linspace(0.0, 1.0, _FIRST + 1)
    pair = _run(rbm, base, betas, n_chains, seed, n_jobs)
    # bound: the number of temperatures at least doubles up to the last
    while True:
        betas = respace(pair.betas, pair.lengths, n_steps)
        pair = _run(rbm, base, betas, n_chains, seed, n_jobs)
        result = combine(pair, 0.0)
        if n_steps == _LAST or _is_enough(result, rows):
            return pair
        n_steps = _more(n_steps, result)


def run_more_chains(rbm, base, pair, seed, n_jobs=None):
    """Run in both directions along the same temperatures, with more chains."""
    n_chains = _MORE_CHAINS * len(pair.forward)
    seed = int(derived_seed(seed, Stream.ANNEALING_ROUND, len(pair.betas), n_chains))
    return run_both(make_path(rbm, base, pair.betas), n_chains, seed, n_jobs)


def respace(betas, lengths, n_steps):
    """Temperatures of ``n_steps`` steps, equidistant by the lengths of the parts."""
    edges = betas[np.linspace(0, len(betas) - 1, len(lengths) + 1).astype(int)]
    total = lengths.sum()
    uniform = np.diff(edges)
    lengths = lengths / total if total > 0.0 else uniform
    distance = np.cumsum((1.0 - _UNIFORM) * lengths + _UNIFORM * uniform)
    positions = np.linspace(0.0, distance[-1], n_steps + 1)
    betas = np.interp(positions, np.append(0.0, distance), edges)
    betas[-1] = 1.0
    return betas


def _run(rbm, base, betas, n_chains, seed, n_jobs):
    # each number of steps has random numbers of its own
    seed = int(derived_seed(seed, Stream.ANNEALING_ROUND, len(betas)))
    return run_both(make_path(rbm, base, betas), n_chains, seed, n_jobs)


def _is_enough(result, rows):
    """Whether more temperatures would bring little."""
    if rows is not None and is_contested(result, rows):
        return False
    return _half_width(result) <= HALF_WIDTH and not differ(result)


def _more(n_steps, result):
    """Steps that probably are enough: errors fall as the root of their number."""
    factor = 1.5 * (_half_width(result) / HALF_WIDTH) ** 2
    factor = np.clip(factor, _LEAST_FACTOR, _LARGEST_FACTOR)
    # whole parts, of as many steps each
    return min(_LAST, N_PARTS * int(np.ceil(factor * n_steps / N_PARTS)))


def _half_width(result):
    return 0.5 * (result.interval[1] - result.interval[0])
