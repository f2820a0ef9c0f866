"""Errors and times on the measured Cascaded Tanks record.

    python examples/benchmarks/cascaded_tanks.py --output cascaded_tanks.json

The reported settings come from a search on the estimation record, the defaults from
simulated systems; the test record is read once for each number that is printed. All
figures are over the seeds 0 to 9, with 50 initialisation samples, as the benchmark
prescribes.
``--parts`` runs some of: search, one_step, wide, time, memory.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
from process_memory import peak_resident
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.neural_network import MLPRegressor

from skbayesnn import SparseBayesMLPRegressor, SparseBayesNARXRegressor
from skbayesnn.datasets import fetch_cascaded_tanks
from skbayesnn.metrics import simulation_rmse, simulation_scorer

LAGS = 5
SEEDS = range(10)
N_BLOCKS = 8
GRID = {
    "activation": ["tanh", "relu"],
    "hidden_layer_sizes": [5, 10, 20],
    "reg_lambda": [4.0, 8.0, 16.0],
}
# Result of the search; `--parts search one_step` uses the result of that run instead.
FOUND = {
    "activation": "relu",
    "hidden_layer_sizes": 10,
    "reg_lambda": 8.0,
    "skip_connection": False,
}
N_RESTARTS = 10
# The threshold was set by hand for speed: a lower one makes pruning ten times slower.
WIDE = {
    "hidden_layer_sizes": (100, 100),
    "skip_connection": False,
    "kappa_weight": 0.05,
}
FAST = {"hidden_layer_sizes": 5, "max_cycles": 20}


def search(tanks):
    """Free-run error on eight held-out stretches of the estimation record."""
    n_samples = len(tanks.target)
    blocks = np.arange(n_samples) * N_BLOCKS // n_samples
    model = SparseBayesNARXRegressor(
        LAGS, LAGS, skip_connection=False, n_restarts=N_RESTARTS, random_state=0
    )
    grid_search = GridSearchCV(
        model,
        GRID,
        scoring=simulation_scorer,
        cv=PredefinedSplit(blocks),
        refit=False,
        n_jobs=2,
    )
    start = time.perf_counter()
    grid_search.fit(tanks.data, tanks.target, sessions=blocks)
    results = grid_search.cv_results_
    best = int(np.argmax(results["mean_test_score"]))
    return {
        "seconds": time.perf_counter() - start,
        "n_candidates": len(results["params"]),
        "best": results["params"][best],
        "held_out_free_run_rmse": -results["mean_test_score"][best],
    }


def evaluate(model, tanks):
    """Test errors and size of one fit."""
    test, n_init = tanks.tests.test, tanks.n_initialization
    start = time.perf_counter()
    model.fit(tanks.data, tanks.target)
    seconds = time.perf_counter() - start
    one_step, one_std = model.predict(test.data, test.target, return_std=True)
    free, free_std = model.predict(
        test.data, y_init=test.target[:n_init], return_std=True
    )
    mask = slice(n_init, None)
    inside = [
        float(np.mean(np.abs(test.target - mean)[mask] < 2 * std[mask]))
        for mean, std in ((one_step, one_std), (free, free_std))
    ]
    scores = {"n_initialization": n_init}
    return {
        "one_step_rmse": simulation_rmse(test.target, one_step, **scores),
        "free_run_rmse": simulation_rmse(test.target, free, **scores),
        "one_step_inside_2_sigma": inside[0],
        "free_run_inside_2_sigma": inside[1],
        "weights": int(model.history_["n_active_weights"][-1]),
        "weights_share": float(
            np.mean(np.concatenate([m.ravel() for m in model.masks_]))
        ),
        "cycles": model.n_cycles_,
        "fit_seconds": seconds,
    }


def over_seeds(tanks, **parameters):
    """The same model from ten seeds: all values, median, minimum and maximum."""
    rows = [
        evaluate(
            SparseBayesNARXRegressor(LAGS, LAGS, random_state=seed, **parameters), tanks
        )
        for seed in SEEDS
    ]
    summary = {"parameters": parameters}
    for name in rows[0]:
        values = np.array([row[name] for row in rows], dtype=float)
        summary[name] = {
            "median": float(np.median(values)),
            "min": float(values.min()),
            "max": float(values.max()),
            "values": values.tolist(),
        }
    return summary


def lag_matrix(record):
    """u(t) .. u(t-5), y(t-1) .. y(t-5), and y(t)."""
    u, y = record.data[:, 0], record.target
    n = len(y)
    columns = [u[LAGS - k : n - k] for k in range(LAGS + 1)]
    columns += [y[LAGS - k : n - k] for k in range(1, LAGS + 1)]
    return np.column_stack(columns), y[LAGS:]


def timed_fits(tanks, n_rounds=5):
    """Times of fits in turn: a drift of the machine's speed affects all alike."""
    Z, target = lag_matrix(tanks)
    Z_test, y_test = lag_matrix(tanks.tests.test)
    skip = tanks.n_initialization - LAGS

    def sklearn_fit(seed, **parameters):
        model = MLPRegressor(random_state=seed, **parameters).fit(Z, target)
        return model.predict(Z_test)[skip:] - y_test[skip:]

    def fast_fit(seed):
        model = SparseBayesMLPRegressor(random_state=seed, reg_lambda=4.0, **FAST).fit(
            Z, target
        )
        return model.predict(Z_test)[skip:] - y_test[skip:]

    contestants = {
        "ours": fast_fit,
        "sklearn adam (100, 100)": lambda seed: sklearn_fit(
            seed, hidden_layer_sizes=(100, 100)
        ),
        "sklearn lbfgs (10,)": lambda seed: sklearn_fit(
            seed, hidden_layer_sizes=(10,), solver="lbfgs"
        ),
    }
    fast_fit(0)  # compiles, or loads from the cache
    seconds = {name: [] for name in contestants}
    rmse = {name: [] for name in contestants}
    for seed in range(n_rounds):
        for name, fit in contestants.items():
            start = time.perf_counter()
            error = fit(seed)
            seconds[name].append(time.perf_counter() - start)
            rmse[name].append(float(np.sqrt(np.mean(error**2))))
    ours = np.array(seconds["ours"])
    return {
        name: {
            "seconds_median": float(np.median(seconds[name])),
            "ratio_of_ours_median": float(np.median(ours / seconds[name])),
            "test_rmse_median": float(np.median(rmse[name])),
            "test_rmse": rmse[name],
        }
        for name in contestants
    }


