"""Figure 1 of the paper on infinite RBMs: test log-likelihood over hidden units.

    python examples/paper/rbm_likelihood.py --output rbm.json --models models

MNIST (binary above 127) and Caltech-101 Silhouettes, split as in the paper. Three
curves over the number of hidden units:

- FW: Frank-Wolfe, one unit per step. The growth continues to the largest size; the size
  at which early stopping would have ended is printed, and drawn as a dashed line, as in
  the paper.
- CD (random init.): persistent contrastive divergence from random weights, five seeds,
  the best on the validation images.
- CD (FW init.): a quick Frank-Wolfe growth, then the same fine-tuning, for no more time
  in all than the five runs together.
- on demand (``--methods``), CD (random init.), one long run: one seed that gets the
  epochs of all five; and the same refitted with the validation images, whose own
  "validation" likelihood then means nothing.

The average test log-likelihood is estimated by annealed importance sampling from the
base rates, 14,500 temperatures and 500 chains, with three standard errors. AIS
tends to overestimate the likelihood; the reverse run, from the model, tends to
underestimate it. It takes twice as long, and is made for some models of 500 and 700
units (`REVERSED`).

All settings were chosen on the validation images (doc/benchmarks/paper_rbm.md).
The test images are read once for each number and decide nothing. A run that is killed
is resumed: finished models and results are kept, others resume from their last epoch or
unit. ``--data``, ``--sizes`` and ``--methods`` take parts of it.
"""

import time
from pathlib import Path

import numpy as np
import rbm_models as models
from resumable import Results, side_by_side

from skbayesnn.displays import figure_style

BETAS, N_CHAINS = "paper", 500
# to tell the five runs apart
QUICK = {"betas": 2000, "n_chains": 100, "random_state": 1}
REVERSED = {
    (models.RANDOM, 500),
    (models.TUNED, 500),
    (models.TUNED, 700),
    (models.REFIT, 700),
}


def select(name, settings, method, sizes, seed, folder):
    """Fits, one after the other, and quick estimates of validation likelihoods."""
    rows = []
    for size in sizes:
        model, seconds = models.fit(name, settings, method, size, seed, folder)
        row = {
            "seed": seed,
            "fit_seconds": seconds,
            "n_units": model.n_components_,
            "epochs": count_epochs(model),
            "validation": mean_log_likelihood(
                model, models.load(name).validation.X, model.log_partition(**QUICK)
            ),
        }
        rows.append((models.part_name(name, method, size), row))
    return rows


def mean_log_likelihood(model, X, log_partition):
    return -float(model.free_energy(X).mean()) - log_partition.log_partition


def count_epochs(model):
    tuner = getattr(model, "fine_tune_", model)
    return None if hasattr(tuner, "alpha_") else int(tuner.n_iter_)


def evaluate(name, settings, method, size, seed, folder, kind):
    """Test likelihood of a model that is fitted already, by one kind of estimate."""
    model, _ = models.fit(name, settings, method, size, seed, folder)
    start = time.perf_counter()
    estimate = model.log_partition(kind, betas=BETAS, n_chains=N_CHAINS, random_state=0)
    mean = mean_log_likelihood(model, models.load(name).test.X, estimate)
    low, high = (estimate.log_partition - edge for edge in estimate.interval[::-1])
    row = {
        "seed": seed,
        "log_likelihood": mean,
        "low": mean + low,
        "high": mean + high,
        "log_weight_std": estimate.log_weight_std,
        "effective_sample_size": estimate.effective_sample_size,
        "seconds": time.perf_counter() - start,
    }
    return [(f"{models.part_name(name, method, size)} | {kind}", row)]


def stopped_size(name, settings, folder):
    """Where early stopping would have ended the growth."""
    gaps, n_units = [], []
    for size in models.SIZES:
        model, _ = models.fit(name, settings, models.GROWN, size, 0, folder)
        gaps.extend(model.history_["gap"])
        n_units.extend(model.history_["n_components"])
    risen = gaps - np.minimum.accumulate(gaps) > settings["max_gap"]
    return int(n_units[np.argmax(risen)] if risen.any() else n_units[-1])


def fit_all(results, arguments):
    """What is missing of the fits, the longest first."""
    calls = []
    for name in arguments.data:
        settings, folder = models.SETTINGS[name], arguments.models
        for method in arguments.methods:
            for seed in models.RANDOM_SEEDS if method == models.RANDOM else (0,):
                missing = [
                    size
                    for size in arguments.sizes
                    if results.missing(models.part_name(name, method, size), [seed])
                ]
                # a growth continues from size to size; other fits stand alone
                chains = [missing] if method == models.GROWN else zip(missing[::-1])
                calls += [
                    (name, settings, method, tuple(sizes), seed, folder)
                    for sizes in chains
                    if sizes
                ]
    calls.sort(key=lambda call: (call[2] != models.GROWN, -sum(call[3])))
    run(results, select, calls, arguments.n_jobs)


