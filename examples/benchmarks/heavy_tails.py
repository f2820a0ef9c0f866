"""Gaussian errors against those of Student's t distribution, on measured records.

    python examples/benchmarks/heavy_tails.py --folder FOLDER --output heavy_tails.json

First the Cascaded Tanks, whose residuals are heavy-tailed (the upper tank overflows):
errors one step ahead for several temperatures ``reg_lambda``. Then records of which 2 %
of the training rows are wrong, in one piece: a sensor that sticks ("stuck"), one that
reads a value far off ("off"), or single rows with gross errors ("single"); the errors
on the clean test record. Beside the tanks: the hair dryer (dry.mat) and the
magneto-rheological damper (Magneto.mat), if FOLDER is given. Five lags, defaults.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from scipy.io import loadmat
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.datasets import fetch_cascaded_tanks

SEEDS = range(5)
NOISES = ("gaussian", "student_t")
STRENGTHS = (1.0, 2.0, 4.0, 8.0, 16.0)
FRACTION = 0.02
NOTE = "RMSE on the clean test record: median, smallest and largest of five seeds"
TITLES = {"tanks": "tanks (V)", "dry.mat": "hair dryer", "Magneto.mat": "damper"}
# Names of the variables, and how many outputs of the test record are given.
FILES = {
    "dry.mat": ("ue", "ye", "uv", "yv", 30),
    "Magneto.mat": ("U", "Y", "U_val", "Y_val", 30),
}


def load(folder):
    """Training inputs and outputs, the same of the test, rows given; by record."""
    tanks = fetch_cascaded_tanks()
    test, n_given = tanks.tests.test, tanks.n_initialization
    records = {"tanks": (tanks.data, tanks.target, test.data, test.target, n_given)}
    for name, (*variables, n_given) in FILES.items() if folder else ():
        content = loadmat(folder / name)
        u, y, u_test, y_test = (np.ravel(content[v]).astype(float) for v in variables)
        records[name] = u[:, None], y, u_test[:, None], y_test, n_given
    return records


def with_wrong_rows(y, kind, seed):
    rng = np.random.default_rng(seed)
    y, n_rows = y.copy(), len(y)
    n_wrong, earliest = max(1, round(FRACTION * n_rows)), n_rows // 10
    if kind == "single":
        rows = rng.choice(np.arange(earliest, n_rows), n_wrong, replace=False)
        size = rng.choice([-1, 1], n_wrong) * rng.uniform(2.0, 5.0, n_wrong)
        y[rows] += size * y.std()
    elif kind != "none":
        first = rng.integers(earliest, n_rows - n_wrong - 1)
        value = y[first - 1] if kind == "stuck" else y.min() - y.std()
        y[first : first + n_wrong] = value
    return y


def errors(record, kind="none", **options):
    """RMSE on the test record (median, smallest, largest), and a line about it."""
    u, y, u_test, y_test, n_given = record
    found = []
    for seed in SEEDS:
        target = with_wrong_rows(y, kind, seed)
        model = SparseBayesNARXRegressor(5, 5, random_state=seed, **options)
        model.fit(u, target)
        free = options.get("focus") == "simulation"
        arguments = dict(y_init=y_test[:n_given]) if free else dict(y=y_test)
        error = (model.predict(u_test, **arguments) - y_test)[n_given:]
        rmse = np.sqrt(np.mean(error**2))
        found.append((rmse, getattr(model, "degrees_of_freedom_", np.inf)))
    rmse, freedom = np.transpose(found)
    numbers = [float(f"{n:.4g}") for n in (np.median(rmse), rmse.min(), rmse.max())]
    text = "{:g} ({:g} to {:g})".format(*numbers)
    return numbers, f"{text}, {np.median(freedom):.1f} degrees of freedom"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--output", type=Path, help="JSON file of the results")
    arguments = parser.parse_args()
    records = load(arguments.folder)
    warnings.simplefilter("ignore", ConvergenceWarning)
    strengths, wrong_rows = {}, {}
    for strength in STRENGTHS:
        for noise in NOISES:
            found, text = errors(records["tanks"], noise=noise, reg_lambda=strength)
            print(f"tanks, reg_lambda {strength:g}, {noise}: {text}", flush=True)
            strengths.setdefault(f"{strength:g}", {})[noise] = found
    for focus, units in (("prediction", 10), ("simulation", 5)):
        for name, record in records.items():
            for kind in ("none", "stuck", "off", "single"):
                for noise in NOISES:
                    found, text = errors(
                        record,
                        kind,
                        noise=noise,
                        focus=focus,
                        hidden_layer_sizes=units,
                    )
                    print(f"{name}, {focus}, {kind}, {noise}: {text}", flush=True)
                    by_focus = wrong_rows.setdefault(TITLES.get(name, name), {})
                    by_noise = by_focus.setdefault(focus, {}).setdefault(noise, {})
                    by_noise[kind] = found
    if arguments.output:
        results = {"note": NOTE, "strengths": strengths, "wrong rows": wrong_rows}
        arguments.output.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
