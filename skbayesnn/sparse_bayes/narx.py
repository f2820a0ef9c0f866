"""The dynamic regressor: the sparse Bayesian network on lagged inputs and outputs."""

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from .._docstrings import shared_parameters
from .._fitting import FitInterrupted, restore_on_failure
from .._random import draw_seed
from .._saved_state import public
from .._sklearn import fit_context, on_one_blas_thread
from .attributes import network_attributes, set_attributes
from .dynamic_predictor import DynamicPredictorMixin, estimators_of, make_lagged_model
from .exports import ExportMixin
from .forecasting import ForecastMixin
from .learning.dead_times import dead_times
from .learning.ensemble_weights import ensemble_weights
from .learning.lag_choice import choose_lag, longest_between_gaps
from .learning.lagged_problem import (
    for_free_runs,
    part_to_fit,
    windows,
    with_ranking,
)
from .learning.later_starts import warn_of_later_starts
from .learning.longer_lags import explained_by_longer_lags
from .learning.problem import pose
from .learning.restarts import learn
from .parameters import (
    DEFAULTS,
    LAGGED_CONSTRAINTS,
    check_combination,
    check_session_lengths,
    learning_options,
    resolve_auto,
    warn_of_short_sessions,
)
from .prediction import posterior
from .records.lags import lagged_names, lags_behind, make_lags
from .records.layout import Record, check_horizons
from .regressor_texts import TEXTS
from .training_record import (
    check_training_record,
    input_names,
    no_sample_weight,
    output_names,
)

# Parameters that hold lags.
AUTOMATIC = ("input_lags", "output_lags")
# Fraction of the variance of the residuals from which on ``verbose`` speaks of it.
WORTH_A_WORD = 0.05


