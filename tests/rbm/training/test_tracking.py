"""The tracked likelihood against enumeration."""

import naive
import numpy as np
import pytest
from grids import first_by_default
from rbm_models import (
    exact_draws,
    random_model,
    random_states,
    trapped_model,
    twin,
)

from skbayesnn._persistence import Checkpoint
from skbayesnn.rbm.likelihood import exact
from skbayesnn.rbm.training import row_estimates, tracking
from skbayesnn.rbm.training.changes import Estimate
from skbayesnn.rbm.training.job import Job
from skbayesnn.rbm.training.rows import Rows


def job_of(n_features, seed=0, with_validation=True):
    train, validation = (Rows(random_states(n, n_features, n), None) for n in (40, 30))
    checkpoint = Checkpoint(None, {}, seed)
    if not with_validation:
        validation = None
    return Job(train, validation, np.dtype(np.float32), seed, checkpoint)


def track(rbm, seed=0, **options):
    job = job_of(rbm.weights.shape[1], seed, options.pop("with_validation", True))
    base = np.zeros(rbm.weights.shape[1])
    return tracking.track(rbm, base, job, job.train, 1, **options)


def expected(rbm):
    """By the exact partition function."""
    job = job_of(rbm.weights.shape[1])
    return [
        naive.rbm_log_probability(twin(rbm), rows.X.astype(float)).mean()
        - exact.log_partition(rbm)
        for rows in (job.train, job.validation)
    ]


@pytest.mark.parametrize(
    "sizes, fractional",
    [
        ((0, 30), False),
        ((1, 30), False),
        ((16, 20), False),
        ((20, 16), False),
        # whose units are no states
        ((20, 16), True),
    ],
)
def test_small_models_are_enumerated(sizes, fractional):
    rbm, _ = random_model(*sizes, fractional=fractional)
    found = track(rbm)
    assert found.error == 0.0
    assert found.betas is tracking.FIRST_BETAS
    np.testing.assert_allclose(found[:2], expected(rbm), rtol=1e-6)


def test_a_doubtful_estimate_gets_three_times_the_chains(monkeypatch):
    # annealing alone
    monkeypatch.setattr(row_estimates, "_SHORT", (2, 1))
    rbm, _ = random_model(18, 17, 1, 0.5)
    asked = []

    def doubted(tracked):
        asked.append(tracked)
        return True

    plain = [track(rbm, seed) for seed in range(8)]
    more = [track(rbm, seed, doubted=doubted) for seed in range(8)]
    np.testing.assert_array_equal([t[:3] for t in asked], [t[:3] for t in plain])
    ratios = [a.error / b.error for a, b in zip(plain, more, strict=True)]
    assert np.mean(ratios) == pytest.approx(np.sqrt(3.0), rel=0.2)
    _, validation = expected(rbm)
    scores = [(one.validation - validation) / one.error for one in more]
    assert np.abs(scores).max() < 5.0
    for one, other in zip(plain, more, strict=True):
        np.testing.assert_array_equal(one.betas, other.betas)
    unasked = track(rbm, doubted=lambda tracked: False)
    np.testing.assert_array_equal(unasked[:3], plain[0][:3])


@pytest.mark.parametrize("scale", [pytest.param(0.1, marks=pytest.mark.slow), 0.5])
def test_larger_models_are_estimated(scale):
    """Within their standard errors, over seeds; both have the same error."""
    rbm, _ = random_model(18, 17, 1, scale)
    train, validation = expected(rbm)
    differences, errors = [], []
    for seed in range(12):
        found = track(rbm, seed)
        differences.append(found.validation - validation)
        errors.append(found.error)
        same = found.log_likelihood - train
        assert same == pytest.approx(differences[-1], abs=1e-4)
    scores = np.array(differences) / errors
    assert np.abs(scores).max() < 5.0
    # the errors are not much too large: chi-square with 12 degrees of freedom
    assert 2.2 < np.square(scores).sum() < 40.0


def test_without_validation_rows():
    rbm, _ = random_model(3, 5)
    found = track(rbm, with_validation=False)
    assert np.isnan(found.validation) and np.isfinite(found.log_likelihood)


def test_random_numbers_are_those_of_the_number():
    rbm, _ = random_model(18, 17)
    job, base = job_of(17), np.zeros(17)
    first, again, other = (
        tracking.track(rbm, base, job, job.train, number) for number in (1, 1, 2)
    )
    assert first[:3] == again[:3]
    assert first.log_likelihood != other.log_likelihood


