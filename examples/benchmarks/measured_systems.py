"""Measured dynamic systems with the defaults, beside plain models.

    python examples/benchmarks/measured_systems.py --output measured_systems.json

`DynamicSystemRegressor`, which chooses between networks of lags, of hidden states and
linear models, and `SparseBayesNARXRegressorCV`, which has lags alone, get the training
record and nothing else. Their errors on the test record are those of a free run from
the first measured outputs (30 rows, or what the benchmark prescribes) and of one step
ahead; with them stand the coverage of its bands in free run, what was chosen, and the
seconds of the fit. A second search, with ``focus="prediction"``, is about the errors of
one step.

Beside them: the mean, a linear ARX model and scikit-learn's MLP run freely, both with
the lags of least error in a free run through the last 30 % of the training record, and,
where they are installed, quadratic models of 20 terms by fastcan and SysIdentPy in the
same way. Nothing is chosen on a test record.

The five records of ``systems`` are files in that folder of the data sets (environment
variable SKBAYESNN_DATA); the others are those of the fetch functions. ``--parts`` runs
some of automatic (all kinds), chosen (lags), one step, ensemble sizes and peers,
``--records`` some of the records. Their values replace those in an output file that
exists.
"""

import argparse
import importlib
import json
import os
import platform
import signal
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.io import loadmat
from scipy.stats import norm
from sklearn.neural_network import MLPRegressor

from skbayesnn import DynamicSystemRegressor, SparseBayesNARXRegressorCV
from skbayesnn.datasets import fetch_cascaded_tanks, fetch_silverbox
from skbayesnn.metrics import interval_coverage, simulation_rmse

LEVELS = (0.5, 0.9, 0.95)
LAGS = (1, 2, 3, 5, 8, 12, 20, 30)
# Lags and terms of the quadratic models of fastcan and SysIdentPy.
QUADRATIC_LAGS = (1, 2, 3, 5, 8, 12)
N_TERMS = 20
# Networks of the ensembles that are compared.
SIZES = (1, 3, 6, 12, 24)


class Task(NamedTuple):
    """A training record, and test records by name, with the unit of their errors.

    starts : numbers of measured outputs that the free runs are given; the first is
        also the number of rows that all errors leave out
    scale : of the errors, from units of the output
    """

    train: tuple
    tests: dict
    starts: tuple = (30,)
    scale: float = 1.0


def folder():
    return Path(os.environ.get("SKBAYESNN_DATA", ".")) / "systems"


def columns(file, *names):
    record = loadmat(folder() / file)
    return [record[name].astype(float) for name in names]


def halves(u, y, n_train):
    u, y = u.reshape(len(u), -1), y.ravel()
    return Task((u[:n_train], y[:n_train]), {"test": (u[n_train:], y[n_train:])})


def heat_exchanger():
    return halves(*columns("hex.mat", "ct", "pt"), 3000)


def hair_dryer():
    u, y, u_test, y_test = columns("dry.mat", "ue", "ye", "uv", "yv")
    return Task((u, y.ravel()), {"test": (u_test, y_test.ravel())})


def damper():
    u, y, u_test, y_test = columns("Magneto.mat", "U", "Y", "U_val", "Y_val")
    return Task((u, y.ravel()), {"test": (u_test, y_test.ravel())})


def robot_arm():
    record = np.loadtxt(folder() / "robot_arm.dat")
    return halves(record[:, :1], record[:, 1], 512)


