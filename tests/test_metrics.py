"""Errors of simulated records."""

import numpy as np
import pytest

from skbayesnn.metrics import fit_index, simulation_rmse


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
