"""Inputs that follow from outputs: copies of these, and those of a controller.

A controller with an integral part moves its input by

    u(t) - u(t-1) = k_0 y(t) + k_1 y(t-1) + ... + c,

as long as its set point rests. No noise is in this equation, whatever the system is,
and a fit that learns it predicts the outputs exactly, in held-out rows as well, while
it knows nothing of the system. With the set point among the inputs, this is so where
the set point moves, too.

A system without noise may satisfy a like equation. The inputs themselves, not only
their changes, are then functions of few outputs; or the changes have as many terms as
they have lags. Only a system whose outputs do not depend on the level of an input is
told from a controller by nothing.
"""

import numpy as np

from .lags import complete_rows, make_lags

# Rows of signals in the equation, the same one and those before it: a controller with
# three terms needs three, one more where it answers to the row before.
N_LAGS = 4
# Errors in deviations of a signal: of changes that are exact but for the rounding of a
# file; of what is no function; and times that of the changes, of inputs that are none.
EXACT, NO_FUNCTION, TIMES = 0.01, 0.002, 10.0
# Error of an input that is an output in another unit and rounded; the fraction of it
# that past outputs leave, if it is rounding; and an error that is none.
COPIED, LEFT, NOTHING = 0.005, 0.7, 1e-9
# Changes of the input for each weight, and rows that are looked at.
ROWS_PER_WEIGHT, MOST_ROWS = 4, 2_000


def error_of_function(target, columns):
    """Of the best linear function of the columns, in deviations of the target."""
    target, columns = centred(target), centred(columns)
    left = target - columns @ np.linalg.lstsq(columns, target)[0]
    deviation = target.std()
    return left.std() / deviation if deviation > 0.0 else 0.0


def centred(values):
    """Without their means, and at most 1, so that no square underflows."""
    values = values - values.mean(axis=0)
    largest = np.abs(values).max(axis=0, initial=0.0)
    return values / np.where(largest > 0.0, largest, 1.0)


def inputs_of_controllers(U, Y, starts, error_of=error_of_function):
    """Which inputs (n_inputs,) move by a linear equation of the outputs.

    Parameters
    ----------
    U, Y : (n_rows, n_inputs) and (n_rows, n_outputs), NaN where missing
    starts : (n_sessions + 1,) first rows of the sessions, and n_rows
    error_of : callable
        ``error_of(target, columns)`` as `error_of_function`. A robust one finds
        controllers whose set point moves now and then, too.
    """
    rows = _complete_rows(U, Y, starts)
    found = [_is_of_controller(U, Y, rows, k, error_of) for k in range(U.shape[1])]
    return np.array(found, dtype=bool)


def inputs_computed_from_outputs(U, Y, starts):
    """Which inputs (n_inputs,) are linear functions of the outputs in the same row.

    So is an output that was recorded twice, in other units, or the input of a
    controller that multiplies outputs or states by constants. A system without memory
    and noise cannot be told from these: its output tells the input as well. Of one that
    follows a slow input, past outputs tell the rest.
    """
    found = [_is_computed(U[:, [k]], Y, starts) for k in range(U.shape[1])]
    return np.array(found, dtype=bool)


def _is_computed(u, Y, starts):
    rows = _complete_rows(u, Y, starts)
    u = u[:, 0]
    # at rest, and of a ramp, everything is a function of everything
    rows = rows[u[rows] != u[rows - 1]]
    change = u[rows] - u[rows - 1]
    n_needed = ROWS_PER_WEIGHT * N_LAGS * Y.shape[1]
    if len(np.unique(u[rows])) < n_needed or np.ptp(change) <= np.abs(change[0]) / 2:
        return False
    rows = rows[:: max(1, len(rows) // MOST_ROWS)]
    error = error_of_function(u[rows], Y[rows])
    if error > COPIED:
        return False
    return (
        error < NOTHING or error_of_function(u[rows], _lagged(Y, rows)) > LEFT * error
    )


def _complete_rows(U, Y, starts):
    """Rows that are known, with those before them in the same session."""
    n_before = N_LAGS - 1
    lags = make_lags(U.shape[1], Y.shape[1], n_before, n_before, True)
    return complete_rows(U, Y, lags, starts)


def _is_of_controller(U, Y, rows, k, error_of):
    """Whether the changes of input ``k`` are a function of outputs, and it is none."""
    u, others = U[:, k], np.delete(U, k, axis=1)
    low, high = np.nanmin(u), np.nanmax(u)
    # at the ends of its range, an actuator does not do what the controller says
    free = (low < u[rows]) & (u[rows] < high) & (u[rows] != u[rows - 1])
    rows = rows[free & (low < u[rows - 1]) & (u[rows - 1] < high)]
    n_needed = ROWS_PER_WEIGHT * N_LAGS * (Y.shape[1] + others.shape[1])
    if len(rows) < n_needed:
        return False
    rows = rows[:: max(1, len(rows) // max(MOST_ROWS, n_needed))]
    signals = _lagged(np.hstack([Y, others]), rows)
    change = u[rows] - u[rows - 1]
    error = error_of(change, signals)
    if error > EXACT:
        return False
    none = max(NO_FUNCTION, TIMES * error)
    of_others = error_of(change, _lagged(others, rows))
    return min(of_others, error_of(u[rows], signals)) > none


def _lagged(signals, rows):
    """Signals (n_rows, n_signals) in the rows, and in those before them."""
    return np.hstack([signals[rows - lag] for lag in range(N_LAGS)])
