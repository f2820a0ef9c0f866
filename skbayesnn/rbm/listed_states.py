"""Missing values by a list of hidden states: all of them, or many draws of rows.

With the visible states that are given, and the others summed out, a standard RBM has

    log p(h | given) = b . h + sum_given v_i y_i + sum_free softplus(y_i) + const

of hidden states h, where y = a + h W are the inputs of the visible units. Given h, the
missing ones are independent: no chain is needed.

Few units have all their states on the list. Else these are draws from the distribution
q(h) of the hidden states that rows of data have (`row_mixture`), and each counts by
p(h | given) / q(h). That is exact on average, and precise where the given values leave
many of the draws: then no chain would be as good. If chains are at states of which more
than the number of draws would be needed to meet one, rows have missed a mode.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from .._sklearn import one_blas_thread
from . import few_missing
from .model import RBM, is_standard
from .row_mixture import RowMixture
from .states import all_states, by_feature, product

# Hidden units at most whose states are all listed, and states times features: what is
# kept in memory.
_MAX_UNITS, _MOST = 16, 2**21
# Draws of a list, and the effective number of them that has to be left.
_N_DRAWS, _LEAST_LEFT = 4000, 100
# Rows times states that are looked at together.
_BLOCK = 2**20


class Listed(NamedTuple):
    """Hidden states, by what they do to the visible units.

    rbm : the model, a standard one
    y : (n_states, n_features) float64, inputs of the visible units
    log_weights : (n_states,), of p(h) without what depends on y
    mixture : RowMixture from which they are drawn, or None
    """

    rbm: RBM
    y: np.ndarray
    log_weights: np.ndarray
    mixture: RowMixture | None = None


class Expectations(NamedTuple):
    """Expectations by a list of draws, and how far they can be believed.

    means : (n_rows, n_features)
    log_masses : (n_rows,), logs of the sums of the unnormalised probabilities of all
        states with the values that are given
    are_known : (n_rows,) bool
    """

    means: np.ndarray
    log_masses: np.ndarray
    are_known: np.ndarray


def can_list(rbm):
    """Whether the hidden states of a model are few enough."""
    n_units, n_features = rbm.weights.shape
    few = n_units <= _MAX_UNITS and 2**n_units * n_features <= _MOST
    return few and is_standard(rbm) and rbm.units.enumerable


def all_of(rbm):
    """All hidden states of a model for which `can_list` is True."""
    h = all_states(len(rbm.weights))
    with one_blas_thread():
        y = h @ rbm.weights.astype(np.float64) + rbm.visible
        return Listed(rbm, y, h @ rbm.hidden)


def draws_of_rows(rbm, rows, seed):
    """Draw hidden states of rows, equally many for each row.

    ``rows`` are states (n_rows, n_features) uint8. None for a fractional model, one
    without units, and no rows.
    """
    if not (is_standard(rbm) and len(rbm.weights) and len(rows)):
        return None
    n_draws = min(_N_DRAWS, max(1, 2 * _MOST // rbm.weights.shape[1]))
    with one_blas_thread():
        mixture = RowMixture(rbm, product(rows, by_feature(rbm.weights)))
        which = np.arange(n_draws) * len(rows) // n_draws
        h = mixture.draw(which, (np.uint64(seed), 0))
        y = _inputs(rbm, h)
        log_weights = mixture.log_excess(h) - np.log(n_draws)
    return Listed(rbm, y, log_weights, mixture)


def _inputs(rbm, h):
    return product(h, rbm.weights) + rbm.visible.astype(np.float64)


def fill(listed, values, missing, rng):
    """Expectations of missing values given the others, or draws of them.

    Parameters
    ----------
    listed : Listed
        All states.
    values : ndarray of shape (n_rows, n_features)
        States or probabilities; those that are ``missing``, of the same shape, are not
        looked at.
    rng : numpy.random.Generator or None
        For joint draws of the missing values of each row. None asks for expectations.

    Returns
    -------
    filled : ndarray of shape (n_rows, n_features), float32
    """
    means = listed.rbm.units.means(listed.y.copy())
    filled = np.array(values, dtype=np.float32)
    for rows, log_p in _by_block(listed, values, missing):
        p = softmax(log_p, axis=1)
        with one_blas_thread():
            found = p @ means if rng is None else _draw(p, means, rng)
        filled[rows] = np.where(missing[rows], found, values[rows])
    return filled


def expectations(listed, values, missing, states):
    """The `Expectations` of missing values, by `draws_of_rows`.

    ``states`` is a list of arrays like ``values``, with draws of the missing ones by
    chains.
    """
    of_states = listed.rbm.units.means(listed.y.copy())
    means, log_masses = np.empty(values.shape), np.empty(len(values))
    n_left = np.empty(len(values))
    for rows, log_p in _by_block(listed, values, missing):
        log_masses[rows] = logsumexp(log_p, axis=1)
        p = np.exp(log_p - log_masses[rows, None])
        with one_blas_thread():
            means[rows] = p @ of_states
        n_left[rows] = 1.0 / np.square(p).sum(axis=1)
    are_known = n_left >= _LEAST_LEFT
    for one in states:
        log_weights = _log_weights(listed, one, missing, values) - log_masses
        are_known &= log_weights < np.log(len(listed.y))
    return Expectations(means, log_masses, are_known)


def _log_weights(listed, states, missing, values):
    """Log of p(h, given) / q(h) of the likeliest hidden states of visible ones."""
    rbm = listed.rbm
    with one_blas_thread():
        x = product(states, by_feature(rbm.weights))
        h = (x + rbm.hidden > 0.0).astype(np.uint8)
        y = _inputs(rbm, h)
        terms = np.where(missing, rbm.units.log_partitions(y), values * y)
        return listed.mixture.log_excess(h) + terms.sum(axis=1)


def _by_block(listed, values, missing):
    """Yield slices of rows, and the log p (n_rows, n_states) of the listed states."""
    log_sums = listed.rbm.units.log_partitions(listed.y)
    n_together = max(1, _BLOCK // len(listed.y))
    for first in range(0, len(values), n_together):
        rows = slice(first, first + n_together)
        free = missing[rows]
        given = np.where(free, 0.0, values[rows])
        with one_blas_thread():
            log_p = listed.log_weights + given @ listed.y.T + free @ log_sums.T
        yield rows, log_p


def _draw(p, means, rng):
    """Visible states: of each row a hidden state by its probabilities, and these."""
    number = few_missing.choose(p, rng.random(len(p)))
    return rng.random((len(p), means.shape[1])) < means[number]
