"""The estimator that grows an RBM."""

import naive
import numpy as np
import pytest
from grids import first_by_default
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from rbm_estimators import (
    arrays_of,
    assert_same_model,
    assert_same_path,
    careful,
    digits,
    growing,
    independent_score,
    norms_of,
    snapshot,
    toy_data,
)
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_info, threadpool_limits

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.rbm.learning import growth

PATH = {
    "n_components",
    "change",
    "gain",
    "norm",
    "effective_sample_size",
    "frank_wolfe_gap",
    "acceptance",
    "unit_penalty",
    "free_energy",
    "seconds",
}


@pytest.mark.parametrize("objective", ["linearized", "likelihood"])
def test_grows_and_tells_how(objective):
    X = digits()
    model = careful(6, objective=objective, n_iter_no_change=20).fit(X)
    path = model.history_
    assert set(path) == PATH
    assert {len(values) for values in path.values()} == {model.n_iter_}
    assert model.n_components_ == path["n_components"][-1] == 6
    assert model.n_components_ == len(model.components_)
    assert_array_equal(np.cumsum(path["change"]), path["n_components"])
    assert set(path["change"]) <= {0, 1}
    added = path["change"] == 1
    assert (path["norm"][added] > 0).all()
    assert (path["effective_sample_size"] > 0).all()
    assert (path["effective_sample_size"] <= 500 * (1 + 1e-9)).all()
    assert (path["acceptance"] == 1.0).all()
    assert (np.diff(path["seconds"]) > 0).all()
    if objective == "likelihood":
        assert (path["gain"][added] > 0).all()
    assert path["free_energy"][-1] == pytest.approx(
        model.free_energy(X).mean(), rel=1e-5
    )
    assert model.score(X) > independent_score(X) + 1.0
    assert (model.unit_weights_ == 1.0).all() and model.alpha_ == 6.0


def test_more_units_are_better():
    X = digits()
    options = dict(n_corrective_steps=50, n_chains=1000)
    scores = [growing(n, **options).fit(X).score(X) for n in (1, 4, 12)]
    assert independent_score(X) < scores[0] < scores[1] - 0.3 < scores[2] - 0.6


def test_units_keep_the_order_in_which_they_came():
    X = digits()
    longer = growing(5, n_corrective_steps=0).fit(X)
    for k in (1, 3):
        shorter = growing(k, n_corrective_steps=0).fit(X)
        assert_array_equal(shorter.components_, longer.components_[:k])
        assert_array_equal(shorter.intercept_hidden_, longer.intercept_hidden_[:k])
        assert_same_path(shorter.history_, longer.history_, k)
    assert_allclose(longer.history_["norm"], norms_of(longer), rtol=1e-5)


def test_corrective_steps_move_all_units():
    X = digits()
    still = growing(3, n_corrective_steps=0).fit(X)
    moved = growing(3).fit(X)
    first = growing(1, n_corrective_steps=0).fit(X)
    assert_array_equal(still.components_[0], first.components_[0])
    assert np.abs(moved.components_[0] - first.components_[0]).max() > 1e-3


# held-out chains may refuse all units of so small a norm
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_penalty_and_radius():
    X = digits()
    norms = {
        strength: growing(3, unit_penalty=strength, n_corrective_steps=0).fit(X)
        for strength in (0.01, 0.1, 0.5)
    }
    first = [norms_of(model)[0] for model in norms.values()]
    assert first[0] > 1.2 * first[1] > 1.2 * first[2]
    options = dict(radius=0.7, unit_penalty=0.0, n_corrective_steps=0)
    inside = careful(3, **options).fit(X)
    assert (norms_of(inside) <= 0.7 * (1 + 1e-5)).all()
    inside = growing(3, **options).fit(X)
    assert (norms_of(inside) <= 0.7 * (1 + 1e-5)).all()
    # the ball is what holds them back
    assert norms_of(inside).max() > 0.6
    outside = growing(3, unit_penalty=0.1, n_corrective_steps=0).fit(X)
    assert norms_of(outside).max() > 0.8


