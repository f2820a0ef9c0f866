"""Values that no dynamic system shows: codes of missing values, and spikes far off.

A value, or a run of one value, is far off if

- it lies beyond all other values of the signal by more than their range, while they are
  at least 95 % of the rows. A first-order response that keeps more than half of its
  size from row to row has no such gap, since its own decay fills it;
- the steps to the known values before and after it are more than ten times as large as
  any other step between two rows. A run that changes from row to row is no such value:
  a fast response may look like that;
- it has no cause and no effect. What may cause an output is an input in the rows before
  it that is itself unusual, by its value or its step, such as the only pulse of a
  record. An input that is right has an effect on the outputs in the rows behind it.

A signal that mostly keeps one value tells nothing: a pulse may be its first change.
"""

import numpy as np

# Fraction of the values of a signal that may be far off, and known values without which
# a range tells nothing.
FEW, FEWEST_ROWS = 0.05, 20
# Ranges of the other values, and times their largest step, that are far.
GAP, STEP = 1.0, 10.0
# Beyond the range that an input has elsewhere, an output may grow as this power of it.
POWER = 5.0
# Mean changes of so many standard errors are no chance.
CHANCE = 4.0
# Rows between a cause and its effect: a fraction of the record, within bounds.
REACH, SHORTEST, LONGEST = 0.05, 10, 300


def far_outputs(U, Y, starts):
    """Which outputs (n_rows, n_outputs) are far off without a cause among the inputs.

    Parameters
    ----------
    U, Y : (n_rows, n_inputs) and (n_rows, n_outputs), NaN where missing
    starts : (n_sessions + 1,) first rows of the sessions, and n_rows
    """
    far = np.zeros(Y.shape, dtype=bool)
    for column, y in zip(far.T, Y.T, strict=True):
        runs, distance = _isolated_runs(y, starts)
        if len(runs):
            # a logger that fails writes its code in place of all signals
            code = _mark(runs, len(y))[:, None] & (y[:, None] == U)
            caused = _have_causes(runs, distance, np.where(code, np.nan, U), starts)
            # what has no cause in one row is a code in all
            column |= np.isin(y, y[runs[~caused, 0]])
    return far


def far_inputs(U, Y, starts):
    """Which inputs (n_rows, n_inputs) are far off without an effect on the outputs.

    Only codes: of an input that is far off by several values, as by pulses, none is.
    ``Y`` is NaN where an output is missing or wrong.
    """
    far = np.zeros(U.shape, dtype=bool)
    for column, u in zip(far.T, U.T, strict=True):
        runs, _ = _isolated_runs(u, starts)
        if len(np.unique(u[runs[:, 0]])) == 1 and not _have_effect(runs, Y, starts):
            column |= np.isin(u, u[runs[:1, 0]])
    return far


def _usual_range(values):
    """Least and largest of the values that no gap separates; None where none tells."""
    ordered = np.sort(values[np.isfinite(values)])
    few = int(FEW * len(ordered))
    first, last = few, len(ordered) - 1 - few
    if len(ordered) < FEWEST_ROWS or ordered[first] == ordered[last]:
        return None
    # bound: each pass takes a value in, of the few
    while True:
        far = GAP * (ordered[last] - ordered[first])
        if first > 0 and ordered[first] - ordered[first - 1] <= far:
            first -= 1
        elif last + 1 < len(ordered) and ordered[last + 1] - ordered[last] <= far:
            last += 1
        else:
            break
    if len(ordered) - 1 - last + first > few:
        return None
    return ordered[first], ordered[last]


