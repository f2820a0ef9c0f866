"""Annealing of a small model, without a return to Python between temperatures.

A move of a small model takes a few microseconds, and as much again for each call of a
kernel. For a larger one the products rule, which `products` shares out to threads.
"""

import numpy as np

from ..._numba import STRICT, full_width, kernel
from .products import multiply_small
from .units import anneal_hidden, anneal_visible


@kernel(fastmath=STRICT, allocates=True)
def anneal_small(
    betas, panels, weights, hidden, base, visible, place, slope, log_weights, states
):
    """Lead ``states`` along ``betas``: what the kernels it calls do one by one.

    ``panels`` and ``weights`` are the same weights by feature and by unit, (n_panels,
    n_features, width) and (n_units, n_features), for states that are small (`SMALL` in
    `products`). ``place`` is (seed, step, first row) of the first move. ``slope``
    (n_rows,) and ``log_weights`` (n_rows,) are those of the states given, and become
    those of the new ones.
    """
    full_width()
    seed, step, first_row = place
    n_rows = states.shape[0]
    x = np.empty((n_rows, hidden.size), dtype=np.float32)
    y = np.empty((n_rows, visible.size), dtype=np.float32)
    h = np.empty((n_rows, hidden.size), dtype=np.uint8)
    by_unit = weights.reshape((1, hidden.size, visible.size))
    for k in range(betas.size - 1):
        before, beta, at = betas[k], betas[k + 1], 2 * (step + k)
        for i in range(n_rows):
            log_weights[i] += (beta - before) * slope[i]
        multiply_small(states, panels, x)
        anneal_hidden(x, hidden, before, beta, seed, at, first_row, log_weights, h)
        multiply_small(h, by_unit, y)
        anneal_visible(y, base, visible, beta, seed, at + 1, first_row, slope, states)