def test_threads_change_nothing():
    rbm, _ = random_model(18, 17)
    first, second = (track(rbm, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert first[:3] == second[:3]


def test_temperatures_follow_the_model():
    """More where the weights of the chains spread, fewer where they do not."""
    hard, _ = random_model(30, 40, 0, 2.0)
    first = track(hard, most=1000)
    betas = first.betas
    assert len(betas) > len(tracking.FIRST_BETAS)
    # which makes the next estimate better
    assert track(hard, betas=betas).error < first.error
    easy, _ = random_model(20, 40, 0, 0.01)
    fewer = track(easy, betas=betas).betas
    assert len(tracking.FIRST_BETAS) <= len(fewer) < len(betas)
    for found in (betas, fewer):
        assert found[0] == 0.0 and found[-1] == 1.0
        assert (np.diff(found) > 0.0).all()


def test_a_model_of_the_data_beats_others():
    """On draws from the first of two models; the other one is like it."""
    rbm, model = random_model(18, 12, 3, 0.7)
    other, _ = random_model(18, 12, 4, 0.7)
    rows = Rows(exact_draws(model, 400), None)
    job = job_of(12)._replace(train=rows, validation=rows)
    base = np.zeros(12)
    first, second = (
        tracking.track(one, base, job, rows, 0).validation for one in (rbm, other)
    )
    assert first > second


def trapped_rows():
    """A model whose mode no annealing finds, with rows in it and elsewhere."""
    rbm, exact_value = trapped_model(0.6)
    off, on = (np.full((60, 40), value, dtype=np.uint8) for value in (0, 1))
    at_mode = naive.rbm_log_probability(twin(rbm), on[:1].astype(float))[0]
    return rbm, Rows(on, 0.5), Rows(off, 0.5), at_mode - exact_value


@pytest.mark.usefixtures("fewer_row_draws")
@pytest.mark.parametrize("held_out", first_by_default(["in the mode", "elsewhere"]))
def test_training_rows_reveal_the_mode_that_annealing_misses(held_out):
    """By their hidden states: the likelihood is right."""
    rbm, rows, others, expected = trapped_rows()
    base = np.full(40, -2.0)
    validation = rows if held_out == "in the mode" else others
    job = job_of(40)._replace(train=rows, validation=validation)
    found = tracking.track(rbm, base, job, rows, 0)
    assert found.log_likelihood == pytest.approx(expected, abs=5 * found.error)
    assert 0.0 < found.error < 0.1
    measured = tracking.measure(rbm, base, job, 0, 200)
    assert measured.validation == pytest.approx(found.validation, abs=0.3)
    # not the directions of annealing, which agree on too little
    assert measured.missed > 50.0 and measured.gap == measured.missed
    assert measured.forward == pytest.approx(measured.reverse, abs=0.01)


@pytest.mark.usefixtures("fewer_row_draws")
def test_no_state_of_the_data_is_likelier_than_all_states():
    """Where only validation rows are in the mode, their states are the bound."""
    rbm, rows, others, _ = trapped_rows()
    base = np.full(40, -2.0)
    job = job_of(40)._replace(train=others, validation=rows)
    found = tracking.track(rbm, base, job, others, 0)
    assert found.validation == pytest.approx(0.0, abs=0.01)
    measured = tracking.measure(rbm, base, job, 0, 200)
    assert measured[:3] == pytest.approx([found.validation] * 3, abs=0.01)


def test_chains_of_the_training_reveal_a_mode_without_rows():
    rbm, rows, others, expected = trapped_rows()
    job = job_of(40)._replace(train=others, validation=others)
    base, asked = np.full(40, -2.0), []

    def draws(n):
        asked.append(n)
        return rows.states(np.zeros(n, dtype=int))

    plain = tracking.measure(rbm, base, job, 0, 200)
    found = tracking.measure(rbm, base, job, 0, 200, draws=draws)
    assert asked == [100, 300]
    # what nothing else tells is told by the directions, which contradict each other
    assert plain.gap < 1.0 and found.gap > 50.0
    assert found.validation < plain.validation - 20.0


def track_with(predicted, rbm, monkeypatch):
    """By annealing alone and a prediction; also the numbers of chains."""
    n_chains, run_both = [], tracking.annealing.run_both

    def counted(path, n, *more):
        n_chains.append(n)
        return run_both(path, n, *more)

    monkeypatch.setattr(row_estimates, "_SHORT", (2, 1))
    monkeypatch.setattr(tracking.annealing, "run_both", counted)
    found = track(rbm, predicted=predicted)
    monkeypatch.undo()
    return found, n_chains


def test_a_prediction_is_corrected_by_annealing(monkeypatch):
    rbm, _ = random_model(18, 17, 1, 0.5)
    alone, _ = track_with(None, rbm, monkeypatch)
    near = Estimate(alone.log_partition + alone.level_error, alone.level_error)
    found, n_chains = track_with((near, Estimate(0.3, 1e-3)), rbm, monkeypatch)
    assert n_chains == [100]
    # half of the way
    assert found.shift == pytest.approx(-0.5 * alone.level_error)
    assert found.log_partition == pytest.approx(near.value + found.shift)
    assert found.level_error == pytest.approx(alone.level_error / np.sqrt(2.0))
    assert found.error == 1e-3
    energies = found.log_likelihood + found.log_partition
    assert energies == pytest.approx(alone.log_likelihood + alone.log_partition)


@pytest.mark.parametrize("gap", [5.0, -5.0])
def test_a_prediction_that_annealing_contradicts(gap, monkeypatch):
    """Annealing is repeated with more chains, and counts."""
    rbm, _ = random_model(18, 17, 1, 0.5)
    far = Estimate(exact.log_partition(rbm) + gap, 0.1)
    found, n_chains = track_with((far, Estimate(0.3, 1e-3)), rbm, monkeypatch)
    assert n_chains == [100, 300] and found.shift == 0.0
    assert found.error == found.level_error < 0.1
    assert abs(found.log_partition - exact.log_partition(rbm)) < 5.0 * found.error
