"""Models from fitted RBMs, and copies of them."""

import copy
import pickle

import joblib
import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rbm_estimators import (
    BOUND,
    CLASSES,
    MODELS,
    assert_same_model,
    bernoulli_rbm,
    digits,
    small,
    toy_data,
    twin,
)
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.neural_network import BernoulliRBM

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM


def test_truncate(fitted):
    V = naive.all_states(6)
    before = pickle.dumps(fitted)
    fitted.score(V)
    for k in range(fitted.n_components_ + 1):
        first = fitted.truncate(k)
        assert type(first) is type(fitted) and first.n_components_ == k
        W, hidden, visible, c = twin(fitted)
        model = W[:k], hidden[:k], visible, c[:k]
        expected = naive.rbm_log_probability(model, V) - naive.rbm_log_partition(model)
        assert_allclose(first.score_samples(V), expected, atol=1e-5)
        assert_allclose(first.transform(V), fitted.transform(V)[:, :k], rtol=1e-5)
        first.components_ += 1.0
        first.intercept_visible_ += 1.0
        assert len(first.get_feature_names_out()) == k
    again = pickle.loads(before)
    assert_same_model(fitted, again)
    assert_array_equal(fitted.score_samples(V), again.score_samples(V))
    n = fitted.n_components_
    with pytest.raises(ValueError, match=f"n_components.*at most {n}.*got {n + 1}"):
        fitted.truncate(n + 1)


