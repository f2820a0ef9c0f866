"""Products with states against plain matrix products.

Also run with bounds checks and without the compiler: sizes stay small.
"""

import numpy as np
import pytest
from grids import first_by_default
from numpy.testing import assert_array_equal
from rbm_kept_inputs import kept

from skbayesnn.rbm.kernels import products as kernels

# n_rows, n_units, n_columns: one of each; groups of four units, of which four make a
# step; blocks of 128 columns; blocks of 256 rows
SHAPES = [
    (1, 1, 1),
    (1, 40, 3),
    (40, 1, 3),
    (5, 40, 1),
    (3, 3, 2),
    (37, 4, 2),
    (37, 15, 2),
    (37, 16, 2),
    (37, 17, 3),
    (50, 33, 5),
    (30, 18, 127),
    (30, 18, 128),
    (30, 18, 129),
    (25, 7, 257),
    (255, 6, 2),
    (256, 6, 2),
    (257, 6, 2),
    (513, 5, 1),
]
DENSITIES = first_by_default([0.0, 0.05, 0.5, 0.3, 1.0], 3)
EMPTY = [(0, 4, 3), (4, 0, 3), (4, 3, 0), (0, 0, 3), (0, 3, 0), (0, 0, 0)]
BOTH = ["Multiplier", "TransposedMultiplier"]


@pytest.fixture(autouse=True)
def _no_warning_of_nan():
    """Without the compiler, NumPy tells of infinity less infinity."""
    with np.errstate(invalid="ignore"):
        yield


@pytest.fixture
def ways(monkeypatch):
    """The ways that products take, in order."""
    taken = []

    def watch(name):
        way = getattr(kernels, name)

        def record(*arguments):
            taken.append(name)
            return way(*arguments)

        monkeypatch.setattr(kernels, name, record)

    watch("_add_rows")
    watch("_add_tables")
    return taken


def random_states(n_rows, n_units, density, seed=0):
    rng = np.random.default_rng((n_rows, n_units, seed))
    # shuffled, so that the share is met as nearly as it can be
    on = np.arange(n_rows * n_units) < round(density * n_rows * n_units)
    return rng.permutation(on).reshape(n_rows, n_units).astype(np.uint8)


def random_values(n_rows, n_columns, seed=1):
    rng = np.random.default_rng((n_rows, n_columns, seed))
    return rng.normal(0.0, 2.0, (n_rows, n_columns)).astype(np.float32)


def factors(kind, shape, density):
    """The states as they are stored and as they are multiplied, and the values."""
    n_rows, n_units, n_columns = shape
    matrix = random_states(n_rows, n_units, density)
    stored = matrix if kind == "Multiplier" else np.ascontiguousarray(matrix.T)
    return stored, matrix, random_values(n_units, n_columns)


