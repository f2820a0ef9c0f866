"""The estimator of contrastive divergence."""

import copy

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rbm_estimators import (
    CLASSES,
    MODELS,
    arrays_of,
    assert_close_models,
    assert_same_model,
    bernoulli_rbm,
    digits,
    independent_score,
    small,
    toy_data,
)
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import BernoulliRBM

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn.rbm.training.rows import Rows


@pytest.mark.parametrize(
    "parameters",
    [
        dict(),
        dict(n_gibbs_steps=5),
        dict(persistent=False),
        dict(persistent=False, n_gibbs_steps=5),
        dict(centered=False),
        dict(centered=False, persistent=False),
        dict(momentum=0.5),
        dict(weight_decay=1e-3),
        dict(schedule="constant", learning_rate=0.1),
        dict(schedule="inverse", learning_rate=1.0),
        dict(batch_size=7, learning_rate=0.1),
        dict(binarize=None),
    ],
    ids=str,
)
def test_contrastive_divergence_learns(parameters):
    """Half of what the best of them gains over independent features, 2.3 nats."""
    X = digits()
    parameters = {"batch_size": 20, "max_iter": 20, **parameters}
    model = ContrastiveDivergenceRBM(12, random_state=0, **parameters).fit(X)
    assert model.score(X) > independent_score(X) + 1.15
    assert model.n_iter_ == len(model.history_["mean_error"]) == 20


def test_weight_decay_shrinks():
    norms = [
        np.linalg.norm(
            small(ContrastiveDivergenceRBM, max_iter=30, weight_decay=strength)
            .fit(toy_data())
            .components_
        )
        for strength in (0.0, 0.01, 1.0)
    ]
    assert norms[0] > 1.05 * norms[1] > 2 * norms[2]


def init_arrays(n_units=3, n_features=6, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n_units, n_features)),
        rng.normal(size=n_units),
        rng.normal(size=n_features),
    )


STILL = dict(learning_rate=1e-12, max_iter=1, random_state=0)


@pytest.mark.parametrize("kind", [tuple, list])
def test_init_by_arrays(kind):
    arrays = kind(init_arrays())
    for array in arrays:
        array.flags.writeable = False
    copies = copy.deepcopy(arrays)
    model = ContrastiveDivergenceRBM(99, init=arrays, **STILL).fit(toy_data())
    assert model.n_components_ == 3
    for array, expected in zip(arrays_of(model), copies, strict=False):
        assert_allclose(array, expected, atol=1e-6)
    model = ContrastiveDivergenceRBM(init=arrays, max_iter=5, random_state=0)
    model.fit(toy_data()).partial_fit(toy_data())
    for array, expected in zip(arrays, copies, strict=True):
        assert_array_equal(array, expected)


