"""The number of units, by data whose distribution is known."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from rbm_estimators import assert_same_model, automatic, digits, independent_score

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.rbm.learning import growth
from skbayesnn.rbm.training import adaptive, sizes

N_FEATURES, NOISE = 20, 0.05
# Modes of a mixture: k + 1 of them are what k units can hold.
MODES = np.random.default_rng(3).random((4, N_FEATURES)) < 0.5


def mixture_data(n_samples, seed=0):
    """Rows of one of the modes, through noise."""
    rng = np.random.default_rng(seed)
    V = MODES[rng.integers(len(MODES), size=n_samples)]
    return V ^ (rng.random(V.shape) < NOISE)


def mixture_score(X):
    """Mean log-likelihood of the distribution that they are drawn from."""
    flipped = (X[:, None] != MODES).sum(axis=2)
    logs = flipped * np.log(NOISE) + (N_FEATURES - flipped) * np.log1p(-NOISE)
    return np.mean([naive.log_sum(row) for row in logs]) - np.log(len(MODES))


def choosing(max_updates=300, **parameters):
    tuner = ContrastiveDivergenceRBM(max_updates=max_updates)
    defaults = dict(n_chains=100, n_search_rows=200, random_state=0)
    return FrankWolfeRBM(fine_tune=tuner, **{**defaults, **parameters})


@pytest.fixture
def from_one(monkeypatch):
    """Races begin with one unit, and are short."""
    monkeypatch.setattr(sizes, "_FIRST", 1)
    monkeypatch.setattr(sizes, "MAX_UNITS", 8)


def never_end(monkeypatch):
    """No gain is too small."""
    monkeypatch.setattr(sizes, "_LEAST", -1e9)
    monkeypatch.setattr(sizes, "_LEAST_GAIN", -1e9)


def race_of(model):
    """Columns of the history, for the sizes alone."""
    history = model.history_
    of_sizes = np.isfinite(history["gain"])
    assert of_sizes[: of_sizes.sum()].all()
    return {name: values[of_sizes] for name, values in history.items()}


def test_a_mixture_is_learned_by_a_few_units(from_one):
    """Close to the likelihood of the distribution itself, on new rows."""
    X, X_new = mixture_data(1000), mixture_data(2000, seed=1)
    model = choosing().fit(X)
    assert 2 <= model.n_components_ <= 8
    found, best = model.score(X_new), mixture_score(X_new)
    whole = best - independent_score(X_new, X)
    assert whole > 5.0
    assert best - found < 0.1 * whole


def test_the_race_is_recorded(from_one):
    model = choosing().fit(mixture_data(300))
    race = race_of(model)
    # sizes double; then units that were searched run at that of the best
    n_random = len(race["gain"]) - 1
    assert_array_equal(race["n_components"][:-1], 2 ** np.arange(n_random))
    assert race["n_components"][-1] == model.n_components_
    assert race["change"][0] == 1
    assert np.isnan(race["n_updates"]).all()
    # gains are differences of the validation likelihood to the best before
    validation, gain = race["validation_log_likelihood"], race["gain"]
    for k in range(1, len(gain)):
        assert np.isclose(gain[k], validation[k] - validation[:k], atol=1e-9).any()
    # a size that is left out would have gained little
    chosen = list(race["n_components"]).index(model.n_components_)
    whole = validation[chosen] - (validation[0] - gain[0])
    assert whole > 1.0
    assert validation[chosen] > validation[:-1].max() - 0.02 * whole
    assert (np.diff(model.history_["seconds"]) > 0.0).all()


@pytest.mark.parametrize(
    "values, expected",
    [
        # of 8, 16 and 32 units, which are hardly behind, the middle one
        ([-40.0, -31.0, -30.8, -30.0, -30.2, -30.2, -31.0], 16),
        # on both sides of the best
        ([-40.0, -31.0, -30.2, -30.1, -30.0, -30.9, -31.0], 8),
        # an even number of sizes: the smaller of both, here the best
        ([-40.0, -31.0, -30.8, -30.0, -30.2, -30.9, -31.0], 8),
        # a gain of nothing
        ([-50.0, -50.0, -50.0, -50.0, -50.0, -50.0, -50.0], 1),
    ],
)
def test_the_middle_of_sizes_that_are_hardly_behind_wins(values, expected):
    runners = []
    for k, value in enumerate(values):
        best = adaptive.Point(None, np.zeros((0, 7)), value, value, 0.0)
        outcome = adaptive.Outcome(None, best, -50.0, None)
        runners.append(sizes.Runner(outcome, None, 2**k, {"gain": k}))
    best = max(runners, key=lambda one: one.outcome.best.validation)
    found = sizes._middle(runners, best)
    assert found.n_units == expected
    if max(values) > min(values):
        # it tells of all of them
        assert found.history == runners[-1].history


def test_noise_needs_no_more_than_the_first_size(from_one):
    X = np.random.default_rng(0).random((300, 12)) < 0.3
    model = choosing(max_updates=200).fit(X)
    assert model.n_components_ == 1
    assert len(race_of(model)["gain"]) <= 4
    assert model.score(X) == pytest.approx(independent_score(X), abs=0.1)


@pytest.mark.parametrize("n_rows, expected", [(5, 4), (21, 18)])
def test_there_are_no_more_units_than_rows(n_rows, expected, monkeypatch):
    never_end(monkeypatch)

    def largest(runners, best):
        return runners[-1]

    monkeypatch.setattr(sizes, "_middle", largest)
    model = automatic("sizes").fit(digits(n_rows))
    assert race_of(model)["n_components"].max() == model.n_components_ == expected


def test_there_is_a_largest_size(from_one, monkeypatch):
    monkeypatch.setattr(sizes, "MAX_UNITS", 3)
    never_end(monkeypatch)
    model = choosing(max_updates=60).fit(mixture_data(200))
    assert_array_equal(race_of(model)["n_components"], [1, 2, 3, 3])
    # partial fits stop there as well
    model = choosing(n_corrective_steps=0, unit_penalty=0.01)
    for _ in range(5):
        model.partial_fit(mixture_data(200))
    assert 1 <= model.n_components_ <= 3


@pytest.mark.parametrize("are_better", [True, False])
def test_units_that_were_searched_start_the_training_if_they_gain(
    are_better, from_one, monkeypatch
):
    """The race and the last training go by the start that has won."""
    train, starts = adaptive.train, []

    def judged(settings, job, start, stage, task):
        outcome = train(settings, job, start, stage, task)
        starts.append((stage, np.abs(start.make_state().rbm.weights).max()))
        if "searched" in stage:
            change = 5.0 if are_better else -5.0
            best = outcome.best
            best = best._replace(validation=best.validation + change)
            outcome = outcome._replace(best=best)
        return outcome

    monkeypatch.setattr(adaptive, "train", judged)
    choosing(max_updates=200).fit(mixture_data(300))
    *race, (searched, of_searched), (last, of_last) = starts
    assert "searched" in searched and last == "training"
    # small directions, but not as small as random weights
    assert of_searched > 2.0 * max(size for _, size in race)
    if are_better:
        assert of_last == of_searched
    else:
        assert of_last in [size for _, size in race]


def test_searched_units_differ(monkeypatch):
    """Each was found on rows of its own; together they are no model."""
    found = []
    search = growth.diverse_units

    def spy(*arguments):
        found.append(search(*arguments))
        return found[-1]

    monkeypatch.setattr(growth, "diverse_units", spy)
    model = automatic("sizes").fit(digits(40))
    (rbm, *_) = found
    assert len(rbm.weights) == race_of(model)["n_components"][-1]
    assert len(np.unique(rbm.weights, axis=0)) == len(rbm.weights)
    # the search ends where other rows gain no more: the same again for the same seed
    assert_same_model(automatic("sizes").fit(digits(40)), model)
