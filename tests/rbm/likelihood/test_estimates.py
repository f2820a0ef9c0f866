"""Values of log partition functions from the weights of chains."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from skbayesnn.rbm.likelihood import estimates
from skbayesnn.rbm.likelihood.annealing import Pair


def test_summary():
    log_weights = np.log([1.0, 2.0, 3.0, 6.0])
    result = estimates.summarise(log_weights, 10.0, 1.0)
    assert_allclose(result.log_partition, 10.0 + np.log(3.0))
    error = 3.0 * np.std([1, 2, 3, 6], ddof=1) / 2.0 / 3.0
    assert_allclose(result.interval, result.log_partition + np.array([-error, error]))
    assert_allclose(result.log_weight_std, np.std(log_weights, ddof=1))
    assert_allclose(result.effective_sample_size, 12.0**2 / (1 + 4 + 9 + 36))
    other = estimates.summarise(log_weights + 800.0, 10.0, -1.0)
    assert_allclose(other.log_partition, 10.0 - 800.0 - np.log(3.0))
    assert_allclose(other.effective_sample_size, result.effective_sample_size)


def gaussian_pair(std, n_chains, seed, n_betas=10, shift=0.0):
    """Log weights of a ratio of 1: those of both directions obey Crooks' relation."""
    rng = np.random.default_rng((seed, n_chains))
    forward = rng.normal(-0.5 * std**2, std, n_chains)
    reverse = rng.normal(-0.5 * std**2, std, n_chains) - shift
    return Pair(np.linspace(0, 1, n_betas), forward, reverse, np.ones(1))


def test_acceptance_ratio_solves_its_equation():
    pair = gaussian_pair(2.0, 50, 0)
    ratio, _ = estimates.acceptance_ratio(pair.forward + 500.0, pair.reverse - 500.0)
    up = expit(pair.forward + 500.0 - ratio).sum()
    assert up == pytest.approx(expit(pair.reverse - 500.0 + ratio).sum(), rel=1e-8)
    # weights that are all the same have one answer
    same = np.full(4, 3.0)
    assert_allclose(estimates.acceptance_ratio(same, -same), [3.0, 0.0], atol=1e-9)
    # as have those of directions that have nothing in common
    far = np.array([0.0, 0.5])
    ratio, error = estimates.acceptance_ratio(far - 1e4, -far - 1e4)
    assert -1e4 < ratio < 1e4 and np.isfinite(error)


@pytest.mark.slow
def test_both_directions_together_err_less_than_either():
    results = [
        estimates.combine(gaussian_pair(2.5, 100, seed), 0.0) for seed in range(300)
    ]
    both = np.array([result.log_partition for result in results])
    forward = np.array([result.forward.log_partition for result in results])
    reverse = np.array([result.reverse.log_partition for result in results])
    assert np.mean(both**2) < 0.5 * min(np.mean(forward**2), np.mean(reverse**2))
    # without the bias of either: five standard errors
    assert abs(both.mean()) < 5.0 * both.std() / np.sqrt(300)
    assert forward.mean() < -5.0 * forward.std() / np.sqrt(300)
    assert reverse.mean() > 5.0 * reverse.std() / np.sqrt(300)
    ends = np.array([result.interval for result in results])
    assert np.mean((ends[:, 0] < 0.0) & (ends[:, 1] > 0.0)) > 0.98


def test_fields_of_both_directions():
    pair = gaussian_pair(1.5, 100, 1)
    result = estimates.combine(pair, 20.0)
    ahead = estimates.summarise(pair.forward, 20.0, 1.0)
    back = estimates.summarise(pair.reverse, 20.0, -1.0)
    assert (result.forward, result.reverse) == (ahead, back)
    assert result.n_betas == 10
    assert result.log_weight_std == max(ahead.log_weight_std, back.log_weight_std)
    assert result.effective_sample_size == min(
        ahead.effective_sample_size, back.effective_sample_size
    )
    low, high = result.interval
    for one in (ahead, back, result):
        assert low <= one.log_partition <= high
    assert low < result.log_partition < high


@pytest.mark.parametrize(
    "std, shift, expected",
    [
        (0.01, 0.0, False),
        (0.5, 0.0, False),
        (0.01, 0.05, False),  # bars apart, but by a trifle
        (0.01, 0.2, True),  # bars apart
        (1.5, 0.2, False),  # within the bars
        (1.5, 2.0, True),  # by more than a nat
    ],
)
def test_directions_that_differ(std, shift, expected):
    for seed in range(20):
        for sign in (1.0, -1.0):
            pair = gaussian_pair(std, 100, seed, shift=sign * shift)
            assert estimates.differ(estimates.combine(pair, 0.0)) == expected


