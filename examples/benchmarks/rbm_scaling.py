"""How the RBMs' time and memory grow with units, features and samples.

    python examples/benchmarks/rbm_scaling.py --output rbm_scaling.json --figures .

One BLAS thread, synthetic binary data of 14 % ones. An epoch of persistent contrastive
divergence, a temperature of annealed importance sampling and a Frank-Wolfe step are
timed against the number of hidden units and of features; the temperature also against
the number of chains. Epoch and growth against the number of samples run in a process
each, which tells the largest resident memory too, with the data as a bool array, as a
bool memory map of a file and as a CSR matrix. (Pages of a mapped file count as
resident, though the system may take them back.)

The slope of a curve is that of a least-squares line through the upper half of its
points, both axes logarithmic; beside it stands the exponent of the work itself. A
Frank-Wolfe step searches 1,000 rows by default, however many there are: its work does
not grow with the samples unless all of them are searched.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from process_memory import peak_resident
from sklearn.neural_network import BernoulliRBM
from threadpoolctl import threadpool_limits

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.displays import figure_style

N_ROWS = 2000
N_FEATURES = 784
N_UNITS = 200
# Of the curves against samples, and of the units that are grown there.
FEW_UNITS = 50
GROWN_UNITS = 5
N_BETAS = 21
BLOCK = 4096
MEMORY_LIMIT = 2 * 2**30

SIZES = {
    "units": (50, 100, 200, 500, 1000, 2000),
    "features": (100, 200, 500, 1000, 2000, 4000),
    "chains": (50, 100, 200, 400, 800, 1600),
    "samples": (1000, 3000, 10000, 30000, 100000, 300000, 1000000),
}
QUICK_SIZES = {
    "units": (10, 20, 40),
    "features": (50, 100, 200),
    "chains": (50, 100, 200),
    "samples": (500, 1000, 2000),
}
# More rows than that are not all searched for a unit: they would be copied as float32.
MAX_SEARCHED = 300000

EPOCH = "PCD epoch"
TEMPERATURE = "AIS temperature"
STEP = "Frank-Wolfe step"
STEP_ON_ALL = "Frank-Wolfe step, all rows searched"
CHECKS = "checks and means of PCD"


# -- data ------------------------------------------------------------------------


def blocks_of_rows(n_rows, n_features):
    """Bool blocks of a mixture of ten patterns, the same for each call."""
    rng = np.random.default_rng(0)
    patterns = np.where(rng.random((10, n_features)) < 0.25, 128, 4).astype(np.uint8)
    for first in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - first)
        noise = rng.integers(0, 256, size=(n, n_features), dtype=np.uint8)
        yield noise < patterns[rng.integers(10, size=n)]


def dense_rows(n_rows, n_features):
    X, first = np.empty((n_rows, n_features), dtype=bool), 0
    for block in blocks_of_rows(n_rows, n_features):
        X[first : first + len(block)] = block
        first += len(block)
    return X


def mapped_rows(n_rows, n_features, folder):
    path = Path(folder) / "rows"
    with open(path, "wb") as file:
        for block in blocks_of_rows(n_rows, n_features):
            file.write(block.tobytes())
    return np.memmap(path, dtype=bool, mode="r", shape=(n_rows, n_features))


def sparse_rows(n_rows, n_features):
    """Counted first, then written into arrays of the right size."""
    counts = [block.sum(axis=1) for block in blocks_of_rows(n_rows, n_features)]
    starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int32)
    columns, n_done = np.empty(starts[-1], dtype=np.int32), 0
    for block in blocks_of_rows(n_rows, n_features):
        new = np.nonzero(block)[1]
        columns[n_done : n_done + len(new)] = new
        n_done += len(new)
    ones = np.ones(len(columns), dtype=bool)
    return sp.csr_array((ones, columns, starts), shape=(n_rows, n_features))


def make_rows(kind, n_rows, folder):
    if kind == "memory map":
        return mapped_rows(n_rows, N_FEATURES, folder)
    return (dense_rows if kind == "bool" else sparse_rows)(n_rows, N_FEATURES)


# -- what is timed: each returns seconds -----------------------------------------


def given_model(estimator, X, n_units, **parameters):
    """An estimator with small random weights and the base rates of the data."""
    rbm = BernoulliRBM(n_units)
    weights = np.random.default_rng(1).standard_normal((n_units, X.shape[1]))
    rates = np.clip(X.mean(axis=0), 0.01, 0.99)
    rbm.components_ = (0.01 * weights).astype(np.float32)
    rbm.intercept_hidden_ = np.zeros(n_units, dtype=np.float32)
    rbm.intercept_visible_ = np.log(rates / (1 - rates)).astype(np.float32)
    return estimator.from_bernoulli_rbm(rbm, X, random_state=0, **parameters)


def epoch(X, n_units):
    rbm = ContrastiveDivergenceRBM(n_units, max_iter=1, random_state=0).fit(X)
    return float(rbm.history_["seconds"][0])


def temperature(X, n_units, n_chains=100):
    rbm = given_model(ContrastiveDivergenceRBM, X, n_units)
    start = time.perf_counter()
    rbm.log_partition(betas=N_BETAS, n_chains=n_chains)
    return (time.perf_counter() - start) / (N_BETAS - 1)


def step(X, n_units):
    """From a model with so many units to one more."""
    rbm = given_model(
        FrankWolfeRBM,
        X,
        n_units,
        n_components=n_units + 1,
        warm_start=True,
        n_iter_no_change=1,
    )
    return float(rbm.fit(X).history_["seconds"][0])


OPERATIONS = {EPOCH: epoch, TEMPERATURE: temperature, STEP: step}


def least(function, budget):
    """Least of as many runs as the budget allows, three or more."""
    seconds, start = [], time.perf_counter()
    while len(seconds) < 3 or time.perf_counter() - start < budget:
        seconds.append(function())
    return min(seconds)


def slope(sizes, values):
    """Of the upper half, on logarithmic axes."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(values[half:]), 1)[0])


