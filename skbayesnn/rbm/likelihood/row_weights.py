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
from ..model import Chains, gibbs
from ..row_mixture import RowMixture, summed_out
from ..states import by_feature, product
from .annealing import resample

# States at a time: the memory of their probabilities under all rows.
_BLOCK = 500
# Rounds in which q follows the model; those of the first half only lead it there.
_N_ROUNDS = 16
# Rows of q that come from each round, and Gibbs steps that they make. Of a model whose
# log Z had risen from 301.9 (rows of data) to 306.9 in 16 rounds, to 306.6 with 20.
_N_FOLLOWING, _N_STEPS = 1000, 100


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


def followed_weights(rbm, rows, n_samples, seed):
    """Log weights of draws from a q that moves from rows of data to the model.

    What few draws with large weights say exists is drawn often in the next round: half
    of its rows are draws of this one, resampled by their weights, and moved by Gibbs
    steps (population Monte Carlo; Cappe et al., 2004). The q of a round does not
    depend on its own draws, so each mean weight is an unbiased estimate of Z.

    Returns
    -------
    log_weights : ndarray of shape (n_rounds, n_samples), float64
        Of the second half of the rounds.
    """
    kept = []
    for number in range(_N_ROUNDS):
        of_round = int(derived_seed(seed, Stream.ROW_ROUNDS, number))
        log_weights, h = draw_weighted(rbm, rows, n_samples, of_round)
        chosen = resample(log_weights, h, of_round)[:: -(-n_samples // _N_FOLLOWING)]
        chain_seed = derived_seed(of_round, Stream.ROW_ROUNDS)
        v = rbm.units.draw_from(
            np.ascontiguousarray(chosen), rbm.weights, rbm.visible, (chain_seed, 1, 0)
        )
        chains, _ = gibbs(rbm, Chains(v, chain_seed, 1, 0), _N_STEPS)
        rng = generator(of_round, Stream.ROW_ROUNDS)
        others = rng.choice(len(rows), min(len(rows), _N_FOLLOWING), replace=False)
        rows = np.concatenate([chains.states, rows[others]])
        kept.append(log_weights)
    return np.array(kept[_N_ROUNDS // 2 :])
