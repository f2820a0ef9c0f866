"""Weights of rows of the static regressor: a row of weight k is k rows."""

import numpy as np
import pytest
import sklearn
from learning_cases import random_network
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from skbayesnn import (
    DynamicSystemRegressor,
    SparseBayesMLPRegressor,
    SparseBayesNARXRegressor,
    SparseBayesNARXRegressorCV,
    SparseBayesStateSpaceRegressor,
)
from skbayesnn.sparse_bayes.mlp import _distinct_rows
from skbayesnn.sparse_bayes.records.one_step import OneStepData

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def data(n_outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2))
    Y = np.sin(2 * X[:, :1]) * np.arange(1, n_outputs + 1)
    Y += 0.1 * rng.normal(size=Y.shape)
    return X, Y[:, 0] if n_outputs == 1 else Y, rng.integers(0, 4, size=60)


@pytest.mark.parametrize(
    "n_outputs, options",
    [
        (1, {}),
        (2, dict(curvature="diag", solver="lbfgs")),
        (1, dict(noise="student_t")),
        (1, dict(normalize=False, reg_lambda=1.0, groups="element")),
        (1, dict(solver="adam", curvature="diag")),
    ],
)
def test_weights_are_copies(n_outputs, options):
    X, y, weights = data(n_outputs)
    model = SparseBayesMLPRegressor(4, max_cycles=12, random_state=0, **options)
    copies = [np.repeat(a, weights, axis=0) for a in (X, y)]
    order = np.random.default_rng(1).permutation(len(copies[0]))
    other = sklearn.clone(model).fit(*(a[order] for a in copies))
    model.fit(X, y, sample_weight=weights)
    for one, two in zip(
        model.predict(X, return_std=True),
        other.predict(X, return_std=True),
        strict=True,
    ):
        assert_array_equal(one, two)
    assert model.log_marginal_likelihood_ == other.log_marginal_likelihood_
    assert_array_equal(model.feature_relevance_, other.feature_relevance_)
    assert_array_equal(model.history_["rmse"], other.history_["rmse"])


def test_weighted_data_are_those_of_copies():
    """Every sum that a fit takes, without that copies are put together first."""
    X, y, weights = data(2)
    X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
    network = random_network((2, 3, 2), seed=0)
    ones = np.array([1.0, 0.5])
    observed = np.random.default_rng(0).uniform(0.5, 2.0, size=y.T.shape)
    once = OneStepData(X.T.copy(), y.T.copy(), ones, observed, weights.astype(float))
    repeat = [np.repeat(a, weights, axis=1) for a in (X.T, y.T, observed)]
    copies = OneStepData(repeat[0], repeat[1], ones, repeat[2])
    assert once.n_observations == copies.n_observations
    assert_array_equal(once.counts, copies.counts)
    for name in ("squared_errors", "ggn_diag"):
        expected = getattr(copies, name)(network)
        assert_allclose(getattr(once, name)(network), expected, rtol=1e-12)
    loss, gradient = once.loss_gradient(network)
    expected_loss, expected = copies.loss_gradient(network)
    assert loss == pytest.approx(expected_loss, rel=1e-12)
    assert_allclose(gradient, expected, rtol=1e-10, atol=1e-12)
    ((r, J),) = once.blocks(network, True)
    ((s, K),) = copies.blocks(network, True)
    assert_allclose(J @ J.T, K @ K.T, rtol=1e-10, atol=1e-12)
    assert_allclose(J @ r, K @ s, rtol=1e-10, atol=1e-12)


def test_fractions_weigh_a_line():
    """Without a prior the fit is weighted least squares."""
    X, y, _ = data()
    weights = np.random.default_rng(2).uniform(0.1, 2.0, size=len(y))
    model = SparseBayesMLPRegressor((), reg_lambda=0.0, tol=1e-8)
    model.fit(X, y, sample_weight=weights)
    Z = np.column_stack([X, np.ones(len(y))])
    root = np.sqrt(weights)[:, None]
    expected = np.linalg.lstsq(root * Z, root[:, 0] * y, rcond=None)[0]
    assert_allclose(model.predict(X), Z @ expected, rtol=1e-6, atol=1e-8)


def test_distinct_rows_are_left_as_they_are():
    X, y, _ = data()
    Y = y[:, None]
    given, targets, weights = _distinct_rows(X, Y, None)
    assert given is X and targets is Y and weights is None


def test_weights_that_sum_to_one_are_refused():
    X, y, _ = data()
    with pytest.raises(ValueError, match="at least 2; found 1. .*number of rows"):
        SparseBayesMLPRegressor().fit(X, y, sample_weight=np.full(60, 1 / 60))
    with pytest.raises(ValueError, match="zero"):
        SparseBayesMLPRegressor().fit(X, y, sample_weight=np.zeros(60))


@pytest.mark.parametrize(
    "model",
    [
        DynamicSystemRegressor(),
        SparseBayesNARXRegressor(1, 1),
        SparseBayesNARXRegressorCV(),
        SparseBayesStateSpaceRegressor(),
    ],
)
def test_a_record_has_no_weights(model):
    X, y, weights = data()
    with pytest.raises(TypeError, match=r"takes no sample_weight.*NaN.*sessions"):
        model.fit(X, y, sample_weight=weights)
    # as the third argument of a scikit-learn estimator they would be sessions
    with pytest.raises(TypeError, match="got 3. Pass the ids of records by name"):
        model.fit(X, y, weights)
    assert not vars(model).keys() & {"n_features_in_", "history_"}
    assert not has_fit_parameter(model, "sample_weight")
    pipeline = Pipeline([("scale", StandardScaler()), ("model", model)])
    with pytest.raises(TypeError, match="takes no sample_weight"):
        pipeline.fit(X, y, model__sample_weight=weights)
    with pytest.raises(ValueError, match="does not support sample weights"):
        MultiOutputRegressor(model).fit(X, y[:, None], weights)
    with sklearn.config_context(enable_metadata_routing=True):
        request = model.get_metadata_routing().fit.requests
        assert dict(request) == {"sessions": None}


def test_a_record_that_is_appended_again_counts_twice():
    """As the refusal of weights advises: least squares with the weights 1 and 2."""
    rng = np.random.default_rng(0)
    u, y = rng.normal(size=(2, 80)), np.zeros((2, 80))
    for t in range(1, 80):
        y[:, t] = [0.8, 0.3] * y[:, t - 1] + u[:, t - 1] + 0.1 * rng.normal(size=2)
    order = [0, 1, 1]
    model = SparseBayesNARXRegressor(
        1, 1, include_current_input=False, hidden_layer_sizes=(), reg_lambda=0.0
    )
    sessions = np.repeat(np.arange(3), 80)
    model.fit(u[order].reshape(-1, 1), y[order].ravel(), sessions=sessions)
    past = [np.column_stack([u[k, :-1], y[k, :-1], np.ones(79)]) for k in (0, 1)]
    root = np.sqrt(np.repeat([1.0, 2.0], 79))
    A, b = root[:, None] * np.concatenate(past), root * y[:, 1:].ravel()
    line = np.linalg.lstsq(A, b, rcond=None)[0]
    one_step = model.predict(u[0][:, None], y[0])[1:]
    assert_allclose(one_step, past[0] @ line, rtol=1e-4, atol=1e-4)
