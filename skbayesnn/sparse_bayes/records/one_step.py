"""Training data one step ahead: samples that do not depend on the network."""

from typing import NamedTuple

import numpy as np

from ..kernels import layers as mlp
from . import residuals
from .residuals import root_weights


class OneStepData(NamedTuple):
    """Inputs and outputs, one sample per column; implements `residuals.FitData`.

    XT : (n_features, n_samples), the inputs that the network reads
    YT : (n_outputs, n_samples)
    weights : (n_outputs,) inverse noise standard deviations up to a common factor
    observation_weights : (n_outputs, n_samples), or None for ones
    sample_weight : (n_samples,) how many times each sample counts, or None for once
    """

    XT: np.ndarray
    YT: np.ndarray
    weights: np.ndarray
    observation_weights: np.ndarray | None = None
    sample_weight: np.ndarray | None = None

    output_axis = 0

    @property
    def n_observations(self):
        if self.sample_weight is None:
            return self.YT.size
        return len(self.YT) * float(self.sample_weight.sum())

    @property
    def counts(self):
        if self.sample_weight is None:
            return np.full(len(self.YT), self.YT.shape[1])
        return np.full(len(self.YT), self.sample_weight.sum())

    def errors_are_linear(self, network):
        return network.linear

    def select_inputs(self, places):
        return self._replace(XT=np.ascontiguousarray(self.XT[places]))

    def with_observation_weights(self, observation_weights):
        return self._replace(observation_weights=observation_weights)

    def with_weights(self, weights):
        return self._replace(weights=weights)

    def take(self, rows):
        """Some of the samples."""
        weights, counts = self.observation_weights, self.sample_weight
        return self._replace(
            XT=self.XT.take(rows, axis=1),
            YT=self.YT.take(rows, axis=1),
            observation_weights=None if weights is None else weights.take(rows, axis=1),
            sample_weight=None if counts is None else counts[rows],
        )

    @property
    def _factors(self):
        """Of the squared errors, (n_outputs or 1, n_samples), or None for ones."""
        if self.sample_weight is None:
            return self.observation_weights
        if self.observation_weights is None:
            return self.sample_weight[None]
        return self.observation_weights * self.sample_weight

    @property
    def _root_weights(self):
        """(n_outputs, n_samples), or (n_outputs, 1) where all samples have the same."""
        return root_weights(self.weights[:, None], self._factors)

    def _errors(self, network):
        return mlp.forward(network.layers, self.XT) - self.YT

    def residuals(self, network):
        return self._errors(network) * self.weights[:, None]

    def squared_errors(self, network):
        error = self._errors(network)
        if self._factors is None:
            return np.einsum("ij,ij->i", error, error)
        return np.sum(error * error * self._factors, axis=1)

    def loss_gradient(self, network):
        return mlp.loss_gradient(network.layers, self._root_weights, self.XT, self.YT)

    def ggn_diag(self, network):
        return mlp.ggn_diag(network.layers, self._root_weights, self.XT)

    def blocks(self, network, in_one):
        kept = np.flatnonzero(network.keep)
        n_outputs, n_samples = self.YT.shape
        block, root = n_samples, self._root_weights
        if not in_one:
            block = residuals.BLOCK_BYTES // (8 * max(1, len(kept)) * n_outputs)
            block = max(64, block)
        for start in range(0, n_samples, block):
            stop = min(start + block, n_samples)
            XT, weights = self.XT, root
            if block < n_samples:
                XT = XT[:, start:stop].copy()
                if root.shape[1] > 1:
                    weights = root[:, start:stop].copy()
            out, JT = mlp.jacobian(network.layers, kept, weights, XT)
            error = (out - self.YT[:, start:stop]) * weights
            yield error.ravel(), JT.reshape(len(kept), -1)
