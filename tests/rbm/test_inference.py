"""Both estimators: data, parameters and fitted attributes."""

import copy
import inspect

import joblib
import naive
import numpy as np
import pytest
import scipy.sparse as sp
from grids import each_value_once
from numpy.testing import assert_allclose, assert_array_equal
from rbm_estimators import (
    CLASSES,
    arrays_of,
    assert_same_model,
    digits,
    independent_score,
    small,
    toy_data,
    twin,
)
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM


def test_fitted_attributes(fitted):
    n = fitted.n_components_
    assert fitted.components_.shape == (n, 6)
    assert fitted.intercept_hidden_.shape == fitted.unit_weights_.shape == (n,)
    assert fitted.intercept_visible_.shape == fitted.base_intercept_.shape == (6,)
    assert fitted.base_intercept_.dtype == np.float64
    assert all(array.dtype == np.float32 for array in arrays_of(fitted))
    X = toy_data()
    rate = (X.sum(axis=0) + 0.5) / (len(X) + 1)
    assert_allclose(fitted.base_intercept_, np.log(rate / (1 - rate)), rtol=1e-12)
    assert fitted.n_features_in_ == 6
    assert {len(values) for values in fitted.history_.values()} == {fitted.n_iter_}


def test_models_learn(fitted):
    """Of two causes, each seen three times, independent features know nothing."""
    X = toy_data(1000, seed=1)
    assert fitted.score(X) > independent_score(X, toy_data()) + 0.15


KINDS = {
    "uint8": lambda X: X.astype(np.uint8),
    "int64": lambda X: X.astype(np.int64),
    "float32": lambda X: X.astype(np.float32),
    "fortran": lambda X: np.asfortranarray(X.astype(np.float32)),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "csr array": lambda X: sp.csr_array(X.astype(np.float32)),
    "csr matrix": lambda X: sp.csr_matrix(X.astype(np.uint8)),
    "csc": lambda X: sp.csc_array(X.astype(np.float32)),
    "list": lambda X: X.astype(int).tolist(),
}


@pytest.mark.parametrize(*each_value_once(cls=CLASSES, kind=list(KINDS)))
def test_same_model_for_the_same_content(cls, kind):
    X = toy_data()
    other = KINDS[kind](X)
    expected, model = small(cls).fit(X), small(cls).fit(other)
    assert_same_model(model, expected)
    assert_array_equal(model.transform(other), expected.transform(X))
    assert_array_equal(model.score_samples(other), expected.score_samples(X))
    assert_array_equal(
        model.gibbs(other, 3, random_state=0), expected.gibbs(X, 3, random_state=0)
    )


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("cls", CLASSES)
def test_float64_is_kept(cls, convert):
    X = toy_data()
    expected = small(cls).fit(X)
    model = small(cls).fit(convert(X.astype(np.float64)))
    assert all(array.dtype == np.float64 for array in arrays_of(model))
    # computed in float32
    for array, other in zip(arrays_of(model), arrays_of(expected), strict=True):
        assert_array_equal(array, other)
    H = model.transform(X)
    assert H.dtype == model.inverse_transform(H).dtype == np.float64
    assert expected.transform(X.astype(np.float64)).dtype == np.float32
    assert_allclose(H, expected.transform(X), rtol=1e-5)
    assert_allclose(model.score_samples(X), expected.score_samples(X), atol=1e-5)


@pytest.mark.parametrize("cls", CLASSES)
def test_random_state_decides(cls):
    X = toy_data()
    first = small(cls, random_state=np.random.RandomState(0)).fit(X)
    assert_same_model(first, small(cls, random_state=0).fit(X))
    other = small(cls, random_state=1).fit(X)
    assert not np.array_equal(first.components_, other.components_)


@pytest.mark.parametrize("cls", CLASSES)
def test_threshold(cls):
    X = toy_data()
    grey = np.where(X, 128, 127).astype(np.uint8)
    assert_same_model(small(cls, binarize=127).fit(grey), small(cls).fit(X))
    model = small(cls)
    message = (
        r"outside \[0, 1\] \(127 to 128\).*binarize=0.5.*as 1, that is all.*"
        "127.5 for 127 and 128"
    )
    calls = [
        lambda: model.fit(grey),
        lambda: model.partial_fit(grey),
        lambda: clone(model).fit_transform(grey),
        lambda: model.score_samples(grey),
        lambda: make_pipeline(clone(model), StandardScaler()).fit(grey),
    ]
    for call in calls:
        with pytest.warns(DataConversionWarning, match=message) as told:
            call()
        # of the line that passed the data
        assert {warning.filename for warning in told} == {__file__}
    with pytest.warns(DataConversionWarning, match=message):
        H = model.transform(grey)
    # all of it is above 0.5
    assert_array_equal(H, model.transform(np.ones_like(X)))
    # a threshold between 0 and 1, and values on both sides, are fine
    soft = np.where(X, 0.31, 0.3)
    assert_same_model(
        small(cls, binarize=0.3).fit(soft.astype(np.float32)), small(cls).fit(X)
    )


