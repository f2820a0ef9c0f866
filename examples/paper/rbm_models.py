"""The models of figures 1 and 2 of the paper on infinite RBMs, and their data.

Each fit has a checkpoint file in a folder of its own: a killed run is resumed
from its last unit or epoch, and one that is finished is read back.
"""

import argparse
import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.frozen import FrozenEstimator

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.datasets import fetch_caltech101_silhouettes, fetch_mnist

SIZES = (20, 50, 100, 200, 300, 400, 500, 600, 700)
GROWN = "FW"
RANDOM = "CD (random init.)"
TUNED = "CD (FW init.)"
# a run from random weights that gets all the time of the five
LONG = "CD (random init.), one long run"
# the same with the validation images to learn from as well, once all is chosen
REFIT = "CD (random init.), refitted with the validation images"
METHODS = (GROWN, RANDOM, TUNED, LONG, REFIT)
# what the figures show
SHOWN = (GROWN, RANDOM, TUNED)
RANDOM_SEEDS = (0, 1, 2, 3, 4)


TITLES = {"mnist": "MNIST", "caltech": "Caltech-101 Silhouettes"}
# Averages (nats) of RBMs that others published: the best that we know of, by units.
PUBLISHED = {
    "mnist": {"centred PCD, 500 units": -84.9},
    "caltech": {"enhanced gradient, 500 units": -114.8, "2,000 units": -109.0},
}
# All units of a start by one Frank-Wolfe step, each searched on rows of its own: in
# seconds, and without the coarse structure that the first units of a growth keep.
START = {
    "max_search_iter": 3,
    "n_search_rows": 200,
    "n_corrective_steps": 0,
    "fine_tune_norm": 0.5,
}
# Chosen on the validation images (doc/benchmarks/paper_rbm.md). "long" is what a
# run with all the time differs in: smaller steps, more of them.
SETTINGS = {
    "mnist": {
        "contrastive": {"learning_rate": 0.2, "max_iter": 15},
        "long": {"learning_rate": 0.1, "max_iter": 75},
        "epochs_tuned": 70,
        "refit": 50000 / 60000,
        "start": START,
        "growth": {},
        "max_gap": 3.5,
    },
    "caltech": {
        "contrastive": {"learning_rate": 0.1, "weight_decay": 0.002, "max_iter": 80},
        "long": {"learning_rate": 0.03, "weight_decay": 0.002, "max_iter": 400},
        "epochs_tuned": 370,
        "refit": 4100 / 6364,
        "start": START,
        "growth": {},
        "max_gap": 40.0,
    },
}


class Split(NamedTuple):
    """Images, bool, and their classes."""

    X: np.ndarray
    y: np.ndarray


class Data(NamedTuple):
    """As the paper splits them."""

    train: Split
    validation: Split
    test: Split


@functools.cache
def load(name):
    """MNIST above 127, or Caltech-101 Silhouettes, as `Data`."""
    if name == "caltech":
        bunch = fetch_caltech101_silhouettes()
        parts = bunch, bunch.validation, bunch.test
        return Data(*(Split(part.data > 0, part.target) for part in parts))
    bunch = fetch_mnist()
    # the paper draws its 10,000 validation images at random
    order = np.random.default_rng(0).permutation(len(bunch.data))
    train, validation = np.sort(order[:50000]), np.sort(order[50000:])
    X = bunch.data > 127
    return Data(
        Split(X[train], bunch.target[train]),
        Split(X[validation], bunch.target[validation]),
        Split(bunch.test.data > 127, bunch.test.target),
    )


def fit(name, settings, method, size, seed, folder):
    """The fitted model of one of `METHODS`, and the seconds that it took in all."""
    before, init = 0.0, None
    if method == GROWN and size > SIZES[0]:
        # the growth continues from the previous size
        smaller = SIZES[SIZES.index(size) - 1]
        init, before = fit(name, settings, method, smaller, seed, folder)
    model = make(settings, method, size, seed, init)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    words = "".join(c if c.isalnum() else " " for c in method).split()
    file = folder / "-".join([name, *words, str(size), str(seed)])
    model.set_params(checkpoint=file.with_suffix(".npz"))
    X, X_val = load(name).train.X, load(name).validation.X
    if method == REFIT:
        X = np.concatenate([X, X_val])
    # only the growth's early stopping looks at the gap, which costs time
    model.fit(X, X_val=X_val if method == GROWN else None)
    return model, before + total_seconds(model)


def make(settings, method, size, seed, init=None):
    """The estimator, not yet fitted."""
    options = settings["contrastive" if method == RANDOM else "long"]
    cd = ContrastiveDivergenceRBM(size, random_state=seed, **options)
    if method == REFIT:
        # as many updates
        cd.set_params(max_iter=round(settings["refit"] * cd.max_iter))
    if method in (RANDOM, LONG, REFIT):
        return cd
    if method == TUNED:
        cd.set_params(max_iter=settings["epochs_tuned"])
        options = settings["start"] | {"units_per_step": size, "fine_tune": cd}
    else:
        options = settings["growth"] | {"init": init and FrozenEstimator(init)}
    return FrankWolfeRBM(size, random_state=seed, **options)


def total_seconds(model):
    """Time of a fit, fine-tuning included; it is kept in the checkpoint."""
    seconds = float(model.history_["seconds"][-1])
    tuned = getattr(model, "fine_tune_", None)
    return seconds + (0.0 if tuned is None else total_seconds(tuned))


def part_name(name, method, size):
    """Under which the results of a model are kept."""
    return f"{name} | {method} | {size}"


def best_row(likelihoods, name, method, size):
    """Of the runs of figure 1, that with the best validation likelihood; or None."""
    rows = likelihoods.rows(part_name(name, method, size))
    return max(rows, key=lambda row: row["validation"], default=None)


def make_parser(description):
    """The options that both figures have."""
    parser = argparse.ArgumentParser(description=description)
    names = tuple(SETTINGS)
    parser.add_argument("--data", nargs="+", choices=names, default=names)
    parser.add_argument("--sizes", nargs="+", type=int, choices=SIZES, default=SIZES)
    parser.add_argument("--models", default="rbm_models", help="folder of the fits")
    parser.add_argument("--output", help="file for the results as JSON")
    parser.add_argument("--figures", help="folder for the figure")
    parser.add_argument("--n-jobs", type=int, default=2, help="processes")
    return parser
