"""What scikit-learn and others do with estimators: searches, wrappers, scorers."""

from email.message import Message

import numpy as np
import optuna
import pandas as pd
import pytest
import sklearn
from grids import each_value_once, first_by_default
from numpy.testing import assert_allclose
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_digits
from sklearn.ensemble import BaggingRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
)
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skbayesnn import (
    ContrastiveDivergenceRBM,
    DynamicSystemRegressor,
    FrankWolfeRBM,
    SparseBayesMLPRegressor,
    SparseBayesNARXRegressor,
    SparseBayesNARXRegressorCV,
    SparseBayesStateSpaceRegressor,
    _sklearn,
)
from skbayesnn.exceptions import SamplingWarning, ScoringWarning
from skbayesnn.metrics import one_step_scorer, simulation_scorer

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
N = 320


def system():
    rng = np.random.default_rng(0)
    u, y = rng.uniform(-1, 1, size=(N, 1)), np.zeros((N, 2))
    for t in range(1, N):
        y[t] = [0.8, 0.5] * y[t - 1] + [1.0, 2.0] * u[t - 1]
    return u, y + 0.02 * rng.standard_normal((N, 2)) + 5.0


U, Y = system()
ORDERED = TimeSeriesSplit(3)


def linear(**options):
    return SparseBayesNARXRegressor(1, 1, hidden_layer_sizes=(), **options)


def static():
    return SparseBayesMLPRegressor(2, max_cycles=10, random_state=0)


# wrappers


def test_targets_are_transformed():
    """Of a lagged model the targets are those that its free run and bands are of."""
    model = TransformedTargetRegressor(linear(), func=np.log, inverse_func=np.exp)
    run = model.fit(U, Y[:, 0]).predict(U)
    logs = linear().fit(U, np.log(Y[:, 0]))
    assert_allclose(run, np.exp(logs.predict(U)), rtol=1e-10)
    level = TransformedTargetRegressor(static(), transformer=StandardScaler())
    assert level.fit(U, Y[:, 1]).predict(U).shape == (N,)


def test_a_model_per_output():
    model = MultiOutputRegressor(linear()).fit(U, Y)
    alone = [linear().fit(U, y).predict(U) for y in Y.T]
    assert_allclose(model.predict(U), np.column_stack(alone), rtol=1e-12)
    weights = np.ones(N)
    assert MultiOutputRegressor(static()).fit(U, Y, weights).predict(U).shape == (N, 2)


def test_features_of_two_machines_are_joined():
    X, y = load_digits(n_class=3, return_X_y=True)
    X = X / 16.0
    union = FeatureUnion(
        [
            ("random", ContrastiveDivergenceRBM(16, max_iter=10, random_state=0)),
            ("grown", FrankWolfeRBM(3, n_chains=50, random_state=0)),
        ]
    ).set_output(transform="pandas")
    features = union.fit_transform(X)
    assert features.shape == (len(X), 19)
    assert features.columns[0] == "random__contrastivedivergencerbm0"
    pipeline = make_pipeline(union, LogisticRegression(max_iter=500))
    # a third by chance
    assert pipeline.fit(X, y).score(X, y) > 0.6


# searches


@pytest.mark.parametrize(
    "scoring", first_by_default([None, one_step_scorer, simulation_scorer])
)
def test_a_search_by_halving(scoring):
    search = HalvingGridSearchCV(
        linear(),
        {"input_lags": [1, 2], "reg_lambda": [0.5, 5.0]},
        scoring=scoring,
        cv=TimeSeriesSplit(2),
        # its resource by default, rows, it would draw at random
        resource="max_cycles",
        min_resources=5,
        max_resources=15,
    )
    search.fit(U, Y[:, 0])
    assert search.n_iterations_ == 2
    assert search.best_estimator_.score(U, Y[:, 0]) > 0.95


def test_a_search_by_optuna():
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def error(trial):
        lags = trial.suggest_int("lags", 1, 2)
        model = linear(reg_lambda=trial.suggest_float("strength", 0.1, 10.0, log=True))
        model.set_params(input_lags=lags, output_lags=lags)
        scores = cross_val_score(
            model, U, Y[:, 0], cv=ORDERED, scoring=simulation_scorer
        )
        return -scores.mean()

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(error, n_trials=3)
    assert study.best_value < 0.1


