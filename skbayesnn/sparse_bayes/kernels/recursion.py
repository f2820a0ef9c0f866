r"""Compiled free runs of a network through records, and their exact sensitivities.

Training and prediction use the same layout, in the scaled units of the network: one row
of regressors after the other, run after run. ``origin[t]`` is the row at which the run
of row ``t`` starts: a lagged output at or after it is the network's own, one before it
is measured and stands in ``X``.

A row with a missing regressor (NaN) becomes NaN, and the run continues. From the first
row on whose outputs leave the plausible range, a run has diverged: the rest is NaN.

A network may also predict differences, :math:`y_t = y_{t-1} + d + f(z_t)` with a
constant d, from regressors that are differences :math:`y_{t-l} - y_{t-l-1}`. A path
holds the outputs themselves all the same, and so do all derivatives: the derivative by
a difference counts for two past outputs, that by the last output is 1. What leaves the
plausible range is then the difference: how far an integrating system goes is its own
affair.
"""

from typing import NamedTuple

import numpy as np

from ..._numba import kernel
from .layers import NO_PLACES, parameter_places
from .one_row import backward_row, forward_row, row_memory

# Columns of the sensitivities that are carried through time together.
COLUMNS = 64


class Terms(NamedTuple):
    """The output and the lag of each past output on which a row depends.

    output, lag : (n_terms,) int64
    """

    output: np.ndarray
    lag: np.ndarray


class Feedback(NamedTuple):
    """Which regressors are past outputs, and how an output becomes a regressor.

    position : (n_fed,) int64, place among the regressors
    output, lag : (n_fed,) int64
    slope, offset : (n_fed,); regressor = offset + slope * scaled output, or the
        difference of two
    limit : magnitude of what the network says beyond which the run has diverged
    terms : Terms
    near, far : (n_fed,) int64, terms of which the regressor is the difference; ``far``
        is -1 where it is an output itself
    last : (n_outputs,) int64, term to which the network adds, -1 if to none
    drift : (n_outputs,), constant that is added there
    """

    position: np.ndarray
    output: np.ndarray
    lag: np.ndarray
    slope: np.ndarray
    offset: np.ndarray
    limit: float
    terms: Terms
    near: np.ndarray
    far: np.ndarray
    last: np.ndarray
    drift: np.ndarray


def make_feedback(position, output, lag, slope, offset, limit, drift=None):
    """`Feedback` of a network that predicts outputs; or differences, with ``drift``."""
    maps = position, output, lag, slope, offset, limit
    n_fed = len(lag)
    if drift is None:
        near, far = np.arange(n_fed), np.full(n_fed, -1)
        n_outputs = int(output.max(initial=-1)) + 1
        return Feedback(
            *maps, Terms(output, lag), near, far, np.full(n_outputs, -1), np.zeros(0)
        )
    every = np.arange(len(drift))
    pairs = np.concatenate(
        [
            np.column_stack([output, lag]),
            np.column_stack([output, lag + 1]),
            np.column_stack([every, np.ones_like(every)]),
        ]
    ).astype(np.int64)
    terms, place = np.unique(pairs, axis=0, return_inverse=True)
    place = place.ravel()
    near, far, last = np.split(place, [n_fed, 2 * n_fed])
    terms = Terms(*terms.T.copy())
    return Feedback(*maps, terms, *map(np.ascontiguousarray, (near, far, last)), drift)


class FreeRun(NamedTuple):
    """Runs through records.

    feedback : Feedback
    X : (n_rows, n_features), scaled regressors; measured, NaN where missing
    origin : (n_rows,) int64, first row of the run of each row
    given : (n_rows,) bool, rows whose outputs are initial conditions
    before : (n_rows, n_outputs), scaled outputs that were measured one row earlier;
        empty for a network that does not predict differences
    """

    feedback: Feedback
    X: np.ndarray
    origin: np.ndarray
    given: np.ndarray
    before: np.ndarray = np.zeros((0, 0))


@kernel(inline="always")
def output_at(before, origin, row, path, o):
    """An output of a row of a run, or of the measured row before it."""
    return path[row, o] if row >= origin else before[origin, o]


