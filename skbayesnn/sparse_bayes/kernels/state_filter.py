r"""Compiled extended Kalman filter of a state-space network, and runs ahead of it.

The network is that of `state_recursion`, with noise in both equations,

.. math:: x_{t+1} = f_x(x_t, u_t) + w_t, \qquad y_t = f_y(x_t, u_t) + v_t.

The filter carries the mean and the covariance of the state, linearised around the mean
(Jacobians A and C of f_x and f_y). Measured outputs of a row are taken one after the
other, each with the gain :math:`k = P c^T / s`, :math:`s = c P c^T + r`:

.. math:: x \leftarrow x + k (y - \hat y), \qquad P \leftarrow P - k s k^T .

Then both go on to the next row, :math:`x \leftarrow f_x(x, u)` and
:math:`P \leftarrow A P A^T + Q`, with A where the state is now. Where no output is
measured this is a free run. With Student's t, a gross error counts less, as in a fit:
the gain has the r of an observation of this weight.

Along with the mean goes what an error of the parameters does to it. It is not the
derivative of the filter by the parameters: the basis of the states is arbitrary, and
the gains would have to follow it. The error that the parameters give to the outputs of
a free run, with derivatives S, does not depend on the basis; from it the filter takes
what it sees of it in the measured outputs. So with D = 0 at the start,

.. math:: D \leftarrow A (D - k (C D + S)),

and C D + S is what is left in a prediction. An error of the state at the start goes the
same way, with S = 0 and D = I at the start.
"""

from typing import NamedTuple

import numpy as np

from ..._numba import kernel
from .one_row import backward_row, forward_row, row_memory


class FilterNoise(NamedTuple):
    """Noise of both equations, in scaled units.

    process : (n_states, n_states) covariance of w
    measurement : (n_outputs,) variances of v
    degrees_of_freedom : of v, infinite for a normal distribution
    """

    process: np.ndarray
    measurement: np.ndarray
    degrees_of_freedom: float


class Belief(NamedTuple):
    """What is known of the state of a row.

    mean : (n_states,)
    covariance : (n_states, n_states)
    derivatives : (n_states, n_columns), D above
    """

    mean: np.ndarray
    covariance: np.ndarray
    derivatives: np.ndarray


class Plan(NamedTuple):
    """Which rows are filtered and predicted.

    Y : (n_rows, n_outputs) scaled outputs that the filter takes, NaN for none
    filtered : (n_rows,) bool, rows through which it goes
    last : (n_rows,) int64, the last row of the run ahead that begins in a row, -1 where
        none does
    first : (n_rows,) int64, the first row of this run that is kept
    """

    Y: np.ndarray
    filtered: np.ndarray
    last: np.ndarray
    first: np.ndarray


class Filtered(NamedTuple):
    """Predictions of the rows that a `Plan` names, elsewhere NaN.

    outputs : (n_rows, n_outputs)
    variance : (n_rows, n_outputs) that the covariance of the state gives to them,
        without the noise of the measurement
    S : (n_rows * n_outputs, n_columns) what errors of the parameters, and behind these
        of the state at the start, do to them; zero elsewhere
    innovation, innovation_variance : (n_rows, n_outputs) errors of the outputs that the
        filter takes, each given those before it
    belief : behind the last filtered row, of the row that follows
    """

    outputs: np.ndarray
    variance: np.ndarray
    S: np.ndarray
    innovation: np.ndarray
    innovation_variance: np.ndarray
    belief: Belief


class _Workspace(NamedTuple):
    """Of the next states and of the outputs of a row.

    jacobian : (n_states + n_outputs, n_states), A and C
    derivatives : (n_states + n_outputs, n_columns), A D and C D + S
    product : (n_states, n_states)
    before, gain : (n_states,)
    """

    jacobian: np.ndarray
    derivatives: np.ndarray
    product: np.ndarray
    before: np.ndarray
    gain: np.ndarray


def run_filter(layers, run, covariance, noise, plan):
    """`Filtered` records, without derivatives.

    Parameters
    ----------
    run : state_recursion.StateRun
    covariance : (n_records, n_states, n_states)
        Of the states at the first rows of records.
    noise : FilterNoise
    plan : Plan
    """
    whole = [(slice(0, len(plan.Y)), None)]
    _, filtered = next(filter_by_block(layers, run, covariance, noise, plan, whole))
    return filtered


