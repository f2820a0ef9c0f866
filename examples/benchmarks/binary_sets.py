"""RBMs without settings on binary sets of the density-estimation literature.

    python examples/benchmarks/binary_sets.py --output binary_sets.json

Each set has training, validation and test rows. The defaults get training and
validation rows, five seeds. Beside them: a grid of contrastive divergence (numbers of
units, epochs and Gibbs steps; the cell with the best validation likelihood is reported,
one seed), scikit-learn's BernoulliRBM with as many units as the grid chose, and
independent features. Likelihoods are means over rows in nats, by annealing in both
directions, and not above what the training rows allow. The test rows are
read once for each number that is reported; nothing is chosen on them here.

``--parts`` runs some of defaults, trainer (ContrastiveDivergenceRBM with its
defaults), grid, sklearn; ``--sets`` some of the sets, ``--seeds`` another number of
seeds than five. Their values replace those in an output file that exists; with
``--resume``, only the seeds that it does not have are run.
"""

import argparse
import json
import os
import platform
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import BernoulliRBM

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.datasets import fetch_binary_benchmark
from skbayesnn.exceptions import MixingWarning

SETS = ("nltcs", "plants", "dna", "mushrooms", "pumsb_star", "nips", "voting")
ESTIMATORS = {"defaults": FrankWolfeRBM, "trainer": ContrastiveDivergenceRBM}
N_UNITS, N_EPOCHS, N_GIBBS_STEPS = (10, 30, 100, 300), (50, 500), (1, 10)
N_JOBS = 1
# Of each estimate: seeds are to differ by their models, not by chance of the scores.
N_CHAINS = 500
# Units or features up to which their states are enumerated.
N_ENUMERATED = 20


def likelihoods(model, X, train):
    """Mean log-likelihoods of rows by both directions of annealing, and by all.

    All are these directions, the hidden states of training rows, and the sum over the
    states in these rows: a lower bound of the partition function. Up to 20 units or
    features are enumerated, as `score` does.
    """
    energy = -float(model.free_energy(X).mean())
    with warnings.catch_warnings():
        # each direction is reported
        warnings.simplefilter("ignore", MixingWarning)
        estimate = model.log_partition("both", n_chains=N_CHAINS, random_state=0)
    bound = logsumexp(-model.free_energy(np.unique(train, axis=0)))
    log_partition, forward, reverse = (
        max(one.log_partition, bound)
        for one in (estimate, estimate.forward, estimate.reverse)
    )
    forward, reverse = energy - forward, energy - reverse
    if min(model.components_.shape) <= N_ENUMERATED:
        log_partition = model.log_partition("exact").log_partition
    return {
        "log_likelihood": energy - log_partition,
        "forward": forward,
        "reverse": reverse,
    }


def independent(train, test):
    """Mean log-likelihood of independent features with smoothed rates."""
    rates = (train.sum(axis=0) + 0.5) / (len(train) + 1.0)
    return float((test * np.log(rates) + (1 - test) * np.log1p(-rates)).sum(1).mean())


def fit(model, *data, **more):
    """Fit, and return its processor time and whether it warned of its chains."""
    # what else runs on the machine does not change it
    begin = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("always", MixingWarning)
        model.fit(*data, **more)
    warned = any(issubclass(w.category, MixingWarning) for w in caught)
    return {"seconds": time.process_time() - begin, "warned": warned}


def decided(model):
    """What an automatic training has chosen."""
    return {
        "n_components": model.n_components_,
        "n_updates": model.n_updates_,
        "n_gibbs_steps": model.n_gibbs_steps_,
        "n_replicas": model.n_replicas_,
        "weight_decay": model.weight_decay_,
    }


def run_defaults(make, data, n_seeds, rows):
    """Each seed of an estimator with its defaults: the rows so far, after each.

    ``rows`` holds those of earlier seeds.
    """
    train, validation, test = data
    for seed in range(len(rows), n_seeds):
        model = make(random_state=seed, n_jobs=N_JOBS)
        row = fit(model, train, X_val=validation) | decided(model)
        if make is FrankWolfeRBM:
            # sizes from random weights, a tree, and at the end searched units
            sizes = model.history_["n_components"]
            compared = np.isfinite(sizes)
            row["race"] = sizes[compared].tolist()
            values = model.history_["validation_log_likelihood"]
            row["race_log_likelihood"] = values[compared].tolist()
            row["race_updates"] = model.history_["n_updates"][compared].tolist()
            row["gain_of_searched"] = float(model.history_["gain"][compared][-1])
        rows = [*rows, row | likelihoods(model, test, train)]
        print("   ", {k: v for k, v in rows[-1].items() if k != "warned"}, flush=True)
        yield rows


