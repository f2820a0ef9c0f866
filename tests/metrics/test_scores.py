"""Errors of simulated records, and scores of predictive distributions."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from skbayesnn.metrics import (
    crps_gaussian,
    crps_samples,
    fit_index,
    interval_coverage,
    simulation_rmse,
)


def test_rmse_leaves_the_initialisation_and_missing_rows_out():
    y = np.array([1.0, 2.0, 3.0, np.nan, 5.0])
    predicted = np.array([9.0, 9.0, 4.0, 0.0, 7.0])
    rmse = simulation_rmse(y, predicted, n_initialization=2)
    assert rmse == pytest.approx(np.sqrt((1 + 4) / 2))
    two = simulation_rmse(np.c_[y, y], np.c_[predicted, y], n_initialization=2)
    np.testing.assert_allclose(two, [rmse, 0.0])


def test_fit_index():
    rng = np.random.default_rng(0)
    y = rng.normal(size=100)
    assert fit_index(y, y) == 100.0
    assert fit_index(y, np.full(100, y.mean())) == pytest.approx(0.0)
    error = rng.normal(size=100)
    expected = 100 * (1 - np.linalg.norm(error) / np.linalg.norm(y - y.mean()))
    assert fit_index(y, y - error) == pytest.approx(expected)


def test_divergence_is_the_worst():
    y, predicted = np.arange(4.0), np.array([0.0, 1.0, np.nan, np.nan])
    assert simulation_rmse(y, predicted) == np.inf
    assert fit_index(y, predicted) == -np.inf


@pytest.mark.parametrize("metric", [simulation_rmse, fit_index])
@pytest.mark.parametrize(
    ("y_true", "y_pred", "n_initialization", "message"),
    [
        (np.ones(3), np.ones(4), 0, "inconsistent numbers of samples"),
        (np.ones((3, 2)), np.ones(3), 0, "as many outputs; got 2 and 1"),
        (np.ones(3), np.ones(3), 3, "n_initialization.*less than.*3; got 3"),
        (np.ones(3), np.ones(3), -1, "n_initialization"),
        (np.full(3, np.nan), np.ones(3), 0, "no measured value"),
        (np.ones(3), np.array([1, np.inf, 1]), 0, "y_pred contains infinity"),
    ],
)
def test_bad_input_is_named(metric, y_true, y_pred, n_initialization, message):
    with pytest.raises(ValueError, match=message):
        metric(y_true, y_pred, n_initialization=n_initialization)


def test_coverage_leaves_the_initialisation_and_missing_rows_out():
    y = np.array([9.0, 1.0, 2.0, np.nan, 4.0, 5.0])
    lower, upper = np.full(6, 1.0), np.full(6, 4.0)
    lower[2] = np.nan  # not predicted: outside
    # inside are 1 and 4, which lie on the ends; outside 2 and 5
    assert interval_coverage(y, lower, upper, n_initialization=1) == 0.5
    two = interval_coverage(
        np.c_[y, y], np.c_[lower, y - 1], np.c_[upper, y + 1], n_initialization=1
    )
    np.testing.assert_allclose(two, [0.5, 1.0])


def test_unbounded_intervals_hold_everything():
    y = np.arange(4.0)
    assert interval_coverage(y, np.full(4, -np.inf), np.full(4, np.inf)) == 1.0


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_coverage_of_a_calibrated_prediction(level):
    n, half = 20_000, norm.ppf((1 + level) / 2)
    for seed in range(5):
        y = np.random.default_rng(seed).normal(3.0, 2.0, size=n)
        interval = np.full(n, 3.0 - 2.0 * half), np.full(n, 3.0 + 2.0 * half)
        standard_error = np.sqrt(level * (1 - level) / n)
        assert abs(interval_coverage(y, *interval) - level) < 4.5 * standard_error


@pytest.mark.parametrize(
    ("y", "mean", "std"),
    [(0.3, 0.0, 1.0), (-2.0, 1.0, 0.5), (4.0, 4.0, 3.0), (9.0, 0.0, 1.0)],
)
def test_crps_gaussian_is_the_integral_of_its_definition(y, mean, std):
    below, _ = quad(lambda x: norm.cdf(x, mean, std) ** 2, -np.inf, y)
    above, _ = quad(lambda x: norm.sf(x, mean, std) ** 2, y, np.inf)
    # quad is asked for 1.5e-8 on either side
    assert crps_gaussian([y], [mean], [std]) == pytest.approx(below + above, abs=1e-7)


def test_crps_gaussian_is_in_units_of_y():
    rng = np.random.default_rng(0)
    y, mean, std = rng.normal(size=(2, 30)).tolist() + [rng.uniform(0.1, 2, size=30)]
    score = crps_gaussian(y, mean, std)
    in_millivolts = crps_gaussian(*(1000 * np.array(v) for v in (y, mean, std)))
    assert in_millivolts == pytest.approx(1000 * score)


def test_crps_of_a_certain_prediction_is_the_absolute_error():
    y, mean = np.array([0.0, 1.0, 2.0]), np.array([0.0, 3.0, 1.5])
    for std in (np.zeros(3), np.full(3, 1e-12), np.full(3, 5e-324)):
        assert crps_gaussian(y, mean, std) == pytest.approx(2.5 / 3)
    assert crps_samples(y, np.tile(mean[:, None], 4)) == pytest.approx(2.5 / 3)


def double_loop(y, draws):
    """The fair estimator of one row, term by term."""
    m = len(draws)
    distance = sum(abs(x - y) for x in draws) / m
    spread = sum(abs(first - second) for first in draws for second in draws)
    return distance - spread / (2 * m * (m - 1))


def test_crps_samples_against_the_double_loop():
    rng = np.random.default_rng(0)
    y, draws = rng.normal(size=12), rng.normal(size=(12, 7))
    expected = np.mean([double_loop(y[t], draws[t]) for t in range(2, 12)])
    assert crps_samples(y, draws, n_initialization=2) == pytest.approx(expected)
    assert crps_samples(1000 * y, 1000 * draws, n_initialization=2) == pytest.approx(
        1000 * expected
    )


@pytest.mark.slow
@pytest.mark.parametrize("n_draws", [2, 3, 20])
def test_crps_samples_is_unbiased_in_the_number_of_draws(n_draws):
    n = 40_000
    exact = crps_gaussian([0.7], [0.0], [1.0])
    for seed in range(3):
        draws = np.random.default_rng(seed).normal(size=(n, n_draws))
        # so many tell the standard deviation to a few percent
        scores = [crps_samples([0.7], row[None]) for row in draws[:500]]
        standard_error = np.std(scores) / np.sqrt(n)
        assert abs(crps_samples(np.full(n, 0.7), draws) - exact) < 4.5 * standard_error


def test_scores_leave_missing_rows_out_and_punish_missing_predictions():
    y = np.array([0.5, np.nan, 1.0])
    mean, std = np.zeros(3), np.ones(3)
    draws = np.random.default_rng(0).normal(size=(3, 5))
    for array, score in (
        (mean, lambda: crps_gaussian(y, mean, std)),
        (std, lambda: crps_gaussian(y, mean, std)),
        (draws, lambda: crps_samples(y, draws)),
    ):
        finite = score()
        assert np.isfinite(finite)
        kept = array.copy()
        array[1] = np.nan  # where y is not measured either
        assert score() == finite
        array[2] = np.nan
        assert score() == np.inf
        array[:] = kept
    both = crps_gaussian(*(np.c_[v, v] for v in (y, mean, std)))
    np.testing.assert_allclose(both, crps_gaussian(y, mean, std))


@pytest.mark.parametrize(
    ("score", "arguments", "n_initialization", "message"),
    [
        (interval_coverage, (np.ones(3), np.ones(4), np.ones(3)), 0, "inconsistent"),
        (
            interval_coverage,
            (np.ones(3), np.ones(3), np.ones((3, 2))),
            0,
            "y_true and upper must have as many outputs; got 1 and 2",
        ),
        (
            interval_coverage,
            (np.ones(3), np.array([0.0, 0.0, 2.0]), np.ones(3)),
            1,
            "lower must not exceed upper; it does in row 2",
        ),
        (
            interval_coverage,
            (np.full(3, np.nan), np.zeros(3), np.ones(3)),
            0,
            "no measured value",
        ),
        (
            crps_gaussian,
            (np.ones(3), np.ones(3), np.array([1.0, 1.0, -1.0])),
            1,
            "y_std must not be negative; it is in row 2",
        ),
        (crps_gaussian, (np.ones(3), np.ones(3), np.full(3, np.inf)), 0, "y_std"),
        (crps_gaussian, (np.ones(3), np.ones(3), np.ones(3)), 3, "n_initialization"),
        (crps_samples, (np.ones((3, 2)), np.ones((3, 5))), 0, "one output; got 2"),
        (crps_samples, (np.ones(3), np.ones(3)), 0, r"at least 2 draws.*\(3,\)"),
        (crps_samples, (np.ones(3), np.ones((3, 1))), 0, "at least 2 draws"),
        (crps_samples, (np.ones(3), np.ones((4, 5))), 0, "inconsistent"),
        (crps_samples, (np.ones(3), np.ones((3, 5))), -1, "n_initialization"),
    ],
)
def test_bad_distributions_are_named(score, arguments, n_initialization, message):
    with pytest.raises(ValueError, match=message):
        score(*arguments, n_initialization=n_initialization)
