"""The passes of the restricted Boltzmann machine against their slow references.

Also run with bounds checks and without the compiler: sizes stay small.
"""

import naive
import numba
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rbm_kept_inputs import kept
from scipy.special import ndtri
from scipy.stats import chi2

from skbayesnn.rbm.kernels import uniforms as random
from skbayesnn.rbm.kernels import units as kernels

# n_rows, n_units: one of each, around the block of float32 sums, and two blocks
SHAPES = [(1, 1), (1, 70), (3, 1), (2, 63), (2, 64), (3, 65), (2, 130)]
# A draw may differ from its reference where u is so near to p: p is float32, and
# |x| p (1 - p) < 0.28, so the rounding of the input moves it by less than its own.
ROUNDING = 4.0 * 2.0**-24
# of one float32 value, and of a float32 sum of up to 130 of size 1
RTOL, ATOL = 5e-7, 1e-5
# Of each statistical test: with seeds fixed, what a change of the hash would meet.
FALSE_ALARM = 1e-6
EXTREME = np.float32([-np.inf, -1e4, -100.0, -88.0, -1e-3, 0.0, 3.0, 88.0, 1e4, np.inf])

needs_compiler = pytest.mark.skipif(
    numba.config.DISABLE_JIT, reason="a million numbers in plain Python take minutes"
)


@pytest.fixture(autouse=True)
def _wrap_around():
    """Without the compiler: scalars that wrap around, and a NaN cast to an integer."""
    with np.errstate(over="ignore", invalid="ignore"):
        yield


def normal(shape, scale=2.0, seed=0):
    return np.random.default_rng(seed).normal(0.0, scale, shape).astype(np.float32)


def unset(shape):
    """States that no draw leaves as they are."""
    return np.full(shape, 7, dtype=np.uint8)


def unit_arrays(shape):
    """Inputs and biases that a kernel reads, and weights of fractional units."""
    x, bias = normal(shape), normal(shape[1], seed=1)
    cycle = np.float32([1.0, 0.5, 2.0, 1.7, 0.0, 3.25])
    return x, kept(bias), kept(np.resize(cycle, shape[1]))


def check_states(states, u, p):
    """States are 0 or 1, and 1 where u < p unless u is within rounding of p."""
    assert states.dtype == np.uint8
    assert np.isin(states, (0, 1)).all()
    wrong = (states == 1) != (u < p)
    assert (np.abs(u - p)[wrong] <= ROUNDING).all()


def count_different(states, u, p):
    return int(np.sum((states == 1) != (u < p)))


# Random numbers.

PLACES = [
    (0, 0, 0),
    (1, 0, 0),
    (0, 1, 0),
    (0, 0, 1),
    (2**31 - 1, 29000, 60000),
    (2**63 + 12345, 2**32 - 1, 2**32 - 1),
    (2**64 - 1, 7, 3),
]


@pytest.mark.parametrize("seed, step, row", PLACES)
def test_random_numbers_equal_their_reference(seed, step, row):
    key = random.row_key(np.uint64(seed), step, row)
    expected = naive.row_key(seed, step, row)
    assert int(key) == expected
    low, high = np.uint32(expected & 0xFFFFFFFF), np.uint32(expected >> 32)
    for unit in [0, 1, 2, 63, 64, 783, 2**20, 2**32 - 1]:
        value = random.uniform(low, high, unit)
        assert float(value) == naive.uniform(expected, unit)
        assert 0.0 <= value < 1.0


def test_integer_types_of_a_place_do_not_matter():
    expected = naive.row_key(5, 6, 7)
    for kind in [int, np.int64, np.uint64, np.int32]:
        assert int(random.row_key(kind(5), kind(6), kind(7))) == expected


def _fill(u, seed, step, first_row):
    for i in range(u.shape[0]):
        key = random.row_key(seed, step, first_row + i)
        low, high = np.uint32(key), np.uint32(key >> np.uint64(32))
        for j in range(u.shape[1]):
            u[i, j] = random.uniform(low, high, j)


@pytest.fixture(scope="module")
def fill():
    """Numbers (n_rows, n_units) of a place; compiled for this process alone."""
    compiled = numba.njit(_fill)

    def numbers(shape, seed=0, step=0, first_row=0):
        u = np.empty(shape)
        compiled(u, np.uint64(seed), step, first_row)
        return u

    return numbers