def filter_by_block(layers, run, covariance, noise, plan, blocks):
    """Yield rows and what is `Filtered` there, block by block.

    Other arguments as of `run_filter`. No run ahead leads from one block to another.

    Parameters
    ----------
    blocks : iterable of (slice, array)
        Rows one behind the other, and the derivatives (n_rows * n_outputs, n_kept) of
        their outputs in a free run by the parameters, None for no derivatives.
    """
    n_outputs, n_states, begun = plan.Y.shape[1], run.initial.shape[1], None
    for rows, of_free_run in blocks:
        n_rows, n_columns = rows.stop - rows.start, 0
        if of_free_run is None:
            of_free_run = np.zeros((n_rows * n_outputs, 0))
        else:
            n_columns = of_free_run.shape[1] + n_states
        if begun is None:
            beliefs = [empty_belief(n_states, n_columns) for _ in range(2)]
            work = _workspace(n_states, n_outputs, n_columns)
            begun = row_memory(layers), work, *beliefs
        scratch, work, probe, belief = begun
        filtered = Filtered(
            *(np.full((n_rows, n_outputs), np.nan) for _ in range(2)),
            np.zeros((n_rows * n_outputs, n_columns)),
            *(np.full((n_rows, n_outputs), np.nan) for _ in range(2)),
            belief,
        )
        part = run._replace(
            X=run.X[rows], begin=run.begin[rows], initial=run.initial[rows]
        )
        records = covariance[np.count_nonzero(run.begin[: rows.start]) :]
        planned = _plan_of(plan, rows)
        arguments = part, records, noise, planned, of_free_run, scratch, work, probe
        # the derivatives of an unstable run may exceed all numbers where it does not
        with np.errstate(all="ignore"):
            _filter_rows(layers, *arguments, filtered)
        yield rows, filtered


def _plan_of(plan, rows):
    """The plan of some rows, counted from the first of them."""
    last = plan.last[rows]
    last = np.where(last >= 0, last - rows.start, last)
    first = plan.first[rows] - rows.start
    return Plan(plan.Y[rows], plan.filtered[rows], last, first)


def empty_belief(n_states, n_columns=0):
    return Belief(
        np.full(n_states, np.nan),
        np.zeros((n_states, n_states)),
        np.zeros((n_states, n_columns)),
    )


def _workspace(n_states, n_outputs, n_columns):
    return _Workspace(
        np.zeros((n_states + n_outputs, n_states)),
        np.zeros((n_states + n_outputs, n_columns)),
        np.zeros((n_states, n_states)),
        *(np.zeros(n_states) for _ in range(2)),
    )


@kernel(helper=True)
def _linearize(layers, run, row, belief, of_free_run, scratch, work):
    """The row at the mean of a belief; False if it diverges or an input is missing."""
    a, delta = scratch.a, scratch.delta
    n_states, n_columns = belief.derivatives.shape
    n_outputs = len(work.jacobian) - n_states
    first = len(a) - len(work.jacobian)
    n_features = len(run.state)
    for i in range(n_features):
        number = run.state[i]
        a[i] = belief.mean[number] if number >= 0 else run.X[row, i]
    forward_row(layers, a, scratch.power, scratch.bits)
    for o in range(len(work.jacobian)):
        limit = run.limits[0] if o < n_states else run.limits[1]
        # a NaN fails this comparison, too
        if not abs(a[first + o]) <= limit:
            return False
    for o in range(len(work.jacobian)):
        delta[first:] = 0.0
        delta[first + o] = 1.0
        backward_row(layers, a, delta)
        work.jacobian[o] = 0.0
        for i in range(n_features):
            if run.state[i] >= 0:
                work.jacobian[o, run.state[i]] = delta[i]
        total = work.derivatives[o]
        total[:] = 0.0
        for p in range(of_free_run.shape[1] if o >= n_states else 0):
            total[p] = of_free_run[row * n_outputs + o - n_states, p]
        for k in range(n_states):
            slope = work.jacobian[o, k]
            for p in range(n_columns):
                total[p] += slope * belief.derivatives[k, p]
    return True


