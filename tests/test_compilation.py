"""How often the kernels are compiled, and that the disk cache is used."""

import importlib
import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numba
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import skbayesnn
from skbayesnn import _numba as _jit

ROOT = Path(__file__).resolve().parents[1]

needs_compiler = pytest.mark.skipif(
    numba.config.DISABLE_JIT, reason="nothing is compiled"
)

# In a process of its own: the direct calls of other tests would be counted as well.
PREPARATION = """
import json
import warnings

import numpy as np
import pandas as pd
import scipy.sparse as sp

from skbayesnn import (
    ContrastiveDivergenceRBM,
    FrankWolfeRBM,
    SparseBayesMLPRegressor,
    SparseBayesNARXRegressor,
    SparseBayesStateSpaceRegressor,
)
from skbayesnn.rbm.kernels import annealed_path, bits, centring, signals, softplus
from skbayesnn.rbm.kernels import products as states, uniforms as random, units as rbm
from skbayesnn.sparse_bayes.kernels import activations, layers as mlp, one_row as row
from skbayesnn.sparse_bayes.kernels import packed as stream, recursion
from skbayesnn.sparse_bayes.kernels import sampled_runs as draws
from skbayesnn.sparse_bayes.kernels import state_filter, state_recursion

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.standard_normal((100, 3))
Y = np.column_stack([np.sin(X[:, 0]) + 0.1 * X[:, 1], X[:, 2]])
y = Y[:, 0].copy()
V = np.column_stack([X > 0.0, X[:, :1] > 0.5, X[:, :2] > -0.5])
kwargs = dict(hidden_layer_sizes=(4,), max_cycles=3, random_state=0)


def static(X=X, y=y, **options):
    model = SparseBayesMLPRegressor(**{**kwargs, **options}).fit(X, y)
    model.predict(X)
    model.predict(X[:7], return_std=True)
    model.sample_y(X)


def dynamic(X=X, y=y, horizon=None, **options):
    model = SparseBayesNARXRegressor(**{**kwargs, **options}).fit(X, y)
    _all_predictions(model, X, y, horizon)


def _all_predictions(model, X, y, horizon):
    model.predict(X, y, return_std=True)
    model.predict(X, return_std=True)
    model.predict(X, y_init=y[:4])
    controlled = model.stream()
    controlled.update(controlled.step(np.asarray(X)[0]))
    controlled.run(X)
    model.sample_y(X, n_samples=3)
    if horizon is not None:
        model.sample_y(X, y, horizon=horizon, n_samples=3)
        model.predict(X, y, horizon=horizon)
        model.predict(X, y, horizon=horizon, return_std=True)


def hidden_states(X=X, y=y, **options):
    options = {"n_restarts": 2, "max_cycles": 2, **options}
    model = SparseBayesStateSpaceRegressor(2, **{**kwargs, **options}).fit(X, y)
    _all_predictions(model, X, y, 3)


def simulation(X=X, y=y, **options):
    options = {"focus": "simulation", "horizon_schedule": [1, 4, None], **options}
    dynamic(X, y, **options)


def binary(model, V=V):
    model.set_params(random_state=0).fit(V)
    model.transform(V)
    model.score(V)
    model.free_energy(V)
    model.pseudo_likelihood(V)
    model.gibbs(V, 2)
    clamp = np.array([1.0, *[np.nan] * (model.n_features_in_ - 1)])
    for held in [None, clamp]:
        model.sample(5, n_steps=4, clamp=held)
    missing = np.full((2, model.n_features_in_), np.nan)
    missing[:, 0] = [0.0, 1.0]
    for strategy in ["mean", "sample"]:
        model.impute(missing, n_steps=4, strategy=strategy)
    model.log_partition("exact")
    for method in ["ais", "reverse_ais"]:
        model.log_partition(method, betas=4, n_chains=60)


def contrastive(V=V, **options):
    binary(ContrastiveDivergenceRBM(8, **{"max_iter": 2, **options}), V)


def frank_wolfe(V=V, **options):
    options = {"n_chains": 20, "n_corrective_steps": 3, **options}
    binary(FrankWolfeRBM(3, **options), V)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def dispatchers():
    modules = (activations, annealed_path, bits, centring, draws, mlp, random, rbm)
    modules += (recursion, row, signals, softplus, state_filter, state_recursion)
    modules += (states, stream)
    return {
        f"{module.__name__.rpartition('.')[2]}.{name}": value
        for module in modules
        for name, value in vars(module).items()
        if hasattr(value, "signatures")
        and value.py_func.__module__ == module.__name__
    }


def report():
    kernels = dispatchers()
    counts = {
        name: [
            len(kernel.signatures),
            sum(kernel.stats.cache_hits.values()),
            sum(kernel.stats.cache_misses.values()),
        ]
        for name, kernel in kernels.items()
    }
    for name, kernel in kernels.items():
        for compiled in kernel.overloads.values():
            # nothing would count the reference
            returned = str(compiled.signature.return_type).lower()
            assert "array" not in returned, f"{name} returns {returned}"
    print(json.dumps(counts))
"""


