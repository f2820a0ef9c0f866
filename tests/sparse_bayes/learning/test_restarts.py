"""Starts of a fit: where they begin, how they end, resume and repeat."""

import numpy as np
import pytest

from skbayesnn.sparse_bayes.learning import restarts as _restarts
from skbayesnn.sparse_bayes.network import (
    init_network,
)
from skbayesnn.sparse_bayes.records.one_step import OneStepData


def test_a_start_that_cannot_be_scaled_down_is_an_error():
    """Errors that no network makes finite end the search for a start."""
    network = init_network((2, 3, 1), "tanh", np.random.default_rng(0))
    data = OneStepData(np.ones((2, 5)), np.full((1, 5), np.nan), np.ones(1))
    with pytest.raises(ValueError, match="network without weights are not finite"):
        _restarts._within_range(network, data)
