"""Training data along free runs: the network is fed with its own past outputs."""

from typing import NamedTuple

import numpy as np

from ..kernels import recursion
from . import residuals
from .residuals import root_weights


class FreeRunData(NamedTuple):
    """Records that a network runs through; implements `residuals.FitData`.

    X : (n_rows, n_features) measured regressors, the inputs that the network reads
    Y : (n_rows, n_outputs), NaN where no error counts
    feedback : which of the regressors are past outputs
    origin : (n_rows,) row from which each row is simulated
    given : (n_rows,) bool, rows whose outputs are initial conditions
    initial : (n_rows, n_outputs) those outputs, elsewhere not read
    unknown : (n_rows, n_outputs) numbers the initial outputs to be estimated, else -1
    weights : (n_outputs,) inverse noise standard deviations up to a common factor
    observation_weights : (n_rows, n_outputs), or None for ones
    before : see `recursion.FreeRun`
    """

    X: np.ndarray
    Y: np.ndarray
    feedback: recursion.Feedback
    origin: np.ndarray
    given: np.ndarray
    initial: np.ndarray
    unknown: np.ndarray
    weights: np.ndarray
    observation_weights: np.ndarray | None = None
    before: np.ndarray = np.zeros((0, 0))

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
        feedback = self.feedback
        place = np.full(self.X.shape[1], -1, dtype=np.int64)
        place[places] = np.arange(np.size(places))
        fed = place[feedback.position] >= 0
        feedback = recursion.make_feedback(
            position=place[feedback.position[fed]],
            **{
                name: getattr(feedback, name)[fed]
                for name in ("output", "lag", "slope", "offset")
            },
            limit=feedback.limit,
            drift=feedback.drift if len(feedback.drift) else None,
        )
        X = np.ascontiguousarray(self.X[:, places])
        return self._replace(X=X, feedback=feedback)

    @property
    def run(self):
        """The records as the kernels take them."""
        return recursion.FreeRun(
            self.feedback, self.X, self.origin, self.given, self.before
        )

    def path(self, network):
        """Outputs of the free run (n_rows, n_outputs), or None if it diverged."""
        path = self.initial.copy()
        if recursion.run_path(network.layers, self.run, path).any():
            return None
        return path

    def with_observation_weights(self, observation_weights):
        return self._replace(observation_weights=observation_weights)

    def with_weights(self, weights):
        return self._replace(weights=weights)

    def root_weights(self, rows):
        """Of some rows, (m, n_outputs), or (n_outputs,) where all have the same."""
        weights = self.observation_weights
        return root_weights(self.weights, None if weights is None else weights[rows])

    def _errors(self, path):
        """Zero where nothing counts."""
        error = path - self.Y
        error[~np.isfinite(self.Y)] = 0.0
        return error

    def residuals(self, network):
        path = self.path(network)
        if path is None:
            return np.where(np.isfinite(self.Y), np.inf, np.nan)
        return (path - self.Y) * self.weights

    def squared_errors(self, network):
        path = self.path(network)
        if path is None:
            return np.full(self.Y.shape[1], np.inf)
        error = self._errors(path)
        if self.observation_weights is not None:
            error *= np.sqrt(self.observation_weights)
        return np.einsum("ij,ij->j", error, error)

    def loss_gradient(self, network):
        path = self.path(network)
        if path is None:
            return np.inf, np.zeros_like(network.theta)
        root = self.root_weights(slice(None))
        residual = self._errors(path) * root
        loss = 0.5 * float(np.sum(residual * residual))
        adjoint = residual * root
        gradient = recursion.path_gradient(network.layers, self.run, path, adjoint)
        return loss, gradient

    def ggn_diag(self, network):
        diag = np.zeros_like(network.theta)
        for _, JT in self.blocks(network, False):
            diag[network.keep] += np.einsum("ij,ij->i", JT, JT)
        return diag

    def blocks(self, network, in_one):
        n_kept = int(np.count_nonzero(network.keep))
        for rows, residual, S in self.sensitivities(network, in_one):
            root = self.root_weights(rows)
            residual = residual * root
            if (root != 1.0).any():
                S = S * np.broadcast_to(root, residual.shape).reshape(-1, 1)
            measured = np.isfinite(residual)
            if measured.all():
                yield residual.ravel(), S[:, :n_kept].T
            else:
                yield residual[measured], S[measured.ravel(), :n_kept].T

    def sensitivities(self, network, in_one):
        """Blocks of rows: their indices, errors, and derivatives of the path.

        The derivatives (m * n_outputs, n_kept + n_unknown) are a view of memory that
        the next block overwrites.
        """
        kept = np.flatnonzero(network.keep)
        n_rows, n_outputs = self.Y.shape
        block = n_rows
        if not in_one:
            n_columns = len(kept) + int(self.unknown.max(initial=-1)) + 1
            block = residuals.BLOCK_BYTES // (8 * max(1, n_columns) * n_outputs)
        path = self.initial.copy()
        for rows, S, _, diverged in recursion.sensitivity_blocks(
            network.layers, self.run, kept, self.unknown, path, block
        ):
            # a path may stay finite where its derivatives do not
            if diverged.any() or not np.isfinite(S.sum()):
                raise FloatingPointError("the free run diverged")
            yield np.arange(rows.start, rows.stop), path[rows] - self.Y[rows], S