def test_init_by_estimators():
    X = toy_data()
    unfitted = BernoulliRBM(3, n_iter=2, random_state=0)
    rows = Rows(X, 0.5).in_canonical_order().take(slice(None))
    expected = clone(unfitted).fit(rows)
    model = ContrastiveDivergenceRBM(init=unfitted, **STILL).fit(X)
    assert_allclose(model.components_, expected.components_, atol=1e-6)
    assert not hasattr(unfitted, "components_")
    # fitted on other data, which is kept
    other = BernoulliRBM(5, n_iter=2, random_state=0).fit(~X)
    before = other.components_.copy()
    model = ContrastiveDivergenceRBM(init=FrozenEstimator(other), **STILL).fit(X)
    assert_allclose(model.components_, before, atol=1e-6)
    model.set_params(learning_rate=0.2, max_iter=3).fit(X)
    assert_array_equal(other.components_, before)
    # of a fractional RBM, weights and all
    fractional = clone(MODELS["fractional"]).fit(X)
    model = ContrastiveDivergenceRBM(init=FrozenEstimator(fractional), **STILL).fit(X)
    assert_close_models(model, fractional, atol=1e-6)
    assert_array_equal(model.unit_weights_, fractional.unit_weights_)
    model.set_params(learning_rate=0.1, max_iter=10).fit(X)
    total = np.exp(model.score_samples(naive.all_states(6))).sum()
    assert total == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("init", "error", "message"),
    [
        (FrozenEstimator(BernoulliRBM()), NotFittedError, "BernoulliRBM.*not fitted"),
        (PCA(2), TypeError, "init must be an RBM.*components_.*PCA"),
        (LinearRegression(), (TypeError, ValueError), "LinearRegression|requires y"),
        (init_arrays()[:2], ValueError, "init must hold three arrays.*got 2"),
        (init_arrays(n_features=5), ValueError, r"init.*\(n_components, 6\).*\(3, 5\)"),
        (
            (*init_arrays()[:2], np.zeros(5)),
            ValueError,
            r"init.*\(n_components, 6\).*\(5,\)",
        ),
        (
            (init_arrays()[0], np.zeros(4), np.zeros(6)),
            ValueError,
            r"init must have the shapes.*\(4,\)",
        ),
        ((np.full((2, 6), np.nan), np.zeros(2), np.zeros(6)), ValueError, "NaN"),
        ((np.zeros(6), np.zeros(1), np.zeros(6)), ValueError, "2D array"),
        (FrozenEstimator(bernoulli_rbm(n_features=5)), ValueError, r"init.*\(4, 5\)"),
        (ContrastiveDivergenceRBM(0), ValueError, "n_components"),
    ],
    ids=str,
)
def test_bad_init_is_named(init, error, message):
    with pytest.raises(error, match=message):
        ContrastiveDivergenceRBM(init=init).fit(toy_data())


def noise_data(n_samples, n_features=20, seed=0):
    return np.random.default_rng(seed).random((n_samples, n_features)) < 0.5


def overfitting(**parameters):
    return ContrastiveDivergenceRBM(
        40,
        learning_rate=0.5,
        schedule="constant",
        batch_size=10,
        max_iter=300,
        random_state=0,
        **parameters,
    )


def test_early_stopping():
    """On noise, the gap between training and validation rows is what is learned."""
    X = noise_data(50)
    model = overfitting(early_stopping=True, validation_fraction=0.2, max_gap=1.0)
    gap = model.fit(X).history_["gap"]
    assert 1 < model.n_iter_ == len(gap) < 300
    assert gap[-1] > gap.min() + 1.0
    assert (gap[:-1] <= np.minimum.accumulate(gap[:-1]) + 1.0).all()
    assert model.components_.shape == (40, 20)
    # a tenth of the rows is another split
    assert len(clone(model).set_params(validation_fraction=0.1).fit(X).history_["gap"])
    model.set_params(max_gap=1e6, max_iter=3).fit(X)
    assert model.n_iter_ == 3


def test_validation_data():
    X, X_val = noise_data(50), noise_data(30, seed=1)
    model = overfitting(early_stopping=True, max_gap=1.0).fit(X, X_val=X_val)
    assert 1 < model.n_iter_ < 300
    # the partition function cancels from the difference of log-likelihoods
    gap = (-model.free_energy(X)).mean() - (-model.free_energy(X_val)).mean()
    assert model.history_["gap"][-1] == pytest.approx(gap, rel=1e-4)
    # without early_stopping it is recorded
    other = clone(model).set_params(early_stopping=False, max_iter=model.n_iter_ + 1)
    other.fit(X, X_val=X_val)
    assert other.n_iter_ == model.n_iter_ + 1
    assert_array_equal(other.history_["gap"][:-1], model.history_["gap"])
    # and changes nothing of the model
    assert_same_model(other, clone(other).fit(X))


