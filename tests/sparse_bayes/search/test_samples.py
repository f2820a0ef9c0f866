"""The rows of a long record that fits of a search see."""

import numpy as np

from skbayesnn.sparse_bayes.learning.session_parts import stretches
from skbayesnn.sparse_bayes.search import samples
from skbayesnn.sparse_bayes.search.cut_record import CutRecord
from skbayesnn.sparse_bayes.training_record import TrainingRecord


def test_hidden_states_learn_from_all_of_dense_rows(monkeypatch):
    y = np.sin(2.0 * np.pi * np.arange(4000.0) / 400.0)[:, None]
    starts = np.array([0, 4000])

    def rows(Y):
        given = TrainingRecord(Y, Y, starts, True, {})
        data = CutRecord(given, stretches(starts, 8))
        return len(samples.rows_for_states(data, 800).Y)

    assert rows(y) == 4000
    # the stretch that is left out of a fit changes nothing
    assert rows(np.where(np.arange(4000)[:, None] // 500 == 3, np.nan, y)) == 4000
    noise = np.random.default_rng(0).standard_normal((4000, 1))
    assert rows(y + 0.1 * noise) == 800
    monkeypatch.setattr(samples, "DENSE_ROWS", 3999)
    assert rows(y) == 800