def check_flat(values, n_cells):
    """Chi-square of integers that should be uniform over so many cells."""
    counts = np.bincount(values, minlength=n_cells)
    expected = len(values) / n_cells
    statistic = np.sum((counts - expected) ** 2) / expected
    # too even is as wrong as too uneven
    low, high = chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], n_cells - 1)
    assert low < statistic < high


@needs_compiler
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 2**31 - 1, 2**64 - 5])
def test_numbers_are_uniform(fill, seed):
    """Leading and trailing bits; false alarms: 12 tests of 1e-6 each."""
    grid = (fill((256, 1024), seed) * 2**24).astype(np.int64).ravel()
    assert (grid % 2 == 1).all()
    check_flat(grid >> 14, 1024)
    check_flat((grid >> 1) & 1023, 1024)


NEIGHBOURS = {
    "unit": lambda fill, s: (fill((512, 257), s)[:, :-1], fill((512, 257), s)[:, 1:]),
    "64th unit": lambda fill, s: (
        fill((512, 320), s)[:, :256],
        fill((512, 320), s)[:, 64:],
    ),
    "row": lambda fill, s: (fill((512, 256), s), fill((512, 256), s, 0, 1)),
    "step": lambda fill, s: (fill((512, 256), s, 4), fill((512, 256), s, 5)),
    "seed": lambda fill, s: (fill((512, 256), s), fill((512, 256), s + 1)),
    "row and unit": lambda fill, s: (
        fill((512, 257), s)[:, 1:],
        fill((512, 257), s, 0, 1)[:, :-1],
    ),
    "step and row": lambda fill, s: (
        fill((512, 256), s, 4, 1),
        fill((512, 256), s, 5, 0),
    ),
}


@needs_compiler
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", NEIGHBOURS)
def test_neighbours_are_independent(fill, kind, seed):
    """Their correlation and their joint distribution; 2 tests of 1e-6 each, of 35."""
    a, b = (u.ravel() for u in NEIGHBOURS[kind](fill, seed))
    assert not np.array_equal(a, b)
    # sqrt(12) (u - 1/2) has variance 1: the mean product has one of 1 / n
    z = 12.0 * np.mean((a - 0.5) * (b - 0.5)) * np.sqrt(len(a))
    assert abs(z) < -ndtri(FALSE_ALARM / 2)
    cells = (a * 32).astype(np.int64) * 32 + (b * 32).astype(np.int64)
    check_flat(cells, 1024)


@needs_compiler
@pytest.mark.parametrize("axis", [0, 1])
def test_means_over_rows_and_over_units_vary_as_they_should(fill, axis):
    """Standardised means of 1024 rows or columns; 6 tests of 1e-6 each."""
    for seed in range(3):
        z = (fill((1024, 1024), seed).mean(axis=axis) - 0.5) * np.sqrt(12.0 * 1024)
        low, high = chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 1024)
        assert low < z @ z < high


@needs_compiler
def test_rows_have_numbers_of_their_own(fill):
    """The key of a seed is a bijection of 64 bits of the place."""
    keys = {
        int(random.row_key(np.uint64(3), s, r)) for s in range(200) for r in range(500)
    }
    assert len(keys) == 100000
    u = fill((2000, 8), 1)
    # 8 numbers of 24 bits: rows share all of them never, the first one seldom
    assert len(np.unique(u, axis=0)) == 2000


# Means and draws.


def mean_units(x, bias):
    in_parts(lambda *part: kernels.mean_units(x, bias, *part), x.shape[1])


def sample_units(x, bias, seed, step, first_row, states):
    place = seed, step, first_row
    in_parts(
        lambda *part: kernels.sample_units(x, bias, *place, states, *part), x.shape[1]
    )


def mean_and_sample_units(x, bias, seed, step, first_row, states):
    def call(*part):
        kernels.mean_and_sample_units(x, bias, seed, step, first_row, states, *part)

    in_parts(call, x.shape[1])


