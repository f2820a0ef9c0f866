"""Likelihoods and times of RBMs on MNIST and Caltech-101 Silhouettes.

    python examples/benchmarks/rbm.py --output rbm.json

Binary data (MNIST above 127), 100 hidden units, average test log-likelihoods in nats
by annealed importance sampling from the base rates. Nothing is chosen; the test data
are read once for each number. examples/paper/rbm_likelihood.py covers contrastive
divergence and larger models, images.py training without settings, rbm_speed.py times.
``--parts`` runs some of: growth, literal, corrective; their values replace those in an
output file that exists.
"""

import argparse
import json
import os
import platform
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import FrankWolfeRBM
from skbayesnn.datasets import fetch_caltech101_silhouettes, fetch_mnist

N_UNITS = 100
SEEDS = range(3)
SELECTION_SEED = 1000
PAPER_LAMBDAS = (1.0, 0.5, 0.1, 0.05, 0.01)
# Settings to choose by, and to report.
QUICK = {"betas": 2000, "n_chains": 100, "n_jobs": 2, "random_state": 0}
THOROUGH = QUICK | {"betas": "paper"}


def load(name):
    """Training, validation and test rows, bool."""
    if name == "caltech":
        data = fetch_caltech101_silhouettes()
        return data.data > 0, data.validation.data > 0, data.test.data > 0
    data = fetch_mnist()
    # 20,000 rows for fitting, 5,000 others for choices
    order = np.random.default_rng(0).permutation(len(data.data))
    pixels = data.data[order[:25000]] > 127
    return pixels[:20000], pixels[20000:], data.test.data > 127


def evaluate(model, X, settings=THOROUGH):
    """Average log-likelihood with its interval, and diagnostics of the estimate."""
    forward = model.log_partition("ais", **settings)
    mean = -float(model.free_energy(X).mean())
    low, high = forward.interval
    return {
        "log_likelihood": mean - forward.log_partition,
        "interval": [mean - high, mean - low],
        "log_weight_std": forward.log_weight_std,
        "effective_sample_size": forward.effective_sample_size,
    }


def timed_fit(model, X):
    start = time.perf_counter()
    model.fit(X)
    return time.perf_counter() - start


def warm_up(X):
    """Compile, or load from the cache, what the timed fits need."""
    FrankWolfeRBM(2, random_state=0).fit(X[:500]).log_partition(betas=3)


def growth(name):
    """Frank-Wolfe growth with its defaults but for the number of units."""
    train, _, test = load(name)
    runs = []
    for seed in SEEDS:
        model = FrankWolfeRBM(N_UNITS, random_state=seed)
        seconds = timed_fit(model, train)
        runs.append(
            {"seed": seed, "seconds": seconds, "n_units": model.n_components_}
            | evaluate(model, test)
        )
    return runs


def literal(name):
    """Algorithm 1 as published, over the paper's grid, and the exact gain."""
    train, _, test = load(name)
    runs = []
    for objective, steps in [("linearized", 0), ("likelihood", 0), ("likelihood", 100)]:
        grid = PAPER_LAMBDAS if objective == "linearized" else (0.1,)
        for unit_penalty in grid:
            model = FrankWolfeRBM(
                N_UNITS,
                objective=objective,
                unit_penalty=unit_penalty,
                n_corrective_steps=steps,
                n_bias_steps=10,
                random_state=0,
            )
            seconds = timed_fit(model, train)
            runs.append(
                {
                    "objective": objective,
                    "n_corrective_steps": steps,
                    "unit_penalty": unit_penalty,
                    "seconds": seconds,
                    "n_units": model.n_components_,
                    "largest_norm": float(np.nanmax(model.history_["norm"])),
                }
                | evaluate(model, test)
            )
    return runs


def corrective(name):
    """Validation likelihood and time of growth by its number of corrective steps."""
    train, validation, _ = load(name)
    runs = []
    for steps in (0, 10, 30, 100, 300):
        model = FrankWolfeRBM(
            N_UNITS,
            n_corrective_steps=steps,
            n_bias_steps=1 if steps else 10,
            random_state=SELECTION_SEED,
        )
        seconds = timed_fit(model, train)
        runs.append(
            {
                "n_corrective_steps": steps,
                "seconds": seconds,
                "validation": validate(model, validation),
            }
        )
    return runs


def validate(model, X):
    return evaluate(model, X, QUICK)["log_likelihood"]


def spread(values):
    values = np.asarray(values)
    return (
        f"{np.median(values):8.2f} ({values.min():.2f} to {values.max():.2f})"
        if len(values)
        else "-"
    )


def print_tables(results):
    for key, part in results.items():
        if key.startswith("growth"):
            likelihoods = spread([run["log_likelihood"] for run in part])
            seconds = spread([run["seconds"] for run in part])
            print(f"{key}: {likelihoods} nats in {seconds} s")
        elif key.startswith("literal"):
            print(f"{key}:")
            for run in part:
                print(
                    f"  {run['objective']:10} corrective {run['n_corrective_steps']:2} "
                    f"lambda {run['unit_penalty']:5} "
                    f"{run['log_likelihood']:10.2f} nats, "
                    f"{run['n_units']} units, largest norm {run['largest_norm']:.1f}, "
                    f"{run['seconds']:.1f} s"
                )
        elif key.startswith("corrective"):
            print(f"{key}, validation:")
            for run in part:
                print(
                    f"  {run['n_corrective_steps']:4} steps {run['validation']:10.2f} "
                    f"nats in {run['seconds']:.1f} s"
                )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parts = ["growth", "literal", "corrective"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument(
        "--data", nargs="+", choices=["mnist", "caltech"], default=["mnist", "caltech"]
    )
    parser.add_argument("--output", help="JSON file for all the values")
    arguments = parser.parse_args()

    # the number of units shows whether a growth ended early
    warnings.simplefilter("ignore", ConvergenceWarning)
    warm_up(load("caltech")[0])
    results = {
        "machine": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "cpus": os.cpu_count(),
            "processor": platform.machine(),
        }
    }
    for name in arguments.data:
        for part, function in [
            ("growth", growth),
            ("literal", literal),
            ("corrective", corrective),
        ]:
            if part in arguments.parts:
                results[f"{part}_{name}"] = function(name)
                print(f"{part} {name} done", flush=True)
    print_tables(results)
    if arguments.output:
        if os.path.exists(arguments.output):
            with open(arguments.output, encoding="utf-8") as file:
                results = json.load(file) | results
        with open(arguments.output, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=2)


if __name__ == "__main__":
    main()