@public
@shared_parameters(TEXTS)
class SparseBayesNARXRegressor(
    ExportMixin,
    ForecastMixin,
    DynamicPredictorMixin,
    MultiOutputMixin,
    RegressorMixin,
    BaseEstimator,
):
    r"""Nonlinear ARX model: a self-pruning network on lagged inputs and outputs.

    .. math:: y(t) = \mathrm{Net}(u(t), u(t-1), \ldots, y(t-1), \ldots) + \xi(t)

    The network is learned by sparse Bayesian learning, as
    :class:`SparseBayesMLPRegressor` does, one step ahead or in free run; lags and units
    that the data do not support are pruned. ``predict`` gives one-step and
    ``horizon``-step-ahead predictions of a measured record, or simulates it in free
    run, all with standard deviations.

    Parameters
    ----------
    input_lags : "auto", int, array-like of int or dict, default="auto"
        Lags of the inputs: 1 to n for a number n, or an explicit list. A dict gives
        every input lags of its own by name, such as ``{"valve": [3, 4], "pump": 2}``;
        names are ``feature_names_in_``, or x0, x1, ... A list in a dict is complete:
        0 stands for the current value, whatever ``include_current_input`` says, and
        ``[]`` leaves the input out. "auto" is the smallest number of 1, 2, 3, 5, 7, 10,
        14, 20 and 30 lags whose one-step error with a linear model, by
        cross-validation, is within 2 % of the least. Where inputs act only after more
        than five rows, their lags begin behind this dead time if that predicts better.
        This is quick; :class:`SparseBayesNARXRegressorCV` compares networks and free
        runs.
    output_lags : "auto", int, array-like of int or dict, default="auto"
        Lags of the outputs, likewise; their names are y, or y0, y1, ... for several.
        If both are "auto", their numbers are equal, unless outputs are so often missing
        that few windows with as many lags of theirs are complete.
    {{include_current_input}}
    output : {"level", "difference"}, default="level"
        What the network predicts: y(t), or y(t) - y(t-1), which is summed up. Choose
        "difference" for an integrating system, such as a position that follows a force
        or a level that follows a flow, sampled so fast that y(t-1) is almost y(t); see
        the notes.
    focus : {"prediction", "simulation"}, default="prediction"
        Errors that the fit minimises: those one step ahead, or those of a free run, in
        which the network is fed its own outputs, by exact sensitivities through the
        recursion. Choose "simulation" for a model that will simulate, plan or control.
    hidden_layer_sizes : int or array-like of int, default=(10,)
        Units in each hidden layer before pruning. ``()`` is a linear ARX model.
    reg_lambda : "auto", float or array-like of shape (n_layers,), default="auto"
        Strength of the prior in (15) of [1]_, not negative; one number per weight
        layer, and one more for the skip connection, are allowed. It acts as a
        temperature: the likelihood is raised to the power 1 / ``reg_lambda``. 1 is
        Bayes' rule for independent Gaussian residuals; those of a dynamic system seldom
        are, which makes 1 too confident. 0 is no regularisation. "auto" is 4, or 5 for
        ``focus="simulation"``; :class:`SparseBayesNARXRegressorCV` chooses it from the
        data, between 1 for white residuals and 40 for slowly changing ones.
    n_restarts : int, default=1
        Fits from different random weights, of which ``selection`` keeps the best.
    n_estimators : int, default=1
        Networks of an ensemble: the best of ``n_restarts`` starts, or of as many
        starts as there are networks. Predictions are their weighted median, standard
        deviations those of the mixture.
    {{random_state}}

    Other Parameters
    ----------------
    {{horizon_schedule}}
    {{initial_conditions}}
    {{skip_connection}}
    {{activation}}
    {{lagged_groups}}
    {{kappa_variance}}
    {{kappa_weight}}
    {{reweight}}
    {{noise}}
    {{noise_variance}}
    {{curvature}}
    {{solver}}
    {{max_cycles}}
    {{max_iter}}
    {{tol}}
    {{normalize}}
    selection : {"auto", "evidence", "simulation", "validation"}, default="auto"
        What ranks the starts: the objective of the fit ("evidence"), the free run
        through the training record ("simulation"), or the free run through the last
        part of each session, which is then left out of the fit ("validation"). "auto"
        is "simulation", or "evidence" for ``focus="simulation"``.
    weighting : {"uniform", "evidence", "validation"}, default="uniform"
        Weights of the ensemble: equal; posterior probabilities, which often leave
        one network; or nonnegative ones whose mixture fits the validation stretches
        best (needs ``selection="validation"``).
    validation_fraction : float, default=0.2
        Fraction of each session for ``selection="validation"``.
    {{n_jobs}}
    warm_start : bool, default=False
        Resume from the network, variances and scaling of the previous fit (the best of
        an ensemble). A fit that Ctrl-C interrupts then keeps the last finished cycle.
    {{verbose}}

    Attributes
    ----------
    max_lag_ : int
        Longest lag: rows needed before the first prediction.
    input_lags_, output_lags_ : dict of str to list of int
        The lags of every signal by name, as ``input_lags`` and ``output_lags`` take
        them; 0 is the current input.
    lag_relevance_ : dict of str to float
        For each lagged regressor, such as ``"y(t-1)"``, the root mean squared
        derivative of the scaled output by it over the training data; 0 if pruned.
    longer_lags_ : dict of str to float
        For each signal, which fraction of the residuals' variance a linear fit on its
        next 20 lags (fewer of few rows), behind its longest, explains beyond the
        regressors of the model (adjusted for their number). More than a few per cent
        say that the lags are too short, or that a dead time lies behind them; NaN where
        rows are too few to tell. Only for ``focus="prediction"``, and of the first
        network.
    feature_relevance_ : ndarray of shape (n_regressors,)
        The same numbers, in the order of ``get_lagged_feature_names_out()``.
    {{coefs}}
    skip_coef_, skip_mask_, skip_prior_variance_ : ndarray of shape \
            (n_regressors, n_outputs)
        The same of the skip connection, if there is one.
    noise_variance_ : float or ndarray of shape (n_outputs,)
        Variance of the errors that the fit minimises (see ``focus``), in squared units
        of y.
    {{degrees_of_freedom}}
    estimators_ : list of SparseBayesNARXRegressor
        The networks of an ensemble, the best first. Only if ``n_estimators`` > 1; the
        other attributes then describe the first, relevances the whole ensemble.
    estimator_weights_ : ndarray of shape (n_estimators,)
        Their weights; they sum to one.
    {{posterior}}
    history_ : dict of ndarray, one entry per cycle
        ``objective_start``, ``objective`` and ``objective_pruned``: (10) with the
        curvature of the cycle, before and after its updates, and after its pruning;
        ``rmse`` (units of y), ``n_active_weights``, ``n_active_units``, ``n_iter``
        and ``horizon``; and, a single number, ``n_diverged_starts``.
    {{counts}}
    {{inputs}}
    {{signals}}

    See Also
    --------
    SparseBayesMLPRegressor : The static network.
    skbayesnn.metrics : Errors and scorers that leave the initialisation out.

    Notes
    -----
    With ``output="difference"`` the model is

    .. math:: y(t) = y(t-1) + \mathrm{Net}(u(t), u(t-1), \ldots, \Delta y(t-1), \ldots)
       + \xi(t), \quad \Delta y(t) = y(t) - y(t-1).

    ``output_lags`` are those of the differences, named "diff(y)(t-1)", so that
    ``max_lag_`` is one more. Regressors and target have their own scales. That is why
    this is more than a skip weight of 1 from y(t-1): where the steps of a record are a
    thousandth of its range, a network in units of the range needs weights of a
    thousand, which cancel each other, to tell one step from the next, and the prior
    shrinks them. Here the prior shrinks the network, and what is left without it is
    an integrator. The level itself is no regressor: a record that starts elsewhere is
    simulated the same, however far from the training record it goes; a system with a
    restoring force is better described by "level".
    Errors, noise, bands and draws are those of y in both cases; what is compared with
    100 standard deviations to find a divergence are the steps.

    {{equally_spaced}}

    {{in_order}}

    References
    ----------
    .. [1] H. Zhou, C. Ibrahim, W. Pan, "A Sparse Bayesian Deep Learning Approach for
       Identification of Cascaded Tanks Benchmark", 2019.

    Examples
    --------
    >>> from skbayesnn import SparseBayesNARXRegressor
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> tanks = make_cascaded_tanks(random_state=0)
    >>> model = SparseBayesNARXRegressor(random_state=0)
    >>> model = model.fit(tanks.data, tanks.target)
    >>> test = tanks.tests.test
    >>> one_step, std = model.predict(test.data, test.target, return_std=True)
    >>> n_init = tanks.n_initialization
    >>> simulated = model.predict(test.data, y_init=test.target[:n_init])
    """

    _parameter_constraints: dict = LAGGED_CONSTRAINTS

    def __init__(
        self,
        input_lags="auto",
        output_lags="auto",
        *,
        include_current_input=True,
        output="level",
        focus="prediction",
        hidden_layer_sizes=(10,),
        reg_lambda="auto",
        n_restarts=1,
        n_estimators=1,
        random_state=None,
        horizon_schedule="auto",
        initial_conditions="measured",
        skip_connection=True,
        activation="tanh",
        groups="auto",
        kappa_variance=1e-6,
        kappa_weight=1e-3,
        reweight=True,
        noise="gaussian",
        noise_variance="auto",
        curvature="auto",
        solver="lm",
        max_cycles=200,
        max_iter="auto",
        tol=1e-3,
        normalize=True,
        selection="auto",
        weighting="uniform",
        validation_fraction=0.2,
        n_jobs=None,
        warm_start=False,
        verbose=False,
    ):
        self.input_lags = input_lags
        self.output_lags = output_lags
        self.include_current_input = include_current_input
        self.output = output
        self.focus = focus
        self.hidden_layer_sizes = hidden_layer_sizes
        self.reg_lambda = reg_lambda
        self.n_restarts = n_restarts
        self.n_estimators = n_estimators
        self.random_state = random_state
        self.horizon_schedule = horizon_schedule
        self.initial_conditions = initial_conditions
        self.skip_connection = skip_connection
        self.activation = activation
        self.groups = groups
        self.kappa_variance = kappa_variance
        self.kappa_weight = kappa_weight
        self.reweight = reweight
        self.noise = noise
        self.noise_variance = noise_variance
        self.curvature = curvature
        self.solver = solver
        self.max_cycles = max_cycles
        self.max_iter = max_iter
        self.tol = tol
        self.normalize = normalize
        self.selection = selection
        self.weighting = weighting
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    @no_sample_weight
    @restore_on_failure
    @fit_context(prefer_skip_nested_validation=True)
    @on_one_blas_thread
    def fit(self, X, y, *, sessions=None):
        """Learn the model from one or several records.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs) or None
            Inputs, in the order of time. None for an autoregression. NaN marks a
            missing value; windows that contain one are left out.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Measured outputs, NaN where missing.
        sessions : array-like of shape (n_samples,) or "infer", default=None
            The record each row belongs to; a record is a run of rows with the same
            id. Lags never reach from one record into another. "infer" begins a new
            record where the times of the rows have a hole; see the notes.

        Returns
        -------
        self : SparseBayesNARXRegressor
            The fitted estimator. If the fit fails or is interrupted, an earlier fit
            stays as it was.

        Raises
        ------
        ValueError
            For parameters outside their range, sessions of which none is longer than
            the longest lag, columns without any value, infinite or too large values,
            lengths that differ, times that are missing, repeated, not in order or not
            the same in X and y, a name that X and y share, and when no complete window
            is left.

        Warns
        -----
        SamplingWarning
            For holes in time, an index of pandas that does not count up, 250 rows or
            more of which none is correlated with those before it, and sessions that are
            not longer than the longest lag: nothing is learned of them.
        UserWarning
            For inputs, or outputs, that are constant, and for inputs that, or whose
            changes, are a linear function of the outputs: an output in another unit,
            or the input of a controller with a constant set point.
        OutlierWarning
            For a value of an input far beyond all others, without an effect on the
            outputs, such as a code of missing values.
        """
        check_combination(self)
        given = check_training_record(self, X, y, sessions)
        self._learn(given)
        warn_of_short_sessions(given.starts, self.max_lag_)
        if self.focus == "simulation":
            fitted, lags = self._model.ensemble.members[0]
            record = Record(given.U, given.Y, lags, given.starts)
            warn_of_later_starts(fitted.network, fitted.scaling, record)
        return self

    @on_one_blas_thread
    def _learn(self, given, fit=None):
        """The fit to a `TrainingRecord`, or what an earlier one has learned of it."""
        parameters = resolve_auto(self)
        vars(self).update(given.attributes)
        n_outputs = given.Y.shape[1]
        names = input_names(self), output_names(self, n_outputs)
        resumes = self.warm_start and hasattr(self, "_learned")
        if resumes:
            self._keep_lags(parameters, names)
        record = _make_record(parameters, given, names)
        seen = part_to_fit(record, parameters["selection"], self.validation_fraction)
        regressors, outputs = windows(seen)
        options = learning_options(parameters, n_outputs)
        if fit is None:
            start = self._resume_from(record.lags, resumes)
            problem = pose(options, regressors, outputs, start)
            fit = self._solve(problem, record, seen, parameters["selection"])
        weights = ensemble_weights(
            fit.networks,
            self.weighting,
            float(options.reg_lambda.max()),
            record,
            self.validation_fraction,
        )
        told = given.single_output, given.end_time
        model = make_lagged_model(fit.networks, weights, record, seen, *told)
        self._store(fit, model._replace(focus=self.focus), regressors)
        if self.focus == "prediction":
            residuals = outputs - posterior.mean(fit.networks[0].fitted, regressors)
            self._set_longer_lags(seen, residuals)
        if fit.interrupted:
            raise FitInterrupted
        return self

    def _solve(self, problem, record, seen, selection):
        """The `Fit` of a posed problem."""
        if self.focus == "simulation":
            horizons = check_horizons(self.horizon_schedule)
            estimate = self.initial_conditions == "estimated"
            problem = for_free_runs(problem, record, seen, horizons, estimate)
        else:
            problem = problem._replace(begins_anew=True)
        problem = with_ranking(problem, selection, record, seen)
        return learn(
            problem,
            draw_seed(self.random_state),
            n_starts=max(self.n_restarts, self.n_estimators),
            n_networks=self.n_estimators,
            n_jobs=self.n_jobs,
            keep=self.warm_start,
        )

    def _keep_lags(self, parameters, names):
        """Put what the previous fit has chosen in place of "auto"."""
        for name, of_signals in zip(AUTOMATIC, names, strict=True):
            chosen = getattr(self, f"{name}_")
            if _is_auto(parameters[name]) and list(chosen) == list(of_signals):
                parameters[name] = chosen

    def _resume_from(self, lags, resumes):
        """Where a warm start begins, if there is one."""
        if not resumes:
            return None
        if not all(map(np.array_equal, lags, self._model.ensemble.members[0].lags)):
            raise ValueError(
                "warm_start=True resumes from the network of the previous fit. Keep "
                "input_lags, output_lags, include_current_input, output and the "
                "numbers of inputs and outputs, or set warm_start=False."
            )
        before, focus = self._learned.start.groups, self._model.focus
        others = focus != self.focus and DEFAULTS[self.focus].groups != before
        if _is_auto(self.groups) and others:
            raise ValueError(
                "warm_start=True resumes from the network of the previous fit, whose "
                f"weights have groups={before}; groups='auto' stands for others with "
                f"focus={self.focus!r}. Keep focus={focus!r}, set groups={before}, or "
                "set warm_start=False."
            )
        return self._learned.start

    def _store(self, fit, model, regressors):
        """Keep what was learned, and set all public attributes."""
        best, lags = fit.networks[0], model.ensemble.members[0].lags
        self._learned, self._model = best, model
        attributes = network_attributes(best, regressors)
        n_diverged = np.array(fit.n_diverged)
        attributes["history_"] = best.history | {"n_diverged_starts": n_diverged}
        attributes["max_lag_"] = lags.max_lag
        names = input_names(self), output_names(self, lags.n_outputs)
        by_name = lags.by_name(*names)
        attributes["input_lags_"], attributes["output_lags_"] = by_name
        if self.n_estimators > 1:
            members = estimators_of(self, fit, model, regressors)
            relevance = np.array([member.feature_relevance_ for member in members])
            weights = model.ensemble.weights
            attributes["estimators_"] = members
            attributes["estimator_weights_"] = weights
            attributes["feature_relevance_"] = np.sqrt(weights @ relevance**2)
        relevance = attributes["feature_relevance_"].tolist()
        names = lagged_names(lags, *names)
        attributes["lag_relevance_"] = dict(zip(names, relevance, strict=True))
        set_attributes(self, attributes)

    def _set_longer_lags(self, record, residuals):
        """Tell whether the lags are long enough."""
        names = [*input_names(self), *output_names(self, record.lags.n_outputs)]
        explained = explained_by_longer_lags(record, residuals)
        self.longer_lags_ = dict(zip(names, explained, strict=True))
        for name, fraction in self.longer_lags_.items() if self.verbose else ():
            if fraction >= WORTH_A_WORD:
                print(f"longer lags of {name} explain {fraction:.0%} of the residuals")

    def get_lagged_feature_names_out(self, input_features=None):
        """Get the names of the lagged regressors, ordered as ``feature_relevance_``.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the inputs; ``feature_names_in_`` or x0, x1, ... by default.

        Returns
        -------
        names : ndarray of shape (n_regressors,), dtype object
            Such as "x0(t)", "x0(t-1)", "y(t-1)".

        Raises
        ------
        ValueError
            If ``input_features`` are not as many as the inputs.
        """
        check_is_fitted(self, "max_lag_")
        if input_features is None:
            input_features = input_names(self)
        elif len(input_features) != self.n_features_in_:
            raise ValueError(
                f"input_features must hold {self.n_features_in_} names, one per input; "
                f"got {len(input_features)}."
            )
        lags = self._model.ensemble.members[0].lags
        names = lagged_names(lags, input_features, output_names(self, lags.n_outputs))
        return np.array(names, dtype=object)


