"""The restricted Boltzmann machine that grows: its path, its options, going on."""

import pickle

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
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
from skbayesnn.rbm.learning import contrastive, growth

N_FEATURES = 64
NAMES = ("components_", "intercept_hidden_", "intercept_visible_", "unit_weights_")


def digits(n_samples=300):
    return load_digits().data[:n_samples] > 7


def toy_data(n_samples=300, seed=0):
    """Six features: two hidden causes, each seen three times through noise."""
    rng = np.random.default_rng(seed)
    causes = np.repeat(rng.random((n_samples, 2)) < [0.4, 0.6], 3, axis=1)
    return causes ^ (rng.random((n_samples, 6)) < 0.1)


def independent_score(X):
    """Mean log-likelihood by smoothed base rates."""
    rate = (X.sum(axis=0) + 0.5) / (len(X) + 1)
    return np.where(X, np.log(rate), np.log1p(-rate)).sum(axis=1).mean()


def growing(n_components=4, **parameters):
    """Cheap, and sure to grow: the linearised objective takes what it finds."""
    defaults = dict(
        objective="linearized",
        unit_penalty=0.1,
        n_chains=200,
        n_corrective_steps=10,
        learning_rate=0.1,
    )
    return FrankWolfeRBM(n_components, random_state=0, **{**defaults, **parameters})


def careful(n_components=4, **parameters):
    """As is: units are checked on held-out chains, of which it takes many."""
    defaults = dict(
        objective="likelihood",
        unit_penalty=0.1,
        n_chains=1000,
        n_corrective_steps=50,
        learning_rate=0.1,
    )
    return FrankWolfeRBM(n_components, random_state=0, **{**defaults, **parameters})


def arrays_of(model):
    return [getattr(model, name) for name in NAMES]


def assert_same_model(first, second):
    for a, b in zip(arrays_of(first), arrays_of(second), strict=True):
        assert_array_equal(a, b)


def assert_same_path(first, second, n_steps=None):
    """All but the time it took."""
    assert set(first) == set(second)
    for name in set(first) - {"seconds"}:
        assert_array_equal(first[name][:n_steps], second[name][:n_steps], name)


def norms_of(model):
    return np.sqrt(
        np.square(model.components_).sum(axis=1) + np.square(model.intercept_hidden_)
    )


def interrupt(monkeypatch, module, n_calls):
    """Ctrl-C after so many calls of ``module.step``."""
    step = module.step
    calls = iter(range(n_calls))

    def interrupted_step(*arguments):
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return step(*arguments)

    monkeypatch.setattr(module, "step", interrupted_step)


# Growth.

