"""Filters of state-space networks that go from row to row, and resume where they were.

What is known of the past is the mean and the covariance of the states: they are all
that a filter carries.
"""

from typing import NamedTuple

import numpy as np

from ..kernels.state_filter import go_on, make_row_filter, predict_row, update_row
from .ensemble import combine
from .forecast import Forecast
from .initial_states import lay_out
from .state_forecast import belief_after


class StateEstimate(NamedTuple):
    """What a model with hidden states knows of the row that comes next.

    Parameters
    ----------
    inputs : ndarray of shape (1, n_inputs)
        Inputs of the last row, in the user's units; NaN before the first.
    means : ndarray of shape (n_members, n_states)
        Estimated states of each network of the model, in its own basis; NaN behind a
        missing input, and where it diverged.
    covariances : ndarray of shape (n_members, n_states, n_states)
        Their covariances.
    diverged : ndarray of bool of shape (n_members,)
        Networks that have left the plausible range, and predict no more.

    Examples
    --------
    >>> from skbayesnn import SparseBayesStateSpaceRegressor
    >>> from skbayesnn.datasets import make_coupled_drives
    >>> u, y = make_coupled_drives(200, return_X_y=True, random_state=0)
    >>> model = SparseBayesStateSpaceRegressor(
    ...     2, hidden_layer_sizes=2, n_restarts=1, random_state=0
    ... ).fit(u, y)
    >>> first, state = model.predict(u[:100], y_init=y[:50], return_state=True)
    >>> state.means.shape, state.covariances.shape
    ((1, 2), (1, 2, 2))
    >>> rest = model.predict(u[100:], state=state)  # continues there
    """

    inputs: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    diverged: np.ndarray


def estimate_after(ensemble, U, Y):
    """The `StateEstimate` behind rows of one session, in the user's units."""
    beliefs = [belief_after(member, U, Y) for member in ensemble.members]
    means, covariances = (np.array(parts) for parts in zip(*beliefs, strict=True))
    missing = len(U) > 0 and not np.isfinite(U[-1]).all()
    lost = np.isnan(means).any(axis=1)
    last = U[-1:].copy() if len(U) else np.full((1, U.shape[1]), np.nan)
    return StateEstimate(last, means, covariances, lost & (not missing))


def estimate_shapes(ensemble):
    """Shapes of the fields of a `StateEstimate`."""
    n_members, n_states = len(ensemble.members), ensemble.members[0].n_states
    return (
        (1, ensemble.n_inputs),
        (n_members, n_states),
        (n_members, n_states, n_states),
        (n_members,),
    )


