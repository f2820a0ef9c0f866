"""A network of positions against one of their differences, on a measured drive.

    python examples/benchmarks/differences.py --folder FOLDER --output differences.json

EMPS (nonlinearbenchmark.org) is a motor that moves a carriage: its force is the input,
the position of the carriage the output. It integrates, it was measured in closed loop,
and the forces of the test record leave the range of the training record. FOLDER holds
DATA_EMPS.mat (training) and DATA_EMPS_PULSES.mat (test). Of the 24,841 rows (1 ms) all,
or every fifth, tenth or twentieth are taken. The error is that of the free run through
the test record in mm, from 20 ms of measured positions. u(t) is left out, because in
closed loop it tells y(t); ``--current-input`` takes it in. ``--output`` is a file to
which the defaults are written: median, smallest and largest error.
"""

import argparse
import itertools
import json
import warnings
from pathlib import Path

import numpy as np
from scipy.io import loadmat
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.exceptions import DivergenceWarning

SEEDS = range(5)
EVERY = (1, 5, 10, 20)
LAGS = (2, 3, 5)
MILLISECONDS_GIVEN = 20
NOTE = (
    "free run through the test record of EMPS, RMSE in mm: median, smallest and "
    "largest of five seeds; null has diverged"
)


def load(folder, name, every):
    """Forces (n, 1) in V and positions (n,) in mm."""
    record = loadmat(folder / name)
    return record["vir"].ravel()[::every, None], 1e3 * record["qm"].ravel()[::every]


def free_run_error(model, u, y, every):
    """RMSE beyond the given rows, infinite after a divergence."""
    n_given = max(model.max_lag_, -(-MILLISECONDS_GIVEN // every))
    error = (model.predict(u, y_init=y[:n_given]) - y)[n_given:]
    return np.sqrt(np.mean(error**2)) if np.isfinite(error).all() else np.inf


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--every", type=int, nargs="+", default=EVERY)
    parser.add_argument("--lags", type=int, nargs="+", default=LAGS)
    parser.add_argument("--units", type=int, default=5)
    parser.add_argument("--focus", default="prediction")
    parser.add_argument("--current-input", action="store_true")
    parser.add_argument("--output", type=Path, help="JSON file of the results")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", DivergenceWarning)
    found = {"note": NOTE}
    for every in arguments.every:
        train = load(arguments.folder, "DATA_EMPS.mat", every)
        test = load(arguments.folder, "DATA_EMPS_PULSES.mat", every)
        for output, units, lags in itertools.product(
            ("level", "difference"), ((), (arguments.units,)), arguments.lags
        ):
            errors = []
            for seed in SEEDS if units else [0]:
                model = SparseBayesNARXRegressor(
                    lags,
                    lags,
                    include_current_input=arguments.current_input,
                    output=output,
                    focus=arguments.focus,
                    hidden_layer_sizes=units,
                    random_state=seed,
                ).fit(*train)
                errors.append(free_run_error(model, *test, every))
            print(
                f"every {every}, {output}, {units}, {lags} lags: "
                f"{np.median(errors):.1f} mm ({min(errors):.1f} to {max(errors):.1f})",
                flush=True,
            )
            group = f"{arguments.units} units" if units else "linear"
            group += ", with u(t)" if arguments.current_input else ", without u(t)"
            numbers = np.median(errors), min(errors), max(errors)
            found.setdefault(group, {})[f"every {every}, {output}, {lags} lags"] = [
                round(float(n), 1) if np.isfinite(n) else None for n in numbers
            ]
    if arguments.output:
        arguments.output.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
