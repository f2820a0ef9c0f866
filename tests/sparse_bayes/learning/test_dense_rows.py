"""Fractions of the rows, and the same network with whole steps."""

import numpy as np
import pytest

from skbayesnn.sparse_bayes.learning.dense_rows import (
    choose_fraction,
    refine,
    take_fraction,
    with_whole_steps,
)
from skbayesnn.sparse_bayes.learning.restarts import learn
from skbayesnn.sparse_bayes.learning.state_space_problem import pose_state_space
from skbayesnn.sparse_bayes.parameters import learning_options
from skbayesnn.sparse_bayes.state_space_network import SparseBayesStateSpaceRegressor

STARTS = np.array([0, 2500, 4000])


def record(period=400.0):
    """A slow output, and an input."""
    t = np.arange(4000)
    y = np.sin(2 * np.pi * t / period)[:, None]
    return np.cos(2 * np.pi * t / period)[:, None], y


def test_the_fraction_is_the_largest_that_misses_little():
    _, Y = record()
    # a line misses a sine of this period by (m pi / 400)^2 / 2 at most
    assert choose_fraction(Y, np.array([0, 4000])) == 4
    assert choose_fraction(record(130.0)[1], np.array([0, 4000])) == 2
    assert choose_fraction(record(40.0)[1], np.array([0, 4000])) == 1
    noise = np.random.default_rng(0).standard_normal(Y.shape)
    assert choose_fraction(Y + 0.01 * noise, np.array([0, 4000])) == 1
    Y[100] = np.nan
    assert choose_fraction(Y, np.array([0, 4000])) == 4


def test_inputs_are_averaged_within_sessions():
    U, Y = np.arange(11.0)[:, None], 10.0 * np.arange(11.0)[:, None]
    u, y, starts = take_fraction(U, Y, np.array([0, 7, 11]), 3)
    np.testing.assert_array_equal(u[:, 0], [1.0, 4.0, 6.0, 8.0, 10.0])
    np.testing.assert_array_equal(y[:, 0], [0.0, 30.0, 60.0, 70.0, 100.0])
    np.testing.assert_array_equal(starts, [0, 3, 5])


@pytest.mark.parametrize("hidden", [(), (2,)])
@pytest.mark.parametrize("difference", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_whole_steps_are_the_same_function_and_posterior(hidden, difference):
    U, Y = record()
    U = np.hstack([U, np.random.default_rng(0).standard_normal((4000, 1))])
    model = SparseBayesStateSpaceRegressor(hidden_layer_sizes=hidden, max_cycles=1)
    options = learning_options(model._fixed_parameters(), 1)
    problem = pose_state_space(options, U, Y, STARTS, 2, 10, difference)
    assert problem.data.run.step == 0.25
    assert len(problem.stages[0].data.Y) == 625 + 375 + 2
    data = problem.data
    done = refine(problem, learn(problem, 0).networks[0], 0)
    network, whole = done.fitted.network, with_whole_steps(data)
    assert whole.run.step == 1.0
    ((residual, JT),) = whole.select_inputs(network.units[0]).blocks(network, True)
    held = data.run.held.copy()
    held[:difference] = 1.0
    np.testing.assert_array_equal(held, [1.0 if difference else 0.75, 0.75])
    assert np.sqrt(np.mean(residual**2)) < 1.0
    variance = np.einsum("ij,ik,kj->j", JT, done.fitted.covariance, JT)
    assert (variance > 0.0).all()
    before = _unscaled(network, data, problem.starts)
    expected = data.select_inputs(network.units[0]).residuals(before)
    found = whole.select_inputs(network.units[0]).residuals(network)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def _unscaled(network, data, starts):
    """The network with steps of a quarter that `refine` changed."""
    theta, sizes = network.theta.copy(), network.sizes
    step, n_states = data.run.step, starts.n_states
    n_hidden = int(sizes[1]) if len(sizes) == 3 else 0
    n_in, n_out = int(sizes[0]), int(sizes[-1])
    read = network.units[0][network.units[0] < n_states]
    sessions = network.units[0] >= starts.sizes[0] - starts.n_sessions
    first = (n_in + 1) * n_hidden
    if n_hidden:
        into = theta[first : first + (n_hidden + 1) * n_out].reshape(-1, n_out)
        into[:, :n_states] /= step
        linear = theta[first + into.size :].reshape(n_in, n_out)
    else:
        linear = theta[: n_in * n_out].reshape(n_in, n_out)
        theta[n_in * n_out :][:n_states] /= step
    linear[np.arange(len(read)), read] -= data.run.held[read]
    linear[~sessions, :n_states] /= step
    return network._replace(theta=theta)
