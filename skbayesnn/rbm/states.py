"""Products, sums and draws of states: 0 and 1 as uint8, or values as float32.

Products of uint8 states are sums of weights, without a multiplication, in an order that
does not depend on the number of threads. Those of float32 values go through BLAS.
"""

from functools import partial

import numpy as np

from .kernels import units as kernels
from .kernels.products import (
    Multiplier,
    TransposedMultiplier,
    count_on,
    weigh_columns,
    weigh_rows,
)
from .kernels.softplus import sum_softplus_of_pairs
from .threads import share_out

# Columns of a transposed product that are there at a time.
_WIDTH = 64


def by_feature(weights):
    """The weights by visible unit, (n_features, n_units)."""
    return np.ascontiguousarray(weights.T)


def product(states, values, out=None, then=None):
    """``states @ values`` in float32: without multiplications for states of uint8.

    ``then(first, last)`` is called where these columns are there, on their thread.
    """
    if out is None:
        out = np.empty((len(states), values.shape[1]), dtype=np.float32)
    if states.dtype == np.uint8:
        _share_columns(Multiplier(states), values, out, then)
        return out
    np.matmul(states, values, out=out)
    if then is not None:
        then(0, out.shape[1])
    return out


def transposed_product(states, values):
    """``states.T @ values`` in the same way."""
    out = np.empty((states.shape[1], values.shape[1]), dtype=np.float32)

    def take(part, first, last):
        out[:, first:last] = part[:, : last - first]

    give_transposed_product(states, values, take)
    return out


def give_transposed_product(states, values, take, prepare=None):
    """Call ``take(part, first, last)`` with columns of ``states.T @ values``.

    ``prepare(first, last)`` is called before these columns of ``values`` are used.

    The first columns of ``part`` are those from ``first`` to ``last``; then they are
    overwritten. The whole product is never in memory, where it would displace what
    each thread has in its cache.
    """
    n_columns = values.shape[1]
    if states.dtype != np.uint8:
        if prepare is not None:
            prepare(0, n_columns)
        take(states.T @ values, 0, n_columns)
        return
    multiplier = TransposedMultiplier(states)

    def call(begin, end):
        if prepare is not None:
            prepare(begin, end)
        width = min(_WIDTH, end - begin)
        part = np.empty((states.shape[1], width), dtype=np.float32)
        for first in range(begin, end, _WIDTH):
            last = min(first + _WIDTH, end)
            multiplier.add(values, part, first, last, first)
            take(part, first, last)

    share_out(call, n_columns, multiplier.n_additions * n_columns)


def _share_columns(multiplier, values, out, then):
    n_columns = out.shape[1]

    def call(first, last):
        multiplier.add(values, out, first, last, 0)
        if then is not None:
            then(first, last)

    share_out(call, n_columns, multiplier.n_additions * n_columns)


def blend(mean, values, fraction):
    """``mean`` moves towards ``values`` by a fraction, both 2-D float32."""

    def call(first, last):
        kernels.blend(mean[first:last], values[first:last], fraction)

    share_out(call, len(mean), mean.size)


def sum_states(states):
    """Sum of each unit over the rows, float32: exact for states of uint8."""
    if states.dtype != np.uint8:
        return np.ones(len(states), dtype=np.float32) @ states
    counts = np.empty(states.shape[1], dtype=np.float32)
    count_on(states, counts)
    return counts


def weigh(states, weights):
    """``states @ weights`` (n_rows,), float32; in one thread."""
    if states.dtype != np.uint8:
        return states @ weights
    sums = np.empty(len(states), dtype=np.float32)
    weigh_rows(states, weights, sums)
    return sums


def weigh_transposed(states, weights):
    """``weights @ states`` (n_units,), float32; in one thread."""
    if states.dtype != np.uint8:
        return weights @ states
    sums = np.empty(states.shape[1], dtype=np.float32)
    weigh_columns(states, weights, sums)
    return sums


def draw(x, bias, place):
    """Binary states of units with the inputs ``x``; ``place`` is (seed, step, row)."""
    states = np.empty(x.shape, dtype=np.uint8)
    kernels.sample_units(x, bias, *place, states, 0, x.shape[1])
    return states


def draw_from(states, values, bias, place):
    """The same of units with the inputs ``states @ values``."""
    x = np.empty((len(states), values.shape[1]), dtype=np.float32)
    drawn = np.empty(x.shape, dtype=np.uint8)
    product(states, values, x, partial(kernels.sample_units, x, bias, *place, drawn))
    return drawn


def sum_softplus(low, high, factors):
    """Sums over units of factors x softplus(input), in float64.

    Their inputs are the sums of a row of ``low`` and a row of ``high``. Returns
    (len(high), len(low)).
    """
    total = np.empty((len(high), len(low)))
    sum_softplus_of_pairs(low, high, factors, total)
    return total
