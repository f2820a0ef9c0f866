"""Rows with a few missing values: all states that these may have are enumerated.

Their probabilities follow from the free energies, whatever the partition function is:
no chain is needed, and nothing is left to chance.
"""

import numpy as np

from . import model as rbm_model
from .states import all_states

# States that are looked at together: their memory.
_BLOCK = 8192


def rows_with_few(units, missing, n_states):
    """Which rows have so few ``missing`` values that these have ``n_states`` at most.

    And no more than can be looked at together.
    """
    n_missing = missing.sum(axis=1)
    n_states = min(n_states, _BLOCK)
    return 2.0**n_missing <= n_states if units.enumerable else n_missing == 0


def fill(rbm, values, missing, draws):
    """Expectations of missing values given the others, or draws of them.

    Parameters
    ----------
    rbm : RBM
        Of binary visible units.
    values : ndarray of shape (n_rows, n_features)
        States or probabilities; those that are ``missing``, of the same shape, are not
        looked at. In each row, that is a number of them that can be enumerated.
    draws : ndarray of shape (n_rows,) or None
        Uniform random numbers, one for the joint draw of each row. None asks for the
        expectations.

    Returns
    -------
    filled : ndarray of shape (n_rows, n_features), float32
    """
    filled = np.array(values, dtype=np.float32)
    n_missing = missing.sum(axis=1)
    for n in np.unique(n_missing[n_missing > 0]).tolist():
        rows = np.flatnonzero(n_missing == n)
        n_together = max(1, _BLOCK >> n)
        for part in np.split(rows, np.arange(n_together, len(rows), n_together)):
            places = np.nonzero(missing[part])[1].reshape(len(part), n)
            u = None if draws is None else draws[part]
            at = part[:, None], places
            filled[at] = _fill_block(rbm, filled[part], places, u)
    return filled


def _fill_block(rbm, values, places, u):
    """The values (n_rows, n_missing) in the ``places`` of some rows."""
    n_rows, n_missing = places.shape
    states = all_states(n_missing, np.float32)
    V = np.repeat(values[:, None], len(states), axis=1)
    row, state = np.ogrid[:n_rows, : len(states)]
    V[row[:, :, None], state[:, :, None], places[:, None]] = states
    energy = rbm_model.free_energy(rbm, V.reshape(n_rows * len(states), -1))
    energy = energy.reshape(n_rows, len(states))
    p = np.exp(energy.min(axis=1, keepdims=True) - energy)
    p /= p.sum(axis=1, keepdims=True)
    if u is None:
        return p @ states
    return states[choose(p, u)]


def choose(p, u):
    """For each row of probabilities a column, by a uniform random number (n_rows,)."""
    edges = np.cumsum(p, axis=1)[:, :-1]
    return (u[:, None] >= edges).sum(axis=1)
