"""Fitted state-space networks, as members of an ensemble."""

from typing import NamedTuple

import numpy as np

from ..._saved_state import saved_as
from ..fitted import FittedNetwork
from ..kernels.state_filter import FilterNoise
from ..kernels.state_recursion import run_states, states_by_parameters
from ..network import split_layers
from ..records.lags import is_complete
from ..records.state_runs import input_columns, select_features
from . import state_forecast
from .initial_states import N_CANDIDATES
from .step_noise import learn_noise, learn_spread

# Of the variance of the states, added to their covariance, which may be singular.
RIDGE = 1e-3
# Rows from which the state at the start of a record is estimated, for each state.
ROWS_PER_STATE = 4
# Rows that tell how the states follow the weights, and the smallest singular value of
# their states, beside the largest, that tells anything.
MOST_ROWS = 1_000
SMALLEST = 1e-3
# Derivatives of an unstable run may exceed all numbers; their squares do not here.
LARGEST = 1e150


@saved_as("StateSpaceNetwork")
class StateSpaceNetwork(NamedTuple):
    """A fitted network, and the states that it had in its training record.

    mean, covariance : (n_states,) and (n_states, n_states)
    visited : (n_candidates, n_states), some of these states
    followed : (n_states, n_kept, 1 + n_states), how they follow the weights that are
        kept: their derivatives are ``followed @ (1, x - mean)`` at the state x
    process, measurement : (n_states, n_states) and (n_outputs,) noise of both
        equations, see `step_noise`
    n_inputs : number of inputs
    spread : (2, n_outputs) variances that the first of them gives to outputs one step
        ahead and in a free run; None in files of earlier versions
    """

    fitted: FittedNetwork
    mean: np.ndarray
    covariance: np.ndarray
    visited: np.ndarray
    followed: np.ndarray
    process: np.ndarray
    measurement: np.ndarray
    n_inputs: int
    spread: np.ndarray | None = None

    @property
    def n_states(self):
        return len(self.mean)

    @property
    def reads_input(self):
        """Which inputs the states follow, (n_inputs,) bool: all."""
        return np.ones(self.n_inputs, dtype=bool)

    @property
    def n_levels(self):
        """Number of its first states that sum up differences of the outputs.

        A level is the only state that a weight of 1, which was not learned, holds.
        """
        network = self.fitted.network
        weights, kept = (
            split_layers(values, network.sizes, network.skip)[-1][0]
            for values in (network.theta, network.keep)
        )
        read = np.flatnonzero(network.units[0] < self.n_states)
        own = read, network.units[0][read]
        return int(np.count_nonzero((weights[own] == 1.0) & ~kept[own]))

    @property
    def noise(self):
        """`FilterNoise` of both equations."""
        nu = self.fitted.degrees_of_freedom
        return FilterNoise(self.process, self.measurement, nu)

    @property
    def n_outputs(self):
        return len(self.fitted.noise_std)

    @property
    def max_lag(self):
        """Rows whose outputs tell the state from which a prediction starts."""
        return rows_that_tell(self.n_states)

    @property
    def n_required(self):
        """Rows without which no run can start: it starts at the mean state then."""
        return 0

    def forecast(self, record, n_known, horizon, return_std, from_measured=False):
        """As `ensemble.forecast`."""
        arguments = record, n_known, horizon, return_std, from_measured
        return state_forecast.forecast(self, *arguments)

    def draws(self, record, n_known, horizon, n_samples, rng, from_measured=False):
        """As `draws.of_network`."""
        arguments = record, n_known, horizon, n_samples, rng, from_measured
        return state_forecast.draws(self, *arguments)

    def rows_to_score(self, U, Y, starts):
        """Measured rows behind those that tell the state."""
        behind = np.arange(len(Y)) - np.repeat(starts[:-1], np.diff(starts))
        known = is_complete(U, Y)
        return np.flatnonzero(known & (behind >= self.max_lag))


def rows_that_tell(n_states):
    """Number of rows from which a state is estimated."""
    return ROWS_PER_STATE * n_states


class TrainedStates(NamedTuple):
    """The states that a fitted network had in its training record.

    mean, covariance, visited : as in `StateSpaceNetwork`
    reached : rows of the record that its run reached
    centred : (n_reached, n_states), the states there, less their mean
    """

    fitted: FittedNetwork
    mean: np.ndarray
    covariance: np.ndarray
    visited: np.ndarray
    reached: np.ndarray
    centred: np.ndarray

    @property
    def n_states(self):
        return len(self.mean)


def make_network(fitted, data):
    """The network that was fitted to `StateRunData`, with the states it had there."""
    states, run = trained_states(fitted, data.run), data.run
    selected = select_features(run, fitted.network.units[0])
    some = _evenly(len(states.reached), MOST_ROWS)
    rows, centred = states.reached[some], states.centred[some]
    followed = _followed(fitted, selected, rows, centred)
    noise = learn_noise(fitted, selected, data.Y, states.covariance)
    inputs = input_columns(run)
    return StateSpaceNetwork(
        fitted,
        states.mean,
        states.covariance,
        states.visited,
        followed,
        noise.process,
        noise.measurement,
        inputs.stop - inputs.start,
        learn_spread(fitted, selected, data.Y, noise),
    )


def trained_states(fitted, run):
    """`TrainedStates` along the run of a training record."""
    network = fitted.network
    selected = select_features(run, network.units[0])
    every, _ = run_states(network.layers, selected, len(fitted.noise_std))
    # the row before each session holds no state
    reached = np.flatnonzero(~run.begin & np.isfinite(every).all(axis=1))
    states = every[reached]
    mean = states.mean(axis=0)
    centred = states - mean
    covariance = centred.T @ centred / len(states)
    spread = max(float(np.trace(covariance)) / len(covariance), 1e-6)
    covariance[np.diag_indices_from(covariance)] += RIDGE * spread
    visited = states[_evenly(len(states), N_CANDIDATES)]
    return TrainedStates(fitted, mean, covariance, visited, reached, centred)


def _evenly(n_rows, most):
    """Rows at even distances, at most so many."""
    return np.unique(np.linspace(0, n_rows - 1, most).astype(int))


def _followed(fitted, run, rows, centred):
    """``followed`` of `StateSpaceNetwork` by least squares.

    ``centred`` (n_rows, n_states) are the states of some rows, less their mean.
    """
    network = fitted.network
    kept = np.flatnonzero(network.keep)
    arguments = run, len(fitted.noise_std), kept, rows
    derivatives = states_by_parameters(network.layers, *arguments)
    n_rows, n_states, n_kept = derivatives.shape
    shape = n_states, n_kept, 1 + n_states
    if not (np.abs(derivatives) < LARGEST).all():
        return np.zeros(shape)
    regressors = np.column_stack([np.ones(n_rows), centred])
    flat = derivatives.reshape(n_rows, -1)
    found = np.linalg.lstsq(regressors, flat, rcond=SMALLEST)[0]
    return np.ascontiguousarray(found.T.reshape(shape))
