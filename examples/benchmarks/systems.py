"""Free runs of automatically chosen models on several kinds of simulated systems.

    python examples/benchmarks/systems.py --output systems.json

Each system provides a training record of a few hundred rows and a test record of 1,000.
The result is the fit index in free run (100 is perfect, 0 is the mean), started from 30
measured outputs; measurement noise limits it. No setting is specific to a system: all
but the lags of the linear model are defaults.
"""

import argparse
import json
import time
import warnings

import numpy as np
from scipy.signal import butter, lfilter
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import SparseBayesNARXRegressor, SparseBayesNARXRegressorCV
from skbayesnn.metrics import fit_index

SEEDS = range(3)
N_TEST = 1000
N_INIT = 30


def steps(rng, n_rows, hold):
    """Levels between -1 and 1, each constant for some rows."""
    return np.repeat(rng.uniform(-1, 1, n_rows // hold + 1), hold)[:n_rows]


def linear(rng, n_rows):
    """Second order, white input, much output noise."""
    u = rng.normal(size=n_rows)
    y = lfilter([0, 1, 0.5], [1, -1.5, 0.7], u)
    return u, y + 0.3 * y.std() * rng.normal(size=n_rows)


def narendra(rng, n_rows):
    """The product system of Narendra and Parthasarathy (1990), output noise."""
    u, y = steps(rng, n_rows, 5), np.zeros(n_rows)
    for t in range(2, n_rows):
        product = y[t - 1] * y[t - 2] * (y[t - 1] + 2.5)
        y[t] = product / (1 + y[t - 1] ** 2 + y[t - 2] ** 2) + u[t - 1]
    return u, y + 0.05 * rng.normal(size=n_rows)


def wiener_hammerstein(rng, n_rows):
    """A saturation between two filters."""
    u = steps(rng, n_rows, 4)
    x = lfilter(*butter(2, 0.2), u)
    y = lfilter(*butter(2, 0.3), np.tanh(2 * x) + 0.2 * x)
    return u, y + 0.01 * rng.normal(size=n_rows)


def hysteresis(rng, n_rows):
    """A mass on a Bouc-Wen spring."""
    u = 20 * lfilter(*butter(2, 0.1), rng.normal(size=n_rows))
    y, dt = np.zeros(n_rows), 0.02
    position = speed = force = 0.0
    for t in range(n_rows):
        for _ in range(10):
            grip = 0.5 * np.sign(speed * force) + 0.5
            change = speed * (1 - grip * abs(force))
            speed += dt * (u[t] - 0.4 * speed - 2 * position - 3 * force)
            position += dt * speed
            force += dt * change
        y[t] = position
    return u, y + 0.005 * y.std() * rng.normal(size=n_rows)


def coupled(rng, n_rows):
    """Two inputs, two outputs, one of the gains a product."""
    u = np.column_stack([steps(rng, n_rows, 6), steps(rng, n_rows, 9)])
    y = np.zeros((n_rows, 2))
    for t in range(1, n_rows):
        a, b = y[t - 1]
        y[t, 0] = 0.8 * a + 0.2 * np.tanh(2 * u[t - 1, 0]) - 0.1 * b
        y[t, 1] = 0.7 * b + 0.3 * u[t - 1, 1] * a + 0.1 * u[t - 1, 0]
    return u, y + 0.01 * rng.normal(size=(n_rows, 2))


SYSTEMS = {
    "linear, 120 rows": (linear, 120),
    "linear, 400 rows": (linear, 400),
    "Narendra, 500 rows": (narendra, 500),
    "Wiener-Hammerstein, 800 rows": (wiener_hammerstein, 800),
    "hysteresis, 1000 rows": (hysteresis, 1000),
    "two by two, 500 rows": (coupled, 500),
}


def models(seed, n_jobs):
    simulation = {"focus": "simulation", "random_state": seed}
    return {
        "chosen": SparseBayesNARXRegressorCV(random_state=seed, n_jobs=n_jobs),
        "simulation, 5 lags": SparseBayesNARXRegressor(5, 5, **simulation),
        "prediction, 5 lags": SparseBayesNARXRegressor(5, 5, random_state=seed),
        "linear, 5 lags": SparseBayesNARXRegressor(
            5, 5, hidden_layer_sizes=(), **simulation
        ),
    }


def free_run_fit(model, train, test):
    """Fit index in percent, and the seconds of the fit."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(*train)
    seconds = time.perf_counter() - start
    u, y = test
    predicted = model.predict(u, y_init=y[:N_INIT])
    return float(np.mean(fit_index(y, predicted, n_initialization=N_INIT))), seconds


def compare(system, n_rows, n_jobs):
    """Fit indices and seconds of every model, over the seeds."""
    results = {}
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        records = [system(rng, n) for n in (n_rows, N_TEST)]
        records = [(u.reshape(len(u), -1), y) for u, y in records]
        for name, model in models(seed, n_jobs).items():
            fit, seconds = free_run_fit(model, *records)
            row = results.setdefault(name, {"fit": [], "seconds": []})
            row["fit"].append(round(fit, 2))
            row["seconds"].append(round(seconds, 2))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="file for the results as JSON")
    parser.add_argument("--n-jobs", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    results = {}
    for title, (system, n_rows) in SYSTEMS.items():
        results[title] = compare(system, n_rows, arguments.n_jobs)
        print(title)
        for name, row in results[title].items():
            print(
                f"  {name:20} fit {np.median(row['fit']):6.1f} % "
                f"({min(row['fit']):.1f} to {max(row['fit']):.1f}), "
                f"{np.median(row['seconds']):.1f} s",
                flush=True,
            )
    if arguments.output:
        with open(arguments.output, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