def in_parts(call, n_columns):
    """In two calls, as two threads would make."""
    call(0, n_columns // 3)
    call(n_columns // 3, n_columns)


@pytest.mark.parametrize("shape", SHAPES)
def test_means(shape):
    x, bias, _ = unit_arrays(shape)
    means = x.copy()
    mean_units(means, bias)
    # the sum of input and bias is float32
    assert_allclose(means, naive.logistic(x + bias), rtol=RTOL)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("place", [(0, 0, 0), (2**40 + 1, 9, 1000)])
def test_draws(shape, place):
    seed, step, first_row = place
    x, bias, _ = unit_arrays(shape)
    p = naive.logistic(x + bias)
    u = naive.uniforms(shape, seed, step, first_row)
    place = np.uint64(seed), step, first_row

    states = unset(shape)
    sample_units(kept(x), bias, *place, states)
    check_states(states, u, p)
    # u lies in the band of rounding in one of a thousand runs with other seeds
    assert count_different(states, u, p) == 0

    means, both = x.copy(), unset(shape)
    mean_and_sample_units(means, bias, *place, both)
    assert_array_equal(both, states)
    alone = x.copy()
    mean_units(alone, bias)
    assert_allclose(means, alone, rtol=2e-7)


def test_means_of_extreme_inputs():
    x = EXTREME[:, None].copy()
    mean_units(x, np.zeros(1, dtype=np.float32))
    assert_allclose(x[:, 0], naive.logistic(EXTREME), rtol=RTOL, atol=1e-37)
    assert (x[:2] < 1e-37).all() and (x[-2:] == 1.0).all()


def test_draws_of_extreme_inputs():
    n_units = 40
    x = np.repeat(EXTREME[:, None], n_units, axis=1)
    states, means, both = unset(x.shape), x.copy(), unset(x.shape)
    zero = np.zeros(n_units, dtype=np.float32)
    sample_units(x, zero, np.uint64(1), 2, 3, states)
    mean_and_sample_units(means, zero, np.uint64(1), 2, 3, both)
    u = naive.uniforms(x.shape, 1, 2, 3)
    check_states(states, u, naive.logistic(x))
    assert_array_equal(both, states)
    assert not states[:4].any() and states[-3:].all()


@pytest.mark.parametrize("n_units", [1, 70])
def test_nan_does_not_vanish(n_units):
    x = normal((3, n_units))
    x[1, n_units // 2] = np.nan
    zero, one = np.zeros(n_units, np.float32), np.ones(n_units, np.float32)
    here = np.isnan(x)

    means = x.copy()
    mean_units(means, zero)
    assert_array_equal(np.isnan(means), here)
    means, states = x.copy(), unset(x.shape)
    mean_and_sample_units(means, zero, np.uint64(0), 0, 0, states)
    assert_array_equal(np.isnan(means), here)
    # a state cannot be a NaN: it is off
    assert np.isin(states, (0, 1)).all() and not states[here].any()
    again = unset(x.shape)
    sample_units(x, zero, np.uint64(0), 0, 0, again)
    assert_array_equal(again, states)

    rows = here.any(axis=1)
    total, excess = np.zeros((2, 3))
    kernels.softplus_sum(x, zero, one, total)
    assert_array_equal(np.isnan(total), rows)
    kernels.fractional_softplus(x, zero, 0.5 * one, 1.0, total, excess)
    assert_array_equal(np.isnan(total), rows)
    assert_array_equal(np.isnan(excess), rows)
    kernels.fractional_hidden(
        x.copy(), zero, 0.5 * one, 1.0, np.uint64(0), 0, 0, excess
    )
    assert_array_equal(np.isnan(excess), rows)
    log_weight = np.zeros(3)
    kernels.anneal_hidden(x, zero, 0.2, 0.4, np.uint64(0), 0, 0, log_weight, states)
    assert_array_equal(np.isnan(log_weight), rows)
    assert np.isin(states, (0, 1)).all() and not states[here].any()
    kernels.log_sum_exp(x, np.zeros(n_units), total)
    assert_array_equal(np.isnan(total), rows)


def test_a_nan_bias_does_not_vanish():
    bias = np.float32([0.0, np.nan])
    x, total = normal((2, 2)), np.zeros(2)
    kernels.softplus_sum(x, bias, np.ones(2, np.float32), total)
    assert np.isnan(total).all()
    mean_units(x, bias)
    assert_array_equal(np.isnan(x), [[False, True]] * 2)


# Sums.


@pytest.mark.parametrize("shape", SHAPES)
def test_softplus_sum(shape):
    x, bias, c = unit_arrays(shape)
    total = np.full(shape[0], 99.0)
    kernels.softplus_sum(kept(x), bias, c, total)
    assert_allclose(total, naive.softplus(x + bias) @ c.astype(float), rtol=RTOL * 4)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("first", [0, 1])
def test_swap_gains(shape, first):
    """What every second pair of neighbours gains; the others stay."""
    betas = np.float32([0.0, 0.2, 0.5, 0.7, 1.0])
    x, bias = normal((5, *shape)) * np.float32(3.0), normal(shape[1], seed=1)
    total = np.full((4, shape[0]), 99.0)
    kernels.swap_gains(kept(x), kept(bias), betas, first, total)
    values = x.astype(float) + bias
    for k in range(4):
        low, high = betas[k : k + 2].astype(float)
        rise = naive.softplus(high * values) - naive.softplus(low * values)
        expected = (rise[k] - rise[k + 1]).sum(axis=1)
        expected = expected if k % 2 == first else 99.0
        assert_allclose(total[k], expected, rtol=1e-5, atol=1e-5 * max(shape))


def test_swap_gains_of_extreme_inputs():
    """No block of factors overflows, and no NaN vanishes."""
    for value, expected in ((1e4, 5e3), (-1e4, 0.0), (0.0, 0.0), (np.nan, np.nan)):
        x = np.zeros((2, 1, 200), np.float32)
        x[0] = value
        total = np.empty((1, 1))
        betas = np.float32([0.5, 1.0])
        kernels.swap_gains(x, np.zeros(200, np.float32), betas, 0, total)
        assert_allclose(total, 200 * expected, atol=1e-3)


def test_softplus_of_extreme_inputs():
    total = np.empty(len(EXTREME))
    zero, one = np.zeros(1, np.float32), np.ones(1, np.float32)
    kernels.softplus_sum(EXTREME[:, None].copy(), zero, one, total)
    assert_allclose(total, naive.softplus(EXTREME), rtol=RTOL, atol=1e-37)
    assert total[-1] == np.inf


def test_softplus_over_its_whole_range():
    x = np.linspace(-80.0, 80.0, 400, dtype=np.float32)[:, None].copy()
    total = np.empty(len(x))
    zero, one = np.zeros(1, np.float32), np.ones(1, np.float32)
    kernels.softplus_sum(x, zero, one, total)
    assert_allclose(total, naive.softplus(x[:, 0]), rtol=RTOL)
    assert (np.diff(total) > 0.0).all()


def test_sums_over_many_units_are_float64():
    n_units = 6400
    x = np.full((1, n_units), 50.0, dtype=np.float32)
    x[0, ::2] = -3.0
    total = np.empty(1)
    zero, one = np.zeros(n_units, np.float32), np.ones(n_units, np.float32)
    kernels.softplus_sum(x, zero, one, total)
    assert_allclose(total, naive.softplus(x).sum(axis=1), rtol=2e-7)


@pytest.mark.parametrize("shape", SHAPES)
def test_log_sum_exp(shape):
    x, total = normal(shape), np.full(shape[0], 99.0)
    # so far from 0 that neither the terms nor float32 sums can be represented
    normalisers = 1e6 + np.random.default_rng(1).normal(0.0, 3.0, shape[1])
    kernels.log_sum_exp(kept(x), kept(normalisers), total)
    expected = [naive.log_sum(row - normalisers) for row in x.astype(float)]
    assert_allclose(total, expected, rtol=0, atol=1e-6)


# Steps of hidden units, with the visible ones summed out.


@pytest.mark.parametrize("n_features", [1, 64, 70])
def test_flips(n_features):
    """Those that are taken, and what follows the states."""
    n_rows, n_units, n_flips = 7, 4, 5
    W, visible, hidden = (
        normal(shape, 0.5, seed)
        for seed, shape in enumerate([(n_units, n_features), n_features, n_units])
    )
    rng = np.random.default_rng(3)
    h = rng.integers(2, size=(n_rows, n_units), dtype=np.uint8)
    units = rng.integers(n_units, size=(n_rows, n_flips))
    thresholds = -rng.standard_exponential((n_rows, n_flips))

    def summed_out(h):
        return naive.softplus(h.astype(float) @ W + visible).sum(axis=-1)

    expected = h.copy()
    for state, row_units, row_thresholds in zip(
        expected, units, thresholds, strict=True
    ):
        for unit, threshold in zip(row_units, row_thresholds, strict=True):
            new = state.copy()
            new[unit] = 1 - new[unit]
            gain = summed_out(new) - summed_out(state)
            gain += hidden[unit] * (float(new[unit]) - float(state[unit]))
            # else rounding may decide
            assert abs(gain - threshold) > 1e-3
            if gain > threshold:
                state[:] = new
    assert (expected != h).any() and (expected == h).any()

    y, log_p = h.astype(np.float32) @ W, summed_out(h)
    model = kept(W), kept(hidden), kept(visible)
    kernels.flip(kept(units), kept(thresholds), model, y, log_p, h)
    assert_array_equal(h, expected)
    assert_allclose(y, expected.astype(float) @ W, atol=ATOL)
    assert_allclose(log_p, summed_out(expected), rtol=RTOL * 4, atol=ATOL)


# Annealing.


@pytest.mark.parametrize("betas", [(0.0, 1e-3), (0.3, 0.31), (0.7, 0.2), (0.9, 1.0)])
@pytest.mark.parametrize("shape", SHAPES)
def test_annealed_hidden_units(shape, betas):
    x, bias, _ = unit_arrays(shape)
    start = normal(shape[0], seed=3).astype(float)
    states, log_weight = unset(shape), start.copy()
    place = np.uint64(5), 6, 7
    kernels.anneal_hidden(kept(x), bias, *betas, *place, log_weight, states)
    before, now = (float(np.float32(beta)) for beta in betas)
    increments = naive.annealed_softplus(x, bias, before, now)
    assert_allclose(log_weight - start, increments, atol=ATOL)
    p = naive.logistic(now * naive.inputs(x, bias))
    check_states(states, naive.uniforms(shape, 5, 6, 7), p)


def test_annealed_hidden_units_of_extreme_inputs():
    finite = EXTREME[1:-1]
    x = np.repeat(finite[:, None], 5, axis=1)
    log_weight, states = np.zeros(len(x)), unset(x.shape)
    bias = np.zeros(5, dtype=np.float32)
    expected = naive.annealed_softplus(x, bias, 0.25, 0.5)
    kernels.anneal_hidden(x, bias, 0.25, 0.5, np.uint64(5), 6, 7, log_weight, states)
    assert_allclose(log_weight, expected, rtol=1e-6, atol=1e-5)
    u = naive.uniforms(x.shape, 5, 6, 7)
    check_states(states, u, naive.logistic(0.5 * x))


@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_annealed_visible_units(shape, beta):
    x, bias, _ = unit_arrays(shape)
    base = kept(normal(shape[1], seed=4))
    states, slope = unset(shape), np.full(shape[0], 99.0)
    place = np.uint64(5), 8, 7
    kernels.anneal_visible(kept(x), base, bias, beta, *place, slope, states)
    p = naive.logistic(naive.annealed_visible(x, base, bias, float(np.float32(beta))))
    check_states(states, naive.uniforms(shape, 5, 8, 7), p)
    expected = states.astype(float) @ (bias.astype(float) - base)
    assert_allclose(slope, expected, atol=5 * ATOL)


@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_fractional_units(shape, beta):
    x, bias, c = unit_arrays(shape)
    sent, excess = x.copy(), np.full(shape[0], 99.0)
    kernels.fractional_hidden(sent, bias, c, beta, np.uint64(5), 10, 7, excess)
    beta = float(np.float32(beta))
    expected = np.zeros(shape)
    for j, parts in enumerate(naive.fractional_draws(x, bias, c, beta, 5, 10, 7)):
        for send, p, u in parts:
            # at beta = 0, p is 1/2 on both sides
            assert (np.abs(u - p) > ROUNDING).all()
            expected[:, j] += send * (u < p)
    assert_allclose(sent, expected, rtol=1e-6)
    assert ((sent >= 0.0) & (sent <= c)).all()
    expected = naive.fractional_excess(x, bias, c, beta)
    assert_allclose(excess, expected, atol=2 * ATOL)

    total, again = np.full((2, shape[0]), 99.0)
    kernels.fractional_softplus(kept(x), bias, c, beta, total, again)
    assert_allclose(again, expected, atol=2 * ATOL)
    expected = naive.softplus(beta * naive.inputs(x, bias)) @ c.astype(float)
    assert_allclose(total, expected, rtol=1e-6)


def test_fractional_units_of_extreme_inputs():
    finite = EXTREME[1:-1]
    x = np.repeat(finite[:, None], 6, axis=1)
    _, _, c = unit_arrays(x.shape)
    bias = np.zeros(6, dtype=np.float32)
    total, excess, again = np.empty((3, len(x)))
    kernels.fractional_softplus(x, bias, c, 1.0, total, excess)
    assert_allclose(total, naive.softplus(x) @ c.astype(float), rtol=1e-6, atol=1e-36)
    # differences of float32 values of size c |x|
    scale = 1.0 + np.abs(finite)
    expected = naive.fractional_excess(x, bias, c, 1.0)
    assert (np.abs(excess - expected) < 2e-6 * scale).all()
    kernels.fractional_hidden(x, bias, c, 1.0, np.uint64(0), 0, 0, again)
    assert (np.abs(again - expected) < 2e-6 * scale).all()
    assert_array_equal(x[:3], np.zeros((3, 6)))
    assert_allclose(x[-2:], np.stack([c, c]), rtol=1e-6)


def test_whole_unit_weights_leave_no_excess():
    x, bias, _ = unit_arrays((4, 9))
    c = np.float32([1, 2, 3, 1, 0, 1, 4, 1, 2])
    total, excess = np.full((2, 4), 99.0)
    kernels.fractional_softplus(x, bias, c, 1.0, total, excess)
    # softplus(0) of the remainder 0: log 2 a unit, for every state
    assert_allclose(excess, -9.0 * np.log(2.0), rtol=1e-6)


# Metropolis-Hastings and updates.


def test_metropolis():
    n = 300
    log_ratio = normal(n, 1.0).astype(float)
    log_ratio[:6] = [np.inf, -np.inf, np.nan, 0.0, 1e4, -1e4]
    # what it says does not depend on what was there
    accepted = np.arange(n) % 2 == 0
    kernels.metropolis(kept(log_ratio), np.uint64(1), 2, 3, accepted)
    u = naive.uniforms((n, 1), 1, 2, 3, first_unit=2**32 - 1)[:, 0]
    expected = u < np.exp(np.minimum(log_ratio, 0.0))
    expected[[0, 3, 4]] = True
    assert_array_equal(accepted, expected)
    assert list(expected[:6]) == [True, False, False, True, True, False]
    assert 0 < accepted.sum() < n


def update_in_parts(values, velocity, gradient, centering, rates, cut):
    """The transposed weights; units behind ``cut`` are updated in another call."""
    mu, mean_h, mean_v, offset = centering
    weights = np.full(values.shape[::-1], np.nan, dtype=np.float32)
    for units in (slice(0, cut), slice(cut, None)):
        # a column more, which stays as it is
        panels = [
            np.column_stack([array[:, units], np.full(len(array), 99.0)])
            for array in (values, velocity, gradient)
        ]
        value, speed, slope = (panel.astype(np.float32) for panel in panels)
        of_units = mu, mean_h[units], mean_v, offset[units]
        kernels.update_weights(
            value, speed, kept(slope), weights[units], of_units, rates
        )
        values[:, units], velocity[:, units] = value[:, :-1], speed[:, :-1]
        assert (value[:, -1] == 99.0).all() and (speed[:, -1] == 99.0).all()
    return weights


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (2, 130), (7, 64)])
@pytest.mark.parametrize("shrink", [0.0, 0.01])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_update(shape, shrink, momentum, centred):
    """Against the sum over rows of (v - mu)(h - lambda)', data less model."""
    n_features, n_units = shape
    rng = np.random.default_rng(5)
    # different numbers of rows of data and of the model
    data, model = (
        (rng.integers(2, size=(n, n_features)), rng.random((n, n_units)))
        for n in (6, 4)
    )
    mu = rng.random(n_features).astype(np.float32) * np.float32(centred)
    offset = rng.random(n_units).astype(np.float32) * np.float32(centred)
    expected = naive.centred_update(data, model, offset, mu)

    mean_v, mean_h = (data[k].mean(axis=0) - model[k].mean(axis=0) for k in range(2))
    gradient = data[0].T @ data[1] / 6 - model[0].T @ model[1] / 4
    mean_v, mean_h, gradient = (
        array.astype(np.float32) for array in (mean_v, mean_h, gradient)
    )
    values, velocity = (normal(shape, 1.0, seed) for seed in range(2))
    new, speed = values.copy(), velocity.copy()
    centering = tuple(kept(array) for array in (mu, mean_h, mean_v, offset))
    rates = np.float32(0.1), np.float32(momentum), np.float32(shrink)
    weights = update_in_parts(new, speed, gradient, centering, rates, n_units // 3)
    slope = expected[0]
    change = 0.1 * (slope - shrink * values.astype(float))
    change += momentum * velocity.astype(float)
    # sums of a few float32 terms of size 1
    assert_allclose(new, values + change, rtol=1e-5, atol=5e-7)
    if momentum:
        assert_allclose(speed, change, rtol=1e-5, atol=5e-7)
    else:
        # nothing to remember
        assert_array_equal(speed, velocity)
    assert_array_equal(weights, new.T)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_nan_and_infinity_come_through_an_update(momentum):
    shape = 3, 70
    values, velocity, gradient = (normal(shape, 1.0, seed) for seed in range(3))
    gradient[1, 2], gradient[2, 69] = np.nan, np.inf
    one_row, one_unit = np.ones(3, np.float32), np.ones(70, np.float32)
    centering = one_row, one_unit, one_row, one_unit
    rates = np.float32(0.1), np.float32(momentum), np.float32(0.0)
    weights = update_in_parts(values, velocity, gradient, centering, rates, 0)
    expected = np.zeros(shape, dtype=bool)
    expected[1, 2] = expected[2, 69] = True
    assert_array_equal(~np.isfinite(values), expected)
    assert np.isnan(values[1, 2]) and values[2, 69] == np.inf
    assert_array_equal(weights, values.T)


# a tile of the transposition is 8 x 8
@pytest.mark.parametrize("shape", [(8, 8), (15, 17), (24, 9), (17, 40)])
def test_an_update_does_not_depend_on_where_units_are_split(shape):
    n_features, n_units = shape
    values, velocity, gradient = (normal(shape, 1.0, seed) for seed in range(3))
    (mu, mean_v), (mean_h, offset) = normal((2, n_features)), normal((2, n_units))
    centering = mu, mean_h, mean_v, offset
    rates = np.float32(0.1), np.float32(0.9), np.float32(0.01)

    def update(cut):
        new, speed = values.copy(), velocity.copy()
        weights = update_in_parts(new, speed, gradient, centering, rates, cut)
        assert_array_equal(weights, new.T)
        return new, speed

    whole = update(0)
    for cut in range(1, n_units):
        for one, other in zip(update(cut), whole, strict=True):
            assert_array_equal(one, other)


def test_means_and_draws_do_not_depend_on_where_units_are_split():
    x, bias, _ = unit_arrays((3, 37))
    place = np.uint64(1), 2, 3

    def run(*edges):
        means, both, states, again = x.copy(), x.copy(), unset(x.shape), unset(x.shape)
        for part in zip(edges[:-1], edges[1:], strict=True):
            kernels.mean_units(means, bias, *part)
            kernels.sample_units(x, bias, *place, states, *part)
            kernels.mean_and_sample_units(both, bias, *place, again, *part)
        return means, both, states, again

    whole = run(0, 37)
    for cut in range(1, 37):
        for one, other in zip(run(0, cut, 37), whole, strict=True):
            assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(2, 1), (5, 70), (30, 3)])
