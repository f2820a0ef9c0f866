"""Saved estimators: the version that wrote them, and how much they hold."""

import copy
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import skbayesnn
from skbayesnn import (
    ContrastiveDivergenceRBM,
    DynamicSystemRegressor,
    FrankWolfeRBM,
    SparseBayesMLPRegressor,
    SparseBayesNARXRegressor,
    SparseBayesNARXRegressorCV,
    SparseBayesStateSpaceRegressor,
)
from skbayesnn.exceptions import InconsistentVersionWarning

OLDER = Path(__file__).parent / "data" / "saved_without_a_version.pkl"

ESTIMATORS = [
    ContrastiveDivergenceRBM(2, max_iter=1),
    DynamicSystemRegressor(),
    FrankWolfeRBM(2),
    SparseBayesMLPRegressor(),
    SparseBayesNARXRegressor(),
    SparseBayesNARXRegressorCV(),
    SparseBayesStateSpaceRegressor(),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_another_version_is_told(estimator, monkeypatch):
    saved = pickle.dumps(estimator)
    same = pickle.loads(saved)
    assert vars(same) == vars(estimator)
    monkeypatch.setattr(skbayesnn, "__version__", "99.0")
    name = type(estimator).__name__
    with pytest.warns(InconsistentVersionWarning, match=re.escape(f"{name} was saved")):
        pickle.loads(saved)
    # a copy is of this version, and says so when it is saved
    assert vars(pickle.loads(pickle.dumps(copy.deepcopy(estimator)))) == vars(estimator)


def test_the_warning_points_at_the_caller(monkeypatch):
    saved = pickle.dumps(ESTIMATORS[0])
    monkeypatch.setattr(skbayesnn, "__version__", "99.0")
    with pytest.warns(InconsistentVersionWarning) as record:
        pickle.loads(saved)
    assert record[0].filename == __file__


def test_a_state_from_before_versions_is_told():
    with pytest.warns(InconsistentVersionWarning, match="an unknown version"):
        older = pickle.loads(OLDER.read_bytes())
    assert older.transform(np.eye(6)).shape == (6, 3)


def rows(n_features=200):
    return np.random.default_rng(0).random((60, n_features)) < 0.3


@pytest.mark.parametrize(
    "model",
    [
        ContrastiveDivergenceRBM(50, max_iter=2, random_state=0),
        FrankWolfeRBM(8, max_search_iter=2, n_corrective_steps=2, random_state=0),
    ],
    ids=["contrastive divergence", "Frank-Wolfe"],
)
def test_a_fitted_rbm_holds_little_more_than_its_weights(model):
    model.fit(rows())
    size = len(pickle.dumps(model))
    weights = model.components_.nbytes
    assert size < 1.2 * weights + 20_000
    continued = len(pickle.dumps(model.set_params(warm_start=True)))
    assert continued > size + 2 * weights


def test_what_goes_on_is_saved_whole():
    def first():
        return ContrastiveDivergenceRBM(5, max_iter=2, random_state=0)

    model = first().partial_fit(rows(20))
    again = pickle.loads(pickle.dumps(model))
    expected = model.partial_fit(rows(20)).components_
    assert_array_equal(again.partial_fit(rows(20)).components_, expected)
    model = first().set_params(warm_start=True).fit(rows(20))
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.fit(rows(20)).components_, model.fit(rows(20)).components_)
