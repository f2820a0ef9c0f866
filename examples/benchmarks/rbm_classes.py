"""Errors of logistic regression on the features of an RBM: MNIST and Caltech-101.

    python examples/benchmarks/rbm_classes.py --output rbm_classes.json

``--data`` and ``--features`` select some of the rows, which replace those in an output
file that exists.

Binary images (MNIST above 127), 1,000 hidden units, which never see a label.
``StandardScaler`` and multi-class logistic regression on ``transform`` of the training
images (50,000 of MNIST, 4,100 silhouettes); its penalty is the best of a few on the
validation images. Beside them, the same on binary pixels. The settings of the RBMs
were chosen on the validation images of seed 0, too: the test images are read once for
each number. Two RBMs are compared: with a centred gradient, which the likelihood
prefers, and without. Units that learn without centring are seldom on, and a linear
classifier separates what they do better.
"""

import argparse
import json
import os
import platform
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn.datasets import fetch_caltech101_silhouettes, fetch_mnist

SEEDS = range(3)
FEATURES = ("pixels", "not centred", "centred")
N_UNITS = 1000
SETTINGS = {
    "mnist": {
        "centred": {"max_iter": 10},
        "not centred": {"max_iter": 4, "centered": False, "learning_rate": 0.05},
    },
    "caltech": {
        "centred": {"max_iter": 160},
        "not centred": {"max_iter": 160, "centered": False, "learning_rate": 0.05},
    },
}
# LogisticRegression's C
STRENGTHS = {"mnist": (0.01, 0.03, 0.1, 0.3), "caltech": (0.01, 0.03, 0.1)}


def load(name):
    """Training, validation and test images, each with labels."""
    if name == "caltech":
        data = fetch_caltech101_silhouettes()
        return [(d.data > 0, d.target) for d in (data, data.validation, data.test)]
    data = fetch_mnist()
    order = np.random.default_rng(0).permutation(len(data.data))
    pixels, y = data.data[order] > 127, data.target[order]
    test = data.test.data > 127, data.test.target
    return [(pixels[:50000], y[:50000]), (pixels[50000:], y[50000:]), test]


def classify(features, splits, strengths):
    """Errors of the classifier that is best on the validation images."""
    parts = [(features(X), y) for X, y in splits]
    best = {"validation_error": np.inf}
    for strength in strengths:
        classifier = make_pipeline(
            StandardScaler(), LogisticRegression(C=strength, max_iter=100)
        )
        with warnings.catch_warnings():
            # the validation images also judge a fit that has not converged
            warnings.simplefilter("ignore", ConvergenceWarning)
            classifier.fit(*parts[0])
        validation_error = 1.0 - classifier.score(*parts[1])
        if validation_error < best["validation_error"]:
            best = {"C": strength, "validation_error": validation_error}
            chosen = classifier
    errors = [1.0 - chosen.score(*part) for part in (parts[0], parts[2])]
    return best | {"training_error": errors[0], "test_error": errors[1]}


def run(name, kind, splits):
    """Rows of one kind of features, one for each seed."""
    strengths = STRENGTHS[name]
    if kind == "pixels":
        pixels = FunctionTransformer(lambda X: X.astype(np.float32)).fit_transform
        rows = [classify(pixels, splits, strengths)]
        show(name, kind, rows[-1])
        return rows
    rows, settings = [], SETTINGS[name][kind]
    for seed in SEEDS:
        rbm = ContrastiveDivergenceRBM(N_UNITS, random_state=seed, **settings)
        start = time.process_time()
        rbm.fit(splits[0][0])
        row = {"seed": seed, "fit_seconds": time.process_time() - start} | settings
        row |= classify(rbm.transform, splits, strengths)
        row["mean_feature"] = float(rbm.transform(splits[1][0]).mean())
        rows.append(row)
        show(name, kind, row)
    return rows


def show(name, kind, row):
    print(name, kind, row, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="file for the results as JSON")
    parser.add_argument("--data", nargs="+", default=SETTINGS, choices=SETTINGS)
    parser.add_argument("--features", nargs="+", default=FEATURES, choices=FEATURES)
    arguments = parser.parse_args()
    file = arguments.output
    results = json.loads(file.read_text()) if file and file.exists() else {}
    results["machine"] = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cpus": os.cpu_count(),
        "processor": platform.machine(),
    }
    for name in arguments.data:
        splits = load(name)
        for kind in arguments.features:
            results.setdefault(name, {})[kind] = run(name, kind, splits)
            if file:
                file.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