def curve(sizes, values, work=1.0):
    return {
        "sizes": list(sizes),
        "seconds": list(values),
        "slope": slope(sizes, values),
        "work": work,
    }


def against_units(sizes, budget):
    X, result = dense_rows(N_ROWS, N_FEATURES), {}
    for name, run in OPERATIONS.items():
        seconds = [least(lambda n=n, run=run: run(X, n), budget) for n in sizes]
        result[name] = curve(sizes, seconds)
    return result


def against_features(sizes, budget):
    result = {}
    for name, run in OPERATIONS.items():
        seconds = []
        for n_features in sizes:
            X = dense_rows(N_ROWS, n_features)
            seconds.append(least(lambda X=X, run=run: run(X, N_UNITS), budget))
        result[name] = curve(sizes, seconds)
    return result


def against_chains(sizes, budget):
    X = dense_rows(N_ROWS, N_FEATURES)
    seconds = [least(lambda n=n: temperature(X, N_UNITS, n), budget) for n in sizes]
    return {TEMPERATURE: curve(sizes, seconds)}


# -- samples: a process each -----------------------------------------------------


def grow(X, **parameters):
    """Seconds per step, and of everything outside the steps."""
    start = time.perf_counter()
    rbm = FrankWolfeRBM(GROWN_UNITS, random_state=0, **parameters).fit(X)
    whole, path = time.perf_counter() - start, rbm.history_
    return {
        "seconds": float(path["seconds"][-1] / len(path["seconds"])),
        "around": float(whole - path["seconds"][-1]),
        "n_units": rbm.n_components_,
    }


def train(X):
    start = time.perf_counter()
    rbm = ContrastiveDivergenceRBM(FEW_UNITS, max_iter=1, random_state=0).fit(X)
    whole, seconds = time.perf_counter() - start, float(rbm.history_["seconds"][0])
    return {"seconds": seconds, "around": whole - seconds}


def child(kind, n_rows):
    """Train and grow on so many rows, and print what it took."""
    # compile, or load from the cache
    warm = dense_rows(500, N_FEATURES)
    train(warm)
    grow(warm)
    n_runs = 3 if n_rows <= 30000 else 1
    result = {"kind": kind, "n_rows": n_rows, "peak_before": peak_resident()}
    with tempfile.TemporaryDirectory() as folder:
        X = make_rows(kind, n_rows, folder)
        result["peak_data"] = peak_resident()
        runs = {EPOCH: lambda: train(X), STEP: lambda: grow(X)}
        if kind == "bool" and n_rows <= MAX_SEARCHED:
            runs[STEP_ON_ALL] = lambda: grow(X, n_search_rows=n_rows)
        for name, run in runs.items():
            fastest = min((run() for _ in range(n_runs)), key=lambda r: r["seconds"])
            result[name] = fastest | {"peak": peak_resident()}
    print(json.dumps(result))


