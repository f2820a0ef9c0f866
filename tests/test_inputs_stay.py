"""No method writes to what it is given, keeps it, or gives it back.

Each public method of each estimator gets its arrays in each container, and has to give
what it gives for plain arrays.
"""

import copy
import functools
import inspect

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from skbayesnn import (
    ContrastiveDivergenceRBM,
    DynamicSystemRegressor,
    FrankWolfeRBM,
    SparseBayesMLPRegressor,
    SparseBayesNARXRegressor,
    SparseBayesNARXRegressorCV,
    SparseBayesStateSpaceRegressor,
)

pytestmark = pytest.mark.usefixtures("quick_states")

RNG = np.random.default_rng(0)
U = RNG.normal(size=(30, 2))
Y = np.column_stack([np.tanh(U[:, 0]), U.sum(axis=1)]) + RNG.normal(0, 0.1, (30, 2))
S = np.repeat([0.0, 1.0], 15)
W = np.ones(30)
V = RNG.random((30, 5)).round(2)
GAPS = np.where(V < 0.2, np.nan, V)
HELD = np.where(V < 0.2, np.nan, V > 0.5)
H = RNG.random((30, 2))


# Containers: each takes a float64 array (and a folder), and gives another object with
# the same values, and all memory that belongs to it.


def read_only(array, folder):
    array = array.copy()
    array.flags.writeable = False
    return array, [array]


def fortran(array, folder):
    array = np.array(array, order="F")
    return array, [array]


def strided(array, folder):
    around = np.full([2 * n + 1 for n in array.shape], 7.0)
    part = around[tuple(slice(None, 0, -2) for _ in array.shape)]
    part[...] = array
    return part, [around]


def memory_mapped(array, folder):
    path = folder / f"{len(list(folder.iterdir()))}.npy"
    np.save(path, array)
    array = np.load(path, mmap_mode="r+")
    return array, [array]


def frame(array, folder):
    if array.ndim == 1:
        table = pd.Series(array.copy())
    else:
        # a signal is not an input and an output at once
        kind = "y" if np.isin(array, Y).all() else "x"
        names = [f"{kind}{k}" for k in range(array.shape[1])]
        table = pd.DataFrame(array.copy(), columns=names)
    return table, [table.to_numpy()]


def csr(array, folder):
    matrix = sp.csr_array(array)
    parts = [matrix.data, matrix.indices, matrix.indptr]
    for part in parts:
        part.flags.writeable = False
    return matrix, parts


CONTAINERS = [read_only, fortran, strided, memory_mapped, frame, csr]
# What the others have in common with one of these, some estimators show by default.
TELLING = [read_only, strided, csr]


# Estimators, and a call of each of their methods: ``call(model, take)``, where ``take``
# puts an array into the container.

