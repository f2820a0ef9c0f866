"""Models that are worse than independent features."""

import re
import warnings

import naive
import numpy as np
import pytest
from rbm_estimators import independent_score

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.exceptions import MixingWarning
from skbayesnn.rbm import model as rbm_model
from skbayesnn.rbm.training.failure import warn_if_worse
from skbayesnn.rbm.training.rows import Rows


def two_groups(n=600):
    rng = np.random.default_rng(0)
    group, rates = rng.random(n) < 0.3, np.where(rng.random(12) < 0.5, 0.03, 0.97)
    return rng.random((n, 12)) < np.where(group[:, None], rates, 1.0 - rates)


def with_unit(X, weight):
    """A model whose unit adds so much to every feature."""
    rates = np.clip(X.mean(axis=0), 0.01, 0.99)
    visible = np.log(rates / (1.0 - rates))
    weights = np.full((1, X.shape[1]), weight)
    return rbm_model.make_rbm(weights, np.zeros(1), visible)


def test_a_model_that_prefers_other_states_is_worse():
    X = two_groups()
    with pytest.warns(MixingWarning, match="worse than independent") as told:
        warn_if_worse(with_unit(X, 5.0), Rows(X, 0.5), 0)
    assert told[0].filename == __file__
    found, expected = re.findall(r"-[0-9.]+(?= nats|by| by)", str(told[0].message))
    rbm = with_unit(X, 5.0)
    states = naive.all_states(12)
    exact = naive.log_sum(rbm_model.unnormalised_log_probability(rbm, states))
    scores = rbm_model.unnormalised_log_probability(rbm, X.astype(np.uint8)) - exact
    # by its upper bound
    assert scores.mean() - 0.2 < float(found) < float(expected) - 1.0
    assert float(expected) == pytest.approx(independent_score(X), abs=0.3)


# which the settings of all tests ignore
@pytest.mark.filterwarnings("error:The model is worse")
@pytest.mark.parametrize("n_rows, weight", [(600, 0.0), (600, 0.1), (49, 5.0)])
def test_good_models_and_few_rows_raise_no_warning(n_rows, weight):
    X = two_groups(n_rows)
    warn_if_worse(with_unit(X, weight), Rows(X, 0.5), 0)
    # nor those without units, or with weights of units
    empty = rbm_model.independent_units(np.zeros(12))
    warn_if_worse(empty, Rows(X, 0.5), 0)
    rbm = with_unit(X, weight)._replace(unit_weights=np.full(1, 0.5, np.float32))
    warn_if_worse(rbm, Rows(X, 0.5), 0)


STRONG = np.full((1, 12), 5.0), np.zeros(1), np.zeros(12)


@pytest.mark.parametrize(
    "model",
    [
        FrankWolfeRBM(
            4,
            n_chains=50,
            objective="linearized",
            n_corrective_steps=0,
            random_state=0,
        ),
        ContrastiveDivergenceRBM(1, init=STRONG, max_iter=1, learning_rate=1e-3),
    ],
    ids=["growth", "epochs"],
)
def test_fits_that_lose_a_group_say_so(model):
    X = two_groups()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X)
    assert model.score(X) < independent_score(X) - 1.0
    assert ["worse than independent" in str(w.message) for w in told] == [True]


def test_growth_keeps_both_groups():
    X = two_groups()
    model = FrankWolfeRBM(4, n_chains=50, n_corrective_steps=10, random_state=0).fit(X)
    assert model.score(X) > independent_score(X) + 4.0
