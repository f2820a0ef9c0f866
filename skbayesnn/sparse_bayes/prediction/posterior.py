"""A fitted network's posterior at given rows: mean, standard deviation and draws."""

import numpy as np

from ..kernels import layers
from ..network import expand, split_layers

BLOCK_BYTES = 32 * 2**20


def inputs(fitted, X):
    """Standardised inputs that the network reads, as (n_inputs, n_samples)."""
    used = fitted.network.units[0]
    offset, scale = fitted.scaling.x_offset[used], fitted.scaling.x_scale[used]
    XT = np.empty((len(used), len(X)))
    np.subtract(X[:, used].T, offset[:, None], out=XT)
    XT /= scale[:, None]
    return XT


def mean(fitted, X):
    """Predictions (n_samples, n_outputs) in the user's units."""
    return _rescale(fitted, layers.forward(fitted.network.layers, inputs(fitted, X)))


def _rescale(fitted, out):
    return (out * fitted.scaling.y_scale[:, None]).T + fitted.scaling.y_offset


def std(fitted, X):
    """Standard deviations of new observations, by the delta method plus noise."""
    variance = np.empty((len(X), len(fitted.noise_std)))
    for rows, _, derivatives in _linearized(fitted, X):
        flat = derivatives.reshape(len(derivatives), -1)
        spread = np.einsum("ij,ij->j", flat, apply_covariance(fitted.covariance, flat))
        variance[rows] = spread.reshape(derivatives.shape[1:]).T
    variance += fitted.noise_std**2
    return np.sqrt(variance) * fitted.scaling.y_scale


def _linearized(fitted, X):
    """Rows, outputs and their derivatives by the kept weights, block by block."""
    network, kept = fitted.network, np.flatnonzero(fitted.network.keep)
    weights = np.ones((len(fitted.noise_std), 1))
    block = max(1, BLOCK_BYTES // (8 * max(1, len(kept)) * len(weights)))
    for start in range(0, len(X), block):
        rows = slice(start, start + block)
        XT = inputs(fitted, X[rows])
        out, JT = layers.jacobian(network.layers, kept, weights, XT)
        yield rows, out, JT


def draws(fitted, X, n_samples, rng):
    """Draws of new observations, shape (n_samples_X, n_outputs, n_samples).

    From the network linearised in its weights, whose posterior this is. Through
    the network itself, weights that the data determine only in their sum would
    leave its linear range and no longer cancel.
    """
    deviations = weight_deviations(fitted, n_samples, rng)
    out = unit_noise(fitted, (len(X), n_samples, len(fitted.noise_std)), rng)
    out *= fitted.noise_std
    out = np.ascontiguousarray(np.moveaxis(out, 1, 2))
    for rows, mean, derivatives in _linearized(fitted, X):
        out[rows] += mean.T[:, :, None]
        out[rows] += np.tensordot(derivatives.T, deviations, (2, 1))
    out *= fitted.scaling.y_scale[:, None]
    out += fitted.scaling.y_offset[:, None]
    return out


def unit_noise(fitted, shape, rng):
    """Draws of errors with variance 1; the outputs are along the last axis."""
    nu = fitted.degrees_of_freedom
    if nu == np.inf:
        drawn = rng.standard_normal(shape)
    else:
        drawn = rng.standard_t(nu, shape) * np.sqrt((nu - 2.0) / nu)
    return drawn if fitted.joint_root is None else drawn @ fitted.joint_root.T


def weight_deviations(fitted, n_samples, rng):
    """Draws of the kept weights less their mode, (n_samples, n_kept)."""
    factor = covariance_factor(fitted.covariance)
    normal = rng.standard_normal((n_samples, len(factor)))
    return normal @ factor.T if factor.ndim == 2 else normal * factor


def sensitivity(fitted, X, sample_weight=None):
    """Root mean squared derivative of the scaled outputs by each scaled input.

    ``sample_weight`` (n,) says how many times each row counts, None for once.
    """
    network = fitted.network
    relevance = np.zeros(len(fitted.scaling.x_offset))
    square = np.zeros(len(network.units[0]))
    counts = np.ones(len(X)) if sample_weight is None else sample_weight
    start = 0
    for derivatives in _input_derivatives(network, inputs(fitted, X)):
        stop = start + derivatives.shape[2]
        if sample_weight is None:
            square += np.einsum("ios,ios->i", derivatives, derivatives)
        else:
            part = counts[start:stop]
            square += np.einsum("ios,ios,s->i", derivatives, derivatives, part)
        start = stop
    square /= counts.sum() * len(fitted.noise_std)
    relevance[network.units[0]] = np.sqrt(square)
    return relevance


def _input_derivatives(network, XT):
    """Derivatives (n_inputs, n_outputs, n_samples) of the outputs, block by block.

    The derivatives by the biases of the first layer are those by what it adds up, so
    those by the inputs follow from them by the chain rule.
    """
    weights, _ = split_layers(network.theta, network.sizes, network.skip)[0]
    n_in, n_units, n_out = *weights.shape, network.sizes[-1]
    biases = n_in * n_units + np.arange(n_units)
    direct = np.zeros((n_in, n_out))
    if network.skip:
        direct = split_layers(network.theta, network.sizes, True)[-1][0]
    ones = np.ones((n_out, 1))
    block = max(1, BLOCK_BYTES // (8 * max(1, n_in + n_units) * n_out))
    for start in range(0, XT.shape[1], block):
        part = np.ascontiguousarray(XT[:, start : start + block])
        _, by_sums = layers.jacobian(network.layers, biases, ones, part)
        yield np.tensordot(weights, by_sums, 1) + direct[:, :, None]


def unscaled_layers(fitted):
    """Weights and biases of the full network in the user's units."""
    coefs, intercepts = expand(fitted.network, fitted.network.theta)
    scaling = fitted.scaling
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
    """The symmetric matrix (or its diagonal) whose square is the covariance.

    By eigenvalues: rounding may leave a direction at a tiny negative variance. It also
    decides on the signs of the vectors, on which this root does not depend.
    """
    if covariance.ndim == 1:
        return np.sqrt(covariance)
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(np.clip(values, 0.0, None))) @ vectors.T
