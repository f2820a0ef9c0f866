"""A lagged model that chooses its lags and the strength of its prior by itself."""

import warnings
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning

from .. import _validation as checks
from .._docstrings import shared_parameters
from .._fitting import restore_on_failure
from .._random import draw_seed
from .._sklearn import fit_context
from .._warnings import warn_caller
from .attributes import set_attributes
from .lagged import (
    LaggedPredictorMixin,
    check_training_record,
    input_names,
    output_names,
)
from .learning.selection import (
    free_runs_through,
    mean_squared_error,
    not_clearly_worse,
    steps_through,
    stretches,
)
from .narx import SparseBayesNARXRegressor
from .parameters import SEARCH_CONSTRAINTS, SHARED_BY_FITS
from .prediction.ensemble import Ensemble
from .records.lags import expand_lags, lagged_names, union_of_lags
from .records.layout import Record
from .regressor_texts import TEXTS

# A fold in which a candidate diverges counts as this many times the outputs' variance.
WORST_ERROR = 10.0


class _Task(NamedTuple):
    """One fit: which lags, strength and start, and the fold that it does not see."""

    lag: int
    reg_lambda: float
    seed: int
    fold: int | None


class _Data(NamedTuple):
    """The arguments of `fit`, and the same as arrays.

    folds : (n_rows,) number of the fold of each row
    """

    X: object
    y: np.ndarray
    sessions: np.ndarray | None
    U: np.ndarray
    Y: np.ndarray
    starts: np.ndarray
    folds: np.ndarray


