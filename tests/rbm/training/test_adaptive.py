"""Adaptive training: its estimates, and the updates of a path."""

import naive
import numpy as np
import pytest
from rbm_estimators import (
    assert_same_model,
    automatic,
    copy_with_training,
    digits,
    toy_data,
)

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn.rbm.learning import contrastive, mixing

pytestmark = pytest.mark.usefixtures("few_weighted_states")


@pytest.mark.slow
def test_likelihoods_that_are_exact_end_no_training_on_a_plateau():
    """Two causes that the model can hold; at first, random losses."""
    X = toy_data(600)
    V = naive.all_states(6).astype(int)
    # each group of three is 0 or 1 by its cause, through noise
    groups = V.reshape(-1, 2, 3).sum(axis=2)
    p = np.ones(64)
    for column, rate in enumerate([0.4, 0.6]):
        n_on = groups[:, column]
        p = p * (
            rate * 0.9**n_on * 0.1 ** (3 - n_on)
            + (1 - rate) * 0.1**n_on * 0.9 ** (3 - n_on)
        )
    assert p.sum() == pytest.approx(1.0)
    model = ContrastiveDivergenceRBM(4, max_updates=3000, random_state=0).fit(X)
    divergence = p @ (np.log(p) - model.score_samples(V))
    # twice what the 19 free parameters cost on 600 rows
    assert divergence < 2 * 19 / (2 * 600)


@pytest.mark.parametrize("correlation, is_slow", [(0.1, False), (0.9, True)])
def test_chains_that_remember_take_more_steps(correlation, is_slow, monkeypatch):
    monkeypatch.setattr(mixing, "chain_correlation", lambda *arguments: correlation)
    model = automatic("rounds", max_updates=100, refit=False).fit(digits(40))
    history = model.history_
    assert history["correlation"][0] == correlation
    assert history["n_replicas"][0] == 1
    assert (model.n_replicas_ > 1) == (history["n_replicas"][1] > 1) == is_slow
    # then it is not measured any more
    assert np.isnan(history["correlation"][-1]) == is_slow


@pytest.mark.slow
def test_a_tempered_fit_continues():
    """With as many temperatures, by fit or by partial_fit."""
    X = digits(40)
    model = automatic("rounds", warm_start=True).fit(X)
    model._training = contrastive.temper(model._training, model.base_intercept_, 3, 0)
    models = [copy_with_training(model).fit(X) for _ in range(2)]
    model = models[0]
    assert {len(values) for values in model.history_.values()} == {model.n_iter_}
    assert_same_model(*models)
    assert model.n_replicas_ == 3 and model.history_["n_replicas"][-1] == 3
    assert np.isfinite(model.score(X))
    assert model.partial_fit(X).n_replicas_ == 3
