"""What the static and the dynamic regressor share: parameters, restarts, results."""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .. import _validation as checks
from .._fitting import FitInterrupted
from .fitted import FittedNetwork
from .learning import cycle as sparse_bayes
from .learning import prior as evidence
from .learning import restarts
from .learning.curvature import Diagonal, diagonal_of, posterior_covariance
from .network import ACTIVATIONS, bias_mask, count_parameters, expand
from .parameters import (
    MODEL_CONSTRAINTS,
    check_groups,
    check_hidden_layer_sizes,
    check_noise_variance,
    check_reg_lambda,
)
from .prediction import posterior
from .records.layout import Stage
from .records.one_step import OneStepData
from .scaling import DIVERGENCE_LIMIT, Scaling

# Beyond this many unknowns a dense solve is slower than a backward pass by far, and
# its matrix no longer small beside the data.
FULL_CURVATURE_LIMIT = 4096
DUAL_BYTES = 2**30
# What a fit without a skip connection has not.
SKIP_ATTRIBUTES = ("skip_coef_", "skip_mask_", "skip_prior_variance_")
# Weight-fit iterations a cycle.  A Levenberg-Marquardt step does the work of dozens of
# the others'.
DEFAULT_ITERATIONS = {"lm": 3, "lbfgs": 50, "adam": 20}


class SparseBayesRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Parameters and fitting shared by the static and the dynamic regressor."""

    _parameter_constraints: dict = MODEL_CONSTRAINTS

    def _fit_network(self, X, Y, rank=None, stages=None):
        """Learn the network that maps ``X`` (n, n_inputs) to ``Y`` (n, n_outputs).

        Both finite float64. Sets the fitted attributes that both regressors share.
        ``rank(model)`` gives a restart's error; the objective does by default.
        ``stages(data, scaling)`` gives the errors that are squared, one kind after the
        other; those of ``X`` and ``Y`` by default.
        """
        previous = getattr(self, "_start", None) if self.warm_start else None
        scaling = previous.scaling if previous else self._scale(X, Y)
        problem = self._pose(X, Y, scaling, stages)
        if previous:
            _check_continuation(previous, problem)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        seeds = np.random.SeedSequence(seed).spawn(1 if previous else self._n_starts())
        runs, interrupted = restarts.run_restarts(
            problem, previous, seeds, self.n_jobs, self.warm_start
        )
        errors = [_rank(run, problem, scaling, rank) for run in runs]
        order = np.argsort(errors, kind="stable")
        runs = [runs[k] for k in order]
        self._store(runs[0], problem, scaling, X)
        self._store_others(runs, problem, scaling, X)
        if interrupted:
            raise FitInterrupted
        if not restarts.finished(runs[0]):
            _warn_unfinished(runs[0], self.max_cycles)

    def _n_starts(self):
        return self.n_restarts

    def _store_others(self, runs, problem, scaling, X):
        """What a subclass does with the restarts, the best first."""

    def _scale(self, X, Y):
        n_inputs, n_outputs = X.shape[1], Y.shape[1]
        if not self.normalize:
            return Scaling(
                np.zeros(n_inputs),
                np.ones(n_inputs),
                np.zeros(n_outputs),
                np.ones(n_outputs),
                _farthest(Y),
            )
        x_scale, y_scale = _spread(X), _spread(Y)
        checks.check_spread(x_scale, "X")
        checks.check_spread(y_scale, "y")
        return Scaling(X.mean(axis=0), x_scale, Y.mean(axis=0), y_scale)

    def _pose(self, X, Y, scaling, stages):
        """Check the parameters against the data, and scale the data."""
        hidden = check_hidden_layer_sizes(self.hidden_layer_sizes)
        sizes = (X.shape[1], *hidden, Y.shape[1])
        skip = bool(getattr(self, "skip_connection", False) and hidden)
        noise = check_noise_variance(self.noise_variance, Y.shape[1])
        weights = np.ones(Y.shape[1])
        if not isinstance(noise, str):
            relative = noise / scaling.y_scale**2
            noise = float(relative.mean())
            weights = np.sqrt(noise / relative)
        settings = sparse_bayes.Settings(
            reg_lambda=check_reg_lambda(self._reg_lambda(), len(sizes) - 1, skip),
            reweight=self.reweight,
            kappa_variance=float(self.kappa_variance),
            kappa_weight=float(self.kappa_weight),
            noise_variance=noise,
            curvature=_choose_curvature(
                self.curvature, self.solver, count_parameters(sizes, skip), Y.size
            ),
            solver=self.solver,
            max_iter=(
                DEFAULT_ITERATIONS[self.solver]
                if self.max_iter == "auto"
                else self.max_iter
            ),
            tol=float(self.tol),
        )
        XT = np.ascontiguousarray(((X - scaling.x_offset) / scaling.x_scale).T)
        YT = np.ascontiguousarray(((Y - scaling.y_offset) / scaling.y_scale).T)
        constant_output = _is_constant(Y).all()
        if constant_output:
            warnings.warn(
                "y is constant: the fitted model predicts this constant.",
                UserWarning,
                stacklevel=4,
            )
        data = OneStepData(XT, YT, weights)
        return restarts.Problem(
            stages=stages(data, scaling) if stages else (Stage(data, 1.0),),
            settings=settings,
            groups=check_groups(self._groups()),
            sizes=sizes,
            skip=skip,
            activation=self.activation,
            constant_inputs=_is_constant(X),
            constant_output=bool(constant_output),
            max_cycles=self.max_cycles,
            verbose=int(self.verbose),
        )

    def _groups(self):
        return self.groups

    def _reg_lambda(self):
        return self.reg_lambda

    def _store(self, run, problem, scaling, X):
        state, network = run.state, run.state.network
        covariance = _covariance(problem.settings, state)
        noise_std = _noise_std(problem, state)
        self._model = FittedNetwork(network, scaling, covariance, noise_std)
        self._start = restarts.Start(
            network, state.prior, state.noise, scaling, problem.groups
        )
        self._store_layers(state)
        noise_variance = (noise_std * scaling.y_scale) ** 2
        single = len(noise_variance) == 1
        self.noise_variance_ = float(noise_variance[0]) if single else noise_variance
        self.posterior_covariance_ = covariance
        self.history_ = _history(run.history, scaling)
        change_of_units = float(state.data.counts @ np.log(scaling.y_scale))
        self.log_marginal_likelihood_ = (
            sparse_bayes.log_marginal_likelihood(problem.settings, state)
            - change_of_units
        )
        self._n_observations = state.data.n_observations
        self.n_cycles_ = len(run.history)
        self.n_iter_ = max(1, int(self.history_["n_iter"].sum()))
        self.n_outputs_ = len(noise_std)
        self.feature_relevance_ = posterior.sensitivity(self._model, X)

    def _store_layers(self, state):
        """Weights, masks and prior variances in the shapes of the full network."""
        network = state.network
        weights = network.keep & ~bias_mask(network)
        variance = evidence.parameter_variance(state.prior)
        self.coefs_, self.intercepts_ = expand(network, network.theta)
        self.masks_, _ = expand(network, weights, fill=False)
        self.prior_variance_, _ = expand(network, np.where(weights, variance, 0.0))
        for name in SKIP_ATTRIBUTES:
            self.__dict__.pop(name, None)
        if network.skip:
            del self.intercepts_[-1]
            self.skip_coef_ = self.coefs_.pop()
            self.skip_mask_ = self.masks_.pop()
            self.skip_prior_variance_ = self.prior_variance_.pop()


def _check_continuation(previous, problem):
    """Refuse a warm start that would not be the same model."""
    network = previous.network
    before = (network.full_sizes, previous.groups, network.skip)
    now = (problem.sizes, problem.groups, problem.skip)
    if before != now or network.activation != ACTIVATIONS[problem.activation]:
        raise ValueError(
            "warm_start=True goes on from the network of the previous fit, with layers "
            f"of {before[0]} units, groups={before[1]}, skip_connection={before[2]}; "
            f"this fit needs {now[0]}, {now[1]}, {now[2]}. Keep hidden_layer_sizes, "
            "activation, groups, skip_connection and the number of inputs and outputs, "
            "or set warm_start=False."
        )


def _farthest(Y):
    """Magnitude of an output that is not scaled from which on it has diverged."""
    return float(np.max(np.abs(Y.mean(axis=0)) + DIVERGENCE_LIMIT * _spread(Y)))


def _spread(array):
    """Standard deviations, 1 for constant columns."""
    scale = array.std(axis=0)
    scale[_is_constant(array)] = 1.0
    return scale


def _is_constant(array):
    return np.ptp(array, axis=0) == 0.0


def _warn_unfinished(run, max_cycles):
    if run.diverged:
        horizon = run.history[-1].horizon
        warnings.warn(
            "Every start diverged in free run over the whole record: the model is that "
            f"of the horizon {horizon:g}. Increase reg_lambda, the lags or n_restarts, "
            "or check whether the system is stable.",
            ConvergenceWarning,
            stacklevel=5,
        )
        return
    warnings.warn(
        f"The objective was still falling after max_cycles={max_cycles} "
        "cycles. Increase max_cycles or tol.",
        ConvergenceWarning,
        stacklevel=5,
    )


def _choose_curvature(curvature, solver, n_parameters, n_observations):
    """Resolve "auto", and refuse what would not fit into memory."""
    smaller = min(n_parameters, n_observations)
    fits = smaller <= FULL_CURVATURE_LIMIT and (
        n_parameters <= n_observations
        or 8 * n_parameters * n_observations <= DUAL_BYTES
    )
    if not fits and (solver == "lm" or curvature == "full"):
        what = "solver='lm'" if solver == "lm" else "curvature='full'"
        raise ValueError(
            f"{what} solves for min(n_parameters, n_samples * n_outputs) unknowns at "
            f"once: found min({n_parameters}, {n_observations}), expected at most "
            f"{FULL_CURVATURE_LIMIT} (and a Jacobian of at most {DUAL_BYTES >> 20} "
            "MiB where parameters outnumber samples). Use solver='lbfgs' or 'adam' "
            "with curvature='diag', or a smaller hidden_layer_sizes."
        )
    if curvature == "auto":
        return "full" if fits else "diag"
    return curvature


def _noise_std(problem, state):
    return np.sqrt(state.noise) / problem.stages[-1].data.weights


def _rank(run, problem, scaling, rank):
    """Error by which restarts are ordered; infinite where the free run diverged."""
    error = run.state.objective
    if rank is not None:
        state = run.state
        no_spread = np.zeros(int(state.network.keep.sum()))
        noise_std = _noise_std(problem, state)
        error = rank(FittedNetwork(state.network, scaling, no_spread, noise_std))
    return error if np.isfinite(error) and not run.diverged else np.inf


def _covariance(settings, state):
    """Posterior covariance at the temperature of the fit."""
    curvature = sparse_bayes.used_curvature(settings, state)
    keep = state.network.keep
    if np.count_nonzero(keep) > FULL_CURVATURE_LIMIT:
        curvature = Diagonal(diagonal_of(curvature))
    variance = sparse_bayes.effective_variance(settings, state)
    covariance = posterior_covariance(curvature, variance, state.noise)
    lambdas = sparse_bayes.strengths(settings, state.network)[keep]
    root = np.sqrt(np.where(lambdas > 0.0, lambdas, 1.0))
    if covariance.ndim == 1:
        return covariance * root**2
    return covariance * root * root[:, None]


def _history(cycles, scaling):
    """Columns of the cycles' records, errors in the units of y."""
    infos = [cycle.info for cycle in cycles]
    columns = {
        name: np.array([getattr(i, name) for i in infos]) for name in infos[0]._fields
    }
    mean = [cycle.info.squared_errors / cycle.counts for cycle in cycles]
    rmse = np.sqrt(np.array(mean)) * scaling.y_scale
    return {
        "objective_start": columns["objective_start"],
        "objective": columns["objective"],
        "objective_pruned": columns["objective_pruned"],
        "rmse": rmse[:, 0] if len(scaling.y_scale) == 1 else rmse,
        "n_active_weights": columns["n_weights"],
        "n_active_neurons": columns["n_neurons"],
        "n_iter": columns["n_iter"],
        "horizon": np.array([cycle.horizon for cycle in cycles], dtype=float),
    }
