r"""Dead times: for how many rows each input has no effect on the outputs.

A linear model predicts one step from the last lags of the outputs and from a block of
consecutive lags of each input. The block of one input is moved along its past while the
others stay, and the sum of squared residuals, S(d) for a block behind d rows, tells
where its effect begins: of all places that the record cannot tell from the best one,

    n log S(d) <= n min_d log S(d) + 2 log(n p),

with n rows and p places, the first is taken. An input without an effect, or with one
that comes at once, has 0.
"""

import numpy as np

from ..records.lags import (
    Lags,
    build_lag_matrix,
    complete_rows,
    n_complete_before,
    usual_length,
)

# Lags of the outputs, and of each block. A shorter dead time lies within the block.
BLOCK = 5
# Farther back no block is moved, nor beyond a quarter of the sessions.
LONGEST = 300
# Rows that are looked at, at most, and per regressor at least.
MOST_ROWS, ROWS_PER_WEIGHT = 4000, 8
# What a constant column varies, relative to its size.
ROUNDING = 1e-12
# Times that the blocks of all inputs are moved in turn.
N_SWEEPS = 2


def dead_times(U, Y, starts, longest=LONGEST):
    """The dead time of each input, in rows.

    Parameters
    ----------
    U, Y : (n_rows, n_inputs) and (n_rows, n_outputs)
    starts : (n_sessions + 1,)
    longest : int
        The longest to look for.

    Returns
    -------
    times : tuple of int of length n_inputs
        Numbers of at most `BLOCK` are 0. Empty if all are, or if rows are too few.
    """
    n_inputs = U.shape[1]
    longest = min(longest, LONGEST, usual_length(starts) // 4)
    if not n_inputs or longest <= BLOCK:
        return ()
    seen = _Seen(U, Y, starts, longest)
    if len(seen.rows) < ROWS_PER_WEIGHT * BLOCK * (n_inputs + Y.shape[1]):
        return ()
    times = [0] * n_inputs
    for _ in range(N_SWEEPS):
        before = list(times)
        for signal in range(n_inputs):
            times[signal] = _first_place(*seen.moved(signal, times))
        if times == before:
            break
    times = tuple(time if time > BLOCK else 0 for time in times)
    return times if any(times) else ()


class _Seen:
    """Rows of a record with all lags that blocks may reach."""

    def __init__(self, U, Y, starts, longest):
        self.U, self.Y, self.longest = U, Y, longest
        self.signals = U.shape[1], Y.shape[1]
        n_inputs, n_outputs = self.signals
        own = np.repeat(n_inputs + np.arange(n_outputs), BLOCK)
        lag = np.tile(1 + np.arange(BLOCK), n_outputs)
        rows = complete_rows(U, Y, Lags(own, lag, *self.signals), starts)
        before = n_complete_before(U, Y[:, :0], starts)
        read = np.isfinite(U).all(axis=1) & (before >= longest + BLOCK - 1)
        rows = rows[read[rows]]
        self.rows = rows[:: -(-len(rows) // MOST_ROWS)] if len(rows) else rows

    def lags(self, signal, first, n=BLOCK):
        """Columns of n lags of a signal from the first on."""
        lag = first + np.arange(n)
        lags = Lags(np.full(n, signal), lag, *self.signals)
        return build_lag_matrix(self.U, self.Y, lags, self.rows)

    def moved(self, signal, times):
        """All lags of an input, and the outputs, without what is known linearly.

        Known are the lags of the outputs, and the blocks of the other inputs.
        """
        n_inputs, n_outputs = self.signals
        known = [self.lags(n_inputs + k, 1) for k in range(n_outputs)]
        known += [
            self.lags(other, time)
            for other, time in enumerate(times)
            if other != signal
        ]
        known = _unit(np.hstack(known))
        past = self.lags(signal, 0, self.longest + BLOCK)
        both = _unit(np.hstack([past, self.Y[self.rows]]))
        basis = np.linalg.qr(known[:, known.any(axis=0)])[0]
        left = both - basis @ (basis.T @ both)
        return left[:, : past.shape[1]], left[:, past.shape[1] :]


def _first_place(past, targets):
    """Rows before the first block that explains the targets as well as any."""
    n_rows = len(past)
    gram, product = past.T @ past, past.T @ targets
    total = np.sum(targets**2)
    if not total > 0.0:
        return 0
    n_places = past.shape[1] - BLOCK + 1
    explained = np.empty(n_places)
    for place in range(n_places):
        block = slice(place, place + BLOCK)
        weights = np.linalg.lstsq(gram[block, block], product[block])[0]
        explained[place] = np.sum(weights * product[block])
    rest = np.maximum(1.0 - explained / total, 1e-12)
    # the best of many places is ahead by chance
    chance = 2.0 * np.log(n_rows * n_places)
    behind = n_rows * np.log(rest / rest.min())
    return int(np.argmax(behind <= chance))


def _unit(columns):
    """Columns of mean 0 and norm 1; constant ones are 0."""
    centred = columns - columns.mean(axis=0)
    scale = np.linalg.norm(centred, axis=0)
    varies = scale > ROUNDING * np.linalg.norm(columns, axis=0)
    return np.where(varies, centred / np.where(varies, scale, 1.0), 0.0)
