"""Streams of random numbers: reproducible, and apart from each other."""

import itertools

import numpy as np
import pytest

from skbayesnn._random import Stream, derived_seed, draw_seed, generator


def test_a_seed_follows_from_the_random_state():
    assert draw_seed(0) == draw_seed(0) != draw_seed(1)
    state = np.random.RandomState(0)
    first, second = draw_seed(state), draw_seed(state)
    assert first == draw_seed(0)
    assert first != second
    assert type(first) is int


def test_a_global_state_is_the_source_of_none():
    np.random.seed(3)  # noqa: NPY002
    first = draw_seed(None)
    np.random.seed(3)  # noqa: NPY002
    assert draw_seed(None) == first


def keys():
    """Seeds, streams and numbers of generators that must all be different."""
    for seed, stream in itertools.product([0, 1, 7], Stream):
        for numbers in [(), (1,), (2,), (1, 1), (1, 2)]:
            yield seed, stream, numbers


def test_no_two_streams_are_the_same():
    draws = [
        tuple(generator(seed, stream, *numbers).integers(2**63, size=2))
        for seed, stream, numbers in keys()
    ]
    seeds = [derived_seed(seed, stream, *numbers) for seed, stream, numbers in keys()]
    assert len(set(draws)) == len(draws)
    assert len(set(seeds)) == len(seeds)


def test_streams_have_different_values():
    assert len({int(stream) for stream in Stream}) == len(Stream.__members__)


def test_the_same_key_gives_the_same_numbers():
    for seed, stream, numbers in keys():
        first, second = (generator(seed, stream, *numbers) for _ in range(2))
        np.testing.assert_array_equal(first.normal(size=3), second.normal(size=3))


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_a_derived_seed_has_the_requested_type(dtype):
    seed = derived_seed(3, Stream.CHAIN_UPDATES, 4, dtype=dtype)
    assert seed.dtype == dtype
    assert seed == derived_seed(3, Stream.CHAIN_UPDATES, 4, dtype=dtype)