@pytest.mark.parametrize("cls", CLASSES)
def test_probabilities(cls):
    X = toy_data()
    soft = np.where(X, 0.75, 0.25).astype(np.float32)
    model = small(cls, binarize=None).fit(soft)
    rate = (soft.sum(axis=0) + 0.5) / (len(X) + 1)
    assert_allclose(model.base_intercept_, np.log(rate / (1 - rate)), rtol=1e-6)
    W, hidden, _, c = twin(model)
    assert_allclose(
        model.transform(soft), c * naive.logistic(soft @ W.T + hidden), rtol=1e-5
    )
    # 0 and 1 are probabilities, too
    assert_same_model(small(cls, binarize=None).fit(X), small(cls).fit(X))
    for method in ("fit", "transform", "score", "partial_fit"):
        with pytest.raises(ValueError, match=r"binarize=None.*\[0, 1\].*0.25 to 1.5"):
            getattr(model, method)(np.where(X, 1.5, 0.25))


@pytest.mark.parametrize("cls", CLASSES)
def test_y_is_ignored(cls):
    X = toy_data()
    model = small(cls).fit(X)
    assert_same_model(small(cls).fit(X, np.arange(len(X))), model)
    assert model.score(X, np.arange(len(X))) == model.score(X)
    assert_array_equal(small(cls).fit_transform(X, ["a"] * len(X)), model.transform(X))


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("convert", [np.asfortranarray, sp.csr_array])
def test_inputs_are_never_written(cls, convert):
    X = convert(toy_data().astype(np.float32))
    values = X.data if sp.issparse(X) else X
    before = values.copy()
    values.flags.writeable = False
    model = small(cls, binarize=None).fit(X, X_val=X)
    model.partial_fit(X).transform(X)
    model.score(X)
    model.pseudo_likelihood(X)
    model.gibbs(X, 2)
    if not sp.issparse(X):
        model.impute(X)
        model.inverse_transform(np.asfortranarray(model.transform(X)))
        model.sample(len(X), n_steps=2, clamp=X)
        clamp = np.full(6, np.nan)
        clamp.flags.writeable = False
        model.sample(2, n_steps=2, clamp=clamp)
        assert np.isnan(clamp).all()
    assert_array_equal(values, before)


@pytest.mark.parametrize("cls", CLASSES)
def test_parameters_and_clones(cls):
    model = cls(7, learning_rate=0.3, binarize=None)
    parameters = model.get_params()
    assert parameters["n_components"] == 7 and parameters["binarize"] is None
    assert clone(model).get_params() == parameters
    assert model.set_params(learning_rate=0.1).learning_rate == 0.1
    fitted = small(cls).fit(toy_data())
    unfitted = clone(fitted)
    with pytest.raises(NotFittedError):
        unfitted.transform(toy_data())
    assert_same_model(unfitted.fit(toy_data()), fitted)


def test_clone_of_init_and_fine_tuner():
    arrays = (np.ones((2, 6)), np.zeros(2), np.zeros(6))
    model = clone(ContrastiveDivergenceRBM(init=arrays))
    for array, expected in zip(model.init, arrays, strict=True):
        assert_array_equal(array, expected)
    model = clone(FrankWolfeRBM(fine_tune=ContrastiveDivergenceRBM(max_iter=3)))
    assert model.fine_tune.max_iter == 3
    assert model.get_params()["fine_tune__max_iter"] == 3


UNFITTED_CALLS = {
    "transform": lambda m: m.transform(toy_data()),
    "inverse_transform": lambda m: m.inverse_transform(np.ones((1, 2))),
    "score": lambda m: m.score(toy_data()),
    "staged_score_samples": lambda m: list(m.staged_score_samples(toy_data())),
    "log_partition": lambda m: m.log_partition(),
    "log_partition_": lambda m: m.log_partition_,
    "sample": lambda m: m.sample(),
    "gibbs": lambda m: m.gibbs(toy_data()),
    "impute": lambda m: m.impute(toy_data()),
    "truncate": lambda m: m.truncate(1),
    "to_bernoulli_rbm": lambda m: m.to_bernoulli_rbm(),
    "get_feature_names_out": lambda m: m.get_feature_names_out(),
}


@pytest.mark.parametrize("name", UNFITTED_CALLS)
def test_unfitted_models_say_so(name):
    for cls in CLASSES:
        with pytest.raises(NotFittedError, match=f"This {cls.__name__} instance"):
            UNFITTED_CALLS[name](cls())


