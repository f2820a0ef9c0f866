"""Other models from a fitted RBM, and an RBM from other models."""

from sklearn.base import clone
from sklearn.neural_network import BernoulliRBM
from sklearn.utils.validation import check_is_fitted

from .._random import Stream, derived_seed, draw_seed
from .._validation import check_count
from . import model as rbm_model
from .training.given_rows import check_rows
from .training.outcome import Seen, store
from .training.start import model_of_estimator
from .training.training_result import Training

# Attributes of a fit that a copy with fewer units keeps.
_KEPT = (
    "n_features_in_",
    "feature_names_in_",
    "fine_tune_",
    "n_updates_",
    "n_gibbs_steps_",
    "n_replicas_",
    "weight_decay_",
)


class ConversionsMixin:
    """Methods that make another estimator."""

    # whether `BernoulliRBM` has no parameter that is unknown here
    _trains_like_bernoulli_rbm = False

    def truncate(self, n_components):
        """Copy the estimator with its first units only.

        Visible biases stay as they are.

        Parameters
        ----------
        n_components : int
            Number of units to keep, 0 to ``n_components_``.

        Returns
        -------
        rbm : estimator of the same class
            A fitted copy, with its own partition function.

        Raises
        ------
        ValueError
            If ``n_components`` is negative, or more than there are.
        """
        check_is_fitted(self)
        k = check_count(n_components, "n_components", 0)
        if k > self.n_components_:
            raise ValueError(
                f"n_components must be at most {self.n_components_}, the number of "
                f"fitted units; got {k}."
            )
        other = clone(self)
        rbm = rbm_model.select(self._training_rbm(), slice(k))
        n_others = self.n_components_ - len(self.lone_states_)
        attributes = self._fitted_attributes(
            self._seen,
            self.components_.dtype,
            self._seed,
            rbm,
            self.lone_states_[: max(0, k - n_others)],
        )
        store(other, Training(None, self.history_, self.n_iter_), attributes)
        for name in _KEPT:
            if hasattr(self, name):
                setattr(other, name, getattr(self, name))
        return other

    def to_bernoulli_rbm(self):
        """Convert the model to that of scikit-learn.

        Returns
        -------
        rbm : sklearn.neural_network.BernoulliRBM
            Fitted, with the same units. It does not binarise its input.

        Raises
        ------
        ValueError
            If units have weights other than 1, which scikit-learn's model lacks.
        """
        check_is_fitted(self)
        if not rbm_model.is_standard(self._training_rbm()):
            raise ValueError(
                "A fractional RBM (unit_weights_ other than 1) has no equal among "
                "scikit-learn's. Fit with alpha='count'."
            )
        rbm = BernoulliRBM(
            n_components=self.n_components_, random_state=self.random_state
        )
        rbm.components_ = self.components_.copy()
        rbm.intercept_hidden_ = self.intercept_hidden_.copy()
        rbm.intercept_visible_ = self.intercept_visible_.copy()
        rbm._n_features_out = self.n_components_
        rbm.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            rbm.feature_names_in_ = self.feature_names_in_
        return rbm

    @classmethod
    def from_bernoulli_rbm(cls, rbm, X=None, **params):
        """Convert a model of scikit-learn: its units, or before a fit its parameters.

        :class:`ContrastiveDivergenceRBM` takes the parameters of a model that is not
        fitted, so that it makes the same updates: persistent chains of one Gibbs step,
        a constant step size, values of X as probabilities, and none of centring,
        averaging and weight decay. It still shuffles rows, and begins at the base rates
        of X in place of visible biases of 0.

        Parameters
        ----------
        rbm : sklearn.neural_network.BernoulliRBM
            Fitted, or for :class:`ContrastiveDivergenceRBM` not yet.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Data whose base rates annealed importance sampling starts from, best the
            training data. Without it, they are estimated from samples of the model.
        **params : dict
            Parameters of the new estimator; ``n_components`` is that of ``rbm``.

        Returns
        -------
        estimator : estimator of this class
            Fitted, with the same units; or not fitted, with the same parameters.

        Raises
        ------
        NotFittedError
            For a model that is not fitted, if this class trains in another way.
        TypeError
            For what is no model of this kind.
        """
        if cls._trains_like_bernoulli_rbm and not hasattr(rbm, "components_"):
            return cls(**{**_parameters_like(rbm), **params})
        check_is_fitted(rbm)
        model = model_of_estimator(rbm, "rbm")
        other = cls(**{"n_components": len(model.weights), **params})
        other._validate_params()
        other.n_features_in_ = model.weights.shape[1]
        if hasattr(rbm, "feature_names_in_"):
            other.feature_names_in_ = rbm.feature_names_in_
        seed = draw_seed(other.random_state)
        if X is None:
            seen = _seen_in_samples(model, seed)
        else:
            rows = check_rows(other, X, reset=False)
            seen = Seen.of(rows)
        dtype = rbm.components_.dtype
        attributes = other._fitted_attributes(seen, dtype, seed, model)
        store(other, Training(None, {}, 1), attributes)
        return other


def _parameters_like(rbm):
    """Parameters of contrastive divergence with the updates of a `BernoulliRBM`."""
    if not hasattr(rbm, "n_components") or not hasattr(rbm, "batch_size"):
        raise TypeError(
            "rbm must be a BernoulliRBM of scikit-learn; got "
            f"{type(rbm).__name__}. The init of an estimator takes arrays."
        )
    return {
        "n_components": rbm.n_components,
        "learning_rate": rbm.learning_rate,
        "batch_size": rbm.batch_size,
        "max_iter": rbm.n_iter,
        "random_state": rbm.random_state,
        "verbose": bool(rbm.verbose),
        "binarize": None,
        "schedule": "constant",
        "n_gibbs_steps": 1,
        "persistent": True,
        "momentum": 0.0,
        "weight_decay": 0.0,
        "centered": False,
        "averaging": 0.0,
    }


def _seen_in_samples(rbm, seed):
    """Base rates from long chains of the model."""
    chains = rbm_model.start_chains(rbm, 500, derived_seed(seed, Stream.BASE_RATES))
    chains, _ = rbm_model.gibbs(rbm, chains, 500)
    return Seen.of_states(chains.states)
