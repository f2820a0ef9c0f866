"""A fitted network with its scaling and its posterior: mean, spread and draws."""

from typing import NamedTuple

import numpy as np

from .kernels import mlp
from .solvers.network import Network, column_index, expand

BLOCK_BYTES = 32 * 2**20


class Scaling(NamedTuple):
    """Affine maps between the user's units and those of the network."""

    x_offset: np.ndarray
    x_scale: np.ndarray
    y_offset: np.ndarray
    y_scale: np.ndarray


class FittedNetwork(NamedTuple):
    """Everything that a prediction needs.

    covariance : (n_kept, n_kept) posterior covariance of the kept parameters in the
        order of ``network.theta``, or (n_kept,) variances
    noise_std : (n_outputs,) in units of the network's outputs
    """

    network: Network
    scaling: Scaling
    covariance: np.ndarray
    noise_std: np.ndarray

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
        network, n_kept = self.network, int(self.network.keep.sum())
        column = column_index(network.keep)
        weights = np.ones(len(self.noise_std))
        block = max(1, BLOCK_BYTES // (8 * max(1, n_kept) * len(weights)))
        variance = np.empty((len(X), len(weights)))
        for start in range(0, len(X), block):
            rows = slice(start, start + block)
            _, JT = mlp.jacobian(
                network.theta,
                network.sizes,
                network.activation,
                column,
                n_kept,
                weights,
                self.inputs(X[rows]),
            )
            flat = JT.reshape(n_kept, -1)
            spread = np.einsum(
                "ij,ij->j", flat, apply_covariance(self.covariance, flat)
            )
            variance[rows] = spread.reshape(len(weights), -1).T
        variance += self.noise_std**2
        return np.sqrt(variance) * self.scaling.y_scale

    def draws(self, X, n_samples, rng):
        """Draws of new observations, shape (n_samples_X, n_outputs, n_samples)."""
        XT = self.inputs(X)
        out = np.empty((len(X), len(self.noise_std), n_samples))
        theta = np.zeros_like(self.network.theta)
        factor = covariance_factor(self.covariance)
        for k in range(n_samples):
            normal = rng.standard_normal(len(factor))
            step = factor @ normal if factor.ndim == 2 else factor * normal
            theta[self.network.keep] = self.network.theta[self.network.keep] + step
            drawn = self._forward(theta, XT)
            drawn += rng.standard_normal(drawn.shape) * self.noise_std[:, None]
            out[:, :, k] = self.rescale(drawn)
        return out

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
