"""One unit on many binary rows, packed to one bit per value.

A matrix-vector product is bound by what it reads; this reads 32 times less than one in
float32. Byte g of a row holds its features 8 g to 8 g + 7, the lowest bit first. A bit
is 0 where the value is 1, and 1 where there is nothing to add, including the padding
after the last feature: compilers turn a test for 0 into one masked addition.
``packed`` (n_bytes, n_rows) has the rows last, so that the loops over them vectorise.
``weights`` and ``total`` have 8 n_bytes entries. No sum depends on the number of
threads.
"""

import numpy as np

from ..._numba import STRICT, kernel
from .units import _decay, _softplus

# Rows of a block: their inputs stay in the first cache, and what is summed in float32
# stays short.
_BLOCK = 2048
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
_B0, _B1, _B2, _B3 = np.uint8(1), np.uint8(2), np.uint8(4), np.uint8(8)
_B4, _B5, _B6, _B7 = np.uint8(16), np.uint8(32), np.uint8(64), np.uint8(128)


def pack_rows(V):
    """Pack (n_rows, n_features) values, 0 or 1 of any type."""
    on = V if V.dtype in (np.uint8, np.bool_) else V != 0
    return np.invert(np.packbits(on, axis=1, bitorder="little").T, order="C")


def unpack_rows(packed, n_features):
    """The values as float32, (n_rows, n_features)."""
    V = np.unpackbits(~packed, axis=0, count=n_features, bitorder="little")
    return V.T.astype(np.float32, order="C")


# strict: else the compiler may add the weights in another order where fewer rows are
# left than a vector holds (Numba 0.61 does), and sums depend on the number of threads
@kernel(fastmath=STRICT)
def forward(packed, weights, bias, x, first, last):
    """``x`` (n_rows,) becomes the inputs of a unit for rows ``first`` to ``last``."""
    n_bytes = packed.shape[0]
    for start in range(first, last, _BLOCK):
        stop = min(start + _BLOCK, last)
        out = x[start:stop]
        out[:] = bias
        for g in range(n_bytes):
            # a uint8 at every step: wider integers would make vectors as wide
            row, w = packed[g, start:stop], weights[8 * g : 8 * g + 8]
            w0, w1, w2, w3 = w[0], w[1], w[2], w[3]
            w4, w5, w6, w7 = w[4], w[5], w[6], w[7]
            for i in range(row.size):
                byte, sum_ = row[i], out[i]
                sum_ = sum_ if np.uint8(byte & _B0) else sum_ + w0
                sum_ = sum_ if np.uint8(byte & _B1) else sum_ + w1
                sum_ = sum_ if np.uint8(byte & _B2) else sum_ + w2
                sum_ = sum_ if np.uint8(byte & _B3) else sum_ + w3
                sum_ = sum_ if np.uint8(byte & _B4) else sum_ + w4
                sum_ = sum_ if np.uint8(byte & _B5) else sum_ + w5
                sum_ = sum_ if np.uint8(byte & _B6) else sum_ + w6
                sum_ = sum_ if np.uint8(byte & _B7) else sum_ + w7
                out[i] = sum_


@kernel
def backward(packed, s, total):
    """``total`` (float64) becomes the sum of the rows, each times its ``s`` (float32).

    Sums within a block of rows are float32.
    """
    n_bytes, n_rows = packed.shape
    total[:] = 0.0
    for start in range(0, n_rows, _BLOCK):
        stop = min(start + _BLOCK, n_rows)
        part = s[start:stop]
        for g in range(n_bytes):
            row, out = packed[g, start:stop], total[8 * g : 8 * g + 8]
            t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = _ZERO
            for i in range(row.size):
                byte, value = row[i], part[i]
                t0 += _ZERO if np.uint8(byte & _B0) else value
                t1 += _ZERO if np.uint8(byte & _B1) else value
                t2 += _ZERO if np.uint8(byte & _B2) else value
                t3 += _ZERO if np.uint8(byte & _B3) else value
                t4 += _ZERO if np.uint8(byte & _B4) else value
                t5 += _ZERO if np.uint8(byte & _B5) else value
                t6 += _ZERO if np.uint8(byte & _B6) else value
                t7 += _ZERO if np.uint8(byte & _B7) else value
            out[0] += t0
            out[1] += t1
            out[2] += t2
            out[3] += t3
            out[4] += t4
            out[5] += t5
            out[6] += t6
            out[7] += t7


# strict: else values that are computed one by one may differ from those of a whole
# vector, and which it is depends on where the arrays lie in memory
@kernel(fastmath=STRICT)
def activate(x, softplus, mean):
    """Outputs and mean states of a unit from its inputs, all (n_rows,) float32."""
    for i in range(x.size):
        value = x[i]
        decay = _decay(value)
        softplus[i] = _softplus(value, decay)
        mean[i] = (decay if value < _ZERO else _ONE) / (_ONE + decay)
