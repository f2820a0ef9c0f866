"""Fits to all rows that go on from others: whole steps, missed rows."""

import numpy as np
import pytest
from state_space_cases import slow_record

from skbayesnn.sparse_bayes.learning.all_rows import (
    _with_small_steps,
    refine,
    resume,
    with_whole_steps,
)
from skbayesnn.sparse_bayes.learning.restarts import learn
from skbayesnn.sparse_bayes.learning.state_space_problem import pose_state_space
from skbayesnn.sparse_bayes.parameters import learning_options
from skbayesnn.sparse_bayes.state_space_network import SparseBayesStateSpaceRegressor

STARTS = np.array([0, 2500, 4000])


@pytest.mark.parametrize("hidden", [(), (2,)])
@pytest.mark.parametrize("difference", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_whole_steps_are_the_same_function_and_posterior(hidden, difference):
    U, Y = slow_record()
    U = np.hstack([U, np.random.default_rng(0).standard_normal((4000, 1))])
    model = SparseBayesStateSpaceRegressor(hidden_layer_sizes=hidden, max_cycles=1)
    options = learning_options(model._fixed_parameters(), 1)
    problem = pose_state_space(options, U, Y, STARTS, 2, 10, difference)
    assert problem.data.run.step == 0.25
    assert len(problem.stages[0].data.Y) == 625 + 375 + 2
    data, tried = problem.data, []

    def predicts(problem, _):
        tried.append(problem.stages[-1].data.run.step)
        return True

    problem = problem._replace(predicts=predicts)
    done = refine(problem, learn(problem, 0).networks[0], 0)
    # predictions make whole steps: the fit to all rows is not tried by them
    assert tried == [1.0]
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
    back = _with_small_steps(done.start, data.run, problem.starts)
    np.testing.assert_allclose(back.network.theta, before.theta, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("period", "difference"),
    [
        (40.0, True),
        (400.0, False),
        pytest.param(40.0, False, marks=pytest.mark.slow),
        pytest.param(400.0, True, marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_goes_on_from_one_that_missed_a_part(period, difference):
    """With rows of every density."""
    U, Y = slow_record(period)
    seen = Y.copy()
    seen[1000:1500] = np.nan
    model = SparseBayesStateSpaceRegressor(hidden_layer_sizes=(2,), max_cycles=30)
    options = learning_options(model._fixed_parameters(), 1)
    first = pose_state_space(options, U, seen, STARTS, 2, 10, difference)
    before = learn(first, 0).networks[0]
    before = refine(first, before, 0)
    arguments = U, Y, STARTS, 2, 10, difference, before.start.scaling
    problem = pose_state_space(options, *arguments)
    after = resume(problem._replace(max_cycles=3), before.start, 0)
    assert len(after.history["objective"]) == 3
    assert error(after, problem) < 2.0 * error(before, first) + 0.01


def error(learned, problem):
    """Root mean square of the outputs that a problem has."""
    network = learned.fitted.network
    data = with_whole_steps(problem.data).select_inputs(network.units[0])
    return np.sqrt(data.squared_errors(network) / data.counts)


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
