"""Grids of parameters, of which a part is enough by default."""

from itertools import product

import pytest


def each_value_once(**axes):
    """The arguments of `parametrize` for all combinations of the values of some axes.

    Those that are needed to have each value once are run by default, the others with
    the slow tests.
    """
    n_cases = max(len(values) for values in axes.values())
    by_default = {
        tuple(k % len(values) for values in axes.values()) for k in range(n_cases)
    }
    cases = []
    for places in product(*[range(len(values)) for values in axes.values()]):
        values = [axes[name][k] for name, k in zip(axes, places, strict=True)]
        marks = [] if places in by_default else [pytest.mark.slow]
        cases.append(pytest.param(*values, marks=marks, id=name_of(values)))
    return tuple(axes), cases


def first_by_default(values, n=1):
    """The values for `parametrize`, all but the first n with the slow tests."""
    values = list(values)
    return [*values[:n], *[pytest.param(v, marks=pytest.mark.slow) for v in values[n:]]]


def without_by_default(left_out, values):
    """The values for `parametrize`, those that are left out with the slow tests."""
    return [
        pytest.param(value, marks=[pytest.mark.slow] * (value in left_out))
        for value in values
    ]


def mostly_pandas():
    """For the fixture `frames`, where both libraries have the code in common."""
    libraries = ["pandas", pytest.param("polars", marks=pytest.mark.slow)]
    return pytest.mark.parametrize("frames", libraries, indirect=True)


def name_of(values):
    """Names of groups are joined by +."""
    return "-".join(
        "+".join(value)
        if isinstance(value, tuple) and all(isinstance(one, str) for one in value)
        else getattr(value, "__name__", str(value))
        for value in values
    )