@pytest.mark.parametrize(
    ("value", "std", "is_taken"),
    [
        # larger by far, though uncertain
        (8.0, 2.0, True),
        # larger and sharper, within what annealing allows
        (0.05, 0.2, True),
        # larger, but less certain
        (0.05, 2.5, False),
        # smaller, however sharp: modes without rows are missing
        (-0.05, 0.2, False),
        (-8.0, 0.2, False),
    ],
)
def test_rows_count_where_they_find_more(value, std, is_taken):
    annealed = estimates.combine(gaussian_pair(0.5, 100, 1), 0.0)
    draws = np.random.default_rng(2).normal(value - 0.5 * std**2, std, 4000)
    expected = estimates.summarise(draws, 0.0, 1.0)
    found = estimates.with_rows(annealed, expected)
    assert found.rows == expected
    assert (found.log_partition == expected.log_partition) == is_taken
    assert found.interval[0] <= found.log_partition <= found.interval[1]
    if not is_taken:
        assert found._replace(rows=None) == annealed
    assert estimates.misses_rows(found) == (value == 8.0)
    assert not estimates.misses_rows(annealed)
    # what is known counts in all of them
    more = estimates.with_known(found, 50.0)
    assert more.rows.log_partition == pytest.approx(50.0, abs=1e-9)


@pytest.mark.parametrize(
    ("below", "half_width", "is_contested"),
    [
        # a mode without rows, or chance
        (0.3, 0.05, True),
        # near enough for any likelihood
        (0.08, 0.05, False),
        # annealing has certainly found more
        (0.8, 0.05, False),
        # rows tell less than annealing does
        (0.3, 0.9, False),
        # the result is that of the rows
        (-0.3, 0.05, False),
    ],
)
def test_precise_rows_contest_what_is_above_them(below, half_width, is_contested):
    annealed = estimates.combine(gaussian_pair(1.5, 100, 1), 0.0)
    value, (low, _) = annealed.log_partition, annealed.interval
    assert 0.4 < value - low < 0.7
    rows = estimates.LogPartition(
        value - below, (value - below - half_width, value - below + half_width), 0.1, 99
    )
    assert estimates.is_contested(annealed, rows) == is_contested
    moved = estimates.shifted(rows, 2.0)
    assert moved.log_partition == rows.log_partition + 2.0
    assert moved.interval == (rows.interval[0] + 2.0, rows.interval[1] + 2.0)


def estimate_of(value, half_width):
    ends = (value - half_width, value + half_width)
    return estimates.LogPartition(value, ends, 0.1, 99.0)


def test_agreement_of_the_directions_hides_no_error_of_the_forward_run():
    """One forward chain has most of the weight; reverse chains start from it."""
    forward, reverse = np.zeros(100), np.full(100, -5.0)
    forward[0], reverse[:40] = 5.0, 0.0
    pair = Pair(np.linspace(0.0, 1.0, 10), forward, reverse, np.ones(1))
    result = estimates.combine(pair, 0.0)
    wider = estimates.with_forward_error(result)
    assert wider.interval[0] <= result.forward.interval[0]
    assert wider.interval[1] >= result.forward.interval[1]
    assert wider._replace(interval=result.interval) == result
    assert wider.interval[1] - wider.interval[0] > 2.0
    assert estimates.rests_on_few(result) and estimates.is_wide(wider)
    assert not estimates.is_wide(result)
    calm = estimates.combine(gaussian_pair(0.5, 100, 1), 0.0)
    assert not estimates.rests_on_few(calm)
    assert not estimates.is_wide(estimates.with_forward_error(calm))


@pytest.mark.parametrize(
    ("value", "half_width", "is_open"),
    [
        # nothing above
        (0.0, 0.1, False),
        (-3.0, 0.5, False),
        # perhaps a nat, or certainly
        (0.0, 1.0, True),
        (3.0, 0.1, True),
    ],
)
def test_what_rows_leave_open(value, half_width, is_open):
    annealed = estimates.combine(gaussian_pair(0.5, 100, 1), 0.0)
    rows = estimate_of(value, half_width)
    assert estimates.leaves_open(annealed, rows) == is_open
    # what rests on few chains is open in any case
    few = annealed._replace(interval=(-1.1, 1.1))
    assert estimates.leaves_open(few, rows)


def test_draws_that_followed_the_model_count_where_they_are_better():
    first = estimate_of(0.0, 0.5)
    for better in (estimate_of(-0.2, 0.1), estimate_of(4.0, 2.0)):
        assert estimates.better_rows(first, better) == better
    for other in (estimate_of(-0.2, 0.6), estimate_of(0.3, 1.0)):
        assert estimates.better_rows(first, other) == first


def test_an_interval_covers_the_values_of_all_rounds():
    log_weights = np.zeros((4, 50))
    log_weights[2] = 0.3
    result = estimates.summarise_rounds(log_weights)
    assert result.log_partition == pytest.approx(np.log((3 + np.exp(0.3)) / 4))
    assert result.interval[0] <= 0.0 and result.interval[1] >= 0.3
