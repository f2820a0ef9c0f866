r"""Compiled draws of free runs: each with weights of its own and noise in every step.

The network of a draw is linear in its weights, :math:`f(x; \theta) + J(x) d` with the
deviation d of the draw's weights from the mode: that is the model whose posterior has
the Gauss-Newton curvature. Fitted one step ahead, it is not linear in what is fed back.
Fitted to the errors of free runs, it is the whole path that is linear in the weights
(``linear``): deviations of past rows act through the derivatives at the mode's path.

The noise is drawn outside and handed over in the memory that the outputs then take:
``paths[d, row]`` comes with what is added to the network's outputs in that row, in the
user's units, and leaves with the drawn outputs, which the next rows read.
"""

import numpy as np

from ..._numba import kernel
from .activations import slope
from .one_row import forward_row, row_workspace
from .recursion import _gather, _longest


@kernel
def tangent_row(theta, deviation, sizes, activation, a, tangent):
    """Fill ``tangent``: what a deviation of the parameters does to each unit of ``a``.

    To first order. That of the inputs is given at its head; ``a`` comes from
    `row.forward_row`.
    """
    n_layers = len(sizes) - 1
    below = 0
    w = 0
    for layer in range(n_layers):
        n_in = sizes[layer]
        n_out = sizes[layer + 1]
        above = below + n_in
        bias = w + n_in * n_out
        t = tangent[above : above + n_out]
        t[:] = deviation[bias : bias + n_out]
        for i in range(n_in):
            x = a[below + i]
            start = w + i * n_out
            moved = deviation[start : start + n_out]
            for j in range(n_out):
                t[j] += x * moved[j]
            dx = tangent[below + i]
            if dx != 0.0:
                row = theta[start : start + n_out]
                for j in range(n_out):
                    t[j] += dx * row[j]
        if layer < n_layers - 1:
            for j in range(n_out):
                t[j] *= slope(activation, a[above + j])
        below = above
        w = bias + n_out
    if w < len(theta):
        n_out = sizes[n_layers]
        for i in range(sizes[0]):
            for j in range(n_out):
                k = w + i * n_out + j
                tangent[below + j] += a[i] * deviation[k] + tangent[i] * theta[k]


@kernel
def _move_inputs(recursion, n_inputs, path, mode, row, tangent):
    """How far the fed-back regressors of a path are from those of the mode's path."""
    for i in range(len(recursion.lag)):
        k = recursion.signal[i] - n_inputs
        tangent[i] = 0.0
        if k >= 0:
            past = row - recursion.lag[i]
            tangent[i] = (path[past, k] - mode[past, k]) / recursion.x_scale[i]


@kernel
def _add_outputs(recursion, a, tangent, first, path, mode, row):
    """Outputs of one row on top of its noise; False if the network's diverged."""
    for o in range(path.shape[1]):
        # a NaN fails this comparison, too
        if not abs(a[first + o] + tangent[first + o]) <= recursion.limit:
            return False
    for o in range(path.shape[1]):
        mode[row, o] = a[first + o] * recursion.y_scale[o] + recursion.y_offset[o]
        path[row, o] += mode[row, o] + tangent[first + o] * recursion.y_scale[o]
    return True


@kernel
def _workspace(sizes):
    a, power, bits = row_workspace(sizes)
    return a, np.zeros_like(a), power, bits


@kernel
def _draw_path(
    theta,
    deviation,
    sizes,
    activation,
    recursion,
    linear,
    U,
    path,
    mode,
    start,
    stop,
    memory,
):
    """Fill one path; True if it diverged: NaN from there on.

    ``mode`` takes the path of the network at its mode; outputs before ``start`` as in
    ``path``.
    """
    a, tangent, power, bits = memory
    first = len(a) - sizes[-1]
    for row in range(start, stop):
        if not _gather(recursion, U, mode if linear else path, row, a):
            path[row] = np.nan
            mode[row] = np.nan
            continue
        forward_row(theta, sizes, activation, a, power, bits)
        if linear:
            _move_inputs(recursion, U.shape[1], path, mode, row, tangent)
        tangent_row(theta, deviation, sizes, activation, a, tangent)
        if not _add_outputs(recursion, a, tangent, first, path, mode, row):
            path[row:stop] = np.nan
            return True
    return False


@kernel
def simulate_draws(
    theta, deviations, sizes, activation, recursion, linear, U, paths, start, stop
):
    """Free runs through the rows from ``start`` on, one with each deviation.

    Parameters
    ----------
    deviations : (n_draws, n_parameters)
    paths : (n_draws, n_rows, n_outputs)
        Outputs before ``start``, noise from there on; the noise is fed back.

    Returns
    -------
    diverged : (n_draws,) bool
    """
    memory = _workspace(sizes)
    max_lag = _longest(recursion.lag)
    mode = np.empty((stop, paths.shape[2]))
    diverged = np.zeros(len(deviations), dtype=np.bool_)
    for d in range(len(deviations)):
        mode[start - max_lag : start] = paths[d, start - max_lag : start]
        diverged[d] = _draw_path(
            theta,
            deviations[d],
            sizes,
            activation,
            recursion,
            linear,
            U,
            paths[d],
            mode,
            start,
            stop,
            memory,
        )
    return diverged


@kernel
def predict_ahead_draws(
    theta,
    deviations,
    sizes,
    activation,
    recursion,
    linear,
    U,
    Y,
    horizon,
    paths,
    start,
    stop,
):
    """Each row as the end of its own run of ``horizon`` steps, for all draws.

    Runs of one draw that pass through the same row meet the same noise there. Where
    they start, and which rows are left alone, is that of `narx.predict_ahead`.
    """
    memory = _workspace(sizes)
    max_lag = _longest(recursion.lag)
    path = np.empty((max_lag + horizon, Y.shape[1]))
    mode = np.empty_like(path)
    ends = np.empty((stop - start, Y.shape[1]))
    diverged = np.zeros(len(deviations), dtype=np.bool_)
    for d in range(len(deviations)):
        for row in range(start + max_lag, stop):
            origin = max(row - horizon + 1, start + max_lag)
            n_steps = row - origin + 1
            path[:max_lag] = Y[origin - max_lag : origin]
            mode[:max_lag] = path[:max_lag]
            path[max_lag : max_lag + n_steps] = paths[d, origin : row + 1]
            diverged[d] |= _draw_path(
                theta,
                deviations[d],
                sizes,
                activation,
                recursion,
                linear,
                U[origin - max_lag : row + 1],
                path,
                mode,
                max_lag,
                max_lag + n_steps,
                memory,
            )
            # the rows behind still need the noise
            ends[row - start] = path[max_lag + n_steps - 1]
        paths[d, start + max_lag : stop] = ends[max_lag:]
    return diverged
