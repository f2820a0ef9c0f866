"""Inputs of kernels, which a kernel may read and must not change.

They are writable, as those of the package are: for arrays that are read-only, each
kernel would have to be compiled once more.
"""

from numpy.testing import assert_array_equal

_GIVEN = []


def kept(array):
    """A copy of an array, whose values the end of the test compares."""
    given = array.copy()
    _GIVEN.append((given, array.copy()))
    return given


def assert_kept():
    """All such copies have the values that they had."""
    given = _GIVEN.copy()
    _GIVEN.clear()
    for array, before in given:
        assert_array_equal(array, before, strict=True)
