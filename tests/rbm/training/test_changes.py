"""What rounds of updates gain, against partition functions by enumeration."""

from functools import cache, partial

import numpy as np
import pytest
import scipy.special
from grids import first_by_default
from numpy.testing import assert_allclose
from rbm_models import exact_draws, random_model
from training_points import point

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn.rbm.learning import contrastive
from skbayesnn.rbm.likelihood import exact
from skbayesnn.rbm.training import adaptive, changes, plans
from skbayesnn.rbm.training.changes import Estimate

pytestmark = pytest.mark.usefixtures("few_weighted_states")

N_CHAINS = 50


def pair_of_models(size, seed):
    """A model, and another one whose weights differ by so much."""
    before, model = random_model(6, 8, seed)
    rng = np.random.default_rng(seed)
    weights = before.weights + rng.normal(0.0, size, before.weights.shape)
    after = before._replace(weights=weights.astype(before.weights.dtype))
    weights, hidden, *others = model
    return (before, model), (after, (after.weights.astype(float), hidden, *others))


def ratio_of(size, seed, of_chain=4):
    """The estimate by independent states of both models, and the exact value."""
    (before, one), (after, other) = pair_of_models(size, seed)
    states = [
        exact_draws(model, of_chain * N_CHAINS, seed + k)
        for k, model in enumerate((one, other))
    ]
    found = changes.log_ratio(before, after, *states, N_CHAINS)
    back = changes.log_ratio(after, before, *states[::-1], N_CHAINS)
    assert_allclose(back.value, -found.value, atol=1e-6)
    assert_allclose(back.error, found.error, rtol=1e-5)
    return found, exact.log_partition(after) - exact.log_partition(before)


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(0.02, marks=pytest.mark.slow),
        0.2,
        pytest.param(0.8, marks=pytest.mark.slow),
    ],
)
def test_the_ratio_has_the_error_that_it_tells(size):
    results = [ratio_of(size, seed) for seed in range(60)]
    scores = [(found.value - expected) / found.error for found, expected in results]
    # the standard deviation of 60 errors has itself one of a tenth
    assert 0.6 < np.std(scores) < 1.4
    assert abs(np.mean(scores)) < 0.5


def test_models_that_are_alike_differ_sharply():
    errors = [ratio_of(size, 0)[0].error for size in (0.02, 0.2, 0.8)]
    assert errors[0] < 0.2 * errors[1] < 0.1 * errors[2]
    assert ratio_of(0.0, 0)[0] == Estimate(0.0, 0.0)


def test_states_of_one_chain_count_as_one():
    """If they are all the same, they tell no more than one of them."""
    (before, one), (after, other) = pair_of_models(0.5, 3)
    states = [exact_draws(model, N_CHAINS, k) for k, model in enumerate((one, other))]
    single = changes.log_ratio(before, after, *states, N_CHAINS)
    repeated = [np.tile(of_model, (5, 1)) for of_model in states]
    found = changes.log_ratio(before, after, *repeated, N_CHAINS)
    assert_allclose(found, single, rtol=1e-6)


@pytest.mark.parametrize(
    "n_chains, n_updates, expected",
    [
        # few chains do not tell how far their states scatter
        (9, 2000, 0),
        # at least 200 states
        (10, 100, 200),
        (100, 100, 200),
        (500, 100, 1000),
        # more of each chain for more updates
        (100, 1000, 300),
        (100, 2000, 600),
        (100, 20000, 600),
    ],
)
def test_longer_rounds_get_more_states(n_chains, n_updates, expected):
    assert changes.n_states(n_chains, n_updates) == expected


def test_two_estimates_weigh_by_their_certainty():
    annealed, predicted = Estimate(10.0, 0.2), Estimate(9.5, 0.1)
    found, contradict = changes.reconcile(annealed, predicted)
    assert not contradict
    assert found.value == pytest.approx((10.0 / 0.04 + 9.5 / 0.01) / 125.0)
    assert found.error == pytest.approx(np.sqrt(1.0 / 125.0))
    assert changes.reconcile(Estimate(1.0, 0.0), predicted=Estimate(1.0, 0.0)) == (
        (1.0, 0.0),
        False,
    )


@pytest.mark.parametrize("gap", [1.0, -1.0])
def test_of_two_that_contradict_each_other_annealing_counts(gap):
    annealed, predicted = Estimate(10.0 + gap, 0.2), Estimate(10.0, 0.1)
    assert annealed.contradicts(predicted) and predicted.contradicts(annealed)
    assert changes.reconcile(annealed, predicted) == (annealed, True)


