r"""Compiled runs of a state-space network through records, and exact sensitivities.

The network maps the state and the inputs of a row to the state of the next row and the
outputs of this one,

.. math:: (x_{t+1}, y_t) = f(x_t, u_t).

All records of a run stand one after the other, in the scaled units of the network;
``begin`` marks the first row of each, whose state is given. The exact derivatives of
the state by the parameters obey

.. math:: S_{t+1} = \partial f_x / \partial \theta + (\partial f_x / \partial x) S_t,

and those of the outputs follow from them by the same product. A fit may hold fractions
a of the states and take a part h of a step,

.. math:: x_{t+1} = a x_t + h f_x(x_t, u_t);

otherwise a is 0 and h is 1.
"""

from typing import NamedTuple

import numpy as np

from ..._numba import kernel
from .layers import NO_PLACES, parameter_places
from .one_row import LANES, backward_outputs, forward_row, row_memory

_NO_DERIVATIVES = np.zeros((0, 0))
# Columns of derivatives are padded to a multiple: loops end without single numbers.
PADDING = 16


class StateRun(NamedTuple):
    """Records that a state-space network runs through.

    X : (n_rows, n_features) what the network reads besides states; the columns of the
        states are not read
    state : (n_features,) int64, number of the state that a feature is, -1 for others
    begin : (n_rows,) bool, the first rows of records
    initial : (n_rows, n_states), states of these rows; not read elsewhere
    limits : magnitudes of states and outputs from which on a run has diverged
    held : (n_states,), the fractions a
    step : the part h
    """

    X: np.ndarray
    state: np.ndarray
    begin: np.ndarray
    initial: np.ndarray
    limits: tuple
    held: np.ndarray
    step: float


class _Memory(NamedTuple):
    """Derivatives of a row.

    of_state, of_next : (n_states, at least n_columns) of its state and of the next one
    deltas : (n_units, LANES), of some of what it says by its units
    by_state : (n_states,), of one of what it says by its state
    """

    of_state: np.ndarray
    of_next: np.ndarray
    deltas: np.ndarray
    by_state: np.ndarray


def run_states(layers, run, n_outputs):
    """States (n_rows, n_states) and outputs (n_rows, n_outputs) of a run.

    They are NaN from the row on in which a record diverges.
    """
    return _derive(layers, run, n_outputs, NO_PLACES, _NO_DERIVATIVES, False)


def run_state_sensitivities(layers, run, n_outputs, kept, by_initial=False):
    """States and outputs of a run, and the derivatives of the outputs.

    Parameters
    ----------
    kept : (n_kept,) int64
        Parameters, in the order of the first columns of the derivatives.
    by_initial : bool
        Whether derivatives by the state at the start of each row's record follow,
        ``n_states`` columns.

    Returns
    -------
    states : (n_rows, n_states)
    outputs : (n_rows, n_outputs)
    S : (n_rows * n_outputs, n_columns), zero where a run has diverged
    """
    n_columns = len(kept) + by_initial * run.initial.shape[1]
    S = np.zeros((len(run.X) * n_outputs, n_columns))
    places = parameter_places(layers, kept)
    return *_derive(layers, run, n_outputs, places, S, True), S


def sensitivities_by_block(layers, run, n_outputs, kept, n_rows):
    """Yield rows of a run, as a slice, and the derivatives of their outputs.

    As `run_state_sensitivities`, for so many rows at a time, which keep less memory.
    """
    n_columns, places = len(kept), parameter_places(layers, kept)
    begun = _begin_run(layers, run, n_outputs, n_columns)
    for first in range(0, len(run.X), n_rows):
        rows = slice(first, min(first + n_rows, len(run.X)))
        S = np.zeros(((rows.stop - first) * n_outputs, n_columns))
        _go_through(layers, run, rows, begun, places, S, True)
        yield rows, S


def states_by_parameters(layers, run, n_outputs, kept, rows):
    """Derivatives (n_rows, n_states, n_kept) of the states of some rows of a run.

    Parameters
    ----------
    kept : (n_kept,) int64, parameters
    rows : (n_rows,) int64, rising; none of them begins a record, or is behind one that
        has diverged
    """
    places = parameter_places(layers, kept)
    begun = _begin_run(layers, run, n_outputs, len(kept))
    found = np.empty((len(rows), run.initial.shape[1], len(kept)))
    first = 0
    for number, row in enumerate(rows):
        S = np.empty(((row - first) * n_outputs, len(kept)))
        _go_through(layers, run, slice(first, row), begun, places, S, True)
        found[number] = begun.memory.of_state[:, : len(kept)]
        first = row
    return found


def _derive(layers, run, n_outputs, places, S, with_derivatives):
    begun = _begin_run(layers, run, n_outputs, S.shape[1])
    whole = slice(0, len(run.X))
    _go_through(layers, run, whole, begun, places, S, with_derivatives)
    return begun.states, begun.outputs


class _Begun(NamedTuple):
    """What a run has come to, NaN in the rows ahead, and its memory."""

    states: np.ndarray
    outputs: np.ndarray
    memory: _Memory
    scratch: NamedTuple