@shared_parameters(TEXTS)
class SparseBayesNARXRegressorCV(
    LaggedPredictorMixin, MultiOutputMixin, RegressorMixin, BaseEstimator
):
    r"""Nonlinear ARX model with built-in choice of lags and prior strength.

    For every strength of the prior, the evidence of fits to the whole record chooses
    the lags. Between the strengths decides cross-validation over contiguous stretches
    of the record: a stretch's outputs are left out of the fit, and the free run that
    passes through it is scored there (one-step errors for ``focus="prediction"``).
    The strength with the least error stays, and with it the greater ones that are not
    clearly worse (by more than two standard errors of the difference): fits with each
    of them, from several starts, form an ensemble.

    Parameters
    ----------
    lags : array-like of int, default=(5, 10, 20, 30)
        Candidates: the longest lag of inputs and outputs. Those for which ``cv``
        stretches of the shortest session would not hold two windows are left out.
    reg_lambdas : array-like of float, default=(2.0, 6.0, 20.0)
        Candidates for ``reg_lambda``.
    cv : int, default=8
        Stretches, of equal length, into which every session is cut.
    n_estimators : int, default=6
        Networks in the ensemble; at least one for each strength that is kept.
    {{include_current_input}}
    focus : {"simulation", "prediction"}, default="simulation"
        Errors that the fits and their choice are about: of a free run or of one step
        ahead. See :class:`SparseBayesNARXRegressor`.
    hidden_layer_sizes : int or array-like of int, default=(5,)
        Units in each hidden layer before pruning. ``()`` is a linear ARX model.
    {{n_jobs}}
    random_state : int, RandomState instance or None, default=None
        Source of the initial weights.

    Other Parameters
    ----------------
    n_restarts : int, default=1
        Starts of every fit, of which the one with the most evidence is kept.
    {{horizon_schedule}}
    {{initial_conditions}}
    {{skip_connection}}
    {{activation}}
    {{lagged_groups}}
    {{kappa_variance}}
    {{kappa_weight}}
    max_cycles : int, default=200
        Largest number of cycles of a fit.
    verbose : bool or int, default=False
        Print one line per candidate.

    Attributes
    ----------
    cv_results_ : dict of ndarray
        ``reg_lambda`` and ``lag`` (n_strengths,), the lag by evidence; ``test_error``
        (n_strengths, cv), mean squared errors in units of the outputs' variance;
        ``kept`` (n_strengths,), which are in the ensemble; ``lags`` (n_lags,) and
        ``objective`` (n_strengths, n_lags), minus twice the tempered log evidence, per
        observation.
    estimators_ : list of SparseBayesNARXRegressor
        The ensemble; first the networks with the strength of the least error.
    estimator_weights_ : ndarray of shape (n_members,)
        Their weights, which sum to one: the same for every strength.
    lag_relevance_ : dict of str to float
        For each regressor of any member, the weighted root mean square of its
        relevances in the members; 0 where a member lacks it.
    reg_lambda_ : float
        Strength of the prior of the first network.
    max_lag_ : int
        Longest lag of any member: rows needed before the first prediction.
    {{inputs}}
    n_outputs_ : int
        Number of outputs.
    n_iter_ : int
        Number of solver iterations of the first network.

    See Also
    --------
    SparseBayesNARXRegressor : One model with given settings; the attributes that
        describe a single network are found in ``estimators_[0]``.

    Notes
    -----
    scikit-learn's ``GridSearchCV`` with
    :func:`skbayesnn.metrics.simulation_scorer` searches over any parameter. For a
    free run it is the weaker choice: a fold that is cut out of a record leaves a gap
    in which the state of the system is lost, and every held-out stretch starts from
    its own measured rows. Here the run passes through the stretch.

    References
    ----------
    .. [1] H. Zhou, C. Ibrahim, W. Pan, "A Sparse Bayesian Deep Learning Approach for
       Identification of Cascaded Tanks Benchmark", 2019.

    Examples
    --------
    >>> from skbayesnn import SparseBayesNARXRegressorCV
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> tanks = make_cascaded_tanks(300, random_state=0)
    >>> model = SparseBayesNARXRegressorCV(
    ...     (2, 5),
    ...     (3.0, 30.0),
    ...     cv=2,
    ...     n_estimators=1,
    ...     hidden_layer_sizes=2,
    ...     max_cycles=5,
    ...     random_state=0,
    ... )
    >>> model = model.fit(tanks.data, tanks.target)
    >>> model.reg_lambda_ in (3.0, 30.0)
    True
    """

    _parameter_constraints: dict = SEARCH_CONSTRAINTS

    def __init__(
        self,
        lags=(5, 10, 20, 30),
        reg_lambdas=(2.0, 6.0, 20.0),
        *,
        cv=8,
        n_estimators=6,
        include_current_input=True,
        focus="simulation",
        hidden_layer_sizes=(5,),
        n_jobs=None,
        random_state=None,
        n_restarts=1,
        horizon_schedule="auto",
        initial_conditions="measured",
        skip_connection=True,
        activation="tanh",
        groups="auto",
        kappa_variance=1e-6,
        kappa_weight=1e-3,
        max_cycles=200,
        verbose=False,
    ):
        self.lags = lags
        self.reg_lambdas = reg_lambdas
        self.cv = cv
        self.n_estimators = n_estimators
        self.include_current_input = include_current_input
        self.focus = focus
        self.hidden_layer_sizes = hidden_layer_sizes
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.n_restarts = n_restarts
        self.horizon_schedule = horizon_schedule
        self.initial_conditions = initial_conditions
        self.skip_connection = skip_connection
        self.activation = activation
        self.groups = groups
        self.kappa_variance = kappa_variance
        self.kappa_weight = kappa_weight
        self.max_cycles = max_cycles
        self.verbose = verbose

    @restore_on_failure
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sessions=None):
        """Choose lags and prior strength, and learn the ensemble.

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
        U, Y, single_output = check_training_record(self, X, y)
        sessions = checks.check_sessions(sessions, len(Y))
        starts = checks.session_starts(sessions, len(Y))
        lags, strengths = self._check_candidates(starts)
        y = Y[:, 0] if single_output else Y
        data = _Data(X, y, sessions, U, Y, starts, stretches(starts, self.cv))
        root = np.random.SeedSequence(draw_seed(self.random_state))
        seeds = [int(s) for s in root.generate_state(self.n_estimators) % 2**31]

        tasks = [_Task(lag, s, seeds[0], None) for s in strengths for lag in lags]
        models = dict(zip(tasks, self._run(tasks, data), strict=True))
        objective = np.array(
            [objective_per_observation(model) for model in models.values()]
        )
        objective = objective.reshape(len(strengths), len(lags))
        chosen = [lags[k] for k in objective.argmin(axis=1)]

        errors = self._cross_validate(chosen, strengths, seeds[0], data)
        results = {
            "reg_lambda": np.array(strengths),
            "lag": np.array(chosen),
            "test_error": errors,
            "kept": not_clearly_worse(errors),
            "lags": np.array(lags),
            "objective": objective,
        }
        members = self._learn_members(results, models, seeds, data)
        self._store(members, results)
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

    def _run(self, tasks, data):
        """Fitted models, or held-out errors for tasks with a fold, in their order."""
        shared = {name: getattr(self, name) for name in SHARED_BY_FITS}
        jobs = (delayed(fit_or_score)(task, shared, data) for task in tasks)
        results = []
        running = Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs)
        for task, result in zip(tasks, running, strict=True):
            if self.verbose:
                _report(task, result)
            results.append(result)
        return results

    def _cross_validate(self, lags, strengths, seed, data):
        """Errors (n_strengths, cv), in units of the outputs' variance."""
        tasks = [
            _Task(lag, strength, seed, fold)
            for lag, strength in zip(lags, strengths, strict=True)
            for fold in range(self.cv)
        ]
        errors = np.reshape(self._run(tasks, data), (len(strengths), self.cv))
        return np.where(
            np.isfinite(errors), np.minimum(errors, WORST_ERROR), WORST_ERROR
        )

    def _learn_members(self, results, models, seeds, data):
        """Fits with each strength that is kept, the first of them from the choice."""
        order = np.argsort(results["test_error"].mean(axis=1), kind="stable")
        order = [k for k in order if results["kept"][k]]
        n_starts = max(1, round(self.n_estimators / len(order)))
        tasks = [
            _Task(int(results["lag"][k]), float(results["reg_lambda"][k]), seed, None)
            for k in order
            for seed in seeds[:n_starts]
        ]
        further = [task for task in tasks if task not in models]
        models = models | dict(zip(further, self._run(further, data), strict=True))
        members = [models[task] for task in tasks]
        # a model is that of a diverged start only if no other start was left
        stable = [member for member in members if not member._learned.diverged]
        if not stable:
            warn_caller(
                "Every network of the ensemble diverged in free run over the whole "
                "record. Offer stronger reg_lambdas or other lags, or check whether "
                "the system is stable.",
                ConvergenceWarning,
            )
        return stable or members

    def _store(self, members, results):
        """Keep the ensemble, and set all public attributes."""
        networks = [member._lagged.ensemble.members[0] for member in members]
        weights = np.full(len(members), 1.0 / len(members))
        ensemble = Ensemble(tuple(networks), weights)
        best = members[0]
        self._lagged = best._lagged._replace(ensemble=ensemble)
        union = union_of_lags([network.lags for network in networks])
        names = lagged_names(union, input_names(self), output_names(ensemble.n_outputs))
        relevances = [member.lag_relevance_ for member in members]
        square = [[r.get(name, 0.0) ** 2 for name in names] for r in relevances]
        relevance = np.sqrt(weights @ np.array(square)).tolist()
        attributes = {
            "cv_results_": results,
            "estimators_": members,
            "estimator_weights_": weights,
            "lag_relevance_": dict(zip(names, relevance, strict=True)),
            "reg_lambda_": best.reg_lambda,
            "max_lag_": ensemble.max_lag,
            "n_outputs_": ensemble.n_outputs,
            "n_iter_": best.n_iter_,
        }
        set_attributes(self, attributes)


