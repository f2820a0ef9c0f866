"""Choose the strength of the prior, a pruning threshold and a network by simulation.

The training record of the Cascaded Tanks benchmark is cut into contiguous blocks. Each
block is held out in turn, and a model fitted to the others simulates it in free run.
The blocks are also the ``sessions`` of the fit, so that no lag spans the gap left by
the held-out block. The test record is used once, at the end.

    python grid_search.py              # the measured record
    python grid_search.py --simulated  # simulated tanks, without data file or network
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.model_selection import GridSearchCV, PredefinedSplit

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.datasets import fetch_cascaded_tanks, make_cascaded_tanks
from skbayesnn.metrics import one_step_scorer, simulation_rmse, simulation_scorer

N_BLOCKS = 8
GRID = {
    "reg_lambda": [4.0, 16.0, 64.0],
    "kappa_weight": [1e-3, 1e-2],
    "activation": ["tanh", "relu"],
    "hidden_layer_sizes": [5, 10],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--simulated", action="store_true", help="use simulated tanks, not measured"
    )
    parser.add_argument(
        "--data-home",
        help="folder of the data sets; $SKBAYESNN_DATA by default",
    )
    arguments = parser.parse_args()
    tanks = load(arguments.simulated, arguments.data_home)

    u, y = tanks.data, tanks.target
    blocks = np.arange(len(y)) * N_BLOCKS // len(y)
    search = GridSearchCV(
        SparseBayesNARXRegressor(5, 5, n_restarts=4, random_state=0),
        GRID,
        scoring={"free_run": simulation_scorer, "one_step": one_step_scorer},
        refit="free_run",
        cv=PredefinedSplit(blocks),
        n_jobs=2,
    )
    start = time.perf_counter()
    with warnings.catch_warnings():
        # a score of minus infinity marks a simulation that diverged, see the table
        warnings.filterwarnings("ignore", "One or more of the test scores", UserWarning)
        search.fit(u, y, sessions=blocks)
    elapsed = time.perf_counter() - start
    n_candidates = len(search.cv_results_["params"])
    print(
        f"{n_candidates} settings x {N_BLOCKS} blocks in {elapsed:.0f} s, "
        f"best first. Mean and standard error over the blocks:\n"
    )
    print_table(search.cv_results_)

    model = search.best_estimator_
    test, n_init = tanks.tests.test, tanks.n_initialization
    print(f"\nBest: {search.best_params_}")
    print(f"Its errors on the test record, from row {n_init} on:")
    one_step = model.predict(test.data, test.target)
    free_run = model.predict(test.data, y_init=test.target[:n_init])
    for title, predicted in [("one step ahead", one_step), ("free run", free_run)]:
        rmse = simulation_rmse(test.target, predicted, n_initialization=n_init)
        print(f"  {title:15} RMSE {rmse:.4f} V")


def load(simulated, data_home):
    if simulated:
        return make_cascaded_tanks(random_state=0)
    try:
        return fetch_cascaded_tanks(data_home=data_home)
    except (ImportError, OSError) as error:
        raise SystemExit(
            f"The measured record cannot be had: {error}\n"
            "Use --simulated for simulated tanks."
        ) from error


def print_table(results, n_rows=10):
    """Print the best settings in free run, with the errors on the held-out blocks."""
    # a diverged block makes mean and standard error infinite
    scores = np.array([results[f"split{k}_test_free_run"] for k in range(N_BLOCKS)])
    with np.errstate(invalid="ignore"):
        error = scores.std(axis=0, ddof=1) / np.sqrt(N_BLOCKS)
    header = "free-run RMSE (V)  one-step R2  reg_lambda  kappa_weight  network"
    print(f"{header}\n{'-' * len(header)}")
    for k in np.argsort(results["rank_test_free_run"], kind="stable")[:n_rows]:
        setting = results["params"][k]
        network = f"{setting['activation']} {setting['hidden_layer_sizes']}"
        print(
            f"{-results['mean_test_free_run'][k]:8.3f} ± {error[k]:<6.3f}  "
            f"{results['mean_test_one_step'][k]:11.5f}  {setting['reg_lambda']:10g}  "
            f"{setting['kappa_weight']:12g}  {network}"
        )


if __name__ == "__main__":
    main()
