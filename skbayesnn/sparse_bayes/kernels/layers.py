"""Compiled passes of many samples through a multi-layer perceptron.

Samples stand along the last axis everywhere: inputs are (n_features, n_samples),
outputs (n_outputs, n_samples), and a Jacobian holds one parameter per row. So every
inner loop runs over ``BLOCK`` neighbouring samples and vectorises regardless of the
widths of the layers, and a pruned weight (a zero in ``theta``) costs one comparison.

``weights`` (n_outputs, n_samples), or (n_outputs, 1) where all samples have the same,
multiply the errors and the rows of the Jacobian: the inverse noise standard deviation,
up to a common factor.
"""

import functools
from typing import NamedTuple

import numpy as np

from ..._numba import kernel
from .activations import BLOCK, activate_many, activation_workspace, slope_block


class Layers(NamedTuple):
    """A network as all kernels take it, with one flat parameter vector.

    Layer ``l`` maps ``sizes[l]`` units to ``sizes[l + 1]`` units; hidden units use the
    activation, the output layer is linear.

    theta : (n_parameters,) layer after layer, its weight matrix in C order (fan-in
        first) and then its biases; at the end the skip connection
    sizes : (n_layers + 1,) int64
    activation : code of the hidden activation
    skip : whether weights (n_features, n_outputs) lead from inputs to outputs as well
    """

    theta: np.ndarray
    sizes: np.ndarray
    activation: int
    skip: bool


class Places(NamedTuple):
    """The units between which parameters stand, as places among all units.

    The derivative of an output by a parameter is the value of its source times the
    derivative of the output by its target.

    source, target : (n,) unsigned, which saves a comparison at each use; the source of
        a bias is a place behind all units, where memory for their values holds a 1
    """

    source: np.ndarray
    target: np.ndarray


def parameter_places(layers, kept=None):
    """`Places` of the parameters, or of those with the given numbers."""
    places = _places_of(tuple(layers.sizes.tolist()), bool(layers.skip))
    return places if kept is None else Places(*(array[kept] for array in places))


@functools.lru_cache(maxsize=64)
def _places_of(sizes, skip):
    first = np.concatenate([[0], np.cumsum(sizes)])
    source, target = [], []
    for layer in range(len(sizes) - 1):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        into = first[layer + 1] + np.arange(n_out)
        of_weights = np.repeat(first[layer] + np.arange(n_in), n_out)
        source += [of_weights, np.full(n_out, first[-1])]
        target += [np.tile(into, n_in), into]
    if skip:
        source.append(np.repeat(np.arange(sizes[0]), sizes[-1]))
        target.append(np.tile(into, sizes[0]))
    return Places(*(np.concatenate(p).astype(np.uintp) for p in (source, target)))


class BlockMemory(NamedTuple):
    """Scratch memory of the passes through a block of samples.

    values : (n_units + 1, BLOCK), those of the units, and ones
    a, delta : (n_units, BLOCK), the former without the ones, and derivatives by them
    power, bits : see `activation_workspace`
    """

    values: np.ndarray
    a: np.ndarray
    delta: np.ndarray
    power: np.ndarray
    bits: np.ndarray


def block_memory(sizes):
    """Memory for a network; taken outside of the kernels, which compile faster then."""
    values = np.zeros((int(np.sum(sizes)) + 1, BLOCK))
    values[-1] = 1.0
    a = values[:-1]
    return BlockMemory(values, a, np.zeros_like(a), *activation_workspace(BLOCK))


@kernel(inline="always")
def n_layer_parameters(sizes):
    """Weights and biases of the layers: where a skip connection starts."""
    total = 0
    for layer in range(len(sizes) - 1):
        total += (sizes[layer] + 1) * sizes[layer + 1]
    return total


@kernel(inline="always")
def _load(XT, start, width, a):
    for i in range(XT.shape[0]):
        for s in range(width):
            a[i, s] = XT[i, start + s]