@kernel(inline="always")
def load_row(feedback, before, X, origin, row, path, a):
    """Regressors of a row, measured or fed back; False if one is missing.

    ``origin`` is that of the row. Kernels unpack a `FreeRun` before their loop over
    rows: taking arrays from it in every row costs a third of the time of a small
    network.
    """
    for i in range(X.shape[1]):
        a[i] = X[row, i]
    for f in range(len(feedback.lag)):
        past = row - feedback.lag[f]
        if past >= origin:
            value = path[past, feedback.output[f]]
            if feedback.far[f] >= 0:
                value -= output_at(before, origin, past - 1, path, feedback.output[f])
            a[feedback.position[f]] = feedback.offset[f] + feedback.slope[f] * value
    missing = False
    for o in range(len(feedback.drift)):
        missing |= np.isnan(output_at(before, origin, row - 1, path, o))
    for i in range(X.shape[1]):
        # no early return: the loop is vectorised without
        missing |= np.isnan(a[i])
    return not missing


@kernel(inline="always")
def summed_up(feedback, before, origin, row, path, o, value):
    """An output of a row, from what the network says of it."""
    if len(feedback.drift) > 0:
        value += feedback.drift[o] + output_at(before, origin, row - 1, path, o)
    return value


@kernel(inline="always")
def _emit(feedback, before, a, origin, row, path):
    """Write the outputs of a row; False if they left the plausible range."""
    first = len(a) - path.shape[1]
    for o in range(path.shape[1]):
        # a NaN fails this comparison, too
        if not abs(a[first + o]) <= feedback.limit:
            return False
    for o in range(path.shape[1]):
        value = a[first + o]
        path[row, o] = summed_up(feedback, before, origin, row, path, o, value)
    return True


def run_path(layers, run, path):
    """Fill ``path`` (n_rows, n_outputs) in place; rows that are given stay.

    Returns
    -------
    diverged : (n_rows,) bool
    """
    diverged = np.zeros(len(path), dtype=bool)
    gains = np.zeros((0, path.shape[1], len(run.feedback.near)))
    arguments = NO_PLACES, _NOTHING_UNKNOWN, path, diverged, _NO_DERIVATIVES, gains
    _run_rows(layers, run, *arguments, (0, len(path)), row_memory(layers))
    return diverged


@kernel(helper=True)
def _add_past(s, gain, past, S, start, stop):
    """``s += sum_f gain[f] S[past[f]]`` over some columns, four past rows at once."""
    f = 0
    # bound: the length of the gain
    while f + 4 <= len(gain):
        g0, g1, g2, g3 = gain[f], gain[f + 1], gain[f + 2], gain[f + 3]
        p0, p1 = S[past[f], start:stop], S[past[f + 1], start:stop]
        p2, p3 = S[past[f + 2], start:stop], S[past[f + 3], start:stop]
        for p in range(len(s)):
            s[p] += (g0 * p0[p] + g1 * p1[p]) + (g2 * p2[p] + g3 * p3[p])
        f += 4
    # bound: fewer than four turns
    while f < len(gain):
        g0, p0 = gain[f], S[past[f], start:stop]
        for p in range(len(s)):
            s[p] += g0 * p0[p]
        f += 1


@kernel(inline="always")
def _past_rows(run, row, here, n_outputs, past):
    """Places of the rows that are fed back, -1 before the run; True if none is."""
    terms, complete = run.feedback.terms, True
    for f in range(len(past)):
        past[f] = here - terms.lag[f] * n_outputs + terms.output[f]
        if row - terms.lag[f] < run.origin[row]:
            past[f] = -1
            complete = False
    return complete


