"""scikit-learn's common checks, with realistic instances."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from skbayesnn import (
    ContrastiveDivergenceRBM,
    DynamicSystemRegressor,
    FrankWolfeRBM,
    SparseBayesMLPRegressor,
    SparseBayesNARXRegressor,
    SparseBayesNARXRegressorCV,
    SparseBayesStateSpaceRegressor,
)

pytestmark = [
    pytest.mark.usefixtures("few_weighted_states", "quick_states"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    # the checks feed normal deviates, which an RBM takes as 0 and 1
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning"),
    # a few cycles on static data make no stable model
    pytest.mark.filterwarnings(
        "ignore:The run of output:skbayesnn.exceptions.ExtrapolationWarning"
    ),
]
# What a dynamic model predicts for a row depends on the rows before it, by its nature.
NOT_FOR_RECORDS = {
    "check_methods_sample_order_invariance": "a prediction depends on earlier rows",
    "check_methods_subset_invariance": "a prediction depends on earlier rows",
}
DYNAMIC = (
    DynamicSystemRegressor,
    SparseBayesNARXRegressor,
    SparseBayesNARXRegressorCV,
    SparseBayesStateSpaceRegressor,
)
# Of which fewer checks are enough by default: what is known to fail, and of data.
SEARCHES = (DynamicSystemRegressor, SparseBayesNARXRegressorCV)
MORE_DYNAMIC = (*SEARCHES, SparseBayesStateSpaceRegressor)
OF_DATA = (
    "check_dtype_object",
    "check_estimators_dtypes",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_regressor_data_not_an_array",
    "check_regressors_int",
)


def expected_failures(estimator):
    return NOT_FOR_RECORDS if isinstance(estimator, DYNAMIC) else {}


SMALL_SEARCH = dict(
    lags=(1,), n_states=(1,), reg_lambdas=(0.0,), hidden_layer_sizes=1, cv=2
)
# Cheap, but of each kind: few cycles, updates and chains, which the checks do not see.
ESTIMATORS = [
    SparseBayesMLPRegressor(max_cycles=4, random_state=0),
    SparseBayesNARXRegressor(skip_connection=False, max_cycles=4, random_state=0),
    SparseBayesNARXRegressorCV(
        (1,), (1.0,), cv=2, n_estimators=1, hidden_layer_sizes=1, max_cycles=1
    ),
    DynamicSystemRegressor(("linear",), n_estimators=2, max_cycles=1, **SMALL_SEARCH),
    SparseBayesStateSpaceRegressor(
        2,
        hidden_layer_sizes=1,
        reg_lambda=0.0,
        n_restarts=2,
        n_estimators=2,
        max_cycles=2,
    ),
    ContrastiveDivergenceRBM(8, max_updates=5, random_state=0),
    ContrastiveDivergenceRBM(
        8, max_iter=3, persistent=False, n_gibbs_steps=2, momentum=0.5, binarize=0.0
    ),
    FrankWolfeRBM(2, n_chains=20, n_corrective_steps=2, random_state=0),
]
# Fits of more work, and further settings.
MORE_ESTIMATORS = [
    SparseBayesNARXRegressor(
        3,
        2,
        hidden_layer_sizes=2,
        focus="simulation",
        n_estimators=2,
        reg_lambda=0.0,
        max_cycles=2,
    ),
    SparseBayesMLPRegressor((), reg_lambda=0.5, n_restarts=2),
    SparseBayesNARXRegressor(4, 0, hidden_layer_sizes=(), reg_lambda=0.0),
    SparseBayesMLPRegressor(random_state=0),
    SparseBayesMLPRegressor(
        (8, 4),
        activation="relu",
        groups="element",
        curvature="diag",
        solver="lbfgs",
        max_cycles=20,
    ),
    SparseBayesMLPRegressor(noise="student_t", max_cycles=20),
    SparseBayesNARXRegressor(skip_connection=False, random_state=0),
    # the checks have static data: only without pruning are lags sure to stay
    SparseBayesNARXRegressor(kappa_variance=0.0, kappa_weight=0.0, random_state=0),
    SparseBayesNARXRegressor([1, 3], 3, reg_lambda=0.0, max_cycles=20),
    SparseBayesNARXRegressor(
        2, 2, output="difference", noise="student_t", reg_lambda=0.0, max_cycles=20
    ),
    SparseBayesNARXRegressorCV(
        (1, 2), (1.0,), cv=2, n_estimators=2, hidden_layer_sizes=1, max_cycles=2
    ),
    DynamicSystemRegressor(n_estimators=2, max_cycles=2, **SMALL_SEARCH),
    DynamicSystemRegressor(
        ("linear", "network"), n_estimators=2, max_cycles=1, **SMALL_SEARCH
    ),
    FrankWolfeRBM(
        n_chains=100,
        fine_tune=ContrastiveDivergenceRBM(max_updates=20),
        random_state=0,
    ),
    FrankWolfeRBM(4, n_chains=200, random_state=0),
    FrankWolfeRBM(
        4,
        alpha="learn",
        away_steps=True,
        n_chains=50,
        n_corrective_steps=5,
        early_stopping=True,
    ),
    FrankWolfeRBM(
        6,
        objective="linearized",
        n_corrective_steps=0,
        fine_tune=ContrastiveDivergenceRBM(max_iter=3),
    ),
]


def checks(estimators):
    return parametrize_with_checks(estimators, expected_failed_checks=expected_failures)


def some_slow(mark):
    """Leave to the slow tests what other estimators are checked for by default.

    Predictions with arrays that are read from a file are those of one regressor: the
    kernels of each kind are compiled once more for them. Searches hand their data on to
    estimators that are checked themselves.
    """
    names, cases = mark.args
    return pytest.mark.parametrize(names, map(perhaps_slow, cases), **mark.kwargs)


def perhaps_slow(case):
    estimator, check = getattr(case, "values", case)
    name = getattr(check, "func", check).__name__
    from_file = getattr(check, "keywords", {}).get("readonly_memmap", False)
    is_slow = (name in NOT_FOR_RECORDS and isinstance(estimator, MORE_DYNAMIC)) or (
        isinstance(estimator, SEARCHES) and (name in OF_DATA or from_file)
    )
    if name == "check_estimators_pickle" and from_file:
        is_slow = isinstance(estimator, DYNAMIC)
    if not is_slow:
        return case
    marks = [*getattr(case, "marks", ()), pytest.mark.slow]
    return pytest.param(estimator, check, marks=marks)


@some_slow(checks(ESTIMATORS))
def test_common_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@checks(MORE_ESTIMATORS)
def test_common_checks_of_other_settings(estimator, check):
    check(estimator)
