"""The log partition function by enumeration of the states of one side."""

import numpy as np
from scipy.special import log_expit, logsumexp

from ..model import is_standard

# Units whose states are enumerated.
MAX_UNITS = 25
# Units whose states are the rows of one block.
_BLOCK_UNITS = 12


def log_partition(rbm):
    """Sum over all states of the smaller side that can be summed over, in float64.

    That is the hidden side only if all units have weight 1, and the visible side only
    if its states can be enumerated.
    """
    weights, hidden, visible, unit_weights = (
        np.asarray(array, dtype=np.float64) for array in rbm[:4]
    )
    if _sums_over_hidden(rbm):
        ones = np.ones(weights.shape[1])
        log_factors = rbm.units.log_partitions
        return _sum_over(hidden, visible, weights, lambda y: log_factors(y) @ ones)
    return _sum_over(
        visible, hidden, weights.T, lambda x: -log_expit(-x) @ unit_weights
    )


def size(rbm):
    """Units of the side that `log_partition` sums over."""
    return rbm.weights.shape[0 if _sums_over_hidden(rbm) else 1]


def all_states(n_units):
    """(2**n_units, n_units), float64."""
    numbers = np.arange(2**n_units)[:, None]
    return ((numbers >> np.arange(n_units)) & 1).astype(np.float64)


def _sums_over_hidden(rbm):
    n_units, n_features = rbm.weights.shape
    if rbm.units.enumerable:
        return is_standard(rbm) and n_units < n_features
    if not is_standard(rbm):
        raise ValueError(
            "Neither side can be enumerated: the visible units are continuous, and "
            "hidden units have weights other than 1."
        )
    return True


def _sum_over(outer, inner, matrix, log_factor):
    """Log of the sum over the states of one side of its factor and the other side's.

    ``outer`` are the biases of the enumerated side, ``inner`` those of the other,
    whose log factor is a function of its inputs.
    """
    n_low = min(len(outer), _BLOCK_UNITS)
    low = all_states(n_low)
    low_inputs = low @ matrix[:n_low] + inner
    low_energy = low @ outer[:n_low]
    parts = []
    for number in range(2 ** (len(outer) - n_low)):
        high = (number >> np.arange(len(outer) - n_low)) & 1
        x = low_inputs + high @ matrix[n_low:]
        total = log_factor(x) + low_energy + high @ outer[n_low:]
        parts.append(logsumexp(total))
    return float(logsumexp(parts))