class _Member:
    """The filter of one network; see `RowFilter`."""

    def __init__(self, network):
        self._network = network
        self._make()

    def _make(self):
        network = self._network
        fitted, n_inputs = network.fitted, network.n_inputs
        used = fitted.network.units[0]
        is_input = (used >= network.n_states) & (used < network.n_states + n_inputs)
        self._places = np.flatnonzero(is_input)
        self._numbers = used[is_input] - network.n_states
        self._offset = fitted.scaling.x_offset[used[is_input]]
        self._scale = fitted.scaling.x_scale[used[is_input]]
        nothing = np.zeros((0, network.n_states))
        run = lay_out(network, np.zeros((1, n_inputs)), [], nothing)
        self._filter = make_row_filter(fitted.network.layers, run, network.noise)
        self.begun = False
        self.diverged = False
        # what was known of the row predicted last before its outputs, and these
        self._predicted = self._measured = None

    def __getstate__(self):
        state = self.belief(), self.begun, self.diverged, self._filter.run.X.copy()
        told = self._predicted, self._measured
        return {"network": self._network, "state": state, "told": told}

    def __setstate__(self, state):
        self._network = state["network"]
        self._make()
        (mean, covariance), begun, diverged, X = state["state"]
        self.set(mean, covariance, diverged)
        self._filter.run.X[:] = X
        if begun:
            # as behind the step of this row, which may still be updated
            self._predict_again()
        self._predicted, self._measured = state["told"]

    def belief(self):
        """Mean and covariance of the row that comes next, or was predicted last."""
        belief = self._filter.belief
        return belief.mean.copy(), belief.covariance.copy()

    def belief_of_next(self):
        """Mean and covariance of the row that comes next."""
        mean, covariance = self.belief()
        if not self.begun:
            return mean, covariance
        go_on(self._filter)
        following = self.belief()
        self._filter.belief.mean[:] = mean
        self._filter.belief.covariance[:] = covariance
        return following

    def set(self, mean, covariance, diverged):
        self._filter.belief.mean[:] = mean
        self._filter.belief.covariance[:] = covariance
        self.diverged = bool(diverged)
        self.begun = False

    def step(self, u):
        """Outputs (n_outputs,) of the row with these inputs, in the user's units."""
        scaled = (u[self._numbers] - self._offset) / self._scale
        self._filter.run.X[0, self._places] = scaled
        self._predicted = None
        was_lost = np.isnan(self._filter.belief.mean[0])
        if not predict_row(self._filter, self.begun):
            self.diverged |= not (was_lost or np.isnan(u).any())
        self.begun = True
        scaling = self._network.fitted.scaling
        return self._filter.filtered.outputs[0] * scaling.y_scale + scaling.y_offset

    def _predict_again(self):
        """The row predicted last, from what is known of it now."""
        predict_row(self._filter, False)
        self.begun = True

    def update(self, y):
        """Take outputs (n_outputs,) of the row predicted last, in the user's units.

        Those that were taken of this row before are forgotten, but where ``y`` is NaN.
        """
        if self._predicted is None:
            self._predicted, self._measured = (*self.belief(), self.diverged), y
        else:
            self._measured = np.where(np.isnan(y), self._measured, y)
            self.set(*self._predicted)
            self._predict_again()
        self._take(self._measured)

    def _take(self, y):
        scaling, network = self._network.fitted.scaling, self._network
        if np.isnan(self._filter.belief.mean[0]):
            if not np.isfinite(y).all():
                return
            # nothing is known of it but where it was in the training record
            self.set(network.mean, network.covariance, False)
            if not predict_row(self._filter, False):
                return
            self.begun = True
        update_row(self._filter, (y - scaling.y_offset) / scaling.y_scale)


def run_by_steps(steps, X, out):
    """Step through the rows of ``X``, with the outputs in those of ``out``."""
    n_inputs = X.shape[1]
    for row, predicted in zip(X, out, strict=True):
        steps.memory[:n_inputs] = row
        steps.step()
        predicted[:] = steps.memory[n_inputs : n_inputs + out.shape[1]]


class StateSteps:
    """Steps of an ensemble of state-space networks, for a `StreamingPredictor`.

    ``memory`` holds the inputs of the row to predict, and the outputs predicted last or
    measured.
    """

    def __init__(self, ensemble):
        self._n_inputs = ensemble.n_inputs
        self._weights = ensemble.weights
        self._members = [_Member(member) for member in ensemble.members]
        self.memory = np.full(ensemble.n_inputs + ensemble.n_outputs, np.nan)

    def step(self):
        inputs = self.memory[: self._n_inputs]
        rows = [member.step(inputs) for member in self._members]
        outputs = rows[0]
        if len(rows) > 1:
            forecasts = [Forecast(row[None], None, 0) for row in rows]
            outputs = combine(forecasts, self._weights).mean[0]
        self.memory[self._n_inputs :] = outputs
        return float(outputs[0])

    def update(self):
        outputs = self.memory[self._n_inputs :].copy()
        for member in self._members:
            member.update(outputs)

    def run(self, X, out):
        run_by_steps(self, X, out)

    @property
    def estimate(self):
        """The `StateEstimate` of the row that comes next."""
        beliefs = [member.belief_of_next() for member in self._members]
        means, covariances = (np.array(parts) for parts in zip(*beliefs, strict=True))
        diverged = np.array([member.diverged for member in self._members])
        inputs = self.memory[None, : self._n_inputs].copy()
        return StateEstimate(inputs, means, covariances, diverged)

    @estimate.setter
    def estimate(self, state):
        parts = state.means, state.covariances, state.diverged
        for member, *belief in zip(self._members, *parts, strict=True):
            member.set(*belief)
        self.memory[: self._n_inputs] = state.inputs[0]