COLD = """
import time, numpy as np
start = time.perf_counter()
from skbayesnn import SparseBayesNARXRegressor
imported = time.perf_counter()
rng = np.random.default_rng(0)
u = rng.normal(size=(100, 1))
y = np.tanh(np.convolve(u[:, 0], [0, 1, .5])[:100]) + .1 * rng.normal(size=100)
model = SparseBayesNARXRegressor(hidden_layer_sizes=3, max_cycles=200, random_state=0)
model.fit(u, y)
fitted = time.perf_counter()
model.predict(u, y_init=y[:2], return_std=True)
print(imported - start, fitted - imported, time.perf_counter() - fitted)
"""


def first_call(tmp):
    """Seconds of import, first fit and first simulation with an empty cache."""
    figures = {}
    environment = {**os.environ, "NUMBA_CACHE_DIR": tmp}
    for state in ("cold", "warm"):
        output = subprocess.run(
            [sys.executable, "-c", COLD],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        names = ("import_seconds", "first_fit_seconds", "first_simulation_seconds")
        figures[state] = dict(zip(names, map(float, output), strict=True))
    return figures


def simulation_speed(tanks, n_steps=200_000):
    """Microseconds per free-run step of a pruned network."""
    model = SparseBayesNARXRegressor(LAGS, LAGS, random_state=0, **FOUND)
    model.fit(tanks.data, tanks.target)
    repeats = n_steps // len(tanks.data) + 1
    u = np.tile(tanks.data, (repeats, 1))[:n_steps]
    model.predict(u[:100], y_init=tanks.target[:LAGS])
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        model.predict(u, y_init=tanks.target[:LAGS])
        seconds.append(time.perf_counter() - start)
    return {
        "weights": int(model.history_["n_active_weights"][-1]),
        "microseconds_a_step": 1e6 * min(seconds) / n_steps,
    }


def large_record():
    """100,000 samples, 40 lags, some 1,000 weights; run in a separate process."""
    rng = np.random.default_rng(0)
    n_samples = 100_000
    u = rng.normal(size=(n_samples, 1))
    y = np.zeros(n_samples)
    for t in range(1, n_samples):
        y[t] = 0.8 * y[t - 1] + 0.3 * np.tanh(u[t - 1, 0]) + 0.01 * rng.normal()
    model = SparseBayesNARXRegressor(
        40, 40, hidden_layer_sizes=12, max_cycles=2, kappa_variance=0, kappa_weight=0
    )
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(random_state=0).fit(u, y)
    return {
        "weights": int(model.history_["n_active_weights"][-1]),
        "seconds": time.perf_counter() - start,
        "peak_resident_MiB": peak_resident() / 2**20,
    }


def memory():
    command = [sys.executable, __file__, "--parts", "large_record"]
    output = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(output.stdout)


def machine():
    return {
        "python": platform.python_version(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "numpy": np.__version__,
    }


def print_table(results):
    print(f"\n{'':34}{'median':>10}{'min':>10}{'max':>10}")
    for part, summary in results.items():
        if not isinstance(summary, dict) or "one_step_rmse" not in summary:
            continue
        print(f"{part}: {summary['parameters']}")
        for name, values in summary.items():
            if name != "parameters":
                row = "".join(
                    f"{values[key]:10.4f}" for key in ("median", "min", "max")
                )
                print(f"  {name:32}{row}")
    for part in ("search", "time", "first_call", "simulation_speed", "memory"):
        if part in results:
            print(f"{part}: {json.dumps(results[part], indent=2)}")


def main():
    parts = ["search", "one_step", "wide", "time", "memory"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=parts)
    parser.add_argument("--output", help="file for the results as JSON")
    arguments = parser.parse_args()
    if arguments.parts == ["large_record"]:
        print(json.dumps(large_record()))
        return
    tanks = fetch_cascaded_tanks()
    results = {"machine": machine()}
    found = FOUND
    if "search" in arguments.parts:
        results["search"] = search(tanks)
        found = {**results["search"]["best"], "skip_connection": False}
    if "one_step" in arguments.parts:
        results["defaults"] = over_seeds(tanks)
        results["found by search"] = over_seeds(tanks, n_restarts=N_RESTARTS, **found)
    if "wide" in arguments.parts:
        results["wide"] = over_seeds(tanks, **WIDE)
    if "time" in arguments.parts:
        results["time"] = timed_fits(tanks)
        with tempfile.TemporaryDirectory() as tmp:
            results["first_call"] = first_call(tmp)
        results["simulation_speed"] = simulation_speed(tanks)
    if "memory" in arguments.parts:
        results["memory"] = memory()
    print_table(results)
    if arguments.output:
        with open(arguments.output, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