def kernels():
    """All compiled kernels, by module and name."""
    found = {}
    for info in pkgutil.walk_packages(skbayesnn.__path__, "skbayesnn."):
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if isinstance(value, Dispatcher) and value.__module__ == info.name:
                found[f"{info.name}.{name}"] = value
    return found


def helpers_of(one):
    """Kernels that a kernel names, by itself or as those of a module."""
    names, scope = one.py_func.__code__.co_names, one.py_func.__globals__
    values = [scope[name] for name in names if name in scope]
    modules = [value for value in values if isinstance(value, ModuleType)]
    values += [vars(m)[name] for m in modules for name in names if name in vars(m)]
    return [value for value in values if isinstance(value, Dispatcher)]


@needs_compiler
def test_kernels_that_others_call_are_compiled_into_them():
    """Else a process that compiles may sum in another order than one that does not."""
    called = [other for one in kernels().values() for other in helpers_of(one)]
    assert len({other.__name__ for other in called}) > 50
    for other in called:
        options = other.targetoptions
        within = options.get("forceinline") or options["inline"] == "always"
        assert within, f"{other.__module__}.{other.__name__} lacks helper=True"


def run(code, **environment):
    """Signatures, cache hits and cache misses of each kernel after the code."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    finished = subprocess.run(
        [sys.executable, "-c", f"{PREPARATION}\n{code}\nreport()\n"],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout.splitlines()[-1])


STATIC = """
static()
static(X[:40, :2], y[:40])
static(y=Y)
for hidden in [(), (2,), (30,), (3, 2)]:
    static(hidden_layer_sizes=hidden)
for pruning in [dict(kappa_weight=0.3), dict(kappa_weight=1e3)]:
    static(**pruning)
for activation in ["relu", "logistic"]:
    static(activation=activation)
for options in [dict(solver="lbfgs"), dict(curvature="diag"), dict(reweight=False)]:
    static(**options)
static(reg_lambda=[1.0, 2.0], groups=["element", "row"])
static(solver="lbfgs")
static(solver="adam")
for convert in [
    read_only,
    np.asfortranarray,
    lambda array: read_only(np.asfortranarray(array)),
    lambda array: array.astype(np.float32),
    lambda array: array.tolist(),
    pd.DataFrame,
]:
    static(convert(X), convert(Y))
    static(convert(X), convert(Y), curvature="diag", solver="lbfgs")
static(X, pd.Series(y))
static(np.repeat(X, 2, axis=0)[::2], np.repeat(y, 2)[::2])
"""

DYNAMIC = """
dynamic(horizon=3)
dynamic(X[:40, :2], y[:40], horizon=5)
dynamic(y=Y, horizon=2)
dynamic(hidden_layer_sizes=(), horizon=2)
dynamic(hidden_layer_sizes=(30,), horizon=2)
dynamic(hidden_layer_sizes=(3, 2), input_lags=[1, 3], output_lags=1, horizon=2)
dynamic(curvature="diag", horizon=2)
dynamic(kappa_weight=0.3, horizon=2)
dynamic(kappa_weight=1e3, horizon=2)
dynamic(input_lags=0, output_lags=1, include_current_input=False, horizon=2)
dynamic(read_only(X), y)
dynamic(X, read_only(y), horizon=2)
dynamic(X, Y[:, 0], horizon=2)
dynamic(X, pd.Series(y), horizon=2)
dynamic(X, np.asfortranarray(Y), horizon=2)
for convert in [
    np.asfortranarray,
    lambda array: array.astype(np.float32),
    lambda array: array.tolist(),
]:
    dynamic(convert(X), y, horizon=2)