@pytest.mark.parametrize("cls", CLASSES)
def test_what_methods_refuse_is_documented(cls):
    """Each of them refuses something, if only a wrong argument."""
    methods = {
        name: method
        for name, method in inspect.getmembers(cls, inspect.isroutine)
        if name[0] != "_" and method.__module__.startswith("skbayesnn.rbm")
    }
    assert {"fit", "transform", "score", "sample"} < set(methods)
    silent = [
        name
        for name, method in methods.items()
        if "\nRaises\n------\n" not in inspect.getdoc(method)
    ]
    assert not silent


def test_threads_of_matrix_products(of_digits):
    X = np.tile(digits(), (10, 1))
    with threadpool_limits(limits=1, user_api="blas"):
        one = of_digits.transform(X), of_digits.free_energy(X)
    with threadpool_limits(limits=2, user_api="blas"):
        two = of_digits.transform(X), of_digits.free_energy(X)
    for a, b in zip(one, two, strict=True):
        assert_allclose(a, b, rtol=1e-5)


COMMON_BAD_PARAMETERS = {
    "n_components": [0, -1, 2.5, "ten"],
    "learning_rate": [0.0, -0.1, np.inf, np.nan, "fast"],
    "batch_size": [0, 1.5],
    "binarize": ["half", np.nan, np.inf],
    "early_stopping": ["yes"],
    "validation_fraction": [0.0, 1.0, -0.1],
    "max_gap": [-1.0],
    "warm_start": [None],
    "random_state": ["seed", -1],
    "n_gibbs_steps": [0, 1.5],
    "verbose": [-1],
}


BAD_PARAMETERS = {
    ContrastiveDivergenceRBM: {
        "schedule": ["cosine", None],
        "max_iter": [0, 2.5],
        "persistent": ["no"],
        "momentum": [1.0, -0.1],
        "weight_decay": [-1.0],
        "centered": [None],
        "init": ["zeros", 3, None],
    },
    FrankWolfeRBM: {
        "objective": ["exact", None],
        "unit_penalty": [-0.1, "none"],
        "radius": [0.0, -1.0],
        "alpha": ["sum", 0.0, -1.0, None],
        "away_steps": [None],
        "n_chains": [3, 10.5],
        "n_search_rows": [0],
        "max_search_iter": [0],
        "n_bias_steps": [-1],
        "n_corrective_steps": [-1, 0.5],
        "init": ["random", 3],
        "fine_tune": [BernoulliRBM(), "cd"],
        "fine_tune_norm": [0.0, -1.0, "small"],
        "tol": [-1.0],
        "n_iter_no_change": [0],
    },
}


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    [
        (cls, name, value)
        for cls, own in BAD_PARAMETERS.items()
        for name, values in {**COMMON_BAD_PARAMETERS, **own}.items()
        for value in values
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_bad_parameters_are_named(cls, name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter.*{cls.__name__}"):
        cls(**{name: value}).fit(toy_data())


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[0.0, np.nan]], "Input X contains NaN"),
        ([[0.0, np.inf]], "Input X contains infinity"),
        (np.zeros((0, 3)), r"0 sample\(s\).*minimum of 1"),
        (np.zeros((3, 0)), r"0 feature\(s\).*minimum of 1"),
        ([["a", "b"]], "^X must hold numbers; found the text 'a' in column 0"),
        (np.ones((2, 2)) * 1j, "Complex data not supported"),
        (np.ones(4), "Expected 2D array, got 1D"),
        (np.ones((2, 2, 2)), "dim 3"),
        (1.0, "Expected 2D array, got scalar"),
        (sp.csr_array([[0.0, np.nan]]), "Input X contains NaN"),
    ],
    ids=["nan", "inf", "rows", "features", "str", "complex", "1d", "3d", "0d", "csr"],
)
def test_bad_data_is_named(cls, method, X, message):
    model = small(cls)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(X)
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize("cls", CLASSES)
def test_number_of_features_is_checked(cls):
    X = toy_data()
    model = small(cls).fit(X)
    before = copy.deepcopy(arrays_of(model))
    for method in ("transform", "score", "gibbs", "impute", "partial_fit"):
        with pytest.raises(ValueError, match="5 features.*expecting 6"):
            getattr(model, method)(X[:, :5])
    with pytest.raises(ValueError, match="5 features.*expecting 6"):
        small(cls).fit(X, X_val=X[:, :5])
    with pytest.raises(ValueError, match="5 features.*expecting 6"):
        model.set_params(warm_start=True).fit(X[:, :5])
    for array, expected in zip(arrays_of(model), before, strict=True):
        assert_array_equal(array, expected)
    # without, it is another fit
    assert model.set_params(warm_start=False).fit(X[:, :5]).n_features_in_ == 5


