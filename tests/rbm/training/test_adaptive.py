"""Adaptive training: its estimates, and the updates of a path."""

from itertools import islice

import naive
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from rbm_estimators import (
    assert_same_model,
    automatic,
    copy_with_training,
    digits,
    toy_data,
)
from rbm_models import random_states
from training_points import BEST, WORSE, adapting, point, settings_of

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn._persistence import Checkpoint
from skbayesnn.rbm.learning import contrastive, mixing
from skbayesnn.rbm.training import adaptive, tracking
from skbayesnn.rbm.training.job import Job
from skbayesnn.rbm.training.path import Segment
from skbayesnn.rbm.training.rows import Rows
from skbayesnn.rbm.training.start import base_of, start_model, start_training


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
    found = adaptive._reconsider(settings_of(), job, state, 1)
    assert calls == [900, 900]
    assert found.best.n_updates == found.current.n_updates == 9000
    assert (found.best.validation, found.best.error) == (-30.2, 0.1)
    assert found.plan.n_updates == 2700 and not found.others


def test_one_point_needs_no_other_estimate(monkeypatch):
    calls = measure(monkeypatch)
    state = adapting(BEST, BEST, cools=True)._replace(others=(WORSE,))
    found = adaptive._reconsider(settings_of(), job_of(random_states(22, 3)), state, 1)
    assert found.best is BEST and not calls


@pytest.mark.parametrize("gain, is_last", [(0.01, True), (-0.01, False)])
def test_the_model_that_has_cooled_counts_if_it_is_better(gain, is_last, monkeypatch):
    """By precise estimates of both, with as many temperatures."""
    calls = measure(monkeypatch, -30.0, -30.0 + gain)
    last = point(-30.5, n_updates=2600)
    state = adapting(last, BEST, cools=True)
    chosen, measured = adaptive._choose(
        settings_of(), job_of(random_states(22, 3)), state, 1
    )
    assert calls == [260, 260]
    assert chosen.n_updates == (2600 if is_last else 2000)
    assert chosen.validation == measured.validation == -30.0 + gain * is_last


def test_what_chance_may_have_raised_is_doubted():
    """A gain of up to four standard errors, of both models."""
    estimates = [
        tracking.Tracked(-25.0, value, 0.1, 9.0, 0.1, tracking.FIRST_BETAS)
        for value in (-30.1, -29.9, -29.5, -29.3)
    ]
    best = BEST._replace(error=0.1)
    doubted = [adaptive._is_doubtful(best, one) for one in estimates]
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
        found = adaptive._corrected(state, shift)
        assert found.plan.score_at_change == found.best.validation
        moved = found.best.validation - value
        assert moved == pytest.approx(-shift) and moved != 0.0
        assert found.current.validation == pytest.approx(value - 0.1 + moved)
        assert found.others[0].validation == found.current.validation
        # what was gained since stays so, and a first change has nothing to exceed
        later = state._replace(plan=state.plan._replace(score_at_change=value - 1.0))
        found = adaptive._corrected(later, shift)
        gained = found.best.validation - found.plan.score_at_change
        assert gained == pytest.approx(1.0)
        first = state._replace(plan=state.plan._replace(score_at_change=-np.inf))
        assert adaptive._corrected(first, shift).plan.score_at_change == -np.inf


@pytest.mark.parametrize("n_replicas, has_states", [(1, True), (3, False)])
def test_slow_chains_do_not_tell_what_a_round_has_gained(n_replicas, has_states):
    job, settings = job_of(random_states(300, 20)), settings_of(batch_size=20)
    rbm = start_model("random", 18, job.train, 0)
    state = start_training(rbm, job.train, 20, 0)
    if n_replicas > 1:
        state = contrastive.temper(state, base_of(job.train), n_replicas, 0)
    found = adaptive._states(settings, job, state, 100, 0)
    assert (found is not None) == has_states
    if has_states:
        assert found.shape == (200, 20)


@pytest.mark.slow
def test_likelihoods_that_are_exact_end_no_training_on_a_plateau():
    """Two causes that the model can hold; at first, random losses."""
    X = toy_data(600)
    V = naive.all_states(6).astype(int)
    # each group of three is 0 or 1 by its cause, through noise
    groups = V.reshape(-1, 2, 3).sum(axis=2)
    p = np.ones(64)
    for column, rate in enumerate([0.4, 0.6]):
        n_on = groups[:, column]
        p = p * (
            rate * 0.9**n_on * 0.1 ** (3 - n_on)
            + (1 - rate) * 0.1**n_on * 0.9 ** (3 - n_on)
        )
    assert p.sum() == pytest.approx(1.0)
    model = ContrastiveDivergenceRBM(4, max_updates=3000, random_state=0).fit(X)
    divergence = p @ (np.log(p) - model.score_samples(V))
    # twice what the 19 free parameters cost on 600 rows
    assert divergence < 2 * 19 / (2 * 600)


