r"""Compiled draws of free runs: each with weights of its own and noise in every step.

The network of a draw is linear in its weights, :math:`f(x; \theta) + J(x) d` with the
deviation d of the draw's weights from the mode: that is the model whose posterior has
the Gauss-Newton curvature. It is not linear in what is fed back. (A network that was
fitted to the errors of free runs is linear in the whole path: its draws follow from the
sensitivities of `recursion`.)
"""

import numpy as np

from ..._numba import kernel
from .one_row import forward_row, row_memory, tangent_row
from .recursion import load_row, summed_up


def draw_paths(layers, run, deviations, paths):
    """Free runs on the layout of `recursion`, one with each deviation.

    Parameters
    ----------
    deviations : (n_draws, n_parameters)
    paths : (n_draws, n_rows, n_outputs)
        Comes with the noise of each row, which is added to the outputs of the network
        and fed back; leaves with the outputs.

    Returns
    -------
    diverged : (n_draws,) bool
    """
    diverged = np.zeros(len(paths), dtype=bool)
    _draw_paths(layers, run, deviations, paths, diverged, row_memory(layers))
    return diverged


@kernel
def _draw_paths(layers, run, deviations, paths, diverged, memory):
    feedback, X, origin, _, before = run
    a, tangent = memory.a, memory.tangent
    n_draws, n_rows, n_outputs = paths.shape
    first = len(a) - n_outputs
    for d in range(n_draws):
        path = paths[d]
        lost = np.int64(-1)
        for row in range(n_rows):
            here = origin[row]
            if here == lost or not load_row(feedback, before, X, here, row, path, a):
                path[row] = np.nan
                continue
            forward_row(layers, a, memory.power, memory.bits)
            tangent_row(layers, deviations[d], a, tangent)
            for o in range(n_outputs):
                value = a[first + o] + tangent[first + o]
                # a NaN fails this comparison, too
                if not abs(value) <= feedback.limit:
                    lost = here
                path[row, o] += summed_up(feedback, before, here, row, path, o, value)
            if lost == here:
                path[row] = np.nan
                diverged[d] = True