@kernel
def _feed_back(run, gains, S, start, past, copies):
    """Turn direct derivatives into those of the path, in place.

    Some columns after the other, so that the past rows of them stay in the cache. Rows
    before the origin of a run belong to another one, and may hold infinite values:
    zeros take their place, among copies (n_fed, COLUMNS) of the others.
    """
    n_rows, n_outputs, n_fed = gains.shape
    memory = len(S) // n_outputs - n_rows
    zero = np.int64(0)  # a literal would compile the callee once more
    for first in range(0, S.shape[1], COLUMNS):
        last = min(first + COLUMNS, S.shape[1])
        for row in range(n_rows):
            if run.given[start + row]:
                continue
            here = (row + memory) * n_outputs
            if _past_rows(run, start + row, here, n_outputs, past):
                for o in range(n_outputs):
                    s = S[here + o, first:last]
                    _add_past(s, gains[row, o], past, S, first, last)
                continue
            for f in range(n_fed):
                for p in range(last - first):
                    copies[f, p] = S[past[f], first + p] if past[f] >= 0 else 0.0
                past[f] = f
            for o in range(n_outputs):
                s = S[here + o, first:last]
                _add_past(s, gains[row, o], past, copies, zero, last - first)


def run_sensitivities(layers, run, kept, unknown, path, diverged, S, start, stop):
    r"""Fill rows ``start`` to ``stop`` of the path and of its sensitivities, in place.

    With :math:`g_f` the derivative of a row by the past output of a term, the exact
    derivatives of the path by the parameters obey

    .. math:: s_t = \partial f / \partial \theta + \sum_f g_f s_{t - l_f}.

    Those of rows that are missing or diverged are zero.

    Parameters
    ----------
    kept : (n_kept,) int64
        Parameters, in the order of the columns of ``S``.
    unknown : (n_rows, n_outputs) int64
        Column behind those of the parameters for an initial output that is itself to
        be estimated, -1 for others.
    diverged : (n_rows,) bool
        False at first; filled as `run_path` returns it.
    S : ((memory + stop - start) * n_outputs, n_columns)
        The first ``memory`` rows are those before ``start``, zero where there are
        none.

    Returns
    -------
    gains : (stop - start, n_outputs, n_terms)
        :math:`g_f` for each row, also where a lagged output is measured.
    """
    n_fed = len(run.feedback.terms.lag)
    gains = np.zeros((stop - start, path.shape[1], n_fed))
    arguments = parameter_places(layers, kept), unknown, path, diverged, S, gains
    _run_rows(layers, run, *arguments, (start, stop), row_memory(layers))
    past, copies = np.zeros(n_fed, dtype=np.int64), np.zeros((n_fed, COLUMNS))
    _feed_back(run, gains, S, start, past, copies)
    return gains


# what `run_path` asks for of derivatives
_NOTHING_UNKNOWN = np.zeros((0, 0), dtype=np.int64)
_NO_DERIVATIVES = np.zeros((0, 0))


@kernel
def _run_rows(layers, run, places, unknown, path, diverged, S, gains, rows, memory):
    """A free run through some rows, with direct derivatives if there is room for them.

    One kernel for both: a second one would compile the pass through the network again.
    """
    feedback, X, origin, given, before = run
    start, stop = rows
    (source, target), values = places, memory.values
    a, delta = memory.a, memory.delta
    n_outputs, n_kept, with_derivatives = path.shape[1], len(source), len(S) > 0
    n_before = len(S) // n_outputs - (stop - start)
    first = len(a) - n_outputs
    lost = np.int64(-1)
    if start > 0 and diverged[start - 1]:
        lost = origin[start - 1]
    for row in range(start, stop):
        here = (row - start + n_before) * n_outputs
        if with_derivatives:
            S[here : here + n_outputs] = 0.0
        if given[row]:
            for o in range(n_outputs if with_derivatives else 0):
                if unknown[row, o] >= 0:
                    S[here + o, n_kept + unknown[row, o]] = 1.0
            continue
        finite = False
        begin = origin[row]
        if begin != lost and load_row(feedback, before, X, begin, row, path, a):
            forward_row(layers, a, memory.power, memory.bits)
            finite = _emit(feedback, before, a, begin, row, path)
            if not finite:
                lost = begin
        if not finite:
            diverged[row] = begin == lost
            path[row] = np.nan
            continue
        for o in range(n_outputs if with_derivatives else 0):
            delta[first:] = 0.0
            delta[first + o] = 1.0
            backward_row(layers, a, delta)
            s = S[here + o]
            for p in range(n_kept):
                s[p] = values[source[p]] * delta[target[p]]
            _add_gains(feedback, o, delta, gains[row - start, o])


