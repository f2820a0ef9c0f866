"""Free runs from estimated states: closed forms of a linear system, and variances."""

import naive
import numpy as np
import pytest
import state_space_cases as cases

from skbayesnn.sparse_bayes.fitted import FittedNetwork
from skbayesnn.sparse_bayes.network import init_network
from skbayesnn.sparse_bayes.prediction.hidden_states import (
    StateSpaceNetwork,
    estimated_start,
    free_run,
    unknown_start,
)
from skbayesnn.sparse_bayes.scaling import Scaling

NOISE = 0.1
STARTS = np.array([0, 30])


def scaling():
    """Features are two states, an input, and the indicator of a session."""
    offset, scale = np.array([0.0, 0.0, 0.5, 0.0]), np.array([1.0, 1.0, 2.0, 1.0])
    return Scaling(offset, scale, np.array([3.0]), np.array([4.0]))


def linear_network():
    """The linear system in scaled units, as a network."""
    network = init_network((4, 3), "tanh", np.random.default_rng(0))
    weights = np.zeros((4, 3))
    weights[:2, :2], weights[2, :2] = cases.A.T, cases.B[:, 0]
    weights[:2, 2], weights[2, 2] = cases.C[0], cases.D[0, 0]
    theta = np.concatenate([weights.ravel(), np.zeros(3)])
    return fitted(network._replace(theta=theta))


def fitted(network):
    rng = np.random.default_rng(1)
    root = 0.01 * rng.standard_normal((len(network.theta),) * 2)
    one = FittedNetwork(network, scaling(), root @ root.T, np.array([NOISE]))
    covariance = np.array([[2.0, 0.3], [0.3, 1.0]])
    visited = rng.standard_normal((5, 2))
    return StateSpaceNetwork(one, np.array([0.4, -0.2]), covariance, visited)


def record(x):
    """Inputs and outputs in the user's units."""
    rng = np.random.default_rng(2)
    scaled = rng.standard_normal((30, 1))
    return 0.5 + 2.0 * scaled, 3.0 + 4.0 * cases.simulate(scaled, x)


def test_without_outputs_sessions_begin_at_the_mean():
    network = linear_network()
    start = unknown_start(network, 3)
    np.testing.assert_array_equal(start.state, np.tile(network.mean, (3, 1)))
    assert (start.covariance == network.covariance).all()


def test_start_of_a_linear_system_is_that_of_least_squares():
    network = linear_network()
    U, Y = record(np.array([2.0, -1.0]))
    Y += 0.4 * np.random.default_rng(3).standard_normal(Y.shape)
    Y[4] = np.nan
    start = estimated_start(network, U[:8], Y[:8])
    powers = [np.linalg.matrix_power(cases.A, t) for t in range(8)]
    observed = np.concatenate([cases.C @ power for power in powers]) / NOISE
    target = (Y[:8] - record(np.zeros(2))[1][:8])[:, 0] / 4.0 / NOISE
    known = np.isfinite(target)
    precision = np.linalg.inv(network.covariance)
    covariance = np.linalg.inv(precision + observed[known].T @ observed[known])
    mean = observed[known].T @ target[known] + precision @ network.mean
    np.testing.assert_allclose(start.covariance[0], covariance, rtol=1e-6)
    np.testing.assert_allclose(start.state[0], covariance @ mean, rtol=1e-6)


def test_the_hidden_sign_of_a_state_is_found():
    """y is an even function of a state; how an input moves it tells the sign."""
    network = init_network((4, 2, 3), "tanh", np.random.default_rng(0), skip=True)
    layers = naive.unflatten(np.zeros_like(network.theta), (4, 2, 3))
    layers[0][0][0], layers[0][1][:] = 3.0, [-1.0, 1.0]
    layers[1][0][:, 2] = 1.0, -1.0
    linear, _ = layers[2]
    linear[0, 0], linear[2, 0] = 0.9, 0.5
    network = fitted(network._replace(theta=naive.flatten(layers)))
    network = network._replace(visited=np.array([[-2.0, 0.0], [2.0, 0.0]]))
    U, _ = record(np.zeros(2))
    for sign in (-1.0, 1.0):
        start = unknown_start(network, 1)
        start.state[0] = sign, 0.0
        Y = free_run(network, U, STARTS, start, False).mean
        found = estimated_start(network, U[:10], Y[:10])
        # the prior draws a little
        assert found.state[0, 0] == pytest.approx(sign, abs=0.2)


def test_variance_is_that_of_weights_start_and_noise():
    network = linear_network()
    U, _ = record(np.zeros(2))
    start = unknown_start(network, 1)
    forecast = free_run(network, U, STARTS, start, True)
    theta, scaled = network.fitted.network.theta, (U - 0.5) / 2.0
    inputs = np.hstack([scaled, np.zeros_like(scaled)])
    layers = naive.unflatten(theta, (4, 3))
    mean = naive.state_space_run(layers, "tanh", inputs, network.mean, 1)
    np.testing.assert_allclose(forecast.mean, 3.0 + 4.0 * mean)
    S = naive.state_space_derivatives(theta, (4, 3), "tanh", inputs, network.mean)
    joint = np.zeros((len(theta) + 2,) * 2)
    joint[:-2, :-2] = network.fitted.covariance
    joint[-2:, -2:] = network.covariance
    variance = np.einsum("ij,jk,ik->i", S, joint, S) + NOISE**2
    np.testing.assert_allclose(forecast.std[:, 0], 4.0 * np.sqrt(variance))
    np.testing.assert_array_equal(
        free_run(network, U, STARTS, start, False).mean, forecast.mean
    )


def test_rows_behind_a_divergence_are_nan():
    network = linear_network()
    U, _ = record(np.zeros(2))
    U[10] = 1e6
    forecast = free_run(network, U, STARTS, unknown_start(network, 1), True)
    assert forecast.n_diverged == 20
    for values in (forecast.mean, forecast.std):
        assert np.isfinite(values[:10]).all()
        assert np.isnan(values[10:]).all()
