"""Slow references in plain NumPy, written from the formulas alone.

A network is a list of layers (W, b) with W of shape (n_in, n_out); its flat parameter
vector holds, layer after layer, W in C order and then b. Samples are rows here.
"""

from typing import NamedTuple

import numpy as np


def unflatten(theta, sizes):
    """Layers (W, b) of a flat parameter vector."""
    layers, start = [], 0
    for n_in, n_out in zip(sizes[:-1], sizes[1:], strict=True):
        W = theta[start : start + n_in * n_out].reshape(n_in, n_out)
        start += n_in * n_out
        layers.append((W, theta[start : start + n_out]))
        start += n_out
    return layers


def flatten(layers):
    """The inverse of `unflatten`."""
    return np.concatenate([np.ravel(part) for layer in layers for part in layer])


def activate(activation, h):
    """Hidden activation of real or complex values."""
    if activation == "tanh":
        return np.tanh(h)
    if activation == "relu":
        return np.where(np.real(h) > 0.0, h, 0.0)
    return 1.0 / (1.0 + np.exp(-h))


def slope(activation, h):
    """Derivative of the activation at the pre-activation ``h``."""
    if activation == "tanh":
        return 1.0 / np.cosh(h) ** 2
    if activation == "relu":
        return np.where(h > 0.0, 1.0, 0.0)
    return np.exp(-h) / (1.0 + np.exp(-h)) ** 2


def forward(layers, activation, X):
    """Outputs (n_samples, n_outputs)."""
    a = X
    for number, (W, b) in enumerate(layers):
        a = a @ W + b
        if number < len(layers) - 1:
            a = activate(activation, a)
    return a


def jacobian(layers, activation, X, step=1e-30):
    """Derivatives (n_samples, n_outputs, n_parameters), by the complex step."""
    sizes = [len(layers[0][0]), *(len(b) for _, b in layers)]
    theta = flatten(layers).astype(complex)
    columns = []
    for p in range(len(theta)):
        moved = theta.copy()
        moved[p] += 1j * step
        out = forward(unflatten(moved, sizes), activation, X)
        columns.append(out.imag / step)
    return np.stack(columns, axis=-1)


def input_jacobian(layers, activation, X, step=1e-30):
    """Derivatives (n_samples, n_outputs, n_features), by the complex step."""
    out = np.empty((len(X), len(layers[-1][1]), X.shape[1]))
    for i in range(X.shape[1]):
        moved = X.astype(complex)
        moved[:, i] += 1j * step
        out[:, :, i] = forward(layers, activation, moved).imag / step
    return out


def backpropagation(layers, activation, x, seed):
    """Derivatives of ``seed @ outputs`` by the parameters, for one sample ``x``."""
    units, sums = [x], []
    for number, (W, b) in enumerate(layers):
        h = np.array([W[:, j] @ units[-1] + b[j] for j in range(len(b))])
        sums.append(h)
        units.append(activate(activation, h) if number < len(layers) - 1 else h)
    delta = np.asarray(seed, dtype=float)
    parts = []
    for number in range(len(layers) - 1, -1, -1):
        W, _ = layers[number]
        parts = [np.ravel(np.outer(units[number], delta)), delta, *parts]
        if number:
            delta = (W @ delta) * slope(activation, sums[number - 1])
    return np.concatenate(parts)


def jacobian_backpropagation(layers, activation, X):
    """`jacobian` once more, sample by sample and output by output."""
    seeds = np.eye(len(layers[-1][1]))
    rows = [[backpropagation(layers, activation, x, s) for s in seeds] for x in X]
    return np.array(rows)


def ggn_diag(layers, activation, weights, X):
    """Diagonal of the Gauss-Newton matrix of the weighted outputs."""
    J = jacobian(layers, activation, X) * weights[:, None]
    return np.sum(J * J, axis=(0, 1))


def loss_gradient(layers, activation, weights, X, Y):
    """Half the weighted squared error and its gradient."""
    residual = (forward(layers, activation, X) - Y) * weights
    J = jacobian(layers, activation, X) * weights[:, None]
    return 0.5 * np.sum(residual**2), np.einsum("so,sop->p", residual, J)


def input_sensitivity(layers, activation, X):
    """Mean over samples of the squared input derivatives, summed over outputs."""
    return np.mean(np.sum(input_jacobian(layers, activation, X) ** 2, axis=1), axis=0)


# Records.  A regressor is a pair (signal, lag); signals count inputs, then outputs.


def lag_matrix(U, Y, regressors, sessions):
    """Complete rows and their regressors.

    A session is a run of equal ids.
    """
    rows, Z = [], []
    for t in range(len(Y)):
        begin = t
        while begin > 0 and sessions[begin - 1] == sessions[t]:
            begin -= 1
        if t - max(lag for _, lag in regressors) < begin:
            continue
        window = [*U[t], *Y[t]]
        z = []
        for signal, lag in regressors:
            past = [*U[t - lag], *Y[t - lag]]
            z.append(past[signal])
        # the present input matters only where it is a regressor
        if np.isfinite([*z, *window[U.shape[1] :]]).all():
            rows.append(t)
            Z.append(z)
    return np.array(rows, dtype=int), np.reshape(Z, (len(rows), len(regressors)))


class Recursion(NamedTuple):
    """A network on regressors, with the affine maps around it."""

    layers: list
    activation: str
    regressors: list
    x_offset: np.ndarray
    x_scale: np.ndarray
    y_offset: np.ndarray
    y_scale: np.ndarray
    limit: float


