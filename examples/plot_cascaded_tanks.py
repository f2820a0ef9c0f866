"""A simulator of the measured Cascaded Tanks that chooses its own settings.

    python plot_cascaded_tanks.py --output cascaded_tanks.png

The record is read from ``--data-home``, by default $SKBAYESNN_DATA, or downloaded
(``pip install pooch tqdm``). Lags and the strength of the prior are chosen on the
training record; the test record is not used for any choice.
"""

import argparse
import time

import numpy as np

from skbayesnn import SparseBayesNARXRegressorCV
from skbayesnn.datasets import fetch_cascaded_tanks
from skbayesnn.displays import LagRelevanceDisplay, SimulationDisplay, figure_style
from skbayesnn.metrics import crps_gaussian, fit_index, simulation_rmse


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="cascaded_tanks.png", help="figure file")
    parser.add_argument(
        "--data-home", help="folder of the data sets; $SKBAYESNN_DATA by default"
    )
    arguments = parser.parse_args()
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise SystemExit("matplotlib is missing: pip install matplotlib") from error
    try:
        tanks = fetch_cascaded_tanks(data_home=arguments.data_home)
    except (ImportError, OSError) as error:
        raise SystemExit(
            f"The measured record cannot be had: {error}\n"
            "quickstart.py does the like with simulated tanks."
        ) from error

    model = SparseBayesNARXRegressorCV(n_jobs=2, random_state=0)
    start = time.perf_counter()
    model.fit(tanks.data, tanks.target)
    seconds = time.perf_counter() - start
    print(f"Choice and fit, with what had to be compiled: {seconds:.0f} s")
    print("Networks of the ensemble (reg_lambda, longest lag):")
    print("  ", [(member.reg_lambda, member.max_lag_) for member in model.estimators_])

    test, n_init = tanks.tests.test, tanks.n_initialization
    mean, std = model.predict(test.data, y_init=test.target[:n_init], return_std=True)
    beyond = {"n_initialization": n_init}
    inside = np.abs(test.target - mean)[n_init:] <= 2.0 * std[n_init:]
    print(
        f"Free run through the test record, from row {n_init} on: "
        f"RMSE {simulation_rmse(test.target, mean, **beyond):.3f} V, "
        f"fit {fit_index(test.target, mean, **beyond):.1f} %, "
        f"CRPS {crps_gaussian(test.target, mean, std, **beyond):.3f} V, "
        f"{inside.mean():.0%} of the measured values inside the 2-sigma band"
    )
    with figure_style():
        draw(model, tanks).savefig(arguments.output, dpi=90)
    print(f"Saved the figure as {arguments.output}")


def draw(model, tanks):
    """Draw the free run with its band and residuals, and the relevance of the lags."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5.6), layout="none")
    left = {"left": 0.07, "right": 0.64, "top": 0.88, "bottom": 0.1, "hspace": 0.12}
    right = {"left": 0.72, "right": 0.98, "top": 0.92, "bottom": 0.1, "hspace": 0.5}
    test, n_init = tanks.tests.test, tanks.n_initialization
    levels = figure.add_gridspec(2, 1, height_ratios=(2, 1.1), **left)
    levels = levels.subplots(sharex=True)
    lags = figure.add_gridspec(2, 1, **right).subplots()
    SimulationDisplay.from_estimator(
        model,
        test.data,
        test.target,
        n_init=n_init,
        name="free run",
        ax=levels,
        sampling_time=tanks.sampling_time / 60.0,
        time_unit="min",
        y_label="Level (V of the sensor)",
        # the sensor ends there, of which the band knows nothing
        y_range=(0.0, 10.0),
    )
    LagRelevanceDisplay.from_estimator(model, ax=lags)
    return figure


if __name__ == "__main__":
    main()
