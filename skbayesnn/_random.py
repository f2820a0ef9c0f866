"""Named streams of random numbers: each purpose has a separate stream.

A fit draws one integer from ``random_state``. Every generator of the fit follows from
this seed, the name of its stream, and numbers that distinguish its draws (those of an
epoch or a step): no part of a fit changes the random numbers of another.
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
    EPOCH_ORDER = 0xE90C
    EPOCH_CHAINS = 0xE9C4
    CORRECTIVE_ORDER = 0xC00C
    CORRECTIVE_CHAINS = 0xC0C4
    FORWARD_ANNEALING = 0xF0A1
    RESAMPLING = 0x5A3E
    REVERSE_ANNEALING = 0x2EA1
    ANNEALING_ROUND = 0xA240
    REVERSE_STARTS = 0x57A2
    ANNEALED_SAMPLES = 0xA5A1
    LISTED_SAMPLES = 0x115A
    GIBBS_CHAINS = 0x61B5
    BASE_RATES = 0xBA5E
    TRACKING = 0x72AC
    MIXING = 0x313C
    SWAPS = 0x5A2B
    LONE_STATES = 0x10AE
    SAMPLE_WEIGHTS = 0x5A3B
    JUMPS = 0x1A3B
    ROW_WEIGHTS = 0x2031
    ROW_ROUNDS = 0x2032
    MISSING_VALUES = 0x3155
    PROPORTIONS = 0x9209


def draw_seed(random_state):
    """The seed of a fit, from the ``random_state`` of an estimator or a method."""
    try:
        source = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            "random_state must be an integer from 0 to 2**32 - 1, a RandomState "
            f"instance or None; got {random_state!r}."
        ) from error
    return int(source.randint(_MAX_SEED))


def generator(seed, stream, *numbers):
    """The generator of a stream."""
    return np.random.default_rng((seed, stream, *numbers))


def derived_seed(seed, stream, *numbers, dtype=np.uint64):
    """A seed for what takes a number in place of a generator."""
    entropy = (seed, stream, *numbers)
    return np.random.SeedSequence(entropy).generate_state(1, dtype)[0]
