"""What a fit squares: the errors one step ahead, or those of a free run.

Both kinds of data give a network's squared errors, their gradient, and blocks of the
Jacobian; the solvers know no more of them than that.
"""

from typing import NamedTuple

import numpy as np

from ..kernels import layers as mlp
from ..kernels import trajectory
from ..network import column_index

# One block of the Jacobian; small enough to stay in the cache between its making and
# the product that consumes it.
BLOCK_BYTES = 4 * 2**20


def _arguments(network):
    return network.theta, network.sizes, network.activation


class Data(NamedTuple):
    """Inputs and outputs that do not depend on the network, one sample a column.

    XT : (n_features, n_samples), the inputs that the network reads
    YT : (n_outputs, n_samples)
    weights : (n_outputs,) inverse noise standard deviations up to a common factor
    """

    XT: np.ndarray
    YT: np.ndarray
    weights: np.ndarray

    @property
    def n_observations(self):
        return self.YT.size

    @property
    def counts(self):
        """Observations of each output."""
        return np.full(len(self.YT), self.YT.shape[1])

    def select_inputs(self, places):
        """The data of a network that reads only some of the inputs."""
        return self._replace(XT=np.ascontiguousarray(self.XT[places]))

    def take(self, rows):
        """Some of the samples."""
        return self._replace(
            XT=self.XT.take(rows, axis=1), YT=self.YT.take(rows, axis=1)
        )

    def squared_errors(self, network):
        """Squared error of each output, not weighted."""
        residual = mlp.forward(*_arguments(network), self.XT) - self.YT
        return np.einsum("ij,ij->i", residual, residual)

    def loss_gradient(self, network):
        """Half the weighted squared error and its gradient by all parameters."""
        return mlp.loss_gradient(*_arguments(network), self.weights, self.XT, self.YT)

    def ggn_diag(self, network):
        """``diag(J.T @ J)`` over all parameters."""
        return mlp.ggn_diag(*_arguments(network), self.weights, self.XT)

    def blocks(self, network, in_one):
        """Weighted residuals (m,) and Jacobian (n_kept, m), block after block."""
        column = column_index(network.keep)
        n_columns = int(np.count_nonzero(network.keep))
        n_outputs, n_samples = self.YT.shape
        block = n_samples
        if not in_one:
            block = max(64, BLOCK_BYTES // (8 * max(1, n_columns) * n_outputs))
        for start in range(0, n_samples, block):
            stop = min(start + block, n_samples)
            XT = self.XT if block >= n_samples else self.XT[:, start:stop].copy()
            out, JT = mlp.jacobian(
                *_arguments(network), column, n_columns, self.weights, XT
            )
            residual = (out - self.YT[:, start:stop]) * self.weights[:, None]
            yield residual.ravel(), JT.reshape(n_columns, -1)


class FreeRunData(NamedTuple):
    """Records that a network runs through, fed with its own past outputs.

    X : (n_rows, n_features) measured regressors, the inputs that the network reads
    Y : (n_rows, n_outputs), NaN where no error counts
    feedback : which of the regressors are past outputs
    origin : (n_rows,) row from which each row is simulated
    given : (n_rows,) bool, rows whose outputs are initial conditions
    initial : (n_rows, n_outputs) those outputs, elsewhere not read
    unknown : (n_rows, n_outputs) numbers the initial outputs to be estimated, else -1
    weights : (n_outputs,) inverse noise standard deviations up to a common factor
    """

    X: np.ndarray
    Y: np.ndarray
    feedback: trajectory.Feedback
    origin: np.ndarray
    given: np.ndarray
    initial: np.ndarray
    unknown: np.ndarray
    weights: np.ndarray

    @property
    def n_observations(self):
        return int(np.count_nonzero(np.isfinite(self.Y)))

    @property
    def counts(self):
        """Observations of each output."""
        return np.count_nonzero(np.isfinite(self.Y), axis=0)

    def select_inputs(self, places):
        """The data of a network that reads only some of the inputs."""
        feedback = self.feedback
        place = np.full(self.X.shape[1], -1, dtype=np.int64)
        place[places] = np.arange(np.size(places))
        fed = place[feedback.position] >= 0
        feedback = feedback._replace(
            position=place[feedback.position[fed]],
            **{
                name: getattr(feedback, name)[fed]
                for name in ("output", "lag", "slope", "offset")
            },
        )
        X = np.ascontiguousarray(self.X[:, places])
        return self._replace(X=X, feedback=feedback)

    def _records(self):
        return self.feedback, self.X, self.origin, self.given

    def path(self, network):
        """Outputs of the free run (n_rows, n_outputs), or None if it diverged."""
        path = self.initial.copy()
        if trajectory.run_path(*_arguments(network), *self._records(), path):
            return path
        return None

    def _residual(self, path):
        residual = path - self.Y
        residual[~np.isfinite(self.Y)] = 0.0
        return residual

    def squared_errors(self, network):
        """Squared error of each output, not weighted; infinite after a divergence."""
        path = self.path(network)
        if path is None:
            return np.full(self.Y.shape[1], np.inf)
        residual = self._residual(path)
        return np.einsum("ij,ij->j", residual, residual)

    def loss_gradient(self, network):
        """Half the weighted squared error and its gradient by all parameters."""
        path = self.path(network)
        if path is None:
            return np.inf, np.zeros_like(network.theta)
        residual = self._residual(path) * self.weights
        loss = 0.5 * float(np.sum(residual * residual))
        adjoint = residual * self.weights
        gradient = trajectory.path_gradient(
            *_arguments(network), *self._records(), path, adjoint
        )
        return loss, gradient

    def ggn_diag(self, network):
        """``diag(J.T @ J)`` over all parameters, zero where pruned."""
        diag = np.zeros_like(network.theta)
        for _, JT in self.blocks(network, False):
            diag[network.keep] += np.einsum("ij,ij->i", JT, JT)
        return diag

    def blocks(self, network, in_one):
        """Weighted residuals (m,) and Jacobian (n_kept, m), block after block."""
        n_kept = int(np.count_nonzero(network.keep))
        for rows, residual, S in self.sensitivities(network, in_one):
            residual = residual * self.weights
            if (self.weights != 1.0).any():
                S = S * np.tile(self.weights, len(rows))[:, None]
            measured = np.isfinite(residual)
            if measured.all():
                yield residual.ravel(), S[:, :n_kept].T
            else:
                yield residual[measured], S[measured.ravel(), :n_kept].T

    def sensitivities(self, network, in_one):
        """Blocks of rows: their indices, residuals, and derivatives of the path.

        The derivatives (m * n_outputs, n_kept + n_unknown) are a view of memory that
        the next block overwrites.
        """
        kept = np.flatnonzero(network.keep)
        n_rows, n_outputs = self.Y.shape
        n_columns = len(kept) + int(self.unknown.max(initial=-1)) + 1
        memory = int(self.feedback.lag.max(initial=0))
        block = n_rows
        if not in_one:
            block = BLOCK_BYTES // (8 * max(1, n_columns) * n_outputs)
            block = min(n_rows, max(64, memory, block))
        S = np.zeros(((memory + block) * n_outputs, n_columns))
        head = memory * n_outputs
        path = self.initial.copy()
        for start in range(0, n_rows, block):
            stop = min(start + block, n_rows)
            view = S[: head + (stop - start) * n_outputs]
            finite = trajectory.run_sensitivities(
                *_arguments(network),
                kept,
                *self._records(),
                self.unknown,
                path,
                view,
                start,
                stop,
            )
            # a path may stay finite where its derivatives do not
            if not (finite and np.isfinite(view[head:].sum())):
                raise FloatingPointError("the free run diverged")
            rows = np.arange(start, stop)
            residual = path[start:stop] - self.Y[start:stop]
            yield rows, residual, view[head:]
            S[:head] = view[len(view) - head :]
