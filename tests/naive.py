"""Slow references in plain NumPy, written from the formulas alone.

A network is a list of layers (W, b) with W of shape (n_in, n_out); its flat parameter
vector holds, layer after layer, W in C order and then b. A last pair without biases is
a skip connection, weights from the inputs to the outputs. Samples are rows here.
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
    if start < len(theta):
        layers.append((theta[start:].reshape(sizes[0], sizes[-1]), theta[:0]))
    return layers


def flatten(layers):
    """The inverse of `unflatten`."""
    return np.concatenate([np.ravel(part) for layer in layers for part in layer])


def without_skip(layers):
    """The layers alone, and the weights of the skip connection: none are zeros."""
    if len(layers[-1][1]):
        return layers, np.zeros((len(layers[0][0]), len(layers[-1][1])))
    return layers[:-1], layers[-1][0]


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
    layers, skip = without_skip(layers)
    a = X
    for number, (W, b) in enumerate(layers):
        a = a @ W + b
        if number < len(layers) - 1:
            a = activate(activation, a)
    return a + X @ skip


def jacobian(layers, activation, X, step=1e-30):
    """Derivatives (n_samples, n_outputs, n_parameters), by the complex step."""
    sizes = [len(layers[0][0]), *(len(b) for _, b in without_skip(layers)[0])]
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
    out = np.empty((len(X), layers[-1][0].shape[1], X.shape[1]))
    for i in range(X.shape[1]):
        moved = X.astype(complex)
        moved[:, i] += 1j * step
        out[:, :, i] = forward(layers, activation, moved).imag / step
    return out


def backpropagation(layers, activation, x, seed):
    """Derivatives of ``seed @ outputs`` by the parameters, for one sample ``x``."""
    has_skip = not len(layers[-1][1])
    layers, _ = without_skip(layers)
    units, sums = [x], []
    for number, (W, b) in enumerate(layers):
        h = np.array([W[:, j] @ units[-1] + b[j] for j in range(len(b))])
        sums.append(h)
        units.append(activate(activation, h) if number < len(layers) - 1 else h)
    delta = np.asarray(seed, dtype=float)
    parts = [np.ravel(np.outer(x, delta))] if has_skip else []
    for number in range(len(layers) - 1, -1, -1):
        W, _ = layers[number]
        parts = [np.ravel(np.outer(units[number], delta)), delta, *parts]
        if number:
            delta = (W @ delta) * slope(activation, sums[number - 1])
    return np.concatenate(parts)


def jacobian_backpropagation(layers, activation, X):
    """`jacobian` once more, sample by sample and output by output."""
    seeds = np.eye(layers[-1][0].shape[1])
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


def free_run_variance(model, U, Y, start, stop, covariance, noise, ceiling=np.inf):
    """Variances of the simulated rows, by one dense solve over all times.

    Around the path the deviations of all outputs at all times obey ``d = A d + J p +
    n``, with A strictly lower triangular, p the deviation of the parameters and n the
    noise. So ``d = (I - A)^-1 (J p + n)``; the columns of the inverse are the impulse
    responses.

    ``covariance`` is that of all parameters, ``noise`` the standard deviations of the
    scaled outputs, ``ceiling`` the largest variance that the noise may add to them.
    Returns the path as well.
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
    by_noise = np.diag(response @ np.diag(spread) @ response.T)
    by_noise = by_noise.reshape(n_times, n_outputs)
    V = np.full(Y.shape, np.nan)
    V[start:stop] = np.diag(S @ covariance @ S.T).reshape(n_times, n_outputs)
    V[start:stop] += np.minimum(by_noise, ceiling * model.y_scale**2)
    V[start:stop][~known] = np.nan
    return path, V, diverged