def run_child(kind, n_rows):
    command = [sys.executable, __file__, "--child", kind, str(n_rows)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(output.stdout)


def against_samples(sizes):
    children = [run_child("bool", n) for n in sizes]
    largest = [children[-1], *(run_child(k, sizes[-1]) for k in ("memory map", "CSR"))]
    result = {"children": children, "largest": largest}
    for name, work in ((EPOCH, 1.0), (STEP, 0.0), (STEP_ON_ALL, 1.0)):
        have = [one for one in children if name in one]
        values = [one[name]["seconds"] for one in have]
        result[name] = curve([one["n_rows"] for one in have], values, work)
    around = [one[EPOCH]["around"] for one in children]
    result[CHECKS] = curve(sizes, around)
    return result


# -- output ----------------------------------------------------------------------


def print_curves(axis, curves):
    print(f"against {axis}:")
    for name in (n for n in curves if n not in ("children", "largest")):
        values = curves[name]
        print(
            f"  {name}: slope {values['slope']:.2f}, of the work {values['work']:.0f}"
        )
        for size, seconds in zip(values["sizes"], values["seconds"], strict=True):
            print(f"    {size:9,d} {seconds:10.4f} s")


def print_memory(samples):
    print("largest resident memory, MiB:")
    print("  data             rows   before     data    epoch   growth   limit")
    for one in samples["children"][:-1] + samples["largest"]:
        peaks = [one["peak_before"], one["peak_data"], one[EPOCH]["peak"]]
        peaks.append(one[STEP]["peak"])
        cells = "".join(f"{value / 2**20:9.0f}" for value in peaks)
        held = "held" if peaks[-1] < MEMORY_LIMIT else "BROKEN"
        print(f"  {one['kind']:10} {one['n_rows']:10,d}{cells}   {held}")


def save_figure(results, folder):
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    with figure_style():
        draw(results).savefig(path / "rbm_scaling.png", dpi=90)


def draw(results):
    """A panel for each axis, two in a row, so that labels are legible."""
    from matplotlib.figure import Figure

    axes = [axis for axis in SIZES if axis in results]
    n_rows = -(-len(axes) // 2)
    figure = Figure(figsize=(9.0, 3.8 * n_rows))
    panels = np.ravel(figure.subplots(n_rows, 2))
    for panel in panels[len(axes) :]:
        panel.remove()
    others = ("children", "largest")
    names = [n for axis in axes for n in results[axis] if n not in others]
    colors = {name: f"C{k}" for k, name in enumerate(dict.fromkeys(names))}
    for panel, axis in zip(panels, axes, strict=False):
        for name, values in results[axis].items():
            if name not in others:
                style = {"color": colors[name], "marker": "o", "markersize": 4}
                label = f"{name}: {values['slope']:.2f}"
                panel.loglog(values["sizes"], values["seconds"], **style, label=label)
        # whole decades, whose ticks are powers of ten
        low, high = np.log10(panel.get_ylim())
        panel.set_ylim(10.0 ** np.floor(low), 10.0 ** np.ceil(high))
        panel.set(xlabel=f"number of {axis}", ylabel="time (s)")
        # above the panel, where it covers no curve
        panel.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0))
    figure.suptitle("Time of each part, with the slope of the upper half", fontsize=11)
    return figure


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--axes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--output", help="file for the results as JSON")
    parser.add_argument("--figures", help="folder for the figure")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = parse()
    if arguments.child:
        child(arguments.child[0], int(arguments.child[1]))
        return
    sizes, budget = (QUICK_SIZES, 0.02) if arguments.quick else (SIZES, 1.0)
    results = {
        "quick": arguments.quick,
        "machine": {
            "python": platform.python_version(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "numpy": np.__version__,
        },
    }
    # first: a process starts with the largest resident memory of the one it came from
    if "samples" in arguments.axes:
        results["samples"] = against_samples(sizes["samples"])
        print_curves("samples", results["samples"])
        print_memory(results["samples"])
    for axis, run in (
        ("units", against_units),
        ("features", against_features),
        ("chains", against_chains),
    ):
        if axis in arguments.axes:
            results[axis] = run(sizes[axis], budget)
            print_curves(axis, results[axis])
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    if arguments.figures:
        save_figure(results, arguments.figures)


if __name__ == "__main__":
    with threadpool_limits(limits=1, user_api="blas"):
        main()
