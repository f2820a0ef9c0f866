"""The dynamic regressor: the sparse Bayesian network on lagged inputs and outputs."""

import copy
import functools
import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import _validation as checks
from .._fitting import FitInterrupted, restore_on_failure
from .._sklearn import Interval, StrOptions, fit_context
from .._validation import session_starts
from .base import SparseBayesRegressor
from .learning.selection import (
    evidence_weights,
    free_run_error,
    held_out_rows,
    stacking_weights,
)
from .parameters import GROUPS, check_session_lengths
from .prediction import ensemble as ensembles
from .prediction import posterior
from .prediction.streaming import (
    StreamingPredictor,
    check_state,
    resume,
    state_after,
    state_shapes,
)
from .records.lags import (
    build_lag_matrix,
    complete_rows,
    lagged_names,
    make_lags,
)
from .records.layout import (
    Record,
    check_horizons,
    outputs_before,
    simulation_stages,
    typical_step,
)
from .scaling import DIVERGENCE_LIMIT

# What "auto" stands for. A free run asks for a smooth network rather than for one with
# few weights, and its residuals stay correlated over some rows, so that as many count
# as one: 3 would be best for systems with white noise, 20 for the measured tanks.
DEFAULTS = {
    "prediction": {
        "groups": ("row", "column"),
        "reg_lambda": 4.0,
        "selection": "simulation",
    },
    "simulation": {
        "groups": ("layer",),
        "reg_lambda": 5.0,
        "selection": "evidence",
    },
}


