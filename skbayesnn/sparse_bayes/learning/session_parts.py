"""Parts of the sessions of a record: their ends, and stretches of equal length."""

import numpy as np


def held_out_rows(starts, fraction):
    """The last rows of every session, as a mask."""
    held_out = np.zeros(starts[-1], dtype=bool)
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        held_out[stop - int(np.ceil(fraction * (stop - start))) : stop] = True
    return held_out


def stretches(starts, n_stretches):
    """The number of the contiguous stretch of its session that each row is in.

    ``n_stretches`` is one number for all sessions, or one for each.
    """
    lengths = np.diff(starts)
    counts = np.broadcast_to(n_stretches, lengths.shape)
    number = [np.arange(n) * k // n for n, k in zip(lengths, counts, strict=True)]
    return np.concatenate(number)