@kernel(inline="always")
def _forward_block(layers, memory):
    """Fill all units (n_units, BLOCK) from the inputs in the first rows."""
    a, power, bits = memory.a, memory.power, memory.bits
    theta, sizes, activation = layers.theta, layers.sizes, layers.activation
    n_layers = len(sizes) - 1
    below = 0
    w = 0
    for layer in range(n_layers):
        n_in = sizes[layer]
        n_out = sizes[layer + 1]
        above = below + n_in
        bias = w + n_in * n_out
        for j in range(n_out):
            h = a[above + j]
            h[:] = theta[bias + j]
            for i in range(n_in):
                weight = theta[w + i * n_out + j]
                if weight != 0.0:
                    x = a[below + i]
                    for s in range(BLOCK):
                        h[s] += weight * x[s]
            if layer < n_layers - 1:
                activate_many(activation, h, power, bits)
        below = above
        w = bias + n_out
    if layers.skip:
        n_out = sizes[n_layers]
        for j in range(n_out):
            h = a[below + j]
            for i in range(sizes[0]):
                weight = theta[w + i * n_out + j]
                if weight != 0.0:
                    x = a[i]
                    for s in range(BLOCK):
                        h[s] += weight * x[s]


@kernel(inline="always")
def _backward_block(layers, memory):
    """Send the output derivatives in the last rows of ``delta`` back to all units.

    On return ``delta`` holds, for every hidden and output unit, the derivative with
    respect to its pre-activation, and for the inputs the derivative itself.
    """
    a, delta = memory.a, memory.delta
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
        for i in range(n_in):
            d = delta[below + i]
            d[:] = 0.0
            for j in range(n_out):
                weight = theta[w + i * n_out + j]
                if weight != 0.0:
                    up = delta[above + j]
                    for s in range(BLOCK):
                        d[s] += weight * up[s]
            if layer > 0:
                slope_block(activation, a[below + i], d)
        above = below
    if layers.skip:
        n_out = sizes[n_layers]
        for i in range(sizes[0]):
            d = delta[i]
            for j in range(n_out):
                weight = theta[skip + i * n_out + j]
                if weight != 0.0:
                    up = delta[first + j]
                    for s in range(BLOCK):
                        d[s] += weight * up[s]


# A literal would compile the callees of a kernel once more.
_NO, _YES = np.bool_(False), np.bool_(True)
# what `forward` asks for of derivatives
NO_PLACES = Places(np.zeros(0, dtype=np.uintp), np.zeros(0, dtype=np.uintp))
_NO_WEIGHTS = np.zeros((0, 1))
_NO_JACOBIAN = np.zeros((0, 0, 0))


def forward(layers, XT):
    """Outputs of the network, shape (n_outputs, n_samples)."""
    out = np.empty((layers.sizes[-1], XT.shape[1]))
    memory = block_memory(layers.sizes)
    _derive(layers, NO_PLACES, _NO_WEIGHTS, XT, memory, out, _NO_JACOBIAN)
    return out


@kernel(helper=True)
def _product(x, d, width, squared):
    """Sum of the derivatives ``x d``, or of their squares, over a block."""
    total = 0.0
    if squared:
        for s in range(width):
            total += (x[s] * d[s]) * (x[s] * d[s])
    else:
        for s in range(width):
            total += x[s] * d[s]
    return total


@kernel(helper=True)
def _add_products(places, memory, width, out, squared):
    """Add to ``out`` the derivatives by each parameter summed over a block.

    With ``squared`` the squares of the single samples' derivatives are summed.
    """
    values, delta, (source, target) = memory.values, memory.delta, places
    for w in range(len(out)):
        out[w] += _product(values[source[w]], delta[target[w]], width, squared)


def loss_gradient(layers, weights, XT, YT):
    """Half the weighted squared error and its gradient, by backpropagation."""
    gradient, memory = np.zeros_like(layers.theta), block_memory(layers.sizes)
    arguments = layers, parameter_places(layers), weights, XT, YT, memory, gradient
    return _loss_gradient(*arguments), gradient


