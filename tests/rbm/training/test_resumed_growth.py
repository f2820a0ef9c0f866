"""Growth that is resumed: warm starts, interrupts, partial fits."""

import pickle

import pytest
from interrupts import interrupt
from numpy.testing import assert_array_equal
from rbm_estimators import (
    assert_same_model,
    assert_same_path,
    digits,
    growing,
    independent_score,
    toy_data,
)

from skbayesnn.rbm.learning import contrastive, growth


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


def test_warm_start_takes_no_units_away():
    X = toy_data()
    model = growing(3, warm_start=True).fit(X)
    before = pickle.dumps(model.components_)
    with pytest.raises(ValueError, match="at least the 3 units of the earlier fit"):
        model.set_params(n_components=2).fit(X)
    assert pickle.dumps(model.components_) == before
    assert model.set_params(warm_start=False).fit(X).n_components_ == 2


def test_history_keeps_one_entry_per_step():
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
    # and continues from there
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


@pytest.mark.parametrize("n_rows", [pytest.param(1, marks=pytest.mark.slow), 300])
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


def test_partial_fit_adds_one_unit_per_call():
    X = digits()
    model = growing(3)
    for n_units in (1, 2, 3, 3, 3):
        assert model.partial_fit(X).n_components_ == n_units
    # fit starts anew
    assert_same_model(model.fit(X), growing(3).fit(X))