def _begin_run(layers, run, n_outputs, n_columns):
    n_rows, n_states = len(run.X), run.initial.shape[1]
    scratch, padded = row_memory(layers), -(-n_columns // PADDING) * PADDING
    memory = _Memory(
        *(np.zeros((n_states, padded)) for _ in range(2)),
        np.zeros((len(scratch.a), LANES)),
        np.zeros(n_states),
    )
    return _Begun(
        np.full((n_rows, n_states), np.nan),
        np.full((n_rows, n_outputs), np.nan),
        memory,
        scratch,
    )


def _go_through(layers, run, rows, begun, places, S, with_derivatives):
    """Run through some rows, behind those before them."""
    # the row that follows gets its state
    behind = slice(rows.start, rows.stop + 1)
    part = run._replace(
        X=run.X[behind], begin=run.begin[behind], initial=run.initial[behind]
    )
    # literals would compile the kernel once more
    _run_rows(
        layers,
        part,
        begun.states[behind],
        begun.outputs[rows],
        places,
        S,
        begun.memory,
        begun.scratch,
        bool(with_derivatives),
    )


@kernel(inline="always")
def _start(run, row, n_weights, n_columns, states, of_state):
    """The given state of a row, and its derivatives by itself."""
    for k in range(states.shape[1]):
        states[row, k] = run.initial[row, k]
    of_state[:] = 0.0
    for k in range(n_columns - n_weights):
        of_state[k, n_weights + k] = 1.0


@kernel(inline="always")
def _within(limits, a, first, n_states):
    """Whether all that a row says is in the plausible range; a NaN is not."""
    inside = True
    for o in range(first, len(a)):
        limit = limits[0] if o < first + n_states else limits[1]
        inside &= abs(a[o]) <= limit
    return inside


@kernel(helper=True)
def _through_state(s, by_state, of_state):
    """``s = by_state @ of_state``; a function of its own is vectorised."""
    n_states, k = len(by_state), 0
    s[:] = 0.0
    # bound: the number of states
    while k + 4 <= n_states:
        g0, g1, g2, g3 = by_state[k], by_state[k + 1], by_state[k + 2], by_state[k + 3]
        p0, p1, p2, p3 = of_state[k], of_state[k + 1], of_state[k + 2], of_state[k + 3]
        for p in range(len(s)):
            s[p] += (g0 * p0[p] + g1 * p1[p]) + (g2 * p2[p] + g3 * p3[p])
        k += 4
    # bound: fewer than four turns
    while k < n_states:
        g0, p0 = by_state[k], of_state[k]
        for p in range(len(s)):
            s[p] += g0 * p0[p]
        k += 1


@kernel(helper=True)
def _add_direct(s, factor, values, deltas, lane, places, n_hidden):
    """Add the derivatives by parameters of hidden units, with the state held fixed."""
    source, target = places
    for p in range(n_hidden):
        s[p] += factor * (values[source[p]] * deltas[target[p], lane])


@kernel
def _run_rows(layers, run, states, outputs, places, S, memory, scratch, derive):
    X, state, begin, held, step = run.X, run.state, run.begin, run.held, run.step
    (source, target), (values, a) = places, (scratch.values, scratch.a)
    of_state, of_next, deltas, by_state = memory
    n_states, n_outputs = states.shape[1], outputs.shape[1]
    first, n_weights = len(a) - n_states - n_outputs, len(source)
    # parameters of hidden units stand in front of those of outputs, states in front of
    # other features
    n_hidden = n_read = np.int64(0)
    for p in range(n_weights):
        n_hidden += target[p] < first
    for i in range(len(state)):
        n_read += state[i] >= 0
    # where rows before were lost, their states are NaN, and so is this one's
    lost = False
    for row in range(len(outputs)):
        if begin[row]:
            _start(run, row, n_weights, S.shape[1], states, of_state)
            lost = False
        if lost:
            continue
        for i in range(X.shape[1]):
            a[i] = states[row, state[i]] if state[i] >= 0 else X[row, i]
        forward_row(layers, a, scratch.power, scratch.bits)
        if not _within(run.limits, a, first, n_states):
            lost = True
            continue
        for o in range(n_outputs):
            outputs[row, o] = a[first + n_states + o]
        follows = row + 1 < len(X) and not begin[row + 1]
        for k in range(n_states if follows else 0):
            states[row + 1, k] = step * a[first + k] + held[k] * states[row, k]
        if not derive:
            continue
        for o in range(n_states + n_outputs):
            lane, part = o % LANES, step if o < n_states else 1.0
            if lane == 0:
                backward_outputs(layers, a, o, n_read, deltas)
            by_state[:] = 0.0
            for i in range(n_read):
                by_state[state[i]] = part * deltas[i, lane]
            if o < n_states:
                by_state[o] += held[o]
            s = S[row * n_outputs + o - n_states] if o >= n_states else of_next[o]
            _through_state(s, by_state, of_state)
            _add_direct(s, part, values, deltas, lane, places, n_hidden)
        for p in range(n_hidden, n_weights):
            o = target[p] - first
            if o < n_states:
                of_next[o, p] += step * values[source[p]]
            else:
                S[row * n_outputs + o - n_states, p] += values[source[p]]
        for k in range(n_states):
            for p in range(of_state.shape[1]):
                of_state[k, p] = of_next[k, p]
