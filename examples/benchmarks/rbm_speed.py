"""What the RBMs' work costs, beside its matrix products and beside other packages.

    python examples/benchmarks/rbm_speed.py --output rbm_speed.json \
        --torch-python ~/venvs/torch/bin/python

Everything is a ratio of times taken in turn, in one run: the median over rounds, each
of which times every contender once, in an order that turns round. ``--parts`` runs some
of

- epoch: an epoch of contrastive divergence on 10,000 x 784 (13 % ones), 500 units,
  batches of 100, float32, at initial weights; the reference is the dense matrix
  products of these shapes alone, without any sampling;
- trained: the same on MNIST and at the weights of a short fit, where hidden states are
  sparser; left out where the images are not in SKBAYESNN_DATA;
- density: the same at initial weights for shares of ones from .02 to .5, beside
  scikit-learn alone;
- ais: a temperature of annealed importance sampling, 500 chains, beside its two matrix
  products with one or all BLAS threads, whichever is faster; ``--full`` runs all of
  the 14,500;
- lbfgs: the data term of the search for a unit, 50,000 x 784;
- inference: free_energy, transform and score_samples of 10,000 x 784.

``--torch-python`` is an interpreter that has the package ``rbms`` (PyTorch): its epochs
are timed in turn with the others', in a process of its own, by its own step
(``fit_batch_pcd``), without the files that its trainer writes.
"""

import argparse
import inspect
import json
import os
import platform
import subprocess
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import scipy
import sklearn
from sklearn.neural_network import BernoulliRBM
from threadpoolctl import threadpool_info, threadpool_limits

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn.datasets import fetch_mnist
from skbayesnn.rbm import threads
from skbayesnn.rbm.learning import unit_search as fw

N_FEATURES = 784
SHARE_OF_ONES = 0.13
SHARES = (0.02, 0.13, 0.3, 0.5)
BATCH = 100
PAPER_TEMPERATURES = 14500
LEARNING_RATE = 0.1
# Threads that wait for work spin for a while, and would slow the next contender.
PAUSE = 0.2
# Sweeps of the matrix products of AIS that are timed together.
N_SWEEPS = 30