@kernel(helper=True)
def _keep(row, n_states, scratch, belief, work, filtered):
    """The prediction of the row that was linearised last."""
    n_outputs = filtered.outputs.shape[1]
    first = len(scratch.a) - n_outputs
    for o in range(n_outputs):
        filtered.outputs[row, o] = scratch.a[first + o]
        c = work.jacobian[n_states + o]
        variance = 0.0
        for i in range(n_states):
            for j in range(n_states):
                variance += c[i] * belief.covariance[i, j] * c[j]
        filtered.variance[row, o] = variance
        for p in range(filtered.S.shape[1]):
            filtered.S[row * n_outputs + o, p] = work.derivatives[n_states + o, p]


@kernel(helper=True)
def _weight(error, variance, nu):
    """Of an error with Student's t of this variance; 1 for a normal one."""
    if nu == np.inf:
        return 1.0
    return (nu + 1.0) / (nu - 2.0 + error * error / variance)


@kernel(helper=True)
def _update(row, y, scratch, noise, belief, work, filtered):
    """Take the measured outputs of the row linearised last; whether there is one."""
    mean, P, D = belief
    before, gain = work.before, work.gain
    n_states, n_outputs = len(mean), len(y)
    first = len(scratch.a) - n_outputs
    for k in range(n_states):
        before[k] = mean[k]
    for o in range(n_outputs):
        # S alone: what D adds changes with each output
        direct = work.derivatives[n_states + o]
        for k in range(n_states):
            for p in range(D.shape[1]):
                direct[p] -= work.jacobian[n_states + o, k] * D[k, p]
    taken = False
    for o in range(n_outputs):
        if np.isnan(y[o]):
            continue
        taken = True
        c, direct = work.jacobian[n_states + o], work.derivatives[n_states + o]
        error, by_state = y[o] - scratch.a[first + o], 0.0
        for k in range(n_states):
            error -= c[k] * (mean[k] - before[k])
            gain[k] = 0.0
            for j in range(n_states):
                gain[k] += P[k, j] * c[j]
        for k in range(n_states):
            by_state += c[k] * gain[k]
        variance = by_state + noise.measurement[o]
        filtered.innovation[row, o] = error
        filtered.innovation_variance[row, o] = variance
        weight = _weight(error, variance, noise.degrees_of_freedom)
        variance = by_state + noise.measurement[o] / weight
        if not variance > 0.0:
            # nothing is left to learn of a state that is known, without noise
            continue
        for p in range(D.shape[1]):
            slope = direct[p]
            for k in range(n_states):
                slope += c[k] * D[k, p]
            for k in range(n_states):
                D[k, p] -= gain[k] / variance * slope
        for k in range(n_states):
            mean[k] += gain[k] / variance * error
            for j in range(n_states):
                P[k, j] -= gain[k] * gain[j] / variance
    return taken


@kernel(helper=True)
def _go_on(n_states, scratch, noise, work, belief):
    """The belief of the next row, from the row that was linearised last."""
    mean, P, D = belief
    first = len(scratch.a) - len(work.jacobian)
    A, product = work.jacobian, work.product
    for k in range(n_states):
        mean[k] = scratch.a[first + k]
        for p in range(D.shape[1]):
            D[k, p] = work.derivatives[k, p]
        for j in range(n_states):
            product[k, j] = 0.0
            for i in range(n_states):
                product[k, j] += A[k, i] * P[i, j]
    for k in range(n_states):
        for j in range(k + 1):
            total = noise.process[k, j]
            for i in range(n_states):
                total += product[k, i] * A[j, i]
            P[k, j] = total
            P[j, k] = total


@kernel(helper=True)
def _copy(belief, into):
    for k in range(len(belief.mean)):
        into.mean[k] = belief.mean[k]
        for j in range(len(belief.mean)):
            into.covariance[k, j] = belief.covariance[k, j]
        for p in range(belief.derivatives.shape[1]):
            into.derivatives[k, p] = belief.derivatives[k, p]


@kernel(helper=True)
def _begin(mean_given, covariance, belief):
    """A given belief, with its derivatives by itself."""
    mean, P, D = belief
    n_states, n_columns = D.shape
    D[:] = 0.0
    for k in range(n_states):
        mean[k] = mean_given[k]
        for j in range(n_states):
            P[k, j] = covariance[k, j]
        if n_columns:
            D[k, n_columns - n_states + k] = 1.0


