"""Activations: accuracy, and values that are not finite."""

import math

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from random_networks import CODES

from skbayesnn.sparse_bayes.kernels import activations
from skbayesnn.sparse_bayes.kernels.activations import BLOCK

EPS = np.finfo(float).eps


def apply_many(activation, values):
    """`activate_many` on a copy."""
    h = np.array(values)
    power, bits = activations.activation_workspace(len(h))
    activations.activate_many(CODES[activation], h, power, bits)
    return h


def ladder(lowest=-320):
    """Magnitudes from denormal to huge, dense where tanh bends, both signs."""
    magnitudes = np.concatenate(
        [10.0 ** np.arange(lowest, 300, 10), np.linspace(0.0, 24.0, 700), [1e308]]
    )
    return np.concatenate([magnitudes, -magnitudes])


def ulps(values, reference):
    """Error in units in the last place of the reference, itself in long double."""
    spacing = np.spacing(np.abs(reference.astype(float)))
    return np.abs((values - reference) / spacing).astype(float)


def test_many_tanh_are_accurate_to_a_few_ulp():
    x = ladder()
    reference = np.tanh(x.astype(np.longdouble))
    with np.errstate(over="ignore"):
        found = apply_many("tanh", x)
    assert ulps(found, reference).max() < 4.0
    assert np.abs(found).max() <= 1.0
    assert_array_equal(np.sign(found), np.sign(x))


def test_many_tanh_are_accurate_at_random_points():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(2000) * 10.0 ** rng.uniform(-8.0, 1.0, size=2000)
    assert ulps(apply_many("tanh", x), np.tanh(x.astype(np.longdouble))).max() < 4.0


def test_many_logistic():
    x = np.linspace(-60.0, 60.0, 601)
    reference = 1.0 / (1.0 + np.exp(-x))
    # built from a tanh around 1/2: accurate beside 1, not relative to itself
    assert_allclose(apply_many("logistic", x), reference, rtol=0.0, atol=2.0 * EPS)
    assert_array_equal(apply_many("logistic", np.array([-1e308, 1e308])), [0.0, 1.0])


def test_many_relu():
    x = ladder()
    assert_array_equal(apply_many("relu", x), np.maximum(x, 0.0))


@pytest.mark.parametrize(
    "activation, low, high",
    [("tanh", -1.0, 1.0), ("relu", 0.0, np.inf), ("logistic", 0.0, 1.0)],
)
def test_many_at_nan_and_infinity(activation, low, high):
    values = np.zeros(BLOCK)
    values[[3, 10, 20, 63]] = [np.nan, -np.inf, np.inf, -np.nan]
    with np.errstate(all="ignore"):
        found = apply_many(activation, values)
    assert np.isnan(found[[3, 63]]).all()
    assert_array_equal(found[[10, 20]], [low, high])
    others = np.delete(found, [3, 10, 20, 63])
    assert_array_equal(others, naive.activate(activation, np.zeros(BLOCK - 4)))


@pytest.mark.parametrize("activation", CODES)
def test_single_values(activation):
    code = CODES[activation]
    for h in [-700.0, -3.0, -1e-9, 0.0, 1e-9, 0.7, 3.0, 700.0]:
        a = activations.activate(code, h)
        assert_allclose(a, naive.activate(activation, h), rtol=4 * EPS, atol=0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            expected = naive.slope(activation, h)
        if abs(h) < 100.0:
            assert_allclose(activations.slope(code, a), expected, atol=2 * EPS)
    assert math.isnan(activations.activate(code, np.nan))
    ends = [activations.activate(code, sign * np.inf) for sign in (-1, 1)]
    limits = {"tanh": [-1.0, 1.0], "relu": [0.0, np.inf], "logistic": [0.0, 1.0]}
    # exp(inf) is exact, so even the logistic function reaches its limits
    assert ends == limits[activation]


@pytest.mark.parametrize("activation", CODES)
def test_slope_block_agrees_with_single_slopes(activation):
    rng = np.random.default_rng(0)
    a = naive.activate(activation, rng.standard_normal(BLOCK))
    delta = rng.standard_normal(BLOCK)
    expected = [
        d * activations.slope(CODES[activation], x)
        for x, d in zip(a, delta, strict=True)
    ]
    activations.slope_block(CODES[activation], a, delta)
    assert_allclose(delta, expected, rtol=4 * EPS)


@pytest.mark.parametrize("activation", CODES)
def test_many_and_single_activations_agree(activation):
    x = np.linspace(-8.0, 8.0, 101)
    single = [activations.activate(CODES[activation], h) for h in x]
    assert_allclose(apply_many(activation, x), single, rtol=0.0, atol=4 * EPS)


@pytest.mark.parametrize("n", [0, 1, 5, BLOCK, BLOCK + 1])
@pytest.mark.parametrize("activation", CODES)
def test_only_so_many_are_activated(activation, n):
    h = np.linspace(-2.0, 2.0, n + 3)
    expected = h.copy()
    expected[:n] = naive.activate(activation, h[:n])
    workspace = activations.activation_workspace(n)
    activations.activate_many(CODES[activation], h[:n], *workspace)
    assert_allclose(h, expected, rtol=1e-14)
    assert_array_equal(h[n:], expected[n:])


@pytest.mark.parametrize("n", [1, BLOCK])
def test_workspace_is_one_memory_seen_twice(n):
    power, bits = activations.activation_workspace(n)
    power[:] = 1.0
    assert power.shape == bits.shape == (n,)
    assert (bits == 1023 << 52).all()