def variance_of_measured_errors(model, U, Y, start, stop, errors):
    """What errors of the rows before ``start`` add to the variances of a run.

    In the notation of `free_run_variance`, by ``d = A d + B e``, with e these errors,
    whose standard deviations are ``errors`` in scaled units.
    """
    path, _ = free_run(model, U, Y, start, stop)
    n_times, n_outputs = stop - start, Y.shape[1]
    n_before = max(lag for _, lag in model.regressors)
    A = np.zeros((n_times, n_outputs, n_before + n_times, n_outputs))
    for t in range(n_times):
        z = _regressors_of_row(model, U, path, start + t)[None]
        by_inputs = input_jacobian(model.layers, model.activation, z)[0]
        for i, (signal, lag) in enumerate(model.regressors):
            if signal >= U.shape[1]:
                gain = by_inputs[:, i] * model.y_scale / model.x_scale[i]
                A[t, :, n_before + t - lag, signal - U.shape[1]] += gain
    size, n_known = n_times * n_outputs, n_before * n_outputs
    B, A = np.split(A.reshape(size, n_known + size), [n_known], axis=1)
    response = np.linalg.solve(np.eye(size) - A, B)
    spread = np.tile((errors * model.y_scale) ** 2, n_before)
    return (response**2 @ spread).reshape(n_times, n_outputs)


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


def drawn_run(model, deviation, U, Y, noise, start, stop, linear):
    """Draw ``Y[start:stop]`` with weights that deviate from those of the model.

    The network is linear in the deviation, which comes in the order of `flatten`; with
    ``linear`` the whole path is, around that of the model. ``noise`` is added in every
    row. Returns the path and whether it diverged.
    """
    path, mode = Y.copy(), Y.copy()
    path[start:stop] = mode[start:stop] = np.nan
    for t in range(start, stop):
        z = _regressors_of_row(model, U, path, t)
        at = _regressors_of_row(model, U, mode, t) if linear else z
        if np.isnan(at).any():
            continue
        arguments = (model.layers, model.activation, at[None])
        out_of_mode = forward(*arguments)[0]
        out = out_of_mode + jacobian(*arguments)[0] @ deviation
        out = out + input_jacobian(*arguments)[0] @ (z - at)
        if not (np.abs(out) <= model.limit).all():
            return path, True
        mode[t] = out_of_mode * model.y_scale + model.y_offset
        path[t] = out * model.y_scale + model.y_offset + noise[t]
    return path, False


# Free runs in the scaled units of the network.


class FreeRun(NamedTuple):
    """Measured regressors (n_rows, n_features), and which of them are past outputs.

    feedback : list of (position, output, lag, slope, offset); from row ``origin[t]`` on
        the regressor is offset + slope * output, before it is the measured one
    given : rows whose outputs are initial conditions
    before, drift : for a network of differences: the outputs that were measured one
        row earlier, and a constant that is added in each row
    """

    feedback: list
    X: np.ndarray
    origin: np.ndarray
    given: np.ndarray
    limit: float
    before: np.ndarray | None = None
    drift: np.ndarray | None = None

    def output(self, path, t, row):
        """Outputs of a row of the run of row t, or those measured before it."""
        return path[row] if row >= self.origin[t] else self.before[self.origin[t]]


def regressors_of_run(run, path, t):
    x = run.X[t].astype(path.dtype)
    for position, output, lag, slope_, offset in run.feedback:
        if t - lag >= run.origin[t]:
            value = path[t - lag, output]
            if run.drift is not None:
                value = value - run.output(path, t, t - lag - 1)[output]
            x[position] = offset + slope_ * value
    return x


def run_path(layers, activation, run, initial):
    """Outputs (n_rows, n_outputs), and the first row that diverged or -1."""
    path = np.array(initial)
    for t in range(len(path)):
        if run.given[t]:
            continue
        x = regressors_of_run(run, path, t)
        out = forward(layers, activation, x)
        if not (np.abs(out) <= run.limit).all():
            return path, t
        path[t] = out
        if run.drift is not None:
            path[t] += run.output(path, t, t - 1) + run.drift
    return path, -1


def path_derivatives(theta, sizes, activation, run, initial, unknown, step=1e-30):
    """Derivatives of the path by all parameters, then by the unknown initial outputs.

    (n_rows, n_outputs, n_parameters + n_unknown), by complex steps through whole runs;
    ``unknown`` is a list of (row, output).
    """
    columns = []
    for number in range(len(theta) + len(unknown)):
        moved, start = theta.astype(complex), initial.astype(complex)
        if number < len(theta):
            moved[number] += 1j * step
        else:
            start[unknown[number - len(theta)]] += 1j * step
        path, _ = run_path(unflatten(moved, sizes), activation, run, start)
        columns.append(path.imag / step)
    return np.stack(columns, axis=-1)


