"""What the RBMs reach on MNIST and Caltech-101 Silhouettes.

    python examples/benchmarks/rbm.py --output rbm.json

Binary data (MNIST above 127), 100 hidden units, average test log-likelihoods in nats
by annealed importance sampling from the base rates. Learning rates are chosen on
validation data, with seeds that are not reported; the test data are read once for each
number. Frank-Wolfe with fine-tuning and persistent contrastive divergence from random
weights get the same wall time. ``--parts`` runs some of: epoch, growth, literal,
corrective, tuned; their values replace those in an output file that exists.
"""

import argparse
import json
import os
import platform
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import BernoulliRBM

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.datasets import fetch_caltech101_silhouettes, fetch_mnist

N_UNITS = 100
SEEDS = range(3)
SELECTION_SEEDS = (1000, 1001)
PAPER_LAMBDAS = (1.0, 0.5, 0.1, 0.05, 0.01)
LEARNING_RATES = (0.1, 0.2, 0.3)
# Epochs of the fine-tuning; the other fit gets epochs for the same time.
EPOCHS = {"mnist": 55, "caltech": 150}
# To choose by, and to report.
QUICK = {"betas": 2000, "n_chains": 100, "n_jobs": 2, "random_state": 0}
THOROUGH = QUICK | {"betas": "paper"}


def load(name):
    """Training, validation and test rows, bool."""
    if name == "caltech":
        data = fetch_caltech101_silhouettes()
        return data.data > 0, data.validation.data > 0, data.test.data > 0
    data = fetch_mnist()
    # 20,000 rows to learn from, 5,000 others to choose by
    order = np.random.default_rng(0).permutation(len(data.data))
    pixels = data.data[order[:25000]] > 127
    return pixels[:20000], pixels[20000:], data.test.data > 127


def evaluate(model, X, settings=THOROUGH):
    """Average log-likelihood with its interval, and how far it can be believed."""
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
    tune = ContrastiveDivergenceRBM(max_iter=1)
    FrankWolfeRBM(2, fine_tune=tune, random_state=0).fit(X[:500]).log_partition(betas=3)
    ContrastiveDivergenceRBM(4, persistent=False, max_iter=1).fit(X[:500])


def epoch():
    """An epoch of CD-1 beside one of scikit-learn's, in turn."""
    X = (np.random.default_rng(0).random((10000, 784)) < 0.13).astype(np.float32)
    seconds = {"scikit-learn": [], "centered": [], "plain": []}
    for _ in range(9):
        sk = BernoulliRBM(500, batch_size=100, n_iter=1, learning_rate=0.1)
        seconds["scikit-learn"].append(timed_fit(sk, X))
        for name in ("centered", "plain"):
            cd = ContrastiveDivergenceRBM(
                500, persistent=False, max_iter=1, centered=name == "centered"
            )
            seconds[name].append(timed_fit(cd, X))
    theirs = np.array(seconds["scikit-learn"])
    return {
        "seconds": {name: float(np.median(values)) for name, values in seconds.items()},
        "ratio": {
            name: float(np.median(np.divide(seconds[name], theirs)))
            for name in ("centered", "plain")
        },
        "runs": seconds,
    }