def test_sample_weights_are_routed():
    with sklearn.config_context(enable_metadata_routing=True):
        model = static().set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=False)
        search = GridSearchCV(model, {"reg_lambda": [1.0, 2.0]}, cv=2)
        weights = np.where(np.arange(N) < N // 2, 0.5, 2.0)
        weighted = search.fit(U, Y[:, 0], sample_weight=weights).predict(U)
        assert np.abs(weighted - search.fit(U, Y[:, 0]).predict(U)).max() > 1e-6
    bag = BaggingRegressor(static(), n_estimators=2, random_state=0).fit(U, Y[:, 0])
    assert bag.predict(U).shape == (N,)


# what cross-validation measures


@pytest.mark.parametrize("focus", ["prediction", "simulation"])
def test_cross_validation_measures_what_score_does(focus):
    model = linear(focus=focus, horizon_schedule=(1, None))
    scores = cross_val_score(model, U, Y[:, 0], cv=ORDERED)
    fold, rest = list(ORDERED.split(U))[-1]
    model.fit(U[fold], Y[fold, 0])
    assert scores[-1] == model.score(U[rest], Y[rest, 0])
    horizon = 1 if focus == "prediction" else None
    assert scores[-1] == model.score(U[rest], Y[rest, 0], horizon=horizon)


@pytest.mark.parametrize(
    *each_value_once(
        wrapped=[False, True], scoring=["r2", "neg_root_mean_squared_error"]
    )
)
def test_a_scorer_that_knows_the_inputs_alone_warns(scoring, wrapped):
    model = make_pipeline(StandardScaler(), linear()) if wrapped else linear()
    with pytest.warns(ScoringWarning, match="free run from the training means"):
        cross_val_score(model, U, Y[:, 0], cv=ORDERED, scoring=scoring)
    # who asks for this run gets it
    assert model.fit(U, Y[:, 0]).predict(U).shape == (N,)
    assert cross_val_predict(model, U, Y[:, 0], cv=KFold(2)).shape == (N,)
    cross_val_score(static(), U, Y[:, 0], cv=ORDERED, scoring=scoring)


def test_shuffled_rows_are_warned_of():
    order = ShuffleSplit(1, train_size=0.8, random_state=0)
    for X, y in ((U, Y[:, 0]), (U, Y)):
        with pytest.warns(SamplingWarning, match="were the rows shuffled"):
            cross_val_score(linear(), X, y, cv=order)
    folds = KFold(2, shuffle=True, random_state=0)
    with pytest.warns(SamplingWarning, match="does not count up evenly"):
        cross_val_score(linear(), pd.DataFrame(U), Y[:, 0], cv=folds)
    bag = BaggingRegressor(linear(), n_estimators=1, random_state=0)
    with pytest.warns(SamplingWarning, match="drawn with replacement"):
        bag.fit(U, Y[:, 0])


def test_a_record_in_order_is_not_warned_of():
    cross_val_score(linear(), pd.DataFrame(U), Y, cv=ORDERED)
    # a memory that shows in squares only
    y = np.abs(U[:-1, 0]) + 0.1 * np.random.default_rng(0).standard_normal(N - 1)
    linear().fit(U[1:], y)


# links


@pytest.mark.parametrize(
    "estimator",
    [
        ContrastiveDivergenceRBM(),
        FrankWolfeRBM(),
        SparseBayesMLPRegressor(),
        SparseBayesNARXRegressor(),
        SparseBayesNARXRegressorCV(),
        SparseBayesStateSpaceRegressor(),
        DynamicSystemRegressor(),
    ],
)
def test_html_links_to_the_documentation(estimator, monkeypatch):
    """To the address in the metadata of the package, or in the environment."""
    monkeypatch.delenv("SKBAYESNN_DOC_URL", raising=False)
    told = Message()
    monkeypatch.setattr(_sklearn.metadata, "metadata", lambda package: told)
    assert estimator._get_doc_link() == ""
    told["Project-URL"] = "Source, https://source.example"
    told["Project-URL"] = "Documentation, https://docs.example/latest/"
    name = type(estimator).__name__
    link = f"https://docs.example/latest/generated/api/skbayesnn.{name}.html"
    assert estimator._get_doc_link() == link
    html = make_pipeline(FunctionTransformer(), estimator)._repr_html_()
    assert link in html and f"Documentation for {name}" in html
    monkeypatch.setenv("SKBAYESNN_DOC_URL", "http://localhost:8000")
    assert estimator._get_doc_link() == link.replace(
        "https://docs.example/latest", "http://localhost:8000"
    )
