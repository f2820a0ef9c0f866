"""Missing values by a list of hidden states, against all visible ones."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rbm_models import exact_draws, random_model

from skbayesnn.rbm import listed_states


def holes(n_rows, n_features, seed=0):
    """States or probabilities, and which of them are missing."""
    rng = np.random.default_rng(seed)
    values = rng.random((n_rows, n_features)).astype(np.float32)
    values[::2] = values[::2] < 0.5
    return values, rng.random((n_rows, n_features)) < 0.6


@pytest.mark.parametrize("block", [1, 40, 2**20])
@pytest.mark.parametrize("n_units", [0, 1, 4])
def test_expectations_are_those_of_all_visible_states(n_units, block, monkeypatch):
    monkeypatch.setattr(listed_states, "_BLOCK", block)
    rbm, model = random_model(n_units, 6, 3)
    values, missing = holes(20, 6)
    missing[0], missing[1] = True, False
    filled = listed_states.fill(listed_states.all_of(rbm), values, missing, None)
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
    drawn = listed_states.fill(
        listed_states.all_of(rbm), np.tile(row, (n, 1)), np.tile(free, (n, 1)), rng
    )
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
        return listed_states.can_list(random_model(n_units, n_features, **kind)[0])

    assert can_list(15, 64) and not can_list(16, 64)
    assert can_list(12, 512) and not can_list(17, 2)
    assert not can_list(3, 4, fractional=True)


def exactly(model, row, free):
    """Expectations of a row, and the log of the mass of what is given."""
    V = np.unique(np.where(free, naive.all_states(len(row)), row), axis=0)
    p = np.exp(naive.rbm_log_probability(model, V))
    return p @ V / p.sum(), np.log(p.sum())


@pytest.mark.parametrize("block", [4000, 2**20])
def test_draws_of_rows_tell_expectations_and_masses(block, monkeypatch):
    """4,000 of them: errors are of the order of one over the root of that."""
    monkeypatch.setattr(listed_states, "_BLOCK", block)
    rbm, model = random_model(6, 8, 3)
    rows = exact_draws(model, 300, dtype=np.uint8)
    values, missing = holes(20, 8)
    missing[0] = True
    listed = listed_states.draws_of_rows(rbm, rows, 5)
    drawn = listed_states.fill(
        listed_states.all_of(rbm), values, missing, np.random.default_rng(0)
    )
    arguments = listed, values, missing, [drawn]
    means, log_masses, are_known = listed_states.expectations(*arguments)
    assert are_known.all()
    for k in range(20):
        expected, mass = exactly(model, values[k], missing[k])
        assert_allclose(means[k][missing[k]], expected[missing[k]], atol=0.05)
        assert_allclose(log_masses[k], mass, atol=0.1)


def test_which_models_have_draws_of_rows():
    rbm, rows = random_model(3, 12)[0], np.ones((5, 12), dtype=np.uint8)
    assert len(listed_states.draws_of_rows(rbm, rows, 0).y) == 4000
    assert listed_states.draws_of_rows(rbm, rows[:0], 0) is None
    fractional = random_model(3, 12, fractional=True)[0]
    assert listed_states.draws_of_rows(fractional, rows, 0) is None
