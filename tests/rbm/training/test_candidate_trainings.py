"""Other trainings where one may have failed: larger weights, fewer units, a tree."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from rbm_estimators import independent_score
from training_points import (
    adapting,
    default_settings,
    ended,
    point,
    settings_of,
    small_job,
)

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn._clock import Clock
from skbayesnn.rbm.training import (
    adaptive,
    candidate_trainings,
    gains,
    row_probabilities,
    start,
    tracking,
)

pytestmark = pytest.mark.usefixtures("few_weighted_states")


def parity(n_rows, seed):
    """Three features of which an even number is on, nearly always: no pair tells."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, 3)) < 0.5
    X[:, 2] = X[:, 0] ^ X[:, 1] ^ (rng.random(n_rows) < 0.05)
    return X


def test_larger_weights_leave_a_start_that_small_ones_do_not(monkeypatch):
    # small weights do not leave it in five times as many updates, either
    monkeypatch.setattr(gains, "PLATEAU_UPDATES", 1000)
    X, others = parity(2000, 0), parity(5000, 1)
    model = ContrastiveDivergenceRBM(16, max_updates=2500, random_state=0).fit(X)
    # the first start is told, too
    n_updates = model.history_["n_updates"]
    assert 1000 <= n_updates[: np.argmin(np.diff(n_updates)) + 1].max() <= 1300
    exact = 2.0 * np.log(0.5) + 0.95 * np.log(0.95) + 0.05 * np.log(0.05)
    assert model.score(others) == pytest.approx(exact, abs=0.05)
    assert independent_score(others) < exact - 0.4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("cls", [ContrastiveDivergenceRBM, FrankWolfeRBM])
def test_larger_weights_where_training_has_ended_without_a_gain(cls, seed):
    """Whether small ones are on the plateau still, or have begun to overfit there."""
    rng = np.random.default_rng(seed)
    X = rng.random((3000, 7)) < 0.5
    X[:, 3] = X[:, :3].sum(axis=1) % 2 ^ (rng.random(3000) < 0.05)
    exact = 6.0 * np.log(0.5) + 0.95 * np.log(0.95) + 0.05 * np.log(0.05)
    model = ContrastiveDivergenceRBM(32, max_updates=12000, random_state=seed)
    if cls is FrankWolfeRBM:
        model = FrankWolfeRBM(fine_tune=model, random_state=seed)
    model.fit(X[:400])
    assert model.score(X[400:]) > exact - 0.2
    assert independent_score(X[400:]) < exact - 0.45


def test_updates_that_may_not_leave_the_start_are_all():
    """No second start, with as many updates again, for one that was given few."""
    model = ContrastiveDivergenceRBM(4, max_updates=200, random_state=0)
    model.fit(parity(2000, 0))
    assert model.history_["n_updates"].max() <= 400


@pytest.mark.parametrize(
    ("n_before", "max_updates", "expected"),
    [(100, 30_000, 1600), (100, 1000, 1000), (2000, 30_000, 2000)],
)
def test_a_smaller_size_costs_no_more_than_what_it_has_to_beat(
    n_before, max_updates, expected, monkeypatch
):
    """400 updates of 8 units; what the size has had before is not taken from it."""
    limits = []

    def trained(settings, job, other, task):
        limits.append(settings.max_updates)
        return other._replace(outcome=outcome(other.adapting.best))

    def outcome(best):
        training = SimpleNamespace(interrupted=False, stopped=False)
        measured = tracking.Measured(best.validation, -20.0, -30.0, 0.1, 0.0)
        return adaptive.Outcome(training, best, -60.0, measured, None)

    monkeypatch.setattr(candidate_trainings, "_trained", trained)
    large = outcome(point(-25.0, n_updates=400, n_units=8))
    best = candidate_trainings.Candidate(None, outcome=large)
    small = point(-26.0, n_updates=n_before)
    other = candidate_trainings.Candidate(None, adapting=adapting(small, small))
    settings = settings_of(max_updates=max_updates)
    job = SimpleNamespace(clock=Clock())
    kept = candidate_trainings._or_smaller(settings, job, best, [other], None)
    assert limits == [expected] and kept is best


@pytest.mark.parametrize("begins_at", ["tree", "model"])
@pytest.mark.parametrize("n_errors", [0.5, 2.0])
def test_a_tree_stays_unless_training_surely_improves_it(
    begins_at, n_errors, monkeypatch
):
    a_job, settings = small_job(), default_settings()
    before, after = (
        start.larger_model(3, a_job.train, seed)._replace(
            visible=np.full(12, -0.4, dtype=np.float32)
        )
        for seed in (0, 1)
    )
    error = row_probabilities.error_of_lead(a_job.validation, before, after)
    outcome = ended(a_job, after, 500, -8.0 + n_errors * error)
    at_start = ended(a_job, before, 0, -8.0)
    found = at_start.best, at_start.measured
    monkeypatch.setattr(adaptive, "start_of", lambda *arguments: found)
    candidate = candidate_trainings.Candidate(
        lambda job: None, begins_at=begins_at, outcome=outcome
    )
    kept = candidate_trainings.or_tree(settings, a_job, candidate)
    is_tree = begins_at == "tree" and n_errors < 1.0
    assert kept.outcome.best is (at_start if is_tree else outcome).best
    expected = before if is_tree else after
    assert_array_equal(kept.outcome.training.state.rbm.weights, expected.weights)
