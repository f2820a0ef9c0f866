"""Random numbers that depend on their place, not on the order in which they are drawn.

The uniform number of a unit is a hash of (seed, step, row, unit). There is no
state between two numbers, so the loop over units vectorises, and numbers do not change
if rows are split over threads or machines.
"""

import numpy as np

from ..._numba import kernel

# steps and rows below 2**32 have keys of their own
_STEP_STRIDE = np.uint64(2**32 + 15)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel(helper=True)
def row_key(seed, step, row):
    """64 random bits for a row: the finaliser of SplitMix64 on its place."""
    place = np.uint64(step) * _STEP_STRIDE + np.uint64(row) + np.uint64(1)
    z = np.uint64(seed) + _GOLDEN * place
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel(helper=True)
def _mix(x):
    """A bijection of 32 bits in which every input bit flips each output bit."""
    x = np.uint32(x ^ (x >> np.uint32(16)))
    x = np.uint32(x * np.uint32(0x7FEB352D))
    x = np.uint32(x ^ (x >> np.uint32(15)))
    x = np.uint32(x * np.uint32(0x846CA68B))
    return np.uint32(x ^ (x >> np.uint32(16)))


@kernel(helper=True)
def uniform(low, high, unit):
    """A number inside (0, 1) from the two halves of a row's key.

    It is an odd multiple of 2**-24: neither a unit of mean 0 nor one of mean 1 ever
    errs. The second half enters between two rounds, so that rows whose first halves
    are near each other do not share numbers.
    """
    bits = _mix(np.uint32(_mix(np.uint32(np.uint32(unit) ^ low)) + high))
    odd = np.int32((bits >> np.uint32(9)) << np.uint32(1)) + np.int32(1)
    return np.float32(odd) * np.float32(2.0**-24)
