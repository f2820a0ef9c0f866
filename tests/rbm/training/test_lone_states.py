"""States that many rows share, far from all others: found, set aside, given back."""

import contextlib
import io
import pickle

import naive
import numpy as np
import pytest
from grids import each_value_once, first_by_default
from numpy.testing import assert_allclose, assert_array_equal, assert_array_less
from rbm_estimators import automatic, copy_with_training, of_training
from rbm_models import random_model, twin
from sklearn.frozen import FrozenEstimator

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.rbm import listed_states, scoring
from skbayesnn.rbm.likelihood import exact
from skbayesnn.rbm.states import all_states
from skbayesnn.rbm.training import lone_states
from skbayesnn.rbm.training.job import Job
from skbayesnn.rbm.training.rows import Rows

pytestmark = pytest.mark.usefixtures("few_weighted_states")

N_FEATURES = 30
LONE = np.ones(N_FEATURES, dtype=np.uint8)


def data(n_rows=300, n_lone=100, n_on=4, seed=0):
    """Rows with few ones, and some with nothing else, in random order."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n_rows, N_FEATURES)) < n_on / N_FEATURES).astype(np.uint8)
    X[:n_lone] = 1
    return rng.permutation(X)


def job_of(X, X_val=None, whole=None, threshold=0.5):
    def rows(V):
        return None if V is None else Rows(V, threshold)

    return Job(rows(X), rows(X_val), np.dtype("f8"), 3, None, None, rows(whole))


def test_a_frequent_state_far_from_all_others_is_set_aside():
    X, X_val = data(), data(60, 20, seed=1)
    before = job_of(X, X_val, np.vstack([X, X_val]))
    job, lone = lone_states.set_aside(before)
    assert_array_equal(lone.states, [LONE])
    assert_allclose(lone.fractions, [100 / 300])
    assert (len(job.train), len(job.validation)) == (200, 40)
    assert len(job.whole) == 240
    assert not job.train.are_among(lone.states).any()
    others = X[(X != 1).any(axis=1)]
    assert_array_equal(job.train.take(slice(None), np.uint8), others)


def with_a_neighbour():
    X = data()
    X[np.flatnonzero((X == 0).any(axis=1))[0]] = np.r_[0, LONE[1:]]
    return X


def with_few_ones(n_on):
    """Rows with so many ones, and empty ones: as far from these as from each other."""
    X = np.zeros((300, N_FEATURES), dtype=np.uint8)
    X[:200, :n_on] = 1
    return np.random.default_rng(0).permuted(X, axis=1)


@pytest.mark.parametrize(
    "X",
    [
        pytest.param(data(n_lone=0), id="nothing is shared"),
        pytest.param(data(n_lone=2), id="by too few rows"),
        pytest.param(data(n_lone=200), id="by too many"),
        pytest.param(with_a_neighbour(), id="not alone"),
        pytest.param(with_few_ones(2), id="next to others"),
        pytest.param(with_few_ones(9), id="a few features away"),
        pytest.param(np.ones((50, 5), dtype=np.uint8), id="by all"),
        pytest.param(np.repeat(np.eye(8), 20, axis=0), id="states like the others"),
    ],
)
def test_otherwise_nothing_is(X):
    before = job_of(X, X[::2])
    job, lone = lone_states.set_aside(before)
    assert job is before
    assert not len(lone)


def test_ten_features_are_far():
    X = with_few_ones(10)
    _, lone = lone_states.set_aside(job_of(X, X[::2]))
    assert_array_equal(lone.states, np.zeros((1, N_FEATURES)))


def test_probabilities_are_no_states():
    before = job_of(data().astype(float), data().astype(float), threshold=None)
    job, lone = lone_states.set_aside(before)
    assert job is before
    assert not len(lone)


def test_validation_rows_that_are_all_alike_stay_where_they_are():
    before = job_of(data(), np.ones((9, N_FEATURES)))
    job, lone = lone_states.set_aside(before)
    assert job is before
    assert not len(lone)


def test_a_state_gets_its_share_and_leaves_the_others_as_they_are():
    rbm, model = random_model(5, 8)
    V = naive.all_states(8)
    states = V[[0, 200]].astype(np.uint8)
    old = np.log(naive.rbm_distribution(model)[1])
    lone = lone_states.LoneStates(states, np.array([0.3, 0.1]))
    job = job_of(V, V)
    whole, given = lone_states.give_back(rbm, lone, job, None)
    assert_array_equal(given, states)
    assert len(whole.weights) == 7
    new = np.log(naive.rbm_distribution(twin(whole))[1])
    assert_allclose(np.exp(new[[0, 200]]), lone.fractions, rtol=0.02)
    others = np.delete(new - old, [0, 200])
    assert np.ptp(others) < 0.01
    # the old model gave these states something, too
    assert_allclose(others, np.log(0.6), atol=0.02)


def test_a_state_that_is_likely_enough_needs_no_unit():
    rbm, model = random_model(5, 8)
    V = naive.all_states(8)
    likely = V[[naive.rbm_distribution(model)[1].argmax()]].astype(np.uint8)
    lone = lone_states.LoneStates(likely, np.array([1e-6]))
    whole, given = lone_states.give_back(rbm, lone, job_of(V, V), None)
    assert len(given) == 0
    assert len(whole.weights) == 5


@pytest.fixture(scope="module", params=first_by_default(["sizes", "rounds"]))
def fitted_and_printed(request):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        few = of_training(request.param, max_updates=40)
        model = automatic(request.param, verbose=True, **few).fit(data())
    return model, printed.getvalue()


@pytest.fixture
def fitted(fitted_and_printed):
    return fitted_and_printed[0]


of_rounds = pytest.mark.parametrize("fitted_and_printed", ["rounds"], indirect=True)
of_both = pytest.mark.parametrize(
    "fitted_and_printed", ["sizes", "rounds"], indirect=True
)


@of_both
def test_the_model_gives_the_share(fitted):
    assert_array_equal(fitted.lone_states_, [LONE])
    assert fitted.components_.shape == (fitted.n_components_, N_FEATURES)
    likelihood = fitted.score_samples(np.array([LONE]))
    assert_allclose(np.exp(likelihood), 1 / 3, atol=0.02)


def test_annealing_counts_the_state(fitted):
    true = exact.log_partition(fitted._training_rbm())
    result = fitted.log_partition("both")
    for estimate in (result, result.forward, result.reverse):
        # without the state it would be log(3 / 2) less
        assert_allclose(estimate.log_partition, true, atol=0.01)
        # three standard errors, which know nothing of the rounding of sums in float32:
        # those of the rows are as small as 1e-5
        low, high = estimate.interval
        assert low - 1e-5 <= true <= high + 1e-5
    alone = fitted.log_partition("ais", betas=300)
    assert_allclose(alone.log_partition, true, atol=0.01)


def test_annealing_back_starts_at_other_rows(fitted):
    true = exact.log_partition(fitted._training_rbm())
    result = fitted.log_partition("both", X=data())
    assert_allclose(result.reverse.log_partition, true, atol=1.0)


@of_rounds
@pytest.mark.parametrize(
    "others_first", [pytest.param(True, marks=pytest.mark.slow), False]
)
def test_rows_that_are_all_the_state_have_a_score(fitted, others_first, monkeypatch):
    """In any order of calls: no chain can start at them."""
    monkeypatch.setattr(scoring, "_ENUMERATED_UNITS", 0)
    model = pickle.loads(pickle.dumps(fitted))
    model._estimates.clear()
    alike = np.repeat(model.lone_states_, 60, axis=0)
    if others_first:
        model.score(data())
    assert_allclose(np.exp(model.score_samples(alike)), 1 / 3, atol=0.02)
    # chains of rows that come later still tell of what the estimate misses
    assert ("unchecked" in model._estimates) != others_first
    model.score(data())
    assert "unchecked" not in model._estimates


@of_rounds
@pytest.mark.parametrize("method", ["both", "reverse_ais"])
def test_a_reverse_run_needs_rows_of_other_states(fitted, method):
    alike = np.repeat(fitted.lone_states_, 60, axis=0)
    with pytest.raises(ValueError, match="each of its 60 rows is one of the lone"):
        fitted.log_partition(method, X=alike)


def test_samples_contain_the_state(fitted):
    V = fitted.sample(600, n_steps=20, random_state=0)
    assert V.dtype == bool
    fraction = (V == fitted.lone_states_[0]).all(axis=1).mean()
    assert_allclose(fraction, 1 / 3, atol=0.08)
    # held features rule it out
    clamp = np.full(N_FEATURES, np.nan)
    clamp[0] = 0.0
    V = fitted.sample(100, n_steps=20, clamp=clamp, random_state=0)
    assert not (V == fitted.lone_states_[0]).all(axis=1).any()


def conditional(model, row):
    """Probability of the first feature that is free, by all hidden states."""
    rbm, held = model._training_rbm(), ~np.isnan(row)
    h = all_states(len(rbm.weights))
    y = h @ rbm.weights.astype(float) + rbm.visible
    log_p = h @ rbm.hidden + y[:, held] @ row[held]
    log_p += np.logaddexp(0.0, y[:, ~held]).sum(axis=1)
    p = np.exp(log_p - log_p.max())
    return (p / p.sum()) @ (1.0 / (1.0 + np.exp(-y[:, ~held][:, 0])))


@pytest.mark.parametrize("fitted_and_printed", ["sizes"], indirect=True)
@pytest.mark.parametrize(
    *each_value_once(n_given=[1, 8], way=["all", "rows", "chains"])
)
def test_what_is_given_may_be_of_the_state(fitted, n_given, way, monkeypatch):
    """Chains do not find it: without what is known of it, 0.1 where 0.9 is right."""
    if way != "all":
        monkeypatch.setattr(listed_states, "can_list", lambda rbm: False)
    if way == "chains":
        monkeypatch.setattr(listed_states, "draws_of_rows", lambda *arguments: None)
    row = np.full(N_FEATURES, np.nan)
    row[:n_given] = LONE[:n_given]
    expected = conditional(fitted, row)
    assert n_given == 1 or expected > 0.8
    mean = fitted.impute(row[None], random_state=0)[0, n_given]
    assert_allclose(mean, expected, atol=0.05)
    rows = np.tile(row, (400, 1))
    drawn = fitted.impute(rows, strategy="sample", random_state=0)[:, n_given]
    clamped = fitted.sample(400, n_steps=100, clamp=row[None], random_state=0)
    for V in drawn, clamped[:, n_given]:
        assert_allclose(V.mean(), expected, atol=0.1)


def test_a_partial_fit_is_refused(fitted):
    before = fitted.components_.copy()
    with pytest.raises(ValueError, match="its 1 lone_states_ have units"):
        fitted.partial_fit(data())
    assert_array_equal(fitted.components_, before)


@of_rounds
def test_a_partial_fit_of_one_that_has_none_goes_on(fitted):
    others = fitted.truncate(fitted.n_components_ - 1)
    assert others.partial_fit(data()).n_components_ == fitted.n_components_ - 1


def test_chains_stay_in_the_state(fitted):
    V = np.repeat(fitted.lone_states_, 50, axis=0)
    assert_array_equal(fitted.gibbs(V, 5, random_state=0), V)


def test_fewer_units(fitted):
    n = fitted.n_components_
    assert_array_equal(fitted.truncate(n).lone_states_, [LONE])
    others = fitted.truncate(n - 1)
    assert others.lone_states_.shape == (0, N_FEATURES)
    assert others.score_samples([LONE])[0] < -10.0


@pytest.mark.slow
@of_rounds
def test_a_fit_that_goes_on_learns_the_state_anew(fitted):
    model = copy_with_training(fitted).set_params(warm_start=True)
    n_units = model.n_components_
    again = model.fit(data())
    assert again.n_components_ == n_units
    assert_array_equal(again.lone_states_, [LONE])
    assert_allclose(np.exp(again.score_samples([LONE])), 1 / 3, atol=0.02)


def going_on(fitted, way):
    """What goes on from a model with a unit for a lone state, to be fitted."""
    if way == "warm start":
        model = copy_with_training(fitted)
        return model.set_params(warm_start=True, max_iter=2, learning_rate=0.05)
    init = FrozenEstimator(fitted)
    if way == "growth":
        return FrankWolfeRBM(22, init=init, n_corrective_steps=5, n_chains=100)
    ends = {"epochs": {"max_iter": 2}, "rounds": {"max_updates": 40}}[way]
    return ContrastiveDivergenceRBM(init=init, **ends)


@of_rounds
@pytest.mark.parametrize(
    "way",
    ["warm start", "epochs", pytest.param("rounds", marks=pytest.mark.slow), "growth"],
)
def test_what_goes_on_begins_without_the_unit(fitted, way):
    """Chains do not find its state, and large weights pass for a divergence."""
    model = going_on(fitted, way).fit(data())
    n_units = fitted.n_components_ - 1
    if way == "growth":
        assert n_units <= model.n_components_ <= 22
    else:
        assert model.n_components_ == n_units + (way == "rounds")
    assert len(model.lone_states_) == (way == "rounds")
    if way != "rounds":
        largest = np.abs(fitted.intercept_hidden_[-1])
        assert np.abs(model.intercept_hidden_).max() < 0.5 * largest
    before = fitted.components_[:n_units]
    units = model.components_[:n_units]
    # the others go on from where they were
    similar = (before * units).sum(axis=1) / np.linalg.norm(before, axis=1)
    assert_array_less(0.5 * np.linalg.norm(units, axis=1), similar)


def test_epochs_set_nothing_aside():
    model = ContrastiveDivergenceRBM(4, max_iter=1, random_state=0).fit(data())
    assert model.n_components_ == 4
    assert model.lone_states_.shape == (0, N_FEATURES)


def test_what_is_set_aside_is_printed(fitted_and_printed):
    line = fitted_and_printed[1].splitlines()[0]
    assert line == "set aside: 33 % of the rows, which share a state far from others"
