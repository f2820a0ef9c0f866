"""What both RBM estimators share: everything that needs a fitted model only."""

import copy
import os
from contextlib import contextmanager, nullcontext
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.neural_network import BernoulliRBM
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from .._persistence import Checkpoint, Progress
from .._random import draw_seed
from .._sklearn import CallbackSupportMixin, Interval, one_blas_thread
from .._validation import check_count
from . import model as solver
from . import threads
from .likelihood import annealing
from .training.rows import Rows, check_rows

# Enumerate rather than estimate up to so many units of the smaller side.
_ENUMERATED_UNITS = 14
# Epochs whose median duration is that of the next ones.
_RECENT_EPOCHS = 10

RBM_CONSTRAINTS = {
    "binarize": [Interval(Real, None, None, closed="neither"), None],
    "batch_size": [Interval(Integral, 1, None, closed="left")],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "averaging": [Interval(Real, 0, 1, closed="both")],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "max_gap": [Interval(Real, 0, None, closed="left")],
    "checkpoint": [str, os.PathLike, None],
    "warm_start": ["boolean"],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


class Seen(NamedTuple):
    """What is left of the training data."""

    rates: np.ndarray
    """(n_features,) share of ones, float64"""
    n_samples: int

    def add(self, rows):
        """With more rows."""
        n_samples = self.n_samples + len(rows)
        share = len(rows) / n_samples
        return Seen(self.rates + share * (rows.mean() - self.rates), n_samples)


class Job(NamedTuple):
    """What stays the same in a fit."""

    X: Any
    """what ``fit`` got, for callbacks"""
    y: Any
    train: Rows
    validation: Rows | None
    dtype: np.dtype
    seed: int
    checkpoint: Checkpoint


class BaseRBM(
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Binary restricted Boltzmann machine: inference and sampling.

    A subclass fits, and hands its model to `_store`.
    """

    # -- features and energies ------------------------------------------------------

    def transform(self, X):
        """Compute the expected states of the hidden units.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states, turned into 0 and 1 by ``binarize``.

        Returns
        -------
        H : ndarray of shape (n_samples, n_components_), dtype of ``components_``
            E[h | v] of (2), times the unit's weight in a fractional RBM.
        """
        return self._hidden_means(X)

    def staged_transform(self, X):
        """Yield the features of the first unit, of the first two, and so on.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.

        Yields
        ------
        H : ndarray of shape (n_samples, k)
            The first k columns of ``transform(X)``, k = 1 to ``n_components_``.
        """
        H = self._hidden_means(X)
        for k in range(1, self.n_components_ + 1):
            yield H[:, :k]

    def inverse_transform(self, H):
        """Compute the expected visible states from hidden ones.

        Parameters
        ----------
        H : array-like of shape (n_samples, n_components_)
            Hidden states or their expectations, as ``transform`` returns them.

        Returns
        -------
        V : ndarray of shape (n_samples, n_features_in_), dtype of ``components_``
            E[v | h], probabilities.
        """
        check_is_fitted(self)
        H = check_array(H, dtype=self.components_.dtype, input_name="H")
        if H.shape[1] != self.n_components_:
            raise ValueError(
                f"H must have a column for each of the {self.n_components_} units; "
                f"got {H.shape[1]} columns."
            )
        return solver.visible_means(self._inference_rbm(), H)

    def free_energy(self, X):
        """Compute the free energy of visible states.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.

        Returns
        -------
        F : ndarray of shape (n_samples,), float64
            -log of the unnormalised probability (3), in nats.
        """
        rows = self._check_rows(X)
        rbm = self._inference_rbm()
        return np.concatenate([solver.free_energy(rbm, V) for V in self._blocks(rows)])

    def pseudo_likelihood(self, X):
        """Compute the log pseudo-likelihood, over all features.

        Deterministic, and independent of the partition function. It takes
        n_samples x n_features x n_components_ evaluations of a unit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.

        Returns
        -------
        pl : ndarray of shape (n_samples,), float64
            The sum over features of log p(v_j | all others), in nats.
        """
        rows = self._check_rows(X)
        rbm = self._inference_rbm()
        return np.concatenate(
            [solver.pseudo_likelihood(rbm, V) for V in self._blocks(rows)]
        )

    # -- likelihood -----------------------------------------------------------------

    @property
    def log_partition_(self):
        """Log partition function in nats, estimated once, when first asked for.

        Enumerated if a side has at most 14 units, else annealed importance sampling
        with the defaults of ``log_partition`` and random numbers that depend on
        ``random_state`` alone.
        """
        check_is_fitted(self)
        if not self._estimates:
            rbm = self._training_rbm()
            few = annealing.exact_size(rbm) <= _ENUMERATED_UNITS
            # a dict set in fit: what a score looks up is no change of the estimator
            self._estimates["log_partition"] = self.log_partition(
                "exact" if few else "ais", random_state=self._seed
            ).log_partition
        return self._estimates["log_partition"]

    def log_partition(
        self,
        method="ais",
        *,
        betas=2000,
        n_chains=100,
        n_jobs=None,
        random_state=0,
    ):
        """Estimate the log partition function.

        Parameters
        ----------
        method : {"ais", "reverse_ais", "exact"}, default="ais"
            Annealed importance sampling [1]_ from independent units with the base
            rates of the training data; the same from the model back to them, starting
            at states that a forward run has led to the model; or enumeration of the
            smaller side, of at most 25 units (the visible side, if units have weights
            other than 1). The expectation of "ais" lies below the true value, that of
            "reverse_ais" above it: where they agree, both can be believed.
        betas : int, "paper" or array-like of shape (n_temperatures,), default=2000
            Inverse temperatures from 0 to 1: so many, uniformly spaced; the 14,500 of
            [1]_ and [2]_; or the values themselves, not decreasing.
        n_chains : int, default=100
            Independent chains.
        n_jobs : int or None, default=None
            Blocks of 50 chains that run side by side (joblib; threads, unless a
            backend is chosen by ``joblib.parallel_config``). It does not change the
            result.
        random_state : int, RandomState instance or None, default=0
            Source of the chains' random numbers.

        Returns
        -------
        result : LogPartition
            Named tuple of ``log_partition`` (nats), ``interval`` (three standard
            errors of the mean weight to both sides), ``log_weight_std`` (nats) and
            ``effective_sample_size`` (chains). When ``log_weight_std`` is above 2 or
            3, the interval is optimistic: take more temperatures.

        Raises
        ------
        ValueError
            For an unknown method, fewer than two chains, temperatures that do not
            rise from 0 to 1, or an enumeration of more than 25 units.

        References
        ----------
        .. [1] R. Salakhutdinov, I. Murray, "On the quantitative analysis of deep
           belief networks", ICML, 2008.
        .. [2] W. Ping, Q. Liu, A. Ihler, "Learning Infinite RBMs with Frank-Wolfe",
           NIPS, 2016.
        """
        check_is_fitted(self)
        rbm = self._training_rbm()
        if method == "exact":
            return _enumerate(rbm)
        if method not in ("ais", "reverse_ais"):
            raise ValueError(
                f"method must be 'ais', 'reverse_ais' or 'exact'; got {method!r}."
            )
        betas = _check_betas(betas)
        n_chains = check_count(n_chains, "n_chains", 2)
        with one_blas_thread():
            return annealing.ais(
                rbm,
                self.base_intercept_,
                betas,
                n_chains,
                draw_seed(random_state),
                n_jobs,
                reverse=method == "reverse_ais",
            )

    def score_samples(self, X):
        """Compute the log-likelihood of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,), float64
            Log probability of each sample, in nats, with ``log_partition_``.
        """
        return -self.free_energy(X) - self.log_partition_

    def staged_score_samples(self, X):
        """Yield the log-likelihoods by the first unit, by the first two, and so on.

        Each is the score of ``truncate(k)``, with a partition function of its own.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.

        Yields
        ------
        log_likelihood : ndarray of shape (n_samples,)
            By the first k units, in nats, k = 1 to ``n_components_``.
        """
        check_is_fitted(self)
        for k in range(1, self.n_components_ + 1):
            yield self.truncate(k).score_samples(X)

    def score(self, X, y=None):
        """Compute the mean log-likelihood.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Mean of ``score_samples(X)``, in nats a sample.
        """
        return float(self.score_samples(X).mean())

    # -- sampling -------------------------------------------------------------------

    def gibbs(self, V, n_steps=1, *, random_state=None):
        """Advance Markov chains that have the model as their stationary distribution.

        Parameters
        ----------
        V : {array-like, sparse matrix} of shape (n_samples, n_features)
            States to start from, one chain a row.
        n_steps : int, default=1
            Steps of blocked Gibbs sampling, or Metropolis-Hastings steps of a
            fractional RBM.
        random_state : int, RandomState instance or None, default=None
            Source of random numbers. The same integer gives the same numbers in each
            call: pass another one, or a RandomState, to go on with a chain.

        Returns
        -------
        V : ndarray of shape (n_samples, n_features), bool
            New states.
        """
        rows = self._check_rows(V)
        n_steps = check_count(n_steps, "n_steps", 0)
        chains = solver.Chains(
            rows.states(slice(None)), np.uint64(draw_seed(random_state)), 0, 0
        )
        chains, _ = solver.gibbs(self._training_rbm(), chains, n_steps)
        return chains.states > 0.5

    def sample(self, n_samples=1, *, n_steps=1000, clamp=None, random_state=None):
        """Draw visible states from the model.

        Each sample has a chain of its own, which starts at the base rates of the
        training data, is annealed to the model over half of the steps, and stays at
        the model for the other half.

        Parameters
        ----------
        n_samples : int, default=1
            Number of samples.
        n_steps : int, default=1000
            Steps of each chain.
        clamp : array-like of shape (n_features,) or (n_samples, n_features), \
                default=None
            Values of features that are held, NaN for those that are free: samples of
            the conditional distribution. Turned into 0 and 1 by ``binarize``.
        random_state : int, RandomState instance or None, default=None
            Source of random numbers.

        Returns
        -------
        V : ndarray of shape (n_samples, n_features), bool
            The samples.
        """
        check_is_fitted(self)
        n_samples = check_count(n_samples, "n_samples", 1)
        n_steps = check_count(n_steps, "n_steps", 1)
        held = None if clamp is None else self._check_clamp(clamp, n_samples)
        chains = self._annealed_chains(n_samples, n_steps // 2, held, random_state)
        chains, _ = solver.gibbs(
            self._training_rbm(), chains, n_steps - n_steps // 2, held
        )
        return chains.states > 0.5

    def impute(self, X, *, strategy="mean", n_steps=200, random_state=0):
        """Fill in missing values from the conditional distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Visible states, NaN where missing.
        strategy : {"mean", "sample"}, default="mean"
            The conditional expectation of each missing value, averaged over the second
            half of the steps, or one draw of all of them together.
        n_steps : int, default=200
            Steps of the chain of each row.
        random_state : int, RandomState instance or None, default=0
            Source of random numbers.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features), dtype of ``components_``
            The given values as 0 and 1 by ``binarize`` (unchanged with
            ``binarize=None``), and the missing ones.
        """
        check_is_fitted(self)
        if strategy not in ("mean", "sample"):
            raise ValueError(f"strategy must be 'mean' or 'sample'; got {strategy!r}.")
        n_steps = check_count(n_steps, "n_steps", 2)
        rows = check_rows(self, X, reset=False, allow_nan=True)
        if not isinstance(rows.X, np.ndarray):
            raise TypeError(
                "impute needs a dense array: a sparse matrix has no missing values. "
                "Use X.toarray() and set the missing values to NaN."
            )
        missing = np.isnan(rows.X)
        held = solver.Clamp(~missing, rows.states(slice(None)))
        chains = self._annealed_chains(len(rows), n_steps // 2, held, random_state)
        rbm = self._training_rbm()
        rest = n_steps - n_steps // 2
        if strategy == "mean":
            filled = solver.mean_visible(rbm, chains, rest, held)
        else:
            filled = solver.gibbs(rbm, chains, rest, held)[0].states
        # a copy: without a threshold the rows may be the caller's
        result = np.array(rows.take(slice(None), self.components_.dtype))
        np.copyto(result, filled, where=missing, casting="same_kind")
        return result

    # -- other models ---------------------------------------------------------------

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
            A fitted copy, with a partition function of its own.
        """
        check_is_fitted(self)
        k = check_count(n_components, "n_components", 0)
        if k > self.n_components_:
            raise ValueError(
                f"n_components must be at most {self.n_components_}, the number of "
                f"fitted units; got {k}."
            )
        other = copy.copy(self)
        other._training = None
        rbm = solver.select(self._training_rbm(), slice(k))
        other._store(rbm, self._seen, self.components_.dtype, self._seed)
        return other

    def to_bernoulli_rbm(self):
        """Hand the model to scikit-learn.

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
        if not solver.is_standard(self._training_rbm()):
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
        """Take over the model of scikit-learn's class.

        Parameters
        ----------
        rbm : sklearn.neural_network.BernoulliRBM
            Fitted.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Data whose base rates annealed importance sampling starts from, best the
            training data. Without it, they are estimated from samples of the model.
        **params : dict
            Parameters of the new estimator; ``n_components`` is that of ``rbm``.

        Returns
        -------
        estimator : estimator of this class
            Fitted, with the same units.
        """
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
            seen = Seen(rows.mean(), len(rows))
        other.n_iter_, other.history_, other._training = 1, {}, None
        other._store(model, seen, rbm.components_.dtype, seed)
        return other

    # -- for subclasses -------------------------------------------------------------

    def _store(self, rbm, seen, dtype, seed):
        """Set the fitted attributes that a model determines."""
        vars(self).update(self._attributes(rbm, seen, dtype, seed))

    def _attributes(self, rbm, seen, dtype, seed):
        return {
            "components_": rbm.weights.astype(dtype),
            "intercept_hidden_": rbm.hidden.astype(dtype),
            "intercept_visible_": rbm.visible.astype(dtype),
            "unit_weights_": rbm.unit_weights.astype(dtype),
            "base_intercept_": solver.log_odds(seen.rates, seen.n_samples),
            "n_components_": len(rbm.weights),
            "_seen": seen,
            "_seed": int(seed),
            "_estimates": {},
        }

    def _go_on(self, job, stage, start):
        """Where an earlier call of the same fit was left, else at ``start()``."""
        progress = job.checkpoint.load(stage)
        if progress is None:
            progress = Progress(start(), self.history_, self.n_iter_, 0.0, False)
            # the start may have been a long fit
            job.checkpoint.save(stage, progress)
        self.history_, self.n_iter_ = progress.history, progress.n_iter
        return progress

    def _begin_task(self, context, job):
        """Tell callbacks that a part of the fit begins."""
        return context.call_on_fit_task_begin(estimator=self, X=job.X, y=job.y)

    def _end_task(self, context, job, rbm):
        """Tell callbacks that a part ends, with the model; whether they want no more.

        The estimator that they may ask for is made only then.
        """

        def fitted():
            seen = Seen(job.train.mean(), len(job.train))
            attributes = self._attributes(rbm, seen, job.dtype, job.seed)
            return {**attributes, "_training": None}

        return context.call_on_fit_task_end(
            estimator=self, X=job.X, y=job.y, reconstruction_attributes=fitted
        )

    @contextmanager
    def _threads(self, limit_blas=True):
        """``n_jobs`` threads for products of states, and one for BLAS.

        What is left for BLAS beside them are small sums: on one thread they are faster,
        by a factor of nine, and the same everywhere.
        """
        blas = one_blas_thread() if limit_blas else nullcontext()
        with blas, threads.using(effective_n_jobs(self.n_jobs)):
            yield

    def _hidden_means(self, X):
        rows = self._check_rows(X)
        rbm = self._inference_rbm()
        return np.concatenate([solver.hidden_means(rbm, V) for V in self._blocks(rows)])

    @property
    def _n_features_out(self):
        return self.n_components_

    def _training_rbm(self):
        return solver.make_rbm(
            self.components_,
            self.intercept_hidden_,
            self.intercept_visible_,
            self.unit_weights_,
        )

    def _inference_rbm(self):
        return solver.RBM(
            self.components_,
            self.intercept_hidden_,
            self.intercept_visible_,
            self.unit_weights_,
        )

    def _check_rows(self, X):
        check_is_fitted(self)
        return check_rows(self, X, reset=False)

    def _blocks(self, rows):
        return rows.blocks(self.components_.dtype)

    def _check_clamp(self, clamp, n_samples):
        clamp = np.asarray(clamp, dtype=np.float64)
        if clamp.shape not in [
            (self.n_features_in_,),
            (n_samples, self.n_features_in_),
        ]:
            raise ValueError(
                "clamp must hold a value or NaN for each feature, shape "
                f"({self.n_features_in_},) or ({n_samples}, {self.n_features_in_}); "
                f"got shape {clamp.shape}."
            )
        held = ~np.isnan(clamp)
        values = Rows(np.atleast_2d(clamp), self.binarize).states(slice(None))
        if np.any(held & (values != 0.0) & (values != 1.0)):
            raise ValueError(
                "clamp must be 0, 1 or NaN where binarize is None; found other values."
            )
        return solver.Clamp(np.atleast_2d(held), values)

    def _annealed_chains(self, n_chains, n_steps, held, random_state):
        betas = np.linspace(0.0, 1.0, n_steps + 1)
        return annealing.annealed_chains(
            self._training_rbm(),
            self.base_intercept_,
            betas,
            n_chains,
            draw_seed(random_state),
            held,
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _enumerate(rbm):
    size = annealing.exact_size(rbm)
    if size > annealing.MAX_EXACT_UNITS:
        raise ValueError(
            f"method='exact' sums over the states of {size} units, expected at most "
            f"{annealing.MAX_EXACT_UNITS}. Use method='ais'."
        )
    value = annealing.exact_log_partition(rbm)
    return annealing.LogPartition(value, (value, value), 0.0, np.inf)


def _check_betas(betas):
    if isinstance(betas, str) and betas != "paper":
        raise ValueError(f"betas must be a number, an array or 'paper'; got {betas!r}.")
    if not isinstance(betas, str) and np.ndim(betas) == 0:
        betas = check_count(betas, "betas", 2)
    betas = annealing.make_betas(betas)
    rising = betas.ndim == 1 and len(betas) > 1 and (np.diff(betas) >= 0).all()
    if not rising or betas[0] != 0.0 or betas[-1] != 1.0:
        raise ValueError(
            "betas must be inverse temperatures that rise from 0 to 1, or their "
            f"number; got {betas!r}."
        )
    return betas


def _seen_in_samples(rbm, seed):
    """Base rates from long chains of the model."""
    chains = solver.start_chains(rbm, 500, seed)
    chains, _ = solver.gibbs(rbm, chains, 500)
    return Seen(chains.states.mean(axis=0, dtype=np.float64), len(chains.states))


def model_of_estimator(estimator, name):
    """The RBM in a fitted estimator, ours or scikit-learn's."""
    names = ("components_", "intercept_hidden_", "intercept_visible_")
    missing = [attribute for attribute in names if not hasattr(estimator, attribute)]
    if missing:
        raise TypeError(
            f"{name} must be an RBM estimator, which has components_, "
            "intercept_hidden_ and intercept_visible_ once it is fitted; got "
            f"{estimator!r} without {', '.join(missing)}."
        )
    arrays = [getattr(estimator, attribute) for attribute in names]
    return solver.make_rbm(*arrays, getattr(estimator, "unit_weights_", None))


def time_of_epochs(seconds, n_left):
    """Seconds that so many epochs will take, from the times at which others ended."""
    return float(np.median(np.diff(seconds, prepend=0.0)[-_RECENT_EPOCHS:])) * n_left


def time_of_growth(seconds, sizes, n_left):
    """Seconds that so many more units will take, each more than the one before.

    A line through the durations of the later half of the steps, by the number of units.
    """
    durations = np.diff(seconds, prepend=0.0)[len(seconds) // 2 :]
    sizes = sizes[len(seconds) // 2 :] - sizes[-1]
    spread = sizes - sizes.mean()
    slope = max(0.0, spread @ durations / max(spread @ spread, 1.0))
    pace = durations.mean() - slope * sizes.mean()
    return float(pace * n_left + slope * n_left * (n_left + 1) / 2)


def format_duration(seconds):
    """A duration in the unit that suits it: 35 s, 12 min, 3.4 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def append_record(history, record):
    """``history`` with one more entry; NaN where a column starts late, or ends."""
    n_before = max((len(values) for values in history.values()), default=0)
    names = {**history, **record}
    return {
        name: np.append(
            history.get(name, np.full(n_before, np.nan)), record.get(name, np.nan)
        )
        for name in names
    }