@kernel
def _filter_rows(
    layers, run, covariance, noise, plan, of_free_run, scratch, work, probe, filtered
):
    belief = filtered.belief
    n_states = len(belief.mean)
    # a belief is NaN before the first record, and where the rows before were lost
    lost, number = np.isnan(belief.mean[0]), 0
    for row in range(len(plan.Y)):
        if run.begin[row]:
            _begin(run.initial[row], covariance[number], belief)
            lost = False
            number += 1
        last, n_ahead, turn = plan.last[row], 0, 0
        if last > row and not lost:
            _copy(belief, probe)
            n_ahead = last + 1 - row
        n_turns = n_ahead
        if not lost and (plan.filtered[row] or last == row):
            # before and behind its outputs
            n_turns += 2
        # the rows of the run ahead, and then this one: in one loop, each function has
        # one call, and is compiled once
        # bound: turns go up by one at least
        while turn < n_turns:
            is_ahead, is_first = turn < n_ahead, turn == n_ahead
            at, one = (row + turn, probe) if is_ahead else (row, belief)
            if not _linearize(layers, run, at, one, of_free_run, scratch, work):
                lost = not is_ahead
                turn = n_ahead if is_ahead else n_turns
                continue
            is_kept = at >= plan.first[row] if is_ahead else is_first and last == row
            if is_kept:
                _keep(at, n_states, scratch, one, work, filtered)
            goes_on = at < last if is_ahead else plan.filtered[row]
            if is_first and goes_on:
                if _update(row, plan.Y[row], scratch, noise, one, work, filtered):
                    turn += 1
                    continue
            if goes_on:
                _go_on(n_states, scratch, noise, work, one)
            turn = turn + 1 if is_ahead else n_turns
    if lost:
        belief.mean[:] = np.nan


class RowFilter(NamedTuple):
    """A filter that goes from row to row; all memory is taken before.

    run : of one row, whose inputs stand in ``X``
    belief : of the row whose inputs come next, or of the one predicted last
    of_free_run, scratch, work, filtered : memory of the kernels
    """

    layers: NamedTuple
    run: NamedTuple
    noise: FilterNoise
    belief: Belief
    of_free_run: np.ndarray
    scratch: NamedTuple
    work: _Workspace
    filtered: Filtered


def make_row_filter(layers, run, noise):
    """A `RowFilter` of a run of one row, which knows nothing of the state yet."""
    n_states, n_outputs = noise.process.shape[0], len(noise.measurement)
    one = [np.full((1, n_outputs), np.nan) for _ in range(4)]
    belief = empty_belief(n_states)
    filtered = Filtered(*one[:2], np.zeros((n_outputs, 0)), *one[2:], belief)
    return RowFilter(
        layers,
        run,
        noise,
        belief,
        np.zeros((n_outputs, 0)),
        row_memory(layers),
        _workspace(n_states, n_outputs, 0),
        filtered,
    )


@kernel
def predict_row(one, begun):
    """Outputs of the row whose inputs are loaded, in ``one.filtered``; NaN if lost.

    If another row has ``begun`` before, the belief goes on to this one first.
    """
    layers, run, noise, belief, of_free_run, scratch, work, filtered = one
    if begun:
        _go_on(len(belief.mean), scratch, noise, work, belief)
    filtered.outputs[:] = np.nan
    row = np.int64(0)  # a literal would compile the callees once more
    if _linearize(layers, run, row, belief, of_free_run, scratch, work):
        _keep(row, len(belief.mean), scratch, belief, work, filtered)
        return True
    belief.mean[:] = np.nan
    scratch.a[:] = np.nan
    return False


@kernel
def update_row(one, y):
    """Take scaled outputs (n_outputs,) of the row predicted last, NaN where missing."""
    layers, run, noise, belief, of_free_run, scratch, work, filtered = one
    row = np.int64(0)
    taken = _update(row, y, scratch, noise, belief, work, filtered)
    if taken and not _linearize(layers, run, row, belief, of_free_run, scratch, work):
        belief.mean[:] = np.nan
        scratch.a[:] = np.nan


@kernel
def go_on(one):
    """Let the belief go on from the row predicted last to the next one."""
    _go_on(len(one.belief.mean), one.scratch, one.noise, one.work, one.belief)