def path_recursion(layers, activation, run, initial, unknown):
    """`path_derivatives` row after row, from those of the rows before."""
    path, _ = run_path(layers, activation, run, initial)
    n_parameters = len(flatten(layers))
    S = np.zeros((*path.shape, n_parameters + len(unknown)))
    for number, place in enumerate(unknown):
        S[place][n_parameters + number] = 1.0
    for t in np.flatnonzero(~run.given):
        x = regressors_of_run(run, path, t)[None]
        by_inputs = input_jacobian(layers, activation, x)[0]
        S[t, :, :n_parameters] = jacobian(layers, activation, x)[0]
        for position, output, lag, slope_, _ in run.feedback:
            if t - lag >= run.origin[t]:
                gain = by_inputs[:, position] * slope_
                S[t] += np.outer(gain, S[t - lag, output])
                if run.drift is not None and t - lag > run.origin[t]:
                    S[t] -= np.outer(gain, S[t - lag - 1, output])
        if run.drift is not None and t > run.origin[t]:
            S[t] += S[t - 1]
    return S


def state_space_run(layers, activation, U, initial, n_outputs, held=0.0, part=1.0):
    """Outputs (n_rows, n_outputs) of a network (x, u) -> (next x, y) from a state.

    The state keeps the fractions ``held`` of itself and gets a part of what the network
    says.
    """
    outputs, x = [], initial
    for u in U:
        out = forward(layers, activation, np.concatenate([x, u])[None])[0]
        x = part * out[: len(x)] + held * x
        outputs.append(out[len(x) :])
    return np.array(outputs).reshape(len(U), n_outputs)


def state_space_derivatives(
    theta, sizes, activation, U, initial, held=0.0, part=1.0, step=1e-30
):
    """Derivatives (n_rows * n_outputs, n_parameters + n_states) by complex steps.

    Of `state_space_run`; the last columns are those by the state at the start.
    """
    n_outputs = sizes[-1] - len(initial)
    point = np.concatenate([theta, initial]).astype(complex)
    columns = []
    for k in range(len(point)):
        moved = point.copy()
        moved[k] += 1j * step
        layers = unflatten(moved[: len(theta)], sizes)
        begin = moved[len(theta) :]
        run = state_space_run(layers, activation, U, begin, n_outputs, held, part)
        columns.append(np.imag(run).ravel() / step)
    return np.array(columns).T


def state_space_jacobian(layers, activation, x, u, step=1e-30):
    """Derivatives of (next x, y) by x, by the complex step."""
    columns = []
    for k in range(len(x)):
        moved = x.astype(complex)
        moved[k] += 1j * step
        out = forward(layers, activation, np.concatenate([moved, u])[None])[0]
        columns.append(np.imag(out) / step)
    return np.array(columns).T


def state_space_filter(layers, activation, U, Y, start, noise, horizon, S):
    """Extended Kalman filter, and its predictions so many steps ahead.

    ``start`` and ``noise`` are (mean, covariance) of the first row's state and
    (covariance, variances); ``S`` (n_rows, n_outputs, n_columns) errors of the outputs
    of a free run, as far as they do not come from the state at the start.

    Returns outputs (n_rows, n_outputs), NaN in the first horizon - 1 rows; their
    variances by the state; and what is left in them of the errors of the free run, and
    behind these of the state at the start.
    """
    (x, P), (Q, R), n = start, noise, len(start[0])
    S = np.concatenate([S, np.zeros((*Y.shape, n))], axis=2)
    D = np.hstack([np.zeros((n, S.shape[2] - n)), np.eye(n)])
    outputs, variance, left = (np.full(A.shape, np.nan) for A in (Y, Y, S))

    def linearized(x, u):
        J = state_space_jacobian(layers, activation, x, u)
        out = forward(layers, activation, np.concatenate([x, u])[None])[0]
        return out[:n], out[n:], J[:n], J[n:]

    for t in range(len(Y)):
        z, V, E = x, P, D
        for row in range(t, min(t + horizon, len(Y))):
            following, y, A, C = linearized(z, U[row])
            if row == t + horizon - 1:
                outputs[row], variance[row] = y, np.diag(C @ V @ C.T)
                left[row] = C @ E + S[row]
            z, V, E = following, A @ V @ A.T + Q, A @ E
        known = np.isfinite(Y[t])
        _, y, _, C = linearized(x, U[t])
        C = C[known]
        gain = P @ C.T @ np.linalg.inv(C @ P @ C.T + np.diag(R[known]))
        x = x + gain @ (Y[t] - y)[known]
        P, D = P - gain @ C @ P, D - gain @ (C @ D + S[t][known])
        x, _, A, _ = linearized(x, U[t])
        P, D = A @ P @ A.T + Q, A @ D
    return outputs, variance, left