@pytest.mark.parametrize("with_data", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cls", CLASSES)
def test_bernoulli_rbm_there_and_back(cls, dtype, with_data):
    rbm = bernoulli_rbm(dtype=dtype)
    V = naive.all_states(6).astype(dtype)
    X = toy_data() if with_data else None
    model = cls.from_bernoulli_rbm(rbm, X, random_state=0)
    assert isinstance(model, cls) and model.n_components == 4
    H = model.transform(V)
    assert H.dtype == dtype
    assert_allclose(H, rbm.transform(V), rtol=2e-5)
    assert np.exp(model.score_samples(V)).sum() == pytest.approx(1.0, abs=1e-4)
    if with_data:
        rate = (X.sum(axis=0) + 0.5) / (len(X) + 1)
    else:
        states, p = naive.rbm_distribution(twin(model))
        rate = p @ states
    # from 500 chains, or exact
    spread = 1e-9 if with_data else BOUND * np.sqrt(rate * (1 - rate) / 500) + 1e-3
    assert (np.abs(naive.logistic(model.base_intercept_) - rate) < spread).all()
    back = model.to_bernoulli_rbm()
    assert isinstance(back, BernoulliRBM) and back.n_components == 4
    assert_array_equal(back.transform(V), model.to_bernoulli_rbm().transform(V))
    assert_allclose(back.transform(V), rbm.transform(V), rtol=2e-5)
    assert list(back.get_feature_names_out()) == [f"bernoullirbm{i}" for i in range(4)]
    back.components_ += 1.0
    assert_allclose(model.transform(V), rbm.transform(V), rtol=2e-5)
    # a step of its chain works as well
    assert back.gibbs(V).shape == V.shape


@pytest.mark.parametrize("cls", CLASSES)
def test_a_model_taken_over_has_all_fitted_attributes(cls):
    taken = cls.from_bernoulli_rbm(bernoulli_rbm(), toy_data())
    own = small(cls).fit(toy_data())
    names = {name for name in vars(own) if name.endswith("_") and name[0] != "_"}
    assert names - set(vars(taken)) == set()


def test_truncated_temperature():
    model = small(FrankWolfeRBM, alpha=2.0).fit(toy_data())
    assert model.alpha_ == pytest.approx(2.0, rel=1e-6)
    first = model.truncate(1)
    assert first.alpha_ == pytest.approx(first.unit_weights_.sum(), rel=1e-6)


def test_a_fitted_rbm_is_what_is_taken_over():
    cls = ContrastiveDivergenceRBM
    with pytest.raises(ValueError, match="5 features.*expecting 6"):
        cls.from_bernoulli_rbm(bernoulli_rbm(), toy_data()[:, :5])
    with pytest.raises(ValueError, match="learning_rate"):
        cls.from_bernoulli_rbm(bernoulli_rbm(), learning_rate=-1.0)
    with pytest.raises(TypeError, match="intercept_hidden_.*PCA"):
        cls.from_bernoulli_rbm(PCA(2).fit(toy_data().astype(float)))


@pytest.mark.parametrize("way", ["truncate", "from_bernoulli_rbm"])
def test_partial_fit_continues_copied_models(way):
    """Units of a model that was learned elsewhere stay."""
    X = toy_data()
    if way == "truncate":
        first = MODELS["contrastive"].fit(X).truncate(2)
    else:
        first = ContrastiveDivergenceRBM.from_bernoulli_rbm(bernoulli_rbm(), X)
    first.set_params(learning_rate=1e-6)
    before = first.components_.copy()
    first.partial_fit(X)
    assert_allclose(first.components_, before, atol=1e-3)


def test_fractional_model_has_no_equal():
    model = clone(MODELS["fractional"]).fit(toy_data())
    assert (model.unit_weights_ != 1.0).all()
    with pytest.raises(ValueError, match="unit_weights_.*alpha='count'"):
        model.to_bernoulli_rbm()


def test_copies(fitted, tmp_path):
    X = toy_data()
    joblib.dump(fitted, tmp_path / "model")
    for other in (
        pickle.loads(pickle.dumps(fitted)),
        joblib.load(tmp_path / "model"),
        copy.deepcopy(fitted),
    ):
        assert_same_model(other, fitted)
        assert_array_equal(other.transform(X), fitted.transform(X))
        assert_array_equal(other.score_samples(X), fitted.score_samples(X))
        assert_array_equal(
            other.sample(5, n_steps=5, random_state=0),
            fitted.sample(5, n_steps=5, random_state=0),
        )
        # training continues in the copy alone
        kept = fitted.components_.copy()
        other.partial_fit(X)
        assert not np.array_equal(other.components_[: len(kept)], kept)
        assert_array_equal(fitted.components_, kept)


def test_training_continues_in_the_same_way_in_a_copy(fitted):
    X = toy_data()
    first, second = (pickle.loads(pickle.dumps(fitted)) for _ in range(2))
    first.partial_fit(X).partial_fit(X[:50])
    second = pickle.loads(pickle.dumps(second.partial_fit(X))).partial_fit(X[:50])
    assert_same_model(first, second)


def test_parameters_of_scikit_learn():
    """After as many epochs a model is no worse, by an exact count of states."""
    X, gains = digits(), []
    X = X[:, X.std(axis=0) > 0.0]
    for seed in range(4):
        theirs = BernoulliRBM(4, batch_size=20, n_iter=30, random_state=seed)
        ours = ContrastiveDivergenceRBM.from_bernoulli_rbm(theirs)
        assert not hasattr(ours, "components_")
        as_theirs = ContrastiveDivergenceRBM.from_bernoulli_rbm(theirs.fit(X), X)
        gains.append(ours.fit(X).score(X) - as_theirs.score(X))
        assert ours.n_updates_ == 30 * -(-len(X) // 20) and ours.n_gibbs_steps_ == 1
    error = np.std(gains, ddof=1) / np.sqrt(len(gains))
    assert np.mean(gains) > -BOUND * error


def test_parameters_are_for_the_class_that_has_them():
    with pytest.raises(NotFittedError):
        FrankWolfeRBM.from_bernoulli_rbm(BernoulliRBM())
    ours = ContrastiveDivergenceRBM.from_bernoulli_rbm(BernoulliRBM(7), max_iter=3)
    assert (ours.n_components, ours.max_iter) == (7, 3)
    assert ours.binarize is None and not ours.centered and ours.schedule == "constant"


def test_only_models_of_scikit_learn_are_taken_over():
    with pytest.raises(TypeError, match="must be a BernoulliRBM.*got PCA"):
        ContrastiveDivergenceRBM.from_bernoulli_rbm(PCA())
    with pytest.raises(NotFittedError):
        FrankWolfeRBM.from_bernoulli_rbm(PCA())
