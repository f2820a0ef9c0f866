"""A pruned multi-layer perceptron as plain arrays, and its compaction."""

from typing import NamedTuple

import numpy as np

from .._saved_state import saved_as
from .kernels.activations import ACTIVATIONS, activate
from .kernels.layers import Layers


@saved_as("Network")
class Network(NamedTuple):
    """What is left of a network, in the layout of the compiled passes.

    theta : (n_parameters,) float64, zero where a weight was pruned
    keep : (n_parameters,) bool, False where a weight was pruned, or is fixed
    sizes : (n_layers + 1,) int64, the units left in each layer, inputs first
    units : for each layer, the indices of those units in the full network
    full_sizes : units in each layer before any pruning
    activation : code of the hidden activation
    skip : whether weights from the inputs straight to the outputs follow the layers
    """

    theta: np.ndarray
    keep: np.ndarray
    sizes: np.ndarray
    units: tuple
    full_sizes: tuple
    activation: int
    skip: bool = False

    @property
    def layers(self):
        """The network as the kernels take it."""
        return Layers(self.theta, self.sizes, int(self.activation), bool(self.skip))

    @property
    def linear(self):
        """Whether there is no hidden layer."""
        return len(self.sizes) == 2


def blocks(sizes, skip=False):
    """Shapes (n_in, n_out) of the weights of each layer, then of the skip connection.

    With each stands the number of its biases: ``n_out``, or none.
    """
    shapes = [(a, b, b) for a, b in zip(sizes[:-1], sizes[1:], strict=True)]
    return [*shapes, (sizes[0], sizes[-1], 0)] if skip else shapes


def count_parameters(sizes, skip=False):
    """Weights and biases of a network with these layer widths."""
    return sum(a * b + n_biases for a, b, n_biases in blocks(sizes, skip))


def split_layers(vector, sizes, skip=False):
    """Views of a parameter vector as (weights, biases) of each block."""
    layers = []
    start = 0
    for n_in, n_out, n_biases in blocks(sizes, skip):
        stop = start + n_in * n_out
        weights = vector[start:stop].reshape(n_in, n_out)
        layers.append((weights, vector[stop : stop + n_biases]))
        start = stop + n_biases
    return layers


def join_layers(layers):
    """The inverse of `split_layers`, as a new vector."""
    return np.concatenate([np.ravel(part) for layer in layers for part in layer])


def init_network(full_sizes, activation, rng, skip=False):
    """Random weights with Glorot's uniform limits, zero biases, nothing pruned.

    A skip connection starts at zero.
    """
    full_sizes = tuple(int(size) for size in full_sizes)
    layers = []
    for n_in, n_out in zip(full_sizes[:-1], full_sizes[1:], strict=True):
        limit = np.sqrt(6.0 / (n_in + n_out))
        weights = rng.uniform(-limit, limit, size=(n_in, n_out))
        layers.append((weights, np.zeros(n_out)))
    if skip:
        layers.append((np.zeros((full_sizes[0], full_sizes[-1])), np.zeros(0)))
    theta = join_layers(layers)
    return Network(
        theta=theta,
        keep=np.ones(len(theta), dtype=bool),
        sizes=np.array(full_sizes, dtype=np.int64),
        units=tuple(np.arange(size) for size in full_sizes),
        full_sizes=full_sizes,
        activation=ACTIVATIONS[activation],
        skip=skip,
    )


def bias_mask(network):
    """True at the biases of a network's parameter vector."""
    return join_layers(
        [
            (np.zeros((n_in, n_out), dtype=bool), np.ones(n_biases, dtype=bool))
            for n_in, n_out, n_biases in blocks(network.sizes, network.skip)
        ]
    )


def layer_index(network):
    """The block of each parameter: its layer, or the number of layers for the skip."""
    shapes = blocks(network.sizes, network.skip)
    return np.repeat(np.arange(len(shapes)), [a * b + n for a, b, n in shapes])


