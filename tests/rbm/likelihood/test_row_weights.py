"""Importance sampling from the hidden states of rows, against exact values."""

import numpy as np
import pytest
from rbm_models import random_model, random_states, trapped_model

from skbayesnn.rbm.likelihood import annealing, estimates, exact
from skbayesnn.rbm.likelihood.row_weights import followed_weights, log_row_weights


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("n_units, n_features", [(1, 6), (5, 6), (12, 4)])
def test_the_mean_weight_is_the_partition_function(n_units, n_features, dtype):
    """Whatever the rows are; within five standard errors."""
    rbm, _ = random_model(n_units, n_features, 3, 0.7)
    rows = random_states(20, n_features, dtype=np.uint8).astype(dtype)
    if dtype == np.float32:
        rows = 0.25 + 0.5 * rows
    log_weights = log_row_weights(rbm, rows, 3000, 1)
    weights = np.exp(log_weights - exact.log_partition(rbm))
    error = weights.std() / np.sqrt(len(weights))
    assert abs(weights.mean() - 1.0) < 5.0 * error + 1e-5
    assert error < 0.1


def test_rows_find_the_mode_that_annealing_misses():
    rbm, expected = trapped_model(0.6)
    base = np.full(40, -2.0)
    path = annealing.make_path(rbm, base, np.linspace(0.0, 1.0, 401))
    pair = annealing.run_both(path, 50, 0)
    offset = annealing.base_log_partition(rbm, base)
    annealed = estimates.combine(pair, offset)
    assert annealed.interval[1] < expected - 50.0
    on = (np.random.default_rng(0).random((300, 40)) < 0.97).astype(np.uint8)
    by_on = estimates.summarise(log_row_weights(rbm, on, 2000, 0), 0.0, 1.0)
    found = estimates.with_rows(annealed, by_on)
    assert found.log_partition == pytest.approx(expected, abs=0.05)
    assert found.interval[0] < expected < found.interval[1]
    assert found.rows.log_partition == found.log_partition
    assert estimates.misses_rows(found)
    # rows elsewhere add nothing
    off = np.zeros((300, 40), dtype=np.uint8)
    by_off = estimates.summarise(log_row_weights(rbm, off, 2000, 0), 0.0, 1.0)
    same = estimates.with_rows(annealed, by_off)
    assert same._replace(rows=None) == annealed and not estimates.misses_rows(same)


def test_a_run_back_from_draws_of_the_model_finds_it_too():
    """From where the chains of a training are."""
    rbm, expected = trapped_model(0.6)
    path = annealing.make_path(rbm, np.full(40, -2.0), np.linspace(0.0, 1.0, 401))
    asked = []

    def draws(n):
        asked.append(n)
        return np.ones((n, 40), dtype=np.uint8)

    pair = annealing.run_both(path, 50, 0, draws=draws)
    offset = annealing.base_log_partition(rbm, path.base)
    assert asked == [50]
    assert estimates.combine(pair, offset).reverse.log_partition > expected - 5.0


def test_draws_that_follow_the_model_leave_the_rows():
    """Rows below the barrier hardly have the states that hold the mass."""
    rbm, expected = trapped_model(0.65)
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.random((500, 40)) < 0.12, rng.random((20, 40)) < 0.5])
    rows = rows.astype(np.uint8)
    by_rows = estimates.summarise(log_row_weights(rbm, rows, 1000, 0), 0.0, 1.0)
    assert by_rows.interval[1] < expected - 5.0
    followed = followed_weights(rbm, rows, 1000, 0)
    found = estimates.summarise_rounds(followed)
    assert found.log_partition == pytest.approx(expected, abs=0.05)
    assert found.interval[0] < expected < found.interval[1]
    few, same, other = (followed_weights(rbm, rows, 50, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(same, few)
    assert (other != few).any()


@pytest.mark.parametrize(
    "dtype", [np.uint8, pytest.param(np.float32, marks=pytest.mark.slow)]
)
def test_the_mean_weight_of_each_round_is_the_partition_function(dtype):
    rbm, _ = random_model(5, 6, 3, 0.7)
    rows = random_states(20, 6, dtype=np.uint8).astype(dtype)
    if dtype == np.float32:
        rows = 0.25 + 0.5 * rows
    weights = np.exp(followed_weights(rbm, rows, 1500, 1) - exact.log_partition(rbm))
    errors = weights.std(axis=1) / np.sqrt(weights.shape[1])
    assert (np.abs(weights.mean(axis=1) - 1.0) < 5.0 * errors + 1e-5).all()
    # fewer draws than rows that follow
    assert np.isfinite(followed_weights(rbm, rows, 3, 1)).all()
