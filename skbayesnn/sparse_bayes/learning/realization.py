r"""The linear state-space model with which the fit of a state-space network begins.

A long ARX model by least squares says how outputs respond to inputs,

.. math:: G_k = B_k + \sum_{j=1}^{k} A_j G_{k-j}, \qquad G_0 = D,

and a linear system with few states that responds like this follows from the singular
values of the Hankel matrix of :math:`G_1, G_2, \ldots` (Ho and Kalman; Kung, 1978).
"""

from typing import NamedTuple

import numpy as np

# Of the variance of the regressors: keeps the ARX model from reading noise.
RIDGE = 1e-5
# A start that hardly forgets would diverge once its hidden units move it.
LARGEST_MODULUS = 0.98


class LinearSystem(NamedTuple):
    """x(t+1) = A x(t) + B u(t), y(t) = C x(t) + D u(t), states of variance one."""

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray


def realize(U, Y, starts, n_states, lag):
    """A `LinearSystem` of at most ``n_states`` states, from scaled records.

    Rows with a missing value in their window of ``lag`` rows are left out. There may be
    fewer states than asked for: no more than the responses have, and none where no
    window is complete.
    """
    return of_responses(responses(U, Y, starts, lag), U, starts, n_states)


def responses(U, Y, starts, lag):
    """G (2 lag + 1, n_outputs, n_signals) of a long ARX model.

    Zero behind the first if they exceed all numbers.
    """
    D, of_inputs, of_outputs = fit_arx(U, Y, starts, lag)
    if not U.shape[1]:
        # what the errors of the model set off dies out as what was there at the start
        D, of_inputs = np.eye(Y.shape[1]), np.zeros_like(of_outputs)
    G = _unrolled(D, of_inputs, of_outputs)
    if not np.isfinite(G).all():
        G[1:] = 0.0
    return G


def of_responses(G, U, starts, n_states, damped=True):
    """A `LinearSystem` that responds like this, and is stable if ``damped``."""
    A, B, C = _ho_kalman(G[1:], len(G) // 2, n_states)
    A = _damped(A) if damped else A
    B, D = B[:, : U.shape[1]], G[0][:, : U.shape[1]]
    return _of_unit_variance(LinearSystem(A, B, C, D), U, starts)


def can_fit_arx(lag, n_signals, n_rows):
    """Whether a linear model has at least four rows per weight; with one lag, always.

    With as many weights as rows it fits all of them, and says nothing about others.
    """
    return lag == 1 or 4 * n_signals * (lag + 1) <= n_rows


def fit_arx(U, Y, starts, lag):
    """D (n_y, n_u) and the coefficients (lag, n_y, n_u) and (lag, n_y, n_y)."""
    n_inputs, n_outputs = U.shape[1], Y.shape[1]
    both, rows = np.hstack([U, Y]), []
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        rows.append(np.arange(start + lag, stop))
    rows = np.concatenate(rows)
    past = [both[rows - k] for k in range(1, lag + 1)]
    Z = np.hstack([U[rows], *past, np.ones((len(rows), 1))])
    known = np.isfinite(Z).all(axis=1) & np.isfinite(Y[rows]).all(axis=1)
    Z, target = Z[known], Y[rows][known]
    gram = Z.T @ Z + (RIDGE * len(Z) + 1e-12) * np.eye(Z.shape[1])
    coef = np.linalg.solve(gram, Z.T @ target).T
    D = coef[:, :n_inputs]
    shape = n_outputs, lag, n_inputs + n_outputs
    lagged = coef[:, n_inputs:-1].reshape(shape).transpose(1, 0, 2)
    return D, lagged[:, :, :n_inputs], lagged[:, :, n_inputs:]


def _unrolled(D, of_inputs, of_outputs):
    """G (2 lag + 1, n_y, n_u)."""
    lag = len(of_inputs)
    G = np.zeros((2 * lag + 1, *D.shape))
    G[0] = D
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(1, len(G)):
            if k <= lag:
                G[k] = of_inputs[k - 1]
            for j in range(1, min(k, lag) + 1):
                G[k] += of_outputs[j - 1] @ G[k - j]
    return G


def _ho_kalman(G, size, n_states):
    """A, B and C of the largest singular values of the Hankel matrix of ``G``."""
    n_outputs, n_inputs = G.shape[1:]
    hankel = np.block([[G[i + j] for j in range(size)] for i in range(size)])
    left, values, right = np.linalg.svd(hankel)
    n_kept = min(n_states, int(np.count_nonzero(values > 1e-9 * values.max(initial=0))))
    root = np.sqrt(values[:n_kept])
    observability, reachability = (
        left[:, :n_kept] * root,
        root[:, None] * right[:n_kept],
    )
    A = np.linalg.lstsq(
        observability[:-n_outputs], observability[n_outputs:], rcond=None
    )[0]
    return A, reachability[:, :n_inputs], observability[:n_outputs]


def _damped(A):
    """The same matrix with eigenvalues of at most the largest modulus."""
    values, vectors = np.linalg.eig(A)
    modulus = np.abs(values)
    if not modulus.max(initial=0.0) > LARGEST_MODULUS:
        return A
    values *= LARGEST_MODULUS / np.maximum(modulus, LARGEST_MODULUS)
    if np.linalg.cond(vectors) > 1e6:
        # eigenvalues that coincide
        return A * LARGEST_MODULUS / modulus.max()
    return (vectors * values @ np.linalg.inv(vectors)).real


def _of_unit_variance(system, U, starts):
    """The same system with states that have variance one in the record."""
    A, B, C, D = system
    states = states_of(system, U, starts)
    scale = states.std(axis=0)
    scale[scale < 1e-9] = 1.0
    return LinearSystem(A * scale / scale[:, None], B / scale[:, None], C * scale, D)


def states_of(system, U, starts):
    """States (n_rows, n_states) in a record, at rest where a session begins."""
    A, B, _, _ = system
    states = np.zeros((len(U), len(A)))
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        for t in range(start, stop - 1):
            states[t + 1] = A @ states[t] + B @ U[t]
    return states
