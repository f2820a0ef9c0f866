"""What both RBM estimators can do once they are fitted, and the parameters they share.

`FeaturesMixin`, `ScoringMixin`, `SamplingMixin` and `ConversionsMixin` have the public
methods. They reach the fitted model by the methods of `BaseRBM`.
"""

import os
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._saved_state import SavedStateMixin
from .._sklearn import CallbackSupportMixin, DocumentationLinkMixin, Interval
from . import model as rbm_model
from .conversions import ConversionsMixin
from .features import FeaturesMixin
from .sampling import SamplingMixin
from .scoring import ScoringMixin
from .training.given_rows import check_rows
from .training.outcome import model_attributes

# Training computes in float32, where the squares of numbers between these are numbers.
_SMALLEST, LARGEST = 1e-15, 1e15
POSITIVE = Interval(Real, _SMALLEST, LARGEST, closed="both")
NOT_NEGATIVE = Interval(Real, 0, LARGEST, closed="both")

RBM_CONSTRAINTS = {
    "binarize": [Interval(Real, None, None, closed="neither"), None],
    "batch_size": [Interval(Integral, 1, None, closed="left")],
    "learning_rate": [POSITIVE],
    "averaging": [Interval(Real, 0, 1, closed="both")],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "max_gap": [Interval(Real, 0, None, closed="left")],
    "checkpoint": [str, os.PathLike, None],
    "max_time": [POSITIVE, None],
    "warm_start": ["boolean"],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


class BaseRBM(
    FeaturesMixin,
    ScoringMixin,
    SamplingMixin,
    ConversionsMixin,
    CallbackSupportMixin,
    DocumentationLinkMixin,
    SavedStateMixin,
    BaseEstimator,
):
    """Binary restricted Boltzmann machine: inference and sampling.

    A subclass fits, and sets its attributes by `training.outcome.store`.
    """

    def __getstate__(self):
        """Without what only a training that goes on needs, five times the weights.

        It is kept with ``warm_start=True`` and after a ``partial_fit``.
        """
        state = super().__getstate__()
        if "_training" in state and not (self.warm_start or self._continues):
            state["_training"] = None
        return state

    def _fitted_attributes(self, seen, dtype, seed, rbm, lone_states=()):
        """Fitted attributes that a model determines."""
        return model_attributes(seen, dtype, seed, rbm, lone_states)

    @property
    def _n_features_out(self):
        return self.n_components_

    def _training_rbm(self):
        return rbm_model.make_rbm(
            self.components_,
            self.intercept_hidden_,
            self.intercept_visible_,
            self.unit_weights_,
            self._units,
        )

    def _rbm_of_others(self):
        """The model without the units of its lone states."""
        n_units = self.n_components_ - len(self.lone_states_)
        return rbm_model.select(self._training_rbm(), slice(n_units))

    def _log_probabilities_of_lone_states(self):
        """(n_lone,) unnormalised, in nats."""
        states = self.lone_states_.astype(np.uint8)
        return rbm_model.unnormalised_log_probability(self._training_rbm(), states)

    def _inference_rbm(self):
        return rbm_model.RBM(
            self.components_,
            self.intercept_hidden_,
            self.intercept_visible_,
            self.unit_weights_,
            self._units,
        )

    def _check_rows(self, X):
        check_is_fitted(self)
        return check_rows(self, X, reset=False)

    def _blocks(self, rows):
        return rows.blocks(self.components_.dtype)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
