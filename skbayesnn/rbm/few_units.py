"""Missing values by models with few hidden units: all states of these are enumerated.

With the visible states that are given, and the others summed out, a standard RBM has

    log p(h | given) = b . h + sum_given v_i y_i + sum_free softplus(y_i) + const

of hidden states h, where y = a + h W are the inputs of the visible units. Given h, the
missing ones are independent: no chain is needed.
"""

import numpy as np
from scipy.special import softmax

from .._sklearn import one_blas_thread
from .likelihood.exact import all_states
from .model import is_standard

# Hidden units at most, and states of these times features: what is kept in memory.
_MAX_UNITS, _MOST = 16, 2**21
# Rows times states that are looked at together.
_BLOCK = 2**20


def can_list(rbm):
    """Whether the hidden states of a model are few enough."""
    n_units, n_features = rbm.weights.shape
    few = n_units <= _MAX_UNITS and 2**n_units * n_features <= _MOST
    return few and is_standard(rbm) and rbm.units.enumerable


def fill(rbm, values, missing, rng):
    """Expectations of missing values given the others, or draws of them.

    Parameters
    ----------
    rbm : RBM
        For which `can_list` is True.
    values : ndarray of shape (n_rows, n_features)
        States or probabilities; those that are ``missing``, of the same shape, are not
        looked at.
    rng : numpy.random.Generator or None
        For joint draws of the missing values of each row. None asks for expectations.

    Returns
    -------
    filled : ndarray of shape (n_rows, n_features), float32
    """
    h = all_states(len(rbm.weights))
    with one_blas_thread():
        y = h @ rbm.weights.astype(np.float64) + rbm.visible
        prior, log_sums = h @ rbm.hidden, rbm.units.log_partitions(y)
        means = rbm.units.means(y.copy())
        filled = np.array(values, dtype=np.float32)
        n_together = max(1, _BLOCK // len(h))
        for first in range(0, len(values), n_together):
            rows = slice(first, first + n_together)
            free = missing[rows]
            given = np.where(free, 0.0, values[rows])
            p = softmax(prior + given @ y.T + free @ log_sums.T, axis=1)
            found = p @ means if rng is None else _draw(p, means, rng)
            filled[rows] = np.where(free, found, given)
    return filled


def _draw(p, means, rng):
    """Visible states: of each row a hidden state by its probabilities, and these."""
    edges = np.cumsum(p, axis=1)[:, :-1]
    number = (rng.random((len(p), 1)) >= edges).sum(axis=1)
    return rng.random((len(p), means.shape[1])) < means[number]
