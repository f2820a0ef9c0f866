"""Named streams of random numbers: each purpose draws from a stream of its own.

A fit draws one integer from ``random_state``. Every generator of the fit follows from
this seed, from the name of its stream, and from numbers that tell its draws apart (of
an epoch, of a step): what one part draws changes nothing for the others.
"""

import enum

import numpy as np
from sklearn.utils import check_random_state

_MAX_SEED = np.iinfo(np.int32).max


class Stream(enum.IntEnum):
    """What random numbers are drawn for. The values only have to differ."""

    INITIAL_WEIGHTS = 0x1217
    INITIAL_CHAINS = 0xC4A1
    VALIDATION_ROWS = 0x5B117
    MONITORED_ROWS = 0x3041
    UNIT_SEARCH = 0xF3A2
    CHAIN_UPDATES = 0xC0AA
    FINE_TUNING = 0x7E


def draw_seed(random_state):
    """The seed of a fit, from the ``random_state`` of an estimator."""
    return int(check_random_state(random_state).randint(_MAX_SEED))


def generator(seed, stream, *numbers):
    """The generator of a stream."""
    return np.random.default_rng((seed, stream, *numbers))


def derived_seed(seed, stream, *numbers, dtype=np.uint64):
    """A seed for what takes a number in place of a generator."""
    entropy = (seed, stream, *numbers)
    return np.random.SeedSequence(entropy).generate_state(1, dtype)[0]