@kernel(inline="always")
def _add_gains(feedback, o, delta, gain):
    """Derivatives of an output by the terms of its row, in ``gain`` (n_terms,)."""
    for f in range(len(feedback.lag)):
        by_output = delta[feedback.position[f]] * feedback.slope[f]
        gain[feedback.near[f]] += by_output
        if feedback.far[f] >= 0:
            gain[feedback.far[f]] -= by_output
    if len(feedback.drift) > 0:
        gain[feedback.last[o]] += 1.0


def sensitivity_blocks(layers, run, kept, unknown, path, block):
    """Run `run_sensitivities` block after block of rows.

    Yields (rows, S, gains, diverged) for each: a slice, derivatives (n * n_outputs,
    n_columns), gains and flags. The derivatives are a view of memory that the next
    block overwrites. Fills ``path`` in place.
    """
    n_rows, n_outputs = path.shape
    n_columns = len(kept) + int(unknown.max(initial=-1)) + 1
    memory = int(run.feedback.terms.lag.max(initial=0))
    block = min(n_rows, max(64, memory, block))
    head = memory * n_outputs
    S = np.zeros((head + block * n_outputs, n_columns))
    diverged = np.zeros(n_rows, dtype=bool)
    for start in range(0, n_rows, max(1, block)):
        rows = slice(start, min(start + block, n_rows))
        view = S[: head + (rows.stop - start) * n_outputs]
        gains = run_sensitivities(
            layers, run, kept, unknown, path, diverged, view, start, rows.stop
        )
        yield rows, view[head:], gains, diverged[rows]
        S[:head] = view[len(view) - head :]


def path_gradient(layers, run, path, adjoint):
    """Gradient by all parameters, by backpropagation through time.

    ``adjoint`` (n_rows, n_outputs) comes with the derivatives of a loss by the outputs
    of each row alone; those that act through later rows are added here, in place.
    """
    gradient = np.zeros_like(layers.theta)
    places, memory = parameter_places(layers), row_memory(layers)
    _path_gradient(layers, run, places, path, adjoint, gradient, memory)
    return gradient


@kernel
def _path_gradient(layers, run, places, path, adjoint, gradient, memory):
    feedback, X, origin, given, before = run
    (source, target), values = places, memory.values
    a, delta = memory.a, memory.delta
    n_outputs = path.shape[1]
    first = len(a) - n_outputs
    for row in range(len(path) - 1, -1, -1):
        if given[row]:
            continue
        load_row(feedback, before, X, origin[row], row, path, a)
        forward_row(layers, a, memory.power, memory.bits)
        for o in range(n_outputs):
            delta[first + o] = adjoint[row, o]
        backward_row(layers, a, delta)
        for w in range(len(gradient)):
            gradient[w] += values[source[w]] * delta[target[w]]
        for f in range(len(feedback.lag)):
            past = row - feedback.lag[f]
            if past >= origin[row]:
                slope = feedback.slope[f]
                adjoint[past, feedback.output[f]] += delta[feedback.position[f]] * slope
                if feedback.far[f] >= 0 and past > origin[row]:
                    farther = delta[feedback.position[f]] * slope
                    adjoint[past - 1, feedback.output[f]] -= farther
        for o in range(len(feedback.drift)):
            if row > origin[row]:
                adjoint[row - 1, o] += adjoint[row, o]


