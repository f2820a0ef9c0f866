"""Rows of data and of chains about their means, as factors of a covariance.

All arrays are float32 and C-contiguous; the first ``n_rows`` rows are of data, the
others of chains. Sums are in their order: results do not depend on the width of
vectors.
"""

import numpy as np

from ..._numba import STRICT, full_width, kernel

_ONE = np.float32(1.0)


@kernel(fastmath=STRICT, allocates=True)
def centre_rows(means, n_rows, damping, whiten, rows, centres, diagonal):
    """The covariance of states with these means as diag(diagonal) + rows' rows.

    It is half that of the data and half that of the chains, about their means
    ``centres`` (2, n_units). ``diagonal`` becomes the mean variance m (1 - m) of a
    state given its row, and ``damping``. With ``whiten``, ``rows`` are divided by its
    root.
    """
    full_width()
    n_units = diagonal.size
    centres[:] = np.float32(0.0)
    diagonal[:] = np.float32(0.0)
    for i in range(means.shape[0]):
        row, centre = means[i], centres[0 if i < n_rows else 1]
        for j in range(n_units):
            centre[j] += row[j]
            diagonal[j] += row[j] * (_ONE - row[j])
    share = np.float32(1.0 / means.shape[0])
    for j in range(n_units):
        diagonal[j] = share * diagonal[j] + damping
        centres[0, j] *= np.float32(1.0 / n_rows)
        centres[1, j] *= np.float32(1.0 / (means.shape[0] - n_rows))
    scale = np.ones(n_units, dtype=np.float32)
    if whiten:
        for j in range(n_units):
            scale[j] = _ONE / np.sqrt(diagonal[j])
    for i in range(means.shape[0]):
        is_data = i < n_rows
        n = n_rows if is_data else means.shape[0] - n_rows
        part = np.float32(1.0 / np.sqrt(2.0 * n))
        row, new, centre = means[i], rows[i], centres[0 if is_data else 1]
        for j in range(n_units):
            new[j] = part * scale[j] * (row[j] - centre[j])


@kernel(fastmath=STRICT)
def weigh_about_centres(rows, n_rows, scale, centres):
    """Undo the centring, and weigh by 1 / n_rows data, by -1 / their number chains.

    ``rows`` are those of `centre_rows` after a linear map, ``centres`` as well.
    ``scale`` (n_units,) is a factor of the rows alone.
    """
    full_width()
    for i in range(rows.shape[0]):
        is_data = i < n_rows
        n = n_rows if is_data else rows.shape[0] - n_rows
        weight = np.float32(1.0 / n if is_data else -1.0 / n)
        part = weight * np.float32(np.sqrt(2.0 * n))
        row, centre = rows[i], centres[0 if is_data else 1]
        for j in range(row.size):
            row[j] = part * scale[j] * row[j] + weight * centre[j]
