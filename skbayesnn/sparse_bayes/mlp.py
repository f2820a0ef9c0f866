"""The static regressor: a perceptron that prunes itself and knows its uncertainty."""

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.neural_network import MLPRegressor
from sklearn.utils.validation import check_is_fitted

from .. import _validation as checks
from .._docstrings import shared_parameters
from .._fitting import FitInterrupted, restore_on_failure
from .._random import draw_seed
from .._saved_state import SavedStateMixin, public
from .._sklearn import DocumentationLinkMixin, fit_context, on_one_blas_thread
from .._warnings import warn_caller
from .attributes import network_attributes, set_attributes
from .kernels.activations import ACTIVATION_NAMES
from .learning.problem import pose
from .learning.restarts import learn
from .learning.unneeded_units import remove_units
from .parameters import MODEL_CONSTRAINTS, learning_options
from .prediction import posterior
from .prediction.bands import range_of, unknown_beyond
from .regressor_texts import TEXTS


@public
@shared_parameters(TEXTS)
class SparseBayesMLPRegressor(
    DocumentationLinkMixin,
    SavedStateMixin,
    MultiOutputMixin,
    RegressorMixin,
    BaseEstimator,
):
    r"""Multi-layer perceptron regressor learned by sparse Bayesian learning.

    Every group of weights has a Gaussian prior whose variance is learned by maximising
    the marginal likelihood (Laplace approximation with the Gauss-Newton curvature).
    The variance of a group that the data do not need goes to zero, and the group is
    pruned. Each cycle is Algorithm 1 of [1]_: a regularised fit of the weights, the
    update of the variances, and pruning. Finally, inputs and hidden units are removed
    on trial, one at a time, each for some cycles. One stays removed if neither the
    objective nor the log marginal likelihood gets worse by more than chance: log n for
    the objective and half of it for the likelihood, with n observations, the price of
    the Bayesian information criterion. Fits with ``kappa_variance`` and
    ``kappa_weight`` of 0, with a ``reg_lambda`` of 0, with ``reweight=False`` or with a
    diagonal curvature keep them all.

    Before that, a fit in which the data determine more parameters than half of the
    observations, and which may follow its noise, begins anew with three times the
    ``reg_lambda``, and goes on as asked; the network with the lower objective is kept.

    Parameters
    ----------
    hidden_layer_sizes : int or array-like of int, default=(20,)
        Units in each hidden layer before pruning. ``()`` is a linear model.
    {{activation}}
    {{groups}}
    reg_lambda : float or array-like of shape (n_layers,), default=1.0
        Strength of the prior in (15), not negative; one number per weight layer is
        allowed. It acts as a temperature: the likelihood is raised to the power
        1 / ``reg_lambda``. 1 is Bayes' rule for independent Gaussian residuals, more
        is for residuals that are not, 0 is no regularisation.
    n_restarts : int, default=1
        Fits from different random weights. The one with the lowest objective is kept.
    {{random_state}}

    Other Parameters
    ----------------
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
    {{n_jobs}}
    warm_start : bool, default=False
        Resume from the network, variances and scaling of the previous fit. A fit that
        Ctrl-C interrupts then keeps the last finished cycle.
    {{verbose}}

    Attributes
    ----------
    {{coefs}}
    noise_variance_ : float or ndarray of shape (n_outputs,)
        Noise variance in squared units of y.
    {{degrees_of_freedom}}
    {{posterior}}
    feature_relevance_ : ndarray of shape (n_features_in_,)
        Root mean squared derivative of the scaled output by each scaled input over the
        training data; 0 for an input that was pruned.
    history_ : dict of ndarray, one entry per cycle
        ``objective_start``, ``objective`` and ``objective_pruned``: (10) with the
        curvature of the cycle, before and after its updates, and after its pruning;
        ``rmse`` (units of y), ``n_active_weights``, ``n_active_units`` and ``n_iter``.
    {{counts}}
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when they are all strings.

    See Also
    --------
    SparseBayesNARXRegressor : The same network on lagged inputs and outputs.

    Notes
    -----
    The linear algebra of a fit runs on one BLAS thread. To use several cores, run
    restarts or the folds of a search in parallel.

    References
    ----------
    .. [1] H. Zhou, C. Ibrahim, W. Pan, "A Sparse Bayesian Deep Learning Approach for
       Identification of Cascaded Tanks Benchmark", 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import SparseBayesMLPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(200, 5))
    >>> y = np.sin(2 * X[:, 0]) + 0.05 * rng.standard_normal(200)
    >>> model = SparseBayesMLPRegressor(random_state=0).fit(X, y)
    >>> int(np.argmax(model.feature_relevance_))
    0
    >>> mean, std = model.predict(X, return_std=True)
    """

    _parameter_constraints: dict = MODEL_CONSTRAINTS

    def __init__(
        self,
        hidden_layer_sizes=(20,),
        activation="tanh",
        *,
        groups=("row", "column"),
        reg_lambda=1.0,
        n_restarts=1,
        random_state=None,
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
        n_jobs=None,
        warm_start=False,
        verbose=False,
    ):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.groups = groups
        self.reg_lambda = reg_lambda
        self.n_restarts = n_restarts
        self.random_state = random_state
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
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    @restore_on_failure
    @fit_context(prefer_skip_nested_validation=True)
    @on_one_blas_thread
    def fit(self, X, y, sample_weight=None):
        """Learn network, prior variances and noise from data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs, finite. Constant columns are pruned.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets, finite.
        sample_weight : array-like of shape (n_samples,), default=None
            How many times each row counts, not negative: a weight of k is the same as k
            copies of the row, one of 0 as none. They are not scaled: weights whose sum
            is more than the number of rows make the model more certain.

        Returns
        -------
        self : SparseBayesMLPRegressor
            The fitted estimator. If the fit fails or is interrupted, an earlier fit
            stays as it was.

        Raises
        ------
        ValueError
            For parameters outside their range, and for data that are not finite, too
            few, or too large to be squared; for weights that are negative or all zero.
        """
        if y is not None:
            # numbers first: scikit-learn names no y that holds NaN among objects
            y = checks.check_outputs(y, allow_nan=False)
        X, y = checks.validate_data(
            self,
            X,
            y,
            dtype=np.float64,
            order="C",
            multi_output=True,
            ensure_min_samples=2,
        )
        checks.check_magnitude(X, "X")
        checks.check_magnitude(y, "y")
        weights = checks.check_sample_weight(sample_weight, X)
        single_output = y.ndim == 1
        Y = y.reshape(len(y), -1)
        X, Y, weights = _distinct_rows(X, Y, weights)
        options = learning_options(self.get_params(deep=False), Y.shape[1])
        earlier = getattr(self, "_learned", None) if self.warm_start else None
        start = earlier.start if earlier else None
        problem = pose(options, X, Y, start, weights)
        problem = problem._replace(begins_anew=True, reduce=remove_units)
        fit = learn(
            problem,
            draw_seed(self.random_state),
            n_starts=self.n_restarts,
            n_jobs=self.n_jobs,
            keep=self.warm_start,
        )
        (self._learned,) = fit.networks
        self._single_output = single_output
        set_attributes(self, network_attributes(self._learned, X, weights))
        # who asks for a linear model says what is outside
        network = self._fitted.network
        self._known_range = None if network.linear else range_of(X, network.units[0])
        if fit.interrupted:
            raise FitInterrupted
        return self

    @property
    def _fitted(self):
        """What predictions need."""
        return self._learned.fitted

    def to_onnx(self, path=None, *, dtype="float32"):
        """Convert ``predict`` to ONNX: X -> y.

        The graph has standard operators alone, and any number of rows; y has a column
        for each output.

        Parameters
        ----------
        path : str or path-like, default=None
            A file to write, such as "network.onnx".
        dtype : {"float32", "float64"}, default="float32"
            Type of all numbers.

        Returns
        -------
        model : onnx.ModelProto
            The checked model.

        Raises
        ------
        ImportError
            Without onnx: ``pip install onnx``.
        """
        from .._onnx_graph import save
        from .deployment.onnx_step import static_model

        check_is_fitted(self)
        model = static_model(self._learned.fitted, self.n_features_in_, dtype)
        return save(model, path)

    @on_one_blas_thread
    def predict(self, X, return_std=False):
        """Predict by the posterior mode.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        return_std : bool, default=False
            Return the standard deviation of new observations as well: posterior of the
            weights by the delta method, plus noise. Where an input that the network
            uses is outside the range of the training data, at a distance of d times
            this range, max(d**2, d - 0.1) standard deviations of y are added to the
            variance, squared (not if ``hidden_layer_sizes`` is empty).

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions, in units of y.
        y_std : ndarray shaped like y
            Only if ``return_std=True``.

        Raises
        ------
        ValueError
            For another number of features than in ``fit``, other names or another
            order, and for values that are missing, infinite or too large.
        """
        X = self._check_inputs(X)
        mean = self._shape_like_y(posterior.mean(self._fitted, X))
        if return_std:
            std = np.hypot(posterior.std(self._fitted, X), self._unknown(X))
            return mean, self._shape_like_y(std)
        return mean

    @on_one_blas_thread
    def sample_y(self, X, n_samples=1, random_state=0):
        """Draw observations from the posterior predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Inputs.
        n_samples : int, default=1
            Draws; each has its own weights and its own noise. Outside the range of the
            training data they deviate from the prediction by as much more as the
            standard deviations of ``predict`` are larger.
        random_state : int, RandomState instance or None, default=0
            Source of the draws.

        Returns
        -------
        y : ndarray of shape (n_samples_X, n_samples)
            The draws, in units of y; (n_samples_X, n_outputs, n_samples) when y had
            two dimensions in fit.

        Raises
        ------
        ValueError
            For ``n_samples`` that is not an integer of at least 1.
        """
        X = self._check_inputs(X)
        n_samples = checks.check_count(n_samples, "n_samples", 1)
        rng = np.random.default_rng(draw_seed(random_state))
        draws = posterior.draws(self._fitted, X, n_samples, rng)
        unknown = self._unknown(X)
        if unknown.any():
            mean, std = posterior.mean(self._fitted, X), posterior.std(self._fitted, X)
            factor = np.hypot(std, unknown) / std
            draws = mean[..., None] + factor[..., None] * (draws - mean[..., None])
        return draws[:, 0] if self._single_output else draws

    @on_one_blas_thread
    def to_mlp_regressor(self):
        """Hand the network to scikit-learn.

        Returns
        -------
        regressor : sklearn.neural_network.MLPRegressor
            Fitted, in the user's units, with the same predictions; but those of a y of
            shape (n_samples, 1) have shape (n_samples,), as all of scikit-learn's.

        Warns
        -----
        UserWarning
            If predictions have another shape.
        """
        check_is_fitted(self)
        if self.n_outputs_ == 1 and not self._single_output:
            warn_caller(
                "MLPRegressor predicts shape (n_samples,) where y had shape "
                "(n_samples, 1) in fit; this estimator predicts (n_samples, 1).",
                UserWarning,
            )
        # of the fit: parameters may have been set since
        network = self._fitted.network
        regressor = MLPRegressor(
            hidden_layer_sizes=network.full_sizes[1:-1],
            activation=ACTIVATION_NAMES[network.activation],
            random_state=self.random_state,
        )
        layers = posterior.unscaled_layers(self._fitted)
        regressor.coefs_, regressor.intercepts_ = layers
        regressor.n_layers_ = len(regressor.coefs_) + 1
        regressor.n_outputs_ = self.n_outputs_
        regressor.out_activation_ = "identity"
        regressor.n_iter_ = self.n_iter_
        regressor.t_ = 0
        regressor.loss_ = regressor.best_loss_ = 0.5 * float(
            np.mean(np.square(self.history_["rmse"][-1]))
        )
        regressor.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            regressor.feature_names_in_ = self.feature_names_in_
        return regressor

    def _unknown(self, X):
        """What is unknown outside the range of the fit (n_rows, n_outputs)."""
        # None in files of earlier versions
        known_range = getattr(self, "_known_range", None)
        y_scale = self._fitted.scaling.y_scale
        if known_range is None:
            return np.zeros((len(X), len(y_scale)))
        return unknown_beyond(known_range, X)[:, None] * y_scale

    def _check_inputs(self, X):
        check_is_fitted(self)
        X = checks.validate_data(self, X, dtype=np.float64, order="C", reset=False)
        checks.check_magnitude(X, "X")
        return X

    def _shape_like_y(self, values):
        return values[:, 0] if self._single_output else values


def _distinct_rows(X, Y, weights):
    """Rows that differ, and how many times each counts; None where each counts once.

    Copies of a row are one row that counts so many times: a fit is faster, and the
    same, to the last bit, for copies and for weights.
    """
    both = np.hstack([X, Y])
    if weights is None:
        # row by row, so that copies have the same number
        number = (both * np.random.default_rng(0).random(both.shape[1])).sum(axis=1)
        if len(np.unique(number)) == len(number):
            return X, Y, None
        weights = np.ones(len(X))
    counted = weights > 0.0
    if weights.sum() < 2.0:
        raise ValueError(
            "sample_weight says how many times each row counts, and must sum to at "
            f"least 2; found {weights.sum():.3g}. Multiply weights that sum to 1 by "
            "the number of rows."
        )
    both, inverse = np.unique(both[counted], axis=0, return_inverse=True)
    weights = np.bincount(inverse.ravel(), weights[counted])
    X, Y = np.split(both, [X.shape[1]], axis=1)
    return np.ascontiguousarray(X), np.ascontiguousarray(Y), weights