@kernel(helper=True)
def _advance_noise(run, gain, noise, n_before, K, row):
    """Covariances of the deviation of a new row with those of the rows before it.

    The first of these are ``n_before`` rows before the run.
    """
    terms, memory, n_outputs = run.feedback.terms, len(K), len(noise)
    slot, first = row % memory, run.origin[row] - n_before
    K[slot] = 0.0
    K[:, :, slot] = 0.0
    for f in range(len(terms.lag)):
        if row - terms.lag[f] < first:
            continue
        past, k = (row - terms.lag[f]) % memory, terms.output[f]
        for o in range(n_outputs):
            for m in range(memory):
                if m != slot:
                    for q in range(n_outputs):
                        K[slot, o, m, q] += gain[o, f] * K[past, k, m, q]
    for o in range(n_outputs):
        for m in range(memory):
            if m != slot:
                for q in range(n_outputs):
                    K[m, q, slot, o] = K[slot, o, m, q]
    # exactly symmetric, because errors of rounding that are not grow in the recursion
    for o in range(n_outputs):
        for q in range(o + 1):
            total = noise[o] * noise[o] if o == q else 0.0
            for f in range(len(terms.lag)):
                if row - terms.lag[f] >= first:
                    past = (row - terms.lag[f]) % memory
                    total += gain[o, f] * K[slot, q, past, terms.output[f]]
            K[slot, o, slot, q] = total
            K[slot, q, slot, o] = total


def fed_back_noise(run, gains, noise):
    r"""Variance that noise of standard deviation ``noise`` in every row adds to a path.

    Linearised around the path, the deviation obeys :math:`e_t = \sum_f g_f e_{t - l_f}
    + \xi_t`. Its covariance over the last rows is carried along.

    Returns
    -------
    variance : (n_rows, n_outputs)
    """
    longest_run = int((np.arange(len(gains)) - run.origin).max(initial=0))
    # rows that lags of the same run reach
    n_past = min(_longest_lag(run), longest_run)
    return _carry_noise(run, gains, noise, np.zeros_like(noise), 0, n_past)


def fed_back_errors(run, gains, errors):
    """Variance that errors of the outputs which were measured before a run add to it.

    Of standard deviations ``errors`` (n_outputs,), independent of each other.

    Returns
    -------
    variance : (n_rows, n_outputs)
    """
    n_past = _longest_lag(run)
    return _carry_noise(run, gains, np.zeros_like(errors), errors, n_past, n_past)


def draw_fed_back_errors(run, gains, errors, n_draws, rng):
    """Draws of the errors whose variances are those of `fed_back_errors`.

    Returns
    -------
    paths : (n_draws, n_rows, n_outputs)
    """
    n_rows, n_outputs, _ = gains.shape
    n_before, paths = _longest_lag(run), np.empty((n_draws, n_rows, n_outputs))
    firsts = np.flatnonzero(run.origin == np.arange(n_rows))
    for first, last in zip(firsts, np.append(firsts[1:], n_rows), strict=True):
        part = np.zeros((n_draws, n_before + last - first, n_outputs))
        part[:, :n_before] = errors * rng.normal(size=(n_draws, n_before, n_outputs))
        _carry_errors(run.feedback.terms, gains[first:last], part, n_before)
        paths[:, first:last] = part[:, n_before:]
    return paths


@kernel
def _carry_errors(terms, gains, paths, n_before):
    for path in paths:
        for row in range(len(gains)):
            for f in range(len(terms.lag)):
                past = path[n_before + row - terms.lag[f], terms.output[f]]
                for o in range(path.shape[1]):
                    path[n_before + row, o] += gains[row, o, f] * past


def _longest_lag(run):
    return int(run.feedback.terms.lag.max(initial=0))


def _carry_noise(run, gains, noise, errors, n_before, n_past):
    n_rows, n_outputs, _ = gains.shape
    # a ring buffer over a row and those that count before it
    K = np.zeros((n_past + 1, n_outputs, n_past + 1, n_outputs))
    variance = np.empty((n_rows, n_outputs))
    _fed_back_noise(run, gains, noise, errors, n_before, K, variance)
    return variance


@kernel
def _fed_back_noise(run, gains, noise, errors, n_before, K, variance):
    n_outputs = len(noise)
    for row in range(len(variance)):
        if run.origin[row] == row:
            K[:] = 0.0
            for past in range(row - n_before, row):
                slot = past % len(K)
                for o in range(n_outputs):
                    K[slot, o, slot, o] = errors[o] * errors[o]
        _advance_noise(run, gains[row], noise, n_before, K, row)
        slot = row % len(K)
        for o in range(n_outputs):
            variance[row, o] = K[slot, o, slot, o]
