r"""Initial outputs of a free run that were not measured, by least squares.

.. math:: \min_z \sum_t \|\hat y_t(z) - y_t\|^2 / \sigma^2
   + \sum_k \|z_{k+1} - z_k\|^2 / \delta^2

The second sum is a random walk whose steps are as large as those of the record; its
last step leads to the first measured output. It decides where the data do not.
"""

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

MAX_ITER = 10


def estimate_initial(network, data, noise, step_variance):
    """The data with initial outputs that lower the sum above; Gauss-Newton.

    Parameters
    ----------
    noise : float
        Variance of the weighted residuals.
    step_variance : (n_outputs,) array
        :math:`\\delta^2` of each output, in scaled units.
    """
    # what overflows is no descent, and not taken
    with np.errstate(over="ignore", invalid="ignore"):
        return _descend(network, data, noise, step_variance)


def _descend(network, data, noise, step_variance):
    precision, anchor = _walk(data, step_variance)
    frozen = network._replace(keep=np.zeros_like(network.keep))
    current = _value(frozen, data, noise, precision, anchor)
    for _ in range(MAX_ITER):
        if not np.isfinite(current):
            break
        step = _newton_step(frozen, data, noise, precision, anchor)
        if step is None:
            break
        trial, value = _shorten(frozen, data, step, current, noise, precision, anchor)
        if not value < current - 1e-6 * abs(current):
            return trial if value < current else data
        data, current = trial, value
    return data


def _shorten(network, data, step, current, noise, precision, anchor):
    """The longest of the step and its halves that descends."""
    for _ in range(6):
        trial = _move(data, step)
        value = _value(network, trial, noise, precision, anchor)
        if value < current:
            break
        step = 0.5 * step
    return trial, value


def _places(data):
    """Rows and outputs of the unknowns, in their order."""
    rows, outputs = np.nonzero(data.unknown >= 0)
    order = np.argsort(data.unknown[rows, outputs])
    return rows[order], outputs[order]


def _move(data, step):
    initial = data.initial.copy()
    initial[_places(data)] -= step
    return data._replace(initial=initial)


def _walk(data, step_variance):
    """Precision of the random walk over the unknowns, and its pull to what is known."""
    rows, outputs = _places(data)
    n = len(rows)
    number = {(r, o): k for k, (r, o) in enumerate(zip(rows, outputs, strict=True))}
    precision, anchor = np.zeros((n, n)), np.zeros(n)
    for (row, o), k in number.items():
        weight = 1.0 / step_variance[o]
        following = number.get((row + 1, o))
        if following is not None:
            precision[[k, following], [k, following]] += weight
            precision[[k, following], [following, k]] -= weight
        else:
            precision[k, k] += weight
            anchor[k] = weight * _next_known(data, row, o)
    return precision, anchor


def _next_known(data, row, o):
    """The first measured or given output after a row, the mean if there is none."""
    for later in range(row + 1, len(data.Y)):
        if data.origin[later] > row:
            # another session
            break
        if data.given[later] and data.unknown[later, o] < 0:
            return data.initial[later, o]
        if np.isfinite(data.Y[later, o]):
            return data.Y[later, o]
    return 0.0


def _value(network, data, noise, precision, anchor):
    z = data.initial[_places(data)]
    squared = float(data.squared_errors(network) @ data.weights**2)
    return squared / noise + float(z @ precision @ z - 2.0 * anchor @ z)


def _newton_step(network, data, noise, precision, anchor):
    z = data.initial[_places(data)]
    matrix, gradient = precision.copy(), precision @ z - anchor
    for rows, residual, S in data.sensitivities(network, False):
        missing, root = ~np.isfinite(residual), data.root_weights(rows)
        residual = np.where(missing, 0.0, residual * root)
        J = S.reshape(*residual.shape, S.shape[1]) * root[..., None]
        J[missing] = 0.0
        J = J.reshape(-1, S.shape[1])
        matrix += J.T @ J / noise
        gradient += J.T @ residual.ravel() / noise
    if not (np.isfinite(matrix).all() and np.isfinite(gradient).all()):
        return None
    try:
        return cho_solve(cho_factor(matrix), gradient)
    except LinAlgError:
        return None