STATIC = {
    "fit": lambda m, take: m.fit(take(U), take(Y)),
    "predict": lambda m, take: m.predict(take(U), return_std=True),
    "sample_y": lambda m, take: m.sample_y(take(U), 3),
    "score": lambda m, take: m.score(take(U), take(Y), take(W)),
}
LAGGED = {
    "fit": lambda m, take: m.fit(take(U), take(Y), sessions=take(S)),
    "predict": lambda m, take: m.predict(
        take(U), take(Y), sessions=take(S), return_std=True
    ),
    "predict, ahead": lambda m, take: m.predict(take(U), take(Y), horizon=3),
    "predict, simulation": lambda m, take: m.predict(
        take(U), y_init=take(Y[:3]), X_init=take(U[:3])
    ),
    "predict, short start": lambda m, take: m.predict(take(U), y_init=take(Y[:1])),
    "sample_y": lambda m, take: m.sample_y(
        take(U), take(Y), sessions=take(S), n_samples=3
    ),
    "score": lambda m, take: m.score(take(U), take(Y), take(W), sessions=take(S)),
    "forecast": lambda m, take: _forecast(m, take),
    "stream": lambda m, take: _stream(m, take),
}
MACHINE = {
    "fit": lambda m, take: m.fit(take(V), X_val=take(V[::2])),
    "partial_fit": lambda m, take: m.partial_fit(take(V)),
    "fit_transform": lambda m, take: m.fit_transform(take(V)),
    "transform": lambda m, take: m.transform(take(V)),
    "free_energy": lambda m, take: m.free_energy(take(V)),
    "pseudo_likelihood": lambda m, take: m.pseudo_likelihood(take(V)),
    "score": lambda m, take: m.score(take(V)),
    "score_samples": lambda m, take: m.score_samples(take(V)),
    "staged_transform": lambda m, take: list(m.staged_transform(take(V))),
    "staged_score_samples": lambda m, take: list(m.staged_score_samples(take(V))),
    "gibbs": lambda m, take: m.gibbs(take(V), 2, random_state=0),
    "log_partition": lambda m, take: m.log_partition(
        "both", betas=np.linspace(0.0, 1.0, 5), X=take(V), random_state=0
    ),
    "impute": lambda m, take: m.impute(take(GAPS), n_steps=4),
    "impute, sample": lambda m, take: m.impute(
        take(GAPS), strategy="sample", random_state=0
    ),
    "sample": lambda m, take: m.sample(30, n_steps=4, clamp=take(HELD), random_state=0),
    "inverse_transform": lambda m, take: m.inverse_transform(take(H)),
    "from_bernoulli_rbm": lambda m, take: type(m).from_bernoulli_rbm(
        m.to_bernoulli_rbm(), take(V), random_state=0
    ),
}
# methods that are given no data
WITHOUT_DATA = {
    "get_feature_names_out",
    "get_lagged_feature_names_out",
    "get_metadata_routing",
    "get_params",
    "set_callbacks",
    "set_output",
    "set_params",
    "to_bernoulli_rbm",
    "to_c",
    "to_mlp_regressor",
    "to_onnx",
    "to_state_space",
    "truncate",
}
LAGS = dict(hidden_layer_sizes=2, max_cycles=2, random_state=0)
SMALL = dict(max_iter=1, random_state=0)
ESTIMATORS = {
    "MLP": (SparseBayesMLPRegressor(2, max_cycles=2, random_state=0), STATIC),
    "NARX": (SparseBayesNARXRegressor(2, 2, **LAGS), LAGGED),
    "NARX, free run": (
        SparseBayesNARXRegressor(
            1, 1, focus="simulation", initial_conditions="estimated", **LAGS
        ),
        LAGGED,
    ),
    "NARX, differences": (
        SparseBayesNARXRegressor(
            1, 1, output="difference", selection="validation", n_estimators=2, **LAGS
        ),
        LAGGED,
    ),
    "search": (
        SparseBayesNARXRegressorCV((1,), (1.0,), cv=2, n_estimators=1, **LAGS),
        LAGGED,
    ),
    "system": (
        DynamicSystemRegressor(
            lags=(1,), n_states=(1,), reg_lambdas=(1.0,), cv=2, n_estimators=1, **LAGS
        ),
        LAGGED,
    ),
    "hidden states": (
        SparseBayesStateSpaceRegressor(1, n_restarts=1, **LAGS),
        LAGGED,
    ),
    "epochs": (ContrastiveDivergenceRBM(2, **SMALL), MACHINE),
    "probabilities": (ContrastiveDivergenceRBM(2, binarize=None, **SMALL), MACHINE),
    "rounds": (
        ContrastiveDivergenceRBM(2, max_updates=5, random_state=0),
        {name: MACHINE[name] for name in ("fit", "partial_fit")},
    ),
    "growth": (FrankWolfeRBM(2, n_chains=20, random_state=0), MACHINE),
    "fractional": (FrankWolfeRBM(2, n_chains=20, alpha=1.5, random_state=0), MACHINE),
}
# One of each module that takes arrays in.
IN_ANY_CONTAINER = ("MLP", "NARX", "hidden states", "probabilities", "growth")
# Their data go to estimators that are tried themselves.
SEARCHES = ("search", "system")
# Missing values, clamps and features are dense.
DENSE = ("impute", "impute, sample", "sample", "inverse_transform")
CASES = [
    (name, container)
    for name, (_, methods) in ESTIMATORS.items()
    for container in CONTAINERS
    # and so are the records of regressors
    if container is not csr or methods not in (STATIC, LAGGED)
]


def _forecast(model, take):
    ahead = model.forecast(
        X_future=take(U), X_past=take(U[:6]), y_past=take(Y[:6]), n_paths=2
    )
    return [ahead[name] for name in ("y_pred", "y_std", "lower", "upper", "paths")]


def _stream(model, take):
    stream = model.stream(take(U[:4]), take(Y[:4]))
    steps = []
    for u, y in zip(U[4:8], Y[4:8], strict=True):
        steps.append(stream.step(take(u)))
        stream.update(take(y))
    return steps, stream.run(take(U))


@functools.cache
def fitted(name):
    model, methods = ESTIMATORS[name]
    return methods["fit"](copy.deepcopy(model), lambda array: array.copy())