@kernel
def _loss_gradient(layers, places, weights, XT, YT, memory, gradient):
    a, delta = memory.a, memory.delta
    n_samples = XT.shape[1]
    n_out = layers.sizes[-1]
    first = len(a) - n_out
    of_sample = weights.shape[1] > 1
    loss = 0.0
    for start in range(0, n_samples, BLOCK):
        width = min(BLOCK, n_samples - start)
        _load(XT, start, width, a)
        _forward_block(layers, memory)
        for o in range(n_out):
            for s in range(width):
                weight = weights[o, start + s] if of_sample else weights[o, 0]
                delta[first + o, s] = weight * (a[first + o, s] - YT[o, start + s])
            # A loop of its own that stores nothing: the compiled code tests whether
            # arrays that are stored and loaded are close to each other in memory, and
            # sums in another order if they are.
            loss += 0.5 * _product(delta[first + o], delta[first + o], width, _NO)
            for s in range(width):
                delta[first + o, s] *= (
                    weights[o, start + s] if of_sample else weights[o, 0]
                )
        _backward_block(layers, memory)
        _add_products(places, memory, width, gradient, _NO)
    return loss


@kernel(inline="always")
def _seed_output(delta, first, o, weights, start, width):
    """Start the backward pass of one output of a block."""
    delta[first:] = 0.0
    if weights.shape[1] == 1:
        delta[first + o] = weights[o, 0]
    else:
        for s in range(width):
            delta[first + o, s] = weights[o, start + s]


def ggn_diag(layers, weights, XT):
    """Exact diagonal of ``J.T @ J`` without ever forming ``J``.

    The backward pass of equation (21) with its Gauss-Newton term alone: each output
    sends one derivative back, whose square is accumulated.
    """
    diag = np.zeros_like(layers.theta)
    memory = block_memory(layers.sizes)
    _ggn_diag(layers, parameter_places(layers), weights, XT, memory, diag)
    return diag


@kernel
def _ggn_diag(layers, places, weights, XT, memory, diag):
    a, delta = memory.a, memory.delta
    n_samples = XT.shape[1]
    n_out = layers.sizes[-1]
    first = len(a) - n_out
    for start in range(0, n_samples, BLOCK):
        width = min(BLOCK, n_samples - start)
        _load(XT, start, width, a)
        _forward_block(layers, memory)
        for o in range(n_out):
            _seed_output(delta, first, o, weights, start, width)
            _backward_block(layers, memory)
            _add_products(places, memory, width, diag, _YES)


@kernel(inline="always")
def _store_jacobian(places, memory, start, width, o, JT):
    """Write the derivatives of an output by some parameters, one parameter per row."""
    values, delta, (source, target) = memory.values, memory.delta, places
    for c in range(len(source)):
        row, x, d = JT[c, o], values[source[c]], delta[target[c]]
        for s in range(width):
            row[start + s] = x[s] * d[s]


def jacobian(layers, kept, weights, XT):
    """Outputs and their weighted derivatives by the parameters that are kept.

    ``kept`` (n_kept,) int64 holds their numbers. Returns outputs (n_outputs, n_samples)
    and the transposed Jacobian (n_kept, n_outputs, n_samples).
    """
    out = np.empty((layers.sizes[-1], XT.shape[1]))
    JT = np.empty((len(kept), *out.shape))
    places, memory = parameter_places(layers, kept), block_memory(layers.sizes)
    _derive(layers, places, weights, XT, memory, out, JT)
    return out, JT


@kernel
def _derive(layers, places, weights, XT, memory, out, JT):
    """Fill outputs and, unless there are no ``weights``, the Jacobian.

    One kernel for both: a second one would compile the pass through the network again.
    """
    a, delta = memory.a, memory.delta
    n_out, n_samples = out.shape
    first = len(a) - n_out
    for start in range(0, n_samples, BLOCK):
        width = min(BLOCK, n_samples - start)
        _load(XT, start, width, a)
        _forward_block(layers, memory)
        for o in range(n_out):
            for s in range(width):
                out[o, start + s] = a[first + o, s]
        for o in range(len(weights)):
            _seed_output(delta, first, o, weights, start, width)
            _backward_block(layers, memory)
            _store_jacobian(places, memory, start, width, o, JT)
