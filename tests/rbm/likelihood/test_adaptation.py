"""Temperatures that are adapted to the model, and their number."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rbm_models import random_model, trapped_model

from skbayesnn.rbm.likelihood import adaptation, annealing, estimates


def test_temperatures_are_spaced_by_the_lengths_of_the_parts():
    betas = np.linspace(0.0, 1.0, 41)
    lengths = np.full(20, 1e-9)
    lengths[5] = 3.0
    new = adaptation.respace(betas, lengths, 100)
    assert new.shape == (101,) and new[0] == 0.0 and new[-1] == 1.0
    assert (np.diff(new) > 0.0).all()
    # 80 of 100 steps and a twentieth of the 20 that are spread uniformly
    inside = ((new > 0.25 + 1e-9) & (new < 0.3 - 1e-9)).sum()
    assert 80 <= inside <= 82
    # none is further from the next one than the uniform ones are
    assert np.diff(new).max() <= 1.0 / 20 + 1e-9
    # equal lengths, or none, change nothing
    for same in (np.ones(20), np.zeros(20)):
        assert_allclose(adaptation.respace(betas, same, 40), betas, atol=1e-12)


def test_adapted_temperatures_beat_uniform_ones():
    """A transition at a sharp temperature; the work of chains varies less."""
    rbm, _ = trapped_model(barrier=0.4)
    base = np.full(rbm.weights.shape[1], -2.0)
    first = annealing.run_both(
        annealing.make_path(rbm, base, annealing.make_betas(201)), 50, 0
    )
    placed = adaptation.respace(first.betas, first.lengths, 400)
    stds = [
        annealing.run_both(annealing.make_path(rbm, base, betas), 50, 1).forward.std()
        for betas in (placed, annealing.make_betas(401))
    ]
    assert stds[0] < 0.7 * stds[1]


@pytest.mark.parametrize(
    "fractional", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_an_easy_model_costs_no_more_than_2000_temperatures(fractional, monkeypatch):
    rbm, model = random_model(6, 8, fractional=fractional)
    n_betas, run_both = [], adaptation.run_both

    def counted(path, *arguments):
        n_betas.append(len(path.betas))
        return run_both(path, *arguments)

    monkeypatch.setattr(adaptation, "run_both", counted)
    pair = adaptation.run_adapted(rbm, np.zeros(8), 100, 0)
    assert n_betas == [201, 801] and len(pair.betas) == 801
    result = estimates.combine(pair, annealing.base_log_partition(rbm, np.zeros(8)))
    low, high = result.interval
    assert low < naive.rbm_log_partition(model) < high
    assert not estimates.differ(result)


def test_a_hard_model_gets_more_temperatures():
    rbm, exact = trapped_model(barrier=0.4)
    base = np.full(rbm.weights.shape[1], -2.0)
    pair = adaptation.run_adapted(rbm, base, 20, 0)
    assert 801 < len(pair.betas) <= 12801
    result = estimates.combine(pair, annealing.base_log_partition(rbm, base))
    assert result.interval[0] < exact < result.interval[1]
    assert result.interval[1] - result.interval[0] <= 1.0


def test_rows_that_are_contested_get_more_temperatures():
    rbm, _ = random_model(20, 30, 0, 1.0)
    base = np.zeros(30)

    def run(rows=None):
        pair = adaptation.run_adapted(rbm, base, 20, 0, rows=rows)
        return estimates.combine(pair, 0.0)

    def rows_at(value):
        return estimates.LogPartition(value, (value - 0.01, value + 0.01), 0.1, 1e3)

    alone = run()
    low, _ = alone.interval
    assert alone.log_partition - low > 0.15
    within = run(rows_at(low + 0.02))
    assert within.n_betas > alone.n_betas
    assert not estimates.is_contested(within, rows_at(low + 0.02))
    # what annealing is clearly above, or what is taken anyway, needs no more
    for value in (low - 1.0, alone.log_partition + 0.05):
        assert run(rows_at(value)) == alone


def test_more_chains_along_the_same_temperatures():
    rbm, model = random_model(6, 8)
    pair = annealing.run_both(annealing.make_path(rbm, np.zeros(8), [0, 0.5, 1]), 20, 0)
    one, two = (
        adaptation.run_more_chains(rbm, np.zeros(8), pair, 0, n_jobs)
        for n_jobs in (1, 2)
    )
    for a, b in zip(one, two, strict=True):
        assert_array_equal(a, b)
    assert_array_equal(one.betas, pair.betas)
    assert len(one.forward) == len(one.reverse) == 80
    assert not np.isin(pair.forward, one.forward).any()
    result = estimates.combine(one, annealing.base_log_partition(rbm, np.zeros(8)))
    assert result.interval[0] < naive.rbm_log_partition(model) < result.interval[1]


@pytest.mark.parametrize("fractional", [False, True])
def test_jobs_change_no_adapted_runs(fractional):
    rbm, _ = random_model(5, 7, fractional=fractional)
    one, two = (
        adaptation.run_adapted(rbm, np.zeros(7), 20, 5, n_jobs) for n_jobs in (1, 2)
    )
    for a, b in zip(one, two, strict=True):
        assert_array_equal(a, b)


def test_runs_share_no_random_numbers(places):
    rbm, _ = random_model(2, 3)
    adaptation.run_adapted(rbm, np.zeros(3), 2, 0)
    assert len(places) > 2 * 2 * 1000
    assert len(set(places)) == len(places)