def job_of(X):
    train, validation = Rows(X[::2], None), Rows(X[1::2], None)
    return Job(train, validation, np.dtype(np.float32), 5, Checkpoint(None, {}, 5))


@pytest.mark.parametrize("n_before", [0, 1, 3, 4, 9])
def test_batches_continue_where_they_were(n_before):
    """Each epoch has every row once, in a new order."""
    job = job_of(random_states(22, 3))
    batches = [list(b) for b in islice(adaptive.batches_from(job, 3, 0), 12)]
    for epoch in range(3):
        rows = np.concatenate(batches[4 * epoch : 4 * epoch + 4])
        assert_array_equal(np.sort(rows), np.arange(11))
    assert batches[:4] != batches[4:8]
    later = islice(adaptive.batches_from(job, 3, n_before), 12 - n_before)
    assert [list(batch) for batch in later] == batches[n_before:]


@pytest.mark.parametrize("n_replicas", [1, 3])
def test_segments_make_the_updates_of_one(n_replicas):
    """At a constant step size; the given state stays as it is."""
    settings = settings_of(batch_size=7)
    job = job_of(random_states(60, 8))
    rbm = start_model("random", 5, job.train, 0)
    start = start_training(rbm, job.train, 7, 0)
    kept = contrastive.copy(start)

    def run(state, n_updates, n_before):
        segment = Segment(n_updates, 0.1, 0.1, 2, 0.01, n_replicas)
        state, _, rate = adaptive.run_segment(
            settings, job, contrastive.copy(state), segment, n_before
        )
        assert 0.0 < rate <= 0.1 + 1e-9
        return state

    whole = run(start, 20, 0)
    parts = run(run(start, 13, 0), 7, 13)
    assert_array_equal(whole.rbm.weights, parts.rbm.weights)
    assert whole.step == parts.step == start.step + 20
    assert contrastive.n_replicas(whole) == n_replicas
    for one, other in zip(start.rbm[:3], kept.rbm[:3], strict=True):
        assert_array_equal(one, other)
    assert not np.array_equal(whole.rbm.weights, start.rbm.weights)


@pytest.mark.parametrize("n_before", [0, 20_000])
def test_steps_fall_with_the_root_of_their_number(n_before):
    """Behind the first 2,000, also of a training that is continued."""
    job, settings = job_of(random_states(60, 8)), settings_of(learning_rate=0.1)
    rbm = start_model("random", 5, job.train, 0)
    state = start_training(rbm, job.train, 7, 0)._replace(step=1 + n_before)
    segment = Segment(3, 0.1, 0.1, 1, 0.0, 1)
    _, _, rate = adaptive.run_segment(settings, job, state, segment, 0)
    expected = 0.1 * np.sqrt(0.1) if n_before else 0.1
    assert rate == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("n_updates, n_steps", [(100, 20), (400, 80), (700, 100)])
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
    base = base_of(job.train)
    adaptive.run_round(settings, job, state, job.train, base, 0)
    assert asked == [n_steps]


@pytest.mark.parametrize("correlation, is_slow", [(0.1, False), (0.9, True)])
def test_chains_that_remember_take_more_steps(correlation, is_slow, monkeypatch):
    monkeypatch.setattr(mixing, "chain_correlation", lambda *arguments: correlation)
    model = automatic("rounds", max_updates=100).fit(digits(40))
    history = model.history_
    assert history["correlation"][0] == correlation
    assert history["n_replicas"][0] == 1
    assert (model.n_replicas_ > 1) == (history["n_replicas"][1] > 1) == is_slow
    # then it is not measured any more
    assert np.isnan(history["correlation"][-1]) == is_slow


@pytest.mark.slow
def test_a_tempered_fit_continues():
    """With as many temperatures, by fit or by partial_fit."""
    X = digits(40)
    model = automatic("rounds", warm_start=True).fit(X)
    model._training = contrastive.temper(model._training, model.base_intercept_, 3, 0)
    models = [copy_with_training(model).fit(X) for _ in range(2)]
    model = models[0]
    assert {len(values) for values in model.history_.values()} == {model.n_iter_}
    assert_same_model(*models)
    assert model.n_replicas_ == 3 and model.history_["n_replicas"][-1] == 3
    assert np.isfinite(model.score(X))
    assert model.partial_fit(X).n_replicas_ == 3
