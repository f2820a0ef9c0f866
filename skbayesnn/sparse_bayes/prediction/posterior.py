"""A fitted network with its scaling and its posterior: mean, spread and draws."""

from typing import NamedTuple

import numpy as np

from ..kernels import layers as mlp
from ..network import Network, column_index, expand

BLOCK_BYTES = 32 * 2**20


# A scaled output that is this many standard deviations of the training record away
# from its mean has left every range the model could know.
DIVERGENCE_LIMIT = 100.0


class Scaling(NamedTuple):
    """Affine maps between the user's units and those of the network.

    limit : magnitude of a scaled output from which on it has diverged
    """

    x_offset: np.ndarray
    x_scale: np.ndarray
    y_offset: np.ndarray
    y_scale: np.ndarray
    limit: float = DIVERGENCE_LIMIT


class FittedNetwork(NamedTuple):
    """Everything that a prediction needs.

    covariance : (n_kept, n_kept) posterior covariance of the kept parameters in the
        order of ``network.theta``, or (n_kept,) variances
    noise_std : (n_outputs,) of one step ahead, in units of the network's outputs
    free_run_std : (n_outputs,) of the errors of a free run where they are what the
        network was fitted to; None where they come from feeding back those of each step
    """

    network: Network
    scaling: Scaling
    covariance: np.ndarray
    noise_std: np.ndarray
    free_run_std: np.ndarray | None = None

    def inputs(self, X):
        """Standardised inputs that the network reads, as (n_inputs, n_samples)."""
        used = self.network.units[0]
        offset, scale = self.scaling.x_offset[used], self.scaling.x_scale[used]
        XT = np.empty((len(used), len(X)))
        np.subtract(X[:, used].T, offset[:, None], out=XT)
        XT /= scale[:, None]
        return XT

    def mean(self, X):
        """Predictions (n_samples, n_outputs) in the user's units."""
        return self.rescale(self._forward(self.network.theta, self.inputs(X)))

    def rescale(self, out):
        return (out * self.scaling.y_scale[:, None]).T + self.scaling.y_offset

    def _forward(self, theta, XT):
        return mlp.forward(theta, self.network.sizes, self.network.activation, XT)

    def std(self, X):
        """Standard deviations of new observations, by the delta method plus noise."""
        variance = np.empty((len(X), len(self.noise_std)))
        for rows, _, derivatives in self._linearized(X):
            flat = derivatives.reshape(len(derivatives), -1)
            spread = np.einsum(
                "ij,ij->j", flat, apply_covariance(self.covariance, flat)
            )
            variance[rows] = spread.reshape(derivatives.shape[1:]).T
        variance += self.noise_std**2
        return np.sqrt(variance) * self.scaling.y_scale

    def _linearized(self, X):
        """Rows, outputs and their derivatives by the kept weights, block by block."""
        network, n_kept = self.network, int(self.network.keep.sum())
        column = column_index(network.keep)
        weights = np.ones(len(self.noise_std))
        block = max(1, BLOCK_BYTES // (8 * max(1, n_kept) * len(weights)))
        for start in range(0, len(X), block):
            rows = slice(start, start + block)
            out, JT = mlp.jacobian(
                network.theta,
                network.sizes,
                network.activation,
                column,
                n_kept,
                weights,
                self.inputs(X[rows]),
            )
            yield rows, out, JT

    def draws(self, X, n_samples, rng):
        """Draws of new observations, shape (n_samples_X, n_outputs, n_samples).

        From the network linearised in its weights, whose posterior this is. Through
        the network itself, weights that the data determine only in their sum would
        leave its linear range and no longer cancel.
        """
        deviations = self.weight_deviations(n_samples, rng)
        out = rng.standard_normal((len(X), len(self.noise_std), n_samples))
        out *= self.noise_std[:, None]
        for rows, mean, derivatives in self._linearized(X):
            out[rows] += mean.T[:, :, None]
            out[rows] += np.tensordot(derivatives.T, deviations, (2, 1))
        out *= self.scaling.y_scale[:, None]
        out += self.scaling.y_offset[:, None]
        return out

    def weight_deviations(self, n_samples, rng):
        """Draws of the kept weights less their mode, (n_samples, n_kept)."""
        factor = covariance_factor(self.covariance)
        normal = rng.standard_normal((n_samples, len(factor)))
        return normal @ factor.T if factor.ndim == 2 else normal * factor

    def sensitivity(self, X):
        """Root mean squared derivative of the scaled outputs by each scaled input."""
        network = self.network
        relevance = np.zeros(len(self.scaling.x_offset))
        arguments = (network.theta, network.sizes, network.activation)
        square = mlp.input_sensitivity(*arguments, self.inputs(X))
        relevance[network.units[0]] = np.sqrt(square / len(self.noise_std))
        return relevance

    def unscaled_layers(self):
        """Weights and biases of the full network in the user's units."""
        coefs, intercepts = expand(self.network, self.network.theta)
        scaling = self.scaling
        intercepts[0] = intercepts[0] - (scaling.x_offset / scaling.x_scale) @ coefs[0]
        coefs[0] = coefs[0] / scaling.x_scale[:, None]
        coefs[-1] = coefs[-1] * scaling.y_scale
        intercepts[-1] = intercepts[-1] * scaling.y_scale + scaling.y_offset
        return coefs, intercepts


def apply_covariance(covariance, columns):
    """``covariance @ columns``, for a matrix or for its diagonal."""
    if covariance.ndim == 2:
        return covariance @ columns
    return covariance[:, None] * columns


def covariance_factor(covariance):
    """A matrix (or its diagonal) whose square is the covariance.

    By eigenvalues: rounding may leave a direction at a tiny negative variance.
    """
    if covariance.ndim == 1:
        return np.sqrt(covariance)
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.clip(values, 0.0, None))
