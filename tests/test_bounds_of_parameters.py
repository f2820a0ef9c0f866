"""Parameters near the ends of their types: a finite model, or an error that says why.

Each of these fits once took for ever, all memory, or ended in an OverflowError.
"""

import warnings

import numpy as np
import pytest

from skbayesnn import (
    ContrastiveDivergenceRBM,
    FrankWolfeRBM,
    SparseBayesMLPRegressor,
    SparseBayesNARXRegressor,
    SparseBayesNARXRegressorCV,
)
from skbayesnn.sparse_bayes.parameters import check_grid

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=30)
V = RNG.random((30, 6)) < 0.4


def perceptron(**options):
    return SparseBayesMLPRegressor(2, max_cycles=5, random_state=0, **options)


def lagged(**options):
    options = dict(hidden_layer_sizes=2, max_cycles=5, random_state=0) | options
    return SparseBayesNARXRegressor(**options)


def machine(**options):
    options = dict(max_iter=1, random_state=0) | options
    return ContrastiveDivergenceRBM(3, **options)


def growing(**options):
    options = dict(n_components=2, n_chains=20, random_state=0) | options
    return FrankWolfeRBM(**options)


def fit(model):
    """The model, fitted without any warning of NumPy's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        if hasattr(model, "transform"):
            return model.fit(V)
        return model.fit(X, Y)


def assert_finite(model):
    if hasattr(model, "transform"):
        assert np.isfinite(model.components_).all()
        assert np.isfinite(model.transform(V)).all()
        return
    measured = (Y,) if isinstance(model, SparseBayesNARXRegressor) else ()
    assert np.isfinite(model.predict(X, *measured)).all()
    assert np.isfinite(model.log_marginal_likelihood_)
    assert np.isfinite(model.noise_variance_)


@pytest.mark.parametrize(
    "make, name, value",
    [
        (perceptron, "reg_lambda", 1e-320),
        (perceptron, "reg_lambda", 1e308),
        (perceptron, "reg_lambda", [1.0, 1e308]),
        (lagged, "reg_lambda", 1e308),
        (perceptron, "noise_variance", 1e-320),
        (perceptron, "noise_variance", 1e-200),
        (perceptron, "noise_variance", 1e200),
        (perceptron, "noise_variance", 1e308),
        (perceptron, "noise_variance", [1e308]),
        (lagged, "noise_variance", 1e308),
        (perceptron, "n_restarts", 10**30),
        (lagged, "n_estimators", 10**30),
        (lagged, "input_lags", 10**9),
        (lagged, "output_lags", 10**9),
        (lagged, "input_lags", [10**9]),
        (lagged, "input_lags", [2**63]),
        (lagged, "input_lags", {"x0": 10**9, "x1": 1}),
        (lagged, "output_lags", {"y": 10**9}),
        (growing, "alpha", 1e10),
        (growing, "alpha", 1e308),
        (growing, "alpha", 1e-320),
        (growing, "radius", 1e200),
        (growing, "radius", 1e-320),
        (growing, "unit_penalty", 1e308),
        (growing, "fine_tune_norm", 1e308),
        (growing, "learning_rate", 1e308),
        (machine, "learning_rate", 1e308),
        (machine, "learning_rate", 1e-320),
        (machine, "weight_decay", 1e308),
    ],
)
def test_beyond_the_bounds_is_refused(make, name, value):
    with pytest.raises(ValueError, match=name):
        fit(make(**{name: value}))


def test_lags_of_a_search_have_the_same_bound():
    model = SparseBayesNARXRegressorCV(lags=(10**9,), max_cycles=2)
    with pytest.raises(ValueError, match="lags must be .* from 1 to 100000"):
        model.fit(X, Y)


@pytest.mark.parametrize("name", ["reg_lambda", "noise_variance"])
@pytest.mark.parametrize("value", [["a"], [[1.0], [1.0, 2.0]]])
def test_what_is_no_number_is_named(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a number or one number per"):
        fit(perceptron(**{name: value}))


@pytest.mark.parametrize("name", ["lags", "n_states", "reg_lambdas"])
def test_candidates_of_a_search_follow_one_rule(name):
    """A sequence, in any order; what is repeated is one candidate."""
    assert check_grid("auto", name) == "auto"
    for given in ((2, 1, 2), [2, 1], np.array([1, 2], dtype=np.uint8)):
        assert check_grid(given, name) == [1, 2]
    wrong = [2, (), [[1, 2]], [[1], [2, 3]], (-1,), ("a",), (None,), (1j,), (True,)]
    for given in [*wrong, (10**40,), (np.nan,), {1: 2}]:
        with pytest.raises(ValueError, match=f"{name} must be 'auto' or a sequence of"):
            check_grid(given, name)


@pytest.mark.parametrize(
    "make, name, value",
    [
        (perceptron, "reg_lambda", 1e-100),
        (perceptron, "reg_lambda", 1e100),
        (lagged, "reg_lambda", 1e-100),
        (lagged, "reg_lambda", 1e100),
        (perceptron, "noise_variance", 1e-99),
        (perceptron, "noise_variance", 1e99),
        (lagged, "noise_variance", 1e-99),
        (growing, "alpha", 1e-15),
        (growing, "radius", 1e-15),
        (growing, "radius", 1e15),
        (growing, "unit_penalty", 1e15),
        (growing, "fine_tune_norm", 1e15),
        (growing, "learning_rate", 1e-15),
        (machine, "learning_rate", 1e-15),
    ],
)
def test_at_the_bounds_the_model_is_finite(make, name, value):
    options = {name: value}
    if name == "fine_tune_norm":
        options["fine_tune"] = machine()
    assert_finite(fit(make(**options)))


@pytest.mark.parametrize("kind", [{}, {"noise": "student_t"}, {"focus": "simulation"}])
@pytest.mark.parametrize("noise_variance", [1e-99, 1e99])
def test_noise_at_the_bounds(kind, noise_variance):
    assert_finite(fit(lagged(noise_variance=noise_variance, **kind)))


@pytest.mark.parametrize(
    "make, name",
    [
        (machine, "learning_rate"),
        (machine, "weight_decay"),
        (growing, "learning_rate"),
    ],
)
def test_too_large_steps_are_a_divergence(make, name):
    with pytest.raises(ValueError, match="weights diverged"):
        fit(make(**{name: 1e15}))


@pytest.mark.parametrize(
    "model",
    [
        machine(),
        machine(max_iter="auto", max_updates=20),
        growing(),
        growing(n_components="auto", fine_tune=machine(max_iter="auto", max_updates=5)),
    ],
    ids=["epochs", "rounds", "growth", "sizes"],
)
@pytest.mark.parametrize(
    "batch_size", [pytest.param(10**9, marks=pytest.mark.slow), 10**30]
)
def test_a_batch_is_no_larger_than_the_rows(model, batch_size):
    expected = fit(model.set_params(batch_size=1000)).components_
    found = fit(model.set_params(batch_size=batch_size)).components_
    np.testing.assert_array_equal(found, expected)
    partial = model.set_params(n_components=2).partial_fit(V)
    assert np.isfinite(partial.components_).all()


@pytest.mark.parametrize("method", ["predict", "sample_y", "score"])
@pytest.mark.parametrize("options", [{}, {"focus": "simulation"}, {"n_estimators": 2}])
def test_a_horizon_beyond_the_rows_is_one_run(options, method):
    model = fit(lagged(**options))
    expected = getattr(model, method)(X, Y, horizon=len(Y))
    for horizon in (10**6, 2**63, 10**30):
        found = getattr(model, method)(X, Y, horizon=horizon)
        np.testing.assert_array_equal(found, expected)


def test_a_horizon_beyond_the_rows_is_a_free_run():
    model = fit(lagged())
    free_run = model.predict(X, Y, horizon=None)
    ahead, std = model.predict(X, Y, horizon=10**30, return_std=True)
    np.testing.assert_allclose(ahead, free_run)
    assert np.isfinite(std).all()