@pytest.mark.parametrize("n_rows", [1, 2])
def test_difference_of_means(shape, n_rows):
    means = normal(shape)
    n_others = shape[0] - n_rows
    expected = means.astype(float)
    expected[:n_rows] /= n_rows
    expected[n_rows:] /= -max(1, n_others)
    data, difference = np.full((2, shape[1]), np.nan, dtype=np.float32)
    in_parts(
        lambda *part: kernels.difference_of_means(
            means, n_rows, data, difference, *part
        ),
        shape[1],
    )
    assert_allclose(means, expected, rtol=1e-6)
    assert_allclose(data, expected[:n_rows].sum(axis=0), atol=2e-6)
    assert_allclose(difference, expected.sum(axis=0), atol=2e-6)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (2, 130)])
def test_blend(shape, share):
    mean, values = normal(shape), normal(shape, seed=1)
    values[0, 0] = np.inf
    new = mean.copy()
    kernels.blend(new, kept(values), np.float32(share))
    if share == 0.0:
        # nothing of an infinity is no number
        assert np.isnan(new[0, 0])
        mean[0, 0] = np.nan
        values[0, 0] = 0.0
    expected = (1.0 - share) * mean.astype(float) + share * values.astype(float)
    assert_allclose(new, expected, rtol=1e-6, atol=1e-6)


