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

from ..._sklearn import on_one_blas_thread

# Variance of a unit that is on in half of the rows.
_LARGEST_VARIANCE = 0.25


class Divided(NamedTuple):
    """What `divide` gives."""

    rows: np.ndarray
    """(n, n_units) float32, the means with their signs and weights"""
    vectors: np.ndarray
    """(n_vectors, n_units) float32"""


# also where a fit leaves BLAS more of them: its rounding depends on them
@on_one_blas_thread
def divide(means, n_rows, damping, vectors):
    """Both factors of a gradient by the hidden units, divided by C_h.

    ``means`` (n, n_units) float32 are those of the hidden units at the data, the first
    ``n_rows``, and at the chains; they are divided with the weights of a difference of
    means, 1 / n_rows and -1 / (n - n_rows). ``vectors`` (n_vectors, n_units) are
    divided as they are. To C_h, ``damping`` times the largest variance of a unit is
    added.
    """
    parts = [slice(n_rows), slice(n_rows, None)]
    centres = np.stack([means[part].mean(axis=0) for part in parts])
    rows = np.empty_like(means)
    for part, centre in zip(parts, centres, strict=True):
        np.subtract(means[part], centre, out=rows[part])
        rows[part] *= np.float32(1.0 / np.sqrt(2.0 * len(means[part])))
    # what is left in each row: the states are not their means
    diagonal = (means * (1 - means)).mean(axis=0)
    diagonal += np.float32(damping * _LARGEST_VARIANCE)
    inverse = _by_units if rows.shape[1] <= len(rows) else _by_rows
    rows, others = inverse(diagonal, rows, np.concatenate([centres, vectors]))
    scale = np.float32((1.0 + damping) * _LARGEST_VARIANCE)
    for part, centre, sign in zip(parts, others[:2], (1, -1), strict=True):
        n = len(rows[part])
        rows[part] *= np.float32(np.sqrt(2.0 * n))
        rows[part] += centre
        rows[part] *= scale * np.float32(sign / n)
    return Divided(rows, scale * others[2:])


def _by_units(diagonal, rows, vectors):
    """The rows R and vectors, divided by D + R'R."""
    matrix = rows.T @ rows
    matrix[np.diag_indices(len(matrix))] += diagonal
    both = np.concatenate([rows, vectors])
    divided = cho_solve(_factor(matrix), both.T, check_finite=False).T
    divided = np.ascontiguousarray(divided)
    return divided[: len(rows)], divided[len(rows) :]


def _by_rows(diagonal, rows, vectors):
    """The same where units are more than rows, with M = I + R D^-1 R'.

    The inverse of D + R'R is D^-1 - D^-1 R' M^-1 R D^-1, and the rows times it are
    M^-1 R D^-1: one product gives the rows and serves the vectors.
    """
    root = np.sqrt(diagonal)
    # this product of an array with itself costs half of one with another
    half = rows / root
    matrix = half @ half.T
    matrix[np.diag_indices(len(matrix))] += np.float32(1.0)
    identity = np.eye(len(matrix), dtype=np.float32)
    rows = cho_solve(_factor(matrix), identity, check_finite=False).T @ half
    rows /= root
    vectors = vectors / diagonal - ((vectors / root) @ half.T) @ rows
    return rows, vectors


def _factor(matrix):
    return cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
