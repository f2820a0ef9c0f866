"""Errors of models trained for the free run, and the time of a fit.

    python examples/benchmarks/free_run.py --output free_run.json

Parts (``--parts``): single, ensemble, one_step, silverbox, growth, floor. Nothing is
chosen on test data: lags by the evidence of fits to the training record, the strength
of the prior by cross-validation within it. The output file is written after each part.
"""

import argparse
import json
import os
import platform
import time
import warnings

# before NumPy: two processes with two BLAS threads each would compete for the cores
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from skbayesnn import SparseBayesNARXRegressor, SparseBayesNARXRegressorCV
from skbayesnn.datasets import fetch_cascaded_tanks, fetch_silverbox
from skbayesnn.metrics import crps_gaussian, interval_coverage, simulation_rmse

SEEDS = range(10)
LAGS = (5, 10, 20, 30)
N_INITS = (50, 5)
ENSEMBLE_SIZE = 16
# The strength that cross-validation within the training record keeps in every run of
# the ensemble part.
REG_LAMBDA = 20.0


def score(model, test, n_init):
    """Free-run error, coverage of the 95 % band and CRPS beyond the initialisation."""
    mean, std = model.predict(test.data, y_init=test.target[:n_init], return_std=True)
    beyond = {"n_initialization": n_init}
    low, high = mean - 1.96 * std, mean + 1.96 * std
    return {
        "rmse": simulation_rmse(test.target, mean, **beyond),
        "coverage_95": interval_coverage(test.target, low, high, **beyond),
        "crps": crps_gaussian(test.target, mean, std, **beyond),
    }


def one_step_rmse(model, test, n_init=50):
    predicted = model.predict(test.data, test.target)
    return simulation_rmse(test.target, predicted, n_initialization=n_init)


def spread(values):
    values = np.array(values, dtype=float)
    return {
        "median": float(np.median(values)),
        "min": float(values.min()),
        "max": float(values.max()),
        "values": values.tolist(),
    }


def columns(rows):
    return {name: spread([row[name] for row in rows]) for name in rows[0]}


def scores(model, tests):
    row = {}
    for n_init in N_INITS:
        for name, value in score(model, tests.test, n_init).items():
            row[f"{name} (n_init {n_init})"] = value
    return row


def best_by_evidence(tanks, seed, **settings):
    """The network whose lags have the largest evidence per observation."""
    fits = [
        SparseBayesNARXRegressor(lag, lag, random_state=seed, **settings).fit(
            tanks.data, tanks.target
        )
        for lag in LAGS
    ]
    n_rows = len(tanks.target)
    return min(
        fits, key=lambda m: m.history_["objective_pruned"][-1] / (n_rows - m.max_lag_)
    )


def single(tanks):
    """Single networks, with lags chosen by evidence."""
    rows = []
    for seed in SEEDS:
        start = time.perf_counter()
        model = best_by_evidence(
            tanks,
            seed,
            focus="simulation",
            hidden_layer_sizes=5,
            reg_lambda=REG_LAMBDA,
        )
        seconds = time.perf_counter() - start
        rows.append(
            {
                **scores(model, tanks.tests),
                "lag": model.max_lag_,
                "weights": int(model.history_["n_active_weights"][-1]),
                "seconds": seconds,
            }
        )
        print(f"single {seed}: {rows[-1]}", flush=True)
    return columns(rows)


def ensemble(tanks):
    """Ensembles with all settings chosen by the estimator, in two processes."""
    rows, chosen = [], []
    for seed in SEEDS:
        start = time.perf_counter()
        model = SparseBayesNARXRegressorCV(random_state=seed, n_jobs=2)
        model.fit(tanks.data, tanks.target)
        seconds = time.perf_counter() - start
        rows.append(
            {
                **scores(model, tanks.tests),
                **members_alone(model, tanks.tests.test),
                "one step rmse": one_step_rmse(model, tanks.tests.test),
                "seconds": seconds,
            }
        )
        chosen.append([[m.reg_lambda, m.max_lag_] for m in model.estimators_])
        print(f"ensemble {seed}: {rows[-1]} {chosen[-1]}", flush=True)
    return {**columns(rows), "chosen (reg_lambda, lag)": chosen}


def members_alone(model, test):
    """Free-run errors of all networks; the first is the best in cross-validation."""
    errors = [score(member, test, 50)["rmse"] for member in model.estimators_]
    middle = float(np.median(errors))
    return {"first network rmse": errors[0], "median network rmse": middle}


def one_step(tanks):
    """One step ahead: defaults with five lags, single networks and ensembles."""
    result = {}
    for n_estimators in (1, ENSEMBLE_SIZE):
        errors = []
        for seed in SEEDS:
            model = SparseBayesNARXRegressor(
                5, 5, n_estimators=n_estimators, n_jobs=2, random_state=seed
            )
            model.fit(tanks.data, tanks.target)
            errors.append(one_step_rmse(model, tanks.tests.test))
        result[f"{n_estimators} networks"] = spread(errors)
        print(f"one step, {n_estimators} networks: {np.round(errors, 4)}", flush=True)
    return result


def silverbox_model(lag, seed):
    return SparseBayesNARXRegressor(
        lag,
        lag,
        focus="simulation",
        hidden_layer_sizes=5,
        reg_lambda=1.0,
        random_state=seed,
    )


def choose_silverbox_lag(box, n_rows):
    """Lag with the largest evidence; reg_lambda=1, because the residuals are white."""
    errors = {}
    for lag in (2, 3, 5, 10):
        model = silverbox_model(lag, 0).fit(box.data[:n_rows], box.target[:n_rows])
        errors[lag] = model.history_["objective_pruned"][-1] / (n_rows - lag)
    return min(errors, key=errors.get)


