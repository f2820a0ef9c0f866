"""Static regression: errors, bands and inputs that are kept, beside scikit-learn.

    python examples/benchmarks/static_regression.py --output static_regression.json

Data of scikit-learn, and simulated ones with irrelevant inputs, several directions,
products, a step and waves; half of the rows, or of the simulated ones 1,000 more, are
for the test. All methods see standardised inputs and targets. `SparseBayesMLPRegressor`
has its defaults; the perceptron of scikit-learn has as many units, and a penalty that
cross-validation on the training rows chooses; the Gaussian process has a length for
each input, and a noise, by the marginal likelihood.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import (
    load_diabetes,
    make_friedman1,
    make_friedman2,
    make_friedman3,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neural_network import MLPRegressor

from skbayesnn import SparseBayesMLPRegressor

SEEDS = range(5)
N_TEST = 1000
# standard deviations of the half of a 95 % band
WIDE = 1.96


def diabetes(seed):
    """Measured: 442 patients, ten inputs."""
    return train_test_split(
        *load_diabetes(return_X_y=True), test_size=0.5, random_state=seed
    )


def simulated(draw, n_rows):
    """Of so many rows, and a test set."""

    def split(seed):
        X, y = draw(n_rows + N_TEST, seed)
        return X[:n_rows], X[n_rows:], y[:n_rows], y[n_rows:]

    return split


def irrelevant(n_rows, seed):
    """Three of 33 inputs matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 33))
    y = np.tanh(2.0 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]
    return X, y + 0.3 * rng.normal(size=n_rows)


def directions(n_rows, seed):
    """Three directions of 15 inputs."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(n_rows, 15)), rng.normal(size=(15, 3)) / 4.0
    return X, np.tanh(X @ W) @ [1.0, 2.0, 3.0] + 0.2 * rng.normal(size=n_rows)


def products(n_rows, seed):
    """A product, a cosine and a linear part of eight inputs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 8))
    y = X[:, 0] * X[:, 1] + np.cos(X[:, 2:5].sum(axis=1)) + 0.3 * X[:, 5:].sum(axis=1)
    return X, y + 0.1 * rng.normal(size=n_rows)


def step(n_rows, seed):
    """A step and a square, one of three inputs without an effect."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n_rows, 3))
    return X, (X[:, 0] > 0.0) + X[:, 1] ** 2 + 0.1 * rng.normal(size=n_rows)


def waves(n_rows, seed):
    """Two inputs; along one of them the target rises and falls five times."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n_rows, 2))
    y = np.sin(8.0 * X[:, 0]) * np.cos(3.0 * X[:, 1])
    return X, y + 0.1 * rng.normal(size=n_rows)


def faint(n_rows, seed):
    """A wave times an input, with a noise larger than both."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n_rows, 2))
    y = np.cos(2.0 * np.pi * X[:, 0]) * X[:, 1]
    return X, y + 0.5 * rng.normal(size=n_rows)


def friedman(make, noise):
    return lambda n_rows, seed: make(n_rows, noise=noise, random_state=seed)


DATA = {
    "diabetes, 221 rows": diabetes,
    "Friedman 1, 150 rows": simulated(friedman(make_friedman1, 1.0), 150),
    "Friedman 1, 500 rows": simulated(friedman(make_friedman1, 1.0), 500),
    "Friedman 2, 300 rows": simulated(friedman(make_friedman2, 100.0), 300),
    "Friedman 3, 300 rows": simulated(friedman(make_friedman3, 0.1), 300),
    "30 irrelevant inputs, 300 rows": simulated(irrelevant, 300),
    "three directions, 250 rows": simulated(directions, 250),
    "products, 150 rows": simulated(products, 150),
    "a step, 200 rows": simulated(step, 200),
    "waves, 250 rows": simulated(waves, 250),
    "faint, 250 rows": simulated(faint, 250),
}


def ours(seed, **options):
    def fit(X, y, X_test):
        model = SparseBayesMLPRegressor(random_state=seed, **options).fit(X, y)
        kept = int(np.count_nonzero(model.feature_relevance_))
        return *model.predict(X_test, return_std=True), kept

    return fit


def perceptron(seed):
    def fit(X, y, X_test):
        model = MLPRegressor(
            hidden_layer_sizes=20, solver="lbfgs", max_iter=2000, random_state=seed
        )
        grid = {"alpha": [1e-3, 1e-1, 1.0, 10.0]}
        model = GridSearchCV(model, grid, cv=5).fit(X, y)
        return model.predict(X_test), None, X.shape[1]

    return fit


def gaussian_process(seed):
    def fit(X, y, X_test):
        kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel(0.1)
        model = GaussianProcessRegressor(kernel, random_state=seed).fit(X, y)
        return *model.predict(X_test, return_std=True), X.shape[1]

    return fit


METHODS = {
    "SparseBayesMLPRegressor": ours,
    "MLPRegressor": perceptron,
    "GaussianProcessRegressor": gaussian_process,
}


def measure(fit, X, X_test, y, y_test):
    """Error, coverage and seconds; everything in standard deviations of the target."""
    center, spread = X.mean(axis=0), X.std(axis=0)
    X, X_test = (X - center) / spread, (X_test - center) / spread
    y, y_test = (y - y.mean()) / y.std(), (y_test - y.mean()) / y.std()
    start = time.process_time()
    mean, std, n_kept = fit(X, y, X_test)
    error = y_test - mean
    return {
        "rmse": float(np.sqrt(np.mean(error**2))),
        "coverage": (
            None if std is None else float(np.mean(np.abs(error) < WIDE * std))
        ),
        "n_inputs": n_kept,
        "seconds": time.process_time() - start,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, help="JSON file of the results")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    results = {}
    for title, split in DATA.items():
        for name, method in METHODS.items():
            rows = [measure(method(seed), *split(seed)) for seed in SEEDS]
            results.setdefault(title, {})[name] = rows
            rmse = [row["rmse"] for row in rows]
            print(
                f"{title}, {name}: {np.median(rmse):.3f} ({min(rmse):.3f} to "
                f"{max(rmse):.3f}), {np.mean([row['seconds'] for row in rows]):.1f} s",
                flush=True,
            )
    if arguments.output:
        arguments.output.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
