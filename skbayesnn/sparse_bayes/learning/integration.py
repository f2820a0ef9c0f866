r"""Whether a record may come from a system that integrates.

A linear ARX model with n lags forgets as

.. math:: \det(z^n I - A_1 z^{n-1} - \ldots - A_n) = 0

says. An integrator has the root z = 1. A record with noise only tells that it is near
1, where a slow system has one, too. So what counts is whether the record is long enough
to show that the system forgets: the time constant of the root is compared with a number
of rows. Oscillations, whose roots are complex, come back by themselves.
"""

import numpy as np

from ..records.lags import usual_length
from .realization import can_fit_arx, fit_arx

# Numbers of lags: noise hides an integrator from short ones, few rows from long ones.
# A little of it hides two integrators in a row from ten lags, where rows are dense.
LAGS = (2, 5, 10, 20)
# Of roots of integrators, whose multiples noise may turn into pairs.
LARGEST_ANGLE = 0.01


def may_integrate(U, Y, starts, n_rows):
    """Whether a linear model needs more than ``n_rows`` rows to forget its outputs.

    Parameters
    ----------
    U, Y : (n, n_inputs) and (n, n_outputs) arrays, NaN missing
    starts : (n_sessions + 1,) array
    n_rows : float
        Number of rows in which what integrates loses less than 1 - 1 / e.
    """
    U, Y = _scaled(U), _scaled(Y)
    usual, n_signals = usual_length(starts), U.shape[1] + Y.shape[1]
    lags = [
        lag for lag in LAGS if 3 * lag < usual and can_fit_arx(lag, n_signals, len(Y))
    ] or [1]
    return any(_forgets_in(U, Y, starts, lag) > n_rows for lag in lags)


def _forgets_in(U, Y, starts, lag):
    """The longest time constant in rows; infinite of what grows, 0 without any."""
    _, _, A = fit_arx(U, Y, starts, lag)
    n_outputs = Y.shape[1]
    companion = np.eye(lag * n_outputs, k=-n_outputs)
    companion[:n_outputs] = np.hstack(A)
    roots = np.linalg.eigvals(companion)
    slow = np.abs(roots[np.abs(np.angle(roots)) <= LARGEST_ANGLE])
    modulus = slow.max(initial=0.0)
    if modulus >= 1.0:
        return np.inf
    return -1.0 / np.log(modulus) if modulus > 0.0 else 0.0


def _scaled(Z):
    spread = np.nanstd(Z, axis=0)
    return (Z - np.nanmean(Z, axis=0)) / np.where(spread > 0.0, spread, 1.0)