def silverbox():
    """Errors in mV on the three test records, from short and long training records."""
    box = fetch_silverbox()
    result = {}
    for n_rows, seeds in ((1000, SEEDS), (10_000, SEEDS), (len(box.target), range(3))):
        lag = choose_silverbox_lag(box, min(n_rows, 10_000))
        rows = []
        for seed in seeds:
            start = time.perf_counter()
            model = silverbox_model(lag, seed)
            model.fit(box.data[:n_rows], box.target[:n_rows])
            row = {"seconds": time.perf_counter() - start}
            for name, test in box.tests.items():
                row[f"{name} mV"] = 1e3 * score(model, test, 50)["rmse"]
            rows.append(row)
            print(f"silverbox {n_rows} {seed}: {row}", flush=True)
        result[f"{n_rows} rows"] = {"lag": lag, **columns(rows)}
    return result


def growth():
    """Seconds of a fit with ten cycles per stage over the length of the record."""
    box = fetch_silverbox()
    data = np.tile(box.data, (2, 1))
    target = np.tile(box.target, 2)
    result = {}
    for n_rows in (1000, 3000, 10_000, 30_000, 100_000):
        model = silverbox_model(5, 0).set_params(max_cycles=10)
        start = time.perf_counter()
        model.fit(data[:n_rows], target[:n_rows])
        result[n_rows] = time.perf_counter() - start
        print(f"growth {n_rows}: {result[n_rows]:.2f} s", flush=True)
    return result


def best_of(function, n_repeats=30):
    function()
    seconds = []
    for _ in range(n_repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def floor():
    """Time of one cycle at 1,000 samples and 252 weights, and its lower bound.

    The lower bound counts multiplications and additions only, at the speed of a large
    matrix product on one thread in the same run.
    """
    from skbayesnn.sparse_bayes.learning import cycle as sparse_bayes

    n_rows, n_lags, n_hidden = 1000, 10, 10
    problem, state = _stationary_state(n_rows, n_lags, n_hidden)
    data, network = state.data, state.network
    n_weights = int(network.keep.sum())
    A = np.random.default_rng(0).normal(size=(1000, 1000))
    with threadpool_limits(1):
        peak = 2e9 / best_of(lambda: A @ A, 10)
        path = best_of(lambda: data.path(network))
        recursion = best_of(lambda: list(data.sensitivities(network, True)))
        linearization = best_of(
            lambda: [JT @ JT.T for _, JT in data.blocks(network, True)]
        )
        rng = np.random.default_rng(0)
        cycle = best_of(lambda: sparse_bayes.step(problem.settings, state, rng), 10)
        _, info = sparse_bayes.step(problem.settings, state, rng)
    flops = 2.0 * n_rows * n_weights * n_lags
    gram = n_rows * n_weights**2
    solve = n_weights**3 / 3
    work = info.n_iter * (flops + gram + solve) + 2 * n_weights**3
    return {
        "weights": n_weights,
        "peak_gigaflops": peak / 1e9,
        "recursion_floor_us": 1e6 * flops / peak,
        "path_us": 1e6 * path,
        "recursion_us": 1e6 * recursion,
        "recursion_over_floor": recursion * peak / flops,
        "with_gram_us": 1e6 * linearization,
        "with_gram_over_floor": linearization * peak / (flops + gram),
        "cycle_us": 1e6 * cycle,
        "cycle_iterations": info.n_iter,
        "cycle_over_recursion_floor": cycle * peak / (info.n_iter * flops),
        "cycle_over_floor_of_all_its_work": cycle * peak / work,
    }


def _stationary_state(n_rows, n_lags, n_hidden):
    """State of a fit in its last stage, before it prunes anything."""
    from skbayesnn.sparse_bayes.learning import restarts

    tanks = fetch_cascaded_tanks()
    caught = {}
    run = restarts.run_start

    def catch(problem, seed):
        finished = run(problem, seed)
        caught["run"] = problem, finished.state
        return finished

    restarts.run_start = catch
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            SparseBayesNARXRegressor(
                n_lags,
                n_lags,
                focus="simulation",
                hidden_layer_sizes=n_hidden,
                kappa_weight=0.0,
                kappa_variance=0.0,
                max_cycles=10,
                random_state=0,
            ).fit(tanks.data[: n_rows + n_lags], tanks.target[: n_rows + n_lags])
    finally:
        restarts.run_start = run
    return caught["run"]


PARTS = {
    "floor": lambda: floor(),
    "single": lambda: single(fetch_cascaded_tanks()),
    "ensemble": lambda: ensemble(fetch_cascaded_tanks()),
    "one_step": lambda: one_step(fetch_cascaded_tanks()),
    "silverbox": silverbox,
    "growth": growth,
}


def machine():
    return {
        "python": platform.python_version(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "numpy": np.__version__,
    }


def summary(result, indent="  "):
    """Median (least to largest) of every column."""
    for name, value in result.items():
        if isinstance(value, dict) and "median" in value:
            line = f"{value['median']:.4g} ({value['min']:.4g} to {value['max']:.4g})"
            print(f"{indent}{name:32}{line}")
        elif isinstance(value, dict):
            print(f"{indent}{name}")
            summary(value, indent + "  ")
        else:
            print(f"{indent}{name:32}{value}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--output", help="file for the results as JSON")
    arguments = parser.parse_args()
    results = {}
    if arguments.output and os.path.exists(arguments.output):
        with open(arguments.output) as file:
            results = json.load(file)
    results["machine"] = machine()
    for part in arguments.parts:
        print(part)
        results[part] = PARTS[part]()
        summary(results[part])
        if arguments.output:
            with open(arguments.output, "w") as file:
                json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
