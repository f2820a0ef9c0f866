"""Samples that follow a model from the rows, where these leave open what is missed."""

import numpy as np
import pytest
from rbm_models import random_model, random_states, trapped_model

from skbayesnn._persistence import Checkpoint
from skbayesnn.rbm.likelihood import exact
from skbayesnn.rbm.training import row_estimates, tracking
from skbayesnn.rbm.training.changes import Estimate
from skbayesnn.rbm.training.job import Job
from skbayesnn.rbm.training.row_probabilities import log_probabilities
from skbayesnn.rbm.training.rows import Rows


def rows_below_the_barrier():
    """A few of them have half of the features of the mode that is behind it."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.random((500, 40)) < 0.12, rng.random((20, 40)) < 0.5])
    return Rows(rows.astype(np.uint8), 0.5)


@pytest.mark.usefixtures("fewer_row_draws")
def test_a_precise_estimate_follows_the_model_to_its_mode(monkeypatch):
    """Annealing and rows are both too low by many nats, and agree."""
    rbm, expected = trapped_model(0.65)
    rows, base = rows_below_the_barrier(), np.full(40, -2.0)
    job = Job(rows, rows, np.dtype(np.float32), 0, Checkpoint(None, {}, 0))
    energy = log_probabilities(rbm, rows).mean()

    def measure():
        return tracking.measure(rbm, base, job, 0, 200)

    measured = measure()
    assert measured.validation == pytest.approx(energy - expected, abs=0.1)
    assert abs(measured.validation - energy + expected) < 5.0 * measured.error
    assert measured.missed > 5.0
    monkeypatch.setattr(row_estimates, "followed", lambda *a: a[3])
    assert measure().validation > energy - expected + 5.0


@pytest.mark.slow
def test_the_model_is_followed_only_where_rows_leave_something_open(monkeypatch):
    rbm, _ = random_model(18, 17, 1, 0.5)
    rows = Rows(random_states(50, 17, dtype=np.uint8), 0.5)
    level, calls = exact.log_partition(rbm), []
    followed_weights = row_estimates.followed_weights

    def counted(*args):
        calls.append(args)
        return followed_weights(*args)

    monkeypatch.setattr(row_estimates, "followed_weights", counted)
    annealed = Estimate(level, 0.01)
    sure = Estimate(level - 1.0, 0.1)
    assert row_estimates.followed(rbm, rows, annealed, sure, 0) is sure
    assert not calls
    unsure = Estimate(level - 1.0, 1.0)
    found = row_estimates.followed(rbm, rows, annealed, unsure, 0)
    assert len(calls) == 1
    assert abs(found.value - level) < 5.0 * found.error < 0.2
    fractional, _ = random_model(18, 17, 1, 0.5, fractional=True)
    assert row_estimates.followed(fractional, rows, annealed, unsure, 0) is unsure
    assert len(calls) == 1
