"""Features, energies and pseudo-likelihoods of fitted RBMs."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rbm_estimators import small, toy_data, twin
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM


def test_transform_and_back(fitted):
    V = naive.all_states(6)
    W, hidden, visible, c = twin(fitted)
    expected = c * naive.logistic(V @ W.T + hidden)
    H = fitted.transform(V)
    assert_allclose(H, expected, rtol=1e-5)
    assert_allclose(
        fitted.inverse_transform(H), naive.logistic(expected @ W + visible), rtol=1e-5
    )
    stages = list(fitted.staged_transform(V))
    assert len(stages) == fitted.n_components_
    for k, stage in enumerate(stages, start=1):
        assert_array_equal(stage, H[:, :k])


@pytest.mark.parametrize("cls", [ContrastiveDivergenceRBM, FrankWolfeRBM])
def test_hidden_states_are_data_and_no_metadata(cls):
    """Only what a meta-estimator passes beside the data can be requested."""
    assert not hasattr(cls(), "set_inverse_transform_request")
    assert cls().get_metadata_routing().inverse_transform.requests == {}
    expected = {"X_val": None, "sample_weight": None}
    assert cls().get_metadata_routing().fit.requests == expected


def test_feature_names_and_data_frames():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(toy_data(), columns=list("abcdef"))
    model = small(ContrastiveDivergenceRBM).fit(X)
    assert list(model.feature_names_in_) == list("abcdef")
    names = [f"contrastivedivergencerbm{i}" for i in range(4)]
    assert list(model.get_feature_names_out()) == names
    expected = model.transform(X)
    assert isinstance(expected, np.ndarray)
    H = model.set_output(transform="pandas").transform(X)
    assert list(H.columns) == names
    assert_array_equal(H.to_numpy(), expected)
    other = model.to_bernoulli_rbm()
    assert list(other.feature_names_in_) == list("abcdef")
    back = ContrastiveDivergenceRBM.from_bernoulli_rbm(other, X)
    assert list(back.feature_names_in_) == list("abcdef")
    with pytest.raises(ValueError, match="feature names"):
        model.transform(X[list("fedcba")])


def test_staged_transform_of_data_frames():
    pd = pytest.importorskip("pandas")
    model = small(ContrastiveDivergenceRBM).fit(toy_data())
    model.set_output(transform="pandas")
    X = pd.DataFrame(toy_data(20))
    expected = model.transform(X).to_numpy()
    for k, stage in enumerate(model.staged_transform(X.to_numpy()), start=1):
        assert_array_equal(np.asarray(stage), expected[:, :k])


def test_pseudo_likelihood(fitted):
    V, p = naive.rbm_distribution(twin(fitted))
    p_of = {tuple(v): q for v, q in zip(V, p, strict=True)}
    expected = np.zeros(len(V))
    for j in range(6):
        flipped = V.copy()
        flipped[:, j] = 1.0 - flipped[:, j]
        other = np.array([p_of[tuple(v)] for v in flipped])
        expected += np.log(p / (p + other))
    assert_allclose(fitted.pseudo_likelihood(V), expected, rtol=1e-4)


@pytest.mark.slow
def test_features_for_a_linear_classifier():
    """Without centring, few units are on, and the classifier is better than by pixels.

    The accuracies by cross-validation are .926, .935 and .956 (examples/rbm_features),
    with a standard error of .003 to .005.
    """
    X, y = load_digits(return_X_y=True)
    X, _, y, _ = train_test_split(
        X > 7.5, y, test_size=0.25, stratify=y, random_state=0
    )
    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=0.1))
    accuracies, means = {"pixels": cross_val_score(classifier, X, y, cv=3).mean()}, {}
    for centered in (True, False):
        rbm = ContrastiveDivergenceRBM(
            300,
            centered=centered,
            learning_rate=0.2,
            batch_size=20,
            max_iter=300,
            random_state=0,
        )
        H = rbm.fit_transform(X)
        means[centered] = H.mean()
        accuracies[centered] = cross_val_score(classifier, H, y, cv=3).mean()
    assert means[False] < 0.2 < 0.4 < means[True]
    assert accuracies[False] > 0.945
    assert accuracies[False] - max(accuracies[True], accuracies["pixels"]) > 0.01
