"""Fits that fail or are interrupted."""

import numpy as np
import pytest
from interrupts import interrupt
from numpy.testing import assert_array_equal
from rbm_estimators import (
    CLASSES,
    SMALL,
    arrays_of,
    assert_same_model,
    copy_with_training,
    small,
    snapshot,
    toy_data,
)

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn.rbm.learning import contrastive


@pytest.mark.parametrize("warm_start", [False, True])
def test_interrupted_fit(warm_start, monkeypatch):
    """Ctrl-C in the third of five epochs of 15 updates."""
    X = toy_data()
    parameters = dict(schedule="constant", warm_start=warm_start)
    model = small(ContrastiveDivergenceRBM, **parameters)
    with monkeypatch.context() as patch:
        interrupt(patch, contrastive, 35)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)
    if not warm_start:
        assert not [name for name in vars(model) if name.endswith("_")]
        return
    assert model.n_iter_ == 2
    assert {len(values) for values in model.history_.values()} == {2}
    expected = small(ContrastiveDivergenceRBM, max_iter=2, schedule="constant").fit(X)
    assert_same_model(model, expected)
    # and continues from there
    assert model.set_params(max_iter=3).fit(X).n_iter_ == 5
    assert_same_model(model, small(ContrastiveDivergenceRBM, **parameters).fit(X))


def test_interrupt_before_the_first_epoch_ends(monkeypatch):
    X = toy_data()
    model = small(ContrastiveDivergenceRBM, warm_start=True)
    interrupt(monkeypatch, contrastive, 10)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert not [name for name in vars(model) if name.endswith("_")]


def spoil_with_nan(model, monkeypatch):
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((10, 2), np.nan))


def spoil_by_divergence(model, monkeypatch):
    model.set_params(learning_rate=1e4)
    with pytest.raises(ValueError, match="diverged.*Reduce learning_rate=10000"):
        model.fit(toy_data())


def spoil_by_divergence_of_partial_fit(model, monkeypatch):
    model.set_params(learning_rate=1e4)
    with pytest.raises(ValueError, match="diverged.*Reduce learning_rate=10000"):
        model.partial_fit(toy_data())


def spoil_by_interrupt(model, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt(patch, contrastive, 3)
        with pytest.raises(KeyboardInterrupt):
            model.fit(toy_data())


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize(
    "spoil",
    [
        spoil_with_nan,
        spoil_by_divergence,
        spoil_by_divergence_of_partial_fit,
        spoil_by_interrupt,
    ],
)
@pytest.mark.parametrize("cls", CLASSES)
def test_failed_refit_keeps_the_old_fit(cls, spoil, warm_start, monkeypatch):
    X = toy_data()
    # so that a refit has something to do
    more = dict(n_components=SMALL[cls]["n_components"] + 2)
    model = small(cls, warm_start=warm_start).fit(X).set_params(**more)
    expected = copy_with_training(model)
    before = snapshot(model)
    spoil(model, monkeypatch)
    for old, new in zip(before[0], arrays_of(model), strict=True):
        assert_array_equal(old, new)
    for name, values in before[1].items():
        assert_array_equal(model.history_[name], values)
    assert [model.n_iter_, model.log_partition_] == before[2:]
    assert model.n_features_in_ == 6
    # the state from which training continues is complete as well
    model.set_params(learning_rate=0.1)
    expected.set_params(learning_rate=0.1)
    assert_same_model(model.partial_fit(X), expected.partial_fit(X))


@pytest.mark.parametrize("cls", CLASSES)
def test_divergence_of_a_first_fit(cls):
    model = small(cls, learning_rate=1e4)
    with pytest.raises(ValueError, match="weights diverged.*learning_rate=10000.0"):
        model.fit(toy_data())
    assert not [name for name in vars(model) if name.endswith("_")]