def test_corrections_leave_differences_as_they_are():
    one, other = (
        point(value, n_rounds=2)._replace(level_error=0.1, log_partition=50.0)
        for value in (-30.0, -29.9)
    )
    moved = [changes.corrected(each, 0.2) for each in (one, other)]
    assert_allclose([each.validation for each in moved], [-30.2, -30.1])
    assert_allclose([each.log_likelihood for each in moved], -20.2)
    assert_allclose([each.log_partition for each in moved], 50.2)
    assert_allclose([each.validation for each in moved[0].path], -30.2)
    segments = [[each.segment for each in path] for path in (moved[0].path, one.path)]
    assert segments[0] == segments[1]


def test_all_corrections_together_are_within_what_was_uncertain():
    """Or a model would become worse, and all earlier ones with it."""
    moved = point(-30.0)._replace(level_error=0.1)
    for _ in range(4):
        moved = changes.corrected(moved, 0.2)
    assert moved.validation == pytest.approx(-30.3)
    # what goes back counts from where it would be
    for _ in range(4):
        moved = changes.corrected(moved, -0.2)
    assert moved.validation == pytest.approx(-30.0)


def test_a_difference_is_that_of_annealing_if_both_contradict():
    precise, sharp = Estimate(-0.1, 0.1), Estimate(0.01, 0.005)
    assert changes.combined_difference(precise, sharp).value > 0.0
    assert changes.combined_difference(precise, Estimate(1.0, 0.005)) == precise


def clustered_rows(seed):
    rng = np.random.default_rng(seed)
    modes = rng.random((4, 17)) < 0.5
    return modes[rng.integers(4, size=600)] ^ (rng.random((600, 17)) < 0.1)


def spied_fit(seed, **parameters):
    """Points of a training, whose models are small enough to be enumerated."""
    points, run_round = [], adaptive.run_round

    def spy(settings, *arguments):
        adapting, record = run_round(settings, *arguments)
        points.append((settings, adapting))
        return adapting, record

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adaptive, "run_round", spy)
        parameters = {"n_components": 18, "max_updates": 1500, **parameters}
        model = ContrastiveDivergenceRBM(**parameters, random_state=seed)
        model.fit(clustered_rows(seed))
    return points


usual_fit = cache(spied_fit)


@pytest.mark.parametrize("seed", first_by_default(range(3)))
@pytest.mark.slow
def test_rounds_of_a_training_differ_by_what_is_told(seed):
    errors, scores, levels = [], [], []
    for settings, adapting in usual_fit(seed):
        both = adapting.best, adapting.current
        log_partition = partial(contrastive.model, settings.update)
        exactly = [exact.log_partition(log_partition(one.state)) for one in both]
        told = [one.log_partition for one in both]
        errors.append(np.diff(told)[0] - np.diff(exactly)[0])
        scores.append(errors[-1] / max(both[1].error, 1e-4))
        levels.append((told[1] - exactly[1]) / max(both[1].level_error, 1e-4))
    assert len(errors) >= 8
    # the standard error of a short annealing is several hundredths
    assert np.median(np.abs(errors[-4:])) < 0.01
    assert np.median(np.abs(scores)) < 2.0 and np.max(np.abs(scores)) < 4.0
    assert np.median(np.abs(levels)) < 2.0


@pytest.mark.slow
def test_a_mode_that_a_model_has_lost_is_no_longer_counted():
    """At first, units that are all alike overrate states that no chain comes to."""
    X, weights = clustered_rows(0), np.full((60, 17), 0.3)
    # to first order, this leaves the rates as they are
    means = scipy.special.expit(X @ weights.T).mean(axis=0)
    visible = scipy.special.logit(X.mean(axis=0)) - means @ weights
    start, errors = (weights, np.zeros(60), visible), []
    for settings, adapting in spied_fit(0, max_updates=200, init=start):
        current = adapting.current
        model = contrastive.model(settings.update, current.state)
        errors.append(current.log_partition - exact.log_partition(model))
    assert_allclose(errors, 0.0, atol=0.5)


def test_a_point_keeps_states_for_the_next_round():
    """Of its own model, and as many as `n_states` says."""
    for settings, adapting in spied_fit(0, max_updates=200, refit=False)[:2]:
        current = adapting.current
        n_chains = len(current.state.chains)
        expected = changes.n_states(n_chains, plans.FIRST_ROUND), 17
        assert current.states.shape == expected
        assert settings.update.persistent
