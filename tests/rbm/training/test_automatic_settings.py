"""Settings of an automatic training that follow from its rows."""

import numpy as np
import pytest

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn.rbm.training.automatic_settings import settings_of
from skbayesnn.rbm.training.rows import Rows


def test_steps_may_change_more_where_log_probabilities_are_spread():
    """By independent features, over the rows: strongly correlated ones spread them."""
    rng = np.random.default_rng(0)
    votes = (rng.random((400, 1)) < 0.1) ^ (rng.random((400, 600)) < 0.02)
    rows = Rows(votes, 0.5)
    rates = (votes.sum(axis=0) + 0.5) / 401.0
    spread = (votes @ np.log(rates / (1.0 - rates))).std()
    assert spread > 200.0
    found = settings_of(ContrastiveDivergenceRBM(), rows).update.max_change
    assert found == pytest.approx(0.015 * spread, rel=1e-4)
    fewer = Rows(votes[:, :20], 0.5)
    assert settings_of(ContrastiveDivergenceRBM(), fewer).update.max_change == 1.0
    chosen = ContrastiveDivergenceRBM(learning_rate=0.1)
    assert settings_of(chosen, rows).update.max_change is None


@pytest.mark.parametrize(
    "rates, expected",
    [
        ([0.5, 0.5], 0.2),
        ([0.2, 0.2], 0.2),
        # variances of .0099, and those of frequent features count for more
        ([0.01, 0.01], 0.2 * 0.15 / 0.0099),
        ([0.01] * 9 + [0.1], 0.2 * 0.15 * 0.1791 / (9 * 0.0099**2 + 0.09**2)),
        # as nearly constant as may be
        ([0.001, 0.0], 0.2 * 0.15 / 0.001),
        # and where nothing is to be learned
        ([0.0, 1.0], 0.2),
    ],
)
def test_steps_are_larger_where_features_are_rare(rates, expected):
    rows = Rows(np.arange(1000)[:, None] < 1000 * np.array(rates), 0.5)
    found = settings_of(ContrastiveDivergenceRBM(), rows).learning_rate
    assert found == pytest.approx(expected, rel=1e-6)
    chosen = ContrastiveDivergenceRBM(learning_rate=0.1)
    assert settings_of(chosen, rows).learning_rate == 0.1
