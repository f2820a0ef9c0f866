"""Linear systems with hidden states, and records of them."""

import naive
import numpy as np

from skbayesnn.sparse_bayes.fitted import FittedNetwork
from skbayesnn.sparse_bayes.network import init_network
from skbayesnn.sparse_bayes.prediction.hidden_states import StateSpaceNetwork
from skbayesnn.sparse_bayes.scaling import Scaling

A = np.array([[0.9, 0.2], [-0.2, 0.7]])
B = np.array([[0.5], [1.0]])
C = np.array([[1.0, -0.5]])
D = np.array([[0.3]])


def simulate(U, x):
    """Outputs (n, 1) of the system from a state."""
    Y = np.empty((len(U), 1))
    for t, u in enumerate(U):
        Y[t] = C @ x + D @ u
        x = A @ x + B @ u
    return Y


def records(lengths=(120, 80), noise=0.0, seed=0):
    """Inputs, outputs (n,), session of each row, and the states at their starts."""
    rng = np.random.default_rng(seed)
    U = [rng.standard_normal((n, 1)) for n in lengths]
    initial = [3.0 * rng.standard_normal(2) for _ in lengths]
    Y = [simulate(u, x) for u, x in zip(U, initial, strict=True)]
    y = np.concatenate(Y)[:, 0]
    y += noise * rng.standard_normal(len(y))
    return np.concatenate(U), y, np.repeat(np.arange(len(lengths)), lengths), initial


def slow_record(period=400.0):
    """Inputs and outputs (4000, 1): waves of so many rows."""
    t = np.arange(4000)
    y = np.sin(2 * np.pi * t / period)[:, None]
    return np.cos(2 * np.pi * t / period)[:, None], y


NOISE = 0.1


def scaling(n_outputs=1):
    """Features are two states, an input, and the indicator of a session."""
    offset, scale = np.array([0.0, 0.0, 0.5, 0.0]), np.array([1.0, 1.0, 2.0, 1.0])
    return Scaling(offset, scale, np.full(n_outputs, 3.0), np.full(n_outputs, 4.0))


def fitted(network, n_outputs=1):
    """A `StateSpaceNetwork` of two states, with noise of the steps.

    Its states in the training record do not follow the weights.
    """
    rng = np.random.default_rng(1)
    root = 0.01 * rng.standard_normal((len(network.theta),) * 2)
    noise = np.full(n_outputs, NOISE)
    one = FittedNetwork(network, scaling(n_outputs), root @ root.T, noise)
    covariance = np.array([[2.0, 0.3], [0.3, 1.0]])
    visited, process = rng.standard_normal((5, 2)), 0.0004 * covariance
    measurement = 0.004 * (1.0 + np.arange(n_outputs))
    mean = np.array([0.4, -0.2])
    followed = np.zeros((2, np.count_nonzero(network.keep), 3))
    states = mean, covariance, visited, followed
    return StateSpaceNetwork(one, *states, process, measurement, 1)


def linear_network():
    """The linear system in scaled units, as a network."""
    network = init_network((4, 3), "tanh", np.random.default_rng(0))
    weights = np.zeros((4, 3))
    weights[:2, :2], weights[2, :2] = A.T, B[:, 0]
    weights[:2, 2], weights[2, 2] = C[0], D[0, 0]
    theta = np.concatenate([weights.ravel(), np.zeros(3)])
    return fitted(network._replace(theta=theta))


def bases(network):
    """Weights that say the same in other bases, and how their states are others."""
    theta, sizes = network.fitted.network.theta, tuple(network.fitted.network.sizes)

    def in_basis(T):
        ((weights, bias),) = naive.unflatten(theta, sizes)
        weights = weights.copy()
        weights[:2] = np.linalg.inv(T).T @ weights[:2]
        weights[:, :2] = weights[:, :2] @ T.T
        return naive.flatten([(weights, bias)])

    h, changes = 1e-6, np.eye(4).reshape(4, 2, 2)
    moved = [
        (in_basis(np.eye(2) + h * E) - in_basis(np.eye(2) - h * E)) / (2.0 * h)
        for E in changes
    ]
    return np.array(moved).T, changes


def tanh_network(n_outputs=2):
    """Two states that a hidden layer bends."""
    sizes = (4, 3, 2 + n_outputs)
    network = init_network(sizes, "tanh", np.random.default_rng(5), skip=True)
    layers = naive.unflatten(network.theta, sizes)
    layers[-1][0][:3, :2] = np.vstack([A.T, B.T])
    layers[-1][0][:2, 2:] = np.random.default_rng(6).standard_normal((2, n_outputs))
    layers[1][0][:, :2] *= 0.3
    return fitted(network._replace(theta=naive.flatten(layers)), n_outputs)


def record_from(x):
    """Inputs and outputs (30 rows) of the linear system in the user's units."""
    rng = np.random.default_rng(2)
    scaled = rng.standard_normal((30, 1))
    return 0.5 + 2.0 * scaled, 3.0 + 4.0 * simulate(scaled, x)
