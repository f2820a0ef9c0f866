"""Compiled free runs through training records, and their exact sensitivities.

Everything is in the scaled units of the network. Rows stand in the order of time;
``origin[t]`` is the row from which row ``t`` is simulated: a lagged output at or after
it is the network's own, one before it is measured and stands in ``X``.
"""

from typing import NamedTuple

import numpy as np

from ..._numba import kernel
from .one_row import backward_row, forward_row, row_workspace

# Columns of the sensitivities that are carried through time together.
COLUMNS = 64


class Feedback(NamedTuple):
    """Which regressors are past outputs, and how an output becomes a regressor.

    position : (n_fed,) int64, place among the regressors
    output, lag : (n_fed,) int64
    slope, offset : (n_fed,); regressor = offset + slope * scaled output
    limit : magnitude of a scaled output from which on the run has diverged
    """

    position: np.ndarray
    output: np.ndarray
    lag: np.ndarray
    slope: np.ndarray
    offset: np.ndarray
    limit: float


@kernel
def _load_row(feedback, X, origin, row, path, a):
    """Regressors of a row: measured, or fed back from the path."""
    for i in range(X.shape[1]):
        a[i] = X[row, i]
    for f in range(len(feedback.lag)):
        past = row - feedback.lag[f]
        if past >= origin[row]:
            value = path[past, feedback.output[f]]
            a[feedback.position[f]] = feedback.offset[f] + feedback.slope[f] * value


@kernel
def _emit(feedback, a, row, path):
    """Write the outputs of a row; False if they left the plausible range."""
    first = len(a) - path.shape[1]
    for o in range(path.shape[1]):
        # a NaN fails this comparison, too
        if not abs(a[first + o]) <= feedback.limit:
            return False
        path[row, o] = a[first + o]
    return True


@kernel
def run_path(theta, sizes, activation, feedback, X, origin, given, path):
    """Fill ``path`` (n_rows, n_outputs); False, and incomplete, if it diverged.

    Rows that are ``given`` hold initial outputs and stay as they are.
    """
    a, power, bits = row_workspace(sizes)
    for row in range(len(X)):
        if given[row]:
            continue
        _load_row(feedback, X, origin, row, path, a)
        forward_row(theta, sizes, activation, a, power, bits)
        if not _emit(feedback, a, row, path):
            return False
    return True


@kernel
def _add_past(s, gain, past, S, start, stop):
    """``s += sum_f gain[f] S[past[f]]`` over some columns, four past rows at once."""
    f = 0
    while f + 4 <= len(gain):
        g0, g1, g2, g3 = gain[f], gain[f + 1], gain[f + 2], gain[f + 3]
        p0, p1 = S[past[f], start:stop], S[past[f + 1], start:stop]
        p2, p3 = S[past[f + 2], start:stop], S[past[f + 3], start:stop]
        for p in range(len(s)):
            s[p] += (g0 * p0[p] + g1 * p1[p]) + (g2 * p2[p] + g3 * p3[p])
        f += 4
    while f < len(gain):
        g0, p0 = gain[f], S[past[f], start:stop]
        for p in range(len(s)):
            s[p] += g0 * p0[p]
        f += 1


@kernel
def _feed_back(feedback, gains, S, n_outputs, memory):
    """Turn direct derivatives into those of the path, in place.

    Some columns after the other, so that the past rows of them stay in the cache.
    """
    n_columns = S.shape[1]
    past = np.empty(len(feedback.lag), dtype=np.int64)
    for first in range(0, n_columns, COLUMNS):
        last = min(first + COLUMNS, n_columns)
        for row in range(len(gains)):
            here = (row + memory) * n_outputs
            for f in range(len(past)):
                past[f] = here - feedback.lag[f] * n_outputs + feedback.output[f]
            for o in range(n_outputs):
                s = S[here + o, first:last]
                _add_past(s, gains[row, o], past, S, first, last)


@kernel
def run_sensitivities(
    theta,
    sizes,
    activation,
    kept,
    feedback,
    X,
    origin,
    given,
    unknown,
    path,
    S,
    start,
    stop,
):
    r"""Fill rows ``start`` to ``stop`` of the path and of its sensitivities.

    With :math:`g_f` the derivative of the network by a fed-back output, the exact
    derivatives of the path by the parameters obey

    .. math:: s_t = \partial f / \partial \theta + \sum_f g_f s_{t - l_f}.

    Parameters
    ----------
    kept : (n_kept,) int64
        Parameters, in the order of the columns of ``S``.
    unknown : (n_rows, n_outputs) int64
        Column behind those of the parameters for an initial output that is itself to
        be estimated, -1 for others.
    S : ((memory + stop - start) * n_outputs, n_columns)
        The first ``memory`` rows are those before ``start``, zero where there are
        none.

    Returns
    -------
    bool
        False if the run diverged.
    """
    n_outputs = path.shape[1]
    n_kept = len(kept)
    memory = len(S) // n_outputs - (stop - start)
    a, power, bits = row_workspace(sizes)
    delta = np.zeros_like(a)
    direct = np.empty_like(theta)
    first = len(a) - n_outputs
    gains = np.zeros((stop - start, n_outputs, len(feedback.lag)))
    for row in range(start, stop):
        here = (row - start + memory) * n_outputs
        S[here : here + n_outputs] = 0.0
        if given[row]:
            for o in range(n_outputs):
                if unknown[row, o] >= 0:
                    S[here + o, n_kept + unknown[row, o]] = 1.0
            continue
        _load_row(feedback, X, origin, row, path, a)
        forward_row(theta, sizes, activation, a, power, bits)
        if not _emit(feedback, a, row, path):
            return False
        for o in range(n_outputs):
            delta[first:] = 0.0
            delta[first + o] = 1.0
            backward_row(theta, sizes, activation, a, delta, direct)
            s = S[here + o]
            for p in range(n_kept):
                s[p] = direct[kept[p]]
            for f in range(len(feedback.lag)):
                if row - feedback.lag[f] >= origin[row]:
                    slope = feedback.slope[f]
                    gains[row - start, o, f] = delta[feedback.position[f]] * slope
    _feed_back(feedback, gains, S, n_outputs, memory)
    return True


@kernel
def path_gradient(theta, sizes, activation, feedback, X, origin, given, path, adjoint):
    """Gradient by all parameters, by backpropagation through time.

    ``adjoint`` (n_rows, n_outputs) comes with the derivatives of a loss by the outputs
    of each row alone; those that act through later rows are added here.
    """
    n_outputs = path.shape[1]
    a, power, bits = row_workspace(sizes)
    delta = np.zeros_like(a)
    direct = np.empty_like(theta)
    gradient = np.zeros_like(theta)
    first = len(a) - n_outputs
    for row in range(len(X) - 1, -1, -1):
        if given[row]:
            continue
        _load_row(feedback, X, origin, row, path, a)
        forward_row(theta, sizes, activation, a, power, bits)
        delta[first:] = adjoint[row]
        backward_row(theta, sizes, activation, a, delta, direct)
        for w in range(len(theta)):
            gradient[w] += direct[w]
        for f in range(len(feedback.lag)):
            past = row - feedback.lag[f]
            if past >= origin[row]:
                slope = feedback.slope[f]
                adjoint[past, feedback.output[f]] += delta[feedback.position[f]] * slope
    return gradient
