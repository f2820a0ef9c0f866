"""A state-space network as one on lags, whose next states are outputs that are hidden.

It predicts z(t) = (x(t + 1), y(t)) from u(t) and the first part of z(t - 1): that is a
network on lags with as many outputs more as there are states. What is derived from the
equations of networks on lags holds for it as well.
"""

import numpy as np

from ..network import layer_index, prune
from ..prediction.ensemble import Ensemble, LaggedNetwork
from ..records.lags import Lags


def with_hidden_outputs(ensemble):
    """The ensemble on lags of one of state-space networks."""
    return Ensemble(tuple(map(_on_lags, ensemble.members)), ensemble.weights)


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
