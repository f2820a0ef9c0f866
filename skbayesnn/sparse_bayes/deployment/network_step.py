"""One step of a network from the vector v = [x, u] of states and inputs, in NumPy.

In the user's units, with exact derivatives. All of it takes complex numbers, so that
derivatives of derivatives come from complex steps, without cancellation.
"""

from typing import NamedTuple

import numpy as np

from ..fitted import FittedNetwork
from ..kernels import layers
from ..kernels.activations import RELU, TANH
from ..network import split_layers

# of a complex step: its square vanishes beside 1
TINY = 1e-100


class NetworkStep(NamedTuple):
    """A network, and where its regressors stand in v.

    fitted : FittedNetwork
    near : (n_regressors,) int64, places of the regressors that pruning left
    far : (n_regressors,) int64, places of what is taken off them, -1 if nothing
    last : (n_outputs,) int64, places of what is added to the outputs, -1 if nothing
    """

    fitted: FittedNetwork
    near: np.ndarray
    far: np.ndarray
    last: np.ndarray

    def forward(self, v, theta=None):
        """Outputs (n_outputs,) of the next row."""
        *_, out = self._units(v, theta)
        scaling, added = self.fitted.scaling, self.last >= 0
        out = out * scaling.y_scale + scaling.y_offset
        out[added] += v[self.last[added]]
        return out

    def derivative(self, v, theta=None):
        """Derivatives (n_outputs, len(v)) of the outputs by v."""
        values = self._units(v, theta)
        blocks = self._blocks(theta)
        # by the scaled regressors, from the inputs on
        by_scaled = np.eye(len(self.near))
        for k, (weights, _) in enumerate(blocks[: len(values) - 1]):
            by_scaled = weights.T @ by_scaled
            if k < len(values) - 2:
                slopes = _slope(self.fitted.network.activation, values[k + 1])
                by_scaled = slopes[:, None] * by_scaled
        if self.fitted.network.skip:
            by_scaled = by_scaled + blocks[-1][0].T
        scaling, used = self.fitted.scaling, self.fitted.network.units[0]
        by_regressor = scaling.y_scale[:, None] * by_scaled / scaling.x_scale[used]
        J = np.zeros((len(scaling.y_scale), len(v)), dtype=by_regressor.dtype)
        # two regressors may share a place: a difference counts for two past outputs
        np.add.at(J.T, self.near, by_regressor.T)
        fed = self.far >= 0
        np.add.at(J.T, self.far[fed], -by_regressor.T[fed])
        (added,) = np.nonzero(self.last >= 0)
        J[added, self.last[added]] += 1.0
        return J

    def by_weights(self, v):
        """Derivatives (n_outputs, n_kept) of the outputs by the kept weights."""
        network, z = self.fitted.network, self._regressors(v)
        ones = np.ones((len(self.last), 1))
        kept = np.flatnonzero(network.keep)
        _, JT = layers.jacobian(network.layers, kept, ones, z[:, None].copy())
        return JT[:, :, 0].T * self.fitted.scaling.y_scale[:, None]

    def derivative_by_weights(self, v):
        """Those (n_outputs, len(v), n_kept) of `derivative` by the kept weights."""
        network = self.fitted.network
        kept = np.flatnonzero(network.keep)
        out = np.empty((len(self.last), len(v), len(kept)))
        theta = network.theta.astype(np.complex128)
        for p, place in enumerate(kept):
            theta[place] += 1j * TINY
            out[:, :, p] = self.derivative(v, theta).imag / TINY
            theta[place] = network.theta[place]
        return out

    def _regressors(self, v):
        """Scaled regressors that the network reads."""
        scaling, used = self.fitted.scaling, self.fitted.network.units[0]
        z, fed = v[self.near], self.far >= 0
        z[fed] -= v[self.far[fed]]
        return (z - scaling.x_offset[used]) / scaling.x_scale[used]

    def _blocks(self, theta):
        network = self.fitted.network
        theta = network.theta if theta is None else theta
        return split_layers(theta, network.sizes, network.skip)

    def _units(self, v, theta):
        """Values of the units of each layer, from the scaled regressors on."""
        network, blocks = self.fitted.network, self._blocks(theta)
        values = [self._regressors(v)]
        n_layers = len(network.sizes) - 1
        for k, (weights, biases) in enumerate(blocks[:n_layers]):
            h = values[-1] @ weights + biases
            values.append(h if k == n_layers - 1 else _activate(network.activation, h))
        if network.skip:
            values[-1] = values[-1] + values[0] @ blocks[-1][0]
        return values


def _activate(activation, h):
    if activation == TANH:
        return np.tanh(h)
    if activation == RELU:
        return np.where(h.real < 0.0, 0.0, h)
    return 0.5 + 0.5 * np.tanh(0.5 * h)


def _slope(activation, a):
    """Derivative of the activation, from its value."""
    if activation == TANH:
        return 1.0 - a * a
    if activation == RELU:
        return np.where(a.real > 0.0, 1.0, 0.0)
    return a * (1.0 - a)


def make_step(member, number, layout):
    """`NetworkStep` of one `LaggedNetwork` of an ensemble, its ``number`` there."""
    fitted, lags = member
    used = fitted.network.units[0]
    near, far = [], []
    for signal, lag in zip(lags.signal[used], lags.lag[used], strict=True):
        o = signal - lags.n_inputs
        if o < 0:
            near.append(layout.input_place(signal, lag))
            far.append(-1)
        else:
            near.append(layout.output_place(number, o, lag))
            back = layout.output_place(number, o, lag + 1)
            far.append(back if lags.difference else -1)
    last = [-1] * lags.n_outputs
    if lags.difference:
        # hidden states are no differences
        for o in range(layout.n_hidden, lags.n_outputs):
            last[o] = layout.output_place(number, o, 1)
    return NetworkStep(
        fitted, *(np.array(p, dtype=np.int64) for p in (near, far, last))
    )