def run_grid(data):
    """The best cell of the grid by its validation likelihood."""
    train, validation, test = data
    best, cells = None, []
    for n_units, n_epochs, n_steps in product(N_UNITS, N_EPOCHS, N_GIBBS_STEPS):
        model = ContrastiveDivergenceRBM(
            n_units,
            max_iter=n_epochs,
            n_gibbs_steps=n_steps,
            random_state=0,
            n_jobs=N_JOBS,
        )
        cell = {"n_components": n_units, "epochs": n_epochs, "n_gibbs_steps": n_steps}
        try:
            cell |= fit(model, train)
        except ValueError as error:
            # a step size that diverges is part of what a grid finds
            cells.append(cell | {"error": str(error)})
            print("   ", cells[-1], flush=True)
            continue
        cell["validation"] = likelihoods(model, validation, train)["log_likelihood"]
        cells.append(cell)
        print("   ", cell, flush=True)
        if best is None or cell["validation"] > best[0]["validation"]:
            best = cell, model
    cell, model = best
    return {"best": cell | likelihoods(model, test, train), "cells": cells}


def run_sklearn(data, n_units):
    """scikit-learn's RBM with its defaults but for the number of units."""
    train, _, test = data
    peer = BernoulliRBM(n_units, random_state=0)
    row = fit(peer, train) | {"n_components": n_units}
    model = ContrastiveDivergenceRBM.from_bernoulli_rbm(peer, train)
    return row | likelihoods(model, test, train)


def run(part, data, results, n_seeds, resumes):
    """One part for one set: what is known of it, once or after each seed."""
    if part in ESTIMATORS:
        rows = results.get(part, []) if resumes else []
        yield from run_defaults(ESTIMATORS[part], data, n_seeds, rows)
    elif part == "grid":
        yield run_grid(data)
    else:
        n_units = results.get("grid", {"best": {"n_components": 100}})["best"]
        yield run_sklearn(data, n_units["n_components"])


def show(name, results):
    """Print a set's rows of the table."""
    print(f"{name}: independent features {results['independent']:.2f}")
    for part in ("defaults", "trainer"):
        rows = results.get(part, [])
        if rows:
            values = [row["log_likelihood"] for row in rows]
            apart = max(abs(row["forward"] - row["reverse"]) for row in rows)
            sizes = [row["n_components"] for row in rows]
            seconds = np.median([row["seconds"] for row in rows])
            print(
                f"  {part:9} {np.median(values):8.2f} ({min(values):.2f} to "
                f"{max(values):.2f}), {min(sizes)} to {max(sizes)} units, "
                f"{seconds:.0f} s, directions up to {apart:.2f} apart, "
                f"{sum(row['warned'] for row in rows)} warnings"
            )
    for part, row in [
        ("grid", results.get("grid", {}).get("best")),
        ("sklearn", results.get("sklearn")),
    ]:
        if row is not None:
            print(f"  {part:9} {row['log_likelihood']:8.2f}, {row['seconds']:.0f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="file for the results as JSON")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parts = ("defaults", "trainer", "grid", "sklearn")
    parser.add_argument("--parts", nargs="+", default=parts, choices=parts)
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds")
    parser.add_argument("--resume", action="store_true", help="keep earlier seeds")
    arguments = parser.parse_args()
    file = arguments.output
    results = json.loads(file.read_text()) if file and file.exists() else {}
    results["machine"] = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cpus": os.cpu_count(),
        "processor": platform.machine(),
    }
    for name in arguments.sets:
        data = fetch_binary_benchmark(name, return_splits=True)
        of_set = results.setdefault(name, {})
        of_set["independent"] = independent(data[0], data[2])
        for part in arguments.parts:
            print(f"{name}, {part}", flush=True)
            seeds = arguments.seeds, arguments.resume
            for found in run(part, data, of_set, *seeds):
                # what is finished outlives what stops the others
                of_set[part] = found
                if file:
                    file.write_text(json.dumps(results, indent=1) + "\n")
        show(name, of_set)


if __name__ == "__main__":
    main()
