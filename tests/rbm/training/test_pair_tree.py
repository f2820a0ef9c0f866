"""The tree of Chow and Liu as an RBM, by enumeration and by known trees."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.rbm import model as rbm_model
from skbayesnn.rbm.likelihood.exact import log_partition
from skbayesnn.rbm.states import all_states
from skbayesnn.rbm.training import pair_tree
from skbayesnn.rbm.training.pair_tree import tree_model
from skbayesnn.rbm.training.rows import Rows

pytestmark = pytest.mark.usefixtures("few_weighted_states")

# Probabilities that a feature repeats, or with the second half reverses, the one
# before it.
REPEATS = np.array([0.9, 0.8, 0.95, 0.1, 0.2, 0.3, 0.85])


def chain(n_rows, repeats=REPEATS, seed=0):
    """Rows of a Markov chain, and the log-likelihood of each."""
    rng = np.random.default_rng(seed)
    V = np.empty((n_rows, len(repeats) + 1), dtype=bool)
    V[:, 0] = rng.random(n_rows) < 0.3
    logs = np.where(V[:, 0], np.log(0.3), np.log(0.7))
    for k, probability in enumerate(repeats):
        same = rng.random(n_rows) < probability
        V[:, k + 1] = V[:, k] == same
        logs += np.log(np.where(same, probability, 1.0 - probability))
    return V, logs


def rows_of(X, threshold=0.5):
    return Rows(X, threshold)


def pairs_of(rbm):
    return sorted(tuple(np.flatnonzero(w).tolist()) for w in rbm.weights)


def log_probabilities(rbm, V):
    values = -rbm_model.free_energy(rbm, np.asarray(V, dtype=np.float32))
    return values - log_partition(rbm)


def test_the_model_has_the_joint_probabilities_of_all_pairs_of_the_tree():
    X, _ = chain(400)
    rbm = tree_model(rows_of(X))
    assert pairs_of(rbm) == [(k, k + 1) for k in range(len(REPEATS))]
    states = all_states(X.shape[1])
    p = np.exp(log_probabilities(rbm, states))
    assert_allclose(p.sum(), 1.0, rtol=1e-4)
    found = (states.T * p) @ states
    for i, j in pairs_of(rbm):
        # one row of 401 is that of the prior
        assert_allclose(found[i, j], (X[:, i] & X[:, j]).mean(), atol=3e-3)
    assert_allclose(np.diagonal(found), X.mean(axis=0), atol=3e-3)


def test_a_known_tree_is_learned_from_many_rows():
    X, logs = chain(20000, seed=1)
    values = log_probabilities(tree_model(rows_of(X)), X)
    # with 15 parameters, by half of one over the number of rows
    assert abs((values - logs).mean()) < 2e-3


@pytest.mark.parametrize("seed", range(10))
def test_independent_features_have_no_pairs(seed):
    rng = np.random.default_rng(seed)
    X = rng.random((300, 30)) < rng.uniform(0.02, 0.6, 30)
    # ten data sets of 435 pairs, each of which errs with a probability of 3e-4: one
    # pair in all of them by chance
    assert len(tree_model(rows_of(X)).weights) <= 2


def test_constant_features_and_copies_are_finite():
    rng = np.random.default_rng(0)
    x = rng.random(200) < 0.1
    X = np.column_stack([x, x, x, ~x, np.zeros(200, bool), np.ones(200, bool)])
    rbm = tree_model(rows_of(X))
    assert len(rbm.weights) == 3
    values = log_probabilities(rbm, X)
    expected = np.log(np.where(x, x.mean(), 1.0 - x.mean()))
    # but for what the prior and constant features leave to other states
    assert np.abs(values - expected).max() < 0.1


def test_the_pairs_with_most_information_are_kept():
    X, _ = chain(2000)
    rbm = tree_model(rows_of(X), max_units=3)
    # those with 0.95, 0.9 and 0.1
    assert pairs_of(rbm) == [(0, 1), (2, 3), (3, 4)]


def rare_phrases(n_rows, seed):
    """Rare groups of features that come together, but for one in fourteen."""
    rng = np.random.default_rng(seed)
    groups = np.arange(200) // 4
    return (rng.random((n_rows, 50)) < 0.01)[:, groups] & (
        rng.random((n_rows, 200)) < 0.93
    )


def test_the_prior_is_the_one_by_which_rows_tell_most_of_each_other():
    """Against trees of all rows but one, each with the same pairs and prior."""
    X = rare_phrases(60, 0)[:, :24]
    counts = pair_tree._count(rows_of(X))
    i, j = np.array([0, 1, 4, 4, 20]), np.array([1, 2, 5, 6, 21])
    values = []
    for uniform_rows in pair_tree._UNIFORM_ROWS:
        total = 0.0
        for x in X.astype(float):
            others = counts._replace(
                n_rows=len(X) - 1,
                both=counts.both - np.outer(x, x),
                single=counts.single - x,
            )
            both, single = others.probabilities(uniform_rows)
            total += np.log(np.where(x, single, 1.0 - single)).sum()
            for a, b in zip(i, j, strict=True):
                p = np.where(x[a], single[a], 1.0 - single[a])
                q = np.where(x[b], single[b], 1.0 - single[b])
                ones = both[a, b]
                joint = [
                    [1.0 - single[a] - single[b] + ones, single[b] - ones],
                    [single[a] - ones, ones],
                ]
                total += np.log(joint[int(x[a])][int(x[b])] / (p * q))
        values.append(total)
    best = pair_tree._UNIFORM_ROWS[int(np.argmax(values))]
    assert 0.0 < best < pair_tree._UNIFORM_ROWS[-1]
    assert pair_tree._uniform_rows(counts, i, j) == best


def test_rare_features_that_come_together_have_other_states_too(monkeypatch):
    """A prior of independent features leaves next to nothing to a part of a phrase."""
    train, test = rows_of(rare_phrases(1000, 0)), rare_phrases(1000, 1)
    score = log_probabilities(tree_model(train), test).mean()
    monkeypatch.setattr(pair_tree, "_UNIFORM_ROWS", (0.0,))
    assert score > log_probabilities(tree_model(train), test).mean() + 0.05


def test_where_all_states_are_frequent_the_prior_hardly_matters(monkeypatch):
    X, _ = chain(1000)
    score = log_probabilities(tree_model(rows_of(X)), X).mean()
    monkeypatch.setattr(pair_tree, "_UNIFORM_ROWS", (0.0,))
    other = log_probabilities(tree_model(rows_of(X)), X).mean()
    assert score == pytest.approx(other, abs=0.01)


def test_sparse_rows_have_the_same_tree():
    X, _ = chain(500)
    whole = tree_model(rows_of(X.astype(np.uint8)))
    other = tree_model(rows_of(sp.csr_matrix(X.astype(float))))
    for one, two in zip(whole[:3], other[:3], strict=True):
        assert_array_equal(one, two)


def test_grey_values_are_probabilities():
    X, _ = chain(3000)
    grey = 0.05 + 0.9 * X
    rbm = tree_model(rows_of(grey, threshold=None))
    rng = np.random.default_rng(0)
    drawn = tree_model(rows_of(rng.random((30 * len(X), 8)) < np.tile(grey, (30, 1))))
    states = all_states(8)
    difference = log_probabilities(rbm, states) - log_probabilities(drawn, states)
    assert np.abs(difference).max() < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_fit_keeps_a_tree_that_rows_cannot_tell_from_the_truth(seed):
    X, _ = chain(400, np.tile(REPEATS, 3), seed)
    test, logs = chain(4000, np.tile(REPEATS, 3), seed + 100)
    model = FrankWolfeRBM(random_state=seed).fit(X[:300], X_val=X[300:])
    of_tree = tree_model(rows_of(X[:300]))
    assert_array_equal(model.n_components_, len(of_tree.weights))
    assert model.score(test) > logs.mean() - 0.15


def test_copies_cost_the_tree_next_to_nothing():
    rng = np.random.default_rng(0)
    X, logs = chain(800)
    alone, copied = X, np.repeat(X, rng.integers(1, 3, X.shape[1]), axis=1)
    scores = [
        log_probabilities(tree_model(rows_of(V[:300])), V[300:]).mean()
        for V in (alone, copied)
    ]
    assert abs(scores[0] - logs[300:].mean()) < 0.1
    # a copy adds a pair, whose prior leaves half a row of 301 to other states
    assert scores[0] - 0.02 < scores[1] < scores[0]


@pytest.mark.slow
def test_the_tree_of_a_result_is_that_of_all_rows():
    X, _ = chain(400, np.tile(REPEATS, 3))
    tuner = ContrastiveDivergenceRBM(max_updates=1000)
    model = FrankWolfeRBM(fine_tune=tuner, random_state=0).fit(X)
    assert model.n_updates_ == 0
    of_all = tree_model(rows_of(X))
    # units with weights: the tree of the rows that were trained on may have one more
    units = model.components_[np.abs(model.components_).max(axis=1) > 0.5]
    assert pairs_of(model_of(units)) == pairs_of(of_all)
    assert_allclose(np.sort(units, axis=None), np.sort(of_all.weights, axis=None))


def model_of(weights):
    return rbm_model.make_rbm(
        weights, np.zeros(len(weights)), np.zeros(weights.shape[1])
    )


def names_of_stages(X, capsys):
    """Of a fit whose stages are short, as the rows that it is checked by are its own.

    It would gain to the last update.
    """
    tuner = ContrastiveDivergenceRBM(max_updates=100)
    model = FrankWolfeRBM(fine_tune=tuner, random_state=0, verbose=True)
    model.fit(X, X_val=X)
    return {line.split(":")[0] for line in capsys.readouterr().out.splitlines()}


@pytest.mark.slow
def test_there_is_no_tree_with_more_pairs_than_rows(capsys):
    """Columns that are copies: 29 pairs, of 60 and of 20 rows."""
    rng = np.random.default_rng(0)
    x = rng.random((60, 1)) < 0.5
    X = np.repeat(x, 30, axis=1)
    assert "tree of 29 pairs" in names_of_stages(X, capsys)
    assert not any("tree" in name for name in names_of_stages(X[:20], capsys))


def test_more_features_than_the_limit_have_no_tree(monkeypatch):
    X, _ = chain(200)
    monkeypatch.setattr(pair_tree, "MAX_FEATURES", 5)
    monkeypatch.setattr(pair_tree, "tree_model", None)
    trainer = ContrastiveDivergenceRBM(max_updates=20)
    model = FrankWolfeRBM(fine_tune=trainer, random_state=0).fit(X)
    assert model.n_components_ >= 1
