"""Compiled simulation of a network that feeds its outputs back.

All memory is taken before the loop. Missing values travel as NaN. A row whose
regressors are all there, but whose prediction leaves the plausible range, has diverged:
it and all that follow become NaN.
"""

from typing import NamedTuple

import numpy as np

from ..._numba import kernel
from .one_row import backward_row, forward_row, row_workspace


class Recursion(NamedTuple):
    """How regressors are gathered and outputs scaled.

    signal, lag : (n_inputs_kept,) int64; signals count inputs first, then outputs
    x_offset, x_scale : (n_inputs_kept,)
    y_offset, y_scale : (n_outputs,)
    limit : magnitude of a scaled output from which on it has diverged
    """

    signal: np.ndarray
    lag: np.ndarray
    x_offset: np.ndarray
    x_scale: np.ndarray
    y_offset: np.ndarray
    y_scale: np.ndarray
    limit: float


@kernel
def _longest(lags):
    longest = np.int64(0)  # typed: a literal would compile every callee twice
    for lag in lags:
        longest = max(longest, lag)
    return longest


@kernel
def _gather(recursion, U, Y, row, a):
    """Scaled regressors of one row; False if one of them is missing."""
    n_inputs = U.shape[1]
    for i in range(len(recursion.lag)):
        signal = recursion.signal[i]
        past = row - recursion.lag[i]
        value = U[past, signal] if signal < n_inputs else Y[past, signal - n_inputs]
        a[i] = (value - recursion.x_offset[i]) / recursion.x_scale[i]
        if np.isnan(value):
            return False
    return True


@kernel
def _emit(recursion, a, first, Y, row):
    """Write one row of outputs in the user's units; False if it diverged."""
    n_outputs = Y.shape[1]
    for o in range(n_outputs):
        # a NaN fails this comparison, too
        if not abs(a[first + o]) <= recursion.limit:
            return False
    for o in range(n_outputs):
        Y[row, o] = a[first + o] * recursion.y_scale[o] + recursion.y_offset[o]
    return True


@kernel
def simulate(theta, sizes, activation, recursion, U, Y, start, stop):
    """Fill ``Y[start:stop]`` in free run.

    Returns the first row that diverged, or -1. Rows from there on are NaN.
    """
    a, power, bits = row_workspace(sizes)
    first = len(a) - sizes[-1]
    for row in range(start, stop):
        if not _gather(recursion, U, Y, row, a):
            Y[row] = np.nan
            continue
        forward_row(theta, sizes, activation, a, power, bits)
        if not _emit(recursion, a, first, Y, row):
            Y[row:stop] = np.nan
            return row
    return -1


@kernel
def _quadratic_form(covariance, variances, vector):
    """``v.T C v`` for the matrix, or for the diagonal where there is no matrix."""
    total = 0.0
    if len(covariance) == 0:
        for i in range(len(vector)):
            total += variances[i] * vector[i] * vector[i]
        return total
    for i in range(len(vector)):
        if vector[i] != 0.0:
            inner = 0.0
            for j in range(len(vector)):
                inner += covariance[i, j] * vector[j]
            total += vector[i] * inner
    return total


@kernel
def simulate_variance(
    theta,
    sizes,
    activation,
    recursion,
    column,
    covariance,
    variances,
    noise,
    ceiling,
    U,
    Y,
    V,
    start,
    stop,
):
    r"""`simulate` with the variance ``V`` of each output in squared user's units.

    Linearised around the simulated path. With :math:`g_k` the derivatives of the
    network by its past outputs, the sensitivity to the weights obeys

    .. math:: s_t = \partial f / \partial \theta + \sum_k g_k s_{t-k},

    and the deviation caused by process noise, :math:`e_t = \sum_k g_k e_{t-k} + \xi_t`,
    has its covariance over the last rows carried along. The variance is
    :math:`s_t^T C s_t + E[e_t^2]`, the second term at most ``ceiling``. Outputs before
    ``start`` are taken as exact.
    """
    n_inputs = U.shape[1]
    n_outputs = Y.shape[1]
    n_kept = len(variances)
    memory = _longest(recursion.lag) + 1
    a, power, bits = row_workspace(sizes)
    delta = np.empty_like(a)
    direct = np.empty_like(theta)
    first = len(a) - n_outputs
    # both are ring buffers over the last rows
    S = np.zeros((memory, n_outputs, n_kept))
    K = np.zeros((memory, n_outputs, memory, n_outputs))
    gain = np.empty((n_outputs, len(recursion.lag)))
    for row in range(start, stop):
        if not _gather(recursion, U, Y, row, a):
            Y[row] = np.nan
            V[row] = np.nan
            continue
        forward_row(theta, sizes, activation, a, power, bits)
        if not _emit(recursion, a, first, Y, row):
            Y[row:stop] = np.nan
            V[row:stop] = np.nan
            return row
        slot = row % memory
        for o in range(n_outputs):
            delta[first:] = 0.0
            delta[first + o] = 1.0
            s = S[slot, o]
            backward_row(theta, sizes, activation, a, delta, direct)
            for w in range(len(column)):
                if column[w] >= 0:
                    s[column[w]] = direct[w]
            for i in range(len(recursion.lag)):
                k = recursion.signal[i] - n_inputs
                gain[o, i] = 0.0
                if k >= 0:
                    gain[o, i] = delta[i] * recursion.y_scale[k] / recursion.x_scale[i]
                    past = S[(row - recursion.lag[i]) % memory, k]
                    for p in range(n_kept):
                        s[p] += gain[o, i] * past[p]
        _advance_noise(recursion, gain, n_inputs, noise, K, row, memory)
        for o in range(n_outputs):
            spread = _quadratic_form(covariance, variances, S[slot, o])
            # written so that a variance beyond all numbers, a NaN, meets the ceiling
            fed_back = K[slot, o, slot, o]
            spread += fed_back if fed_back < ceiling[o] else ceiling[o]
            V[row, o] = spread * recursion.y_scale[o] * recursion.y_scale[o]
    return -1


