"""Compiled passes of one sample through a network, as a recursion needs them.

They walk over the layers as those of `layers` do, but not in the same loops: one sample
has no neighbours to vectorise over. Inner loops run over the units of a layer instead,
whose weights stand side by side in memory, in the other order of the two loops over a
weight matrix. Blocks of one sample would take several times as long.

No array is assigned to a slice of another: that takes seconds to compile.
"""

from typing import NamedTuple

import numpy as np

from ..._numba import kernel
from .activations import activate_many, activation_workspace, slope
from .layers import n_layer_parameters

# Outputs whose derivatives go back side by side, as many as fit into a vector.
LANES = 8


class RowMemory(NamedTuple):
    """Scratch memory of the passes of one sample.

    values : (n_units + 1,), those of the units, and a 1
    a, delta, tangent : (n_units,), the former without the 1, derivatives by them, and
        their changes
    power, bits : see `activation_workspace`
    """

    values: np.ndarray
    a: np.ndarray
    delta: np.ndarray
    tangent: np.ndarray
    power: np.ndarray
    bits: np.ndarray


def row_memory(layers):
    """Memory for a network; taken outside of the kernels, which compile faster then."""
    # not by NumPy, whose calls take longer than short runs
    sizes = layers.sizes.tolist()
    values, (delta, tangent) = np.zeros(sum(sizes) + 1), np.zeros((2, sum(sizes)))
    values[-1] = 1.0
    scratch = activation_workspace(max(sizes[1:-1], default=1))
    return RowMemory(values, values[:-1], delta, tangent, *scratch)


@kernel(inline="always")
def forward_row(layers, a, power, bits):
    """All units from the inputs at the head of ``a``."""
    theta, sizes, activation = layers.theta, layers.sizes, layers.activation
    n_layers = len(sizes) - 1
    below = 0
    w = 0
    for layer in range(n_layers):
        n_in = sizes[layer]
        n_out = sizes[layer + 1]
        above = below + n_in
        bias = w + n_in * n_out
        h = a[above : above + n_out]
        for j in range(n_out):
            h[j] = theta[bias + j]
        for i in range(n_in):
            x = a[below + i]
            row = theta[w + i * n_out : w + (i + 1) * n_out]
            for j in range(n_out):
                h[j] += x * row[j]
        if layer < n_layers - 1:
            activate_many(activation, h, power, bits)
        below = above
        w = bias + n_out
    if layers.skip:
        n_out = sizes[n_layers]
        for i in range(sizes[0]):
            for j in range(n_out):
                a[below + j] += a[i] * theta[w + i * n_out + j]


@kernel(inline="always")
def backward_row(layers, a, delta):
    """Derivatives of the output whose seed stands in the last places of ``delta``.

    Fills ``delta`` for all units; for inputs with the derivative by the scaled input.
    """
    theta, sizes, activation = layers.theta, layers.sizes, layers.activation
    n_layers = len(sizes) - 1
    first = len(a) - sizes[n_layers]
    above = first
    w = n_layer_parameters(sizes)
    skip = w
    for layer in range(n_layers - 1, -1, -1):
        n_in = sizes[layer]
        n_out = sizes[layer + 1]
        below = above - n_in
        w -= (n_in + 1) * n_out
        d = delta[above : above + n_out]
        for i in range(n_in):
            row = theta[w + i * n_out : w + (i + 1) * n_out]
            total = 0.0
            for j in range(n_out):
                total += row[j] * d[j]
            if layer > 0:
                total *= slope(activation, a[below + i])
            delta[below + i] = total
        above = below
    if layers.skip:
        n_out = sizes[n_layers]
        for i in range(sizes[0]):
            for j in range(n_out):
                delta[i] += theta[skip + i * n_out + j] * delta[first + j]


@kernel(inline="always")
def backward_outputs(layers, a, begin, n_inputs, deltas):
    """Derivatives of up to `LANES` outputs, those from number ``begin`` on.

    Fills ``deltas`` (n_units, LANES) for hidden units, and for the first ``n_inputs``
    inputs with derivatives by the scaled inputs. A sum over a few units of a layer is
    slow; here a loop of fixed length adds up several of them.
    """
    theta, sizes, activation = layers.theta, layers.sizes, layers.activation
    n_layers, n_outputs = len(sizes) - 1, sizes[-1]
    above = len(a) - n_outputs
    w = n_layer_parameters(sizes)
    skip = w + begin
    width = min(LANES, n_outputs - begin)
    for layer in range(n_layers - 1, -1, -1):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        below = above - n_in
        w -= (n_in + 1) * n_out
        for i in range(n_in if layer > 0 else n_inputs):
            d, start = deltas[below + i], w + i * n_out
            for lane in range(LANES):
                d[lane] = 0.0
            if layer == n_layers - 1:
                # an output has no derivative but by itself
                for lane in range(width):
                    d[lane] = theta[start + begin + lane]
            for j in range(n_out if layer < n_layers - 1 else 0):
                weight, up = theta[start + j], deltas[above + j]
                for lane in range(LANES):
                    d[lane] += weight * up[lane]
            by_sum = slope(activation, a[below + i]) if layer > 0 else 1.0
            for lane in range(LANES):
                d[lane] *= by_sum
        above = below
    if layers.skip:
        for i in range(n_inputs):
            for lane in range(width):
                deltas[i, lane] += theta[skip + i * n_outputs + lane]


@kernel(helper=True)
def tangent_row(layers, deviation, a, tangent):
    """Change of each unit of ``a``, to first order, with a deviation of the parameters.

    The inputs stay as they are. ``a`` comes from `forward_row`.
    """
    theta, sizes, activation = layers.theta, layers.sizes, layers.activation
    n_layers = len(sizes) - 1
    tangent[: sizes[0]] = 0.0
    below = 0
    w = 0
    for layer in range(n_layers):
        n_in = sizes[layer]
        n_out = sizes[layer + 1]
        above = below + n_in
        bias = w + n_in * n_out
        t = tangent[above : above + n_out]
        for j in range(n_out):
            t[j] = deviation[bias + j]
        for i in range(n_in):
            x = a[below + i]
            dx = tangent[below + i]
            start = w + i * n_out
            moved = deviation[start : start + n_out]
            row = theta[start : start + n_out]
            for j in range(n_out):
                t[j] += x * moved[j] + dx * row[j]
        if layer < n_layers - 1:
            for j in range(n_out):
                t[j] *= slope(activation, a[above + j])
        below = above
        w = bias + n_out
    if layers.skip:
        n_out = sizes[n_layers]
        for i in range(sizes[0]):
            for j in range(n_out):
                tangent[below + j] += a[i] * deviation[w + i * n_out + j]
