"""A dynamic model that chooses its lags and the strength of its prior by itself."""

import warnings
from numbers import Integral
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .. import _validation as checks
from .._fitting import restore_on_failure
from .._sklearn import Interval, fit_context
from .._validation import session_starts
from .base import SKIP_ATTRIBUTES
from .learning.selection import (
    free_run_error,
    not_clearly_worse,
    one_step_error,
    stretches,
)
from .narx import SparseBayesNARXRegressor
from .records.lags import expand_lags
from .records.layout import Record

# Parameters that every fit takes over as they are.
SHARED = (
    "n_restarts",
    "include_current_input",
    "focus",
    "horizon_schedule",
    "initial_conditions",
    "hidden_layer_sizes",
    "skip_connection",
    "activation",
    "groups",
    "kappa_variance",
    "kappa_weight",
    "max_cycles",
)
# A fold in which a candidate diverges counts as this many times the outputs' variance.
WORST_ERROR = 10.0


class _Task(NamedTuple):
    """One fit: which lags, strength and start, and the stretch it does not see."""

    lag: object
    reg_lambda: float
    seed: int
    fold: int | None


class SparseBayesNARXRegressorCV(SparseBayesNARXRegressor):
    r"""Nonlinear ARX model with built-in choice of lags and prior strength.

    For every strength of the prior, the evidence of fits to the whole record chooses
    the lags. Between the strengths decides cross-validation over contiguous stretches
    of the record: a stretch's outputs are left out of the fit, and the free run that
    passes through it is scored there (one-step errors for ``focus="prediction"``).
    The strength with the least error stays, and with it the greater ones that are not
    clearly worse (by more than two standard errors of the difference): fits with each
    of them, from several starts, form a committee.

    Parameters
    ----------
    lags : array-like of int, default=(5, 10, 20, 30)
        Candidates: the longest lag of inputs and outputs. Those for which ``cv``
        stretches of the shortest session would not hold two windows are left out.
    reg_lambdas : array-like of float, default=(2.0, 6.0, 20.0)
        Candidates for ``reg_lambda``.
    cv : int, default=8
        Stretches, of equal length, into which every session is cut.
    n_restarts : int, default=1
        Starts of every fit, of which the one with the most evidence is kept.
    n_networks : int, default=6
        Networks in the committee; at least one for each strength that stays.
    include_current_input : bool, default=True
        Whether u(t) is a regressor of y(t).
    focus : {"simulation", "prediction"}, default="simulation"
        Errors that the fits, and their choice, are about: of a free run or of one step
        ahead. See :class:`SparseBayesNARXRegressor` for this and the parameters below.
    horizon_schedule : "auto" or array-like of int, default="auto"
        Horizons of the free runs during a fit.
    initial_conditions : {"measured", "estimated"}, default="measured"
        Whether a free run starts from measured outputs.
    hidden_layer_sizes : int or array-like of int, default=(5,)
        Units in each hidden layer before pruning.
    skip_connection : bool, default=True
        A linear path beside the network.
    activation : {"tanh", "relu", "logistic"}, default="tanh"
        Activation of the hidden units.
    groups : "auto", {"element", "row", "column", "layer"} or sequence, default="auto"
        Which weights share a prior variance.
    kappa_variance : float, default=1e-6
        A weight whose prior variance falls below is pruned.
    kappa_weight : float, default=1e-3
        A weight whose magnitude falls below is pruned.
    max_cycles : int, default=200
        Largest number of cycles of a fit.
    n_jobs : int or None, default=None
        Fits that run side by side (joblib). It does not change the result.
    random_state : int, RandomState instance or None, default=None
        Source of the initial weights.
    verbose : bool or int, default=False
        Print a line a candidate.

    Attributes
    ----------
    cv_results_ : dict of ndarray
        ``reg_lambda`` and ``lag`` (n_strengths,), the lag by evidence; ``test_error``
        (n_strengths, cv), mean squared errors in units of the outputs' variance;
        ``kept`` (n_strengths,), which are in the committee; ``lags`` (n_lags,) and
        ``objective`` (n_strengths, n_lags), minus twice the tempered log evidence, an
        observation.
    estimators_ : list of SparseBayesNARXRegressor
        The committee; first the networks with the strength of the least error.
    estimator_weights_ : ndarray of shape (n_members,)
        Their weights, which sum to one: the same for every strength.
    reg_lambda_ : float
        Strength of the prior of the first network.
    max_lag_ : int
        Longest lag of any member: rows needed before the first prediction.
    n_features_in_ : int
        Number of inputs seen during fit, 0 for an autoregression.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the inputs, when they are all strings.
    n_outputs_ : int
        Number of outputs.
    n_iter_ : int
        Solver iterations of the first network.

    See Also
    --------
    SparseBayesNARXRegressor : One model with given settings, and the attributes that
        describe it; here they describe the first network.

    Notes
    -----
    scikit-learn's ``GridSearchCV`` with
    :func:`skbayesnn.metrics.simulation_scorer` searches over any parameter. For a
    free run it is the weaker choice: a fold that is cut out of a record leaves a gap
    in which the state of the system is lost, and every held-out stretch starts from
    its own measured rows. Here the run passes through.

    Examples
    --------
    >>> from skbayesnn import SparseBayesNARXRegressorCV
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> tanks = make_cascaded_tanks(300, random_state=0)
    >>> model = SparseBayesNARXRegressorCV(
    ...     (2, 5), (3.0, 30.0), cv=2, n_networks=1, hidden_layer_sizes=2, max_cycles=5,
    ...     random_state=0,
    ... )
    >>> model = model.fit(tanks.data, tanks.target)
    >>> model.reg_lambda_ in (3.0, 30.0)
    True
    """

    _parameter_constraints: dict = {
        "lags": ["array-like"],
        "reg_lambdas": ["array-like"],
        "cv": [Interval(Integral, 2, None, closed="left")],
        **{
            name: SparseBayesNARXRegressor._parameter_constraints[name]
            for name in (*SHARED, "n_networks", "n_jobs", "random_state", "verbose")
        },
    }

    def __init__(
        self,
        lags=(5, 10, 20, 30),
        reg_lambdas=(2.0, 6.0, 20.0),
        *,
        cv=8,
        n_restarts=1,
        n_networks=6,
        include_current_input=True,
        focus="simulation",
        horizon_schedule="auto",
        initial_conditions="measured",
        hidden_layer_sizes=(5,),
        skip_connection=True,
        activation="tanh",
        groups="auto",
        kappa_variance=1e-6,
        kappa_weight=1e-3,
        max_cycles=200,
        n_jobs=None,
        random_state=None,
        verbose=False,
    ):
        self.lags = lags
        self.reg_lambdas = reg_lambdas
        self.cv = cv
        self.n_restarts = n_restarts
        self.n_networks = n_networks
        self.include_current_input = include_current_input
        self.focus = focus
        self.horizon_schedule = horizon_schedule
        self.initial_conditions = initial_conditions
        self.hidden_layer_sizes = hidden_layer_sizes
        self.skip_connection = skip_connection
        self.activation = activation
        self.groups = groups
        self.kappa_variance = kappa_variance
        self.kappa_weight = kappa_weight
        self.max_cycles = max_cycles
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @restore_on_failure
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sessions=None):
        """Choose lags and prior strength, and learn the committee.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs) or None
            Inputs, in the order of time. None for an autoregression. NaN marks a
            missing value.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Measured outputs, NaN where missing.
        sessions : array-like of shape (n_samples,), default=None
            The record each row belongs to.

        Returns
        -------
        self : SparseBayesNARXRegressorCV
            The fitted estimator. If the fit fails or is interrupted, an earlier fit
            stays as it was.

        Raises
        ------
        ValueError
            As :meth:`SparseBayesNARXRegressor.fit`, for candidates outside their
            range, and for sessions too short for the longest lag and ``cv`` stretches.
        """
        U, Y = self._check_record(X, y)
        sessions = checks.check_sessions(sessions, len(Y))
        starts = session_starts(sessions, len(Y))
        lags, strengths = self._check_candidates(starts)
        data = (X, Y[:, 0] if self._single_output else Y, sessions)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        seeds = np.random.SeedSequence(seed).generate_state(self.n_networks) % 2**31

        tasks = [_Task(lag, s, int(seeds[0]), None) for s in strengths for lag in lags]
        models = dict(zip(tasks, self._run(tasks, data, starts), strict=True))
        objective = np.array([_objective(model) for model in models.values()])
        objective = objective.reshape(len(strengths), len(lags))
        chosen = [lags[k] for k in objective.argmin(axis=1)]

        errors = self._cross_validate(chosen, strengths, int(seeds[0]), data, starts)
        self.cv_results_ = {
            "reg_lambda": np.array(strengths),
            "lag": np.array(chosen),
            "test_error": errors,
            "kept": not_clearly_worse(errors),
            "lags": np.array(lags),
            "objective": objective,
        }
        self._form_committee(models, seeds, data, starts)
        return self

    def _check_candidates(self, starts):
        """Lags, and strengths from the weakest to the strongest."""
        candidates = expand_lags(np.atleast_1d(self.lags), "lags")
        strengths = np.unique(self.reg_lambdas)
        numbers = np.issubdtype(strengths.dtype, np.number)
        valid = numbers and np.isfinite(strengths).all() and (strengths >= 0).all()
        if not len(strengths) or not valid:
            raise ValueError(
                "reg_lambdas must hold finite numbers that are not negative; got "
                f"{self.reg_lambdas!r}."
            )
        if not candidates or candidates[0] < 1:
            raise ValueError(f"lags must hold positive integers; got {self.lags!r}.")
        shortest = int(np.diff(starts).min())
        longest = shortest // (2 * self.cv) - 1
        lags = [lag for lag in candidates if lag <= longest]
        if not lags:
            raise ValueError(
                f"cv={self.cv} stretches and a lag of {candidates[0]} need sessions of "
                f"at least {2 * self.cv * (candidates[0] + 1)} rows, "
                f"n_samples={shortest} found. Take shorter lags or a smaller cv."
            )
        return lags, [float(s) for s in strengths]

    def _template(self, task):
        shared = {name: getattr(self, name) for name in SHARED}
        return SparseBayesNARXRegressor(
            task.lag,
            task.lag,
            reg_lambda=task.reg_lambda,
            selection="evidence",
            random_state=task.seed,
            **shared,
        )

    def _run(self, tasks, data, starts):
        """Fitted models, or held-out errors for tasks with a fold, in their order."""
        folds = stretches(starts, self.cv)
        jobs = (
            delayed(_fit_or_score)(self._template(task), data, starts, folds, task.fold)
            for task in tasks
        )
        results = []
        running = Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs)
        for task, result in zip(tasks, running, strict=True):
            if self.verbose:
                _report(task, result)
            results.append(result)
        return results

    def _cross_validate(self, lags, strengths, seed, data, starts):
        """Errors (n_strengths, cv), in units of the outputs' variance."""
        tasks = [
            _Task(lag, strength, seed, fold)
            for lag, strength in zip(lags, strengths, strict=True)
            for fold in range(self.cv)
        ]
        errors = np.reshape(self._run(tasks, data, starts), (len(strengths), self.cv))
        return np.where(
            np.isfinite(errors), np.minimum(errors, WORST_ERROR), WORST_ERROR
        )

    def _form_committee(self, models, seeds, data, starts):
        """Fits with each strength that stays, the first of them from the choice."""
        results = self.cv_results_
        order = np.argsort(results["test_error"].mean(axis=1), kind="stable")
        order = [k for k in order if results["kept"][k]]
        n_starts = max(1, round(self.n_networks / len(order)))
        tasks = [
            _Task(int(results["lag"][k]), float(results["reg_lambda"][k]), int(s), None)
            for k in order
            for s in seeds[:n_starts]
        ]
        further = [task for task in tasks if task not in models]
        models = models | dict(
            zip(further, self._run(further, data, starts), strict=True)
        )
        members = [models[task] for task in tasks]
        # a model is that of a diverged start only if no other start was left
        stable = [m for m in members if m.history_["n_diverged_starts"] < m.n_restarts]
        if not stable:
            warnings.warn(
                "Every network of the committee diverged in free run over the whole "
                "record. Offer stronger reg_lambdas or other lags, or check whether "
                "the system is stable.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.estimators_ = stable or members
        self.estimator_weights_ = np.full(
            len(self.estimators_), 1.0 / len(self.estimators_)
        )
        self._describe(self.estimators_[0])

    def _describe(self, best):
        """The attributes of the best member, for all that looks at one network."""
        for name in SKIP_ATTRIBUTES:
            self.__dict__.pop(name, None)
        parameters = best.get_params(deep=False)
        for name, value in vars(best).items():
            if name not in parameters:
                setattr(self, name, value)
        self.reg_lambda_ = best.reg_lambda
        self.max_lag_ = max(member.max_lag_ for member in self.estimators_)


def _fit_or_score(model, data, starts, folds, fold):
    """A model of the whole record, or its error in a fold that its fit did not see."""
    X, y, sessions = data
    held_out = folds == fold
    seen = np.where(held_out if y.ndim == 1 else held_out[:, None], np.nan, y)
    with warnings.catch_warnings():
        # the error, or the committee, says it
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, seen, sessions=sessions)
    if fold is None:
        return model
    U, Y = model._check_record(X, y)
    record = Record(U, Y, model._lags, starts)
    score = free_run_error if model.focus == "simulation" else one_step_error
    return score(model._model, record, np.where(held_out[:, None], Y, np.nan))


def _objective(model):
    """The objective that a fit minimised, an observation."""
    return float(model.history_["objective_pruned"][-1]) / model._n_observations


def _report(task, result):
    what = f"lags {task.lag}, reg_lambda {task.reg_lambda:g}"
    if task.fold is None:
        print(f"{what}: objective {_objective(result):.4g} an observation")
    else:
        print(f"{what}, fold {task.fold + 1}: error {result:.4g}")
