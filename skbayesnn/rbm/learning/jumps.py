"""Jumps of the chains between the modes of a model, and steps out of them.

Gibbs steps draw visible states by the hidden ones, and those by the visible ones. With
a thousand features, each holds the other in place. Here the hidden states of the chains
move alone, by Metropolis steps with the probability in which the visible ones are
summed out, for a standard RBM

    log p(h) = b . h + sum_i softplus(a_i + (h W)_i) - log Z.

There are two kinds:

- the hidden states of some rows of data are proposed: drawn from q(h), the mean over
  the rows of p(h | v). Where the model is like the data, q is like p, and jumps between
  modes of any distance are taken as often as their probabilities ask for;
- single units flip. So the chains find states that are no rows of data, but which the
  model prefers: none of the rows would lead there.
"""

import numpy as np
from scipy.special import logsumexp

from ..._random import Stream, generator
from ..kernels.units import softplus_sum
from ..states import product

# Units of each chain that may flip in an update.
_FLIPS = 4


def move(rbm, x, h, seed, number):
    """Hidden states (n_chains, n_units) after both kinds of steps.

    ``x`` (n_rows, n_units) are the inputs of the hidden units, without their biases, at
    the rows of data. ``number`` tells the random numbers from those of other updates.
    """
    if not h.shape[1]:
        return h
    rng = generator(seed, Stream.JUMPS, number)
    proposal = Proposal(rbm, x)
    proposed = proposal.draw(len(h), rng)
    y = product(np.concatenate([h, proposed]), rbm.weights)
    old_y, new_y = y[: len(h)], y[len(h) :]
    old, new = log_marginal(rbm, h, old_y), log_marginal(rbm, proposed, new_y)
    gain = new - old - proposal.log_probability(proposed) + proposal.log_probability(h)
    taken = -rng.standard_exponential(len(h)) < gain
    h = np.where(taken[:, None], proposed, h)
    y = np.where(taken[:, None], new_y, old_y)
    return _flip(rbm, h, y, np.where(taken, new, old), rng)


def log_marginal(rbm, h, y):
    """Log p(h) + log Z, with ``y`` the products of ``h`` and the weights."""
    return h @ rbm.hidden.astype(np.float64) + _summed_out(rbm, y)


def _summed_out(rbm, y):
    total, ones = np.empty(len(y)), np.ones(y.shape[1], dtype=np.float32)
    softplus_sum(y, rbm.visible, ones, total)
    return total


class Proposal:
    """q(h), the mean over some rows of p(h | v)."""

    def __init__(self, rbm, x):
        self._x = (x + rbm.hidden).astype(np.float64)
        self._normalisers = np.logaddexp(0.0, self._x).sum(axis=1)

    def draw(self, n, rng):
        """Hidden states of rows that are drawn at random."""
        x = self._x[rng.integers(len(self._x), size=n)]
        # the logistic distribution function of x is the probability of a 1
        return (rng.logistic(size=x.shape) < x).astype(np.uint8)

    def log_probability(self, h):
        """Log q(h) of some states."""
        log_p = h.astype(np.float64) @ self._x.T - self._normalisers
        return logsumexp(log_p, axis=1) - np.log(len(self._x))


def _flip(rbm, h, y, log_p, rng):
    """States after proposals to flip a unit of each; changes ``h`` and ``y``."""
    everyone = np.arange(len(h))
    log_p = log_p.copy()
    for _ in range(_FLIPS):
        unit = rng.integers(h.shape[1], size=len(h))
        flipped = h.copy()
        flipped[everyone, unit] ^= 1
        sign = 2.0 * flipped[everyone, unit] - 1.0
        new_y = y + sign.astype(np.float32)[:, None] * rbm.weights[unit]
        new = log_marginal(rbm, flipped, new_y)
        taken = -rng.standard_exponential(len(h)) < new - log_p
        h[taken], y[taken], log_p[taken] = flipped[taken], new_y[taken], new[taken]
    return h