def growth(name):
    """Frank-Wolfe with its defaults."""
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
    """Algorithm 1 as written, over the paper's grid, beside the exact gain."""
    train, _, test = load(name)
    runs = []
    for objective, steps in [("linearized", 0), ("likelihood", 0), ("likelihood", 100)]:
        grid = PAPER_LAMBDAS if objective == "linearized" else (0.1,)
        for reg_lambda in grid:
            model = FrankWolfeRBM(
                N_UNITS,
                objective=objective,
                reg_lambda=reg_lambda,
                n_corrective_steps=steps,
                n_bias_steps=10,
                random_state=0,
            )
            seconds = timed_fit(model, train)
            runs.append(
                {
                    "objective": objective,
                    "n_corrective_steps": steps,
                    "reg_lambda": reg_lambda,
                    "seconds": seconds,
                    "n_units": model.n_components_,
                    "largest_norm": float(np.nanmax(model.path_["norm"])),
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
            random_state=SELECTION_SEEDS[0],
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


def grown_and_tuned(name, learning_rate, seed):
    tune = ContrastiveDivergenceRBM(
        learning_rate=learning_rate, max_iter=EPOCHS[name], random_state=seed
    )
    # a growth for its directions: what it reaches by itself does not matter
    return FrankWolfeRBM(
        N_UNITS,
        n_corrective_steps=3,
        n_gibbs_steps=2,
        learning_rate=0.2,
        fine_tune=tune,
        fine_tune_norm=0.5,
        random_state=seed,
    )


def from_random(train, learning_rate, seconds, seed):
    """Persistent contrastive divergence that takes so many seconds."""
    trial = ContrastiveDivergenceRBM(
        N_UNITS, learning_rate=learning_rate, max_iter=3, random_state=seed
    )
    trial.fit(train)
    one_epoch = float(np.diff(trial.history_["seconds"]).min())
    return ContrastiveDivergenceRBM(
        N_UNITS,
        learning_rate=learning_rate,
        max_iter=max(1, round(seconds / one_epoch)),
        random_state=seed,
    )


def tuned(name):
    """Frank-Wolfe then fine-tuning, and random weights, in the same wall time."""
    train, validation, test = load(name)
    chosen = choose_rates(name, train, validation)
    runs = []
    for seed in SEEDS:
        grown = grown_and_tuned(name, chosen["frank_wolfe"], seed)
        seconds = timed_fit(grown, train)
        random = from_random(train, chosen["random"], seconds, seed)
        random_seconds = timed_fit(random, train)
        runs.append(
            {
                "seed": seed,
                "frank_wolfe": {"seconds": seconds} | evaluate(grown, test),
                "random": {"seconds": random_seconds, "epochs": random.max_iter}
                | evaluate(random, test),
            }
        )
    return {"learning_rates": chosen, "runs": runs}


def choose_rates(name, train, validation):
    """The learning rate of each that is best on the validation rows, over two seeds."""
    scores = {"frank_wolfe": [], "random": []}
    for rate in LEARNING_RATES:
        values = {kind: [] for kind in scores}
        for seed in SELECTION_SEEDS:
            grown = grown_and_tuned(name, rate, seed)
            seconds = timed_fit(grown, train)
            values["frank_wolfe"].append(validate(grown, validation))
            random = from_random(train, rate, seconds, seed).fit(train)
            values["random"].append(validate(random, validation))
        for kind, of_seeds in values.items():
            scores[kind].append(of_seeds)
    best = {
        kind: LEARNING_RATES[int(np.argmax(np.mean(of_rates, axis=1)))]
        for kind, of_rates in scores.items()
    }
    return best | {"validation": scores, "rates": LEARNING_RATES}


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
    if "epoch" in results:
        part = results["epoch"]
        print("CD-1 epoch, 10,000 x 784, 500 units, batch 100, float32:")
        for name, value in part["seconds"].items():
            ratio = part["ratio"].get(name, 1.0)
            print(f"  {name:12} {value:.3f} s, ratio {ratio:.2f}")
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
                    f"lambda {run['reg_lambda']:5} {run['log_likelihood']:10.2f} nats, "
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
        elif key.startswith("tuned"):
            chosen = part["learning_rates"]
            print(
                f"{key}: learning rates {chosen['frank_wolfe']} and {chosen['random']}"
            )
            for kind in ("frank_wolfe", "random"):
                likelihoods = [run[kind]["log_likelihood"] for run in part["runs"]]
                seconds = [run[kind]["seconds"] for run in part["runs"]]
                print(f"  {kind:12} {spread(likelihoods)} nats in {spread(seconds)} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parts = ["epoch", "growth", "literal", "corrective", "tuned"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument(
        "--data", nargs="+", choices=["mnist", "caltech"], default=["mnist", "caltech"]
    )
    parser.add_argument("--output", help="JSON file for all the values")
    arguments = parser.parse_args()

    # a growth that ends early says so in its number of units
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
    if "epoch" in arguments.parts:
        results["epoch"] = epoch()
    for name in arguments.data:
        for part, function in [
            ("growth", growth),
            ("literal", literal),
            ("corrective", corrective),
            ("tuned", tuned),
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