def stretches(U, Y, regressors, sessions):
    """Gap-free stretches as (start, stop), and which rows follow a complete window."""
    max_lag = max(lag for _, lag in regressors)
    of_outputs = [lag for signal, lag in regressors if signal >= U.shape[1]]
    reach = max(of_outputs, default=0)
    found, windows, start = [], np.zeros(len(Y), dtype=bool), None
    for t in range(len(Y)):
        # a session is a run of equal ids
        inside = t >= max_lag and len(set(sessions[t - max_lag : t + 1])) == 1
        windows[t] = inside and np.isfinite(Y[t - reach : t]).all()
        known = inside and all(
            np.isfinite(U[t - lag, signal])
            for signal, lag in regressors
            if signal < U.shape[1]
        )
        if start is not None and not (known and sessions[t] == sessions[start]):
            found.append((start, t))
            start = None
        if start is None and known and windows[t]:
            start = t
    if start is not None:
        found.append((start, len(Y)))
    return found, windows


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


# Restricted Boltzmann machines. A model is (W, hidden, visible, c), W of shape
# (n_units, n_features), c the weights of the units; states are rows.

_MASK32 = 2**32 - 1
_MASK64 = 2**64 - 1


def row_key(seed, step, row):
    """The finaliser of SplitMix64 on the place of a row, an int of 64 bits."""
    place = step * (2**32 + 15) + row + 1
    z = (seed + 0x9E3779B97F4A7C15 * place) & _MASK64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK64
    return z ^ (z >> 31)


def mix(x):
    """A bijection of 32 bits."""
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & _MASK32
    x = ((x ^ (x >> 15)) * 0x846CA68B) & _MASK32
    return x ^ (x >> 16)


def uniform(key, unit):
    """An odd multiple of 2^-24 in (0, 1) from the two halves of a row's key."""
    low, high = key & _MASK32, key >> 32
    bits = mix((mix((unit & _MASK32) ^ low) + high) & _MASK32)
    return ((bits >> 9) * 2 + 1) / 2**24


def uniforms(shape, seed, step, first_row=0, first_unit=0):
    """The numbers of rows and units that follow each other."""
    n_rows, n_units = shape
    out = np.empty(shape)
    for i in range(n_rows):
        key = row_key(seed, step, first_row + i)
        out[i] = [uniform(key, first_unit + j) for j in range(n_units)]
    return out


def logistic(x):
    return np.exp(-np.logaddexp(0.0, -np.asarray(x, dtype=np.float64)))


def softplus(x):
    return np.logaddexp(0.0, np.asarray(x, dtype=np.float64))


def inputs(x, bias):
    """x + bias in float64."""
    return np.asarray(x, dtype=np.float64) + np.asarray(bias, dtype=np.float64)


def annealed_softplus(x, bias, before, now):
    """Sum over units of softplus(now x) - softplus(before x)."""
    value = inputs(x, bias)
    return (softplus(now * value) - softplus(before * value)).sum(axis=1)


def annealed_visible(x, base, bias, beta):
    """Inputs of the visible units between independent units and the model."""
    return (1.0 - beta) * np.asarray(base, dtype=np.float64) + beta * inputs(x, bias)


def split_weight(c):
    """Whole copies of a unit, and the rest."""
    copies = int(np.floor(c))
    return copies, c - copies