class SparseBayesNARXRegressor(SparseBayesRegressor):
    r"""Nonlinear ARX model: a self-pruning network on lagged inputs and outputs.

    .. math:: y(t) = \mathrm{Net}(u(t), u(t-1), \ldots, y(t-1), \ldots) + \xi(t)

    The network is learned by sparse Bayesian learning, as
    :class:`SparseBayesMLPRegressor` does, one step ahead or in free run; lags and units
    that the data do not support are pruned. ``predict`` gives one-step and
    ``horizon``-step-ahead predictions of a measured record, or simulates it in free
    run, all with standard deviations.

    Parameters
    ----------
    input_lags : int or list of int, default=2
        Lags of the inputs: 1 to n for a number n, or an explicit list.
    output_lags : int or list of int, default=2
        Lags of the outputs, likewise.
    include_current_input : bool, default=True
        Whether u(t) is a regressor of y(t).
    focus : {"prediction", "simulation"}, default="prediction"
        Errors that the fit squares: those one step ahead, or those of a free run, in
        which the network is fed its own outputs, by exact sensitivities through the
        recursion. A model that will simulate, plan or control wants "simulation".
    horizon_schedule : "auto" or array-like of int, default="auto"
        For ``focus="simulation"``: rows that a free run lasts before it starts anew
        from measured outputs, from stage to stage of the fit; None stands for whole
        records. "auto" is ``(1, 8, 32, 128, None)``. From random weights a run through
        the whole record would mostly diverge.
    initial_conditions : {"measured", "estimated"}, default="measured"
        For ``focus="simulation"``: whether the free run through a session starts from
        its first ``max_lag_`` measured outputs, or from outputs before the session that
        are estimated along with the weights (inputs there at their first value).
    hidden_layer_sizes : int or array-like of int, default=(10,)
        Units in each hidden layer before pruning. ``()`` is a linear ARX model.
    skip_connection : bool, default=True
        A linear path from the regressors to the outputs, beside the hidden layers and
        with priors of its own: what is linear need not be put together from units.
    activation : {"tanh", "relu", "logistic"}, default="tanh"
        Activation of the hidden units. The output is linear.
    groups : "auto", {"element", "row", "column", "layer"} or sequence of these, \
            default="auto"
        Which weights share a prior variance (Table 1 of [1]_): each has its own
        ("element", the paper's shape-wise), all that leave a unit ("row": prunes lags
        and units), all that enter a unit ("column": prunes units), or all of a layer
        ("layer": prunes nothing smaller than a layer, and gives the smoothest
        network). With several, a weight's prior is the product of its groups' priors.
        "auto" is ``("row", "column")``, or ``("layer",)`` for ``focus="simulation"``.
    reg_lambda : "auto", float or array-like of shape (n_layers,), default="auto"
        Strength of the prior in (15), not negative; one number a weight layer, and one
        more for the skip connection, are allowed. It acts as a temperature: the
        likelihood counts to the power 1 / ``reg_lambda``. 1 is Bayes' rule for
        independent Gaussian residuals; those of a dynamic system seldom are, which
        makes 1 too trustful. 0 is no regularisation. "auto" is 4, or 5 for
        ``focus="simulation"``; :class:`SparseBayesNARXRegressorCV` chooses it from the
        data, between 1 for white residuals and 40 for slowly changing ones.
    kappa_variance : float, default=1e-6
        A weight whose prior variance falls below is pruned. In units of the scaled
        inputs and outputs, see ``normalize``.
    kappa_weight : float, default=1e-3
        A weight whose magnitude falls below is pruned. Units as above.
    reweight : bool, default=True
        False keeps the penalty of the first cycle: the conventional group lasso (the
        lasso for ``groups="element"``) with the penalty
        :math:`2 \lambda \sum_g \|W_g\|_2` beside :math:`\|y - \hat y\|^2 / \sigma^2`.
    noise_variance : "auto", float or array-like of shape (n_outputs,), default="auto"
        Variance of :math:`\xi`, in squared units of y. "auto" learns it with the prior
        variances.
    curvature : {"auto", "full", "diag"}, default="auto"
        Gauss-Newton matrix that the updates use: whole (by its N x N dual where
        weights outnumber samples), or its exact diagonal. "auto" takes the whole one
        up to 4096 unknowns.
    solver : {"lm", "lbfgs", "adam"}, default="lm"
        Fit of the weights within a cycle: Levenberg-Marquardt, the best for networks
        of up to some thousand weights; L-BFGS or Adam for larger ones.
    max_cycles : int, default=200
        Largest number of cycles.
    max_iter : "auto" or int, default="auto"
        Iterations of the solver in a cycle (steps, or epochs of Adam). "auto" is 3 for
        "lm", 50 for "lbfgs" and 20 for "adam".
    tol : float, default=1e-3
        A fit ends when ten cycles in turn prune nothing and bring the objective no new
        low by more than ``tol`` an observation.
    normalize : bool, default=True
        Scale regressors and outputs to zero mean and unit variance inside the model.
        ``coefs_``, ``prior_variance_``, ``posterior_covariance_`` and the thresholds
        then refer to the scaled variables; everything else is in the user's units.
    n_restarts : int, default=1
        Fits from different random weights, of which ``selection`` keeps the best.
    n_networks : int, default=1
        Networks of a committee: the best of ``n_restarts`` starts, or of as many
        starts as there are networks. Predictions are their weighted median, standard
        deviations those of the mixture.
    selection : {"auto", "evidence", "simulation", "validation"}, default="auto"
        What ranks the starts: the objective of the fit ("evidence"), the free run
        through the training record ("simulation"), or the free run through the last
        part of each session, which no start sees then ("validation"). "auto" is
        "simulation", or "evidence" for ``focus="simulation"``.
    network_weights : {"uniform", "evidence", "validation"}, default="uniform"
        Weights of the committee: equal; posterior probabilities, which often leave
        one network; or those, not negative, whose mixture fits the validation
        stretches best (needs ``selection="validation"``).
    validation_fraction : float, default=0.2
        Share of each session for ``selection="validation"``.
    n_jobs : int or None, default=None
        Restarts that run side by side (joblib). It does not change the result.
    warm_start : bool, default=False
        Go on from the network, variances and scaling of the previous fit (the best of
        a committee). A fit that Ctrl-C interrupts then keeps the last finished cycle.
    random_state : int, RandomState instance or None, default=None
        Source of the initial weights and of Adam's mini-batches.
    verbose : bool or int, default=False
        Print a line a cycle.

    Attributes
    ----------
    max_lag_ : int
        Longest lag: rows needed before the first prediction.
    lag_relevance_ : dict of str to float
        For each lagged regressor, such as ``"y(t-1)"``, the root mean squared
        derivative of the scaled output by it over the training data; 0 if pruned.
    feature_relevance_ : ndarray of shape (n_regressors,)
        The same numbers, in the order of ``get_lagged_feature_names_out()``.
    coefs_ : list of ndarray of shape (n_units_in, n_units_out)
        Posterior mode of the weights, zero where pruned.
    intercepts_ : list of ndarray of shape (n_units_out,)
        Biases.
    masks_ : list of ndarray of bool, shapes as ``coefs_``
        True where a weight was kept.
    prior_variance_ : list of ndarray, shapes as ``coefs_``
        Learned prior variance of each weight, zero where pruned.
    skip_coef_, skip_mask_, skip_prior_variance_ : ndarray of shape \
            (n_regressors, n_outputs)
        The same of the skip connection, if there is one.
    noise_variance_ : float or ndarray of shape (n_outputs,)
        Variance of the errors that the fit squares, in squared units of y.
    estimators_ : list of SparseBayesNARXRegressor
        The networks of a committee, the best first. Only if ``n_networks`` > 1; the
        attributes above then describe the first, relevances the whole committee.
    estimator_weights_ : ndarray of shape (n_networks,)
        Their weights; they sum to one.
    posterior_covariance_ : ndarray of shape (n_kept, n_kept) or (n_kept,)
        Posterior covariance (11) of the kept parameters, layer after layer, each with
        its weights in C order and then its biases; its diagonal with
        ``curvature="diag"`` or more than 4096 kept parameters.
    log_marginal_likelihood_ : float
        Laplace approximation of the log evidence of y, in nats.
    history_ : dict of ndarray, one entry a cycle
        ``objective_start``, ``objective`` and ``objective_pruned``: (10) with the
        curvature of the cycle, before and after its updates, and after its pruning;
        ``rmse`` (units of y), ``n_active_weights``, ``n_active_neurons``, ``n_iter``
        and ``horizon``; and, a single number, ``n_diverged_starts``.
    n_cycles_ : int
        Cycles done.
    n_iter_ : int
        Solver iterations over all cycles.
    n_outputs_ : int
        Number of outputs.
    n_features_in_ : int
        Number of inputs seen during fit, 0 for an autoregression.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the inputs, when they are all strings.

    See Also
    --------
    SparseBayesMLPRegressor : The static network.
    skbayesnn.metrics : Errors and scorers that leave the initialisation out.

    Notes
    -----
    Rows are equally spaced in time. Cross-validation must keep them in order:
    ``TimeSeriesSplit``, or group-wise splits with the groups as ``sessions``.

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

    _parameter_constraints: dict = {
        "input_lags": [Interval(Integral, 0, None, closed="left"), list],
        "output_lags": [Interval(Integral, 0, None, closed="left"), list],
        "include_current_input": ["boolean"],
        "focus": [StrOptions({"prediction", "simulation"})],
        "horizon_schedule": [StrOptions({"auto"}), "array-like"],
        "initial_conditions": [StrOptions({"measured", "estimated"})],
        "skip_connection": ["boolean"],
        "n_networks": [Interval(Integral, 1, None, closed="left")],
        "selection": [StrOptions({"auto", "evidence", "simulation", "validation"})],
        "network_weights": [StrOptions({"uniform", "evidence", "validation"})],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        **SparseBayesRegressor._parameter_constraints,
        "groups": [StrOptions({"auto", *GROUPS}), list, tuple],
        "reg_lambda": [
            StrOptions({"auto"}),
            Interval(Real, 0, None, closed="left"),
            "array-like",
        ],
    }

    # Metadata routing takes no argument named y for metadata, unless it is requested
    # here; pipelines pass it on to `predict` then.
    __metadata_request__predict = {"y": True}

    def __init__(
        self,
        input_lags=2,
        output_lags=2,
        *,
        include_current_input=True,
        focus="prediction",
        horizon_schedule="auto",
        initial_conditions="measured",
        hidden_layer_sizes=(10,),
        skip_connection=True,
        activation="tanh",
        groups="auto",
        reg_lambda="auto",
        kappa_variance=1e-6,
        kappa_weight=1e-3,
        reweight=True,
        noise_variance="auto",
        curvature="auto",
        solver="lm",
        max_cycles=200,
        max_iter="auto",
        tol=1e-3,
        normalize=True,
        n_restarts=1,
        n_networks=1,
        selection="auto",
        network_weights="uniform",
        validation_fraction=0.2,
        n_jobs=None,
        warm_start=False,
        random_state=None,
        verbose=False,
    ):
        self.input_lags = input_lags
        self.output_lags = output_lags
        self.include_current_input = include_current_input
        self.focus = focus
        self.horizon_schedule = horizon_schedule
        self.initial_conditions = initial_conditions
        self.hidden_layer_sizes = hidden_layer_sizes
        self.skip_connection = skip_connection
        self.activation = activation
        self.groups = groups
        self.reg_lambda = reg_lambda
        self.kappa_variance = kappa_variance
        self.kappa_weight = kappa_weight
        self.reweight = reweight
        self.noise_variance = noise_variance
        self.curvature = curvature
        self.solver = solver
        self.max_cycles = max_cycles
        self.max_iter = max_iter
        self.tol = tol
        self.normalize = normalize
        self.n_restarts = n_restarts
        self.n_networks = n_networks
        self.selection = selection
        self.network_weights = network_weights
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @restore_on_failure
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sessions=None):
        """Learn the model from one or several records.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs) or None
            Inputs, in the order of time. None for an autoregression. NaN marks a
            missing value; windows that touch one are left out.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Measured outputs, NaN where missing.
        sessions : array-like of shape (n_samples,), default=None
            The record each row belongs to; a record is a run of rows with the same
            id. Lags never reach from one record into another.

        Returns
        -------
        self : SparseBayesNARXRegressor
            The fitted estimator. If the fit fails or is interrupted, an earlier fit
            stays as it was.

        Raises
        ------
        ValueError
            For parameters outside their range, a session not longer than the longest
            lag, columns without any value, infinite or too large values, lengths that
            differ, and when no complete window is left.
        """
        self._check_combination()
        U, Y = self._check_record(X, y)
        sessions = checks.check_sessions(sessions, len(Y))
        lags = make_lags(
            U.shape[1],
            Y.shape[1],
            self.input_lags,
            self.output_lags,
            self.include_current_input,
        )
        if self.warm_start and not all(
            map(np.array_equal, lags, getattr(self, "_lags", lags))
        ):
            raise ValueError(
                "warm_start=True goes on from the network of the previous fit. Keep "
                "input_lags, output_lags, include_current_input and the numbers of "
                "inputs and outputs, or set warm_start=False."
            )
        starts = session_starts(sessions, len(Y))
        check_session_lengths(starts, lags.max_lag)
        training = Record(U, self._hold_out(Y, starts), lags, starts)
        rows = complete_rows(U, training.Y, lags, starts)
        if len(rows) < 2:
            raise ValueError(
                f"X and y hold {len(rows)} complete windows of {lags.max_lag + 1} rows "
                "without a missing value; at least 2 are needed. Shorten input_lags "
                "and output_lags, or fill the gaps."
            )
        self._lags = lags
        self._output_names = (
            ["y"] if Y.shape[1] == 1 else [f"y{k}" for k in range(Y.shape[1])]
        )
        self._u_mean = np.nanmean(U, axis=0) if U.shape[1] else np.zeros(0)
        self._y_mean = np.nanmean(Y, axis=0)
        self._step_variance = typical_step(training.Y, starts)
        self.max_lag_ = lags.max_lag
        self._record = Record(U, Y, lags, starts)
        stages = functools.partial(self._stages, training)
        interrupted = None
        try:
            self._fit_network(
                build_lag_matrix(U, Y, lags, rows),
                Y[rows],
                rank=self._ranking(training),
                stages=stages if self.focus == "simulation" else None,
            )
        except FitInterrupted as error:
            interrupted = error
        del self._record
        self._name_lags()
        if interrupted:
            raise interrupted
        return self

    def _name_lags(self):
        names = self.get_lagged_feature_names_out()
        self.lag_relevance_ = dict(
            zip(names.tolist(), self.feature_relevance_.tolist(), strict=True)
        )

    def _groups(self):
        if isinstance(self.groups, str) and self.groups == "auto":
            return DEFAULTS[self.focus]["groups"]
        return self.groups

    def _reg_lambda(self):
        if isinstance(self.reg_lambda, str):
            return DEFAULTS[self.focus]["reg_lambda"]
        return self.reg_lambda

    def _selection(self):
        if self.selection == "auto":
            return DEFAULTS[self.focus]["selection"]
        return self.selection

    def _n_starts(self):
        return max(self.n_restarts, self.n_networks)

    def _check_combination(self):
        """Refuse parameters that contradict each other."""
        if self.solver == "adam" and self.focus == "simulation":
            raise ValueError(
                "solver='adam' draws rows in random order, which a free run does not "
                "allow: use solver='lm' or 'lbfgs' with focus='simulation'."
            )
        if self.network_weights == "validation" and self.selection != "validation":
            raise ValueError(
                "network_weights='validation' needs the stretches that "
                f"selection='validation' holds out; got selection={self.selection!r}."
            )

    def _stages(self, training, data, scaling):
        """One step ahead first, then free runs over longer and longer horizons."""
        horizons = check_horizons(self.horizon_schedule)
        estimate = self.initial_conditions == "estimated"
        step_variance = self._step_variance / scaling.y_scale**2
        return simulation_stages(
            training, data, scaling, horizons, step_variance if estimate else None
        )

    def _hold_out(self, Y, starts):
        """The outputs with those of the validation stretches missing."""
        if self._selection() != "validation":
            return Y
        held_out = held_out_rows(starts, self.validation_fraction)
        Y = Y.copy()
        Y[held_out] = np.nan
        checks.check_any_value(Y, "y without its validation stretch")
        return Y

    def _ranking(self, training):
        """How restarts are ordered: an error of a model, or None for the objective."""
        selection = self._selection()
        if selection == "evidence":
            return None
        Y = self._record.Y
        if selection == "validation":
            # only where the fit saw nothing
            Y = np.where(np.isfinite(training.Y), np.nan, Y)
        record = self._record

        def error(model):
            return free_run_error(model, record, Y)

        return error

    def _store_others(self, runs, problem, scaling, X):
        """Complete the best model, and make a committee of the best few."""
        self._complete(scaling)
        diverged = sum(run.diverged for run in runs)
        self.history_["n_diverged_starts"] = np.array(diverged)
        self.__dict__.pop("estimators_", None)
        self.__dict__.pop("estimator_weights_", None)
        if self.n_networks == 1:
            return
        good = [run for run in runs if not run.diverged] or runs[:1]
        self.estimators_ = [
            self._member(run, problem, scaling, X) for run in good[: self.n_networks]
        ]
        self.estimator_weights_ = self._member_weights(good)
        relevance = np.array([m.feature_relevance_ for m in self.estimators_])
        self.feature_relevance_ = np.sqrt(self.estimator_weights_ @ relevance**2)

    def _member(self, run, problem, scaling, X):
        member = copy.copy(self)
        member.__dict__.pop("estimators_", None)
        member.set_params(n_networks=1, n_restarts=1)
        member._store(run, problem, scaling, X)
        member._complete(scaling)
        member.history_["n_diverged_starts"] = np.array(int(run.diverged))
        member._name_lags()
        member.__dict__.pop("_record", None)
        return member

    def _complete(self, scaling):
        """What a free run and a single step of a simulation model err by."""
        if self.focus == "prediction":
            return
        record = self._record
        rows = complete_rows(record.U, record.Y, record.lags, record.starts)
        Z = build_lag_matrix(record.U, record.Y, record.lags, rows)
        error = (posterior.mean(self._model, Z) - record.Y[rows]) / scaling.y_scale
        self._model = self._model._replace(
            noise_std=np.sqrt(np.mean(error**2, axis=0)),
            free_run_std=self._model.noise_std,
        )

    def _member_weights(self, runs):
        """Equal, by evidence, or those that fit the validation stretches best."""
        n_members = len(self.estimators_)
        if self.network_weights == "evidence":
            strength = max(1.0, float(np.max(self._reg_lambda())))
            objective = [run.state.objective for run in runs[:n_members]]
            return evidence_weights(np.array(objective), strength)
        if self.network_weights == "validation":
            held_out = held_out_rows(self._record.starts, self.validation_fraction)
            return stacking_weights(self.estimators_, self._record, held_out)
        return np.full(n_members, 1.0 / n_members)

    def _check_record(self, X, y):
        """Inputs (n, n_inputs) and outputs (n, n_outputs) of a training record."""
        if y is None:
            raise ValueError(
                "This SparseBayesNARXRegressor estimator requires y to be passed, but "
                "the target y is None."
            )
        Y = checks.check_outputs(y)
        self._single_output = Y.ndim == 1
        Y = checks.own(Y.reshape(len(Y), -1))
        if X is None:
            U = np.empty((len(Y), 0))
            self.n_features_in_ = 0
            self.__dict__.pop("feature_names_in_", None)
        else:
            U = checks.validate_data(
                self,
                X,
                dtype=np.float64,
                order="C",
                ensure_all_finite="allow-nan",
                ensure_min_samples=2,
            )
        U = checks.own(U)
        checks.check_lengths(U, Y, "X", "y")
        for array, name in ((U, "X"), (Y, "y")):
            checks.check_magnitude(array, name)
            checks.check_any_value(array, name)
        return U, Y

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
        """
        check_is_fitted(self, "max_lag_")
        if input_features is None:
            default = [f"x{k}" for k in range(self.n_features_in_)]
            input_features = getattr(self, "feature_names_in_", default)
        elif len(input_features) != self.n_features_in_:
            raise ValueError(
                f"input_features must hold {self.n_features_in_} names, one an input; "
                f"got {len(input_features)}."
            )
        names = lagged_names(self._lags, input_features, self._output_names)
        return np.array(names, dtype=object)

    def predict(
        self,
        X,
        y=None,
        *,
        horizon=1,
        y_init=None,
        X_init=None,
        sessions=None,
        return_std=False,
        state=None,
        return_state=False,
    ):
        """Predict a record ahead, or simulate it in free run.

        With ``y``, row t is predicted from the measured rows up to t - ``horizon``.
        Without, the model runs freely: its own outputs take the place of measured
        ones, from ``y_init`` on.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs) or None
            Inputs. None only for an autoregression together with ``y``; to simulate
            an autoregression for n rows pass an array of shape (n, 0).
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Measured outputs, NaN where missing.
        horizon : int or None, default=1
            Steps ahead. None with ``y`` is free run from the first ``max_lag_`` rows
            of each session. Without ``y`` it is not used.
        y_init : array-like of shape (n_init,) or (n_init, n_outputs), default=None
            Measured outputs from which the free run starts. Without ``X_init`` they
            belong to the first rows of ``X``, and these rows are returned as given;
            where they are fewer than ``max_lag_``, the outputs before the record are
            estimated from them, with the inputs there at their first value. With
            ``X_init`` they precede ``X``, at least ``max_lag_`` rows.
            Without ``y_init`` the run starts as if inputs and outputs had stood at
            their training means before the first row.
        X_init : array-like of shape (n_init, n_inputs), default=None
            Inputs of the rows before ``X``, one a row of ``y_init``.
        sessions : array-like of shape (n_samples,), default=None
            The record each row belongs to, as in ``fit``; every record starts anew.
        return_std : bool, default=False
            Return standard deviations of new observations as well. They join the
            posterior of the weights (delta method) and the noise of every step since
            the last measured output, linearised around the predicted path.
        state : SimulationState, default=None
            Where an earlier free run stopped; ``X`` holds the rows that follow. The
            predictions are those of one run through all rows.
        return_state : bool, default=False
            Return the state after the last row of a free run as well. It does not hold
            what standard deviations need: not together with ``return_std``.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            One value a row, in units of y. With ``y``, the first ``max_lag_`` rows of
            each session cannot be predicted and are returned as measured (standard
            deviation 0); the next rows are predicted from the first complete window,
            so over fewer than ``horizon`` steps where that is nearer. A row whose
            window holds a missing value is NaN; in free run every row after a missing
            input is. From where a free run diverges (more than 100 standard deviations
            of the training record off, or not finite) on, it is NaN.
        y_std : ndarray shaped like y_pred
            Only if ``return_std=True``.
        state_after : SimulationState
            Only if ``return_state=True``.

        Raises
        ------
        ValueError
            For lengths that differ, a ``y_init`` longer than the record or, with
            ``X_init``, shorter than ``max_lag_``, and arguments that contradict each
            other.

        Warns
        -----
        RuntimeWarning
            If predictions diverged, with their number.
        """
        check_is_fitted(self)
        with_state = state is not None or return_state
        if with_state:
            self._check_state_arguments(y, horizon, sessions, return_std)
        if state is None:
            record = self._check_prediction(X, y, horizon, y_init, X_init, sessions)
        else:
            record = self._continue(X, y, y_init, X_init, state)
        U, Y, starts, n_known, n_before = record
        if y is None or horizon is None:
            horizon = np.inf
        if with_state:
            forecast, state = self._run_on(U, Y, n_known, state)
        else:
            forecast = self._forecast(U, Y, starts, n_known, horizon, return_std)
        if forecast.n_diverged:
            warnings.warn(
                f"{forecast.n_diverged} predicted rows diverged (beyond "
                f"{DIVERGENCE_LIMIT:.0f} standard deviations of the "
                "training record) and are NaN.",
                RuntimeWarning,
                stacklevel=2,
            )
        mean = self._shape_like_y(forecast.mean, starts, n_before)
        if return_std:
            return mean, self._shape_like_y(forecast.std, starts, n_before)
        return (mean, state) if return_state else mean

    def stream(self, X_init=None, y_init=None, *, state=None):
        """Predict row by row, for use inside a controller.

        Parameters
        ----------
        X_init : array-like of shape (n_init, n_inputs), default=None
            Inputs of the rows before the first step, one a row of ``y_init``.
        y_init : array-like of shape (n_init,) or (n_init, n_outputs), default=None
            Measured outputs of these rows, at least ``max_lag_``. Without them, inputs
            and outputs stood at their training means.
        state : SimulationState, default=None
            Where an earlier free run stopped, instead of ``X_init`` and ``y_init``.

        Returns
        -------
        stream : StreamingPredictor
            Its ``step(u)`` predicts a row; ``update(y)`` tells it what was measured.
        """
        check_is_fitted(self)
        if state is None:
            state = self._state_before(X_init, y_init)
        elif X_init is not None or y_init is not None:
            raise ValueError(
                "state holds the rows before the first step: pass it, or X_init and "
                "y_init."
            )
        ensemble = self._ensemble()
        return StreamingPredictor(ensemble, state, single_output=self._single_output)

    def _ensemble(self):
        """The fitted networks that predict together."""
        members = getattr(self, "estimators_", [self])
        weights = getattr(self, "estimator_weights_", np.ones(1))
        return ensembles.Ensemble(
            tuple(ensembles.LaggedNetwork(m._model, m._lags) for m in members), weights
        )

    def _state_before(self, X_init, y_init):
        if X_init is None and y_init is not None and not self.n_features_in_:
            X_init = np.empty((len(y_init), 0))
        if (X_init is None) != (y_init is None):
            raise ValueError(
                "X_init and y_init hold the rows before the first step: pass both, or "
                "none to start from the training means."
            )
        empty = np.empty((0, self.n_features_in_)), np.array([0, 0])
        U, Y, *_ = self._start_free_run(*empty, y_init, X_init)
        return state_after(self._ensemble(), U, Y)

    def _check_state_arguments(self, y, horizon, sessions, return_std):
        if sessions is not None:
            raise ValueError(
                "state and return_state are of one record, and go with no sessions: "
                "predict the records one by one."
            )
        if return_std:
            raise ValueError(
                "return_std goes with neither state nor return_state: a state does not "
                "hold the covariances that standard deviations go on from."
            )
        if y is not None and horizon is not None:
            raise ValueError(
                "A state is that of a free run: pass y_init instead of y, or y with "
                "horizon=None; `stream` steps ahead of measured outputs."
            )

    def _continue(self, X, y, y_init, X_init, state):
        """What `_check_prediction` returns, for rows that follow a state."""
        if not (y is None and y_init is None and X_init is None):
            raise ValueError(
                "state holds the rows before X: pass neither y, y_init nor X_init "
                "with it."
            )
        if X is None:
            raise ValueError(
                "X must not be None in free run: it says how many rows to simulate. "
                "For an autoregression pass an array of shape (n_rows, 0)."
            )
        U = self._check_inputs(X)
        return U, np.empty((len(U), self.n_outputs_)), np.array([0, len(U)]), 0, 0

    def _run_on(self, U, Y, n_known, state):
        """Free run behind a state, or behind the known rows, and the state after it."""
        ensemble = self._ensemble()
        if state is None:
            state = state_after(ensemble, U[:n_known], Y[:n_known])
        state = check_state(state_shapes(ensemble), state)
        forecast, state = resume(ensemble, state, U[n_known:])
        mean = np.concatenate([Y[:n_known], forecast.mean])
        return forecast._replace(mean=mean), state

    def _forecast(self, U, Y, starts, n_known, horizon, return_std):
        """Forecast of the network or ensemble; infinite horizon: free run."""
        record = Record(U, Y, self._lags, starts)
        return ensembles.forecast(
            self._ensemble(), record, n_known, horizon, return_std
        )

    def sample_y(
        self,
        X,
        y=None,
        *,
        horizon=1,
        y_init=None,
        X_init=None,
        sessions=None,
        n_samples=100,
        random_state=0,
    ):
        """Draw new records from the posterior predictive distribution.

        Each draw has weights of its own, the same in all its rows; the network is
        linear in their deviations from the mode, as their posterior has it. With
        ``focus="prediction"`` every step adds noise, and noise and deviations are fed
        back through the nonlinear network, unlike in ``predict(...,
        return_std=True)``. With ``focus="simulation"`` the noise belongs to the
        measurement and is not fed back, and the whole path is linear in the weights:
        the draws then have the mean and the standard deviation that ``predict`` gives.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_inputs) or None
            Inputs, as in ``predict``.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs), default=None
            Measured outputs. Without them the draws are free runs.
        horizon : int or None, default=1
            Steps ahead, as in ``predict``. Row t of every draw goes on from the
            measured rows up to t - ``horizon``.
        y_init : array-like of shape (n_init,) or (n_init, n_outputs), default=None
            Measured outputs from which the free runs start.
        X_init : array-like of shape (n_init, n_inputs), default=None
            Inputs of the rows before ``X``, one a row of ``y_init``.
        sessions : array-like of shape (n_rows,), default=None
            The record each row belongs to.
        n_samples : int, default=100
            Draws. Those of a committee come from its members in proportion to
            ``estimator_weights_``, in random order.
        random_state : int, RandomState instance or None, default=0
            Source of the draws.

        Returns
        -------
        y : ndarray of shape (n_rows, n_samples)
            The draws, in units of y; (n_rows, n_outputs, n_samples) when y had two
            dimensions in fit. Rows that ``predict`` returns as measured, or as NaN
            because a value is missing, are so in all draws. A draw that diverges is
            NaN from there on.

        Raises
        ------
        ValueError
            As ``predict`` does, and for ``n_samples`` below 1.

        Warns
        -----
        RuntimeWarning
            If draws diverged, with their number. What is computed from the others alone
            is too narrow.

        Examples
        --------
        >>> import numpy as np
        >>> from skbayesnn import SparseBayesNARXRegressor
        >>> from skbayesnn.datasets import make_cascaded_tanks
        >>> u, y = make_cascaded_tanks(300, return_X_y=True, random_state=0)
        >>> model = SparseBayesNARXRegressor(hidden_layer_sizes=()).fit(u, y)
        >>> draws = model.sample_y(u, y_init=y[:2], n_samples=200)
        >>> lower, upper = np.quantile(draws, [0.05, 0.95], axis=1)
        """
        check_is_fitted(self)
        if not (isinstance(n_samples, Integral) and n_samples >= 1):
            raise ValueError(
                f"n_samples must be a positive integer; got {n_samples!r}."
            )
        record = self._check_prediction(X, y, horizon, y_init, X_init, sessions)
        U, Y, starts, n_known, n_before = record
        if y is None or horizon is None:
            horizon = np.inf
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        drawn, n_diverged = ensembles.draws(
            self._ensemble(),
            Record(U, Y, self._lags, starts),
            n_known,
            horizon,
            n_samples,
            seed,
        )
        if n_diverged:
            warnings.warn(
                f"{n_diverged} of {n_samples} draws diverged (beyond "
                f"{DIVERGENCE_LIMIT:.0f} standard deviations of the "
                "training record) and are NaN from there on.",
                RuntimeWarning,
                stacklevel=2,
            )
        return self._shape_like_y(drawn, starts, n_before)

    def _shape_like_y(self, values, starts, n_before):
        """Without the rows before each session, and flat for a single output."""
        if n_before:
            keep = np.ones(len(values), dtype=bool)
            for start in starts[:-1]:
                keep[start : start + n_before] = False
            values = values[keep]
        return values[:, 0] if self._single_output else values

    def _check_inputs(self, X, name="X"):
        if self.n_features_in_ == 0:
            shape = np.shape(X)
            if len(shape) != 2 or shape[1] != 0:
                raise ValueError(
                    f"{name} must have shape (n_samples, 0): the model was fitted "
                    f"without inputs (X=None). Got shape {shape}."
                )
            return np.empty(shape)
        U = checks.validate_data(
            self,
            X,
            dtype=np.float64,
            order="C",
            ensure_all_finite="allow-nan",
            reset=False,
        )
        checks.check_magnitude(U, name)
        return checks.own(U)

    def _check_outputs(self, y, name):
        Y = checks.check_outputs(y, name)
        Y = Y.reshape(len(Y), -1)
        if Y.shape[1] != self.n_outputs_:
            raise ValueError(
                f"{name} must hold {self.n_outputs_} outputs, as y did in fit; got "
                f"{Y.shape[1]}."
            )
        checks.check_magnitude(Y, name)
        return checks.own(Y)

    def _check_prediction(self, X, y, horizon, y_init, X_init, sessions):
        """Inputs, outputs, session starts, known rows and prepended rows."""
        if horizon is not None and not (isinstance(horizon, Integral) and horizon >= 1):
            raise ValueError(
                f"horizon must be a positive integer or None; got {horizon!r}."
            )
        if y is not None and (y_init is not None or X_init is not None):
            raise ValueError(
                "y_init and X_init start a free run, which uses no y: pass y, or "
                "y_init; or y with horizon=None to start from its first rows."
            )
        if X_init is not None and y_init is None:
            raise ValueError("X_init needs y_init with as many rows; got y_init=None.")
        if y is not None:
            Y = self._check_outputs(y, "y")
            U = np.empty((len(Y), 0)) if X is None else self._check_inputs(X)
            if X is None and self.n_features_in_:
                raise ValueError(
                    f"X must hold the {self.n_features_in_} inputs; got None."
                )
            checks.check_lengths(U, Y, "X", "y")
            starts = session_starts(checks.check_sessions(sessions, len(Y)), len(Y))
            return U, Y, starts, self.max_lag_, 0
        if X is None:
            raise ValueError(
                "X must not be None in free run: it says how many rows to simulate. "
                "For an autoregression pass an array of shape (n_rows, 0)."
            )
        U = self._check_inputs(X)
        starts = session_starts(checks.check_sessions(sessions, len(U)), len(U))
        return self._start_free_run(U, starts, y_init, X_init)

    def _start_free_run(self, U, starts, y_init, X_init):
        if y_init is None:
            n_known = self.max_lag_
            before = np.tile(self._u_mean, (n_known, 1))
            known = np.tile(self._y_mean, (n_known, 1))
            return self._prepend(U, starts, before, known)
        known = self._check_outputs(y_init, "y_init")
        if len(starts) > 2:
            raise ValueError(
                f"y_init starts one session, but sessions names {len(starts) - 1}. "
                "Pass y with horizon=None to start each from its own first rows, or "
                "simulate them one by one."
            )
        shortest = 1 if X_init is None else self.max_lag_
        longest = len(U) if X_init is None else np.inf
        if not shortest <= len(known) <= longest:
            raise ValueError(
                f"y_init must have at least one row and at most the {len(U)} rows of "
                f"X, or, with X_init, at least max_lag_={self.max_lag_}; got "
                f"{len(known)}."
            )
        if not np.isfinite(known).all():
            raise ValueError("y_init must hold no missing values; got NaN.")
        if X_init is None and len(known) < self.max_lag_:
            return self._start_before(U, known)
        if X_init is not None:
            before = self._check_inputs(X_init, "X_init")
            checks.check_lengths(before, known, "X_init", "y_init")
            return self._prepend(U, starts, before, known)
        Y = np.full((len(U), self.n_outputs_), np.nan)
        Y[: len(known)] = known
        return U, Y, starts, len(known), 0

    def _start_before(self, U, known):
        """A record whose rows before the first are estimated from a few outputs."""
        n_before = self.max_lag_
        unknown = np.full((len(U) - len(known), self.n_outputs_), np.nan)
        estimated = outputs_before(
            self._model, self._lags, U[: len(known)], known, self._step_variance
        )
        # a member of a committee may look back further than the one that estimates
        estimated = np.pad(estimated, ((n_before - len(estimated), 0), (0, 0)), "edge")
        U = np.concatenate([np.tile(U[:1], (n_before, 1)), U])
        Y = np.concatenate([estimated, known, unknown])
        return U, Y, np.array([0, len(Y)]), n_before + len(known), n_before

    def _prepend(self, U, starts, before, known):
        """Every session with rows before it from which it starts."""
        n_before = len(known)
        records, outputs = [], []
        for start, stop in zip(starts[:-1], starts[1:], strict=True):
            records += [before, U[start:stop]]
            unknown = np.full((stop - start, self.n_outputs_), np.nan)
            outputs += [known, unknown]
        shift = n_before * np.arange(len(starts))
        U, Y = np.concatenate(records), np.concatenate(outputs)
        return U, Y, starts + shift, n_before, n_before

    def score(self, X, y, sample_weight=None, *, sessions=None, horizon="auto"):
        r"""Coefficient of determination beyond the initialisation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs) or None
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Measured outputs. The first ``max_lag_`` rows of each session start the
            prediction and are not scored, nor are rows with a missing value in their
            window, nor those of a free run behind a missing input.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in the score.
        sessions : array-like of shape (n_samples,), default=None
            The record each row belongs to.
        horizon : int, None or "auto", default="auto"
            Steps ahead; None scores the free run from the first ``max_lag_`` measured
            outputs. "auto" scores what the model was fitted for: one step, or the
            free run with ``focus="simulation"``.

        Returns
        -------
        score : float
            :math:`R^2`, averaged over outputs; minus infinity if a prediction
            diverged.
        """
        if isinstance(horizon, str) and horizon == "auto":
            horizon = None if self.focus == "simulation" else 1
        check_is_fitted(self)
        record = self._check_prediction(X, y, horizon, None, None, sessions)
        forecast = self._forecast(
            *record[:4], np.inf if horizon is None else horizon, False
        )
        if forecast.n_diverged:
            return -np.inf
        Y = record[1]
        rows = self._scored_rows(X, Y, sessions)
        # a free run ends where an input is missing
        rows = rows[np.isfinite(forecast.mean[rows]).all(axis=1)]
        if not len(rows):
            raise ValueError(
                "y holds no row to score: an input is missing before the first of them."
            )
        predicted = forecast.mean[rows]
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight)
            checks.check_lengths(sample_weight, Y, "sample_weight", "y")
            sample_weight = sample_weight[rows]
        return r2_score(Y[rows], predicted, sample_weight=sample_weight)

    def _scored_rows(self, X, Y, sessions):
        """Rows whose window is complete."""
        U = np.empty((len(Y), 0)) if X is None else self._check_inputs(X)
        starts = session_starts(checks.check_sessions(sessions, len(Y)), len(Y))
        members = getattr(self, "estimators_", [self])
        complete = [complete_rows(U, Y, member._lags, starts) for member in members]
        rows = functools.reduce(np.intersect1d, complete)
        if not len(rows):
            raise ValueError(
                f"y holds no row to score: the first max_lag_={self.max_lag_} rows of "
                f"each session start the prediction; got {len(Y)} rows in "
                f"{len(starts) - 1} sessions."
            )
        return rows
