"""A state-space network as one on lags, whose next states are outputs that are hidden.

It predicts z(t) = (x(t + 1), y(t)) from u(t) and the first part of z(t - 1): that is a
network on lags with as many outputs more as there are states. What is derived from the
equations of networks on lags holds for it as well.

All networks of an ensemble get as many hidden outputs as the one with the most states;
those that a network does not have are 0, and nothing reads them.
"""

import numpy as np

from ..network import join_layers, layer_index, prune, split_layers
from ..prediction.ensemble import Ensemble, LaggedNetwork
from ..records.lags import Lags


def with_hidden_outputs(ensemble, filters):
    """The ensemble on lags of one with state-space networks, its ``filters``."""
    most, members = max(one.n_states for one in filters if one), []
    for member, one in zip(ensemble.members, filters, strict=True):
        lagged, n_states = (_on_lags(one), one.n_states) if one else (member, 0)
        members.append(_with_zeros(lagged, n_states, most - n_states))
    return Ensemble(tuple(members), ensemble.weights)


def _with_zeros(member, place, n_more):
    """The network on lags with more outputs, all 0, in front of number ``place``."""
    fitted, lags = member
    network, scaling = fitted.network, fitted.scaling
    at, n_outputs = np.full(n_more, place), network.sizes[-1] + n_more

    def widened(values):
        layers = split_layers(values, network.sizes, network.skip)
        # of the last layer, and of the skip connection behind it
        for k in range(len(network.sizes) - 2, len(layers)):
            weights, biases = layers[k]
            biases = np.insert(biases, at, 0) if len(biases) else biases
            layers[k] = np.insert(weights, at, 0, axis=1), biases
        return join_layers(layers)

    network = network._replace(
        theta=widened(network.theta),
        keep=widened(network.keep),
        sizes=np.array([*network.sizes[:-1], n_outputs]),
        units=(*network.units[:-1], np.arange(n_outputs)),
        full_sizes=(*network.full_sizes[:-1], int(n_outputs)),
    )
    scaling = scaling._replace(
        y_offset=np.insert(scaling.y_offset, at, 0.0),
        y_scale=np.insert(scaling.y_scale, at, 1.0),
    )
    behind = lags.signal >= lags.n_inputs + place
    lags = lags._replace(
        signal=lags.signal + n_more * behind, n_outputs=lags.n_outputs + n_more
    )
    return LaggedNetwork(fitted._replace(network=network, scaling=scaling), lags)


def _on_lags(member):
    n_states, n_inputs, n_outputs = member.n_states, member.n_inputs, member.n_outputs
    fitted = _without_sessions(member.fitted, n_states + n_inputs)
    scaling, n_features = fitted.scaling, n_states + n_inputs
    fitted = fitted._replace(
        scaling=scaling._replace(
            x_offset=scaling.x_offset[:n_features],
            x_scale=scaling.x_scale[:n_features],
            y_offset=np.concatenate([np.zeros(n_states), scaling.y_offset]),
            y_scale=np.concatenate([np.ones(n_states), scaling.y_scale]),
        )
    )
    signal = np.concatenate([n_inputs + np.arange(n_states), np.arange(n_inputs)])
    lag = np.repeat([1, 0], [n_states, n_inputs])
    return LaggedNetwork(fitted, Lags(signal, lag, n_inputs, n_states + n_outputs))


def _without_sessions(fitted, n_features):
    """The network without the indicators of training sessions."""
    network = fitted.network
    drop = _leaves(network, network.units[0] >= n_features)
    pruned, index = prune(network, drop)
    number = np.cumsum(network.keep) - 1
    kept = number[index[pruned.keep]]
    covariance = fitted.covariance[kept]
    if covariance.ndim == 2:
        covariance = covariance[:, kept]
    return fitted._replace(network=pruned, covariance=covariance)


def _leaves(network, features):
    """True at the weights that leave some of the features."""
    layer, sizes = layer_index(network), network.sizes
    drop = np.zeros(len(network.theta), dtype=bool)
    first = np.flatnonzero(layer == 0)[: sizes[0] * sizes[1]]
    drop[first] = np.repeat(features, sizes[1])
    if network.skip:
        direct = np.flatnonzero(layer == len(sizes) - 1)
        drop[direct] = np.repeat(features, sizes[-1])
    return drop
