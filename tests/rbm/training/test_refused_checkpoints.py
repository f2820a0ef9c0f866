"""Checkpoints of other fits and damaged ones are refused; what goes with a file."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from rbm_checkpoints import (
    CLASSES,
    GROWTH,
    assert_same,
    digits,
    fit,
    forbid_steps,
    other,
    uninterrupted,
)
from rbm_estimators import copy_with_training
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

import skbayesnn
from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Files of finished fits, by case."""
    folder = tmp_path_factory.mktemp("finished")
    for case in ("plain", "tuned"):
        fit(case, folder / case)
    return folder


def swapped(X):
    X = X.copy()
    X[0, 20] = ~X[0, 20]
    return X


@pytest.mark.parametrize(
    "case, parameters, message",
    [
        ("plain", dict(learning_rate=0.1), r'learning_rate \("auto" there, 0.1 here\)'),
        ("plain", dict(max_iter=9), r"max_iter \(4 there, 9 here\)"),
        ("plain", dict(random_state=4), r"random_state \(3 there, 4 here\)"),
        ("plain", dict(random_state=None), r"random_state \(3 there, null here\)"),
        ("plain", dict(init=(np.zeros((6, 64)), np.zeros(6), np.zeros(64))), "init"),
        ("tuned", dict(objective="likelihood", tol=1), "objective .*, tol"),
        ("tuned", dict(fine_tune=None), 'fine_tune .*"ContrastiveDivergenceRBM" there'),
        ("tuned", dict(fine_tune__momentum=0.1), r"fine_tune__momentum \(0.5 there"),
    ],
)
def test_other_parameters_are_refused(case, parameters, message, finished):
    content = (finished / case).read_bytes()
    model = other(case, finished / case, **parameters)
    with pytest.raises(ValueError, match=f"another fit.*{message}.*Give another file"):
        model.fit(digits())
    assert (finished / case).read_bytes() == content
    assert not hasattr(model, "components_")


@pytest.mark.parametrize("case", ["plain", "tuned"])
@pytest.mark.parametrize(
    "change, message",
    [
        (lambda X: X[:-1], r"the shape of X \(\[200, 64\] there, \[199, 64\] here\)"),
        (lambda X: X.astype(np.float32), r'the dtype of X \("bool" there'),
        (swapped, "in the values of X. Give"),
        (lambda X: X[::-1], "in the values of X. Give"),
        (
            lambda X: sp.csr_array(X),
            r'dtype of X \("bool" there, "bool, sparse" here\)',
        ),
    ],
    ids=["rows", "dtype", "a value", "order", "sparse"],
)
def test_other_data_are_refused(case, change, message, finished):
    with pytest.raises(ValueError, match=message):
        other(case, finished / case).fit(change(digits()))


@pytest.mark.parametrize("case", ["plain", "tuned"])
def test_other_validation_data_are_refused(case, finished, tmp_path, monkeypatch):
    X = digits()
    with pytest.raises(ValueError, match=r"shape of X_val \(null there, \[50, 64\]"):
        other(case, finished / case).fit(X, X_val=X[:50])
    path = tmp_path / "state"
    other(case, path).fit(X, X_val=X[:50])
    with pytest.raises(ValueError, match="in the values of X_val. Give"):
        other(case, path).fit(X, X_val=swapped(X[:50]))
    forbid_steps(monkeypatch)
    model = other(case, path).fit(X, X_val=X[:50])
    assert "gap" in model.history_


def test_another_class_or_version_is_refused(finished, monkeypatch):
    with pytest.raises(
        ValueError, match='the class .*"ContrastiveDivergenceRBM" there'
    ):
        FrankWolfeRBM(6, checkpoint=finished / "plain").fit(digits())
    monkeypatch.setattr(skbayesnn, "__version__", "9.0")
    with pytest.raises(ValueError, match=r'version of skbayesnn .*"9.0" here'):
        other("plain", finished / "plain").fit(digits())