PATH = {
    "n_components",
    "change",
    "gain",
    "norm",
    "effective_sample_size",
    "frank_wolfe_gap",
    "acceptance",
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
    with pytest.warns(ConvergenceWarning, match="one idle unit.*unit_penalty.*n_chains"):
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
@pytest.mark.parametrize("seed", range(3))
def test_away_steps_take_units_out(seed):
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


@pytest.mark.parametrize("objective", ["linearized", "likelihood"])
def test_away_steps_do_no_harm(objective):
    """Additions and removals that undo each other lead nowhere, yet not astray."""
    X = digits()
    model = careful(6, objective=objective, away_steps=True).fit(X)
    assert model.score(X) > independent_score(X)


@pytest.mark.parametrize("objective", ["linearized", "likelihood"])
@pytest.mark.parametrize("alpha", ["count", 3.0])
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


# Temperatures.


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


# Starts.


def test_init_goes_on_from_a_fitted_model():
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


# Fine-tuning.


@pytest.mark.parametrize("norm", [None, 0.5])
def test_fine_tuning_improves(norm):
    X = digits()
    tuner = ContrastiveDivergenceRBM(batch_size=20, max_iter=40, learning_rate=0.2)
    plain = growing(6).fit(X)
    tuned = growing(6, fine_tune=tuner, fine_tune_norm=norm).fit(X)
    assert tuned.score(X) > plain.score(X) + 0.5
    assert isinstance(tuned.fine_tune_, ContrastiveDivergenceRBM)
    assert tuned.fine_tune_ is not tuner and not hasattr(tuner, "components_")
    assert tuned.fine_tune_.n_iter_ == 40
    assert_same_model(tuned, tuned.fine_tune_)
    assert_same_path(tuned.history_, plain.history_)
    assert not hasattr(plain, "fine_tune_")
    assert tuned.fine_tune_.score(X) == pytest.approx(tuned.score(X), rel=1e-9)


def test_fine_tuning_starts_from_small_weights():
    """Norms are bounded, directions stay."""
    X = digits()
    still = ContrastiveDivergenceRBM(max_iter=1, learning_rate=1e-12)
    plain = growing(4, n_corrective_steps=0).fit(X)
    options = dict(n_corrective_steps=0, fine_tune=still)
    small = growing(4, fine_tune_norm=0.25, **options).fit(X)
    norms = np.linalg.norm(plain.components_, axis=1, keepdims=True)
    assert norms.max() > 0.5
    scaled = plain.components_ * np.minimum(1.0, 0.25 / norms)
    factor = (small.components_ * plain.components_).sum(axis=1) / norms[:, 0] ** 2
    assert_allclose(small.components_, factor[:, None] * plain.components_, atol=1e-5)
    largest = np.linalg.norm(small.components_, axis=1).max()
    assert largest == pytest.approx(np.linalg.norm(scaled, axis=1).max(), rel=1e-4)
    as_it_was = growing(4, fine_tune_norm=None, **options).fit(X)
    assert_allclose(as_it_was.components_, plain.components_, atol=1e-6)


def test_fine_tuning_of_a_fractional_model():
    X = toy_data()
    tuner = ContrastiveDivergenceRBM(batch_size=20, max_iter=40, learning_rate=0.3)
    plain = growing(3, alpha=4.2).fit(X)
    tuned = growing(3, alpha=4.2, fine_tune=tuner, fine_tune_norm=None).fit(X)
    assert tuned.score(X) > plain.score(X)
    assert_array_equal(tuned.unit_weights_, plain.unit_weights_)
    V = naive.all_states(6)
    assert np.exp(tuned.score_samples(V)).sum() == pytest.approx(1.0, abs=1e-5)


def test_fine_tuner_may_stop_early():
    """On the validation data of this estimator, or on rows of its own."""
    X = digits(100)
    tuner = ContrastiveDivergenceRBM(
        batch_size=10,
        max_iter=200,
        learning_rate=0.5,
        schedule="constant",
        early_stopping=True,
        max_gap=0.5,
    )
    model = growing(12, fine_tune=tuner).fit(X, X_val=digits(200)[100:])
    assert model.fine_tune_.n_iter_ < 200
    assert len(model.fine_tune_.history_["gap"]) == model.fine_tune_.n_iter_
    model = growing(12, fine_tune=tuner).fit(X)
    assert len(model.fine_tune_.history_["gap"]) == model.fine_tune_.n_iter_ < 200


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        (dict(max_iter=0), "max_iter"),
        (dict(learning_rate=-1.0), "learning_rate"),
        (dict(schedule="cosine"), "schedule"),
    ],
    ids=str,
)
def test_bad_parameters_of_the_fine_tuner_are_named(parameters, name):
    tuner = ContrastiveDivergenceRBM(**{"max_iter": 1, **parameters})
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        growing(2, fine_tune=tuner).fit(toy_data())


def test_fine_tuner_takes_the_same_data():
    """It is a fitted estimator, with the threshold of the one that it belongs to."""
    X = np.where(digits(100), 255, 0)
    tuner = ContrastiveDivergenceRBM(max_iter=2)
    model = growing(2, binarize=127, fine_tune=tuner).fit(X)
    assert_array_equal(model.fine_tune_.transform(X), model.transform(X))


def test_diverging_fine_tuner_keeps_the_old_fit():
    X = toy_data()
    model = growing(2).fit(X)
    before = [array.copy() for array in arrays_of(model)]
    model.set_params(fine_tune=ContrastiveDivergenceRBM(learning_rate=1e4))
    with pytest.raises(ValueError, match="diverged.*Reduce learning_rate=10000"):
        model.set_params(n_components=3).fit(X)
    for array, expected in zip(arrays_of(model), before, strict=True):
        assert_array_equal(array, expected)
    assert not hasattr(model, "fine_tune_")


# Going on.


@pytest.mark.parametrize("alpha", ["count", "learn"])
def test_warm_start_with_more_units(alpha):
    X = digits()
    shorter = growing(3, alpha=alpha).fit(X)
    longer = growing(5, alpha=alpha).fit(X)
    model = growing(3, alpha=alpha, warm_start=True).fit(X)
    assert_same_path(model.history_, shorter.history_)
    model.set_params(n_components=5).fit(X)
    assert model.n_components_ == 5
    for name in set(shorter.history_) - {"seconds"}:
        assert_array_equal(model.history_[name][:3], shorter.history_[name])
    # as one longer fit
    assert_same_path(model.history_, longer.history_)
    assert_same_model(model, longer)
    # nothing to add
    again = pickle.loads(pickle.dumps(model)).fit(X)
    assert_same_model(again, model)
    assert model.set_params(warm_start=False, n_components=2).fit(X).n_iter_ == 2


