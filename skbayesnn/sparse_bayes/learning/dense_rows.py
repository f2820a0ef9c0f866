r"""Records whose rows are dense: fits to a fraction of the rows, and then to all.

Where the outputs move little from row to row, neighbouring rows hardly differ, weights
of a step are tiny, and a free run has many rows. So a fit begins with every m-th row,
and means of the inputs over m rows. With all rows, the states go a fraction
:math:`h = 1 / m` of the way in each,

.. math:: x_{t+1} = (1 - h) x_t + h f_x(x_t, u_t),

so that the same weights describe the same system, to first order in h, and keep their
size. The residuals of m rows count as one: the temperature is m times as high.
"""

import numpy as np

# A fraction of the rows is enough where straight lines between them miss the outputs by
# less than this, in standard deviations, and as long as so many rows are left.
NEGLIGIBLE = 0.002
MIN_ROWS = 1000


def choose_fraction(Y, starts):
    """The number m such that every m-th row is enough; 1 where every row counts.

    Lines to missing outputs are left out; every row counts where no line is left.
    """
    every = 1
    # bound: at least MIN_ROWS stay
    while (every + 1) * MIN_ROWS <= len(Y) and _missed(
        Y, starts, every + 1
    ) < NEGLIGIBLE:
        every += 1
    return every


def _missed(Y, starts, every):
    """Largest error of straight lines through every m-th row, over the deviation."""
    errors = []
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        rows = np.arange(start, stop - every)
        middle = every // 2
        part = middle / every
        lines = (1.0 - part) * Y[rows] + part * Y[rows + every]
        errors.append(lines - Y[rows + middle])
    errors = np.concatenate(errors)
    if not np.isfinite(errors).any(axis=0).all():
        return np.inf
    spread = np.maximum(np.nanstd(Y, axis=0), 1e-300)
    return float((np.sqrt(np.nanmean(errors**2, axis=0)) / spread).max())


def take_fraction(U, Y, starts, every):
    """Means of the inputs, outputs and starts of sessions of every m-th row."""
    inputs, outputs, lengths = [], [], []
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        first = np.arange(start, stop, every)
        sums = np.add.reduceat(U[start:stop], first - start, axis=0)
        counts = np.diff(np.append(first, stop))
        inputs.append(sums / counts[:, None])
        outputs.append(Y[first])
        lengths.append(len(first))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return np.concatenate(inputs), np.concatenate(outputs), starts
