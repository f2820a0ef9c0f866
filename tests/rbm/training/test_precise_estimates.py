"""Which model of a training is the best, by precise estimates."""

import pytest
from rbm_models import random_states
from training_points import BEST, WORSE, adapting, job_of, point, settings_of

from skbayesnn.rbm.training import (
    precise_estimates,
    tracking,
)


def measure(monkeypatch, *values, error=0.1):
    """Precise estimates as they are asked for."""
    calls = []

    def measured(rbm, base, job, number, n_betas, n_jobs, *, draws):
        # of the model that is measured
        assert draws(3).shape == (3, rbm.weights.shape[1])
        calls.append(n_betas)
        value = values[len(calls) - 1]
        return tracking.Measured(value, value, value, error, 0.0)

    monkeypatch.setattr(tracking, "measure", measured)
    return calls


def test_points_that_chance_may_tell_apart_are_estimated_precisely(monkeypatch):
    """All by as many temperatures, and the last round is in proportion to the best."""
    job = job_of(random_states(22, 3))
    best, near, far = (
        point(value, error=0.2, n_updates=n)
        for value, n in [(-30.0, 4000), (-30.4, 9000), (-31.0, 1000)]
    )
    state = adapting(best, best, cools=True)._replace(others=(near, far))
    calls = measure(monkeypatch, -30.3, -30.2)
    found = precise_estimates.reconsider(settings_of(), job, state, 1)
    assert calls == [900, 900]
    assert found.best.n_updates == found.current.n_updates == 9000
    assert (found.best.validation, found.best.error) == (-30.2, 0.1)
    assert found.plan.n_updates == 2700 and not found.others


def test_one_point_needs_no_other_estimate(monkeypatch):
    calls = measure(monkeypatch)
    state = adapting(BEST, BEST, cools=True)._replace(others=(WORSE,))
    found = precise_estimates.reconsider(
        settings_of(), job_of(random_states(22, 3)), state, 1
    )
    assert found.best is BEST and not calls


@pytest.mark.parametrize("gain, is_last", [(0.01, True), (-0.01, False)])
def test_the_model_that_has_cooled_counts_if_it_is_better(gain, is_last, monkeypatch):
    """By precise estimates of both, with as many temperatures."""
    calls = measure(monkeypatch, -30.0, -30.0 + gain)
    last = point(-30.5, n_updates=2600)
    state = adapting(last, BEST, cools=True)
    chosen, measured = precise_estimates.choose(
        settings_of(), job_of(random_states(22, 3)), state, 1
    )
    assert calls == [260, 260]
    assert chosen.n_updates == (2600 if is_last else 2000)
    assert chosen.validation == measured.validation == -30.0 + gain * is_last