"""

SIMULATION = """
simulation(horizon=3)
simulation(X[:40, :2], y[:40])
simulation(y=Y, horizon=3)
for hidden in [(), (30,), (3, 2)]:
    simulation(hidden_layer_sizes=hidden)
for pruning in [dict(kappa_weight=0.3), dict(kappa_weight=1e3)]:
    simulation(**pruning)
for activation in ["relu", "logistic"]:
    simulation(activation=activation)
for options in [
    dict(skip_connection=False),
    dict(solver="lbfgs"),
    dict(solver="lbfgs", curvature="diag"),
    dict(curvature="diag"),
    dict(input_lags=[1, 3], output_lags=1),
    dict(input_lags=2, output_lags=0),
    dict(horizon_schedule=[1]),
    dict(initial_conditions="estimated"),
    dict(initial_conditions="estimated", y=Y),
]:
    simulation(**options)
gaps = np.where(np.arange(100) == 50, np.nan, y)
simulation(y=gaps)
simulation(np.where(np.arange(100)[:, None] == 30, np.nan, X))
simulation(read_only(X), read_only(y))
for convert in [
    np.asfortranarray,
    lambda array: read_only(np.asfortranarray(array)),
    lambda array: array.astype(np.float32),
    lambda array: array.tolist(),
    pd.DataFrame,
]:
    simulation(convert(X), convert(Y))
    simulation(convert(X), convert(Y), solver="lbfgs")
simulation(np.repeat(X, 2, axis=0)[::2], np.repeat(y, 2)[::2])
"""

HIDDEN_STATES = """
hidden_states()
hidden_states(X[:40, :2], y[:40])
hidden_states(y=Y)
for hidden in [(), (30,), (3, 2)]:
    hidden_states(hidden_layer_sizes=hidden)
for options in [dict(kappa_weight=0.3), dict(noise="student_t"), dict(n_estimators=2)]:
    hidden_states(**options)
for convert in [
    read_only,
    np.asfortranarray,
    lambda array: array.astype(np.float32),
    lambda array: array.tolist(),
    pd.DataFrame,
]:
    hidden_states(convert(X), convert(Y))
hidden_states(np.repeat(X, 2, axis=0)[::2], np.repeat(y, 2)[::2])
"""

BINARY = """
for fit in [contrastive, frank_wolfe]:
    fit()
    for convert in [
        lambda array: array.astype(np.uint8),
        lambda array: array.astype(np.int64),
        lambda array: array.astype(np.float32),
        lambda array: array.astype(np.float64),
        np.asfortranarray,
        lambda array: np.asfortranarray(array.astype(np.float64)),
        read_only,
        lambda array: read_only(array.astype(np.float32)),
        lambda array: read_only(np.asfortranarray(array.astype(np.float32))),
        lambda array: array.tolist(),
        lambda array: np.repeat(array, 2, axis=0)[::2],
        lambda array: sp.csr_array(array.astype(np.float32)),
        lambda array: sp.csr_matrix(array.astype(np.uint8)),
        pd.DataFrame,
        lambda array: pd.DataFrame(array.astype(np.uint8)),
    ]:
        fit(convert(V))
    fit(V[:30, :1])
    fit(0.8 * V.astype(np.float32), binarize=None)
    fit(V, early_stopping=True)
    fit(V, batch_size=7, learning_rate=1)
contrastive(persistent=False)
contrastive(n_gibbs_steps=3, persistent=False, centered=False)
contrastive(n_gibbs_steps=2, momentum=0.5, weight_decay=0.1)
for alpha in ["learn", 2.5, 2]:
    frank_wolfe(alpha=alpha)
    frank_wolfe(read_only(np.asfortranarray(V)), alpha=alpha)
    frank_wolfe(sp.csr_array(V.astype(np.float64)), alpha=alpha)
