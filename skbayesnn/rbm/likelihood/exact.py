"""The log partition function, exactly: over the states of one side, or of a forest."""

import numpy as np
from scipy.special import logsumexp

from ..model import is_standard
from ..states import all_states, numbered_states, sum_softplus
from . import forest

# Units whose states are enumerated.
MAX_UNITS = 25
# Units of a block: all states of the first ones, whose inputs stay in the cache of a
# core, with as many states of the others.
_LOW_UNITS = 9
_HIGH_UNITS = 6


def log_partition(rbm):
    """Sum over all states of the smaller side that can be summed over, in float64.

    A forest of units is summed up whatever its size. Else that is the hidden side only
    if all units have weight 1, and the visible side only if its states can be
    enumerated. The caller limits BLAS to one thread, for the rounding to be the same
    everywhere.
    """
    if forest.is_forest(rbm):
        return forest.log_partition(rbm)
    weights, hidden, visible, unit_weights = (
        np.asarray(array, dtype=np.float64) for array in rbm[:4]
    )
    if _sums_over_hidden(rbm):
        return _sum_over(hidden, visible, weights, rbm.units.sum_log_partitions)

    def log_factors(low, high):
        return sum_softplus(low, high, unit_weights)

    return _sum_over(visible, hidden, weights.T, log_factors)


def size(rbm):
    """Units of the side whose states `log_partition` enumerates; 0 of a forest."""
    if forest.is_forest(rbm):
        return 0
    return rbm.weights.shape[0 if _sums_over_hidden(rbm) else 1]


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


def _sum_over(outer, inner, matrix, log_factors):
    """Log of the sum over the states of one side of its factor and the other side's.

    ``outer`` are the biases of the enumerated side, ``inner`` those of the other, whose
    log factors are a function of its inputs: of the parts of them that come from the
    first units, and from the others.
    """
    n_low = min(len(outer), _LOW_UNITS)
    low = all_states(n_low)
    low_inputs = low @ matrix[:n_low] + inner
    low_energy = low @ outer[:n_low]
    n_high = len(outer) - n_low
    parts = []
    for first in range(0, 2**n_high, 2**_HIGH_UNITS):
        last = min(first + 2**_HIGH_UNITS, 2**n_high)
        high = numbered_states(np.arange(first, last), n_high)
        total = log_factors(low_inputs, high @ matrix[n_low:])
        total += low_energy
        total += (high @ outer[n_low:])[:, None]
        parts.append(logsumexp(total))
    return float(logsumexp(parts))