@pytest.mark.parametrize("cls", CLASSES)
def test_validation_leaves_training_rows(cls):
    model = small(cls, early_stopping=True)
    with pytest.raises(ValueError, match=r"validation_fraction=0.1 leaves no.*=1\."):
        model.fit(toy_data(1))
    model.set_params(validation_fraction=0.9)
    with pytest.raises(ValueError, match="validation_fraction=0.9.*n_samples=5"):
        model.fit(toy_data(5))
    # validation data given, all rows are for training
    assert np.isfinite(model.fit(toy_data(5), X_val=toy_data()).score(toy_data()))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("value", [0, 1])
def test_constant_features(cls, value):
    """Their rates are smoothed: neither biases nor likelihoods are infinite."""
    X = toy_data()
    X[:, 2] = value
    model = small(cls).fit(X)
    assert all(np.isfinite(array).all() for array in arrays_of(model))
    assert np.isfinite(model.base_intercept_).all()
    # the other value has been seen in no row, yet is not impossible
    assert np.isfinite(model.score_samples(naive.all_states(6))).all()
    rare = np.exp(model.score_samples(naive.all_states(6)))
    assert rare[naive.all_states(6)[:, 2] != value].sum() < 0.05
    model = small(cls).fit(np.full_like(X, value))
    assert np.isfinite(model.score_samples(naive.all_states(6))).all()
    assert model.score(np.full_like(X, value)) > -0.5


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cls", CLASSES)
def test_one_row_and_one_feature(cls):
    row = toy_data(1)
    model = small(cls).fit(row)
    total = np.exp(model.score_samples(naive.all_states(6))).sum()
    assert total == pytest.approx(1.0, abs=1e-4)
    assert model.transform(row).shape == (1, model.n_components_)
    model.partial_fit(row)
    X = toy_data()[:, :1]
    models = [small(cls, random_state=seed).fit(X) for seed in range(5)]
    rate = (X.sum() + 0.5) / (len(X) + 1)
    p = np.exp([model.score_samples([[0], [1]]) for model in models])
    # a handful of noisy updates each, around the rate
    assert_allclose(p.mean(axis=0), [1 - rate, rate], atol=0.1)
    assert_allclose(p.sum(axis=1), 1.0, atol=1e-5)


def leaves(name, n):
    return [e for i in range(n) for e in (("begin", name, 0), ("end", name, i))]


@pytest.mark.parametrize(
    "kind", [np.asarray, sp.csr_array, sp.csc_matrix, sp.coo_array]
)
def test_rows_that_the_threshold_empties_are_told_of(kind):
    """As weights of words are, of which hardly one in a row is above a half."""
    X = np.where(np.random.default_rng(0).random((40, 6)) < 0.3, 0.4, 0.0)
    n_emptied = np.count_nonzero(X.any(axis=1))
    model = ContrastiveDivergenceRBM(2, max_iter=2, random_state=0)
    message = f"{n_emptied} of 40 rows.*above binarize=0.5.*binarize=0.0"
    with pytest.warns(DataConversionWarning, match=message) as told:
        model.fit(kind(X))
    assert [warning.filename for warning in told] == [__file__]
    # not of most rows, of rows to be transformed, or where it was chosen
    some = X.copy()
    some[X.any(axis=1).nonzero()[0][: n_emptied // 2 + 1], 0] = 0.6
    model.fit(kind(some)).transform(kind(X))
    clone(model).set_params(binarize=0.0).fit(kind(X))
    clone(model).set_params(binarize=None).fit(kind(X))
    clone(model).fit(np.zeros((40, 6)))


@pytest.mark.slow
@pytest.mark.parametrize("cls", [ContrastiveDivergenceRBM, FrankWolfeRBM])
def test_read_only_weights(cls, tmp_path):
    """As joblib maps them from a file; kernels are compiled for them once more."""
    X = np.random.default_rng(0).random((60, 30)) < 0.3
    options = {"max_iter": 3} if cls is ContrastiveDivergenceRBM else {}
    model = cls(20, random_state=0, **options).fit(X)
    joblib.dump(model, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    assert not mapped.components_.flags.writeable
    missing = np.where(np.arange(30) < 3, np.nan, X)
    for use in (
        lambda rbm: rbm.transform(X),
        lambda rbm: rbm.score_samples(X),
        lambda rbm: rbm.sample(5, random_state=0),
        lambda rbm: rbm.impute(missing),
        lambda rbm: rbm.log_partition("both", n_chains=20).log_partition,
    ):
        assert_array_equal(use(mapped), use(model))
