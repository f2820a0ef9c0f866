"""RBMs without settings on simulated sets of rare features.

    python examples/benchmarks/rare_features.py --output rare_features.json

Visits of pages, baskets and words of texts, where most values are 0. Rows have a few
topics each, and as many draws of features as their length says. `FrankWolfeRBM` gets
training and validation rows and nothing else, three seeds. Beside it: independent
features, and mixtures of independent features by the EM algorithm, which stop where the
validation rows lose, with the number of components that the validation rows prefer.
Numbers are mean log-likelihoods of the test rows in nats.

``--sets`` runs some of the sets, ``--seeds`` another number of seeds.
"""

import argparse
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from binary_sets import ESTIMATORS, independent, run_defaults
from scipy.special import logsumexp

N_COMPONENTS = 5, 10, 20, 40, 80, 160
MAX_STEPS, CHECKED = 150, 5
# Loss of the validation rows after which EM ends, nats.
LOSS = 0.05


class Kind(NamedTuple):
    """Rows (training, validation, test), features, topics and how rows take them."""

    n_rows: tuple
    n_features: int
    n_topics: int
    mean_length: float
    """of the draws of a row, beside one"""
    topics_of_a_row: float
    """concentration: the smaller, the fewer topics has a row"""
    features_of_a_topic: float


SETS = {
    "visits": Kind((8800, 1200, 2000), 294, 25, 3.0, 0.03, 0.02),
    "baskets": Kind((10_000, 1500, 2500), 135, 15, 6.0, 0.1, 0.05),
    "words": Kind((1750, 220, 330), 1000, 20, 70.0, 0.1, 0.05),
}


def make_rows(kind, seed):
    """Training, validation and test rows, uint8."""
    rng = np.random.default_rng(seed)
    n, n_features = sum(kind.n_rows), kind.n_features
    topics = rng.dirichlet(np.full(n_features, kind.features_of_a_topic), kind.n_topics)
    # a tenth of each topic is what all have in common
    topics = 0.9 * topics + 0.1 * rng.dirichlet(np.full(n_features, 0.5))
    rows = np.zeros((n, n_features), dtype=np.uint8)
    for row in rows:
        parts = rng.dirichlet(np.full(kind.n_topics, kind.topics_of_a_row))
        length = 1 + rng.poisson(rng.gamma(2.0, kind.mean_length / 2.0))
        row[rng.choice(n_features, length, p=parts @ topics)] = 1
    return np.split(rows, np.cumsum(kind.n_rows[:-1]))


def mixture(data, n_components, seed=0):
    """Validation and test log-likelihood of a mixture of independent features."""
    train, validation, test = (rows.astype(float) for rows in data)
    base = train.mean(axis=0)
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(n_components, 0.3), len(train))
    best = -np.inf, -np.inf
    for number in range(MAX_STEPS):
        counts = weights.sum(axis=0)
        # one more row of the mean of all
        rates = (weights.T @ train + base + 0.01) / (counts[:, None] + 1.02)
        logs = np.log(rates) - np.log1p(-rates)
        bias = np.log1p(-rates).sum(axis=1) + np.log(counts + 0.1)
        bias -= np.log(counts.sum() + 0.1 * n_components)
        joint = train @ logs.T + bias
        weights = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        if number % CHECKED == CHECKED - 1:
            scores = (
                float(logsumexp(rows @ logs.T + bias, axis=1).mean())
                for rows in (validation, test)
            )
            score, of_test = scores
            if score < best[0] - LOSS:
                break
            best = max(best, (score, of_test))
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="file for the results as JSON")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    arguments = parser.parse_args()
    file = arguments.output
    results = json.loads(file.read_text()) if file and file.exists() else {}
    for name in arguments.sets:
        print(name, flush=True)
        data = make_rows(SETS[name], seed=0)
        tried = [(*mixture(data, n), n) for n in N_COMPONENTS]
        _, score, n_components = max(tried)
        results[name] = {
            "frequency": float(data[0].mean()),
            "independent": independent(data[0], data[2]),
            "mixture": {"n_components": n_components, "log_likelihood": score},
        }
        print("   ", results[name], flush=True)
        fits = run_defaults(ESTIMATORS["defaults"], data, arguments.seeds, [])
        for results[name]["defaults"] in fits:
            if file:
                file.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
