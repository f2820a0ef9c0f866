"""Missing values by a list of hidden states: all of them, or many draws of rows.

With the visible states that are given, and the others summed out, a standard RBM has

    log p(h | given) = b . h + sum_given v_i y_i + sum_free softplus(y_i) + const

of hidden states h, where y = a + h W are the inputs of the visible units. Given h, the
missing ones are independent: no chain is needed.

Few units have all their states on the list, and states of the model can be drawn from
it. Else these are draws from the distribution q(h) of the hidden states that rows of
data have (`row_mixture`), and each counts by p(h | given) / q(h). That is exact on
average, and precise where the given values leave many of the draws: then no chain would
be as good. If chains are at states of which more than the number of draws would be
needed to meet one, rows have missed a mode.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from .._random import Stream, generator
from .._sklearn import one_blas_thread
from . import few_missing
from .model import RBM, Clamp, is_standard
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


def sample(rbm, n_rows, held, seed):
    """Independent states of a model for which `can_list` is True.

    Parameters
    ----------
    rbm : RBM
    n_rows : int
    held : Clamp or None
        Of some features, for all rows or for each of them.
    seed : int
        Of the random numbers: more rows have the same first ones.

    Returns
    -------
    states : ndarray of shape (n_rows, n_features), uint8
        float32 where ``held`` are probabilities.
    log_masses : ndarray of shape (1,) or (n_rows,)
        See `Expectations`; one where the same features are held in all rows.
    """
    listed = all_of(rbm)
    n_features = listed.y.shape[1]
    if held is None:
        none = np.zeros((1, n_features), dtype=np.uint8)
        held = Clamp(none.astype(bool), none)
    u = generator(seed, Stream.LISTED_SAMPLES, 0).random(n_rows)
    numbers, log_masses = _choose(listed, held, u)
    rng, means = generator(seed, Stream.LISTED_SAMPLES, 1), rbm.units.means(listed.y)
    states = np.empty((n_rows, n_features), dtype=np.uint8)
    n_together = max(1, _BLOCK // n_features)
    for first in range(0, n_rows, n_together):
        of_rows = means[numbers[first : first + n_together]]
        states[first : first + n_together] = rng.random(of_rows.shape) < of_rows
    return rbm.units.hold(states, held), log_masses


def _choose(listed, held, u):
    """Of each row a hidden state, by a uniform random number, and the log masses."""
    numbers, log_masses = [], []
    for rows, log_p in _by_block(listed, held.values, ~held.mask):
        log_masses.append(logsumexp(log_p, axis=1))
        p = np.exp(log_p - log_masses[-1][:, None])
        if len(held.mask) == 1:
            # as `choose` for many rows, without a copy for each
            numbers.append(np.searchsorted(np.cumsum(p[0])[:-1], u, side="right"))
        else:
            numbers.append(few_missing.choose(p, u[rows]))
    return np.concatenate(numbers), np.concatenate(log_masses)


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