# Splits into blocks.


def _sample(x, bias, c, place):
    states = unset(x.shape)
    sample_units(x, bias, *place, states)
    return (states,)


def _mean_and_sample(x, bias, c, place):
    states = unset(x.shape)
    mean_and_sample_units(x, bias, *place, states)
    return x, states


def _hidden(x, bias, c, place):
    log_weight, states = np.zeros(len(x)), unset(x.shape)
    kernels.anneal_hidden(x, bias, 0.4, 0.5, *place, log_weight, states)
    return states, log_weight


def _visible(x, bias, c, place):
    slope, states = np.empty(len(x)), unset(x.shape)
    kernels.anneal_visible(x, c, bias, 0.5, *place, slope, states)
    return states, slope


def _fractional(x, bias, c, place):
    excess = np.empty(len(x))
    kernels.fractional_hidden(x, bias, c, 0.5, *place, excess)
    return x, excess


def _accept(x, bias, c, place):
    accepted = np.empty(len(x), dtype=bool)
    kernels.metropolis(x[:, 0].astype(float), *place, accepted)
    return (accepted,)


@pytest.mark.parametrize(
    "run", [_sample, _mean_and_sample, _hidden, _visible, _fractional, _accept]
)
@pytest.mark.parametrize("n_units", [1, 70])
def test_rows_in_blocks_give_the_same(run, n_units):
    x, bias, c = unit_arrays((60, n_units))
    seed, step, first_row = np.uint64(11), 4, 100
    whole = run(x.copy(), bias, c, (seed, step, first_row))
    for edges in [(0, 25, 60), (0, 1, 2, 60)]:
        parts = [
            run(x[a:b].copy(), bias, c, (seed, step, first_row + a))
            for a, b in zip(edges[:-1], edges[1:], strict=True)
        ]
        for number, expected in enumerate(whole):
            together = np.concatenate([part[number] for part in parts])
            assert_array_equal(together, expected)
    # another place gives other numbers
    for place in [(seed, step, 101), (seed, 5, 100), (np.uint64(12), 4, 100)]:
        different = run(x.copy(), bias, c, place)
        assert not all(map(np.array_equal, different, whole))


def test_no_rows_and_no_units():
    for shape in [(0, 3), (3, 0)]:
        x, bias = np.empty(shape, np.float32), np.zeros(shape[1], np.float32)
        total, excess = np.full((2, shape[0]), 99.0)
        mean_units(x, bias)
        states, seed = unset(shape), np.uint64(0)
        sample_units(x, bias, seed, 0, 0, states)
        kernels.anneal_hidden(x, bias, 0.2, 0.4, seed, 0, 0, total, states)
        assert (total == 99.0).all()
        kernels.anneal_visible(x, bias, bias, 0.4, seed, 0, 0, excess, states)
        assert not excess.any()
        kernels.softplus_sum(x, bias, bias, total)
        assert not total.any()
        excess[:] = 99.0
        kernels.fractional_hidden(x, bias, bias, 1.0, seed, 0, 0, excess)
        assert not excess.any()
