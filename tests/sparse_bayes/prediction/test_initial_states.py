"""States at which predictions start: a closed form, and a sign that is hidden."""

import naive
import numpy as np
import pytest
import state_space_cases as cases

from skbayesnn.sparse_bayes.network import init_network
from skbayesnn.sparse_bayes.prediction.initial_states import (
    estimated_start,
    start_by_weights,
    unknown_start,
)
from skbayesnn.sparse_bayes.records.layout import Record


def test_without_outputs_sessions_begin_at_the_mean():
    network = cases.linear_network()
    start = unknown_start(network, 3)
    np.testing.assert_array_equal(start.state, np.tile(network.mean, (3, 1)))
    assert (start.covariance == network.covariance).all()


def test_start_of_a_linear_system_is_that_of_least_squares():
    network = cases.linear_network()
    U, Y = cases.record_from(np.array([2.0, -1.0]))
    Y += 0.4 * np.random.default_rng(3).standard_normal(Y.shape)
    Y[4] = np.nan
    start = estimated_start(network, U[:8], Y[:8])
    powers = [np.linalg.matrix_power(cases.A, t) for t in range(8)]
    observed = np.concatenate([cases.C @ power for power in powers]) / cases.NOISE
    target = (Y[:8] - cases.record_from(np.zeros(2))[1][:8])[:, 0] / 4.0 / cases.NOISE
    known = np.isfinite(target)
    precision = np.linalg.inv(network.covariance)
    covariance = np.linalg.inv(precision + observed[known].T @ observed[known])
    mean = observed[known].T @ target[known] + precision @ network.mean
    np.testing.assert_allclose(start.covariance[0], covariance, rtol=1e-6)
    np.testing.assert_allclose(start.state[0], covariance @ mean, rtol=1e-6)


def test_a_start_follows_the_weights():
    """As estimates by slightly different weights do; exactly where the rows fit."""
    network = cases.linear_network()
    x = np.array([2.0, -1.0])
    U, Y = cases.record_from(x)
    U, Y = U[:8], Y[:8]
    Y[3] = np.nan
    kept, h = np.array([0, 1, 2, 5, 7, 9, 11]), 1e-5
    one = network.fitted.network
    theta, keep = one.theta, np.zeros(len(one.theta), dtype=bool)
    keep[kept] = True
    by_weights = np.random.default_rng(3).standard_normal((2, 7))
    followed = np.concatenate([by_weights[:, :, None], np.ones((2, 7, 2))], axis=2)
    network = network._replace(mean=x, followed=followed)

    def estimate(step):
        changed = one._replace(theta=theta + step, keep=keep)
        return network._replace(
            fitted=network.fitted._replace(network=changed),
            mean=x + by_weights @ step[kept],
        )

    def estimates(rows):
        for step in h * np.eye(len(theta))[kept]:
            there, back = (
                estimated_start(estimate(step), U, rows).state[0]
                for step in (step, -step)
            )
            yield (there - back) / (2.0 * h)

    network = estimate(np.zeros_like(theta))
    covariance = estimated_start(network, U, Y).covariance[0]
    found = start_by_weights(network, U, Y, x, covariance)
    assert found.shape == (2, 7)
    expected = np.array(list(estimates(Y))).T
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)

    # without outputs the start is that of the training record
    unknown = np.full_like(Y, np.nan)
    elsewhere = start_by_weights(network, U, unknown, x + [0.5, 0.25], covariance)
    np.testing.assert_allclose(elsewhere, by_weights + 0.75)


def test_the_hidden_sign_of_a_state_is_found():
    """y is an even function of a state; how an input moves it tells the sign."""
    network = init_network((4, 2, 3), "tanh", np.random.default_rng(0), skip=True)
    layers = naive.unflatten(np.zeros_like(network.theta), (4, 2, 3))
    layers[0][0][0], layers[0][1][:] = 3.0, [-1.0, 1.0]
    layers[1][0][:, 2] = 1.0, -1.0
    linear, _ = layers[2]
    linear[0, 0], linear[2, 0] = 0.9, 0.5
    network = cases.fitted(network._replace(theta=naive.flatten(layers)))
    network = network._replace(visited=np.array([[-2.0, 0.0], [2.0, 0.0]]))
    U, _ = cases.record_from(np.zeros(2))
    for sign in (-1.0, 1.0):
        there = network._replace(mean=np.array([sign, 0.0]))
        record = Record(U, np.full((30, 1), np.nan), None, np.array([0, 30]))
        Y = there.forecast(record, 0, np.inf, False).mean
        found = estimated_start(network, U[:10], Y[:10])
        # the prior draws a little
        assert found.state[0, 0] == pytest.approx(sign, abs=0.2)
