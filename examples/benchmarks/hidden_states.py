"""State-space networks beside networks on lags, where the output hides the state.

    python examples/benchmarks/hidden_states.py --output hidden_states.json

Ten systems of `make_coupled_drives`, whose speed is measured without its sign: the
defaults of `SparseBayesStateSpaceRegressor`, of `SparseBayesNARXRegressorCV` and of
`DynamicSystemRegressor`, which chooses between both, learn from 400 rows and simulate
the 400 rows of the test record from its first 10 outputs. The error (root mean square,
the noise has 0.03) leaves these out. With it stand the error one step ahead, the
coverage of the bands of 95 % of both, the states that are left, and the seconds of the
fit.

``--measured`` adds an ensemble of 6 of 12 state-space networks on records of
`measured_systems.py` (environment variable SKBAYESNN_DATA), whose file of results
holds the errors of networks on lags; on EMPS, a servo, it is one network of two states
that learns differences. Nothing is chosen on a test record.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from measured_systems import RECORDS

from skbayesnn import (
    DynamicSystemRegressor,
    SparseBayesNARXRegressorCV,
    SparseBayesStateSpaceRegressor,
)
from skbayesnn.datasets import make_coupled_drives
from skbayesnn.metrics import interval_coverage, simulation_rmse

MODELS = {
    "states": SparseBayesStateSpaceRegressor,
    "lags": SparseBayesNARXRegressorCV,
    "automatic": DynamicSystemRegressor,
}
MEASURED = (
    "hair dryer",
    "damper",
    "robot arm",
    "tanks",
    "silverbox, 1000 rows",
    "EMPS",
)
ENSEMBLE = {"n_restarts": 12, "n_estimators": 6}
# A servo: its position is the sum of its speeds, and depends on nothing but them.
OPTIONS = {"EMPS": {"n_states": 2, "output": "difference"}}


def errors(model, u, y, n_init, scale=1.0):
    """Of the free run and of one step ahead, with the coverage of their bands."""
    runs = {"": {"y_init": y[:n_init]}, "one_step_": {"y": y}}
    row = {}
    for name, arguments in runs.items():
        mean, std = model.predict(u, **arguments, return_std=True)
        band = mean - 1.96 * std, mean + 1.96 * std
        first = max(n_init, model.max_lag_) if name else n_init
        error = simulation_rmse(y, mean, n_initialization=first)
        row[f"{name}error"] = scale * error
        row[f"{name}coverage"] = interval_coverage(y, *band, n_initialization=first)
    return row


def fitted(model, u, y):
    begin = time.perf_counter()
    model.fit(u, y)
    return model, {"seconds": time.perf_counter() - begin}


def run_drives(name, n_systems):
    for seed in range(n_systems):
        drives = make_coupled_drives(random_state=seed)
        test = drives.tests.test
        model = MODELS[name](random_state=0)
        model, row = fitted(model, drives.data, drives.target)
        row |= errors(model, test.data, test.target, drives.n_initialization)
        row["states"] = getattr(model, "order_", None)
        print("  drives", name, seed, row, flush=True)
        yield row


def run_measured(name, n_seeds):
    task = RECORDS[name]()
    for seed in range(n_seeds):
        options = OPTIONS.get(name, ENSEMBLE)
        model = SparseBayesStateSpaceRegressor(random_state=seed, **options)
        model, row = fitted(model, *task.train)
        for test, (u, y) in task.tests.items():
            row[test] = errors(model, u, y, task.starts[0], task.scale)
        print("  ", name, seed, row, flush=True)
        yield row


def collect(file, name, rows):
    """The rows of one table, which replace those in the file, one after the other."""
    results = json.loads(file.read_text()) if file and file.exists() else {}
    results[name] = []
    for row in rows:
        results[name].append(row)
        if file:
            file.write_text(json.dumps(results, indent=1) + "\n")
    return results[name]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="file for the results as JSON")
    parser.add_argument("--systems", type=int, default=10)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--measured", nargs="*", default=[], choices=MEASURED)
    parser.add_argument("--seeds", type=int, default=3, help="of measured records")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    file = arguments.output
    for name in arguments.models if arguments.systems else ():
        rows = collect(file, name, run_drives(name, arguments.systems))
        print(f"{name}: median {np.median([row['error'] for row in rows]):.4f}")
    for name in arguments.measured:
        collect(file, name, run_measured(name, arguments.seeds))


if __name__ == "__main__":
    main()
