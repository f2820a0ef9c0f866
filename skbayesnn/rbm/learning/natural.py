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
from scipy.linalg.blas import ssymm as symm
from scipy.linalg.lapack import spotrf as potrf
from scipy.linalg.lapack import spotri as potri

from ..._sklearn import on_one_blas_thread
from ..kernels.centring import centre_rows, weigh_about_centres

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
    added. Raises LinAlgError where C_h is not finite.
    """
    n, n_units = means.shape
    if not n_units:
        # LAPACK refuses empty matrices
        return Divided(means, vectors)
    rows, centres = np.empty_like(means), np.empty((2, n_units), dtype=np.float32)
    diagonal = np.empty(n_units, dtype=np.float32)
    by_rows = n_units > n
    shift = np.float32(damping * _LARGEST_VARIANCE)
    centre_rows(means, n_rows, shift, by_rows, rows, centres, diagonal)
    # the size of the step is that of independent units with the largest variance
    size = np.float32((1.0 + damping) * _LARGEST_VARIANCE)
    others = size * np.concatenate([centres, vectors])
    inverse = _by_rows if by_rows else _by_units
    rows, others, scale = inverse(diagonal, rows, others)
    weigh_about_centres(rows, n_rows, size * scale, others[:2])
    return Divided(rows, others[2:])


def _by_units(diagonal, rows, vectors):
    """Rows R and vectors divided by D + R'R, and a factor that the rows still lack."""
    matrix = rows.T @ rows
    matrix.flat[:: len(matrix) + 1] += diagonal
    both = np.concatenate([rows, vectors])
    # LAPACK's arrays are the transposed ones: nothing is copied. By the inverse, this
    # takes a tenth to nine tenths of the time that it takes by the factor
    both = symm(1.0, _inverse(matrix), both.T, lower=True).T
    return both[: len(rows)], both[len(rows) :], np.ones_like(diagonal)


def _by_rows(diagonal, rows, vectors):
    """The same where units are more than rows, with M = I + R D^-1 R'.

    The inverse of D + R'R is D^-1 - D^-1 R' M^-1 R D^-1, and the rows times it are
    M^-1 R D^-1: one product gives the rows and serves the vectors. Here ``rows`` are
    R D^-1/2.
    """
    scale = np.float32(1.0) / np.sqrt(diagonal)
    # this product of an array with itself costs half of one with another
    matrix = rows @ rows.T
    matrix.flat[:: len(matrix) + 1] += np.float32(1.0)
    divided = symm(1.0, _inverse(matrix), rows.T, side=1, lower=True).T
    vectors = scale * vectors
    vectors = scale * (vectors - (vectors @ rows.T) @ divided)
    return divided, vectors, scale


def _inverse(matrix):
    """The inverse, in the lower triangle of an array in Fortran's order."""
    factor, info = potrf(matrix.T, lower=True, clean=False, overwrite_a=True)
    if info:
        raise np.linalg.LinAlgError("the covariance is not positive definite")
    return potri(factor, lower=True, overwrite_c=True)[0]
