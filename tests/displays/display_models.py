"""A simulated record, fits of it, and estimators with given attributes."""

import copy
import warnings

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.exceptions import DivergenceWarning

N = 160
SESSIONS = np.repeat([0, 1], [70, 90])


def simulated_system(seed=0):
    rng = np.random.default_rng(seed)
    U, Y = rng.normal(size=(N, 2)), np.zeros((N, 2))
    for t in range(1, N):
        Y[t, 0] = 0.5 * Y[t - 1, 0] + np.tanh(U[t - 1, 0])
        Y[t, 1] = 0.3 * Y[t - 1, 1] + U[t - 1, 1]
        Y[t] += 0.05 * rng.normal(size=2)
    return U, Y


U, Y = simulated_system()


def fit(hidden, y, **parameters):
    model = SparseBayesNARXRegressor(
        2, 2, hidden_layer_sizes=hidden, max_cycles=15, random_state=0, **parameters
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(U, y)


class Ensemble(RegressorMixin, BaseEstimator):
    """What a display may ask of a ensemble."""

    def __init__(self, estimators, weights):
        self.estimators_ = estimators
        self.estimator_weights_ = weights

    def fit(self, X, y):
        return self


class Network(RegressorMixin, BaseEstimator):
    """A fitted network of given masks; all its weights are 2."""

    def __init__(self, masks, skip=None):
        self.masks_ = masks
        self.coefs_ = [np.full(mask.shape, 2.0) for mask in masks]
        self.skip_mask_ = skip
        self.skip_coef_ = None if skip is None else np.full(skip.shape, -3.0)

    def fit(self, X, y):
        return self


class Diverging(RegressorMixin, BaseEstimator):
    """A lagged model whose every prediction ends in NaN."""

    def __init__(self, n_predicted=40):
        self.n_predicted = n_predicted
        self.max_lag_ = 2

    def fit(self, X, y):
        return self

    def predict(self, X, y=None, *, horizon=1, sessions=None, return_std=False):
        y_pred = np.zeros(len(X))
        y_pred[self.n_predicted :] = np.nan
        warnings.warn("3 rows diverged", DivergenceWarning, stacklevel=2)
        return (y_pred, np.ones(len(X))) if return_std else y_pred


def with_history(rbm, **columns):
    """A copy of a fitted RBM with other columns in its history; None removes one."""
    changed = copy.copy(rbm)
    history = {**rbm.history_, **columns}
    changed.history_ = {k: v for k, v in history.items() if v is not None}
    return changed


def tracked(rbm, **columns):
    """A copy that counted updates, and estimated likelihoods at each second entry."""
    n = len(rbm.history_["seconds"])
    estimates = -20.0 + np.log(np.arange(1.0, n + 1.0))
    estimates[1::2] = np.nan
    given = dict(
        n_updates=50.0 * np.arange(1, n + 1),
        log_likelihood=estimates,
        validation_log_likelihood=estimates - 0.5,
    )
    return with_history(rbm, **{**given, **columns})


def untracked(rbm, **columns):
    """A copy whose history has none of these columns."""
    names = ("n_updates", "log_likelihood", "validation_log_likelihood")
    return with_history(rbm, **{**dict.fromkeys(names), **columns})


def legend_texts(panel):
    return [text.get_text() for text in panel.get_legend().get_texts()]
