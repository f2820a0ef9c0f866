"""Files of skops hold no type of this package but the estimators themselves."""

import typing

import numpy as np
import pytest
import skops.io as skops_io
from fingerprints import attributes
from numpy.testing import assert_array_equal

import skbayesnn
from skbayesnn import ContrastiveDivergenceRBM as CD
from skbayesnn import DynamicSystemRegressor as System
from skbayesnn import FrankWolfeRBM as FW
from skbayesnn import SparseBayesMLPRegressor as MLP
from skbayesnn import SparseBayesNARXRegressor as NARX
from skbayesnn import SparseBayesNARXRegressorCV as NARXCV
from skbayesnn import SparseBayesStateSpaceRegressor as StateSpace
from skbayesnn import _saved_state
from skbayesnn.rbm import scoring

# The list of the guide: by these names users import them.
CV = "skbayesnn.SparseBayesNARXRegressorCV"
TRUSTED = {
    "cd": {"skbayesnn.ContrastiveDivergenceRBM"},
    "fw": {"skbayesnn.FrankWolfeRBM"},
    "fw tuned": {"skbayesnn.FrankWolfeRBM", "skbayesnn.ContrastiveDivergenceRBM"},
    "mlp": {"skbayesnn.SparseBayesMLPRegressor"},
    "narx": {"skbayesnn.SparseBayesNARXRegressor"},
    "states": {"skbayesnn.SparseBayesStateSpaceRegressor"},
    "system": {
        "skbayesnn.DynamicSystemRegressor",
        "skbayesnn.SparseBayesStateSpaceRegressor",
    },
    "narx cv": {CV, "skbayesnn.SparseBayesNARXRegressor"},
}
RNG = np.random.default_rng(0)
U = RNG.normal(size=(60, 2))
Y = np.tanh(U[:, 0]) + 0.1 * RNG.normal(size=60)
STATES = RNG.random((40, 6)) < 0.4
TINY = {"hidden_layer_sizes": 2, "max_cycles": 3, "tol": 10.0, "random_state": 0}
SEARCH = {"reg_lambdas": (3.0,), "hidden_layer_sizes": 2, "max_cycles": 2}
GROWTH = {"max_search_iter": 2, "n_corrective_steps": 2, "random_state": 0}
TUNED = {"fine_tune": CD(max_iter=1), "warm_start": True}
# what keeps most, and each choice that keeps something else
MODELS = [
    ("cd", CD(3, max_iter=2, random_state=0, warm_start=True), STATES),
    ("cd", CD(3, max_updates=30, batch_size=10, random_state=0), STATES),
    ("cd", CD(3, max_updates=1, warm_start=True, random_state=0), STATES),
    ("fw", FW(3, **GROWTH, warm_start=True), STATES),
    ("fw tuned", FW(2, **GROWTH, **TUNED), STATES),
    ("mlp", MLP(2, max_cycles=3, warm_start=True, random_state=0), U),
    ("mlp", MLP(2, max_cycles=3, noise="student_t", curvature="diag"), U),
    ("narx", NARX(2, 2, n_estimators=2, **TINY), U),
    ("narx", NARX(1, 1, focus="simulation", output="difference", **TINY), U),
    ("states", StateSpace(1, n_estimators=2, **TINY), U),
    ("system", System("states", n_states=(1,), n_estimators=1, cv=2, **SEARCH), U),
    ("narx cv", NARXCV((1,), (3.0,), cv=2, n_estimators=1, max_cycles=2), U),
]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize(
    "kind, model, X", MODELS, ids=[f"{kind}-{k}" for k, (kind, *_) in enumerate(MODELS)]
)
def test_trusted_types_are_the_estimators(kind, model, X):
    rbm = X is STATES
    model.fit(X) if rbm else model.fit(X, Y)
    if rbm:
        # the estimates that it keeps as well
        model.score_samples(X)
    saved = skops_io.dumps(model)
    assert set(skops_io.get_untrusted_types(data=saved)) == TRUSTED[kind]
    again = skops_io.loads(saved, trusted=sorted(TRUSTED[kind]))
    same(again, model)
    results = "transform", "score_samples"
    for method in results if rbm else ("predict", "sample_y"):
        assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    if model.get_params().get("warm_start"):
        data = (X,) if rbm else (X, Y)
        same(again.fit(*data), model.fit(*data))


def same(first, second):
    first, second = attributes(first), attributes(second)
    assert first.keys() == second.keys()
    for name, value in first.items():
        if isinstance(value, np.ndarray):
            assert_array_equal(value, second[name], err_msg=name)


def test_a_large_model_is_saved_with_its_estimates(monkeypatch):
    monkeypatch.setattr(scoring, "_ENUMERATED_UNITS", 0)
    model = CD(3, max_iter=1, random_state=0).fit(STATES)
    expected = model.log_partition_
    assert "unchecked" in model._estimates
    again = skops_io.loads(skops_io.dumps(model), trusted=sorted(TRUSTED["cd"]))
    assert again.log_partition_ == expected
    assert type(again._estimates["unchecked"]) is type(model._estimates["unchecked"])


def test_users_import_estimators_by_the_names_in_files():
    for name in set.union(*TRUSTED.values()):
        package, _, kind = name.rpartition(".")
        assert package == "skbayesnn"
        estimator = getattr(skbayesnn, kind)
        assert f"{estimator.__module__}.{estimator.__qualname__}" == name


def test_unfitted_estimators_with_states_of_random_numbers():
    model = CD(random_state=np.random.RandomState(3))
    saved = skops_io.dumps(model)
    again = skops_io.loads(saved, trusted=sorted(TRUSTED["cd"]))
    assert again.random_state.randint(99) == model.random_state.randint(99)


def test_names_of_kinds_stay():
    """A file has these names: to change one needs a way to read the old one."""
    assert sorted(_saved_state._KINDS) == [
        "Bands",
        "BinaryUnits",
        "ByFeature",
        "Chains",
        "DynamicModel",
        "Ensemble",
        "FittedNetwork",
        "Gaussian",
        "LaggedNetwork",
        "Lags",
        "Learned",
        "Network",
        "Pair",
        "Prior",
        "RBM",
        "RecordEnd",
        "Replicas",
        "Scaling",
        "Seen",
        "Start",
        "State of contrastive divergence",
        "State of growth",
        "StateSpaceNetwork",
        "StudentT",
    ]


def parts_of(hint):
    inner = typing.get_args(hint)
    return [part for one in inner for part in parts_of(one)] if inner else [hint]


@pytest.mark.parametrize("kind", _saved_state._NAMES, ids=lambda kind: kind.__name__)
def test_kinds_hold_kinds_that_have_names(kind):
    hints = typing.get_type_hints(kind)
    parts = [part for hint in hints.values() for part in parts_of(hint)]
    named = [part for part in parts if hasattr(part, "_fields")]
    assert set(named) <= _saved_state._NAMES.keys()


@pytest.mark.parametrize("change", [{"_skbayesnn_kind": "Gone"}, {"gone": 1}])
def test_a_kind_that_this_version_does_not_know(change):
    model = MLP(2, max_cycles=3, random_state=0).fit(U, Y)
    state = model.__getstate__()
    state["_learned"] = state["_learned"] | change
    with pytest.raises(ValueError, match="does not know. Load it with the version"):
        MLP.__new__(MLP).__setstate__(state)


def test_names_are_given_once():
    with pytest.raises(ValueError, match="RBM names two kinds"):
        _saved_state.saved_as("RBM")(tuple)
