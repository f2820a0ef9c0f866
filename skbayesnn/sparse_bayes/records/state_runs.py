"""Training data along the runs of a state-space network.

The features of the network are its states, the inputs, and one indicator per session.
In front of each session stands a row whose state and inputs are 0 and whose indicator
is 1: what the network says there is the state at the start of the session. So initial
states are weights like all others, with a prior, a posterior, and sensitivities.
"""

from typing import NamedTuple

import numpy as np

from ..kernels.state_recursion import StateRun, run_state_sensitivities, run_states
from ..scaling import DIVERGENCE_LIMIT
from .residuals import root_weights

# States have no unit of their own; this is far from all that a stable run has.
STATE_LIMIT = 100.0 * DIVERGENCE_LIMIT


class StateRunData(NamedTuple):
    """Records that a state-space network runs through; a `residuals.FitData`.

    It has no `loss_gradient` and no `ggn_diag`: only Levenberg-Marquardt is offered.

    run : the records as the kernels take them
    Y : (n_rows, n_outputs), NaN where no error counts
    weights : (n_outputs,) inverse noise standard deviations up to a common factor
    observation_weights : (n_rows, n_outputs), or None for ones
    """

    run: StateRun
    Y: np.ndarray
    weights: np.ndarray
    observation_weights: np.ndarray | None = None

    output_axis = 1

    @property
    def sample_weight(self):
        """Every row counts once."""
        return None

    @property
    def n_observations(self):
        return int(np.count_nonzero(np.isfinite(self.Y)))

    @property
    def counts(self):
        return np.count_nonzero(np.isfinite(self.Y), axis=0)

    def errors_are_linear(self, network):
        return False

    def select_inputs(self, places):
        return self._replace(run=select_features(self.run, places))

    def with_observation_weights(self, observation_weights):
        return self._replace(observation_weights=observation_weights)

    def with_weights(self, weights):
        return self._replace(weights=weights)

    def _errors(self, network):
        """Errors where outputs count, elsewhere NaN; None after a divergence."""
        _, outputs = run_states(network.layers, self.run, self.Y.shape[1])
        return None if np.isnan(outputs).any() else outputs - self.Y

    def residuals(self, network):
        errors = self._errors(network)
        if errors is None:
            return np.where(np.isfinite(self.Y), np.inf, np.nan)
        return errors * self.weights

    def squared_errors(self, network):
        errors = self._errors(network)
        if errors is None:
            return np.full(self.Y.shape[1], np.inf)
        errors[np.isnan(errors)] = 0.0
        if self.observation_weights is not None:
            errors *= np.sqrt(self.observation_weights)
        return np.einsum("ij,ij->j", errors, errors)

    def blocks(self, network, in_one):
        """One block in any case: the sensitivities of all rows are at hand."""
        kept = np.flatnonzero(network.keep)
        n_outputs = self.Y.shape[1]
        _, outputs, S = run_state_sensitivities(
            network.layers, self.run, n_outputs, kept
        )
        # a run may stay finite where its derivatives do not
        if np.isnan(outputs).any() or not np.isfinite(S.sum()):
            raise FloatingPointError("the run diverged")
        root = np.broadcast_to(
            root_weights(self.weights, self.observation_weights), self.Y.shape
        )
        residual = ((outputs - self.Y) * root).ravel()
        if (root != 1.0).any():
            S *= root.reshape(-1, 1)
        measured = np.flatnonzero(np.isfinite(residual))
        if len(measured) and measured[-1] - measured[0] + 1 == len(measured):
            # as in one record without gaps: nothing is copied
            measured = slice(measured[0], measured[-1] + 1)
        yield residual[measured], S[measured].T


def input_columns(run):
    """Where the inputs stand among all features of a training record, as a slice."""
    n_states, n_sessions = run.initial.shape[1], int(np.count_nonzero(run.begin))
    return slice(n_states, run.X.shape[1] - n_sessions)


def select_features(run, places):
    """The run of a network that reads only some of the features."""
    X = np.ascontiguousarray(run.X[:, places])
    return run._replace(X=X, state=run.state[places])


def without_gaps(U, Y, starts):
    """Records without the rows whose inputs are missing: a new one begins behind them.

    A record of a single row tells nothing of the next states.
    """
    missing = ~np.isfinite(U).all(axis=1)
    if missing.any() or np.diff(starts).min() < 2:
        gaps = np.flatnonzero(missing)
        edges = np.unique(np.concatenate([starts, gaps, gaps + 1]))
        lengths = np.diff(edges)
        kept = ~missing[edges[:-1]] & (lengths >= 2)
        rows = np.repeat(kept, lengths)
        U, Y, starts = U[rows], Y[rows], np.concatenate([[0], np.cumsum(lengths[kept])])
    if not np.isfinite(Y).any(axis=0).all():
        raise ValueError(
            "y must hold at least one value of every output in two rows one behind the "
            "other whose inputs are not missing."
        )
    return U, Y, starts


def lay_out_for_fit(U, Y, starts, n_states, weights, step=1.0, n_levels=0):
    """`StateRunData` of scaled inputs and outputs, with a row before each session.

    States go a part ``step`` of the way to where the network sends them; to the first
    ``n_levels`` it says what is added. Indicators are larger by the inverse of the
    step: their weights say where sessions begin for every step.
    """
    n_inputs, n_sessions = U.shape[1], len(starts) - 1
    before = starts[:-1]
    U, Y = np.insert(U, before, 0.0, axis=0), np.insert(Y, before, np.nan, axis=0)
    begin = np.zeros(len(U), dtype=bool)
    begin[before + np.arange(n_sessions)] = True
    X = np.zeros((len(U), n_states + n_inputs + n_sessions))
    X[:, n_states : n_states + n_inputs] = U
    X[begin, n_states + n_inputs :] = np.eye(n_sessions) / step
    run = make_run(X, begin, np.zeros((len(U), n_states)))
    held = np.full(n_states, 1.0 - step)
    held[:n_levels] = 1.0
    return StateRunData(run._replace(held=held, step=float(step)), Y, weights)


def lay_out_for_prediction(U, first, initial, n_features):
    """`StateRun` of scaled inputs whose records begin in the rows ``first``.

    ``initial`` (n_records, n_states) holds the states there.
    """
    n_states, n_inputs = initial.shape[1], U.shape[1]
    X = np.zeros((len(U), n_features))
    X[:, n_states : n_states + n_inputs] = U
    begin, states = np.zeros(len(U), dtype=bool), np.zeros((len(U), n_states))
    begin[first] = True
    states[first] = initial
    return make_run(X, begin, states)


def make_run(X, begin, initial):
    """`StateRun` through all features, the states first."""
    n_states = initial.shape[1]
    state = np.full(X.shape[1], -1, dtype=np.int64)
    state[:n_states] = np.arange(n_states)
    limits, held = (STATE_LIMIT, DIVERGENCE_LIMIT), np.zeros(n_states)
    return StateRun(X, state, begin, initial, limits, held, 1.0)
