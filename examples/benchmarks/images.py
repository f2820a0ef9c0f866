"""RBMs that train by themselves, on images.

    python examples/benchmarks/images.py --output images.json

MNIST binary above 127, 50,000 images to learn from and 10,000 that decide when training
ends, and Caltech-101 Silhouettes in the parts of its authors. Mean log-likelihoods of
the test images in nats, by annealing in both directions, and not above what the
training images allow. The test images are read once for each number; nothing is chosen
on them. One seed.

- ``chosen``: the number of units is chosen as well.
- ``fixed``: 700 units for Caltech-101.
- ``drawn``: 500 units for MNIST whose pixels are 1 with the probability of their grey
  value, one draw (seed 28) of all images, with the default limit of the updates and a
  larger one. These images are harder to model than those above: the likelihoods cannot
  be compared.

``--parts`` runs some of them; their values replace those in an output file that exists.
All of them take two hours on one core.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from binary_sets import N_JOBS, decided, fit, likelihoods
from rbm import load

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.datasets import fetch_mnist

N_TRAINING = 50_000
DRAW_SEED = 28
LARGE_LIMIT = 150_000


def digits(binarize):
    """Training, validation and test rows, by a function of grey values up to 255."""
    data = fetch_mnist()
    images, test = binarize(data.data), binarize(data.test.data)
    order = np.random.default_rng(0).permutation(len(images))
    return images[order[:N_TRAINING]], images[order[N_TRAINING:]], test


def run(make, data, **parameters):
    """A fit, and the likelihoods of the test images."""
    train, validation, test = data
    model = make(random_state=0, n_jobs=N_JOBS, **parameters)
    found = fit(model, train, X_val=validation) | decided(model)
    return found | likelihoods(model, test, train)


def chosen():
    yield "MNIST", run(FrankWolfeRBM, digits(lambda grey: grey > 127))
    yield "Caltech-101", run(FrankWolfeRBM, load("caltech"))


def fixed():
    found = run(ContrastiveDivergenceRBM, load("caltech"), n_components=700)
    yield "Caltech-101, 700 units", found


def drawn():
    rng = np.random.default_rng(DRAW_SEED)
    data = digits(lambda grey: rng.random(grey.shape) < grey / 255)
    name, make = "MNIST, drawn pixels, 500 units", ContrastiveDivergenceRBM
    yield name, run(make, data, n_components=500)
    found = run(make, data, n_components=500, max_updates=LARGE_LIMIT)
    yield f"{name}, `max_updates={LARGE_LIMIT:_}`", found


PARTS = {"chosen": chosen, "fixed": fixed, "drawn": drawn}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--output", type=Path, help="file for the results as JSON")
    arguments = parser.parse_args()
    file = arguments.output
    results = json.loads(file.read_text()) if file and file.exists() else {}
    for part in arguments.parts:
        for name, found in PARTS[part]():
            print(
                f"{name}: {found['log_likelihood']:.2f} nats, {found['forward']:.2f} "
                f"forward and {found['reverse']:.2f} back, {found['n_components']} "
                f"units, {found['n_updates']} updates, {found['seconds']:.0f} s",
                flush=True,
            )
            results[name] = found
            if file:
                # what is finished outlives what stops the others
                file.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
