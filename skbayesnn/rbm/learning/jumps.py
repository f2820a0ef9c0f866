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

from ..._random import Stream, derived_seed, generator
from ..._sklearn import on_one_blas_thread
from ..kernels import units as kernels
from ..states import product

# Units of each chain that may flip in an update.
_FLIPS = 4


# also where a fit leaves BLAS more of them: its rounding depends on them
@on_one_blas_thread
def move(rbm, x, h, seed, number):
    """Hidden states (n_chains, n_units) after both kinds of steps.

    ``x`` (n_rows, n_units) float32 are the inputs of the hidden units, without their
    biases, at the rows of data. ``number`` tells the random numbers from those of other
    updates.
    """
    if not h.shape[1]:
        return h
    rng = generator(seed, Stream.JUMPS, number)
    proposal = Proposal(rbm, x)
    draws = derived_seed(seed, Stream.JUMPS), number
    proposed = proposal.draw(rng.integers(len(x), size=len(h)), draws)
    both = np.concatenate([h, proposed])
    y = product(both, rbm.weights)
    log_p = _summed_out(rbm, y)
    log_ratio = log_p + proposal.log_excess(both)
    gain = log_ratio[len(h) :] - log_ratio[: len(h)]
    taken = -rng.standard_exponential(len(h)) < gain
    chosen = np.arange(len(h)) + len(h) * taken
    return _flip(rbm, both[chosen], y[chosen], log_p[chosen], rng)


def _summed_out(rbm, y):
    """Log p(h) + log Z - b . h, with ``y`` the products of h and the weights."""
    total, ones = np.empty(len(y)), np.ones(y.shape[1], dtype=np.float32)
    kernels.softplus_sum(y, rbm.visible, ones, total)
    return total


class Proposal:
    """q(h), the mean over some rows of p(h | v)."""

    def __init__(self, rbm, x):
        self._x, self._biases = x, rbm.hidden
        ones = np.ones(x.shape[1], dtype=np.float32)
        self._normalisers = np.empty(len(x))
        kernels.softplus_sum(x, rbm.hidden, ones, self._normalisers)

    def draw(self, rows, place):
        """Hidden states of some rows; ``place``: the seed and the number of a draw."""
        x = self._x[rows]
        states = np.empty(x.shape, dtype=np.uint8)
        kernels.sample_units(x, self._biases, *place, 0, states, 0, x.shape[1])
        return states

    def log_excess(self, h):
        """b . h - log q(h) of some states, where b are the hidden biases.

        Of log p(h | v) = x . h + b . h - log of the normaliser, b . h is in log p(h),
        too.
        """
        log_p = h.astype(np.float32) @ self._x.T - self._normalisers
        return np.log(len(self._x)) - logsumexp(log_p, axis=1)


def _flip(rbm, h, y, log_p, rng):
    """States after proposals to flip a unit of each; changes the arrays.

    ``log_p`` is that of `_summed_out`.
    """
    everyone = np.arange(len(h))
    for _ in range(_FLIPS):
        unit = rng.integers(h.shape[1], size=len(h))
        sign = np.where(h[everyone, unit], np.float32(-1.0), np.float32(1.0))
        new_y = y + sign[:, None] * rbm.weights[unit]
        new = _summed_out(rbm, new_y)
        gain = new - log_p + sign * rbm.hidden[unit]
        taken = -rng.standard_exponential(len(h)) < gain
        h[everyone[taken], unit[taken]] ^= 1
        y[taken], log_p[taken] = new_y[taken], new[taken]
    return h
