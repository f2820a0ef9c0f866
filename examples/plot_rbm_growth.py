"""Watch a restricted Boltzmann machine grow: likelihood, gains, filters, samples.

    python plot_rbm_growth.py          # scikit-learn's digits, without a network
    python plot_rbm_growth.py --mnist  # 20,000 images of MNIST, minutes

The model is stopped at some sizes, and its partition function is estimated there.
``--mnist`` looks the images up in ``--data-home``, by default $SKBAYESNN_DATA, and
otherwise downloads them (``pip install pooch tqdm``).
"""

import argparse
import time
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skbayesnn import FrankWolfeRBM
from skbayesnn.datasets import fetch_mnist
from skbayesnn.displays import figure_style

FIGURE = "rbm_growth.png"
N_MNIST = 20_000


class Images(NamedTuple):
    """Binary images, one per row."""

    train: np.ndarray
    test: np.ndarray
    shape: tuple
    title: str


class Path(NamedTuple):
    """Likelihoods on the way, one entry per size. In nats per image."""

    sizes: list
    train: list
    test: list
    error: list
    """one standard error of the log partition function"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mnist", action="store_true", help="use MNIST, not digits")
    parser.add_argument("--output", default=FIGURE, help="figure file")
    parser.add_argument(
        "--data-home", help="folder of the data sets; $SKBAYESNN_DATA by default"
    )
    arguments = parser.parse_args()
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise SystemExit("matplotlib is missing: pip install matplotlib") from error
    if arguments.mnist:
        images, unit_penalty = load_mnist(arguments.data_home), 0.1
        betas = 10_000
    else:
        # small images: a unit of the same norm gains less
        images, unit_penalty = load_small_digits(), 0.003
        betas = 2000
    model = FrankWolfeRBM(unit_penalty=unit_penalty, warm_start=True, random_state=0)
    path = grow(model, images, [1, 2, 5, 10, 20, 35, 50, 75, 100], betas)
    drawn = model.sample(48, random_state=1)
    with figure_style():
        draw(model, images, path, drawn).savefig(arguments.output, dpi=90)
    print(f"Saved the figure as {arguments.output}")


def load_small_digits():
    X = load_digits().data > 7.5
    train, test = train_test_split(X, test_size=0.25, random_state=0)
    return Images(train, test, (8, 8), "digits")


def load_mnist(data_home):
    try:
        mnist = fetch_mnist(data_home=data_home)
    except (ImportError, OSError) as error:
        raise SystemExit(
            f"MNIST cannot be had: {error}\nWithout --mnist the digits of "
            "scikit-learn are used."
        ) from error
    order = np.random.default_rng(0).permutation(len(mnist.data))[:N_MNIST]
    return Images(mnist.data[order] > 127, mnist.test.data > 127, (28, 28), "MNIST")


def grow(model, images, sizes, betas):
    """Fit on to each size in turn, as far as units gain anything.

    ``betas`` is the number of temperatures for the partition functions.
    """
    path = Path([], [], [], [])
    start = time.perf_counter()
    print("units  train  test (nats per image)  log Z, standard error  seconds")
    for size in sizes:
        model.set_params(n_components=size).fit(images.train)
        estimate = model.log_partition(betas=betas, random_state=0)
        error = (estimate.interval[1] - estimate.interval[0]) / 6.0
        train, test = (
            float(-model.free_energy(X).mean()) - estimate.log_partition
            for X in (images.train, images.test)
        )
        for values, value in zip(
            path, [model.n_components_, train, test, error], strict=True
        ):
            values.append(value)
        print(
            f"{model.n_components_:5}  {train:6.2f}  {test:6.2f}  "
            f"{estimate.log_partition:20.2f}, {error:.2f}  "
            f"{time.perf_counter() - start:18.1f}"
        )
        if model.n_components_ < size:
            print(f"No unit gained anything in {model.n_iter_no_change} searches.")
            break
    return path


def draw(model, images, path, drawn):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6.6), layout="constrained")
    left, middle, right = figure.subfigures(1, 3, width_ratios=(1.25, 1, 1))
    likelihood, gain = left.subplots(2, 1, sharex=True, height_ratios=(1.5, 1))
    draw_likelihood(likelihood, images, path)
    draw_gain(gain, model)

    n_shown = min(model.n_components_, 88)
    # each filter on its own scale: late units have small weights
    filters = model.components_[:n_shown]
    filters = filters / np.abs(filters).max(axis=1, keepdims=True)
    axes = middle.subplots()
    tile(axes, filters, images.shape, 8, "RdBu_r", (-1, 1))
    axes.set_title(
        f"Weights of the first {n_shown} units, in the order in\nwhich they came "
        "(red +, blue −, each scaled)",
        fontsize=11,
    )

    test, samples = right.subplots(2, 1)
    tile(test, images.test[: len(drawn)], images.shape, 8, "gray_r", (0, 1))
    test.set_title(f"Test images of {images.title}", fontsize=11)
    tile(samples, drawn, images.shape, 8, "gray_r", (0, 1))
    samples.set_title(f"Samples of the model with {path.sizes[-1]} units", fontsize=11)
    return figure


def draw_likelihood(axes, images, path):
    for values, color, label in [
        (path.train, "C0", f"{len(images.train)} training images"),
        (path.test, "C1", f"{len(images.test)} test images"),
    ]:
        axes.errorbar(
            path.sizes,
            values,
            yerr=path.error,
            color=color,
            marker="o",
            markersize=4,
            capsize=2,
            label=label,
        )
    independent = independent_pixels(images)
    axes.axhline(independent, color="0.5", linewidth=0.8, linestyle=":")
    axes.text(
        path.sizes[-1],
        independent,
        "independent pixels (test)",
        ha="right",
        va="bottom",
        color="0.4",
        fontsize=9,
    )
    axes.set_ylabel("Mean log-likelihood (nats per image)")
    axes.legend(loc="center right", frameon=False, fontsize=9)
    axes.set_title("One unit per step: the likelihood during growth", fontsize=11)


def independent_pixels(images):
    """Mean log-likelihood of the test images by smoothed base rates."""
    n = len(images.train)
    rates = (images.train.sum(axis=0) + 0.5) / (n + 1)
    chosen = np.where(images.test, rates, 1.0 - rates)
    return np.log(chosen).sum(axis=1).mean()


def draw_gain(axes, model):
    history, added = model.history_, model.history_["change"] == 1
    axes.semilogy(
        history["n_components"][added], history["gain"][added], ".", color="C2"
    )
    axes.set_ylabel("Gain when it entered\n(nats per image)")
    axes.set_xlabel("Hidden units")
    axes.set_xlim(left=0)


def tile(axes, rows, shape, n_columns, colors, limits):
    """Images side by side, grey between them."""
    from matplotlib import colormaps

    height, width = shape
    n_lines = -(-len(rows) // n_columns)
    canvas = np.full((n_lines * (height + 1) + 1, n_columns * (width + 1) + 1), np.nan)
    for k, row in enumerate(rows):
        top = k // n_columns * (height + 1) + 1
        left = k % n_columns * (width + 1) + 1
        canvas[top : top + height, left : left + width] = np.reshape(row, shape)
    colors = colormaps[colors].with_extremes(bad="0.7")
    axes.imshow(canvas, cmap=colors, vmin=limits[0], vmax=limits[1])
    axes.set_axis_off()


if __name__ == "__main__":
    main()