def fit_or_score(task, shared, data):
    """A model of the whole record, or its error in a fold that its fit did not see."""
    held_out = data.folds == task.fold
    seen = np.where(held_out if data.y.ndim == 1 else held_out[:, None], np.nan, data.y)
    model = SparseBayesNARXRegressor(
        task.lag,
        task.lag,
        reg_lambda=task.reg_lambda,
        selection="evidence",
        random_state=task.seed,
        **shared,
    )
    with warnings.catch_warnings():
        # the error, or the ensemble, says it
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data.X, seen, sessions=data.sessions)
    if task.fold is None:
        return model
    fitted, lags = model._lagged.ensemble.members[0]
    record = Record(data.U, data.Y, lags, data.starts)
    through = free_runs_through if model.focus == "simulation" else steps_through
    target = np.where(held_out[:, None], data.Y, np.nan)
    return mean_squared_error(fitted.network, through(record, fitted.scaling, target))


def objective_per_observation(model):
    """The objective that a fit minimised, per observation."""
    return model._learned.objective / model._learned.n_observations


def _report(task, result):
    what = f"lags {task.lag}, reg_lambda {task.reg_lambda:g}"
    if task.fold is None:
        print(
            f"{what}: objective {objective_per_observation(result):.4g} per observation"
        )
    else:
        print(f"{what}, fold {task.fold + 1}: error {result:.4g}")
