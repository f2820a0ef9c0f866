"""Whether a network with hidden states predicts the record that it was fitted to.

A fit learns the state at which each session starts along with the weights; a prediction
has but its first rows, which tell the state (`initial_states`). Where sessions are
short, a network may explain each of them by a start that no rows tell, and leave the
range of the outputs from where predictions start.
"""

import numpy as np

from ..fitted import FittedNetwork
from ..records.state_runs import input_columns
from .hidden_states import rows_that_tell, trained_states
from .initial_states import lay_out, run_outputs, start_of_scaled

# Sessions that are tried; more would only take time.
MOST_SESSIONS = 16


def predicts(problem, state):
    """Whether runs from told states err less than the mean of the record.

    ``problem`` is that of the fit and ``state`` the `cycle.State` in which it ended.
    Of each session the rows behind those that tell the state count; where there are
    none, nothing speaks against the network.
    """
    data = problem.stages[-1].data
    noise_std = state.likelihood.noise_std(state.noise, data.weights)
    fitted = FittedNetwork(state.network, problem.scaling, None, noise_std)
    network = trained_states(fitted, data.run)
    squares = np.array([_squares(network, data, *rows) for rows in _sessions(data.run)])
    of_runs, of_mean = squares.sum(axis=0)
    return not of_mean > 0.0 or bool(of_runs < of_mean)


def _sessions(run):
    """First and last row of some sessions, evenly spread."""
    before = np.flatnonzero(run.begin)
    edges = np.append(before, len(run.begin))
    some = np.linspace(0, len(before) - 1, min(len(before), MOST_SESSIONS)).astype(int)
    return zip(before[some] + 1, edges[some + 1], strict=True)


def _squares(network, data, first, last):
    """Sums of the squared errors of a run from a told state, and of the mean."""
    U, Y = data.run.X[first:last, input_columns(data.run)], data.Y[first:last]
    n_known = rows_that_tell(network.n_states)
    start = start_of_scaled(network, U[:n_known], Y[:n_known])
    run = lay_out(network, U, [0], start.state)
    outputs, Y = run_outputs(network, run)[n_known:], Y[n_known:]
    if np.isnan(outputs).any():
        return np.inf, np.nansum(Y**2)
    return np.nansum((outputs - Y) ** 2), np.nansum(Y**2)
