"""Restarts side by side on every backend of joblib."""

import joblib
import numpy as np
import pytest
from grids import first_by_default
from joblib import delayed
from search_cases import errors_by_stretch

from skbayesnn import (
    SparseBayesMLPRegressor,
    SparseBayesNARXRegressor,
    SparseBayesNARXRegressorCV,
    SparseBayesStateSpaceRegressor,
)
from skbayesnn._parallel import in_order

BACKENDS = ["loky", "threading", "multiprocessing"]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = np.tanh(X[:, 0]) + 0.1 * RNG.normal(size=40)
MODELS = [
    SparseBayesMLPRegressor(2, n_restarts=2, tol=10.0, random_state=0),
    SparseBayesNARXRegressor(
        1, 1, hidden_layer_sizes=2, n_estimators=2, tol=10.0, random_state=0
    ),
    SparseBayesStateSpaceRegressor(
        1, hidden_layer_sizes=2, n_restarts=2, tol=10.0, random_state=0
    ),
]


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_come_in_order(backend):
    with joblib.parallel_config(backend):
        calls = (delayed(abs)(-number) for number in range(5))
        results = in_order(calls, 1)
        assert next(results) == 0
        assert list(results) == [1, 2, 3, 4]


def test_results_come_one_by_one_where_the_backend_can():
    seen = []
    calls = (delayed(seen.append)(number) for number in range(3))
    for number, _ in enumerate(in_order(calls)):
        assert seen == list(range(number + 1))


def test_another_error_is_not_hidden():
    with pytest.raises(ValueError, match="n_jobs == 0"):
        list(in_order((delayed(abs)(n) for n in range(2)), 0))


# a fork of a process with threads, which Python 3.12 warns of
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("n_jobs", [pytest.param(1, marks=pytest.mark.slow), 2])
@pytest.mark.parametrize(
    "model", first_by_default(MODELS), ids=lambda model: type(model).__name__
)
def test_fits_on_a_backend_without_generators(model, n_jobs):
    expected = model.fit(X, Y).log_marginal_likelihood_
    with joblib.parallel_config("multiprocessing", n_jobs=n_jobs):
        assert model.fit(X, Y).log_marginal_likelihood_ == expected


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_search_on_a_backend_without_generators():
    search = SparseBayesNARXRegressorCV(
        (1,), (3.0,), cv=2, n_estimators=1, max_cycles=2, random_state=0
    )
    expected = errors_by_stretch(search.fit(X, Y).cv_results_)
    with joblib.parallel_config("multiprocessing", n_jobs=1):
        np.testing.assert_array_equal(
            errors_by_stretch(search.fit(X, Y).cv_results_), expected
        )