frank_wolfe(objective="linearized", unit_penalty=1)
frank_wolfe(radius=2.0, away_steps=True, n_corrective_steps=0)
frank_wolfe(fine_tune=ContrastiveDivergenceRBM(max_iter=2))
frank_wolfe(init=ContrastiveDivergenceRBM(2, max_iter=2))
# so wide that likelihoods are estimated
wide = np.tile(V, 6)
rounds = ContrastiveDivergenceRBM(17, max_updates=80)
binary(rounds, wide)
binary(rounds.set_params(binarize=None), 0.8 * wide.astype(np.float32))
tuner = ContrastiveDivergenceRBM(max_updates=30)
binary(FrankWolfeRBM(fine_tune=tuner, validation_fraction=0.8), wide)
# of a fractional model
grown = FrankWolfeRBM(2, alpha=1.5, n_chains=20, random_state=0)
contrastive(init=grown)
contrastive(init=grown, persistent=False)
V64 = V.astype(np.float64)
short = ContrastiveDivergenceRBM(3, max_updates=60)
for model in [short, FrankWolfeRBM(3, n_chains=20)]:
    model.partial_fit(V64).partial_fit(V64[:13])
    binary(ContrastiveDivergenceRBM(init=model, max_iter=1, warm_start=True), V64)
"""

# Some of each kind, and what arrays differ in most often.
FEW = """
def odd(array):
    return read_only(np.asfortranarray(array.astype(np.float32)))


static()
static(odd(X), odd(Y), curvature="diag", solver="lbfgs")
dynamic(horizon=3)
dynamic(odd(X), y, hidden_layer_sizes=(3, 2), horizon=2)
simulation()
simulation(odd(X), odd(Y), solver="lbfgs")
simulation(y=y[::-1], initial_conditions="estimated")
hidden_states()
hidden_states(odd(X), odd(Y), noise="student_t")
for fit in [contrastive, frank_wolfe]:
    fit()
    fit(odd(V))
    fit(sp.csr_array(V.astype(np.float64)))
    fit(0.8 * V.astype(np.float32), binarize=None)
