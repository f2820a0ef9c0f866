"""Products of states and of probabilities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rbm_models import random_states, transposed_product

from skbayesnn.rbm import states as products
from skbayesnn.rbm import threads


@pytest.mark.parametrize("small", [0, products.SMALL])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_products_of_states_and_of_probabilities(dtype, small, monkeypatch):
    monkeypatch.setattr(products, "SMALL", small)
    V = random_states(30, 9, dtype=dtype)
    if dtype == np.float32:
        V = 0.1 + np.float32(0.7) * V
    rng = np.random.default_rng(0)
    values = rng.normal(size=(9, 4)).astype(np.float32)
    others = rng.normal(size=(30, 4)).astype(np.float32)
    result = products.product(V, values)
    assert result.dtype == np.float32
    assert_allclose(result, V.astype(float) @ values, atol=2e-6)
    # into a part of another array
    whole = np.zeros((40, 4), dtype=np.float32)
    assert_array_equal(products.product(V, values, whole[5:35]), result)
    assert_array_equal(whole[5:35], result)
    assert not whole[:5].any() and not whole[35:].any()
    result = transposed_product(V, others)
    assert result.dtype == np.float32 and result.flags.c_contiguous
    assert_allclose(result, V.T.astype(float) @ others, atol=1e-5)
    result = products.sum_states(V)
    assert result.dtype == np.float32
    assert_allclose(result, V.astype(float).sum(axis=0), rtol=1e-6)
    weights = rng.normal(size=9).astype(np.float32)
    result = products.weigh(V, weights)
    assert result.dtype == np.float32
    assert_allclose(result, V.astype(float) @ weights, atol=2e-6)
    result = products.weigh_transposed(V, others[:, 0].copy())
    assert result.dtype == np.float32
    assert_allclose(result, V.T.astype(float) @ others[:, 0], atol=1e-5)


@pytest.mark.parametrize("small", [0, products.SMALL])
@pytest.mark.parametrize("n_units", [0, 1, 63, 64, 65, 200])
def test_weights_by_feature(n_units, small, eager, monkeypatch):
    monkeypatch.setattr(products, "SMALL", small)
    V = random_states(30, 9, dtype=np.uint8)
    weights = np.random.default_rng(0).normal(size=(n_units, 9)).astype(np.float32)
    transposed = products.by_feature(weights)
    assert_array_equal(transposed.matrix, weights.T, strict=True)
    assert_array_equal(transposed.copy().matrix, weights.T)
    assert_array_equal(transposed.zeros().matrix, np.zeros((9, n_units)))
    expected = V.astype(float) @ weights.T
    for n_threads in (1, 2, 3):
        with threads.using(n_threads):
            for states in (V, V.astype(np.float32)):
                result = products.product(states, transposed)
                assert result.dtype == np.float32
                assert_allclose(result, expected, atol=2e-6)
            plain = products.product(V, np.ascontiguousarray(weights.T))
            assert_array_equal(products.product(V, transposed), plain)


@pytest.mark.parametrize("small", [0, products.SMALL])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_what_comes_after_a_product_sees_its_columns(dtype, small, eager, monkeypatch):
    monkeypatch.setattr(products, "SMALL", small)
    V = random_states(30, 9, dtype=dtype)
    values = np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32)
    x, seen = np.zeros((30, 5), dtype=np.float32), np.zeros((30, 5), dtype=np.float32)

    def then(first, last):
        seen[:, first:last] += x[:, first:last]

    with threads.using(2):
        products.product(V, values, x, then)
    assert_array_equal(seen, x)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("n_columns", [1, 63, 64, 200])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_each_column_of_a_transposed_product_is_given_once(
    dtype, n_columns, n_threads, eager
):
    V = random_states(9, 30, dtype=dtype)
    values = np.random.default_rng(0).normal(size=(9, n_columns)).astype(np.float32)
    seen = np.zeros((30, n_columns))

    def take(part, first, last):
        seen[:, first:last] += part[:, : last - first]
        part[:] = np.nan

    def prepare(first, last):
        twice[:, first:last] *= 2.0

    twice = values.copy()
    with threads.using(n_threads):
        products.give_transposed_product(V, twice, take, prepare)
        assert_allclose(seen, 2.0 * V.T.astype(float) @ values, atol=1e-5)
        seen[:] = 0.0
        products.give_transposed_product(V, values, take)
        assert_array_equal(transposed_product(V, values), seen)


def test_the_size_up_to_which_products_are_plain(monkeypatch):
    taken = []
    for name in ("multiply_small", "_add"):
        way = getattr(products, name)

        def record(*arguments, name=name, way=way):
            taken.append(name)
            return way(*arguments)

        monkeypatch.setattr(products, name, record)
    V = random_states(30, 9, dtype=np.uint8)
    values = np.zeros((9, products.SMALL // V.size), dtype=np.float32)
    products.product(V, values)
    products.product(V, np.hstack([values, values[:, :1]]))
    assert taken == ["multiply_small", "_add"]


def test_draws_do_not_depend_on_whether_inputs_are_given():
    V = random_states(30, 9, dtype=np.uint8)
    rng = np.random.default_rng(0)
    values, bias = rng.normal(size=(9, 21)), rng.normal(size=21)
    values, bias = values.astype(np.float32), bias.astype(np.float32)
    place = np.uint64(1), 2, 3
    drawn = products.draw_from(V, values, bias, place)
    expected = products.draw(products.product(V, values), bias, place)
    assert_array_equal(drawn, expected, strict=True)
    assert 0 < drawn.sum() < drawn.size