@pytest.mark.parametrize("objective", ["linearized", "likelihood"])
def test_without_penalty_a_unit_may_grow(objective):
    """Neither penalty nor ball: the search ends after some iterations."""
    X = digits()
    options = dict(unit_penalty=0.0, n_corrective_steps=0, max_search_iter=10)
    model = careful(3, objective=objective, **options).fit(X)
    assert all(np.isfinite(array).all() for array in arrays_of(model))


def test_stops_where_nothing_is_gained():
    """Independent features leave nothing to learn."""
    X = np.random.default_rng(0).random((1000, 8)) < np.linspace(0.2, 0.8, 8)
    model = careful(10, tol=0.1, n_iter_no_change=3)
    with pytest.warns(
        ConvergenceWarning, match="one idle unit.*unit_penalty.*n_chains"
    ):
        model.fit(X)
    assert model.n_components_ == 1 and model.n_iter_ == 3
    assert not model.components_.any() and not model.intercept_hidden_.any()
    assert (model.history_["change"] == 0).all()
    assert (model.history_["n_components"] == 0).all()
    assert model.score(X) == pytest.approx(independent_score(X), abs=0.01)
    assert_allclose(model.transform(X), 0.5)
    assert model.get_feature_names_out().shape == (1,)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_few_units_of_noise():
    X = np.random.default_rng(0).random((1000, 8)) < 0.4
    model = careful(30, n_iter_no_change=3, tol=0.005).fit(X)
    assert model.n_components_ < 10
    assert model.score(X) == pytest.approx(independent_score(X), abs=0.05)


def test_tolerance_is_of_the_gain():
    X = digits()
    path = careful(8, tol=0.1, n_iter_no_change=2).fit(X).history_
    added = path["change"] == 1
    assert added.any()
    assert (path["gain"][added] > 0.1).all()
    assert (path["gain"][~added] <= 0.1).all()
    assert (path["change"][-2:] == 0).all() or path["n_components"][-1] == 8


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("objective", ["linearized", "likelihood"])
@pytest.mark.parametrize("seed", first_by_default(range(3)))
def test_away_steps_take_units_out(objective, seed):
    """Two units that tie together what does not belong together, on a right base."""
    X = toy_data()
    init = BernoulliRBM(2)
    signs = [[1, -1, 1, -1, 1, -1], [1, 1, -1, -1, -1, 1]]
    init.components_ = 0.8 * np.array(signs)
    init.intercept_hidden_ = np.ones(2)
    rate = (X.sum(axis=0) + 0.5) / (len(X) + 1)
    init.intercept_visible_ = np.log(rate / (1 - rate))
    init.n_features_in_ = 6
    options = dict(
        init=FrozenEstimator(init),
        objective=objective,
        unit_penalty=2.0,
        n_corrective_steps=0,
        n_gibbs_steps=20,
        n_iter_no_change=2,
        random_state=seed,
    )
    model = careful(4).set_params(away_steps=True, **options).fit(X)
    path = model.history_
    assert_array_equal(path["change"][:2], -1)
    assert_array_equal(path["n_components"], 2 + np.cumsum(path["change"]))
    assert (path["gain"][:2] > 0).all()
    # what is left is the base, or little more
    assert model.score(X) > independent_score(X) - 0.01
    without = careful(4).set_params(**options).fit(X)
    assert (without.history_["change"] >= 0).all()
    assert without.score(X) < model.score(X) - 0.1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("objective", ["linearized", "likelihood"])
def test_away_steps_do_no_harm(objective, seed):
    """A unit that is worth something stays, so growth ends."""
    X = digits()
    options = dict(objective=objective, away_steps=True, random_state=seed)
    model = careful(6).set_params(**options).fit(X)
    assert model.score(X) > independent_score(X) + 1.0
    assert model.n_components_ == 6


