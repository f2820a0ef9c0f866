"""Sums of softplus in double precision, for enumerations.

Vectorised by LLVM on any processor: there is no call of a mathematical library, and no
conversion between integers and floating point, which needs AVX-512.
"""

import numpy as np

from ..._numba import STRICT, kernel

_LOG2E = 1.4426950408889634
# log(2) in two parts: the first has few enough bits for an exact product
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
# Added to a small number, it leaves the nearest integer in the lowest bits.
_ROUND = 6755399441055744.0  # 1.5 * 2**52
_EXPONENT_BITS = np.int64(52)
_EXPONENT_OF_ONE = np.int64(1023)


@kernel(fastmath=STRICT, helper=True)
def _decay(x):
    """exp(-|x|), to a relative 3e-16; at least exp(-700)."""
    x = x if x < 0.0 else -x
    # a comparison, not max: a NaN must stay one
    x = -700.0 if x < -700.0 else x
    shifted = x * _LOG2E + _ROUND
    k = shifted - _ROUND
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    exponent = np.float64(shifted).view(np.int64) + _EXPONENT_OF_ONE
    power = np.int64(exponent << _EXPONENT_BITS)
    return p * power.view(np.float64)


@kernel(fastmath=STRICT, helper=True)
def _log1p(d):
    """log(1 + d) for d in [0, 1], to a relative 3e-16: 2 atanh(d / (2 + d))."""
    s = d / (2.0 + d)
    t = s * s
    p = 2.0 / 33.0
    p = p * t + 2.0 / 31.0
    p = p * t + 2.0 / 29.0
    p = p * t + 2.0 / 27.0
    p = p * t + 2.0 / 25.0
    p = p * t + 2.0 / 23.0
    p = p * t + 2.0 / 21.0
    p = p * t + 2.0 / 19.0
    p = p * t + 2.0 / 17.0
    p = p * t + 2.0 / 15.0
    p = p * t + 2.0 / 13.0
    p = p * t + 2.0 / 11.0
    p = p * t + 2.0 / 9.0
    p = p * t + 2.0 / 7.0
    p = p * t + 2.0 / 5.0
    p = p * t + 2.0 / 3.0
    p = p * t + 2.0
    return s * p


@kernel
def sum_softplus_of_pairs(x, y, factors, total):
    """``total[i, k]`` becomes the sum over j of factors_j softplus(x_kj + y_ij).

    All arrays are float64; ``x`` is (n_x, n_units), ``y`` (n_y, n_units).
    """
    for i in range(y.shape[0]):
        shift = y[i]
        for k in range(x.shape[0]):
            row, sum_ = x[k], 0.0
            for j in range(row.shape[0]):
                value = row[j] + shift[j]
                positive = value if value > 0.0 else 0.0
                # a NaN fails every comparison: it comes through the decay
                sum_ += factors[j] * (positive + _log1p(_decay(value)))
            total[i, k] = sum_