def test_warm_start_after_fine_tuning():
    X = digits()
    tuner = ContrastiveDivergenceRBM(batch_size=20, max_iter=5)
    model = growing(3, warm_start=True, fine_tune=tuner).fit(X)
    tuned = model.components_.copy()
    model.set_params(n_components=4, fine_tune=None, n_corrective_steps=0).fit(X)
    assert_array_equal(model.components_[:3], tuned)
    assert model.n_iter_ == 4


def test_path_keeps_one_entry_a_step():
    """Validation data may come with a later fit."""
    X = toy_data()
    model = growing(2, warm_start=True).fit(X)
    model.set_params(n_components=4).fit(X, X_val=X)
    assert {len(values) for values in model.history_.values()} == {4}


@pytest.mark.parametrize("warm_start", [False, True])
def test_interrupted_fit(warm_start, monkeypatch):
    X = digits()
    model = growing(5, warm_start=warm_start)
    with monkeypatch.context() as patch:
        interrupt(patch, growth, 3)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)
    if not warm_start:
        assert not [name for name in vars(model) if name.endswith("_")]
        return
    expected = growing(3).fit(X)
    assert_same_model(model, expected)
    assert_same_path(model.history_, expected.history_)
    assert model.transform(X).shape == (300, 3)
    # and goes on from there
    assert_same_model(model.fit(X), growing(5).fit(X))


def test_interrupt_before_the_first_unit(monkeypatch):
    model = growing(5, warm_start=True)
    interrupt(monkeypatch, growth, 0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(digits())
    assert not [name for name in vars(model) if name.endswith("_")]


def test_interrupt_in_a_unit(monkeypatch):
    """In the corrective steps of the third unit."""
    X = digits()
    model = growing(5, warm_start=True)
    interrupt(monkeypatch, contrastive, 25)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    monkeypatch.undo()
    assert_same_model(model, growing(2).fit(X))


def test_interrupted_fine_tuning_keeps_the_units(monkeypatch):
    X = digits()
    tuner = ContrastiveDivergenceRBM(batch_size=20, max_iter=3)
    model = growing(3, warm_start=True, fine_tune=tuner)
    # past the three times ten corrective steps, and within the first epoch
    interrupt(monkeypatch, contrastive, 35)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    monkeypatch.undo()
    assert_same_model(model, growing(3).fit(X))


@pytest.mark.parametrize("n_rows", [1, 300])
def test_partial_fit(n_rows):
    X = digits()
    model = growing(4, learning_rate=0.2, batch_size=20)
    assert model.partial_fit(X[:n_rows]) is model
    first = model.score(X)
    # as many updates
    for number in range(15 * (20 if n_rows == 1 else 1)):
        start = number * n_rows % len(X)
        model.partial_fit(X[start : start + n_rows])
    assert model.n_components_ == 4
    assert model.score(X) > first + 0.3
    if n_rows == len(X):
        assert model.score(X) > independent_score(X) + 0.3
    assert len(model.history_["n_components"]) == model.n_iter_


def test_partial_fit_adds_a_unit_a_call():
    X = digits()
    model = growing(3)
    for n_units in (1, 2, 3, 3, 3):
        assert model.partial_fit(X).n_components_ == n_units
    # fit starts anew
    assert_same_model(model.fit(X), growing(3).fit(X))


# Validation data.


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
    assert model.history_["validation_free_energy"][-1] == pytest.approx(energy, rel=1e-4)
    # without early_stopping it is recorded, and changes nothing
    other = growing(n_units + 1, **options).fit(X, X_val=X_val)
    assert other.n_components_ == n_units + 1
    assert_array_equal(other.history_["gap"][:-1], model.history_["gap"])
    assert_same_model(other, growing(n_units + 1, **options).fit(X))


# The same result everywhere, and with others.


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


def test_features_for_a_classifier():
    digits = load_digits()
    X, y = digits.data > 7, digits.target
    rbm = growing(30, n_corrective_steps=30)
    pipeline = make_pipeline(rbm, LogisticRegression(C=10.0, max_iter=2000))
    pipeline.fit(X[:900], y[:900])
    # chance is 0.1
    assert pipeline.score(X[900:], y[900:]) > 0.7


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


def test_verbose_prints_a_line_a_step(capsys):
    growing(3, verbose=True).fit(toy_data())
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["step 1", "step 2", "step 3"]
    assert "3 units, gain" in lines[2]
