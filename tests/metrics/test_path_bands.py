"""Bands that hold whole records."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.metrics import simultaneous_band


def paths(n_draws, seed=0, n_rows=40):
    """Correlated rows of growing spread around a sine."""
    steps = np.random.default_rng(seed).normal(size=(n_rows, n_draws))
    return np.sin(np.arange(n_rows))[:, None] + np.cumsum(steps, axis=0)


def share_inside(draws, lower, upper):
    inside = (lower[..., None] <= draws) & (draws <= upper[..., None])
    return inside.reshape(-1, draws.shape[-1]).all(axis=0).mean()


@pytest.mark.parametrize("coverage", [0.5, 0.95])
def test_new_records_lie_inside_as_a_whole(coverage):
    lower, upper = simultaneous_band(paths(2000), coverage)
    assert share_inside(paths(5000, seed=1), lower, upper) == pytest.approx(
        coverage, abs=0.03
    )
    # the band of every row alone holds far fewer of them
    rows = np.quantile(paths(2000), [0.5 - coverage / 2, 0.5 + coverage / 2], axis=1)
    assert share_inside(paths(5000, seed=1), *rows) < coverage - 0.15


@pytest.mark.parametrize("n_rows", [1, 100])
@pytest.mark.parametrize("n_draws", [20, 100])
def test_few_draws_hold_new_records_as_often(n_draws, n_rows):
    """Each draw is nearer to the mean of all of them than a new record is."""
    rng, shares = np.random.default_rng(0), []
    for _ in range(100):
        band = simultaneous_band(rng.normal(size=(n_rows, n_draws)), 0.95)
        shares.append(share_inside(rng.normal(size=(n_rows, 100)), *band))
    error = np.std(shares) / np.sqrt(len(shares))
    # the quantile is one of the draws: it holds a little more than asked for
    assert 0.95 - 4 * error < np.mean(shares) < 0.97 + 4 * error


def test_the_distance_is_that_from_the_other_draws():
    draws = paths(30)
    lower, upper = simultaneous_band(draws, 0.9)
    farthest = []
    for k in range(30):
        others = np.delete(draws, k, axis=1)
        distance = np.abs(draws[:, k] - others.mean(axis=1))
        farthest.append((distance / others.std(axis=1, ddof=1)).max())
    # the 28th of 30 is that which a new one exceeds with a probability of 10 %
    expected = np.sort(farthest)[27] * draws.std(axis=1, ddof=1)
    assert_allclose(0.5 * (upper - lower), expected, rtol=1e-10)


def test_one_draw_that_leaves_all_others_is_infinitely_far_from_them():
    draws = np.zeros((3, 20))
    draws[1, 4] = 1.0
    lower, upper = simultaneous_band(draws, 0.95)
    assert_array_equal(lower, [0.0, -np.inf, 0.0])
    assert_array_equal(upper, [0.0, np.inf, 0.0])


def test_one_row_has_its_normal_quantile():
    lower, upper = simultaneous_band(np.random.default_rng(0).normal(size=(1, 50_000)))
    assert_allclose([lower[0], upper[0]], [-1.96, 1.96], atol=0.03)


def test_outputs_lie_inside_together():
    draws = np.stack([paths(500), 100.0 * paths(500, seed=2)], axis=1)
    lower, upper = simultaneous_band(draws)
    assert lower.shape == upper.shape == (40, 2)
    new = np.stack([paths(5000, seed=3), 100.0 * paths(5000, seed=4)], axis=1)
    assert share_inside(new, lower, upper) == pytest.approx(0.95, abs=0.02)


def test_rows_that_are_given_stay_exact():
    draws = paths(100)
    draws[:3] = [[1.0], [2.0], [3.0]]
    lower, upper = simultaneous_band(draws)
    assert_array_equal(lower[:3], [1, 2, 3])
    assert_array_equal(upper[:3], [1, 2, 3])


@pytest.mark.parametrize("n_outputs", [None, 2])
def test_values_that_all_draws_lack_are_missing_in_the_band(n_outputs):
    draws = paths(100)
    if n_outputs:
        draws = np.stack([draws, paths(100, seed=1)], axis=1)
    expected = simultaneous_band(np.delete(draws, [5, 20], axis=0), 0.9)
    draws[[5, 20]] = np.nan
    band = simultaneous_band(draws, 0.9)
    for ends, other in zip(band, expected, strict=True):
        assert np.isnan(ends[[5, 20]]).all()
        assert_allclose(np.delete(ends, [5, 20], axis=0), other, rtol=1e-12)
    # others that diverge are still infinitely far away
    draws[30:, ..., :12] = np.nan
    for ends in simultaneous_band(draws, 0.9):
        assert np.isnan(ends[[5, 20]]).all()
        assert np.isinf(np.delete(ends, [5, 20], axis=0)).all()


def test_one_output_may_be_missing_in_a_row():
    draws = np.stack([paths(100), paths(100, seed=1)], axis=1)
    draws[7, 1] = np.nan
    lower, upper = simultaneous_band(draws)
    assert np.isnan(lower).sum() == np.isnan(upper).sum() == 1
    assert np.isfinite(lower[7, 0]) and np.isnan(lower[7, 1])


def test_draws_of_a_record_with_a_missing_value_have_a_band():
    rng = np.random.default_rng(0)
    u, y = rng.normal(size=(80, 1)), np.zeros(80)
    for t in range(1, 80):
        y[t] = 0.7 * y[t - 1] + u[t - 1, 0] + 0.1 * rng.normal()
    model = SparseBayesNARXRegressor(1, 1, hidden_layer_sizes=(), random_state=0)
    y[40] = np.nan
    draws = model.fit(u, y).sample_y(u, y)
    lower, upper = simultaneous_band(draws)
    assert_array_equal(np.isnan(lower), np.isnan(draws).all(axis=1))
    assert np.isfinite(upper[~np.isnan(lower)]).all()


def test_draws_of_nothing_have_no_band():
    for ends in simultaneous_band(np.full((5, 100), np.nan)):
        assert np.isnan(ends).all()


def test_diverged_draws_are_infinitely_far_away():
    draws = paths(100)
    draws[20:, :3] = np.nan
    lower, upper = simultaneous_band(draws, 0.9)
    # 91 of 100 inside, so the 91st of the 97 that are left, which are nearer to their
    # mean than new ones
    assert 0.91 <= share_inside(draws, lower, upper) < 0.95
    draws[20:, :12] = np.nan
    lower, upper = simultaneous_band(draws, 0.9)
    assert (lower == -np.inf).all() and (upper == np.inf).all()


@pytest.mark.parametrize(
    "draws, coverage, message",
    [
        (np.zeros(5), 0.9, r"must have shape .* got shape \(5,\)"),
        (np.zeros((4, 0)), 0.9, r"must have shape"),
        (np.zeros((4, 18)), 0.95, "needs at least 19 draws; y_draws has 18"),
        (np.zeros((4, 8)), 0.9, "needs at least 9 draws"),
        (np.zeros((4, 2)), 0.5, "needs at least 3 draws; y_draws has 2"),
        (np.full((4, 20), np.inf), 0.9, "infinity"),
        (np.ma.masked_equal(np.eye(20), 1), 0.9, "mask"),
        (np.zeros((4, 20)), 1.0, "coverage == 1.0, must be < 1.0"),
    ],
)
def test_what_is_refused(draws, coverage, message):
    with pytest.raises(ValueError, match=message):
        simultaneous_band(draws, coverage)


def test_draws_of_a_model():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(150, 1))
    y = lfilter([0.0, 1.0], [1.0, -0.5], u[:, 0]) + 0.1 * rng.normal(size=150)
    model = SparseBayesNARXRegressor(1, 1, hidden_layer_sizes=()).fit(u[:100], y[:100])
    u, y = u[100:], y[100:]
    draws = model.sample_y(u, y_init=y[:5], n_samples=100, random_state=0)
    lower, upper = simultaneous_band(draws)
    assert_array_equal(lower[:5], y[:5])
    assert ((upper - lower)[5:] > 2 * 1.96 * draws[5:].std(axis=1)).all()