@kernel
def _advance_noise(recursion, gain, n_inputs, noise, K, row, memory):
    """Covariance of the new row's deviation with those of the rows before."""
    slot = row % memory
    n_outputs = len(noise)
    K[slot] = 0.0
    K[:, :, slot] = 0.0
    for o in range(n_outputs):
        for i in range(len(recursion.lag)):
            k = recursion.signal[i] - n_inputs
            if k < 0:
                continue
            past = (row - recursion.lag[i]) % memory
            for m in range(memory):
                if m != slot:
                    for q in range(n_outputs):
                        K[slot, o, m, q] += gain[o, i] * K[past, k, m, q]
    for o in range(n_outputs):
        for m in range(memory):
            if m != slot:
                for q in range(n_outputs):
                    K[m, q, slot, o] = K[slot, o, m, q]
    for o in range(n_outputs):
        for q in range(n_outputs):
            total = noise[o] * noise[o] if o == q else 0.0
            for i in range(len(recursion.lag)):
                k = recursion.signal[i] - n_inputs
                if k >= 0:
                    past = (row - recursion.lag[i]) % memory
                    total += gain[o, i] * K[slot, q, past, k]
            K[slot, o, slot, q] = total


@kernel
def predict_ahead(theta, sizes, activation, recursion, U, Y, horizon, out, start, stop):
    """``horizon``-step-ahead predictions of the rows from ``start + max_lag`` on.

    Row ``t`` is simulated from the measured outputs up to row ``t - horizon``, or, near
    the start, from the first complete window. Returns how many rows diverged.
    """
    max_lag = _longest(recursion.lag)
    path = np.empty((max_lag + horizon, Y.shape[1]))
    n_diverged = 0
    for row in range(start + max_lag, stop):
        origin = max(row - horizon + 1, start + max_lag)
        n_steps = row - origin + 1
        path[:max_lag] = Y[origin - max_lag : origin]
        diverged = simulate(
            theta,
            sizes,
            activation,
            recursion,
            U[origin - max_lag : row + 1],
            path,
            max_lag,
            max_lag + n_steps,
        )
        n_diverged += diverged >= 0
        out[row] = path[max_lag + n_steps - 1]
    return n_diverged


@kernel
def predict_ahead_variance(
    theta,
    sizes,
    activation,
    recursion,
    column,
    covariance,
    variances,
    noise,
    ceiling,
    U,
    Y,
    horizon,
    out,
    V,
    start,
    stop,
):
    """`predict_ahead` with variances, as `simulate_variance` gives them."""
    max_lag = _longest(recursion.lag)
    path = np.empty((max_lag + horizon, Y.shape[1]))
    spread = np.empty_like(path)
    n_diverged = 0
    for row in range(start + max_lag, stop):
        origin = max(row - horizon + 1, start + max_lag)
        n_steps = row - origin + 1
        path[:max_lag] = Y[origin - max_lag : origin]
        diverged = simulate_variance(
            theta,
            sizes,
            activation,
            recursion,
            column,
            covariance,
            variances,
            noise,
            ceiling,
            U[origin - max_lag : row + 1],
            path,
            spread,
            max_lag,
            max_lag + n_steps,
        )
        n_diverged += diverged >= 0
        out[row] = path[max_lag + n_steps - 1]
        V[row] = spread[max_lag + n_steps - 1]
    return n_diverged