def positioning(every):
    """EMPS; the errors in mm."""
    train, test = (
        tuple(array[::every] for array in columns(file, "vir", "qm"))
        for file in ("DATA_EMPS.mat", "DATA_EMPS_PULSES.mat")
    )
    (u, y), (u_test, y_test) = train, test
    start = max(1, 20 // every)
    tests = {"test": (u_test, y_test.ravel())}
    return Task((u, y.ravel()), tests, (start,), scale=1e3)


def tanks():
    data = fetch_cascaded_tanks()
    test = data.tests.test
    return Task((data.data, data.target), {"test": (test.data, test.target)}, (50, 5))


def silverbox():
    data = fetch_silverbox()
    tests = {name: (test.data, test.target) for name, test in data.tests.items()}
    train = data.data[:1000], data.target[:1000]
    return Task(train, tests, (50,), scale=1e3)


RECORDS = {
    "hair dryer": hair_dryer,
    "damper": damper,
    "robot arm": robot_arm,
    "heat exchanger": heat_exchanger,
    "tanks": tanks,
    "silverbox, 1000 rows": silverbox,
    "EMPS, every 20th row": lambda: positioning(20),
    "EMPS": lambda: positioning(1),
}


def rmse(task, y, predicted, skipped):
    return task.scale * simulation_rmse(y, predicted, n_initialization=skipped)


def test_errors(task, model):
    """Free run with its bands, and one step ahead, on every test record."""
    row = {}
    for name, (u, y) in task.tests.items():
        for start in task.starts:
            mean, std = model.predict(u, y_init=y[:start], return_std=True)
            bands = (mean, std, y)
            row[f"{name}, free run from {start}"] = rmse(task, y, mean, start)
            row[f"{name}, coverage from {start}"] = coverage(*bands, start)
        skipped = max(task.starts[0], model.max_lag_)
        one_step = model.predict(u, y)
        row[f"{name}, one step"] = rmse(task, y, one_step, skipped)
    return row


def coverage(mean, std, y, start):
    """Fractions of the test rows that the central bands of `LEVELS` hold."""
    fractions = {}
    for level in LEVELS:
        half = norm.ppf(0.5 + level / 2) * std
        inside = interval_coverage(y, mean - half, mean + half, n_initialization=start)
        fractions[str(level)] = float(inside)
    return fractions


def run_sizes(task, arguments):
    """Errors of ensembles of so many networks, drawn from 24: 10, 50 and 90 percent."""
    model = DynamicSystemRegressor(
        n_estimators=SIZES[-1], random_state=0, n_jobs=arguments.n_jobs
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*task.train)
    # of the first test record alone
    (u, y), start = next(iter(task.tests.values())), task.starts[0]
    paths = [member.predict(u, y_init=y[:start]) for member in model.estimators_]
    rng, found = np.random.default_rng(0), {}
    for size in SIZES:
        size = min(size, len(paths))
        drawn = [rng.permutation(len(paths))[:size] for _ in range(200)]
        medians = (np.median([paths[k] for k in some], axis=0) for some in drawn)
        errors = [rmse(task, y, path, start) for path in medians]
        found[str(size)] = np.percentile(errors, [10, 50, 90]).tolist()
    print("   ", found, flush=True)
    return found


def run_chosen(task, arguments, focus="simulation"):
    """Models of lags alone."""
    return run_search(SparseBayesNARXRegressorCV, task, arguments, focus)


def run_automatic(task, arguments):
    """Models of all kinds."""
    return run_search(DynamicSystemRegressor, task, arguments)


def run_search(kind, task, arguments, focus="simulation"):
    """Every seed of a search with its defaults; a note where it did not end."""
    rows = []
    for seed in range(arguments.seeds):
        model = kind(focus=focus, random_state=seed, n_jobs=arguments.n_jobs)
        begin = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                within(arguments.time_limit, lambda: model.fit(*task.train))  # noqa: B023
            row = test_errors(task, model)
            row["chosen"] = [member(m) for m in model.estimators_]
            row["held out"] = held_out_errors(model.cv_results_)
        except TimeoutError:
            row = {"unfinished": True}
        row["seconds"] = time.perf_counter() - begin
        rows.append(row)
        print("   ", seed, row, flush=True)
    return rows


def run_one_step(task, arguments):
    """The search for the errors of one step; those of its free runs are left out."""
    rows = run_chosen(task, arguments, focus="prediction")
    return [{k: v for k, v in row.items() if " from " not in k} for row in rows]


def member(model):
    """Lags or hidden states of a network, its strength, and whether it has units."""
    if hasattr(model, "n_states"):
        return [f"{model.n_states} states", model.reg_lambda, True]
    return [model.max_lag_, model.reg_lambda, model.hidden_layer_sizes != ()]


def held_out_errors(results):
    """The least error of each kind of model on all stretches that were held out."""
    errors = {}
    most = results["n_folds"][2:].max()
    for kind in ("linear", "network", "states"):
        rows = (results["model"] == kind) & (results["n_folds"] == most)
        if rows.any():
            errors[kind] = float(results["mean_test_error"][rows].min())
    return errors


def within(seconds, function):
    """Call a function; TimeoutError after so many seconds."""

    def stop(number, frame):
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(int(seconds))
    try:
        return function()
    finally:
        signal.alarm(0)


def regressors(u, y, lag):
    """Rows u(t), ..., u(t - lag), y(t - 1), ..., y(t - lag)."""
    rows = np.arange(lag, len(y))
    past_u = [u[rows - k] for k in range(lag + 1)]
    past_y = [y[rows - k, None] for k in range(1, lag + 1)]
    return np.hstack(past_u + past_y), y[rows]


class Stepper:
    """A one-step model of scaled regressors, run freely.

    ``step`` maps a matrix of regressors to outputs.
    """

    def __init__(self, make, train, lag, seed=0):
        self.lag = lag
        Z, y = regressors(*train, lag)
        self.z_mean, self.z_std = Z.mean(axis=0), Z.std(axis=0) + 1e-12
        self.y_mean, self.y_std = y.mean(), y.std()
        self.range = 10.0 * self.y_std
        scaled = (Z - self.z_mean) / self.z_std, (y - self.y_mean) / self.y_std
        self.model = make(*scaled, seed)

    def step(self, Z):
        return self.model((Z - self.z_mean) / self.z_std) * self.y_std + self.y_mean

    def one_step(self, u, y):
        predicted = self.step(regressors(u, y, self.lag)[0])
        return np.concatenate([y[: self.lag], predicted])

    def free_run(self, u, y_init):
        """The run stops at a bound, so that a divergence is a large error."""
        path = np.full(len(u), y_init[-1])
        path[: len(y_init)] = y_init
        # a start shorter than the lags holds the first values before it
        before = max(0, self.lag - len(y_init))
        u = np.concatenate([np.repeat(u[:1], before, axis=0), u])
        path = np.concatenate([np.full(before, path[0]), path])
        for t in range(before + len(y_init), len(path)):
            past_u = u[t - self.lag : t + 1][::-1].ravel()
            z = np.concatenate([past_u, path[t - self.lag : t][::-1]])
            value = self.step(z[None])[0]
            path[t] = np.clip(value, self.y_mean - self.range, self.y_mean + self.range)
        return path[before:]


def linear(Z, y, seed):
    coef = np.linalg.lstsq(Z, y, rcond=None)[0]
    return lambda Z: Z @ coef


def perceptron(Z, y, seed):
    return MLPRegressor(random_state=seed, max_iter=1000).fit(Z, y).predict


def choose_lag(make, train, lags, seed=0):
    """The lags of least error in a free run through the last 30 % of the record."""
    u, y = train
    split = int(0.7 * len(y))
    errors = {lags[0]: np.inf}
    for lag in lags:
        if split < 4 * (2 * lag + 1):
            continue
        model = Stepper(make, (u[:split], y[:split]), lag, seed)
        path = model.free_run(u[split - lag :], y[split - lag : split])
        errors[lag] = np.mean((path[lag:] - y[split:]) ** 2)
    return min(errors, key=errors.get)


def run_stepper(make, task, seed=0, lags=LAGS):
    begin = time.perf_counter()
    lag = choose_lag(make, task.train, lags, seed)
    model = Stepper(make, task.train, lag, seed)
    row = {"lag": lag, "seconds": time.perf_counter() - begin}
    for name, (u, y) in task.tests.items():
        for start in task.starts:
            path = model.free_run(u, y[:start])
            row[f"{name}, free run from {start}"] = rmse(task, y, path, start)
        skipped = max(task.starts[0], lag)
        row[f"{name}, one step"] = rmse(task, y, model.one_step(u, y), skipped)
    return row


def quadratic(select):
    """A model of regressors and their products, of which ``select`` takes some."""

    def make(Z, y, seed):
        n_regressors = Z.shape[1]
        left, right = np.triu_indices(n_regressors + 1)

        def terms(Z, chosen):
            # a column of ones makes the constant and the linear terms
            with_one = np.column_stack([np.ones(len(Z)), Z])
            return with_one[:, left[chosen]] * with_one[:, right[chosen]]

        # the first one is the constant, which needs no choice
        candidates = terms(Z, np.arange(1, len(left)))
        chosen = 1 + select(candidates, y, min(N_TERMS, len(left) - 1))
        chosen = np.append(0, chosen)
        coef = np.linalg.lstsq(terms(Z, chosen), y, rcond=None)[0]
        return lambda Z: terms(Z, chosen) @ coef

    return make


def by_fastcan(candidates, y, n_terms):
    fastcan = importlib.import_module("fastcan")
    try:
        selector = fastcan.FastCan(n_terms, verbose=0).fit(candidates, y)
    except RuntimeError:
        # it refuses more terms than are independent, as of an input with two levels
        return by_fastcan(candidates, y, n_terms - 1)
    return selector.get_support(indices=True)


def by_sysidentpy(candidates, y, n_terms):
    """Forward regression with the error reduction ratio (FROLS)."""
    package = importlib.import_module("sysidentpy.model_structure_selection")
    model = package.FROLS()
    # the rows before the first lag are not among these
    model.max_lag = 0
    _, order, _ = model.error_reduction_ratio(candidates, y[:, None], n_terms)
    return np.asarray(order, dtype=int)[:n_terms]


OPTIONAL = {
    "fastcan": ("fastcan", quadratic(by_fastcan)),
    "SysIdentPy": ("sysidentpy", quadratic(by_sysidentpy)),
}


def run_peers(task, arguments):
    """One row per peer, MLP with every seed; skipped where a package is missing."""
    mean = {
        f"{name}, free run from {start}": rmse(
            task, y, np.full(len(y), task.train[1].mean()), start
        )
        for name, (u, y) in task.tests.items()
        for start in task.starts
    }
    seeds = range(arguments.seeds)
    results = {
        "mean": mean,
        "ARX": run_stepper(linear, task),
        "MLP": [run_stepper(perceptron, task, seed) for seed in seeds],
    }
    for name, (package, make) in OPTIONAL.items():
        if importlib.util.find_spec(package) is None:
            results[name] = {"skipped": f"{package} is not installed"}
            continue
        results[name] = run_stepper(make, task, lags=QUADRATIC_LAGS)
    for name, rows in results.items():
        print("   ", name, rows, flush=True)
    return results


def spread(rows, column):
    values = [row[column] for row in rows if column in row]
    if not values:
        return "unfinished"
    return f"{np.median(values):.4g} ({min(values):.4g} to {max(values):.4g})"


def show(name, results):
    """A record's rows of the table: medians and ranges over the seeds."""
    ours = ("automatic", "chosen", "one step")
    rows = {part: results.get(part, []) for part in ours} | results.get("peers", {})
    for who, found in rows.items():
        found = found if isinstance(found, list) else [found]
        for column in found[0] if found else ():
            if "free run" in column or "one step" in column or column == "seconds":
                print(f"  {name:20} {who:10} {column:32} {spread(found, column)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="file for the results as JSON")
    names = list(RECORDS)
    parser.add_argument("--records", nargs="+", default=names, choices=names)
    parts = {
        "automatic": run_automatic,
        "chosen": run_chosen,
        "one step": run_one_step,
        "ensemble sizes": run_sizes,
        "peers": run_peers,
    }
    parser.add_argument("--parts", nargs="+", default=list(parts), choices=list(parts))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--n-jobs", type=int, default=2, help="processes")
    parser.add_argument("--time-limit", type=int, default=1800, help="s per fit")
    arguments = parser.parse_args()
    file = arguments.output
    results = json.loads(file.read_text()) if file and file.exists() else {}
    results["machine"] = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cpus": os.cpu_count(),
        "processor": platform.machine(),
        "n_jobs": arguments.n_jobs,
    }
    for name in arguments.records:
        task, of_record = RECORDS[name](), results.setdefault(name, {})
        for part in arguments.parts:
            print(f"{name}, {part}", flush=True)
            of_record[part] = parts[part](task, arguments)
            if file:
                file.write_text(json.dumps(results, indent=1) + "\n")
        show(name, of_record)


if __name__ == "__main__":
    main()
