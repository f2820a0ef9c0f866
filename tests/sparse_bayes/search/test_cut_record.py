"""A record that is cut into stretches, and the rows of it that are kept."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skbayesnn.sparse_bayes.learning.session_parts import stretches
from skbayesnn.sparse_bayes.search.cut_record import CutRecord
from skbayesnn.sparse_bayes.training_record import TrainingRecord


@pytest.mark.parametrize("n_sessions", [1, 3])
def test_long_records_are_thinned(n_sessions):
    n_rows = 1000
    starts = np.linspace(0, n_rows, n_sessions + 1).astype(int)
    number = np.repeat(np.arange(n_sessions), np.diff(starts))
    folds = stretches(starts, 4)
    y = np.arange(n_rows, dtype=float)
    given = TrainingRecord(y[:, None], y[:, None], starts, True, {})
    data = CutRecord(given, folds)
    assert data.thinned(n_rows) is data
    thin = data.thinned(240)
    assert len(thin.Y) == 240
    # the stretches begin where they did, and each is a session of its own
    for session, fold in itertools.product(range(n_sessions), range(4)):
        whole = y[(number == session) & (folds == fold)]
        part = (thin.folds == fold) & np.isin(thin.Y[:, 0], whole)
        assert_array_equal(thin.Y[part, 0], whole[: 240 // (4 * n_sessions)])
        assert np.flatnonzero(part)[0] in thin.starts
    assert len(thin.starts) == 4 * n_sessions + 1
