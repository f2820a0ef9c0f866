"""Figure 2 of the paper on infinite RBMs: classification by the hidden units.

    python examples/paper/rbm_classification.py --likelihoods rbm.json --models models

Multi-class logistic regression on E[h | v] of the models of figure 1, compared with
logistic regression on the binary pixels. rbm_likelihood.py fits the models; this script
fits those that are missing. The strength of the penalty is chosen for each model on the
validation images; the classifier is then fitted to the training images only. Of the
five random starts, the one with the best validation likelihood is shown, as in
figure 1.
"""

import time
import warnings
from pathlib import Path

import numpy as np
import rbm_models as models
from resumable import Results, side_by_side
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skbayesnn.displays import figure_style

PIXELS = "pixels"
# LogisticRegression's C
STRENGTHS = (0.03, 0.1, 0.3, 1.0)
METHODS = models.SHOWN


def features_of(name, settings, method, size, seed, folder):
    """A function from images to features."""
    if method == PIXELS:
        return lambda X: X.astype(np.float32)
    model, _ = models.fit(name, settings, method, size, seed, folder)
    return model.transform


def classify(name, settings, method, size, seed, folder):
    """Errors of the classifier that is best on the validation images."""
    start = time.perf_counter()
    features = features_of(name, settings, method, size, seed, folder)
    data = models.load(name)
    H = [features(split.X) for split in data]
    y = [split.y for split in data]
    best = {"validation_error": np.inf}
    for strength in STRENGTHS:
        classifier = LogisticRegression(C=strength, max_iter=300)
        with warnings.catch_warnings():
            # the validation images also judge a fit that has not converged
            warnings.simplefilter("ignore", ConvergenceWarning)
            classifier.fit(H[0], y[0])
        errors = [1.0 - classifier.score(*part) for part in zip(H, y, strict=True)]
        if errors[1] < best["validation_error"]:
            names = ("training_error", "validation_error", "test_error")
            best = dict(zip(names, errors, strict=True)) | {"C": strength}
    seconds = time.perf_counter() - start
    return models.part_name(name, method, size), {
        "seed": seed,
        **best,
        "seconds": seconds,
    }


def best_seed(name, method, size, likelihoods):
    """The run that figure 1 shows."""
    if method != models.RANDOM:
        return 0
    row = models.best_row(likelihoods, name, method, size)
    if row is None:
        raise SystemExit(
            f"Figure 1 has no runs of {method}, {size} units, on {name}: run "
            "rbm_likelihood.py with the same --models first."
        )
    return row["seed"]


def run(results, arguments, likelihoods):
    calls = []
    for name in arguments.data:
        settings, folder = models.SETTINGS[name], arguments.models
        calls.append((name, settings, PIXELS, 0, 0, folder))
        for method in METHODS:
            for size in arguments.sizes:
                seed = best_seed(name, method, size, likelihoods)
                calls.append((name, settings, method, size, seed, folder))
    calls = [
        call
        for call in calls
        if results.missing(models.part_name(call[0], call[2], call[3]), [call[4]])
    ]
    calls.sort(key=lambda call: -call[3])
    for done, (part, row) in enumerate(
        side_by_side(classify, calls, arguments.n_jobs), 1
    ):
        results.add(part, row)
        error = 100.0 * row["test_error"]
        print(f"{done} of {len(calls)}: {part}: {error:.2f} %", flush=True)


def error_of(results, name, method, size):
    return 100.0 * results.rows(models.part_name(name, method, size))[0]["test_error"]


def print_table(results, arguments):
    for name in arguments.data:
        pixels = error_of(results, name, PIXELS, 0)
        print(f"\n{name}: test error in percent; {pixels:.2f} by the pixels")
        print("units " + "".join(f"{method:>20}" for method in METHODS))
        for size in arguments.sizes:
            errors = [error_of(results, name, method, size) for method in METHODS]
            print(f"{size:5} " + "".join(f"{error:20.2f}" for error in errors))


def draw(results, arguments):
    """Draw test errors over the number of units, one panel per data set."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6 * len(arguments.data), 4.5), layout="constrained")
    panels = figure.subplots(1, len(arguments.data), squeeze=False)[0]
    for axes, name in zip(panels, arguments.data, strict=True):
        for k, method in enumerate(METHODS):
            errors = {
                size: error_of(results, name, method, size)
                for size in arguments.sizes
                if results.rows(models.part_name(name, method, size))
            }
            style = {"color": f"C{k}", "marker": "o", "markersize": 3}
            axes.plot(list(errors), list(errors.values()), **style, label=method)
        pixels = error_of(results, name, PIXELS, 0)
        axes.axhline(pixels, color="0.6", linestyle=":", label="binary pixels")
        axes.set(title=models.TITLES[name], xlabel="Number of hidden units")
    panels[0].set_ylabel("Test error (%)")
    panels[-1].legend()
    return figure


def main():
    parser = models.make_parser(__doc__.splitlines()[0])
    parser.add_argument(
        "--likelihoods",
        required=True,
        help="JSON file of rbm_likelihood.py, which tells the best random starts",
    )
    arguments = parser.parse_args()
    likelihoods = Results.read(arguments.likelihoods)
    settings = {name: models.SETTINGS[name] for name in arguments.data}
    settings |= {"strengths": STRENGTHS}
    results = Results(arguments.output, __doc__, settings)
    run(results, arguments, likelihoods)
    print_table(results, arguments)
    if arguments.figures:
        folder = Path(arguments.figures)
        folder.mkdir(parents=True, exist_ok=True)
        with figure_style():
            figure = draw(results, arguments)
            figure.savefig(folder / "paper_rbm_classification.png", dpi=120)


if __name__ == "__main__":
    main()