def _make_record(parameters, given, names):
    """The training record with its lags; refused if all sessions are too short."""
    U, Y, starts = given[:3]
    automatic = [name for name in AUTOMATIC if _is_auto(parameters[name])]
    longest = longest_between_gaps(Y, starts)

    def make_record(n_lags, times=()):
        chosen = parameters | dict.fromkeys(automatic, n_lags)
        if "output_lags" in automatic:
            chosen["output_lags"] = min(n_lags, longest)
        if times:
            at_once = chosen["include_current_input"]
            chosen["input_lags"] = lags_behind(times, n_lags, at_once, names[0])
        lags = make_lags(
            U.shape[1],
            Y.shape[1],
            chosen["input_lags"],
            chosen["output_lags"],
            chosen["include_current_input"],
            names,
            chosen["output"] == "difference",
        )
        return Record(U, Y, lags, starts)

    def to_fit(n_lags, times=()):
        record, fraction = make_record(n_lags, times), parameters["validation_fraction"]
        return part_to_fit(record, parameters["selection"], fraction)

    if automatic:
        look = "input_lags" in automatic
        times = dead_times(U, to_fit(1).Y, starts) if look else ()
        record = make_record(*choose_lag(to_fit, times))
    else:
        record = make_record(None)
    check_session_lengths(starts, record.lags.max_lag)
    return record


def _is_auto(lags):
    return isinstance(lags, str) and lags == "auto"
