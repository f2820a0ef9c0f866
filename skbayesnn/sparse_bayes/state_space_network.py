"""The dynamic regressor with hidden states: a self-pruning state-space network."""

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin

from .._docstrings import shared_parameters
from .._fitting import restore_on_failure
from .._random import draw_seed
from .._saved_state import public
from .._sklearn import fit_context, on_one_blas_thread
from .attributes import network_attributes, set_attributes
from .dynamic_predictor import DynamicPredictorMixin, estimators_of, make_state_model
from .exports import ExportMixin
from .forecasting import ForecastMixin
from .kernels.activations import ACTIVATION_NAMES
from .learning.all_rows import resume, with_whole_steps
from .learning.order_search import learn_states
from .learning.result import Fit
from .learning.state_order import count_states
from .learning.state_space_problem import pose_state_space
from .parameters import STATE_SPACE_CONSTRAINTS, learning_options
from .prediction.hidden_states import make_network, rows_that_tell
from .prediction.told_runs import predicts
from .records.lags import usual_length
from .records.state_runs import without_gaps
from .regressor_texts import TEXTS
from .training_record import check_training_record, no_sample_weight


@public
@shared_parameters(TEXTS)
class SparseBayesStateSpaceRegressor(
    ExportMixin,
    ForecastMixin,
    DynamicPredictorMixin,
    MultiOutputMixin,
    RegressorMixin,
    BaseEstimator,
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
        Number of states that are offered; those that do not pay are taken away
        (``order_``).
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
        the best objective is kept. Those that err more than the mean of the record
        does, once its first rows have told the states, are left out if any does not.
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
        the shortest session, but for short ones with a tenth of all rows together.
    output : {"level", "difference"}, default="level"
        What the network says: the outputs, or what is added to them from row to row.
        Choose "difference" for an integrating system, such as a position that follows
        a force, where nothing depends on where it is: one state for each output is its
        level.
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
        the same row or later. A further one would lower the objective by less than
        ``reg_lambda`` log(n) for each input and output.
    max_lag_ : int
        Rows of a record whose outputs tell the state at its start, four for each state:
        they are needed before the first prediction with ``y``.
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
    estimators_ : list of SparseBayesStateSpaceRegressor
        The networks of an ensemble, the best first. Only if ``n_estimators`` > 1; the
        other attributes then describe the first.
    estimator_weights_ : ndarray of shape (n_estimators,)
        Their weights, which are equal.
    {{posterior}}
    history_ : dict of ndarray, one entry per cycle
        ``objective_start``, ``objective`` and ``objective_pruned``: the objective
        before and after the updates of a cycle, and after its pruning; ``rmse`` (units
        of y), ``n_active_weights``, ``n_active_units``, ``n_iter`` and ``horizon``;
        and, a single number, ``n_diverged_starts``.
    {{counts}}
    {{inputs}}
    {{signals}}

    See Also
    --------
    SparseBayesNARXRegressor : The network on lagged inputs and outputs.
    skbayesnn.datasets.make_coupled_drives : A system that hides a part of its state.

    Notes
    -----
    {{equally_spaced}}

    {{in_order}}

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
        output="level",
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
        self.output = output
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
    def fit(self, X, y, *, sessions=None):
        """Learn the model from one or several records.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs) or None
            Inputs, in the order of time. None for a system that runs by itself. A row
            with a missing value, NaN, is left out, and a record begins anew behind it.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Measured outputs, NaN where missing.
        sessions : array-like of shape (n_samples,) or "infer", default=None
            The record each row belongs to; a record is a run of rows with the same
            id, and begins at a state of its own; of a single row, nothing is learned.
            "infer" begins a new record where the
            times of the rows have a hole; see the notes.

        Returns
        -------
        self : SparseBayesStateSpaceRegressor
            The fitted estimator. If the fit fails or is interrupted, an earlier fit
            stays as it was.

        Raises
        ------
        ValueError
            For parameters outside their range, columns without any value, infinite or
            too large values, lengths that differ, times that are missing, repeated, not
            in order or not the same in X and y, and a name that X and y share.

        Warns
        -----
        SamplingWarning
            For holes in time, an index of pandas that does not count up, and 250 rows
            or more of which none is correlated with those before it.
        UserWarning
            For inputs, or outputs, that are constant, and for inputs that, or whose
            changes, are a linear function of the outputs: an output in another unit,
            or the input of a controller with a constant set point.
        OutlierWarning
            For a value of an input far beyond all others, without an effect on the
            outputs, such as a code of missing values.
        """
        return self._learn(check_training_record(self, X, y, sessions))

    @on_one_blas_thread
    def _learn(self, given, fit=None, start=None):
        """The fit to a `TrainingRecord`, or what an earlier one has learned of it.

        With a ``start``, the fit goes on from there.
        """
        vars(self).update(given.attributes)
        options = learning_options(self._fixed_parameters(), given.Y.shape[1])
        U, Y, starts = without_gaps(given.U, given.Y, given.starts)
        lag = max(1, min(self.linear_lags, usual_length(starts) // 3))
        difference = self._check_output(Y.shape[1])
        arguments = U, Y, starts, self.n_states, lag, difference
        earlier = start if fit is None else fit.networks[0].start
        scaling = None if earlier is None else earlier.scaling
        problem = pose_state_space(options, *arguments, scaling)
        problem = problem._replace(predicts=predicts)
        if fit is None and start is not None:
            learned = resume(problem, start, draw_seed(self.random_state))
            fit = Fit((learned,), int(learned.diverged), False)
        elif fit is None:
            fit = learn_states(
                problem,
                draw_seed(self.random_state),
                n_starts=max(self.n_restarts, self.n_estimators),
                n_networks=self.n_estimators,
                n_jobs=self.n_jobs,
            )
        data = with_whole_steps(problem.data)
        members = [make_network(one.fitted, data) for one in fit.networks]
        self._learned = fit.networks[0]
        self._store(fit, make_state_model(members, given, difference))
        return self

    def _check_output(self, n_outputs):
        """Whether the network says differences; it needs a state for each level."""
        difference = self.output == "difference"
        if difference and self.n_states < n_outputs:
            raise ValueError(
                "output='difference' needs a state for the level of each output; got "
                f"n_states={self.n_states} and {n_outputs} outputs. Increase n_states."
            )
        return difference

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

    def _store(self, fit, model):
        """Keep what was learned, and set all public attributes."""
        best = fit.networks[0]
        self._model = model
        attributes = network_attributes(best)
        n_diverged = np.array(fit.n_diverged)
        attributes["history_"] = best.history | {"n_diverged_starts": n_diverged}
        attributes["activation_"] = ACTIVATION_NAMES[best.fitted.network.activation]
        attributes["max_lag_"] = rows_that_tell(self.n_states)
        attributes["order_"] = count_states(best.fitted.network, self.n_states)
        linear = attributes.get("skip_coef_", attributes["coefs_"][-1])
        n, n_inputs = self.n_states, self.n_features_in_
        attributes["state_matrix_"] = linear[:n, :n].T
        attributes["input_matrix_"] = linear[n : n + n_inputs, :n].T
        attributes["output_matrix_"] = linear[:n, n:].T
        attributes["feedthrough_matrix_"] = linear[n : n + n_inputs, n:].T
        if self.n_estimators > 1:
            attributes["estimators_"] = estimators_of(self, fit, model)
            attributes["estimator_weights_"] = model.ensemble.weights
        set_attributes(self, attributes)