def arrays_in(result):
    """The arrays of a result, or of the public attributes of an estimator."""
    if hasattr(result, "get_params"):
        result = {k: v for k, v in vars(result).items() if k[-1] == "_" != k[0]}
    if isinstance(result, dict):
        result = [value for key, value in result.items() if key != "seconds"]
    if isinstance(result, np.ndarray) and result.dtype.kind == "O":
        return []
    if isinstance(result, list | tuple):
        return [array for part in result for array in arrays_in(part)]
    if isinstance(result, np.ndarray | float | int):
        return [np.asarray(result)]
    return []


@functools.cache
def expected(name, method):
    model, call = copy.deepcopy(fitted(name)), ESTIMATORS[name][1][method]
    return arrays_in(call(model, lambda array: array.copy()))


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "name, container",
    [
        pytest.param(
            name,
            container,
            id=f"{name}-{container.__name__}",
            marks=[]
            if (container is read_only and name != "system")
            or (container in TELLING and name not in SEARCHES)
            or name in IN_ANY_CONTAINER
            else pytest.mark.slow,
        )
        for name, container in CASES
    ],
)
def test_methods_leave_their_arrays_alone(name, container, tmp_path):
    for method, call in ESTIMATORS[name][1].items():
        if container is csr and method in DENSE:
            continue
        if name == "fractional" and method == "from_bernoulli_rbm":
            continue  # scikit-learn has no such model
        given = []

        def take(array, given=given):
            wrapped, memory = container(array, tmp_path)
            given.extend((part, part.copy()) for part in memory)
            return wrapped

        result = call(copy.deepcopy(fitted(name)), take)
        assert given
        for memory, before in given:
            np.testing.assert_array_equal(memory, before, err_msg=method)
        found = arrays_in(result)
        assert found, method
        for array, same in zip(found, expected(name, method), strict=True):
            if array.dtype.kind in "fiub":
                np.testing.assert_allclose(array, same, 1e-6, 1e-9, err_msg=method)
            else:
                np.testing.assert_array_equal(array, same, err_msg=method)
            for memory, _ in given:
                assert not np.shares_memory(array, memory), method


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_model_does_not_keep_the_arrays(name):
    model, methods = ESTIMATORS[name]
    given = []

    def take(array):
        given.append(array.copy())
        return given[-1]

    model = methods["fit"](copy.deepcopy(model), take)
    for array in given:
        array[...] = 0.5
    call = {**MACHINE, **methods}["predict" if "predict" in methods else "transform"]
    for array, same in zip(
        arrays_in(call(model, lambda array: array.copy())),
        arrays_in(call(fitted(name), lambda array: array.copy())),
        strict=True,
    ):
        np.testing.assert_array_equal(array, same)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_method_is_forgotten(name):
    model, methods = ESTIMATORS[name]
    public = {
        method
        for method, value in inspect.getmembers(type(model))
        if method[0] != "_" and callable(value) and not method.endswith("_request")
    }
    if name == "rounds":
        methods = MACHINE
    called = {method.partition(",")[0] for method in methods}
    assert public - WITHOUT_DATA == called


def parameters():
    """Estimators with arrays among their parameters."""
    lags = {"x0": np.array([1]), "x1": np.array([0, 2])}
    yield SparseBayesMLPRegressor(
        np.array([2, 2]), reg_lambda=np.ones(3), noise_variance=np.array([0.1, 0.2])
    )
    yield SparseBayesNARXRegressor(
        lags,
        np.array([1, 2]),
        hidden_layer_sizes=np.array([2]),
        focus="simulation",
        horizon_schedule=np.array([1, 3]),
        reg_lambda=np.ones(3),
    )
    yield ContrastiveDivergenceRBM(
        init=(np.ones((2, 5)), np.zeros(2), np.zeros(5)), warm_start=True
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("model", parameters(), ids=lambda m: type(m).__name__)
def test_arrays_among_the_parameters_stay(model):
    model.set_params(**(SMALL if hasattr(model, "init") else dict(max_cycles=2)))
    arrays = arrays_in(list(model.get_params(deep=False).values()))
    before = [array.copy() for array in arrays]
    assert len(arrays) >= 3
    for array in arrays:
        array.flags.writeable = False
    table = pd.DataFrame(U, columns=["x0", "x1"])
    for _ in range(2):
        model.fit(V) if hasattr(model, "init") else model.fit(table, Y)
    for array, same in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, same)
    learned = arrays_in(model)
    assert not any(np.shares_memory(a, b) for a in learned for b in arrays)
