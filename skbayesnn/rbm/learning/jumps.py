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

from ..._random import Stream, derived_seed, generator
from ..._sklearn import on_one_blas_thread
from ..kernels import units as kernels
from ..row_mixture import RowMixture, summed_out
from ..states import draw_from, product

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
    proposal = RowMixture(rbm, x)
    draws = derived_seed(seed, Stream.JUMPS), number
    proposed = proposal.draw(rng.integers(len(x), size=len(h)), draws)
    both = np.concatenate([h, proposed])
    y = product(both, rbm.weights)
    log_p = summed_out(rbm, y)
    log_ratio = log_p + proposal.log_excess(both)
    gain = log_ratio[len(h) :] - log_ratio[: len(h)]
    taken = -rng.standard_exponential(len(h)) < gain
    chosen = np.arange(len(h)) + len(h) * taken
    return _flip(rbm, both[chosen], y[chosen], log_p[chosen], rng)


def move_visible(rbm, transposed, x, v, seed, number):
    """Visible states (n_chains, n_features) after the same steps of hidden ones.

    ``transposed`` holds the weights of ``rbm``.
    """
    place = derived_seed(seed, Stream.JUMPS, 1)
    h = draw_from(v, transposed, rbm.hidden, (place, 2 * number, 0))
    h = move(rbm, x, h, seed, number)
    return rbm.units.draw_from(h, rbm.weights, rbm.visible, (place, 2 * number + 1, 0))


def _flip(rbm, h, y, log_p, rng):
    """States after proposals to flip units of each; changes the arrays.

    ``log_p`` is that of `summed_out`.
    """
    shape = len(h), _FLIPS
    units = rng.integers(h.shape[1], size=shape)
    thresholds = -rng.standard_exponential(shape)
    model = rbm.weights, rbm.hidden, rbm.visible
    kernels.flip(units, thresholds, model, y, log_p, h)
    return h