def timed(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def in_turn(contenders, n_rounds):
    """Seconds of each label, round by round.

    A contender is a function that returns seconds by label. The first round compiles
    and fills caches, and does not count.
    """
    runs = {}
    for number in range(n_rounds + 1):
        for contender in contenders[:: -1 if number % 2 else 1]:
            time.sleep(PAUSE)
            for label, seconds in contender().items():
                runs.setdefault(label, []).append(seconds)
    return {label: seconds[1:] for label, seconds in runs.items()}


def blas_threads(n_threads):
    """A context with so many BLAS threads; None for what the library chose."""
    if n_threads is None:
        return nullcontext()
    return threadpool_limits(limits=n_threads, user_api="blas")


def blas_pools():
    return [pool for pool in threadpool_info() if pool["user_api"] == "blas"]


def ratio(runs, label, reference):
    """Median ratio within rounds; None without one of them."""
    if label not in runs or reference not in runs:
        return None
    return float(np.median(np.divide(runs[label], runs[reference])))


def summarise(runs, references):
    """Medians, and median ratios to the references that were timed."""
    return {
        "seconds": {label: float(np.median(values)) for label, values in runs.items()},
        "ratio": {
            label: {name: ratio(runs, label, name) for name in references}
            for label in runs
        },
        "runs": runs,
    }


# -- an epoch of contrastive divergence --------------------------------------------


class Start:
    """Data, and the weights that an epoch starts from."""

    def __init__(self, X, weights, hidden, visible):
        self.X = X
        self.arrays = tuple(
            np.ascontiguousarray(a, dtype=np.float32)
            for a in (weights, hidden, visible)
        )


def initial_start(n_rows, n_units, share_of_ones=SHARE_OF_ONES):
    rng = np.random.default_rng(0)
    X = (rng.random((n_rows, N_FEATURES)) < share_of_ones).astype(np.float32)
    weights = 0.01 * rng.standard_normal((n_units, N_FEATURES))
    odds = np.log(share_of_ones) - np.log1p(-share_of_ones)
    return Start(X, weights, np.zeros(n_units), np.full(N_FEATURES, odds))


def trained_start(n_rows, n_units):
    """MNIST and the weights of ten epochs; None without the images."""
    try:
        images = fetch_mnist(download_if_missing=False).data
    except OSError:
        return None
    X = (images[:n_rows] > 127).astype(np.float32)
    rbm = ContrastiveDivergenceRBM(n_units, max_iter=10, random_state=0).fit(X)
    return Start(X, rbm.components_, rbm.intercept_hidden_, rbm.intercept_visible_)


def product_epoch(start):
    """The dense products of an epoch of CD-1 alone, into memory that is there."""
    weights = start.arrays[0]
    n_units, n_features = weights.shape
    rng = np.random.default_rng(1)
    # data and chains below each other: one product gives both outer products
    states = (rng.random((2 * BATCH, n_features)) < 0.5).astype(np.float32)
    means = rng.random((2 * BATCH, n_units), dtype=np.float32)
    gradient = np.empty_like(weights)
    visible = np.empty((BATCH, n_features), dtype=np.float32)
    hidden = np.empty((BATCH, n_units), dtype=np.float32)

    def products():
        for _ in range(len(start.X) // BATCH):
            np.matmul(states[:BATCH], weights.T, out=hidden)
            np.matmul(means[:BATCH], weights, out=visible)
            np.matmul(states[BATCH:], weights.T, out=hidden)
            np.matmul(means.T, states, out=gradient)

    return lambda: {"products": timed(products)}


def our_epoch(start, label, **parameters):
    """The epoch by the record of the fit, and the fit with all that is around it."""

    def epoch():
        rbm = ContrastiveDivergenceRBM(
            init=start.arrays,
            max_iter=1,
            batch_size=BATCH,
            learning_rate=LEARNING_RATE,
            random_state=0,
            **parameters,
        )
        seconds = timed(lambda: rbm.fit(start.X))
        return {label: rbm.history_["seconds"][0], f"{label}, fit": seconds}

    return epoch


def scikit_learn_epoch(start):
    """Persistent contrastive divergence by batches, as its ``fit`` goes about it."""
    weights, hidden, visible = start.arrays

    def epoch():
        rbm = BernoulliRBM(len(weights), learning_rate=LEARNING_RATE, batch_size=BATCH)
        # no public way leads from given weights to another epoch in float32
        rbm.components_ = weights.copy()
        rbm.intercept_hidden_ = hidden.copy()
        rbm.intercept_visible_ = visible.copy()
        rbm.h_samples_ = np.zeros((BATCH, len(weights)), dtype=np.float32)
        random = np.random.mtrand.RandomState(0)

        def batches():
            for first in range(0, len(start.X), BATCH):
                rbm._fit(start.X[first : first + BATCH], random)

        return {"scikit-learn": timed(batches)}

    return epoch


def torch_worker():
    """Time an epoch for each line "kind threads"; sent to another interpreter."""
    import sys
    import time
    from importlib.metadata import version

    import numpy as np
    import torch
    from rbms.bernoulli_bernoulli.classes import BBRBM
    from rbms.training.pcd import fit_batch_pcd

    given = {name: torch.from_numpy(a) for name, a in np.load(sys.argv[1]).items()}
    sample_weights = torch.ones(len(given["X"]))
    print(f"torch {torch.__version__}, rbms {version('rbms')}", flush=True)
    for line in sys.stdin:
        kind, threads = line.split()
        torch.set_num_threads(int(threads))
        params = BBRBM(
            weight_matrix=given["weights"].T.contiguous().clone(),
            vbias=given["visible"].clone(),
            hbias=given["hidden"].clone(),
        )
        params.init_grad()
        optimizer = torch.optim.SGD(params.parameters(), lr=0.01, maximize=True)
        batch_size = int(given["batch_size"])
        with torch.no_grad():
            chains = params.init_chains(batch_size)
            start = time.perf_counter()
            for index in torch.randperm(len(given["X"])).split(batch_size):
                batch = given["X"][index], sample_weights[index]
                if kind == "CD-1":
                    chains = params.init_chains(
                        len(index), weights=batch[1], start_v=batch[0]
                    )
                optimizer.zero_grad(set_to_none=False)
                chains, _ = fit_batch_pcd(batch, chains, params, 1, 1.0)
                optimizer.step()
        print(time.perf_counter() - start, flush=True)


class Torch:
    """The other interpreter, with the data and the weights of a `Start`."""

    def __init__(self, python, start, folder):
        path = Path(folder) / "start.npz"
        weights, hidden, visible = start.arrays
        np.savez(
            path,
            X=start.X,
            weights=weights,
            hidden=hidden,
            visible=visible,
            batch_size=BATCH,
        )
        source = f"{inspect.getsource(torch_worker)}\n\ntorch_worker()\n"
        self.process = subprocess.Popen(
            [python, "-c", source, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.versions = self._read()

    def epoch(self, kind, n_threads):
        def run():
            self.process.stdin.write(f"{kind} {n_threads}\n")
            self.process.stdin.flush()
            return {f"rbms {kind}": float(self._read())}

        return run

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def _read(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("The interpreter of --torch-python ended; see above.")
        return line.strip()


def compare_epochs(start, arguments):
    """Ratios with the threads that BLAS chose, and with one."""
    result = {"fraction_of_ones": float(start.X.mean())}
    with tempfile.TemporaryDirectory() as folder:
        torch = None
        if arguments.torch_python:
            torch = Torch(arguments.torch_python, start, folder)
            result["torch"] = torch.versions
        for name, n_threads in (("all BLAS threads", None), ("one BLAS thread", 1)):
            # as many of our own threads as others have of BLAS
            n_jobs = n_threads or os.cpu_count()
            contenders = [
                product_epoch(start),
                scikit_learn_epoch(start),
                our_epoch(start, "CD-1 centred", persistent=False, n_jobs=n_jobs),
                our_epoch(
                    start,
                    "CD-1 plain",
                    persistent=False,
                    centered=False,
                    n_jobs=n_jobs,
                ),
                our_epoch(start, "PCD centred", n_jobs=n_jobs),
                our_epoch(start, "PCD plain", centered=False, n_jobs=n_jobs),
            ]
            if torch:
                n = n_threads or max(pool["num_threads"] for pool in blas_pools())
                contenders += [torch.epoch(kind, n) for kind in ("CD-1", "PCD")]
            with blas_threads(n_threads):
                runs = in_turn(contenders, arguments.rounds)
            references = ["products", "scikit-learn", "rbms CD-1", "rbms PCD"]
            result[name] = summarise(runs, references)
        if torch:
            torch.close()
    return result


def part_density(arguments):
    """One or all cores, as many for BLAS as for our own products."""
    result = {}
    for share in SHARES:
        start = initial_start(arguments.rows, arguments.units, share)
        result[str(share)] = {}
        for name, n_threads in (("all BLAS threads", None), ("one BLAS thread", 1)):
            n_jobs = n_threads or os.cpu_count()
            contenders = [
                product_epoch(start),
                scikit_learn_epoch(start),
                our_epoch(start, "CD-1", persistent=False, n_jobs=n_jobs),
                our_epoch(start, "PCD-1", n_jobs=n_jobs),
            ]
            with blas_threads(n_threads):
                runs = in_turn(contenders, arguments.rounds)
            result[str(share)][name] = summarise(runs, ["products", "scikit-learn"])
    return result


def print_density(part):
    """Ratios of medians: to the dense products, and to scikit-learn."""
    print("  ones  threads           scikit-learn s    CD-1  / scikit-learn   PCD-1")
    for share in map(str, SHARES):
        for name in ("all BLAS threads", "one BLAS thread"):
            seconds = part[share][name]["seconds"]
            reference = seconds["scikit-learn"]
            ratios = [seconds[label] / reference for label in ("CD-1", "PCD-1")]
            print(
                f"  {share:5} {name:18} {reference:13.3f}"
                f" {seconds['CD-1']:7.3f} {ratios[0]:16.2f} {ratios[1]:7.2f}"
            )


def part_epoch(arguments):
    return compare_epochs(initial_start(arguments.rows, arguments.units), arguments)


def part_trained(arguments):
    start = trained_start(arguments.rows, arguments.units)
    if start is None:
        print("trained: left out, no MNIST in SKBAYESNN_DATA")
        return None
    return compare_epochs(start, arguments)


def print_epochs(part):
    print(f"  {100 * part['fraction_of_ones']:.0f} % ones", part.get("torch", ""))
    for name in ("all BLAS threads", "one BLAS thread"):
        print(f"  {name:24} seconds  / products  / scikit-learn  / rbms")
        for label, seconds in part[name]["seconds"].items():
            ratios = part[name]["ratio"][label]
            theirs = ratios["rbms CD-1" if "CD-1" in label else "rbms PCD"]
            shown = [ratios["products"], ratios["scikit-learn"], theirs]
            cells = [f"{r:9.2f}" if r is not None else "        -" for r in shown]
            print(
                f"    {label:21} {seconds:8.4f}  {cells[0]}   {cells[1]}    {cells[2]}"
            )


# -- annealed importance sampling and inference --------------------------------------


def fitted_model(arguments):
    """Trained on MNIST, or weights of sd .1, with the rows that belong to it."""
    start = trained_start(arguments.rows, arguments.units)
    kind = "trained on MNIST"
    if start is None:
        start, kind = initial_start(arguments.rows, arguments.units), "random"
        start.arrays = (10.0 * start.arrays[0], *start.arrays[1:])
    rbm = BernoulliRBM(len(start.arrays[0]))
    rbm.components_, rbm.intercept_hidden_, rbm.intercept_visible_ = start.arrays
    return ContrastiveDivergenceRBM.from_bernoulli_rbm(rbm, start.X), start.X, kind


def product_sweep(weights, n_chains, n_threads, label):
    """The two products of a temperature."""
    n_units, n_features = weights.shape
    rng = np.random.default_rng(1)
    v = (rng.random((n_chains, n_features)) < SHARE_OF_ONES).astype(np.float32)
    h = (rng.random((n_chains, n_units)) < 0.5).astype(np.float32)
    x, y = np.empty_like(h), np.empty_like(v)

    def sweeps():
        for _ in range(N_SWEEPS):
            np.matmul(v, weights.T, out=x)
            np.matmul(h, weights, out=y)

    def contender():
        with blas_threads(n_threads):
            return {label: timed(sweeps) / N_SWEEPS}

    return contender


def annealing(model, n_chains, n_betas, n_jobs):
    def contender():
        seconds = timed(
            lambda: model.log_partition(
                "ais", betas=n_betas, n_chains=n_chains, n_jobs=n_jobs
            )
        )
        return {f"AIS, n_jobs={n_jobs}": seconds / (n_betas - 1)}

    return contender


def part_ais(arguments):
    """Seconds of a temperature."""
    model, _, kind = fitted_model(arguments)
    n_chains = arguments.chains
    weights = model.components_
    contenders = [
        product_sweep(weights, n_chains, 1, "products, one thread"),
        product_sweep(weights, n_chains, None, "products, all threads"),
        annealing(model, n_chains, arguments.betas, 1),
        annealing(model, n_chains, arguments.betas, 2),
    ]
    runs = in_turn(contenders, arguments.rounds)
    both = [runs["products, one thread"], runs["products, all threads"]]
    runs["products"] = np.min(both, axis=0).tolist()
    result = summarise(runs, ["products"])
    result |= {"model": kind, "n_chains": n_chains, "betas": arguments.betas}
    result["extrapolated"] = {
        label: PAPER_TEMPERATURES * seconds
        for label, seconds in result["seconds"].items()
    }
    if arguments.full:
        for n_jobs in (1, 2):
            start = time.perf_counter()
            answer = model.log_partition(
                betas="paper", n_chains=n_chains, n_jobs=n_jobs
            )
            result[f"full, n_jobs={n_jobs}"] = {
                "seconds": time.perf_counter() - start,
                **answer._asdict(),
            }
    return result


def print_ais(part):
    print(f"  {part['n_chains']} chains, model {part['model']}")
    print(f"    {'':22} ms a temperature  / products  14,500 of them")
    for label, seconds in part["seconds"].items():
        value, whole = part["ratio"][label]["products"], part["extrapolated"][label]
        print(f"    {label:22} {1e3 * seconds:16.3f}  {value:10.2f}  {whole:10.1f} s")
    for label in (name for name in part if name.startswith("full")):
        print(f"    {label}: {part[label]['seconds']:.1f} s")


def part_inference(arguments):
    """What a fitted model tells of rows, from bytes and from float32."""
    model, X, kind = fitted_model(arguments)
    weights, bits = model.components_, X > 0.5
    # looked up by score_samples, estimated once
    model._estimates["log_partition"] = model.log_partition(betas=3).log_partition
    x = np.empty((len(X), len(weights)), dtype=np.float32)
    result = {"model": kind}
    for name, n_threads in (("all BLAS threads", None), ("one BLAS thread", 1)):
        contenders = [
            lambda: {"product": timed(lambda: np.matmul(X, weights.T, out=x))}
        ]
        for method in ("free_energy", "transform", "score_samples"):
            for label, rows in (("bool", bits), ("float32", X)):
                contenders.append(
                    lambda method=method, rows=rows, label=f"{method}, {label}": {
                        label: timed(lambda: getattr(model, method)(rows))
                    }
                )
        with blas_threads(n_threads):
            runs = in_turn(contenders, arguments.rounds)
        result[name] = summarise(runs, ["product"])
    return result


def print_inference(part):
    for name in ("all BLAS threads", "one BLAS thread"):
        print(f"  {name:24} seconds  / product")
        for label, seconds in part[name]["seconds"].items():
            value = part[name]["ratio"][label]["product"]
            print(f"    {label:21} {seconds:8.4f}  {value:8.2f}")


# -- the search for a unit -------------------------------------------------------------


def lbfgs_term(n_rows, n_rounds, n_jobs):
    """An evaluation for L-BFGS beside its two products in float32."""
    rng = np.random.default_rng(0)
    bits = (rng.random((n_rows, N_FEATURES)) < SHARE_OF_ONES).astype(np.uint8)
    V = bits.astype(np.float32)
    # next to no draws from the model: the data term alone
    samples = fw.Samples(fw.pack(bits), fw.pack(bits[:2]))
    data, objective = samples.data, fw.Objective("likelihood", 0.1, None)
    w = 0.1 * rng.standard_normal(N_FEATURES + 1)
    w32, s = w[:-1].astype(np.float32), rng.random(n_rows, dtype=np.float32)

    def products():
        return {"products": timed(lambda: (V @ w32, s @ V))}

    def passes():
        with threads.using(n_jobs):
            both = timed(lambda: (data.inputs(w32, 0.0), data.weighted_sum(s)))
        return {"the same by bits": both}

    def evaluation():
        with threads.using(n_jobs):
            seconds = timed(lambda: fw.value_and_gradient(objective, samples, w, 0.5))
        return {"value_and_gradient": seconds}

    def packing():
        return {"packing, once a search": timed(lambda: fw.pack(bits))}

    contenders = [products, passes, evaluation, packing]
    return summarise(in_turn(contenders, n_rounds), ["products"])


def part_lbfgs(arguments):
    result = {}
    for name, n_threads in (("all BLAS threads", None), ("one BLAS thread", 1)):
        with blas_threads(n_threads):
            n_jobs = n_threads or os.cpu_count()
            result[name] = lbfgs_term(arguments.search_rows, arguments.rounds, n_jobs)
    return result


def print_lbfgs(part):
    for name in ("all BLAS threads", "one BLAS thread"):
        print(f"  {name:24}      ms  / products")
        for label, seconds in part[name]["seconds"].items():
            value = part[name]["ratio"][label]["products"]
            print(f"    {label:21} {1e3 * seconds:8.3f}  {value:8.2f}")


PARTS = {
    "epoch": (part_epoch, print_epochs),
    "trained": (part_trained, print_epochs),
    "density": (part_density, print_density),
    "ais": (part_ais, print_ais),
    "lbfgs": (part_lbfgs, print_lbfgs),
    "inference": (part_inference, print_inference),
}


def machine():
    return {
        "python": platform.python_version(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "blas": [
            {key: pool[key] for key in ("internal_api", "version", "num_threads")}
            for pool in blas_pools()
        ],
    }


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--torch-python", help="interpreter that has the package rbms")
    parser.add_argument("--full", action="store_true", help="all 14,500 temperatures")
    parser.add_argument("--quick", action="store_true", help="small sizes, two rounds")
    parser.add_argument("--output", help="file for the results as JSON")
    arguments = parser.parse_args()
    sizes = {"rows": 10000, "units": 500, "chains": 500, "betas": 300}
    sizes["search_rows"] = 50000
    if arguments.quick:
        sizes = {"rows": 600, "units": 50, "chains": 50, "betas": 10}
        sizes["search_rows"], arguments.rounds = 2000, 2
    for name, value in sizes.items():
        setattr(arguments, name, value)
    return arguments


def main():
    arguments = parse()
    results = {}
    if arguments.output and os.path.exists(arguments.output):
        with open(arguments.output, encoding="utf-8") as file:
            results = json.load(file)
    results["machine"] = machine()
    if not arguments.torch_python:
        print("rbms: left out, no --torch-python")
    for name in arguments.parts:
        part, show = PARTS[name]
        result = part(arguments)
        if result is None:
            continue
        results[name] = {"rounds": arguments.rounds, "quick": arguments.quick} | result
        print(f"{name}:")
        show(results[name])
        if arguments.output:
            with open(arguments.output, "w", encoding="utf-8") as file:
                json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
