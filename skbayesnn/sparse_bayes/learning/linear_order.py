"""How many states a linear model of a record needs, at the least.

A structure with several modes needs two states for each. With fewer, networks of hidden
states miss modes, and a search would give up on them before it tries more. Linear
systems with so many states follow from one ARX model, see `realization`.
"""

import numpy as np

from ..records.lags import usual_length
from ..records.state_runs import without_gaps
from .realization import can_fit_arx, of_responses, responses, states_of

# Lags of the ARX model, and rows that are looked at.
LAGS, ROWS = 15, 2000
# States with which a linear model errs so many times more than with others miss a part
# of the memory, for a network as well. Smaller errors, in deviations, are none.
TOO_FEW, NOTHING = 1.5, 0.02


def least_states(U, Y, starts, numbers):
    """The first of the numbers of states with which a linear model misses nothing.

    Parameters
    ----------
    U, Y : (n_rows, n_inputs) and (n_rows, n_outputs), NaN where missing
    starts : (n_sessions + 1,) first rows of the sessions, and n_rows
    numbers : sorted sequence of int

    Returns
    -------
    n_states : int
        The smallest of them where no linear model can be learned.
    """
    n_rows = min(ROWS, len(U))
    starts = np.append(starts[starts < n_rows], n_rows)
    try:
        U, Y, starts = without_gaps(U[:n_rows], Y[:n_rows], starts)
    except ValueError:
        # no output is known there
        return numbers[0]
    if not U.shape[1]:
        return numbers[0]
    lag, n_signals = min(LAGS, usual_length(starts) // 3), U.shape[1] + Y.shape[1]
    # bound: down to one lag
    while not can_fit_arx(max(lag, 1), n_signals, len(U)):
        lag -= 1
    with np.errstate(all="ignore"):
        U, Y = _scaled(U), _scaled(Y)
        try:
            G = responses(U, Y, starts, max(lag, 1))
            errors = np.array([_error(G, U, Y, starts, n) for n in numbers])
        except np.linalg.LinAlgError:
            # responses that grow without bound have no basis that could be found
            return numbers[0]
    enough = errors <= TOO_FEW * max(errors.min(), NOTHING)
    return numbers[int(enough.argmax())]


def _scaled(values):
    deviation = np.nanstd(values, axis=0)
    return (values - np.nanmean(values, axis=0)) / np.where(deviation > 0, deviation, 1)


def _error(G, U, Y, starts, n_states):
    """Root mean square of a free run: of the system as it is, or damped if better.

    One that was found from noisy rows may be unstable; of one that is lightly damped,
    damping takes away what it remembers. The run begins at rest: were its state there
    learned, many states would follow how a record begins.
    """
    errors = []
    for damped in (False, True):
        system = of_responses(G, U, starts, n_states, damped)
        left = Y - states_of(system, U, starts) @ system.C.T - U @ system.D.T
        error = np.sqrt(np.nanmean((left - np.nanmean(left, axis=0)) ** 2))
        errors.append(error if np.isfinite(error) else np.inf)
    return min(errors)