def test_held_out_rows_are_not_trained_on():
    """Base rates are of the rows that are left."""
    X = toy_data(40)
    model = small(ContrastiveDivergenceRBM, early_stopping=True).fit(X)
    rate = naive.logistic(model.base_intercept_)
    counts = rate * 37 - 0.5
    assert_allclose(counts, np.round(counts), atol=1e-6)


def test_an_init_is_not_fitted_to_held_out_rows():
    X = toy_data(40)
    seen = []

    class Spy(BernoulliRBM):
        def fit(self, X, y=None):
            seen.append(len(X))
            return super().fit(X)

    model = ContrastiveDivergenceRBM(
        init=Spy(2, n_iter=1), early_stopping=True, max_iter=1
    )
    model.fit(X)
    assert seen == [36]


@pytest.mark.parametrize(
    "parameters",
    [dict(), dict(momentum=0.5), dict(persistent=False), dict(n_gibbs_steps=2)],
    ids=str,
)
def test_warm_start_continues(parameters):
    X = toy_data()
    options = dict(schedule="constant", **parameters)
    model = small(ContrastiveDivergenceRBM, max_iter=3, warm_start=True, **options)
    model.fit(X).fit(X)
    assert model.n_iter_ == 6
    assert {len(values) for values in model.history_.values()} == {6}
    # as one longer fit
    assert_same_model(
        model, small(ContrastiveDivergenceRBM, max_iter=6, **options).fit(X)
    )
    assert model.set_params(warm_start=False).fit(X).n_iter_ == 3


@pytest.mark.parametrize(
    "n_rows, n_passes, rate",
    [pytest.param(1, 4, 0.1, marks=pytest.mark.slow), (7, 8, 0.3), (300, 20, 0.3)],
)
def test_partial_fit_learns(n_rows, n_passes, rate):
    X = digits()
    model = ContrastiveDivergenceRBM(
        8, learning_rate=rate, batch_size=20, random_state=0
    )
    assert model.partial_fit(X[:n_rows]) is model
    scores = [model.score(X)]
    for _ in range(2):
        for _ in range(n_passes // 2):
            for start in range(0, len(X), n_rows):
                model.partial_fit(X[start : start + n_rows])
        scores.append(model.score(X))
    assert scores[0] < scores[1] < scores[2]
    assert scores[2] > independent_score(X) + 0.5
    assert model.n_iter_ == 1 + 2 * (n_passes // 2) * -(-len(X) // n_rows)


@pytest.mark.parametrize("cls", CLASSES)
def test_base_rates_of_partial_fits_are_of_all_rows(cls):
    X = toy_data()
    model = small(cls)
    for part in np.array_split(X, 7):
        model.partial_fit(part)
    assert_allclose(model.base_intercept_, small(cls).fit(X).base_intercept_, rtol=1e-9)
    assert model.n_features_in_ == 6


@pytest.mark.parametrize("way", ["fit", "partial_fit"])
@pytest.mark.parametrize("batch_size", [7, 50])
def test_a_training_goes_on_with_as_many_chains_as_asked(way, batch_size):
    """It had kept those of the first fit."""
    X = toy_data()
    model = small(ContrastiveDivergenceRBM, warm_start=True).fit(X)
    before = model._training.chains
    assert len(before) == 20
    model.set_params(batch_size=batch_size)
    model.partial_fit(X) if way == "partial_fit" else model.fit(X)
    assert len(model._training.chains) == batch_size
    # fewer rows take none away
    assert len(model.fit(X[:5])._training.chains) == batch_size


def test_partial_fit_continues_a_fit():
    X = toy_data()
    options = dict(schedule="constant", max_iter=3)
    model = small(ContrastiveDivergenceRBM, **options).fit(X)
    first = model.components_.copy()
    model.partial_fit(X)
    expected = small(ContrastiveDivergenceRBM, **{**options, "max_iter": 4}).fit(X)
    for array, other in zip(arrays_of(model), arrays_of(expected), strict=True):
        assert_array_equal(array, other)
    assert not np.array_equal(first, model.components_)