def evaluate_all(results, arguments):
    calls = []
    for name in arguments.data:
        for method in arguments.methods:
            for size in arguments.sizes:
                seed = models.best_row(results, name, method, size)["seed"]
                for kind in ("ais", "reverse_ais"):
                    part = f"{models.part_name(name, method, size)} | {kind}"
                    wanted = kind == "ais" or (method, size) in REVERSED
                    if wanted and results.missing(part, [seed]):
                        settings, folder = models.SETTINGS[name], arguments.models
                        calls.append((name, settings, method, size, seed, folder, kind))
    calls.sort(key=lambda call: -call[3])
    run(results, evaluate, calls, arguments.n_jobs)


def run(results, function, calls, n_jobs):
    """Make the calls, and keep their rows as soon as they are there."""
    start = time.perf_counter()
    for done, rows in enumerate(side_by_side(function, calls, n_jobs), 1):
        for part, row in rows:
            results.add(part, row)
            value = row.get("log_likelihood", row.get("validation"))
            print(f"{part}, seed {row['seed']}: {value:.2f} nats")
        minutes = (time.perf_counter() - start) / done * (len(calls) - done) / 60
        print(f"{done} of {len(calls)}, about {minutes:.0f} min to go", flush=True)


def print_table(results, arguments):
    for name in arguments.data:
        print(f"\n{name}: average test log-likelihood, nats (3 standard errors), and")
        print("seconds of all fits behind it; reverse estimates in brackets")
        print("units " + "".join(f"{method:>34}" for method in arguments.methods))
        for size in arguments.sizes:
            cells = [cell(results, name, method, size) for method in arguments.methods]
            print(f"{size:5} " + "".join(f"{text:>34}" for text in cells))


def cell(results, name, method, size):
    part = models.part_name(name, method, size)
    row = results.rows(f"{part} | ais")[0]
    seconds = sum(row["fit_seconds"] for row in results.rows(part))
    reverse = results.rows(f"{part} | reverse_ais")
    text = f"{row['log_likelihood']:.2f} ({row['high'] - row['log_likelihood']:.2f})"
    if reverse:
        text += f" [{reverse[0]['log_likelihood']:.2f}]"
    return f"{text} {seconds:4.0f} s"


def draw(results, arguments):
    """One panel a data set: likelihoods over the number of units."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6 * len(arguments.data), 4.5), layout="constrained")
    panels = figure.subplots(1, len(arguments.data), squeeze=False)[0]
    for axes, name in zip(panels, arguments.data, strict=True):
        for k, method in enumerate(arguments.methods):
            parts = {n: models.part_name(name, method, n) for n in arguments.sizes}
            # what another run left out
            parts = {
                k: part for k, part in parts.items() if results.rows(f"{part} | ais")
            }
            rows = [results.rows(f"{part} | ais")[0] for part in parts.values()]
            mean, low, high = (
                np.array([row[key] for row in rows])
                for key in ("log_likelihood", "low", "high")
            )
            style = {"color": f"C{k}", "marker": "o", "markersize": 3}
            bars = [mean - low, high - mean]
            axes.errorbar(list(parts), mean, bars, **style, capsize=2, label=method)
            for size, part in parts.items():
                for row in results.rows(f"{part} | reverse_ais"):
                    axes.plot(size, row["log_likelihood"], f"C{k}x")
        stopped = results.choices.get(f"{name} | early stopping")
        if stopped is not None:
            style = {"color": "C2", "linestyle": "--"}
            axes.axvline(stopped, **style, label="FW, early stopping")
        for text, value in models.PUBLISHED[name].items():
            axes.axhline(value, color="0.6", linewidth=0.8)
            # beside the panel, where no curve crosses it
            place = {"xycoords": ("axes fraction", "data"), "va": "center"}
            axes.annotate(f" {text}", (1.0, value), **place, fontsize=9)
        axes.set(title=models.TITLES[name], xlabel="Number of hidden units")
    panels[0].set_ylabel("Average test log-likelihood (nats)")
    panels[-1].plot([], [], "kx", label="reverse estimate")
    panels[-1].legend(loc="lower right")
    return figure


def main():
    parser = models.make_parser(__doc__.splitlines()[0])
    parser.add_argument(
        "--methods", nargs="+", choices=models.METHODS, default=models.SHOWN
    )
    arguments = parser.parse_args()
    settings = {name: models.SETTINGS[name] for name in arguments.data}
    results = Results(arguments.output, __doc__, settings)
    start = time.perf_counter()
    fit_all(results, arguments)
    for name in arguments.data:
        # the dashed line needs the whole growth
        if (
            models.GROWN in arguments.methods
            and arguments.sizes[-1] == models.SIZES[-1]
        ):
            settings = models.SETTINGS[name]
            size = stopped_size(name, settings, arguments.models)
            results.choices[f"{name} | early stopping"] = size
    results.save()
    evaluate_all(results, arguments)
    print_table(results, arguments)
    print(f"{(time.perf_counter() - start) / 60:.1f} min in this run")
    if arguments.figures:
        folder = Path(arguments.figures)
        folder.mkdir(parents=True, exist_ok=True)
        with figure_style():
            draw(results, arguments).savefig(
                folder / "paper_rbm_likelihood.png", dpi=120
            )


if __name__ == "__main__":
    main()