def _regressors_of_row(model, U, Y, t):
    z = []
    for signal, lag in model.regressors:
        z.append([*U[t - lag], *Y[t - lag]][signal])
    return (np.array(z) - model.x_offset) / model.x_scale


def free_run(model, U, Y, start, stop):
    """Outputs with ``Y[start:stop]`` simulated, and the row that diverged or -1."""
    Y = Y.copy()
    Y[start:stop] = np.nan
    for t in range(start, stop):
        z = _regressors_of_row(model, U, Y, t)
        if np.isnan(z).any():
            continue
        out = forward(model.layers, model.activation, z)
        if not (np.abs(out) <= model.limit).all():
            return Y, t
        Y[t] = out * model.y_scale + model.y_offset
    return Y, -1


def free_run_variance(model, U, Y, start, stop, covariance, noise):
    """Variances of the simulated rows, by one dense solve over all times.

    Around the path the deviations of all outputs at all times obey ``d = A d + J p +
    n``, with A strictly lower triangular, p the deviation of the parameters and n the
    noise. So ``d = (I - A)^-1 (J p + n)``; the columns of the inverse are the impulse
    responses.

    ``covariance`` is that of all parameters, ``noise`` the standard deviations of the
    scaled outputs. Returns the path as well.
    """
    path, diverged = free_run(model, U, Y, start, stop)
    n_times, n_outputs = stop - start, Y.shape[1]
    n_inputs, n_parameters = U.shape[1], len(covariance)
    A = np.zeros((n_times, n_outputs, n_times, n_outputs))
    J = np.zeros((n_times, n_outputs, n_parameters))
    known = np.isfinite(path[start:stop]).all(axis=1)
    for t in np.flatnonzero(known):
        z = _regressors_of_row(model, U, path, start + t)[None]
        by_weights = jacobian(model.layers, model.activation, z)[0]
        by_inputs = input_jacobian(model.layers, model.activation, z)[0]
        J[t] = by_weights * model.y_scale[:, None]
        for i, (signal, lag) in enumerate(model.regressors):
            if signal >= n_inputs and t - lag >= 0:
                gain = by_inputs[:, i] * model.y_scale / model.x_scale[i]
                A[t, :, t - lag, signal - n_inputs] += gain
    size = n_times * n_outputs
    response = np.linalg.inv(np.eye(size) - A.reshape(size, size))
    S = response @ J.reshape(size, n_parameters)
    spread = np.tile((noise * model.y_scale) ** 2, n_times)
    total = S @ covariance @ S.T + response @ np.diag(spread) @ response.T
    V = np.full(Y.shape, np.nan)
    V[start:stop] = np.diag(total).reshape(n_times, n_outputs)
    V[start:stop][~known] = np.nan
    return path, V, diverged


def predict_ahead(model, U, Y, horizon, start, stop, covariance=None, noise=None):
    """Rows from the first complete window on, ``horizon`` steps ahead.

    Returns predictions, variances (NaN without a covariance) and how many diverged.
    """
    max_lag = max((lag for _, lag in model.regressors), default=0)
    mean, variance = np.full(Y.shape, np.nan), np.full(Y.shape, np.nan)
    n_diverged = 0
    for t in range(start + max_lag, stop):
        origin = max(t - horizon + 1, start + max_lag)
        if covariance is None:
            path, diverged = free_run(model, U, Y, origin, t + 1)
        else:
            path, V, diverged = free_run_variance(
                model, U, Y, origin, t + 1, covariance, noise
            )
            variance[t] = V[t]
        mean[t] = path[t]
        n_diverged += diverged >= 0
    return mean, variance, n_diverged


# Evidence.


def logdet(matrix):
    sign, value = np.linalg.slogdet(matrix)
    assert sign > 0.0 or not len(matrix)
    return value


def posterior_covariance(H, variance):
    """``(H + diag(1 / variance))^-1``."""
    return np.linalg.inv(H + np.diag(1.0 / variance))


def evidence_objective(squared_error, H, w, variance, noise, weights, n_samples, lam):
    """The objective ``L`` of one parameter vector with its parts written out.

    H : J.T J over the noise variance, of the weighted outputs
    lam : list of (lambda, indices of parameters) whose determinant is taken together
    weights : of the outputs; the noise variance of output o is noise / weights[o]^2
    """
    value = squared_error / noise
    for weight in weights:
        value += n_samples * np.log(2.0 * np.pi * noise / weight**2)
    for strength, index in lam:
        if strength == 0.0:
            continue
        index = np.asarray(index)
        v = variance[index]
        part = H[np.ix_(index, index)] / strength + np.diag(1.0 / v)
        value += strength * (
            np.sum(w[index] ** 2 / v) + np.sum(np.log(v)) + logdet(part)
        )
    return value


def gaussian_log_density(y, covariance):
    """``log N(y; 0, covariance)``."""
    quadratic = y @ np.linalg.solve(covariance, y)
    return -0.5 * (quadratic + logdet(2.0 * np.pi * covariance))


def group_lasso(A, y, groups, strength, ridge, n_iter=20000):
    """Minimise ``|y - A w|^2 + 2 strength sum_g |w_g| + sum ridge w^2``.

    By proximal gradient with a fixed step; parameters outside all groups are not
    penalised by the norm.
    """
    w = np.zeros(A.shape[1])
    gram = A.T @ A + np.diag(ridge)
    rate = 1.0 / np.linalg.eigvalsh(gram)[-1]
    for _ in range(n_iter):
        w = w - rate * (gram @ w - A.T @ y)
        for group in groups:
            norm = np.linalg.norm(w[group])
            shrink = 0.0 if norm == 0.0 else max(0.0, 1.0 - rate * strength / norm)
            w[group] *= shrink
    return w