@pytest.mark.parametrize("objective", ["linearized", "likelihood"])
@pytest.mark.parametrize("alpha", first_by_default(["count", 3.0]))
def test_several_units_in_a_step(objective, alpha):
    X = digits()
    model = careful(7, objective=objective, alpha=alpha, units_per_step=3).fit(X)
    assert model.n_components_ == 7
    change = model.history_["change"]
    assert_array_equal(change[change != 0], [3.0, 3.0, 1.0])
    assert_array_equal(model.history_["n_components"], np.cumsum(change))
    assert model.score(X) > independent_score(X)
    # found on other rows, so they differ
    directions = model.components_ / np.linalg.norm(
        model.components_, axis=1, keepdims=True
    )
    overlap = directions @ directions.T
    assert overlap[~np.eye(7, dtype=bool)].max() < 1 - 1e-6
    again = careful(7, objective=objective, alpha=alpha, units_per_step=3).fit(X)
    assert_array_equal(again.components_, model.components_)


@pytest.mark.parametrize("alpha", [0.7, 2, 4.2, "learn"])
def test_fractional_models(alpha):
    X = toy_data()
    model = growing(3, alpha=alpha).fit(X)
    assert model.n_components_ == 3
    assert model.unit_weights_.sum() == pytest.approx(model.alpha_, rel=1e-6)
    if alpha == "learn":
        assert model.alpha_ != pytest.approx(3.0, rel=1e-3)
    else:
        assert model.alpha_ == pytest.approx(alpha, rel=1e-6)
    acceptance = model.history_["acceptance"]
    assert len(acceptance) == 3
    assert ((acceptance > 0) & (acceptance <= 1)).all()
    # the first step is that of independent features
    assert acceptance[0] == 1.0
    if alpha != 2:
        # two whole copies of one unit, then two units, are standard models
        assert (acceptance[1:] < 1).any()
    V = naive.all_states(6)
    twin = tuple(array.astype(np.float64) for array in arrays_of(model))
    W, hidden, _, c = twin
    assert_allclose(
        model.score_samples(V), np.log(naive.rbm_distribution(twin)[1]), atol=1e-5
    )
    assert np.exp(model.score_samples(V)).sum() == pytest.approx(1.0, abs=1e-5)
    assert_allclose(model.transform(V), c * naive.logistic(V @ W.T + hidden), rtol=1e-5)


def test_counted_temperature_is_a_standard_model():
    X = toy_data()
    model = growing(3, alpha="count").fit(X)
    assert (model.unit_weights_ == 1.0).all() and model.alpha_ == 3.0
    other = model.to_bernoulli_rbm()
    V = naive.all_states(6)
    assert_allclose(other.transform(V), model.transform(V), rtol=1e-5)


@pytest.mark.parametrize("n_chains", [37, 400])
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_a_growth_goes_on_with_as_many_chains_as_asked(way, n_chains):
    """It had kept those of the first fit."""
    X = toy_data()
    model = growing(2, warm_start=True).fit(X)
    assert len(model._training.chains.states) == 200
    model.set_params(n_components=3, n_chains=n_chains)
    model.partial_fit(X) if way == "partial_fit" else model.fit(X)
    assert len(model._training.chains.states) == n_chains
    assert model.n_components_ == 3


@pytest.mark.parametrize("alpha", ["learn", 0.5])
@pytest.mark.parametrize("way", ["fit", "partial_fit", "automatic"])
def test_counted_units_are_not_added_to_fractional_ones(alpha, way):
    """They had been: with weights that were neither 1 nor the same."""
    X = toy_data()
    model = growing(2, alpha=alpha, warm_start=True)
    model = model.partial_fit(X) if way == "partial_fit" else model.fit(X)
    before = snapshot(model)
    assert (model.unit_weights_ != 1).any()
    model.set_params(alpha="count", n_components="auto" if way == "automatic" else 4)
    with pytest.raises(ValueError, match="the earlier fit has unit_weights_ other"):
        model.partial_fit(X) if way == "partial_fit" else model.fit(X)
    for one, other in zip(before, snapshot(model), strict=True):
        assert_equal(one, other)
    # the other way round, all units get the new weight
    model = growing(2, warm_start=True).fit(X)
    model.set_params(alpha=alpha, n_components=3).fit(X)
    assert len(np.unique(model.unit_weights_)) == 1
    assert (model.unit_weights_ != 1).all()


