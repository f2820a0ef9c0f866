"""Fill in hidden pixels of digits with an RBM, and compare with simpler methods.

In test images that no model has seen, a random half of the pixels or the lower half of
the image is hidden. The example compares the mean of each pixel, scikit-learn's
KNNImputer and FrankWolfeRBM.impute. It needs neither a data file nor a network.

    python impute_pixels.py
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.impute import KNNImputer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from skbayesnn import FrankWolfeRBM
from skbayesnn.displays import figure_style

# Of 5, 10, 20 and 40 the best log-loss on training images, for both patterns.
N_NEIGHBORS = 20
# The default, 200, is not enough for a hidden region as large as half of the image.
N_STEPS = 1000
N_SHOWN = 10


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="impute_pixels.png", help="figure file")
    parser.add_argument("--results", type=Path, help="JSON file for the log-losses")
    arguments = parser.parse_args()

    X = (load_digits().data > 7.5).astype(float)
    train, test = train_test_split(X, test_size=0.25, random_state=0)
    start = time.perf_counter()
    rbm = FrankWolfeRBM(100, unit_penalty=0.003, random_state=0).fit(train)
    print(
        f"{rbm.n_components_} hidden units from {len(train)} images in "
        f"{time.perf_counter() - start:.1f} s"
    )
    knn = KNNImputer(n_neighbors=N_NEIGHBORS, keep_empty_features=True).fit(train)

    print(
        "\nErrors at the hidden pixels of the test images; log-loss in nats per pixel"
    )
    header = "hidden       method               RMSE  log-loss  seconds"
    print(f"{header}\n{'-' * len(header)}")
    columns, losses = [], {}
    for title, hidden in hide(test.shape).items():
        masked = np.where(hidden, np.nan, test)
        filled = {}
        for method, impute in [
            ("mean of the pixel", lambda V: np.where(np.isnan(V), rates(train), V)),
            ("KNNImputer", lambda V: smooth(knn.transform(V), np.isnan(V))),
            ("FrankWolfeRBM", lambda V: rbm.impute(V, n_steps=N_STEPS)),
        ]:
            start = time.perf_counter()
            filled[method] = impute(masked)
            elapsed = time.perf_counter() - start
            rmse, loss = errors(test[hidden], filled[method][hidden])
            losses.setdefault(title, {})[method] = round(loss, 4)
            print(f"{title:12} {method:18}{rmse:7.3f}{loss:10.3f}{elapsed:9.2f}")
        columns += [(f"{title}\nhidden", masked), *filled.items()]
    if arguments.results:
        arguments.results.write_text(json.dumps(losses, indent=1) + "\n")

    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print("No figure without matplotlib: pip install matplotlib")
        return
    with figure_style():
        draw([("original", test), *columns]).savefig(arguments.output, dpi=90)
    print(f"Saved the figure as {arguments.output}")


def hide(shape):
    """Mask of the hidden pixels, by the name of the pattern."""
    rng = np.random.default_rng(0)
    block = np.zeros((8, 8), dtype=bool)
    block[4:] = True
    return {
        "random half": rng.random(shape) < 0.5,
        "lower half": np.broadcast_to(block.ravel(), shape),
    }


def rates(X):
    """Fraction of ones of each pixel, smoothed so that none is 0 or 1."""
    return (X.sum(axis=0) + 0.5) / (len(X) + 1)


def smooth(filled, hidden):
    """Means over neighbours, smoothed in the same way: some are 0 or 1."""
    smoothed = (filled * N_NEIGHBORS + 0.5) / (N_NEIGHBORS + 1)
    return np.where(hidden, smoothed, filled)


def errors(true, expected):
    rmse = np.sqrt(np.mean((true - expected) ** 2))
    return rmse, log_loss(true, np.clip(expected, 1e-6, 1.0 - 1e-6))


def draw(rows):
    """Draw one row of images for each (title, images)."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    # hidden pixels are NaN
    colors = colormaps["gray_r"].with_extremes(bad="#e0b080")
    figure = Figure(figsize=(8, 7.6), layout="constrained")
    panels = figure.subplots(len(rows), N_SHOWN)
    for line, (title, images) in zip(panels, rows, strict=True):
        for axes, image in zip(line, images[:N_SHOWN], strict=True):
            axes.imshow(image.reshape(8, 8), cmap=colors, vmin=0, vmax=1)
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(True)
        line[0].set_ylabel(title, rotation=0, ha="right", va="center", fontsize=10)
    figure.suptitle(
        "Hidden pixels of test images (orange) and their expected values", fontsize=11
    )
    return figure


if __name__ == "__main__":
    main()
