"""Runs of fitted networks with hidden states from states that first rows tell."""

import numpy as np
import pytest
import state_space_cases as cases

from skbayesnn.sparse_bayes.learning.restarts import run_start
from skbayesnn.sparse_bayes.learning.state_space_problem import pose_state_space
from skbayesnn.sparse_bayes.network import split_layers
from skbayesnn.sparse_bayes.parameters import learning_options
from skbayesnn.sparse_bayes.prediction import told_runs
from skbayesnn.sparse_bayes.state_space_network import SparseBayesStateSpaceRegressor


def fitted(lengths, gaps=()):
    """Problem and last state of a linear fit of two states to some sessions."""
    U, y, _, _ = cases.records(lengths, noise=0.05)
    Y = 2.0 + 3.0 * y[:, None]
    Y[list(gaps)] = np.nan
    model = SparseBayesStateSpaceRegressor(hidden_layer_sizes=(), max_cycles=20)
    options = learning_options(model._fixed_parameters(), 1)
    starts = np.cumsum([0, *lengths])
    problem = pose_state_space(options, 0.5 + 2.0 * U, Y, starts, 2, 5)
    return problem, run_start(problem, np.random.SeedSequence(0).spawn(1)[0]).state


def with_dynamics(state, factor):
    """The same with other derivatives of the next states by the states."""
    theta = state.network.theta.copy()
    ((weights, _),) = split_layers(theta, state.network.sizes, False)
    weights[:2, :2] *= factor
    return state._replace(network=state.network._replace(theta=theta))


@pytest.mark.parametrize("gaps", [(), (0, 3, 70, 85)])
def test_the_system_itself_predicts(gaps):
    assert told_runs.predicts(*fitted((60, 30, 40), gaps))


@pytest.mark.parametrize("factor", [1.25, 3.0])
def test_unstable_dynamics_do_not(factor):
    """Whether the runs stay finite or not."""
    problem, state = fitted((60, 30, 40))
    unstable = with_dynamics(state, factor)
    assert not told_runs.predicts(problem, unstable)


def test_each_session_counts_behind_the_rows_that_tell_its_state():
    problem, state = fitted((60, 30, 40))
    network = told_runs.trained_states(
        cases.fitted(state.network).fitted._replace(scaling=problem.scaling),
        problem.data.run,
    )
    sums = [
        told_runs._squares(network, problem.data, *rows)
        for rows in told_runs._sessions(problem.data.run)
    ]
    assert len(sums) == 3
    # a row before each session holds its start
    rows = [slice(9, 61), slice(70, 92), slice(101, 133)]
    expected = [np.sum(problem.data.Y[some] ** 2) for some in rows]
    np.testing.assert_allclose([of_mean for _, of_mean in sums], expected, rtol=1e-12)
    noise = 0.05 / np.std(cases.records((60, 30, 40), noise=0.05)[1])
    for (of_run, _), some in zip(sums, rows, strict=True):
        assert of_run < 2.0 * noise**2 * (some.stop - some.start)


def test_of_many_sessions_some_are_tried():
    problem, state = fitted((12,) * 40)
    sessions = list(told_runs._sessions(problem.data.run))
    assert len(sessions) == told_runs.MOST_SESSIONS
    assert sessions[0] == (1, 13) and sessions[-1] == (39 * 13 + 1, 40 * 13)
    assert told_runs.predicts(problem, state)


def test_nothing_speaks_against_a_network_of_too_short_sessions():
    problem, state = fitted((8, 7, 8, 8, 6))
    assert told_runs.predicts(problem, with_dynamics(state, 3.0))
