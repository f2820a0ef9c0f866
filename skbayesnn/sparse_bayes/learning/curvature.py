r"""Gauss-Newton curvature of the squared error, in the form that fits.

With :math:`J` the derivatives of all outputs by the kept parameters and
:math:`\sigma^2` the noise variance, :math:`H = J^T J / \sigma^2`.  It is held as

- `Full`: the matrix :math:`J^T J`, gathered over blocks of samples,
- `Dual`: :math:`J` itself, where parameters outnumber observations; every solve is
  then done in the space of the observations,
- `Diagonal`: :math:`\mathrm{diag}(J^T J)` alone, by one backward pass an output.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, lapack, solve_triangular


class Full(NamedTuple):
    JTJ: np.ndarray


class Dual(NamedTuple):
    JT: np.ndarray


class Diagonal(NamedTuple):
    diag: np.ndarray


class Linearization(NamedTuple):
    """Weighted squared error, its half-gradient J.T r, and the curvature."""

    squared_error: float
    gradient: np.ndarray
    curvature: NamedTuple


def choose_form(curvature, n_parameters, n_observations):
    """The form of the curvature: ``Full`` or ``Dual``, whichever is smaller."""
    if curvature == "diag":
        return Diagonal
    return Full if n_parameters <= n_observations else Dual


def linearize(network, data, form):
    """Error, gradient and curvature at the weights of ``network``."""
    if form is Diagonal:
        return _linearize_diagonal(network, data)
    n_columns = int(np.count_nonzero(network.keep))
    squared, gradient = 0.0, np.zeros(n_columns)
    JTJ = np.zeros((n_columns, n_columns)) if form is Full else None
    for residual, JT in data.blocks(network, in_one=form is Dual):
        squared += float(residual @ residual)
        gradient += JT @ residual
        if form is Full:
            JTJ += JT @ JT.T
    curvature = Full(JTJ) if form is Full else Dual(JT)
    return Linearization(squared, gradient, curvature)


def _linearize_diagonal(network, data):
    diag = data.ggn_diag(network)
    return with_curvature(network, data, Diagonal(diag[network.keep]))


def with_curvature(network, data, curvature):
    """Error and gradient at the weights of ``network``, beside a known curvature."""
    loss, gradient = data.loss_gradient(network)
    return Linearization(2.0 * loss, gradient[network.keep], curvature)


def squared_error(network, data):
    """Weighted squared error over all outputs."""
    return float(data.squared_errors(network) @ data.weights**2)


def diagonal_of(curvature):
    """``diag(J.T @ J)`` of any form."""
    if isinstance(curvature, Diagonal):
        return curvature.diag
    if isinstance(curvature, Full):
        return np.diagonal(curvature.JTJ).copy()
    return np.einsum("ij,ij->i", curvature.JT, curvature.JT)


def restrict(curvature, index):
    """The curvature of some of the parameters, the others held fixed."""
    if isinstance(curvature, Full):
        return Full(curvature.JTJ[np.ix_(index, index)])
    if isinstance(curvature, Dual):
        return Dual(curvature.JT[index])
    return Diagonal(curvature.diag[index])


def _cholesky(matrix):
    """The lower factor of a symmetric matrix, in its memory."""
    # LAPACK's arrays are the transposed ones: nothing is copied
    factor, info = lapack.dpotrf(matrix.T, lower=1, clean=1, overwrite_a=1)
    if info != 0:
        raise LinAlgError("the curvature is not positive definite")
    return factor


def _solve(matrix, b):
    """The solution of a symmetric system, whose matrix is overwritten."""
    return lapack.dpotrs(_cholesky(matrix), b, lower=1)[0]


def _diagonal(matrix):
    """A view of the diagonal: what is added to it is added to the matrix."""
    return np.einsum("ii->i", matrix)


def _scaled_precision(curvature, variance, noise):
    """Cholesky factor of ``I + V^(1/2) H V^(1/2)``, V the prior variances.

    Scaled like this its eigenvalues are at least 1, however far apart the prior
    variances lie.
    """
    root = np.sqrt(variance)
    matrix = curvature.JTJ * root[:, None]
    matrix *= root / noise
    diagonal = _diagonal(matrix)
    # where a recursion is nearly unstable, rounding errors of J.T J exceed the prior
    rounding = np.finfo(np.float64).eps * len(matrix)
    diagonal += 1.0 + rounding * diagonal.max(initial=0.0)
    return root, _cholesky(matrix)


def _observation_covariance(curvature, variance, noise):
    """Cholesky factor of ``noise I + J V J.T``, the covariance of the observations."""
    scaled = curvature.JT * np.sqrt(variance)[:, None]
    matrix = scaled.T @ scaled
    diagonal = _diagonal(matrix)
    # without a prior the noise falls below the rounding errors of the product
    rounding = np.finfo(np.float64).eps * len(matrix)
    diagonal += noise + rounding * diagonal.max(initial=0.0)
    return _cholesky(matrix)


def log_determinant(curvature, variance, noise):
    r""":math:`\log|\Upsilon| + \log|H + \Upsilon^{-1}|`, the last terms of (10)."""
    if isinstance(curvature, Diagonal):
        return float(np.log1p(curvature.diag * variance / noise).sum())
    if isinstance(curvature, Full):
        _, factor = _scaled_precision(curvature, variance, noise)
        return 2.0 * _log_diagonal(factor)
    factor = _observation_covariance(curvature, variance, noise)
    return 2.0 * _log_diagonal(factor) - len(factor) * np.log(noise)


def well_determined(curvature, variance, noise):
    r"""How far the data determine each parameter, and the log-determinant.

    Returns
    -------
    gamma : ndarray of shape (n_parameters,)
        :math:`\gamma_i = 1 - C_{ii}/\upsilon_i` in [0, 1], with
        :math:`C = (\Upsilon^{-1} + H)^{-1}` of equation (11).  Equation (12) is
        :math:`\alpha_i = \gamma_i / \upsilon_i`.
    logdet : float
        As `log_determinant` gives it, at no further cost.
    """
    if isinstance(curvature, Diagonal):
        ratio = curvature.diag * variance / noise
        return ratio / (1.0 + ratio), float(np.log1p(ratio).sum())
    if isinstance(curvature, Full):
        _, factor = _scaled_precision(curvature, variance, noise)
        inverse, _ = lapack.dtrtri(factor, lower=1)
        gamma = 1.0 - np.einsum("ij,ij->j", inverse, inverse)
        return np.clip(gamma, 0.0, 1.0), 2.0 * _log_diagonal(factor)
    factor = _observation_covariance(curvature, variance, noise)
    half = solve_triangular(factor, curvature.JT.T, lower=True, check_finite=False)
    gamma = variance * np.einsum("ij,ij->j", half, half)
    logdet = 2.0 * _log_diagonal(factor) - len(factor) * np.log(noise)
    return np.clip(gamma, 0.0, 1.0), logdet


def _log_diagonal(factor):
    return float(np.log(np.diagonal(factor)).sum())


def posterior_covariance(curvature, variance, noise):
    """``C`` of equation (11): (n, n), or its diagonal (n,) for a `Diagonal`."""
    if isinstance(curvature, Diagonal):
        return variance / (1.0 + curvature.diag * variance / noise)
    if isinstance(curvature, Full):
        root, factor = _scaled_precision(curvature, variance, noise)
        inverse, _ = lapack.dpotri(factor, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        return inverse * root * root[:, None]
    factor = _observation_covariance(curvature, variance, noise)
    half = solve_triangular(
        factor, curvature.JT.T * variance, lower=True, check_finite=False
    )
    covariance = -(half.T @ half)
    diagonal = _diagonal(covariance)
    diagonal += variance
    return covariance


class FullSystem:
    """Solves ``(J.T J / noise + diag(precision) + damping D) x = b``.

    Marquardt's scaling: ``D`` is the diagonal of the undamped matrix.
    """

    def __init__(self, curvature, precision, noise):
        self.matrix = curvature.JTJ / noise
        diagonal = np.diagonal(self.matrix) + precision
        self.precision = precision
        # a parameter without influence and without prior stays where it is
        self.scale = np.maximum(diagonal, 1e-8 * max(diagonal.max(), 1e-300))

    def solve(self, b, damping):
        matrix = self.matrix.copy()
        diagonal = _diagonal(matrix)
        diagonal += self.precision + damping * self.scale
        return _solve(matrix, b)


class DualSystem:
    """The same in the space of observations, where that is smaller.

    Here ``D`` holds the prior precisions alone: then one Gram matrix,
    ``J diag(1 / precision) J.T``, serves every damping.
    """

    def __init__(self, curvature, precision, noise):
        floor = max(float(diagonal_of(curvature).max()) / noise, 1e-300) * 1e-8
        self.precision = np.maximum(precision, floor)
        self.JT, self.noise = curvature.JT, noise
        scaled = curvature.JT / np.sqrt(self.precision)[:, None]
        self.gram = scaled.T @ scaled

    def solve(self, b, damping):
        scaled = b / (self.precision * (1.0 + damping))
        matrix = self.gram / (1.0 + damping)
        diagonal = _diagonal(matrix)
        diagonal += self.noise
        inner = _solve(matrix, scaled @ self.JT)
        return scaled - (self.JT @ inner) / (self.precision * (1.0 + damping))


def damped_system(curvature, precision, noise):
    """A solver of the damped Newton equations; needs `Full` or `Dual`."""
    system = FullSystem if isinstance(curvature, Full) else DualSystem
    return system(curvature, precision, noise)