def fractional_draws(x, bias, unit_weights, beta, seed, step, first_row=0):
    """Probabilities and uniform numbers of the units of the standard proposal.

    For each unit a list of (what it sends down, p, u), one entry for each of its parts,
    p and u of shape (n_rows,).
    """
    value = beta * inputs(x, bias)
    n_rows, n_units = value.shape
    draws = []
    for j, c in enumerate(np.asarray(unit_weights, dtype=np.float64)):
        copies, rest = split_weight(c)
        parts = [(rest, logistic(rest * value[:, j]), j)]
        for copy in range(copies):
            parts.append((1.0, logistic(value[:, j]), j + n_units * (copy + 1)))
        draws.append(
            [
                (sent, p, uniforms((n_rows, 1), seed, step, first_row, unit)[:, 0])
                for sent, p, unit in parts
            ]
        )
    return draws


def fractional_excess(x, bias, unit_weights, beta):
    """Log probability of states minus that by the standard proposal, unnormalised."""
    value = beta * inputs(x, bias)
    total = np.zeros(len(value))
    for j, c in enumerate(np.asarray(unit_weights, dtype=np.float64)):
        copies, rest = split_weight(c)
        total += c * softplus(value[:, j])
        total -= copies * softplus(value[:, j]) + softplus(rest * value[:, j])
    return total


def all_states(n):
    """(2**n, n), the first unit fastest."""
    return np.array([[(k >> j) & 1 for j in range(n)] for k in range(2**n)], float)


def joint_log_probability(model, v, h):
    """Log of the unnormalised joint probability (1) of a standard RBM."""
    W, hidden, visible, _ = model
    return h @ W @ v + hidden @ h + visible @ v


def rbm_log_probability(model, V):
    """Log of the unnormalised probabilities (11), by products over units."""
    W, hidden, visible, c = model
    factors = (1.0 + np.exp(V @ W.T + hidden)) ** c
    return np.log(np.prod(factors, axis=1)) + V @ visible


def log_sum(values):
    top = np.max(values)
    return top + np.log(np.sum(np.exp(values - top)))


def rbm_log_partition(model):
    return log_sum(rbm_log_probability(model, all_states(len(model[2]))))


def rbm_distribution(model):
    """All visible states and their probabilities."""
    V = all_states(len(model[2]))
    logs = rbm_log_probability(model, V)
    return V, np.exp(logs - log_sum(logs))


def rbm_conditional(model, mask, values):
    """All visible states and their probabilities given the units of ``mask``."""
    V, p = rbm_distribution(model)
    p = np.where((V[:, mask] == values[mask]).all(axis=1), p, 0.0)
    return V, p / p.sum()


def rbm_mean_log_likelihood(model, V, weight_decay=0.0):
    """Of the rows of ``V``, less weight_decay / 2 times the sum of squared weights."""
    value = rbm_log_probability(model, V).mean() - rbm_log_partition(model)
    return value - 0.5 * weight_decay * np.sum(model[0] ** 2)


def rbm_moments(model, V, p):
    """E[h v'], E[h], E[v] over visible states with probabilities ``p``."""
    W, hidden, _, c = model
    H = c * logistic(V @ W.T + hidden)
    return np.einsum("n,ni,nj->ij", p, H, V), p @ H, p @ V


def centred_moments(model, V, p, hidden_offset, visible_offset):
    """E[(h - lambda)(v - mu)'], E[h], E[v]."""
    W, hidden, _, c = model
    H = c * logistic(V @ W.T + hidden)
    products = np.einsum("n,ni,nj->ij", p, H - hidden_offset, V - visible_offset)
    return products, p @ H, p @ V


def centred_gradient(data, model, hidden_offset, visible_offset):
    """Of the parameters as they are, from the centred moments of data and model.

    Algorithm 1 of Melchior, Fischer and Wiskott: the weights follow the difference of
    the centred products, the biases that of the means less what the change of the
    weights sends them at the offsets.
    """
    W = data[0] - model[0]
    hidden = data[1] - model[1] - W @ visible_offset
    visible = data[2] - model[2] - W.T @ hidden_offset
    return W, hidden, visible


