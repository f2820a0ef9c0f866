"""The dynamic regressor with hidden states: a self-pruning state-space network."""

from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from .. import _validation as checks
from .._docstrings import shared_parameters
from .._fitting import restore_on_failure
from .._random import draw_seed
from .._saved_state import SavedStateMixin, public, saved_as
from .._sklearn import fit_context, on_one_blas_thread
from .._warnings import warn_caller
from ..exceptions import DivergenceWarning
from .attributes import network_attributes, set_attributes
from .kernels.activations import ACTIVATION_NAMES
from .learning.restarts import learn
from .learning.state_space_problem import pose_state_space
from .network import split_layers
from .parameters import STATE_SPACE_CONSTRAINTS, learning_options
from .prediction.bands import Bands, bands_of, widen
from .prediction.ensemble import combine
from .prediction.hidden_states import (
    StateSpaceNetwork,
    estimated_start,
    free_run,
    make_network,
    unknown_start,
)
from .records.layout import Record
from .regressor_texts import TEXTS
from .training_record import no_sample_weight


@saved_as("StateSpaceEnsemble")
class StateSpaceEnsemble(NamedTuple):
    """A fitted state-space model: its networks, the best first.

    single_output : whether y had one dimension in fit
    """

    members: tuple[StateSpaceNetwork, ...]
    bands: Bands
    single_output: bool


