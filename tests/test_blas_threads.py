"""Results are the same, bit for bit, whatever the number of BLAS threads."""

import numpy as np
import pytest
from grids import without_by_default
from scipy.signal import lfilter
from threadpoolctl import threadpool_limits

from skbayesnn import (
    ContrastiveDivergenceRBM,
    SparseBayesMLPRegressor,
    SparseBayesNARXRegressor,
)

RNG = np.random.default_rng(0)
# as large as a BLAS that has two threads uses both
X = RNG.normal(size=(1200, 12))
Y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=1200)
# a record, with a memory
Y = lfilter([1.0], [1.0, -0.5], Y)
DENSE = dict(kappa_variance=0.0, kappa_weight=0.0, max_cycles=3, random_state=0)


def of_attributes(model):
    """All numbers that a fit leaves, by name."""
    for name, value in vars(model).items():
        if not name.endswith("_") or name.startswith("_"):
            continue
        parts = value.items() if isinstance(value, dict) else enumerate([value])
        if isinstance(value, list):
            parts = enumerate(value)
        for key, part in parts:
            if np.asarray(part).dtype.kind in "fiub" and key != "seconds":
                yield f"{name}[{key}]", np.asarray(part)


def perceptron():
    model = SparseBayesMLPRegressor(20, **DENSE).fit(X, Y)
    yield from of_attributes(model)
    mean, std = model.predict(X, return_std=True)
    yield from {
        "mean": mean,
        "std": std,
        "draws": model.sample_y(X[:300], 20),
        "weights": model.to_mlp_regressor().coefs_[0],
    }.items()


def lagged(**options):
    model = SparseBayesNARXRegressor(3, 3, hidden_layer_sizes=8, **DENSE, **options)
    U, y = X[:, :4], Y
    model.fit(U, y)
    yield from of_attributes(model)
    for name, arguments in {
        "one step": dict(y=y),
        "ahead": dict(y=y, horizon=4),
        "free run": dict(y=y, horizon=None),
        "short start": dict(y_init=y[:1]),
    }.items():
        few = {**arguments, "X": U[:300]}
        if "y" in few:
            few["y"] = y[:300]
        mean, std = model.predict(**few, return_std=True)
        yield f"{name}: mean", mean
        yield f"{name}: std", std
        yield f"{name}: draws", model.sample_y(**few, n_samples=20)
    yield "score", np.array(model.score(U, y))


def machine():
    V = X > 0.5
    model = ContrastiveDivergenceRBM(30, max_iter=2, random_state=0).fit(V)
    yield from of_attributes(model)
    yield "features", model.transform(V)
    yield "scores", model.score_samples(V)
    yield "log partition", np.array(model.log_partition("both", random_state=0)[0])
    yield "samples", model.sample(5, n_steps=20, random_state=0)


RESULTS = {
    "MLP": perceptron,
    "NARX": lagged,
    "NARX, free run": lambda: lagged(focus="simulation"),
    "NARX, ensemble": lambda: lagged(n_estimators=2, selection="validation"),
    "RBM": machine,
}
LONG = ("NARX, free run", "NARX, ensemble")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.DivergenceWarning")
@pytest.mark.parametrize("name", without_by_default(LONG, RESULTS))
def test_one_and_two_threads(name):
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"):
            found.append(dict(RESULTS[name]()))
    one, two = found
    assert one.keys() == two.keys()
    different = [key for key in one if not np.array_equal(one[key], two[key], True)]
    assert not different