def centred_update(data, model, hidden_offset, visible_offset):
    """The same from rows of (visible, hidden) values; weights by feature.

    The weights see the mean of (v - mu)(h - lambda)' over the rows of the data less
    that over the rows of the model.
    """
    W = np.zeros((len(visible_offset), len(hidden_offset)))
    for (V, H), sign in [(data, 1.0), (model, -1.0)]:
        for v, h in zip(V, H, strict=True):
            W += sign / len(V) * np.outer(v - visible_offset, h - hidden_offset)
    visible = data[0].mean(axis=0) - model[0].mean(axis=0) - W @ hidden_offset
    hidden = data[1].mean(axis=0) - model[1].mean(axis=0) - visible_offset @ W
    return W, visible, hidden


def rbm_reparametrise(model, W, hidden, visible, c):
    """The model with other arrays where they are given."""
    new = (W, hidden, visible, c)
    return tuple(a if b is None else b for a, b in zip(model, new, strict=True))


def pack_bits(V):
    """Value j of row i is bit j % 8 of byte (j // 8, i): 0 where it is 1, else 1."""
    n_rows, n_features = V.shape
    packed = np.full((-(-n_features // 8), n_rows), 255, dtype=np.uint8)
    for i in range(n_rows):
        for j in range(n_features):
            if V[i, j]:
                packed[j // 8, i] -= 2 ** (j % 8)
    return packed


def finite_differences(function, point, step=1e-5):
    """Central differences of a function of an array."""
    point = np.asarray(point, dtype=np.float64)
    slope = np.empty_like(point)
    for index in np.ndindex(point.shape):
        ahead, behind = point.copy(), point.copy()
        ahead[index] += step
        behind[index] -= step
        slope[index] = (function(ahead) - function(behind)) / (2.0 * step)
    return slope


def unit_objective(kind, data, model, p, unit, c, lam, data_offset, model_offset):
    """Penalised gain of a unit, with exact probabilities ``p`` of the states ``model``.

    ``unit`` is (w, b, s): weights, bias, and by which share of c w the visible biases
    go down. "linearized" is (9) with the other sign, times c.
    """
    w, b, s = unit[:-2], unit[-2], unit[-1]
    at_data, at_model = (
        c * (softplus(V @ w + b) - s * (V @ w + b)) for V in (data, model)
    )
    penalty = 0.5 * c * lam * (w @ w + b * b)
    if kind == "linearized":
        return at_data.mean() - p @ at_model - penalty
    value = (at_data + data_offset).mean()
    return value - np.log(p @ np.exp(at_model + model_offset)) - penalty


def effective_sample_size(ratio):
    return ratio.sum() ** 2 / (ratio**2).sum()


def standard_proposal(model):
    """The standard RBM (12): whole copies of each unit, and one of the scaled rest."""
    W, hidden, visible, c = model
    rows, biases = [], []
    for w, b, weight in zip(W, hidden, c, strict=True):
        copies, rest = split_weight(weight)
        rows += [w] * copies + [rest * w]
        biases += [b] * copies + [rest * b]
    rows = np.reshape(rows, (len(rows), W.shape[1]))
    return rows, np.array(biases), visible, np.ones(len(rows))


def gibbs_transition(model, mask=None, values=None):
    """T[v, v'] of a step of the chain, over all visible states.

    A Gibbs step of the standard proposal, accepted by Metropolis and Hastings; units of
    ``mask`` are set to ``values``. Of a standard model, each step is accepted.
    """
    W, hidden, visible, _ = standard = standard_proposal(model)
    V, H = all_states(W.shape[1]), all_states(W.shape[0])

    def bernoulli(states, p):
        return np.where(states == 1.0, p, 1.0 - p).prod(axis=-1)

    down = bernoulli(V[None], logistic(H @ W + visible)[:, None])
    if mask is not None:
        moved = np.where(mask, values, V) @ 2.0 ** np.arange(V.shape[1])
        merged = np.zeros_like(down)
        for column, target in enumerate(moved.astype(int)):
            merged[:, target] += down[:, column]
        down = merged
    up = bernoulli(H[None], logistic(V @ W.T + hidden)[:, None])
    T = up @ down
    excess = rbm_log_probability(model, V) - rbm_log_probability(standard, V)
    T = T * np.exp(np.minimum(excess[None] - excess[:, None], 0.0))
    T[np.diag_indices(len(T))] += 1.0 - T.sum(axis=1)
    return T
