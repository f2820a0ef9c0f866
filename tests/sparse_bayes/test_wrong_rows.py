"""Searches on records with wrong outputs."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from search_cases import estimator, quietly, record
from sklearn.base import clone

from skbayesnn import DynamicSystemRegressor, SparseBayesNARXRegressor
from skbayesnn.exceptions import OutlierWarning
from skbayesnn.metrics import simulation_rmse
from skbayesnn.sparse_bayes.learning.outliers import Screened
from skbayesnn.sparse_bayes.learning.session_parts import stretches
from skbayesnn.sparse_bayes.search import samples
from skbayesnn.sparse_bayes.search.candidate_fits import fit_or_score
from skbayesnn.sparse_bayes.search.candidates import Candidate
from skbayesnn.sparse_bayes.search.cut_record import CutRecord
from skbayesnn.sparse_bayes.search.tasks import Task
from skbayesnn.sparse_bayes.training_record import TrainingRecord

pytestmark = pytest.mark.usefixtures("quick_states")

N_ROWS = 300


@pytest.fixture(scope="module")
def wrong():
    """A record with eight gross errors, and what was right."""
    u, y = record(N_ROWS)
    rng = np.random.default_rng(0)
    rows = rng.choice(np.arange(20, N_ROWS), 8, replace=False)
    spoiled = y.copy()
    spoiled[rows] += rng.choice([-1, 1], 8) * rng.uniform(3.0, 5.0, 8) * y.std()
    return u, spoiled, y


def robust():
    return estimator(lags=(2,), reg_lambdas=(3.0,), noise="student_t")


@pytest.fixture(scope="module")
def fitted(wrong):
    u, spoiled, _ = wrong
    return quietly(robust(), u, spoiled)


def error(model):
    u, y = record(N_ROWS, seed=1)
    return simulation_rmse(y, model.predict(u, y_init=y[:5]), n_initialization=5)


def test_wrong_outputs_are_told(wrong, fitted):
    _, spoiled, y = wrong
    assert fitted.outliers_.shape == y.shape
    assert fitted.outliers_[spoiled != y].all()
    assert np.count_nonzero(fitted.outliers_) <= 10
    n_wrong = np.count_nonzero(fitted.outliers_)
    assert fitted.summary_.endswith(f"; {n_wrong} outputs held to be wrong")


@pytest.mark.slow
def test_they_cost_little(wrong, fitted, monkeypatch):
    u, spoiled, y = wrong
    clean = quietly(robust(), u, y)
    assert not clean.outliers_.any()
    assert "wrong" not in clean.summary_
    assert error(fitted) < 1.1 * error(clean)

    def nothing(U, Y, starts):
        none = np.zeros(Y.shape, dtype=bool)
        return Screened(Y, none, none)

    monkeypatch.setattr(samples, "screen_outputs", nothing)
    assert error(quietly(robust(), u, spoiled)) > 1.1 * error(clean)


def test_who_expects_none_is_warned(wrong):
    """And gets the fit to what is left."""
    u, spoiled, y = wrong
    rows = ", ".join(map(str, np.flatnonzero(spoiled != y)[:5]))
    message = f"^8 values of y are held to be wrong .* in row {rows}, [.]{{3}} [(]see"
    model = estimator(lags=(2,), reg_lambdas=(3.0,))
    with pytest.warns(OutlierWarning, match=message):
        model.fit(u, spoiled)
    assert_array_equal(model.outliers_, spoiled != y)
    one = spoiled.copy()
    one[spoiled != y] = y[spoiled != y]
    one[100] += 5.0 * y.std()
    with pytest.warns(OutlierWarning, match="^1 values .* in row 100 [(]see"):
        model.fit(u, one)


def test_a_code_of_missing_values_costs_little():
    """Its row alone is warned of: it had hidden that the rows are in order."""
    u, y = record(N_ROWS)
    spoiled = y.copy()
    spoiled[200] = -999.0
    model = DynamicSystemRegressor("linear", lags=(2,), cv=3, random_state=0)
    clean = error(clone(model).fit(u, y))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(u, spoiled)
    assert [warning.category for warning in caught] == [OutlierWarning]
    assert np.flatnonzero(model.outliers_).tolist() == [200]
    assert error(model) < 1.05 * clean


@pytest.mark.parametrize("make", [DynamicSystemRegressor, SparseBayesNARXRegressor])
def test_codes_among_inputs_are_warned_of(make):
    u, y = record(N_ROWS)
    u = np.column_stack([u, u])
    u[[40, 41, 42, 120], 1] = -999.0
    frame = pd.DataFrame(u, columns=["heater", "fan"])
    model = make(max_time=0.1) if make is DynamicSystemRegressor else make(2)
    with pytest.warns(
        OutlierWarning, match="^Input 'fan' is -999 in row 40, 41, 42, 1"
    ):
        model.fit(frame, y)


@pytest.mark.parametrize("focus", ["simulation", "prediction"])
def test_single_estimators_warn_of_codes_among_outputs(focus):
    """Which they take as measured."""
    u, y = record(N_ROWS)
    model = SparseBayesNARXRegressor(2, 2, hidden_layer_sizes=(), focus=focus)
    model.fit(u, y)
    Y = pd.DataFrame({"level": y, "flow": np.roll(y, 1)})
    Y.iloc[[50, 51, 90], 1] = -999.0
    message = "^Output 'flow' is -999 in row 50, and 3 of .* in row 50, 51, 90[.] The "
    with pytest.warns(OutlierWarning, match=message) as caught:
        model.fit(u, Y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    # a search that is told to keep them has been told
    keep = DynamicSystemRegressor("linear", lags=(2,), outliers="keep", cv=3)
    keep.set_params(random_state=0)
    keep.fit(u, np.where(np.arange(N_ROWS) == 50, -999.0, y))


def test_whether_they_are_replaced_can_be_chosen(wrong):
    u, spoiled, y = wrong
    model = DynamicSystemRegressor(
        "linear", lags=(2,), outliers="keep", cv=3, random_state=0
    )
    model.fit(u, spoiled)
    assert not hasattr(model, "outliers_")
    assert "wrong" not in model.summary_
    with pytest.warns(OutlierWarning, match="^8 values"):
        other = clone(model).set_params(outliers="replace").fit(u, spoiled)
    assert error(other) < 1.1 * error(clone(model).fit(u, y)) < 0.8 * error(model)


def test_a_right_record_is_taken_as_it_is():
    u, y = record(N_ROWS)
    fits = [
        DynamicSystemRegressor(
            "linear", lags=(2,), outliers=outliers, cv=3, random_state=0
        ).fit(u, y)
        for outliers in ("keep", "replace")
    ]
    assert not fits[1].outliers_.any()
    assert_array_equal(*(model.predict(u, y_init=y[:5]) for model in fits))


def test_the_choice_among_all_kinds_does_it_too(wrong):
    u, spoiled, y = wrong
    model = DynamicSystemRegressor(
        "linear", lags=(2,), noise="student_t", cv=3, random_state=0
    )
    model = quietly(model, u, np.column_stack([spoiled, y]))
    assert model.outliers_.shape == (N_ROWS, 2)
    assert model.outliers_[spoiled != y, 0].all()
    assert not model.outliers_[:, 1].any()


def test_doubtful_outputs_are_neither_fitted_nor_scored():
    u, y = record(N_ROWS)
    doubtful = np.zeros((N_ROWS, 1), dtype=bool)
    doubtful[130:140] = True
    candidate = Candidate("linear", "prediction", 2, 0.0, True)
    search = estimator()
    search.n_features_in_ = 1
    starts = np.array([0, N_ROWS])
    given = TrainingRecord(u, y[:, None], starts, True, {"n_features_in_": 1})
    settings = search._settings_of_fits(CutRecord(given, stretches(starts, 3)))

    def scored(value, fold):
        Y = np.where(doubtful, value, y[:, None])
        given = TrainingRecord(u, Y, starts, True, {"n_features_in_": 1})
        data = CutRecord(given, stretches(starts, 3), doubtful=doubtful)
        return fit_or_score(Task(candidate, 0, fold), settings, data, data)

    for fold in (0, 1):
        assert scored(5.0, fold).error == scored(9.0, fold).error
    one, other = scored(5.0, None), scored(9.0, None)
    assert_array_equal(one.coefs_[0], other.coefs_[0])