def test_what_changes_no_result_may_change(finished, monkeypatch):
    forbid_steps(monkeypatch)
    # the same values in another order of memory, a name of another type
    X = np.asfortranarray(digits())
    other("plain", str(finished / "plain"), verbose=True).fit(X)
    other("tuned", finished / "tuned", fine_tune__warm_start=True).fit(X)


def test_another_frozen_model_is_refused(tmp_path):
    first = ContrastiveDivergenceRBM(3, max_iter=1, random_state=0).fit(digits())
    second = ContrastiveDivergenceRBM(3, max_iter=1, random_state=0).fit(~digits())
    model = FrankWolfeRBM(4, checkpoint=tmp_path / "state", **GROWTH)
    model.set_params(init=FrozenEstimator(first)).fit(digits())
    clone(model).fit(digits())
    with pytest.raises(ValueError, match="init__components_"):
        clone(model).set_params(init=FrozenEstimator(second)).fit(digits())


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:-10],
        lambda content: content[:2000] + b"spoilt" + content[2006:],
        lambda content: b"Dear diary," + content[:50],
        lambda content: pickle.dumps([1, 2, 3]),
    ],
    ids=["empty", "half", "end", "middle", "text", "pickle"],
)
def test_a_damaged_file_is_told(damage, finished, tmp_path, monkeypatch):
    path = tmp_path / "state"
    content = damage((finished / "tuned").read_bytes())
    path.write_bytes(content)
    forbid_steps(monkeypatch)
    with pytest.raises(ValueError, match="no checkpoint, or a damaged one.*delete"):
        other("tuned", path).fit(digits())
    # it may be something else of value
    assert path.read_bytes() == content


def two_units(cls, **parameters):
    """After two epochs, or of two units."""
    if cls is ContrastiveDivergenceRBM:
        parameters["max_iter"] = 2
    return cls(2, **{"random_state": 0, **parameters})


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize(
    "random_state", [None, np.random.RandomState(5)], ids=["None", "RandomState"]
)
def test_a_drawn_seed_is_kept(cls, random_state, tmp_path):
    path = tmp_path / "state"
    model = two_units(cls, random_state=random_state, checkpoint=path)
    seed = model.fit(digits())._seed
    assert model.fit(digits())._seed == seed
    other_seed = model.set_params(checkpoint=tmp_path / "other").fit(digits())._seed
    assert other_seed != seed


@pytest.mark.parametrize("cls", CLASSES)
def test_the_result_is_that_without_a_checkpoint(cls, tmp_path):
    case = {ContrastiveDivergenceRBM: "plain", FrankWolfeRBM: "tuned"}[cls]
    assert_same(uninterrupted(case), fit(case, tmp_path / "state"))


@pytest.mark.parametrize("cls", CLASSES)
def test_warm_start_is_refused(cls, tmp_path):
    path = tmp_path / "state"
    with pytest.raises(ValueError, match="checkpoint and warm_start=True exclude"):
        cls(2, checkpoint=path, warm_start=True).fit(digits())
    assert not path.exists()


def test_a_checkpoint_of_the_fine_tuner_is_refused(tmp_path):
    tuner = ContrastiveDivergenceRBM(checkpoint=tmp_path / "state")
    with pytest.raises(ValueError, match="fine_tune must have checkpoint=None"):
        FrankWolfeRBM(2, fine_tune=tuner).fit(digits())


@pytest.mark.parametrize("cls", CLASSES)
def test_partial_fit_leaves_the_file_alone(cls, tmp_path):
    path = tmp_path / "state"
    model = cls(2, checkpoint=path, random_state=0).partial_fit(digits())
    assert not path.exists()
    assert_same(cls(2, random_state=0).partial_fit(digits()), model)


@pytest.mark.parametrize("cls", CLASSES)
def test_clone_and_pickle_take_the_name_along(cls, tmp_path):
    model = two_units(cls, checkpoint=tmp_path / "state").fit(digits())
    assert clone(model).checkpoint == model.checkpoint
    assert_same(copy_with_training(model), model)
    assert model.get_params()["checkpoint"] == tmp_path / "state"