def _isolated_runs(values, starts):
    """Runs of one value that is far off. Missing values are passed over.

    Returns
    -------
    runs : (n_runs, 2), first row of each, and the row behind its end
    distance : (n_runs,) from the other values, in ranges of these
    """
    none = np.zeros((0, 2), dtype=int), np.zeros(0)
    usual = _usual_range(values)
    if usual is None:
        return none
    rows = np.flatnonzero(np.isfinite(values))
    x = values[rows]
    session = np.searchsorted(starts, rows, side="right")
    outside = (x < usual[0]) | (x > usual[1])
    if not outside.any():
        return none
    joined = session[1:] == session[:-1]
    steps, distance = np.abs(np.diff(x)), np.diff(rows)
    inside = joined & ~outside[1:] & ~outside[:-1] & (distance == 1)
    largest = steps[inside].max(initial=0.0)
    # within some rows, no signal changes by more than its range
    most = np.minimum(distance * largest, usual[1] - usual[0])
    # where another run begins: at steps into, out of and between values far off
    begins = np.append(True, ~joined | (outside[1:] != outside[:-1]))
    first = np.flatnonzero(begins)
    stop = np.append(first[1:], len(rows))
    # a step is 0 within a run; at its ends it is far, or there is none
    constant = np.add.reduceat(np.append(0.0, ~begins[1:] & (steps > 0.0)), first) == 0
    is_far = ~joined | (steps > STEP * most)
    is_far = np.concatenate([[True], is_far, [True]])
    has_neighbour = np.concatenate([[False], joined, [False]])
    isolated = outside[first] & constant & is_far[first] & is_far[stop]
    isolated &= has_neighbour[first] | has_neighbour[stop]
    first, stop = first[isolated], stop[isolated]
    distance = np.maximum(usual[0] - x[first], x[first] - usual[1])
    distance /= usual[1] - usual[0]
    return np.column_stack([rows[first], rows[stop - 1] + 1]), distance


def _mark(runs, n_rows):
    """The rows (n_rows,) of runs."""
    change = np.zeros(n_rows + 1)
    np.add.at(change, runs[:, 0], 1.0)
    np.add.at(change, runs[:, 1], -1.0)
    return np.cumsum(change)[:-1] > 0.0


def _have_causes(runs, far, U, starts):
    """Which runs have an unusual input in the rows before them, or among theirs.

    Unusual is what an input or its steps do not show in rows that are near none of the
    runs. The further off an output, by ``far`` (n_runs,) of its ranges, the further off
    is the input that causes it.
    """
    n_rows = len(U)
    reach = _reach(runs, n_rows)
    session = np.searchsorted(starts, runs[:, 0], side="right") - 1
    first = np.maximum(runs[:, 0] - reach, starts[session])
    # the end of a run may be caused in the row behind it
    stop = np.minimum(runs[:, 1] + 1, starts[session + 1])
    near = _mark(np.column_stack([first, stop]), n_rows)
    steps = np.full(U.shape, np.nan)
    steps[1:] = U[1:] - U[:-1]
    steps[starts[:-1]] = np.nan
    beyond = np.zeros(n_rows)
    for signal in np.hstack([U, steps]).T:
        known = np.isfinite(signal)
        elsewhere = signal[known & ~near]
        if len(elsewhere):
            low, high = elsewhere.min(), elsewhere.max()
            outside = np.maximum(low - signal, signal - high)
            outside = np.where(known, np.maximum(outside, 0.0), 0.0)
            relative = np.full(n_rows, np.inf)
            if high > low:
                relative = outside / (high - low)
            beyond = np.maximum(beyond, np.where(outside > 0.0, relative, 0.0))
    windows = zip(first, stop, strict=True)
    furthest = np.array([beyond[slice(*window)].max() for window in windows])
    # from the middle of the range, its ends are half a range away
    return np.log1p(far) <= POWER * np.log1p(2.0 * furthest)


def _reach(runs, n_rows):
    """Rows between cause and effect: so few that enough are left near none of them."""
    reach = min(LONGEST, int(REACH * n_rows), n_rows // (4 * len(runs)))
    return max(SHORTEST, reach)


def _have_effect(runs, Y, starts):
    """Whether outputs change behind runs by more than they do elsewhere.

    Compared are the mean changes from the row before a run on, over some rows, with
    those from any row on.
    """
    session = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    begins = runs[runs[:, 0] > starts[session[runs[:, 0]]], 0] - 1
    for n_rows in range(1, min(_reach(runs, len(Y)), len(Y) - 1) + 1):
        changes = Y[n_rows:] - Y[:-n_rows]
        changes[session[n_rows:] != session[:-n_rows]] = np.nan
        for change in changes.T:
            behind = change[begins[begins < len(change)]]
            behind, known = behind[np.isfinite(behind)], change[np.isfinite(change)]
            if not len(behind):
                continue
            shift = behind.mean() - known.mean()
            if abs(shift) > CHANCE * known.std() / np.sqrt(len(behind)):
                return True
    return False
