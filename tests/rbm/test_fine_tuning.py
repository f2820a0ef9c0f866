"""Fine-tuning of a grown model."""

import naive
import numpy as np
import pytest
from interrupts import interrupt
from numpy.testing import assert_allclose, assert_array_equal
from rbm_estimators import (
    arrays_of,
    assert_same_model,
    assert_same_path,
    digits,
    growing,
    toy_data,
)

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn.rbm.learning import contrastive


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
    model.set_params(fine_tune=ContrastiveDivergenceRBM(max_iter=10, learning_rate=1e4))
    with pytest.raises(ValueError, match="diverged.*Reduce learning_rate=10000"):
        model.set_params(n_components=3).fit(X)
    for array, expected in zip(arrays_of(model), before, strict=True):
        assert_array_equal(array, expected)
    assert not hasattr(model, "fine_tune_")


def test_warm_start_after_fine_tuning():
    X = digits()
    tuner = ContrastiveDivergenceRBM(batch_size=20, max_iter=5)
    model = growing(3, warm_start=True, fine_tune=tuner).fit(X)
    tuned = model.components_.copy()
    model.set_params(n_components=4, fine_tune=None, n_corrective_steps=0).fit(X)
    assert_array_equal(model.components_[:3], tuned)
    assert model.n_iter_ == 4


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
