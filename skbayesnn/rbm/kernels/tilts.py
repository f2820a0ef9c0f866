"""Independent visible units under a tilt: what a new hidden unit makes of them.

``inputs`` (n_draws, n_features) float32 are the inputs of the visible units at some
hidden states, biases included. A hidden unit of weights w adds t w to them, where t is
one of two ``tilts``.
"""

import math

import numpy as np

from ..._numba import STRICT, full_width, kernel
from .units import _decay, _logistic

# Features whose factors 1 + exp(-|x|), at most 2, are multiplied before a logarithm is
# taken, and whose positive inputs are summed in float32.
_BLOCK = 64
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


@kernel
def log_normalisers(inputs, weights, tilts, total, first, last):
    """``total[i, k]`` becomes the sum over features of softplus(a_ij + t_k w_j).

    For the draws ``first`` to ``last``; ``total`` (n_draws, 2) is float64.
    """
    full_width()
    low, high = tilts[0], tilts[1]
    for i in range(first, last):
        row, of_low, of_high = inputs[i], 0.0, 0.0
        for start in range(0, row.size, _BLOCK):
            a, w = row[start : start + _BLOCK], weights[start : start + _BLOCK]
            sum_low, sum_high = _ZERO, _ZERO
            product_low, product_high = _ONE, _ONE
            for j in range(a.size):
                x, y = a[j] + low * w[j], a[j] + high * w[j]
                sum_low += max(x, _ZERO)
                sum_high += max(y, _ZERO)
                product_low *= _ONE + _decay(x)
                product_high *= _ONE + _decay(y)
            of_low += np.float64(sum_low) + math.log(np.float64(product_low))
            of_high += np.float64(sum_high) + math.log(np.float64(product_high))
        total[i, 0], total[i, 1] = of_low, of_high


@kernel(fastmath=STRICT)
def weighted_means(inputs, weights, tilts, fractions, total, first, last):
    """``total[k, j]`` becomes the sum over draws of f_ik / (1 + exp(-a_ij - t_k w_j)).

    For the features ``first`` to ``last``; ``fractions`` (n_draws, 2) are float32,
    ``total`` (2, n_features) is float64.
    """
    full_width()
    low, high = tilts[0], tilts[1]
    w, of_low, of_high = weights[first:last], total[0, first:last], total[1, first:last]
    of_low[:] = 0.0
    of_high[:] = 0.0
    for i in range(inputs.shape[0]):
        row, f_low, f_high = inputs[i, first:last], fractions[i, 0], fractions[i, 1]
        for j in range(row.size):
            of_low[j] += np.float64(f_low * _logistic(row[j] + low * w[j]))
            of_high[j] += np.float64(f_high * _logistic(row[j] + high * w[j]))
