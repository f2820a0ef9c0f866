"""Missing values by all hidden states, against all visible ones."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rbm_models import random_model

from skbayesnn.rbm import few_units


def holes(n_rows, n_features, seed=0):
    """States or probabilities, and which of them are missing."""
    rng = np.random.default_rng(seed)
    values = rng.random((n_rows, n_features)).astype(np.float32)
    values[::2] = values[::2] < 0.5
    return values, rng.random((n_rows, n_features)) < 0.6


@pytest.mark.parametrize("block", [1, 40, 2**20])
@pytest.mark.parametrize("n_units", [0, 1, 4])
def test_expectations_are_those_of_all_visible_states(n_units, block, monkeypatch):
    monkeypatch.setattr(few_units, "_BLOCK", block)
    rbm, model = random_model(n_units, 6, 3)
    values, missing = holes(20, 6)
    missing[0], missing[1] = True, False
    filled = few_units.fill(rbm, values, missing, None)
    assert filled.dtype == np.float32
    for row, free, found in zip(values, missing, filled, strict=True):
        V = np.where(free, naive.all_states(6), row)
        p = np.exp(naive.rbm_log_probability(model, V))
        assert_allclose(found, p @ V / p.sum(), atol=1e-5)


def test_draws_are_joint():
    rbm, model = random_model(3, 5, 1)
    row, free = np.array([1.0, 0.0, 0.0, 0.0, 1.0]), np.array([0, 1, 1, 1, 0]) > 0
    n = 40000
    rng = np.random.default_rng(0)
    drawn = few_units.fill(rbm, np.tile(row, (n, 1)), np.tile(free, (n, 1)), rng)
    assert_array_equal(drawn[:, ~free], np.tile(row[~free], (n, 1)))
    V = np.where(free, naive.all_states(5), row)
    V = np.unique(V, axis=0)
    p = np.exp(naive.rbm_log_probability(model, V))
    p /= p.sum()
    counts = (drawn[:, None] == V).all(axis=2).mean(axis=0)
    # 5 standard errors
    assert (np.abs(counts - p) < 5.0 * np.sqrt(p * (1.0 - p) / n)).all()


def test_which_models_have_few():
    def can_list(n_units, n_features, **kind):
        return few_units.can_list(random_model(n_units, n_features, **kind)[0])

    assert can_list(15, 64) and not can_list(16, 64)
    assert can_list(12, 512) and not can_list(17, 2)
    assert not can_list(3, 4, fractional=True)
