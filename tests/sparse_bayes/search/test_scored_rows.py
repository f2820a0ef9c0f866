"""Rows that are scored, and what the errors there are worth, with missing values."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skbayesnn import DynamicSystemRegressor
from skbayesnn.exceptions import MissingInputWarning
from skbayesnn.sparse_bayes.search.cut_record import CutRecord
from skbayesnn.sparse_bayes.search.scored_rows import rows_for_all
from skbayesnn.sparse_bayes.training_record import TrainingRecord

N_ROWS = 400


def slow_system(n_rows=N_ROWS, seed=0):
    """Process noise adds up: a free run errs far more than a single step."""
    rng = np.random.default_rng(seed)
    u, y = rng.standard_normal((n_rows, 1)), np.zeros(n_rows)
    for t in range(1, n_rows):
        y[t] = 0.95 * y[t - 1] + u[t - 1, 0] + 0.5 * rng.standard_normal()
    return u, y


def held_out_error(u, y, kinds):
    model = DynamicSystemRegressor(
        kinds, lags=(1, 2), n_estimators=1, cv=2, max_cycles=3, random_state=0
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(u, y)
    results = model.cv_results_
    error = results["mean_test_error"][results["kept"]].min()
    told = any(issubclass(one.category, MissingInputWarning) for one in caught)
    return error, told


@pytest.mark.parametrize("every", [3, 5])
@pytest.mark.parametrize(
    "kinds", ["linear", pytest.param("states", marks=pytest.mark.slow)]
)
def test_missing_outputs_do_not_shorten_the_runs(every, kinds):
    u, y = slow_system()
    whole, _ = held_out_error(u, y, kinds)
    y[40::every] = np.nan
    with_gaps, told = held_out_error(u, y, kinds)
    assert not told
    assert with_gaps > 0.8 * whole


def test_missing_inputs_shorten_them_and_that_is_told():
    u, y = slow_system()
    whole, told = held_out_error(u, y, "linear")
    assert not told
    u[::10] = np.nan
    with_gaps, told = held_out_error(u, y, "linear")
    assert told
    assert with_gaps < 0.8 * whole


def test_a_few_missing_inputs_are_not_told():
    u, y = slow_system()
    u[250] = np.nan
    assert not held_out_error(u, y, "linear")[1]


@pytest.mark.parametrize("focus", ["simulation", "prediction"])
def test_rows_that_all_kinds_predict(focus):
    U, Y = np.zeros((40, 1)), np.zeros((40, 1))
    U[20], Y[[8, 30]] = np.nan, np.nan
    given = TrainingRecord(U, Y, np.array([0, 40]), True, {})
    data = CutRecord(given, np.zeros(40, dtype=int))
    found = np.flatnonzero(rows_for_all(data, 4, focus).scored)
    rows = {*range(4, 20), *range(25, 40)} - {8, 30}
    if focus == "prediction":
        rows -= {*range(9, 13), *range(31, 35)}
    assert_array_equal(found, sorted(rows))


def test_fewer_rows_are_asked_for_where_none_would_be_left():
    U, Y = np.zeros((40, 1)), np.zeros((40, 1))
    U[::6] = np.nan
    given = TrainingRecord(U, Y, np.array([0, 40]), True, {})
    data = CutRecord(given, np.zeros(40, dtype=int))
    found = np.flatnonzero(rows_for_all(data, 20, "simulation").scored)
    # of five rows in turn, two are told
    assert_array_equal(found, [t for t in range(40) if t % 6 > 2])
