"""Products, sums and draws of states: 0 and 1 as uint8, or values as float32.

Large products of uint8 states are sums of weights, without a multiplication. No sum of
uint8 states depends on the number of threads. Products of float32 values go through
BLAS.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from .._saved_state import saved_as
from .kernels import units as kernels
from .kernels.products import (
    PANEL,
    SMALL,
    Multiplier,
    TransposedMultiplier,
    count_on,
    multiply_small,
    weigh_columns,
    weigh_rows,
)
from .kernels.softplus import sum_softplus_of_pairs
from .threads import share_out


@saved_as("ByFeature")
class ByFeature(NamedTuple):
    """Weights by visible unit, (n_features, n_units), in panels of hidden units.

    A panel is in one piece, so that what a thread writes stays in its cache: from rows
    of which others have a part, the processor would fetch theirs in advance.
    """

    panels: np.ndarray
    """(n_panels, n_features, PANEL) float32; nothing is read behind the last unit"""
    n_units: int

    @property
    def matrix(self):
        """The same as one array, a copy."""
        n_panels, n_features, width = self.panels.shape
        rows = self.panels.transpose(1, 0, 2).reshape(n_features, n_panels * width)
        return rows[:, : self.n_units]

    def copy(self):
        """The same with an array of its own."""
        return self._replace(panels=self.panels.copy())

    def zeros(self):
        """Zeros in the same shape."""
        return self._replace(panels=np.zeros_like(self.panels))


def by_feature(weights):
    """The weights (n_units, n_features) as `ByFeature`."""
    n_units, n_features = weights.shape
    panels = np.zeros((-(-n_units // PANEL), n_features, PANEL), dtype=np.float32)
    for panel, first in zip(panels, range(0, n_units, PANEL), strict=True):
        units = weights[first : first + PANEL]
        panel[:, : len(units)] = units.T
    return ByFeature(panels, n_units)


def product(states, values, out=None, then=None):
    """``states @ values`` in float32, by additions for many states of uint8.

    ``values`` is an array, or `ByFeature`. ``then(first, last)`` is called where these
    columns are there, on their thread.
    """
    if isinstance(values, ByFeature):
        panels, n_columns, grain = values.panels, values.n_units, PANEL
    else:
        panels, n_columns, grain = values[None], values.shape[1], 1
    if out is None:
        out = np.empty((len(states), n_columns), dtype=np.float32)
    if is_small(states, n_columns):
        multiply_small(states, panels, out)
    elif states.dtype == np.uint8:
        _add(states, panels, out, grain, then)
        return out
    else:
        _multiply(states, panels, out)
    if then is not None:
        then(0, n_columns)
    return out


def is_small(states, n_columns):
    """Whether a product of binary states is too small for additions to pay."""
    return states.dtype == np.uint8 and states.size * n_columns <= SMALL


def _multiply(states, panels, out):
    """The same of float32 values, by BLAS."""
    width = panels.shape[2]
    for k, panel in enumerate(panels):
        part = out[:, k * width : (k + 1) * width]
        part[:] = states @ panel[:, : part.shape[1]]


def _add(states, panels, out, grain, then):
    """The same by additions, in several threads where that is worth it."""
    n_columns, multiplier = out.shape[1], Multiplier(states)

    def call(first, last):
        multiplier.add(panels, out, first, last, 0)
        if then is not None:
            then(first, last)

    share_out(call, n_columns, multiplier.n_additions * n_columns, grain)


def give_transposed_product(states, values, take, prepare=None):
    """Call ``take(part, first, last)`` with columns of ``states.T @ values``.

    The first columns of ``part`` are those from ``first`` to ``last``, which are those
    of a panel; then they are overwritten. The whole product is never in memory, where
    it would displace what each thread has in its cache. ``prepare(first, last)`` is
    called before these columns of ``values`` are used.
    """
    n_columns = values.shape[1]
    is_binary = states.dtype == np.uint8
    multiplier = TransposedMultiplier(states) if is_binary else None

    def call(begin, end):
        if prepare is not None:
            prepare(begin, end)
        part = np.empty((states.shape[1], PANEL), dtype=np.float32)
        for first in range(begin, end, PANEL):
            last = min(first + PANEL, end)
            if is_binary:
                multiplier.add(values[None], part, first, last, first)
            else:
                np.matmul(states.T, values[:, first:last], out=part[:, : last - first])
            take(part, first, last)

    work = multiplier.n_additions * n_columns if is_binary else 0
    share_out(call, n_columns, work, PANEL)


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


def all_states(n_units, dtype=np.float64):
    """All states of units, (2**n_units, n_units)."""
    return numbered_states(np.arange(2**n_units), n_units, dtype)


def numbered_states(numbers, n_units, dtype=np.float64):
    """States of units by their numbers, the first unit changing fastest."""
    return ((numbers[:, None] >> np.arange(n_units)) & 1).astype(dtype)


def draw(x, bias, place):
    """Binary states of units with the inputs ``x``; ``place`` is (seed, step, row)."""
    states = np.empty(x.shape, dtype=np.uint8)
    kernels.sample_units(x, bias, *place, states, 0, x.shape[1])
    return states


def draw_from(states, values, bias, place):
    """The same of units with the inputs ``states @ values``."""
    x = np.empty((len(states), len(bias)), dtype=np.float32)
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
