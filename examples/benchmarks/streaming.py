"""Time of a simulation step inside a controller.

    python examples/benchmarks/streaming.py --output streaming.json

Microseconds of ``StreamingPredictor.step`` with ``update``, called from Python, and
microseconds per row of ``run``, on models of the measured Cascaded Tanks record:
minimum and median over repeats of thousands of steps each, without compilation.
"""

import argparse
import json
import platform
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.datasets import fetch_cascaded_tanks

MODELS = {
    "prediction, 5 lags": {"input_lags": 5, "output_lags": 5},
    "simulation, 20 lags": {
        "input_lags": 20,
        "output_lags": 20,
        "hidden_layer_sizes": 5,
        "focus": "simulation",
        "reg_lambda": 20.0,
    },
    "ensemble of 4, 5 lags": {"input_lags": 5, "output_lags": 5, "n_estimators": 4},
}
N_REPEATS = 30
N_STEPS = 5000


def microseconds(function, n_calls):
    """Minimum and median time of a call, over repeats."""
    function()
    times = []
    for _ in range(N_REPEATS):
        start = time.perf_counter()
        function()
        times.append(1e6 * (time.perf_counter() - start) / n_calls)
    return {"min": min(times), "median": float(np.median(times))}


def measure(model, tanks):
    """Times of three ways to process a record, and the size of the model."""
    n_before = model.max_lag_
    record = np.resize(tanks.tests.test.data, (N_STEPS, 1))
    inputs = record[:, 0].tolist()
    level = float(tanks.target.mean())
    stream = model.stream(tanks.data[:n_before], tanks.target[:n_before])

    def steps():
        step = stream.step
        for u in inputs:
            step(u)

    def steps_ahead():
        step, update = stream.step, stream.update
        for u in inputs:
            step(u)
            update(level)

    networks = getattr(model, "estimators_", [model])
    weights = [int(one.history_["n_active_weights"][-1]) for one in networks]
    return {
        "weights": weights,
        "step": microseconds(steps, N_STEPS),
        "step and update": microseconds(steps_ahead, N_STEPS),
        "run": microseconds(lambda: stream.run(record), N_STEPS),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="file for the results as JSON")
    arguments = parser.parse_args()
    tanks = fetch_cascaded_tanks()
    results = {"python": platform.python_version(), "processor": platform.machine()}
    for name, parameters in MODELS.items():
        model = SparseBayesNARXRegressor(random_state=0, **parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(tanks.data, tanks.target)
        results[name] = measure(model, tanks)
        print(f"{name}: {results[name]['weights']} weights")
        for what in ("step", "step and update", "run"):
            times = results[name][what]
            print(f"  {what:16} {times['min']:6.3f} us (median {times['median']:.3f})")
    if arguments.output:
        with open(arguments.output, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