@pytest.mark.slow
def test_fractional_partition_function_is_estimated():
    """64 features are too many to enumerate, 3 units cannot be."""
    X = digits()
    model = growing(3, alpha=2.2).fit(X)
    forward = model.log_partition("ais", betas=500, n_chains=50)
    reverse = model.log_partition("reverse_ais", betas=500, n_chains=50)
    assert forward.interval[0] < reverse.interval[1]
    assert reverse.interval[0] < forward.interval[1]
    assert forward.log_partition == pytest.approx(reverse.log_partition, abs=0.5)
    assert model.score_samples(X) == pytest.approx(
        -model.free_energy(X) - model.log_partition_
    )
    assert model.log_partition_ == pytest.approx(forward.log_partition, abs=0.2)


def test_init_continues_a_fitted_model():
    X = digits()
    init = BernoulliRBM(3, n_iter=3, random_state=0).fit(X)
    before = init.components_.copy()
    model = growing(5, init=FrozenEstimator(init), n_corrective_steps=0).fit(X)
    assert_array_equal(model.history_["n_components"], [4, 5])
    assert model.n_components_ == 5 and model.n_iter_ == 2
    assert_array_equal(model.components_[:3], before.astype(np.float32))
    assert_array_equal(
        model.intercept_hidden_[:3], init.intercept_hidden_.astype(np.float32)
    )
    # corrective steps work on a copy
    moved = growing(5, init=FrozenEstimator(init)).fit(X)
    assert not np.array_equal(moved.components_[:3], model.components_[:3])
    assert_array_equal(init.components_, before)
    # as large as asked for already
    same = growing(3, init=FrozenEstimator(init)).fit(X)
    assert same.n_components_ == 3 and same.n_iter_ == 1
    assert_array_equal(same.components_, before.astype(np.float32))


def test_init_is_fitted_first():
    X = digits()
    init = ContrastiveDivergenceRBM(2, max_iter=3, random_state=0)
    model = growing(4, init=init, n_corrective_steps=0).fit(X)
    assert not hasattr(init, "components_")
    assert_array_equal(model.components_[:2], clone(init).fit(X).components_)
    assert_array_equal(model.history_["n_components"], [3, 4])


@pytest.mark.parametrize(
    ("init", "error", "message"),
    [
        (FrozenEstimator(BernoulliRBM()), NotFittedError, "not fitted"),
        (PCA(2), TypeError, "init must be an RBM estimator.*PCA"),
        (ContrastiveDivergenceRBM(0), ValueError, "n_components"),
        (growing(2, alpha=1.5), ValueError, "alpha='count'.*init.*alpha='learn'"),
    ],
    ids=str,
)
def test_bad_init_is_named(init, error, message):
    with pytest.raises(error, match=message):
        growing(init=init).fit(toy_data())


def test_init_of_another_width():
    init = BernoulliRBM(2, n_iter=1).fit(toy_data())
    with pytest.raises(ValueError, match=r"init must have the shapes.*64.*\(2, 6\)"):
        growing(init=FrozenEstimator(init)).fit(digits())


def test_early_stopping():
    """On noise, each unit widens the gap between training and validation rows."""
    X = np.random.default_rng(0).random((60, 30)) < 0.5
    options = dict(
        n_corrective_steps=100, learning_rate=0.3, batch_size=20, max_gap=0.5
    )
    model = growing(60, early_stopping=True, **options)
    gap = model.fit(X).history_["gap"]
    assert 1 < model.n_components_ < 60
    assert gap[-1] > gap.min() + 0.5
    assert (gap[:-1] <= np.minimum.accumulate(gap[:-1]) + 0.5).all()
    energies = model.history_["validation_free_energy"] - model.history_["free_energy"]
    assert_allclose(gap, energies, atol=1e-9)
    assert set(model.history_) == PATH | {"gap", "validation_free_energy"}
    # 6 rows are held out
    counts = naive.logistic(model.base_intercept_) * 55 - 0.5
    assert_allclose(counts, np.round(counts), atol=1e-6)