def prune(network, drop):
    """Remove the weights in ``drop`` and every unit that this disconnects.

    A hidden unit without a way in is a constant: it moves into the biases of the next
    layer.  One without a way out changes nothing.  Both leave the arrays, as do inputs
    that nothing reads. Weights that are not 0 stay, also where they are no parameters,
    as what holds a state from row to row.

    Returns
    -------
    network : Network
        Smaller arrays, the same function as with the dropped weights at zero.
    index : ndarray of int
        Where the remaining parameters stood in the arrays of the old network.
    """
    theta = network.theta.copy()
    theta[drop] = 0.0
    keep = network.keep & ~drop
    values = split_layers(theta, network.sizes, network.skip)
    kept = split_layers(keep | (theta != 0.0), network.sizes, network.skip)
    n_layers = len(network.sizes) - 1
    alive = [np.ones(size, dtype=bool) for size in network.sizes]
    # bound: each turn but the last removes a unit
    while _remove_dead_units(
        values[:n_layers], kept[:n_layers], alive, network.activation
    ):
        pass
    alive[0] = kept[0][0].any(axis=1)
    layers = [
        (np.outer(alive[layer], alive[layer + 1]), alive[layer + 1])
        for layer in range(n_layers)
    ]
    if network.skip:
        alive[0] |= kept[-1][0].any(axis=1)
        layers[0] = (np.outer(alive[0], alive[1]), alive[1])
        layers.append((np.outer(alive[0], alive[-1]), np.zeros(0, dtype=bool)))
    index = np.flatnonzero(join_layers(layers))
    pruned = network._replace(
        theta=theta[index],
        keep=keep[index],
        sizes=np.array([np.count_nonzero(a) for a in alive], dtype=np.int64),
        units=tuple(u[a] for u, a in zip(network.units, alive, strict=True)),
    )
    return pruned, index


def _remove_dead_units(values, kept, alive, activation):
    """Cut all weights of hidden units that lost their way in or out; True if any."""
    changed = False
    for layer in range(1, len(values)):
        (weights_in, biases), (weights_out, biases_out) = values[layer - 1 : layer + 1]
        (kept_in, kept_biases), (kept_out, _) = kept[layer - 1 : layer + 1]
        has_in = kept_in.any(axis=0)
        has_out = kept_out.any(axis=1)
        for unit in np.flatnonzero(alive[layer] & ~(has_in & has_out)):
            if has_out[unit]:
                biases_out += activate(activation, biases[unit]) * weights_out[unit]
            weights_in[:, unit] = 0.0
            weights_out[unit] = 0.0
            biases[unit] = 0.0
            kept_in[:, unit] = False
            kept_out[unit] = False
            kept_biases[unit] = False
            alive[layer][unit] = False
            changed = True
    return changed


def expand(network, values, fill=0.0):
    """Arrange one value per parameter in the shapes of the full network.

    Returns
    -------
    weights, biases : list of ndarray
        Shapes (full_sizes[l], full_sizes[l + 1]) and (full_sizes[l + 1],); with a skip
        connection one more each, the biases empty.
    """
    weights, biases = [], []
    shapes = blocks(network.full_sizes, network.skip)
    layers = split_layers(np.asarray(values), network.sizes, network.skip)
    for block, (small_weights, small_biases) in enumerate(layers):
        skip = block == len(network.sizes) - 1
        rows = network.units[0 if skip else block]
        columns = network.units[-1 if skip else block + 1]
        n_in, n_out, n_biases = shapes[block]
        full_weights = np.full((n_in, n_out), fill, dtype=small_weights.dtype)
        full_weights[np.ix_(rows, columns)] = small_weights
        full_biases = np.full(n_biases, fill, dtype=small_biases.dtype)
        full_biases[columns[: len(small_biases)]] = small_biases
        weights.append(full_weights)
        biases.append(full_biases)
    return weights, biases
