"""A pruned multi-layer perceptron as plain arrays, and its compaction."""

from typing import NamedTuple

import numpy as np

from ..kernels.activations import LOGISTIC, RELU, TANH, activate

ACTIVATIONS = {"tanh": TANH, "relu": RELU, "logistic": LOGISTIC}


class Network(NamedTuple):
    """What is left of a network, in the layout of the compiled passes.

    theta : (n_parameters,) float64, zero where a weight was pruned
    keep : (n_parameters,) bool, False where a weight was pruned
    sizes : (n_layers + 1,) int64, the units left in each layer, inputs first
    units : for each layer, the indices of those units in the full network
    full_sizes : units in each layer before any pruning
    activation : code of the hidden activation
    """

    theta: np.ndarray
    keep: np.ndarray
    sizes: np.ndarray
    units: tuple
    full_sizes: tuple
    activation: int


def count_parameters(sizes):
    """Weights and biases of a network with these layer widths."""
    return sum((a + 1) * b for a, b in zip(sizes[:-1], sizes[1:], strict=True))


def split_layers(vector, sizes):
    """Views of a parameter vector as (weights, biases) of each layer."""
    layers = []
    start = 0
    for n_in, n_out in zip(sizes[:-1], sizes[1:], strict=True):
        stop = start + n_in * n_out
        weights = vector[start:stop].reshape(n_in, n_out)
        layers.append((weights, vector[stop : stop + n_out]))
        start = stop + n_out
    return layers


def join_layers(layers):
    """The inverse of `split_layers`, as a new vector."""
    return np.concatenate([np.ravel(part) for layer in layers for part in layer])


def init_network(full_sizes, activation, rng):
    """Random weights with Glorot's uniform limits, zero biases, nothing pruned."""
    full_sizes = tuple(int(size) for size in full_sizes)
    layers = []
    for n_in, n_out in zip(full_sizes[:-1], full_sizes[1:], strict=True):
        limit = np.sqrt(6.0 / (n_in + n_out))
        weights = rng.uniform(-limit, limit, size=(n_in, n_out))
        layers.append((weights, np.zeros(n_out)))
    theta = join_layers(layers)
    return Network(
        theta=theta,
        keep=np.ones(len(theta), dtype=bool),
        sizes=np.array(full_sizes, dtype=np.int64),
        units=tuple(np.arange(size) for size in full_sizes),
        full_sizes=full_sizes,
        activation=ACTIVATIONS[activation],
    )


def bias_mask(sizes):
    """True at the biases of a parameter vector."""
    return join_layers(
        [
            (np.zeros((n_in, n_out), dtype=bool), np.ones(n_out, dtype=bool))
            for n_in, n_out in zip(sizes[:-1], sizes[1:], strict=True)
        ]
    )


def layer_index(sizes):
    """The layer of each parameter of a vector."""
    widths = [(a + 1) * b for a, b in zip(sizes[:-1], sizes[1:], strict=True)]
    return np.repeat(np.arange(len(widths)), widths)


def column_index(keep):
    """Row of each parameter in a Jacobian of the kept ones; -1 for the others."""
    column = np.full(len(keep), -1, dtype=np.int64)
    column[keep] = np.arange(np.count_nonzero(keep))
    return column


def prune(network, drop):
    """Remove the weights in ``drop`` and every unit that this disconnects.

    A hidden unit without a way in is a constant: it moves into the biases of the next
    layer.  One without a way out changes nothing.  Both leave the arrays, as do inputs
    that nothing reads.

    Returns
    -------
    network : Network
        Smaller arrays, the same function as with the dropped weights at zero.
    index : ndarray of int
        Where the remaining parameters stood in the arrays of the old network.
    """
    theta = network.theta.copy()
    keep = network.keep & ~drop
    theta[~keep] = 0.0
    values = split_layers(theta, network.sizes)
    kept = split_layers(keep, network.sizes)
    alive = [np.ones(size, dtype=bool) for size in network.sizes]
    while _remove_dead_units(values, kept, alive, network.activation):
        pass
    alive[0] = kept[0][0].any(axis=1)
    index = np.flatnonzero(
        join_layers(
            [
                (np.outer(alive[layer], alive[layer + 1]), alive[layer + 1])
                for layer in range(len(values))
            ]
        )
    )
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
    """Values a parameter, laid out again as in the full network.

    Returns
    -------
    weights, biases : list of ndarray
        Shapes (full_sizes[l], full_sizes[l + 1]) and (full_sizes[l + 1],).
    """
    weights, biases = [], []
    layers = split_layers(np.asarray(values), network.sizes)
    for layer, (small_weights, small_biases) in enumerate(layers):
        rows, columns = network.units[layer], network.units[layer + 1]
        shape = network.full_sizes[layer : layer + 2]
        full_weights = np.full(shape, fill, dtype=small_weights.dtype)
        full_weights[np.ix_(rows, columns)] = small_weights
        full_biases = np.full(shape[1], fill, dtype=small_biases.dtype)
        full_biases[columns] = small_biases
        weights.append(full_weights)
        biases.append(full_biases)
    return weights, biases
