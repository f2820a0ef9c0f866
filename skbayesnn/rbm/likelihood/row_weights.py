"""The log partition function by importance sampling from the hidden states of rows.

Annealing from independent features reaches a mode of the model only if it is on the
way: one that few chains reach may hold most of the mass, and then the estimate is too
low by many nats. The distribution q(h) of `row_mixture` has all modes of the data, and

    Z = E_q[p*(h) / q(h)],  p*(h) = exp(b . h) prod_i (1 + exp(a_i + (h W)_i)).

What this misses are the modes in which no rows are: the larger one of both estimates is
the better one. With many hidden units p is much wider than q around each row, and
annealing is better.
"""

import numpy as np

from ..._random import Stream, derived_seed, generator
from ..row_mixture import RowMixture, summed_out
from ..states import by_feature, product

# States at a time: the memory of their probabilities under all rows.
_BLOCK = 500


def log_row_weights(rbm, rows, n_samples, seed):
    """The weights of `draw_weighted`, whose mean estimates Z."""
    return draw_weighted(rbm, rows, n_samples, seed)[0]


def draw_weighted(rbm, rows, n_samples, seed):
    """Draws from q, and log p*(h) - log q(h) of each.

    Parameters
    ----------
    rbm : RBM
        A standard one, with units.
    rows : ndarray of shape (n_rows, n_features)
        States as uint8, or their probabilities as float32.
    n_samples : int
    seed : int

    Returns
    -------
    log_weights : ndarray of shape (n_samples,), float64
    states : ndarray of shape (n_samples, n_units), uint8
    """
    mixture = RowMixture(rbm, product(rows, by_feature(rbm.weights)))
    chosen = generator(seed, Stream.ROW_WEIGHTS).integers(len(rows), size=n_samples)
    weights, states = [], []
    for number, first in enumerate(range(0, n_samples, _BLOCK)):
        place = derived_seed(seed, Stream.ROW_WEIGHTS), number
        h = mixture.draw(chosen[first : first + _BLOCK], place)
        states.append(h)
        weights.append(summed_out(rbm, product(h, rbm.weights)) + mixture.log_excess(h))
    return np.concatenate(weights), np.concatenate(states)