@public
@shared_parameters(TEXTS)
class SparseBayesStateSpaceRegressor(
    SavedStateMixin, MultiOutputMixin, RegressorMixin, BaseEstimator
):
    r"""State-space model: a self-pruning network with hidden states.

    .. math:: x(t+1) &= A x(t) + B u(t) + \mathrm{Net}_x(x(t), u(t)), \\
        y(t) &= C x(t) + D u(t) + \mathrm{Net}_y(x(t), u(t)) + \xi(t)

    The states x are not measured; they are what the model remembers of the past. Choose
    it instead of :class:`SparseBayesNARXRegressor` where the outputs hide a part of the
    state, such as a speed that is measured without its sign: then no number of lags of
    the outputs replaces it. Where the outputs show the state, lags are learned faster
    and better.

    Both equations are one network with a linear path, learned by sparse Bayesian
    learning as in [1]_. The fit squares the errors of a free run through whole records,
    by exact sensitivities through the recursion; the states at the start of each
    session are learned along with the weights.

    Parameters
    ----------
    n_states : int, default=4
        Number of states before pruning.
    hidden_layer_sizes : int or array-like of int, default=(8,)
        Units in each hidden layer before pruning; the layers serve both equations.
        ``()`` is a linear model.
    reg_lambda : float or array-like of shape (n_layers,), default=5.0
        Strength of the prior, not negative; one number per weight layer, and one more
        for the linear path, are allowed. It acts as a temperature: the likelihood is
        raised to the power 1 / ``reg_lambda``. 1 is Bayes' rule for independent
        residuals; choose more, up to 20, where residuals change slowly.
    n_restarts : int, default=8
        Starts of the fit, since one may end in a poor optimum. Every second one begins
        at a linear model, the others at random dynamics. After 15 cycles the quarter
        with the best objectives goes on, at least two and ``n_estimators``; of these
        the best objective is kept.
    n_estimators : int, default=1
        Networks of an ensemble: the best of ``n_restarts`` starts, or of as many
        starts as there are networks. Predictions are their median, standard deviations
        those of the mixture.
    random_state : int, RandomState instance or None, default=None
        Source of the initial weights.

    Other Parameters
    ----------------
    linear_lags : int, default=15
        Lags of the linear ARX model behind the linear starts; no more than a third of
        the shortest session.
    activation : {"auto", "tanh", "relu", "logistic"}, default="auto"
        Function of the hidden units. "auto" gives half of the starts "tanh", for smooth
        systems, and half "relu", for magnitudes, saturations and overflows; then the
        objective decides.
    groups : {"element", "row", "column", "layer"} or sequence of these, \
            default="element"
        Which weights share a prior variance: each has its own ("element"), all that
        leave a state, an input or a unit ("row"), all that enter a unit or a state
        ("column"), or all of a layer ("layer"). With several, a weight's prior is the
        product of its groups' priors.
    {{kappa_variance}}
    {{kappa_weight}}
    {{noise}}
    {{noise_variance}}
    {{max_cycles}}
    {{tol}}
    {{n_jobs}}
    {{verbose}}

    Attributes
    ----------
    order_ : int
        Number of states that are left: those from which weights lead to an output, in
        the same row or later.
    state_matrix_, input_matrix_, output_matrix_, feedthrough_matrix_ : ndarray
        The linear path A, B, C and D, of shapes (n_states, n_states),
        (n_states, n_inputs), (n_outputs, n_states) and (n_outputs, n_inputs), in scaled
        units. The basis of the states is arbitrary: any invertible linear map of them,
        applied to all equations, gives the same model.
    activation_ : str
        Function of the hidden units of the best network.
    {{coefs}}
    skip_coef_, skip_mask_, skip_prior_variance_ : ndarray of shape \
            (n_features, n_states + n_outputs)
        The same of the linear path, beside hidden layers. Features are the states, the
        inputs, and for each session an indicator, whose weights are the states at its
        start.
    noise_variance_ : float or ndarray of shape (n_outputs,)
        Variance of the errors of the free run, in squared units of y.
    {{degrees_of_freedom}}
    {{posterior}}
    history_ : dict of ndarray, one entry per cycle
        ``objective_start``, ``objective`` and ``objective_pruned``: the objective
        before and after the updates of a cycle, and after its pruning; ``rmse`` (units
        of y), ``n_active_weights``, ``n_active_units``, ``n_iter`` and ``horizon``;
        and, a single number, ``n_diverged_starts``.
    {{counts}}
    n_features_in_ : int
        Number of inputs seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the inputs, when they are all strings.

    See Also
    --------
    SparseBayesNARXRegressor : The network on lagged inputs and outputs.
    skbayesnn.datasets.make_coupled_drives : A system that hides a part of its state.

    Notes
    -----
    Rows are equally spaced in time, and inputs have no gaps. Cross-validation must keep
    rows in order: ``TimeSeriesSplit``, or group-wise splits with the groups as
    ``sessions``.

    References
    ----------
    .. [1] H. Zhou, C. Ibrahim, W. Pan, "A Sparse Bayesian Deep Learning Approach for
       Identification of Cascaded Tanks Benchmark", 2019.

    Examples
    --------
    >>> from skbayesnn import SparseBayesStateSpaceRegressor
    >>> from skbayesnn.datasets import make_coupled_drives
    >>> u, y = make_coupled_drives(200, return_X_y=True, random_state=0)
    >>> model = SparseBayesStateSpaceRegressor(
    ...     2, hidden_layer_sizes=2, n_restarts=1, random_state=0
    ... )
    >>> model = model.fit(u, y)
    >>> simulated, std = model.predict(u, y_init=y[:10], return_std=True)
    """

    _parameter_constraints: dict = STATE_SPACE_CONSTRAINTS

    def __init__(
        self,
        n_states=4,
        *,
        hidden_layer_sizes=(8,),
        reg_lambda=5.0,
        n_restarts=8,
        n_estimators=1,
        random_state=None,
        linear_lags=15,
        activation="auto",
        groups="element",
        kappa_variance=1e-6,
        kappa_weight=1e-3,
        noise="gaussian",
        noise_variance="auto",
        max_cycles=200,
        tol=1e-3,
        n_jobs=None,
        verbose=False,
    ):
        self.n_states = n_states
        self.hidden_layer_sizes = hidden_layer_sizes
        self.reg_lambda = reg_lambda
        self.n_restarts = n_restarts
        self.n_estimators = n_estimators
        self.random_state = random_state
        self.linear_lags = linear_lags
        self.activation = activation
        self.groups = groups
        self.kappa_variance = kappa_variance
        self.kappa_weight = kappa_weight
        self.noise = noise
        self.noise_variance = noise_variance
        self.max_cycles = max_cycles
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose

    @no_sample_weight
    @restore_on_failure
    @fit_context(prefer_skip_nested_validation=True)
    @on_one_blas_thread
    def fit(self, X, y, sessions=None):
        """Learn the model from one or several records.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs)
            Inputs, in the order of time, finite.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Measured outputs, NaN where missing.
        sessions : array-like of shape (n_samples,), default=None
            The record each row belongs to; a record is a run of rows with the same
            id, and begins at a state of its own.

        Returns
        -------
        self : SparseBayesStateSpaceRegressor
            The fitted estimator. If the fit fails or is interrupted, an earlier fit
            stays as it was.

        Raises
        ------
        ValueError
            For parameters outside their range, inputs that are not finite, outputs
            without any value, sessions of one row, and lengths that differ.
        """
        U, Y, single_output = self._check_training_record(X, y)
        starts = self._session_starts(sessions, len(Y))
        shortest = int(np.diff(starts).min())
        lag = max(1, min(self.linear_lags, shortest // 3))
        options = learning_options(self._fixed_parameters(), Y.shape[1])
        problem = pose_state_space(options, U, Y, starts, self.n_states, lag)
        fit = learn(
            problem,
            draw_seed(self.random_state),
            n_starts=max(self.n_restarts, self.n_estimators),
            n_networks=self.n_estimators,
            n_jobs=self.n_jobs,
        )
        self._model = StateSpaceEnsemble(
            tuple(make_network(one.fitted, problem.data) for one in fit.networks),
            bands_of(U, Y),
            single_output,
        )
        self._set_attributes(fit)
        return self

    def _check_training_record(self, X, y):
        """Inputs (n, n_inputs), outputs (n, n_outputs), and if y has one dimension."""
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but "
                "the target y is None."
            )
        y = checks.check_outputs(y)
        Y = checks.own(y.reshape(len(y), -1))
        U = checks.validate_data(
            self, X, dtype=np.float64, order="C", ensure_min_samples=2
        )
        checks.check_lengths(U, Y, "X", "y")
        checks.check_magnitude(U, "X")
        checks.check_magnitude(Y, "y")
        checks.check_any_value(Y, "y")
        return checks.own(U), Y, y.ndim == 1

    def _session_starts(self, sessions, n_rows):
        starts = checks.session_starts(checks.check_sessions(sessions, n_rows), n_rows)
        lengths = np.diff(starts)
        if lengths.min() < 2:
            raise ValueError(
                f"sessions must have at least 2 rows; session number "
                f"{int(lengths.argmin())} has 1. Leave it out."
            )
        return starts

    def _fixed_parameters(self):
        """The parameters of learning, with those that this model does not offer."""
        return self.get_params(deep=False) | {
            "skip_connection": True,
            "reweight": True,
            "curvature": "full",
            "solver": "lm",
            "max_iter": "auto",
            "normalize": True,
        }

    def _set_attributes(self, fit):
        best = fit.networks[0]
        attributes = network_attributes(best)
        n_diverged = np.array(fit.n_diverged)
        attributes["history_"] = best.history | {"n_diverged_starts": n_diverged}
        attributes["activation_"] = ACTIVATION_NAMES[best.fitted.network.activation]
        attributes["order_"] = _count_states(best.fitted.network, self.n_states)
        linear = attributes.get("skip_coef_", attributes["coefs_"][-1])
        n, n_inputs = self.n_states, self.n_features_in_
        attributes["state_matrix_"] = linear[:n, :n].T
        attributes["input_matrix_"] = linear[n : n + n_inputs, :n].T
        attributes["output_matrix_"] = linear[:n, n:].T
        attributes["feedthrough_matrix_"] = linear[n : n + n_inputs, n:].T
        set_attributes(self, attributes)

    @on_one_blas_thread
    def predict(self, X, *, y_init=None, sessions=None, return_std=False):
        """Simulate a record in free run.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs)
            Inputs, finite.
        y_init : array-like of shape (n_init,) or (n_init, n_outputs), default=None
            Measured outputs of the first rows of ``X``, NaN where missing. They tell
            the state from which the run starts, and are returned as given; a few times
            as many rows as there are states are enough. Without them the run starts at
            the mean of the states in the training record.
        sessions : array-like of shape (n_samples,), default=None
            The record each row belongs to, as in ``fit``; every record starts anew.
        return_std : bool, default=False
            Return standard deviations of new observations as well. They combine the
            posterior of the weights and that of the state at the start (delta method)
            with the noise. Where an input or the run itself is outside the range of the
            training record by more than a tenth of it, they grow with the distance.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            One value per row, in units of y. From the row on in which the run diverges
            (more than 100 standard deviations of the training record off), it is NaN.
        y_std : ndarray shaped like y_pred
            Only if ``return_std=True``; 0 where outputs were given.

        Raises
        ------
        ValueError
            For a ``y_init`` that is longer than ``X`` or has another number of outputs,
            and for a ``y_init`` together with several sessions.

        Warns
        -----
        DivergenceWarning
            If the run diverged, with the number of rows.
        """
        check_is_fitted(self)
        U = self._check_inputs(X)
        starts = checks.session_starts(checks.check_sessions(sessions, len(U)), len(U))
        known = [None] * (len(starts) - 1)
        if y_init is not None:
            known = [self._check_initial_outputs(U, starts, y_init)]
        forecast = self._forecast(U, starts, known, return_std)
        if forecast.n_diverged:
            warn_caller(
                f"The run diverged in {forecast.n_diverged} of {len(U)} rows, which "
                "are NaN: the model is unstable there. Increase reg_lambda, or keep "
                "the inputs in the range of the training record.",
                DivergenceWarning,
            )
        mean = self._shape_like_y(forecast.mean)
        return (mean, self._shape_like_y(forecast.std)) if return_std else mean

    def _forecast(self, U, starts, known, return_std):
        """`Forecast` of sessions, with the known first outputs of each, or None."""
        forecasts = [
            free_run(member, U, starts, _start(member, U, starts, known), return_std)
            for member in self._model.members
        ]
        weights = np.full(len(forecasts), 1.0 / len(forecasts))
        forecast = forecasts[0]
        if len(forecasts) > 1:
            forecast = combine(forecasts, weights)
        if return_std:
            forecast = forecast._replace(std=self._widened(forecast, U, starts))
        for start, outputs in zip(starts[:-1], known, strict=True):
            _give(forecast, start, outputs)
        return forecast

    def _widened(self, forecast, U, starts):
        """Standard deviations with what the bands add to them."""
        record = Record(U, forecast.mean, None, starts)
        scale = self._model.members[0].fitted.scaling.y_scale
        arguments = record, self.n_states, True, scale
        return widen(self._model.bands, forecast.std, forecast.mean, *arguments)

    @on_one_blas_thread
    def score(self, X, y, sample_weight=None, *, sessions=None, n_init=None):
        r"""Coefficient of determination of free runs, beyond their initialisation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Measured outputs; rows with a missing one are not scored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in the score.
        sessions : array-like of shape (n_samples,), default=None
            The record each row belongs to.
        n_init : int, default=None
            Rows of each session whose outputs tell the state at its start, and which
            are not scored. By default four for each state, at most half of a session.

        Returns
        -------
        score : float
            :math:`R^2`, averaged over outputs; minus infinity if a run diverged.
        """
        check_is_fitted(self)
        U, Y = self._check_inputs(X), self._check_outputs(y, "y")
        checks.check_lengths(U, Y, "X", "y")
        starts = checks.session_starts(checks.check_sessions(sessions, len(U)), len(U))
        scored = np.isfinite(Y).all(axis=1)
        known = []
        for start, stop in zip(starts[:-1], starts[1:], strict=True):
            n_rows = min(4 * self.n_states, (stop - start) // 2)
            if n_init is not None:
                n_rows = min(checks.check_count(n_init, "n_init", 0), stop - start)
            known.append(Y[start : start + n_rows])
            scored[start : start + n_rows] = False
        if not scored.any():
            raise ValueError(
                f"y holds no row to score behind the first rows of each session; got "
                f"{len(Y)} rows in {len(starts) - 1} sessions."
            )
        forecast = self._forecast(U, starts, known, False)
        if forecast.n_diverged:
            return -np.inf
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight)
            checks.check_lengths(sample_weight, Y, "sample_weight", "y")
            sample_weight = sample_weight[scored]
        return r2_score(Y[scored], forecast.mean[scored], sample_weight=sample_weight)

    def _check_inputs(self, X):
        U = checks.validate_data(self, X, dtype=np.float64, order="C", reset=False)
        checks.check_magnitude(U, "X")
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

    def _check_initial_outputs(self, U, starts, y_init):
        known = self._check_outputs(y_init, "y_init")
        if len(starts) > 2:
            raise ValueError(
                f"y_init starts one session, but sessions names {len(starts) - 1}. "
                "Simulate them one by one."
            )
        if len(known) > len(U):
            raise ValueError(
                f"y_init must have at most the {len(U)} rows of X; got {len(known)}."
            )
        return known

    def _shape_like_y(self, values):
        return values[:, 0] if self._model.single_output else values


def _count_states(network, n_states):
    """Number of states from which weights lead to an output, in this row or later."""
    layers = split_layers(network.theta != 0.0, network.sizes, network.skip)
    n_layers = len(network.sizes) - 1
    leads = np.eye(network.sizes[0], dtype=bool)
    for weights, _ in layers[:n_layers]:
        leads = leads @ weights
    if network.skip:
        leads |= layers[-1][0]
    states = network.units[0] < n_states
    read = network.units[0][states]
    to_states, seen = leads[states][:, read], leads[states][:, n_states:].any(axis=1)
    for _ in read:
        seen = seen | to_states @ seen
    return int(np.count_nonzero(seen))


def _start(member, U, starts, known):
    """The `Start` of all sessions, from the outputs of their first rows."""
    start = unknown_start(member, len(known))
    for session, outputs in enumerate(known):
        if outputs is None or not np.isfinite(outputs).any():
            continue
        rows = slice(starts[session], starts[session] + len(outputs))
        found = estimated_start(member, U[rows], outputs)
        start.state[session] = found.state[0]
        start.covariance[session] = found.covariance[0]
    return start


def _give(forecast, start, outputs):
    """Put known outputs into a forecast, in place."""
    if outputs is None:
        return
    rows, known = slice(start, start + len(outputs)), np.isfinite(outputs)
    forecast.mean[rows][known] = outputs[known]
    if forecast.std is not None:
        forecast.std[rows][known] = 0.0