def test_validation_data():
    rng = np.random.default_rng(0)
    X, X_val = rng.random((60, 30)) < 0.5, rng.random((40, 30)) < 0.5
    options = dict(
        n_corrective_steps=100, learning_rate=0.3, batch_size=20, max_gap=0.5
    )
    model = growing(60, early_stopping=True, **options).fit(X, X_val=X_val)
    n_units = model.n_components_
    assert 1 < n_units < 60
    energy = model.free_energy(X_val).mean()
    assert model.history_["validation_free_energy"][-1] == pytest.approx(
        energy, rel=1e-4
    )
    # without early_stopping it is recorded, and changes nothing
    other = growing(n_units + 1, **options).fit(X, X_val=X_val)
    assert other.n_components_ == n_units + 1
    assert_array_equal(other.history_["gap"][:-1], model.history_["gap"])
    assert_same_model(other, growing(n_units + 1, **options).fit(X))


def test_growth_takes_one_thread(monkeypatch):
    """Rounding then is the same for any number, and small products are fast."""
    step, seen = growth.step, []

    def spy(*arguments):
        libraries = threadpool_info()
        seen.extend(
            lib["num_threads"] for lib in libraries if lib["user_api"] == "blas"
        )
        return step(*arguments)

    monkeypatch.setattr(growth, "step", spy)
    with threadpool_limits(limits=2, user_api="blas"):
        growing(2).fit(toy_data()).set_params(n_components=3).partial_fit(toy_data())
    assert len(seen) >= 3 and set(seen) == {1}


@pytest.mark.parametrize("objective", ["linearized", "likelihood"])
def test_threads_change_nothing_of_the_growth(objective):
    X = digits()
    models = []
    for n_threads in (1, 2):
        with threadpool_limits(limits=n_threads, user_api="blas"):
            models.append(careful(4, objective=objective).fit(X))
    assert_same_model(*models)
    assert_allclose(models[0].transform(X), models[1].transform(X), rtol=1e-5)


@pytest.mark.filterwarnings("error")
def test_divergence_of_the_visible_biases_is_told():
    """They have a gradient of their own, beside the corrective steps."""
    model = growing(4, n_corrective_steps=0, learning_rate=1e4)
    with pytest.raises(ValueError, match="diverged.*learning_rate=10000"):
        model.fit(digits())


@pytest.mark.slow
def test_features_for_a_classifier():
    digits = load_digits()
    X, y = digits.data > 7, digits.target
    rbm = growing(30, n_corrective_steps=30)
    pipeline = make_pipeline(rbm, LogisticRegression(C=10.0, max_iter=2000))
    pipeline.fit(X[:900], y[:900])
    # chance is 0.1
    assert pipeline.score(X[900:], y[900:]) > 0.7


@pytest.mark.slow
def test_grid_search():
    X = digits(200)
    grid = {"unit_penalty": [0.05, 0.5], "n_components": [1, 8]}
    search = GridSearchCV(
        growing(n_corrective_steps=50), grid, cv=2, error_score="raise"
    )
    search.fit(X)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all() and len(set(scores)) == 4
    assert search.best_score_ == scores.max()
    assert search.best_params_["n_components"] == 8
    assert search.best_estimator_.n_components_ == 8
    assert search.transform(X).shape == (200, 8)


def test_verbose_prints_one_line_per_step(capsys):
    growing(3, verbose=True).fit(toy_data())
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["step 1", "step 2", "step 3"]
    assert "3 units, gain" in lines[2]


@pytest.mark.parametrize("seed", first_by_default(range(3)))
def test_rows_in_distant_groups(seed):
    """Chains that stayed in one would teach wrong shares, and ever larger weights."""

    def rows(n, seed):
        rng = np.random.default_rng(seed)
        return (rng.random((n, 1)) < 0.9) ^ (rng.random((n, 100)) < 0.02)

    def entropy(p):
        return -p * np.log(p) - (1.0 - p) * np.log(1.0 - p)

    model = FrankWolfeRBM(6, random_state=seed).fit(rows(500, seed))
    best = -entropy(0.9) - 100 * entropy(0.02)
    assert best - 3.0 < model.score(rows(4000, 99)) < best + 0.5
