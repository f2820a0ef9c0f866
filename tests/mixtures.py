"""Ensembles of lags and of hidden states, as a search makes them."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import (
    DynamicSystemRegressor,
    SparseBayesNARXRegressor,
    SparseBayesStateSpaceRegressor,
)
from skbayesnn.sparse_bayes.prediction.ensemble import Ensemble
from skbayesnn.sparse_bayes.training_record import check_training_record


def lags(longest, **options):
    options = dict(hidden_layer_sizes=2, max_cycles=5, random_state=0) | options
    # a weak prior: no lag is pruned
    options = dict(focus="simulation", reg_lambda=0.1) | options
    return SparseBayesNARXRegressor(longest, longest, **options)


def states(number, **options):
    options = dict(hidden_layer_sizes=3, n_restarts=1, random_state=0) | options
    return SparseBayesStateSpaceRegressor(number, max_cycles=5, **options)


# Networks, with their weights. No two of equal weight could share the median.
MIXTURES = {
    "lags and states": (
        [lags(2), states(3), lags(4), states(3, random_state=1)],
        [0.1, 0.3, 0.35, 0.25],
    ),
    "states first": ([states(2), lags(3)], [0.6, 0.4]),
    "numbers of states": ([states(2), states(4), states(3)], [0.3, 0.3, 0.4]),
    "without units": ([lags(2, hidden_layer_sizes=()), states(2)], [0.4, 0.6]),
}
DIFFERENCES = (
    [lags(2, output="difference"), states(3, output="difference")],
    [0.4, 0.6],
)


def mix(networks, weights, u, y):
    """The model that a search makes of fitted networks."""
    with pytest.warns(ConvergenceWarning):
        fitted = [network.fit(u, y) for network in networks]
    members = tuple(one._model.ensemble.members[0] for one in fitted)
    model = DynamicSystemRegressor()
    vars(model).update(check_training_record(model, u, y, None).attributes)
    ensemble = Ensemble(members, np.array(weights))
    model._model = fitted[0]._model._replace(ensemble=ensemble)
    model.estimators_, model.max_lag_ = fitted, ensemble.max_lag
    return model
