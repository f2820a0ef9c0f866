"""Training where all states of the features are listed."""

import numpy as np
import pytest
from grids import first_by_default
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM


def xor(n_rows, seed):
    rng = np.random.default_rng(seed)
    X = (rng.random((n_rows, 3)) < 0.5).astype(np.uint8)
    X[:, 2] = X[:, 0] ^ X[:, 1]
    return X


RBMS = [FrankWolfeRBM(), ContrastiveDivergenceRBM(16)]


@pytest.mark.parametrize("model", RBMS, ids=["FrankWolfeRBM", "ContrastiveDivergence"])
@pytest.mark.parametrize("seed", first_by_default(range(3)))
def test_what_no_pair_tells_is_learned(model, seed):
    """Three features of which two decide the third: four states are alike."""
    model = clone(model).set_params(random_state=seed).fit(xor(500, seed))
    assert model.score(xor(1000, seed + 10)) == pytest.approx(-2 * np.log(2), abs=0.02)
    # there is no step size, and chains are not asked what they remember
    assert np.isnan(model.history_["learning_rate"][-1])
    assert model.n_replicas_ == 1


def test_it_depends_on_neither_threads_nor_types():
    X = xor(200, 0)
    model = ContrastiveDivergenceRBM(8, max_updates=200, random_state=0)
    one = clone(model).fit(X)
    for rows, n_jobs in ((X, 2), (X.astype(np.float64), 1), (X.astype(bool), 1)):
        other = clone(model).set_params(n_jobs=n_jobs).fit(rows)
        assert_array_equal(one.components_, other.components_)


@pytest.mark.parametrize(
    "options",
    [
        {"n_gibbs_steps": 1},
        {"learning_rate": 0.1},
        {"persistent": False},
        {"binarize": None},
    ],
)
def test_who_asks_for_chains_gets_them(options):
    """And grey values are no states."""
    X = 0.9 * xor(100, 0) if "binarize" in options else xor(100, 0)
    model = ContrastiveDivergenceRBM(4, max_updates=200, random_state=0, **options)
    assert (model.fit(X).history_["learning_rate"] > 0.0).any()


@pytest.mark.filterwarnings("ignore:Nothing was learned")
@pytest.mark.parametrize("n_sets", first_by_default([3, 10]))
def test_features_that_are_noise_stay_independent(n_sets):
    """Most sets of 100 rows: what validation rows say is chance."""
    losses = []
    for seed in range(n_sets):
        rng = np.random.default_rng(seed)
        X, others = (rng.random((n, 5)) < 0.4 for n in (100, 3000))
        rates = X.mean(axis=0)
        independent = (np.log(rates) * others + np.log1p(-rates) * ~others).sum(axis=1)
        model = ContrastiveDivergenceRBM(8, random_state=seed).fit(X)
        losses.append(independent.mean() - model.score(others))
    assert np.median(losses) < 0.01
