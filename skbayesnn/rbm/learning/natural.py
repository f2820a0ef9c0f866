"""The natural gradient of an RBM, by the hidden factor of its Fisher information.

Where two modes of the data are far apart, a unit with small weights grows first along
the direction between them, and so do all others: they become copies of one unit. Each
is then on in one mode and off in the other, whatever else a row says, and what could
tell the copies apart is hardly in the gradient.

The Fisher information of the weights is about C_h x C_v, the covariances of hidden and
visible units (Grosse and Salakhutdinov, 2015). The gradient is divided by the first
factor: what copies have in common is small then, and what tells them apart is large.
The second one would cost more than all the rest, and leaves copies what they are.

C_h is estimated from the rows of the update itself, with the prior of independent units
that are on in half of the rows. Units that are such have a step as without.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

# Variance of a unit that is on in half of the rows.
_LARGEST_VARIANCE = 0.25


class HiddenFisher(NamedTuple):
    """C_h + damping times the largest variance, as diagonal and rows: D + R'R."""

    diagonal: np.ndarray
    """(n_units,) float32"""
    rows: np.ndarray
    """(n_rows, n_units) float32"""
    factor: tuple
    """Cholesky factor of D + R'R, or of I + R D^-1 R' if that is smaller"""
    scale: float


def hidden_fisher(means, n_rows, damping):
    """The factor from the means of data, the first ``n_rows``, and of the chains."""
    rows = np.empty_like(means)
    for part in (slice(n_rows), slice(n_rows, None)):
        some = means[part]
        rows[part] = some - some.mean(axis=0)
        rows[part] *= np.float32(1.0 / np.sqrt(2.0 * len(some)))
    # what is left in each row: the states are not their means
    diagonal = (means * (1 - means)).mean(axis=0)
    diagonal += np.float32(damping * _LARGEST_VARIANCE)
    if rows.shape[1] <= len(rows):
        matrix = rows.T @ rows
        matrix[np.diag_indices(len(matrix))] += diagonal
    else:
        matrix = (rows / diagonal) @ rows.T
        matrix[np.diag_indices(len(matrix))] += np.float32(1.0)
    factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    scale = (1.0 + damping) * _LARGEST_VARIANCE
    return HiddenFisher(diagonal, rows, factor, np.float32(scale))


def divide(fisher, x):
    """Rows (n, n_units) of a gradient, divided by the factor."""
    diagonal, rows, factor, scale = fisher
    if rows.shape[1] <= len(rows):
        return scale * cho_solve(factor, x.T, check_finite=False).T
    x = x / diagonal
    inner = cho_solve(factor, rows @ x.T, check_finite=False)
    return scale * (x - inner.T @ (rows / diagonal))
