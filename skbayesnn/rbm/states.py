"""Products, sums and draws of states: 0 and 1 as uint8, or values as float32.

Products of uint8 states are sums of weights, without a multiplication, in an order that
does not depend on the number of threads. Those of float32 values go through BLAS.
"""

import numpy as np

from .kernels import units as kernels
from .kernels.products import count_on, multiply, multiply_transposed
from .kernels.softplus import sum_softplus_of_pairs
from .threads import share_out


def by_feature(weights):
    """The weights by visible unit, (n_features, n_units)."""
    return np.ascontiguousarray(weights.T)


def product(states, values, out=None):
    """``states @ values`` in float32: without multiplications for states of uint8."""
    if out is None:
        out = np.empty((len(states), values.shape[1]), dtype=np.float32)
    if states.dtype != np.uint8:
        return np.matmul(states, values, out=out)
    _share_columns(multiply, states, values, out)
    return out


def transposed_product(states, values):
    """``states.T @ values`` in the same way."""
    if states.dtype != np.uint8:
        return states.T @ values
    out = np.empty((states.shape[1], values.shape[1]), dtype=np.float32)
    _share_columns(multiply_transposed, states, values, out)
    return out


def _share_columns(kernel, states, values, out):
    n_columns = out.shape[1]

    def call(first, last):
        kernel(states, values, out, first, last)

    # a quarter of the states is on, or looked up
    share_out(call, n_columns, states.size * n_columns // 4)


def sum_states(states):
    """Sum of each unit over the rows, float32: exact for states of uint8."""
    if states.dtype != np.uint8:
        return np.ones(len(states), dtype=np.float32) @ states
    counts = np.empty(states.shape[1], dtype=np.float32)
    count_on(states, counts)
    return counts


def draw(x, bias, place):
    """Binary states of units with the inputs ``x``; ``place`` is (seed, step, row)."""
    states = np.empty(x.shape, dtype=np.uint8)
    kernels.sample_units(x, bias, *place, states)
    return states


def sum_softplus(low, high, factors):
    """Sums over units of factors x softplus(input), in float64.

    Their inputs are the sums of a row of ``low`` and a row of ``high``. Returns
    (len(high), len(low)).
    """
    total = np.empty((len(high), len(low)))
    sum_softplus_of_pairs(low, high, factors, total)
    return total
