"""A round of an automatic training, and what is measured after it."""

import numpy as np
import pytest
from rbm_models import random_states
from training_points import BEST, adapting, job_of, point, settings_of

from skbayesnn.rbm.learning import contrastive, mixing
from skbayesnn.rbm.training import (
    model_states,
    one_round,
    tracking,
)
from skbayesnn.rbm.training.start import base_of, start_model, start_training


def test_what_chance_may_have_raised_is_doubted():
    """A gain of up to four standard errors, of both models."""
    estimates = [
        tracking.Tracked(-25.0, value, 0.1, 9.0, 0.1, tracking.FIRST_BETAS)
        for value in (-30.1, -29.9, -29.5, -29.3)
    ]
    best = BEST._replace(error=0.1)
    doubted = [one_round._is_doubtful(best, one) for one in estimates]
    assert doubted == [False, True, True, False]


def test_a_correction_of_the_level_is_no_gain():
    """Of any size: or changes of plan that are in vain would never end the training."""
    rng = np.random.default_rng(0)
    for value, shift in rng.normal((-30.0, 0.0), (9.0, 0.1), (50, 2)):
        best = point(value)._replace(level_error=0.2)
        current = point(value - 0.1)._replace(level_error=0.2)
        state = adapting(current, best, score_at_change=value)._replace(
            others=(current,)
        )
        found = one_round._corrected(state, shift)
        assert found.plan.score_at_change == found.best.validation
        moved = found.best.validation - value
        assert moved == pytest.approx(-shift) and moved != 0.0
        assert found.current.validation == pytest.approx(value - 0.1 + moved)
        assert found.others[0].validation == found.current.validation
        # what was gained since stays so, and a first change has nothing to exceed
        later = state._replace(plan=state.plan._replace(score_at_change=value - 1.0))
        found = one_round._corrected(later, shift)
        gained = found.best.validation - found.plan.score_at_change
        assert gained == pytest.approx(1.0)
        first = state._replace(plan=state.plan._replace(score_at_change=-np.inf))
        assert one_round._corrected(first, shift).plan.score_at_change == -np.inf


@pytest.mark.parametrize("n_replicas, has_states", [(1, True), (3, False)])
def test_slow_chains_do_not_tell_what_a_round_has_gained(n_replicas, has_states):
    job, settings = job_of(random_states(300, 20)), settings_of(batch_size=20)
    rbm = start_model("random", 18, job.train, 0)
    state = start_training(rbm, job.train, 20, 0)
    if n_replicas > 1:
        state = contrastive.temper(state, base_of(job.train), n_replicas, 0)
    found = model_states.states_for_changes(settings, job, state, 100, 0)
    assert (found is not None) == has_states
    if has_states:
        assert found.shape == (200, 20)


@pytest.mark.parametrize(
    "n_updates, n_steps",
    [(100, 20), (400, 80), pytest.param(700, 100, marks=pytest.mark.slow)],
)
def test_chains_have_longer_to_forget_in_longer_rounds(n_updates, n_steps, monkeypatch):
    asked = []

    def correlation(state, n_steps, seed, rows):
        asked.append(n_steps)
        return 0.0

    monkeypatch.setattr(mixing, "chain_correlation", correlation)
    job = job_of(random_states(60, 8))
    settings = settings_of()
    rbm = start_model("random", 2, job.train, 0)
    start = start_training(rbm, job.train, 30, 0)
    best = BEST._replace(state=start, path=())
    state = adapting(best, best, n_updates=n_updates)
    one_round.run_round(settings, job, state, job.train, 0)
    assert asked == [n_steps]