frank_wolfe(odd(V), alpha=2.5)
contrastive(init=FrankWolfeRBM(2, alpha=1.5, n_chains=20, random_state=0))
binary(ContrastiveDivergenceRBM(17, max_updates=20), np.tile(V, 6))
"""

# Kernels that code of each kind calls from Python.
CALLED = {
    "static": {
        "layers._derive",
        "layers._ggn_diag",
        "layers._loss_gradient",
    },
    "dynamic": {
        "recursion._run_rows",
        "recursion._feed_back",
        "recursion._fed_back_noise",
        "packed.step",
        "packed.run",
        "packed.update",
        "sampled_runs._draw_paths",
    },
    "simulation": {
        "recursion._run_rows",
        "recursion._feed_back",
        "recursion._path_gradient",
        "recursion._fed_back_noise",
    },
    "hidden_states": {"state_recursion._run_rows"},
    "binary": {
        "bits.forward",
        "bits.backward",
        "bits.activate",
        "units.mean_units",
        "units.sample_units",
        "units.mean_and_sample_units",
        "units.softplus_sum",
        "units.log_sum_exp",
        "units.flip",
        "centring.centre_rows",
        "centring.weigh_about_centres",
        "units.anneal_hidden",
        "units.anneal_visible",
        "annealed_path.anneal_small",
        "units.fractional_hidden",
        "units.fractional_softplus",
        "units.metropolis",
        "units.difference_of_means",
        "units.update_weights",
        "units.blend",
        "products._add_rows",
        "products._add_tables",
        "products.count_on",
        "products.multiply_small",
        "products.weigh_rows",
        "products.weigh_columns",
        "softplus.sum_softplus_of_pairs",
    },
}


@needs_compiler
@pytest.mark.parametrize(
    "kind", ["few", *(pytest.param(kind, marks=pytest.mark.slow) for kind in CALLED)]
)
def test_one_signature_per_kernel(kind):
    code = {
        "few": FEW,
        "static": STATIC,
        "dynamic": DYNAMIC,
        "simulation": SIMULATION,
        "hidden_states": HIDDEN_STATES,
        "binary": BINARY,
    }
    counts = run(code[kind])
    assert {name: c[0] for name, c in counts.items() if c[0] > 1} == {}
    # what Python calls was called
    called = {name for name, c in counts.items() if c[0] == 1}
    assert called >= (set().union(*CALLED.values()) if kind == "few" else CALLED[kind])


@pytest.mark.slow
@needs_compiler
def test_the_second_process_compiles_nothing(tmp_path):
    code = "static()\nSparseBayesNARXRegressor(**kwargs).fit(X, y)"
    code += ".predict(X, y, horizon=2)\n"
    code += "SparseBayesNARXRegressor(focus='simulation', **kwargs).fit(X, y)"
    first = run(code, NUMBA_CACHE_DIR=str(tmp_path))
    second = run(code, NUMBA_CACHE_DIR=str(tmp_path))
    used = {"layers._derive", "recursion._run_rows", "recursion._feed_back"}
    for name in used:
        # compiled once, also where other kernels call it
        assert first[name] == [1, 0, 1], name
        assert second[name] == [1, 1, 0], name
    # both passes through a network have these in common
    for name in ["activations.activate_many", "activations._tanh_many"]:
        assert first[name] == [1, 0, 1], name
    assert sum(misses for _, _, misses in second.values()) == 0


@pytest.mark.slow
@needs_compiler
def test_the_second_process_compiles_nothing_for_rbms(tmp_path):
    # enough steps for an average of the parameters
    code = "contrastive(batch_size=20)\ncontrastive(persistent=False)"
    code += "\nfrank_wolfe(alpha=1.5)"
    # products by additions, and jumps of chains
    code += "\ncontrastive(np.tile(V, (50, 1)))"
    code += "\nbinary(ContrastiveDivergenceRBM(17, max_updates=20), np.tile(V, 6))"
    first = run(code, NUMBA_CACHE_DIR=str(tmp_path))
    second = run(code, NUMBA_CACHE_DIR=str(tmp_path))
    # nothing was there before: what kernels call is compiled with them, for one kind
    # of arguments
    used = CALLED["binary"] | {"uniforms.row_key", "uniforms.uniform"}
    compiled = {name: count for name, count in first.items() if any(count)}
    assert compiled == dict.fromkeys(compiled, [1, 0, 1])
    assert compiled.keys() >= used
    for name in CALLED["binary"]:
        assert second[name] == [1, 1, 0], name
    assert sum(misses for _, _, misses in second.values()) == 0


def double(x):
    return 2.0 * x


@pytest.mark.parametrize("options", [{}, {"fastmath": _jit.STRICT}])
def test_without_a_cache_folder_kernels_are_compiled_anew(monkeypatch, options):
    asked = []
    njit = _jit.numba.njit

    def refuse_to_cache(function, **options):
        asked.append(options)
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(function, **options)

    monkeypatch.setattr(_jit.numba, "njit", refuse_to_cache)
    compiled = _jit.kernel(**options)(double)
    assert compiled(2.0) == 4.0
    # numba compiles helpers of its own by the same name
    with_cache, without = asked[:2]
    assert with_cache.pop("cache") is True
    # nothing else is lost with the cache
    assert with_cache == without
    assert without["nogil"] and without["error_model"] == "numpy"


@needs_compiler
def test_policy():
    bare = _jit.kernel(double)
    strict = _jit.kernel(fastmath=_jit.STRICT)(double)
    assert bare.targetoptions["fastmath"] == _jit.FASTMATH
    assert strict.targetoptions["fastmath"] == _jit.STRICT
    # these two would make a NaN or an infinity undefined
    assert not {"nnan", "ninf", "fast"} & _jit.FASTMATH
    assert bare.targetoptions["nogil"]
    assert np.isnan(bare(np.nan))


@needs_compiler
def test_kernels_keep_nan_under_the_policy():
    @_jit.kernel
    def is_nan(x):
        total = 0.0
        for value in x:
            total += value
        return np.isnan(total), not total <= 1.0

    assert is_nan(np.array([1.0, np.nan])) == (True, True)
    assert is_nan(np.array([np.inf, -np.inf])) == (True, True)
    assert is_nan(np.array([0.5, 0.5])) == (False, False)