def product(kind, states, values):
    n_rows = states.shape[0] if kind == "Multiplier" else states.shape[1]
    n_columns = values.shape[1]
    # nothing is left of what was there
    out = np.full((n_rows, n_columns), np.nan, dtype=np.float32)
    # in two calls, as two threads would make
    for part in [(0, n_columns // 2), (n_columns // 2, n_columns)]:
        multiplier = getattr(kernels, kind)(kept(states))
        multiplier.add(kept(values)[None], out, *part, 0)
    return out


def is_dense(matrix):
    return bool(kernels._is_dense(int(matrix.sum()), *matrix.shape))


def check_product(result, matrix, values):
    """Within the bound of float32 sums of the terms that are on, in any order."""
    matrix, values = matrix.astype(float), values.astype(float)
    n_terms = matrix.sum(axis=1, keepdims=True)
    bound = np.maximum(n_terms - 1.0, 0.0) * 2.0**-24 * (matrix @ np.abs(values))
    # (1 + u)**(n - 1) - 1 < 1.01 (n - 1) u
    assert (np.abs(result - matrix @ values) <= 1.01 * bound).all()


# Products.


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_small_products(shape, density):
    states, matrix, values = factors("Multiplier", shape, density)
    n_units, n_columns = values.shape
    out = np.full((len(matrix), n_columns), np.nan, dtype=np.float32)
    kernels.multiply_small(kept(states), kept(values)[None], out)
    check_product(out, matrix, values)
    # the same in panels of columns, of which the last holds more than is asked for
    panels = np.full((-(-n_columns // 8), n_units, 8), np.nan, dtype=np.float32)
    for k in range(n_columns):
        panels[k // 8, :, k % 8] = values[:, k]
    parts = np.full_like(out, np.nan)
    kernels.multiply_small(kept(states), panels, parts)
    assert_array_equal(parts, out)


@pytest.mark.parametrize("shape", EMPTY)
def test_small_products_of_empty_arrays(shape):
    states, matrix, values = factors("Multiplier", shape, 1.0)
    out = np.full((shape[0], shape[2]), np.nan, dtype=np.float32)
    kernels.multiply_small(states, values[None], out)
    assert_array_equal(out, matrix @ values)


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", BOTH)
def test_products(kind, shape, density):
    states, matrix, values = factors(kind, shape, density)
    result = product(kind, states, values)
    check_product(result, matrix, values)
    # sums of one term are that term
    alone = matrix.sum(axis=1) == 1
    assert_array_equal(result[alone], (matrix @ values)[alone])


@pytest.mark.parametrize("density", [0.05, 0.6])
@pytest.mark.parametrize("kind", BOTH)
def test_products_do_not_depend_on_where_columns_are_split(kind, density):
    states, _, values = factors(kind, (30, 60, 37), density)
    whole, parts = np.empty((2, 30, 37), dtype=np.float32)
    multiplier = getattr(kernels, kind)(states)
    multiplier.add(values[None], whole, 0, 37, 0)
    for cut in range(1, 37):
        for part in [(0, cut), (cut, 37)]:
            multiplier.add(values[None], parts, *part, 0)
        assert_array_equal(parts, whole)
    # into memory for some columns alone
    some = np.full((30, 20), np.nan, dtype=np.float32)
    multiplier.add(values[None], some, 5, 20, 5)
    assert_array_equal(some[:, :15], whole[:, 5:20])
    assert np.isnan(some[:, 15:]).all()


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("shape", SHAPES)
def test_whole_numbers_are_exact(kind, shape):
    for density in [0.1, 0.6]:
        states, matrix, values = factors(kind, shape, density)
        values = np.round(10.0 * values)
        assert_array_equal(product(kind, states, values), matrix @ values)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", BOTH)
def test_each_way_takes_every_shape(monkeypatch, kind, shape, density, dense):
    """Where the other one would be taken, too."""
    monkeypatch.setattr(kernels, "_is_dense", lambda *numbers: dense)
    states, matrix, values = factors(kind, shape, density)
    check_product(product(kind, states, values), matrix, values)


@pytest.mark.parametrize("density", [0.0, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("kind", BOTH)
def test_the_way_depends_on_the_share_that_is_on(ways, kind, density):
    states, matrix, values = factors(kind, (60, 20, 3), density)
    product(kind, states, values)
    assert set(ways) == {"_add_tables" if density >= 0.5 else "_add_rows"}
    assert is_dense(matrix) == (density >= 0.5)


def test_the_share_at_which_tables_are_taken():
    # as long as the additions for 0.08 of the units and 40 more, for each row, and for
    # 3 rows, for each unit
    assert not kernels._is_dense(870, 100, 50)
    assert kernels._is_dense(871, 100, 50)
    for shape in [(0, 0), (0, 5), (5, 0)]:
        assert not kernels._is_dense(0, *shape)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("density", [0.05, 0.6])
def test_the_number_of_additions(kind, density):
    """For each column: units that are on, or a step of four groups for each row."""
    states, matrix, _ = factors(kind, (60, 20, 3), density)
    multiplier = getattr(kernels, kind)(states)
    on, steps = int(matrix.sum()), 2
    expected = 60 * 4 * steps if is_dense(matrix) else on
    assert expected <= multiplier.n_additions <= expected + 1


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("density", [0.05, 0.5, 1.0])
def test_rows_do_not_depend_on_others(kind, density):
    """The same sums in the same order, where the way is the same."""
    states, matrix, values = factors(kind, (300, 18, 5), density)
    whole = product(kind, states, values)
    for part in [slice(0, 100), slice(100, 300), slice(7, 290)]:
        assert is_dense(matrix[part]) == is_dense(matrix)
        some = matrix[part] if kind == "Multiplier" else states[:, part].copy()
        assert_array_equal(product(kind, some, values), whole[part])


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("density", [0.2, 0.6])
def test_columns_do_not_depend_on_others(kind, density):
    states, _, values = factors(kind, (20, 9, 140), density)
    whole = product(kind, states, values)
    for part in [slice(0, 1), slice(0, 128), slice(3, 139)]:
        some = np.ascontiguousarray(values[:, part])
        assert_array_equal(product(kind, states, some), whole[:, part])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("density", [0.2, 0.6])
@pytest.mark.parametrize("kind", BOTH)
def test_a_value_that_is_not_finite_goes_where_its_unit_is_on(kind, density, value):
    """And only there: what is off is not multiplied by 0."""
    states, matrix, values = factors(kind, (60, 19, 131), density)
    assert is_dense(matrix) == (density > 0.5)
    # in the first group, in the last one, which is not full, and in both blocks
    places = [(2, 5), (18, 0), (18, 130), (7, 127)]
    reached = np.zeros((60, 131), dtype=bool)
    for unit, column in places:
        values[unit, column] = value
        reached[:, column] = matrix[:, unit] == 1
    assert 0 < reached[:, 5].sum() < 60 and 0 < reached[:, 130].sum() < 60
    result = product(kind, states, values)
    assert_array_equal(result[reached], np.float32(value))
    values[~np.isfinite(values)] = 0.0
    expected = product(kind, states, values)
    assert_array_equal(result[~reached], expected[~reached])


@pytest.mark.parametrize("density", [0.2, 0.6])
@pytest.mark.parametrize("kind", BOTH)
def test_opposite_infinities_make_a_nan_where_both_are_on(kind, density):
    states, matrix, values = factors(kind, (60, 19, 2), density)
    # of one group of four, and of different ones
    values[4, 0], values[6, 0] = np.inf, -np.inf
    values[1, 1], values[17, 1] = np.inf, -np.inf
    result = product(kind, states, values)
    for column, (up, down) in enumerate([(4, 6), (1, 17)]):
        both = (matrix[:, up] & matrix[:, down]) == 1
        one = (matrix[:, up] ^ matrix[:, down]) == 1
        assert 0 < both.sum() < 60
        assert_array_equal(np.isnan(result[:, column]), both)
        assert_array_equal(np.isinf(result[:, column]), one)


@pytest.mark.parametrize("shape", EMPTY)
@pytest.mark.parametrize("kind", BOTH)
def test_products_of_empty_arrays(kind, shape):
    states, matrix, values = factors(kind, shape, 1.0)
    result = product(kind, states, values)
    assert result.shape == (shape[0], shape[2])
    assert_array_equal(result, np.zeros(result.shape))


# Counts.


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 70), (300, 3), (40, 17)])
def test_counts(shape, density):
    states = random_states(*shape, density)
    counts = np.full(shape[1], np.nan, dtype=np.float32)
    kernels.count_on(kept(states), counts)
    # more of them than a uint8 holds
    assert_array_equal(counts, states.sum(axis=0, dtype=np.int64))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (5, 0), (0, 0)])
def test_counts_of_empty_arrays(shape):
    counts = np.full(shape[1], np.nan, dtype=np.float32)
    kernels.count_on(np.empty(shape, np.uint8), counts)
    assert_array_equal(counts, np.zeros(shape[1]))


# Sums with weights.


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 70), (300, 3), (40, 17)])
def test_weighted_sums(shape, density):
    states = random_states(*shape, density)
    of_units, of_rows = random_values(1, shape[1])[0], random_values(1, shape[0])[0]
    sums = np.full(shape[0], np.nan, dtype=np.float32)
    kernels.weigh_rows(kept(states), kept(of_units), sums)
    check_product(sums[:, None], states, of_units[:, None])
    sums = np.full(shape[1], np.nan, dtype=np.float32)
    kernels.weigh_columns(kept(states), kept(of_rows), sums)
    check_product(sums[:, None], states.T, of_rows[:, None])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_weighted_sums_of_empty_arrays(shape):
    states = np.empty(shape, np.uint8)
    for weigh, n, n_sums in [
        (kernels.weigh_rows, shape[1], shape[0]),
        (kernels.weigh_columns, shape[0], shape[1]),
    ]:
        sums = np.full(n_sums, np.nan, dtype=np.float32)
        weigh(states, np.ones(n, np.float32), sums)
        assert_array_equal(sums, np.zeros(n_sums))
