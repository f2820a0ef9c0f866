"""The hidden states that rows of data have: a distribution close to the model's.

For a standard RBM, with the visible states summed out,

    log p(h) = b . h + sum_i softplus(a_i + (h W)_i) - log Z.

The mean q(h) over rows of p(h | v) can be drawn from, and its probabilities are known.
It has all modes of the data, at any distance, each as often as the rows do.
"""

import numpy as np

from .kernels import units as kernels


def summed_out(rbm, y):
    """Log p(h) + log Z - b . h, with ``y`` the products of h and the weights."""
    total, ones = np.empty(len(y)), np.ones(y.shape[1], dtype=np.float32)
    kernels.softplus_sum(y, rbm.visible, ones, total)
    return total


def summed_out_given(rbm, y, clamp):
    """The same with some visible states held, whose probability is not summed out."""
    inputs = y + rbm.visible
    free = np.logaddexp(np.float32(0.0), inputs)
    terms = np.where(clamp.mask, clamp.values * inputs, free)
    return terms.sum(axis=1, dtype=np.float64)


class RowMixture:
    """q(h), the mean over some rows of p(h | v).

    ``x`` (n_rows, n_units) float32 are the inputs of the hidden units of a standard
    RBM, without their biases, at these rows.
    """

    def __init__(self, rbm, x):
        self._x, self._biases = x, rbm.hidden
        ones = np.ones(x.shape[1], dtype=np.float32)
        self._normalisers = np.empty(len(x))
        kernels.softplus_sum(x, rbm.hidden, ones, self._normalisers)

    def draw(self, rows, place):
        """Hidden states of some rows; ``place``: the seed and the number of a draw."""
        x = self._x[rows]
        states = np.empty(x.shape, dtype=np.uint8)
        kernels.sample_units(x, self._biases, *place, 0, states, 0, x.shape[1])
        return states

    def log_excess(self, h):
        """b . h - log q(h) of some states, where b are the hidden biases.

        Of log p(h | v) = x . h + b . h - log of the normaliser, b . h is in log p(h),
        too.
        """
        log_q = np.empty(len(h))
        kernels.log_sum_exp(h.astype(np.float32) @ self._x.T, self._normalisers, log_q)
        return np.log(len(self._x)) - log_q
