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

The rows that are proposed are those of the batch. A row that is learned more often than
proposed becomes too likely unseen: with a thousand features and few rows, one update
may add nats to the log probability of one row, and nothing to the others.
"""

import math

import numpy as np

from ..._random import Stream, derived_seed, generator
from ..._sklearn import on_one_blas_thread
from ..kernels import units as kernels
from ..model import Clamp
from ..row_mixture import RowMixture, summed_out, summed_out_given
from ..states import draw_from, product

# Units of each chain that may flip in an update.
_FLIPS = 4
# What jumps may add to the work of updates, and most updates from one to the next.
_SHARE, _LONGEST = 1 / 3, 4


def interval(n_rows, n_chains, n_replicas, n_features):
    """Updates from one jump to the next: as few as add little to their work.

    In products of a row and the weights, a jump takes one for each proposal; and for
    each state before and behind it, the probabilities by all rows, as many numbers as
    the weights of these rows. An update takes three products for each row, and two for
    each state of the chains.
    """
    of_jump = n_chains * (n_features + 2 * n_rows)
    of_update = n_features * (3 * n_rows + 2 * n_chains * n_replicas)
    return min(max(math.ceil(of_jump / (_SHARE * of_update)), 1), _LONGEST)


# also where a fit leaves BLAS more of them: its rounding depends on them
@on_one_blas_thread
def move(rbm, x, h, seed, number, clamp=None):
    """Hidden states (n_chains, n_units) after both kinds of steps, and their inputs.

    The latter, (n_chains, n_features), are those of the visible units, without biases.

    ``x`` (n_rows, n_units) float32 are the inputs of the hidden units, without their
    biases, at the rows of data. ``number`` tells the random numbers from those of other
    updates. Where a ``clamp`` holds features, no units flip.
    """
    if not h.shape[1]:
        return h, np.zeros((len(h), rbm.weights.shape[1]), dtype=np.float32)
    rng = generator(seed, Stream.JUMPS, number)
    proposal = RowMixture(rbm, x)
    draws = derived_seed(seed, Stream.JUMPS), number
    proposed = proposal.draw(rng.integers(len(x), size=len(h)), draws)
    both = np.concatenate([h, proposed])
    y = product(both, rbm.weights)
    if clamp is None:
        log_p = summed_out(rbm, y)
    else:
        log_p = summed_out_given(rbm, y, _of_both(clamp, len(h)))
    log_ratio = log_p + proposal.log_excess(both)
    gain = log_ratio[len(h) :] - log_ratio[: len(h)]
    taken = -rng.standard_exponential(len(h)) < gain
    chosen = np.arange(len(h)) + len(h) * taken
    if clamp is not None:
        return both[chosen], y[chosen]
    return _flip(rbm, both[chosen], y[chosen], log_p[chosen], rng)


def move_visible(rbm, transposed, x, v, seed, number, clamp=None):
    """Visible states (n_chains, n_features) after the same steps of hidden ones.

    ``transposed`` holds the weights of ``rbm``.
    """
    place = derived_seed(seed, Stream.JUMPS, 1)
    h = draw_from(v, transposed, rbm.hidden, (place, 2 * number, 0))
    _, y = move(rbm, x, h, seed, number, clamp)
    moved = rbm.units.draw(y, rbm.visible, (place, 2 * number + 1, 0))
    return moved if clamp is None else rbm.units.hold(moved, clamp)


def _of_both(clamp, n_chains):
    """The `Clamp` of the chains, and of what they are proposed."""
    of_each = (np.broadcast_to(a, (n_chains, a.shape[1])) for a in clamp)
    return Clamp(*(np.concatenate([a, a]) for a in of_each))


def _flip(rbm, h, y, log_p, rng):
    """States and inputs after proposals to flip units of each; changes the arrays.

    ``log_p`` is that of `summed_out`.
    """
    shape = len(h), _FLIPS
    units = rng.integers(h.shape[1], size=shape)
    thresholds = -rng.standard_exponential(shape)
    model = rbm.weights, rbm.hidden, rbm.visible
    kernels.flip(units, thresholds, model, y, log_p, h)
    return h, y
