"""Cascaded Tanks, the measured benchmark: one step ahead, free run, pruned weights.

    python plot_cascaded_tanks.py --output cascaded_tanks.png

The record is looked up in ``--data-home``, by default $SKBAYESNN_DATA, and otherwise
downloaded (``pip install skbayesnn[data]``). The settings of the model are those that
the search of ``benchmarks/cascaded_tanks.py`` finds on the training record; the test
record had no part in it.
"""

import argparse
import time

import numpy as np

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.datasets import fetch_cascaded_tanks
from skbayesnn.metrics import fit_index, simulation_rmse


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
        raise SystemExit(
            "matplotlib is missing: pip install skbayesnn[plot]"
        ) from error
    try:
        tanks = fetch_cascaded_tanks(data_home=arguments.data_home)
    except (ImportError, OSError) as error:
        raise SystemExit(
            f"The measured record cannot be had: {error}\n"
            "quickstart.py does the same with simulated tanks."
        ) from error
    test, n_init = tanks.tests.test, tanks.n_initialization

    model = SparseBayesNARXRegressor(
        5,
        5,
        activation="relu",
        reg_lambda=8.0,
        hidden_layer_sizes=10,
        n_restarts=10,
        random_state=0,
    )
    start = time.perf_counter()
    model.fit(tanks.data, tanks.target)
    print(f"Fit with what had to be compiled: {time.perf_counter() - start:.1f} s")
    n_weights = sum(np.count_nonzero(mask) for mask in model.masks_)
    print(f"Weights: {sum(m.size for m in model.masks_)} before, {n_weights} after")

    one_step = model.predict(test.data, test.target, return_std=True)
    free_run = model.predict(test.data, y_init=test.target[:n_init], return_std=True)
    print(f"Errors on the test record, from row {n_init} on:")
    for title, (mean, std) in [("one step ahead", one_step), ("free run", free_run)]:
        rmse = simulation_rmse(test.target, mean, n_initialization=n_init)
        fit = fit_index(test.target, mean, n_initialization=n_init)
        inside = np.abs(test.target - mean)[n_init:] <= 2.0 * std[n_init:]
        print(
            f"  {title:15} RMSE {rmse:.4f} V, fit {fit:.1f} %, {inside.mean():.0%} of "
            "the measured values inside the 2-sigma band"
        )
    draw(model, tanks, one_step, free_run).savefig(arguments.output, dpi=90)
    print(f"Saved the figure as {arguments.output}")


def draw(model, tanks, one_step, free_run):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5.4), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(2.3, 1))
    draw_record(left, tanks, one_step, free_run)
    draw_weights(right, model)
    return figure


def draw_record(figure, tanks, one_step, free_run):
    """Levels over residuals; one step and free run are tuples of mean and std."""
    measured = tanks.tests.test.target
    minutes = np.arange(len(measured)) * tanks.sampling_time / 60.0
    mean, band = free_run[0], 2.0 * free_run[1]
    levels, residuals = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1.1))

    style = {"color": "C1", "alpha": 0.25, "linewidth": 0}
    levels.fill_between(
        minutes, mean - band, mean + band, **style, label="free run, 2σ band"
    )
    levels.plot(minutes, measured, color="black", linewidth=2.2, label="measured")
    levels.plot(
        minutes, one_step[0], color="C0", linewidth=1.0, label="one step ahead (on top)"
    )
    levels.plot(minutes, mean, color="C1", linewidth=1.3, label="free run")
    levels.set_ylabel("Level (V of the sensor)")
    levels.set_xlim(0.0, minutes[-1])
    levels.set_title("Test record: the level of the lower tank", fontsize=11)
    figure.legend(loc="outside lower center", ncols=4, fontsize=9, frameon=False)

    residuals.fill_between(minutes, -band, band, **style)
    residuals.plot(minutes, measured - mean, color="C1", linewidth=1.0)
    residuals.plot(minutes, measured - one_step[0], color="C0", linewidth=0.6)
    residuals.set_ylabel("Measured −\npredicted (V)")
    residuals.set_xlabel("Time (min); the free run starts at the dotted line")
    for axes in (levels, residuals):
        axes.axvline(
            minutes[tanks.n_initialization], color="0.5", linewidth=0.8, linestyle=":"
        )


def draw_weights(figure, model):
    """Magnitudes of the weights, one map a layer, blank where pruned."""
    from matplotlib.colors import LogNorm

    maps = [
        np.where(mask, np.abs(coef), np.nan)
        for coef, mask in zip(model.coefs_, model.masks_, strict=True)
    ]
    # the units of the last layer, few, would make a map of one column
    maps[-1] = maps[-1].T
    heights = [len(values) + 0.4 for values in maps]
    panels = figure.subplots(len(maps), 1, height_ratios=heights)
    norm = LogNorm(model.kappa_weight, max(np.nanmax(values) for values in maps))
    for axes, values in zip(panels, maps, strict=True):
        image = axes.imshow(values, cmap="viridis_r", aspect="auto", norm=norm)
        axes.set_xticks(range(values.shape[1]))
    panels[0].set_yticks(
        range(len(maps[0])), model.get_lagged_feature_names_out(["u"]), fontsize=9
    )
    panels[0].set_title("Weights that survived", fontsize=11)
    panels[-1].set_yticks([0], ["output"], fontsize=9)
    panels[-1].set_xlabel("Hidden unit")
    figure.colorbar(image, ax=panels, label="Magnitude (scaled variables)", pad=0.03)


if __name__ == "__main__":
    main()
