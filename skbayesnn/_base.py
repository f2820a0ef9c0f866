"""What the static and the dynamic regressor share: parameters, restarts, results."""

import warnings
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from . import _validation as checks
from ._posterior import FittedNetwork, Scaling
from .solvers import evidence, sparse_bayes
from .solvers.curvature import Data, Diagonal, diagonal_of, posterior_covariance
from .solvers.network import (
    Network,
    bias_mask,
    count_parameters,
    expand,
    init_network,
    prune,
    split_layers,
)

# Beyond this many unknowns a dense solve is slower than a backward pass by far, and
# its matrix no longer small beside the data.
FULL_CURVATURE_LIMIT = 4096
DUAL_BYTES = 2**30
# Weight-fit iterations a cycle.  A Levenberg-Marquardt step does the work of dozens of
# the others'.
DEFAULT_ITERATIONS = {"lm": 3, "lbfgs": 50, "adam": 20}


class _Start(NamedTuple):
    """Where a fit begins; also what ``warm_start`` keeps of the one before."""

    network: Network
    prior: evidence.Prior
    noise: float | None
    scaling: Scaling
    groups: tuple


class _Run(NamedTuple):
    """One finished (or interrupted) restart."""

    state: sparse_bayes.State
    history: list
    interrupted: bool


class _Problem(NamedTuple):
    """Scaled data and settings: all that a restart needs besides its seed."""

    data: Data
    settings: sparse_bayes.Settings
    groups: tuple
    sizes: tuple
    activation: str
    constant_inputs: np.ndarray
    constant_output: bool
    max_cycles: int
    verbose: int


class SparseBayesRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Parameters and fitting shared by the static and the dynamic regressor."""

    _parameter_constraints: dict = checks.MODEL_CONSTRAINTS

    def _fit_network(self, X, Y, rank=None):
        """Learn the network that maps ``X`` (n, n_inputs) to ``Y`` (n, n_outputs).

        Both finite float64. Sets the fitted attributes that both regressors share.
        ``rank(model)`` gives a restart's error; the objective does by default.
        """
        previous = getattr(self, "_start", None) if self.warm_start else None
        scaling = previous.scaling if previous else self._scale(X, Y)
        problem = self._pose(X, Y, scaling)
        if previous:
            _check_continuation(previous, problem)
        run = self._best_run(problem, previous, scaling, rank)
        self._store(run, problem, scaling, X)
        if run.interrupted:
            raise checks.FitInterrupted
        if not sparse_bayes.converged(run.state):
            warnings.warn(
                f"The objective was still falling after max_cycles={self.max_cycles} "
                "cycles. Increase max_cycles or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _scale(self, X, Y):
        n_inputs, n_outputs = X.shape[1], Y.shape[1]
        if not self.normalize:
            return Scaling(
                np.zeros(n_inputs),
                np.ones(n_inputs),
                np.zeros(n_outputs),
                np.ones(n_outputs),
            )
        return Scaling(X.mean(axis=0), _spread(X), Y.mean(axis=0), _spread(Y))

    def _pose(self, X, Y, scaling):
        """Check the parameters against the data, and scale the data."""
        hidden = checks.check_hidden_layer_sizes(self.hidden_layer_sizes)
        sizes = (X.shape[1], *hidden, Y.shape[1])
        noise = checks.check_noise_variance(self.noise_variance, Y.shape[1])
        weights = np.ones(Y.shape[1])
        if not isinstance(noise, str):
            relative = noise / scaling.y_scale**2
            noise = float(relative.mean())
            weights = np.sqrt(noise / relative)
        settings = sparse_bayes.Settings(
            reg_lambda=checks.check_reg_lambda(self.reg_lambda, len(sizes) - 1),
            reweight=self.reweight,
            kappa_variance=float(self.kappa_variance),
            kappa_weight=float(self.kappa_weight),
            noise_variance=noise,
            curvature=_choose_curvature(self.curvature, self.solver, sizes, Y.size),
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
        return _Problem(
            data=Data(XT, YT, weights),
            settings=settings,
            groups=checks.check_groups(self.groups),
            sizes=sizes,
            activation=self.activation,
            constant_inputs=_is_constant(X),
            constant_output=bool(constant_output),
            max_cycles=self.max_cycles,
            verbose=int(self.verbose),
        )

    def _best_run(self, problem, previous, scaling, rank):
        """The restart that ranks first.

        Each has its own stream of random numbers, so neither ``n_jobs`` nor the order
        in which they finish changes the choice.
        """
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        n_restarts = 1 if previous else self.n_restarts
        seeds = np.random.SeedSequence(seed).spawn(n_restarts)
        runs = []
        jobs = (delayed(_run)(problem, seed, previous) for seed in seeds)
        try:
            for run in Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs):
                runs.append(run)
                if run.interrupted:
                    break
        except KeyboardInterrupt:
            if not (self.warm_start and runs):
                raise
            runs[-1] = runs[-1]._replace(interrupted=True)
        best = min(runs, key=lambda run: _rank(run, problem, scaling, rank))
        interrupted = any(run.interrupted for run in runs)
        if interrupted and not self.warm_start:
            raise KeyboardInterrupt
        return best._replace(interrupted=interrupted)

    def _store(self, run, problem, scaling, X):
        state, network = run.state, run.state.network
        covariance = _covariance(problem.settings, state)
        noise_std = _noise_std(problem, state)
        self._model = FittedNetwork(network, scaling, covariance, noise_std)
        self._start = _Start(network, state.prior, state.noise, scaling, problem.groups)
        self.coefs_, self.intercepts_ = expand(network, network.theta)
        weights = network.keep & ~bias_mask(network.sizes)
        self.masks_, _ = expand(network, weights, fill=False)
        variance = evidence.parameter_variance(state.prior)
        self.prior_variance_, _ = expand(network, np.where(weights, variance, 0.0))
        noise_variance = (noise_std * scaling.y_scale) ** 2
        single = len(noise_variance) == 1
        self.noise_variance_ = float(noise_variance[0]) if single else noise_variance
        self.posterior_covariance_ = covariance
        self.history_ = _history(run.history, problem, scaling)
        change_of_units = len(X) * float(np.log(scaling.y_scale).sum())
        self.log_marginal_likelihood_ = (
            sparse_bayes.log_marginal_likelihood(problem.settings, state)
            - change_of_units
        )
        self.n_cycles_ = len(run.history)
        self.n_iter_ = max(1, int(self.history_["n_iter"].sum()))
        self.n_outputs_ = len(noise_std)
        self.feature_relevance_ = self._model.sensitivity(X)


def _check_continuation(previous, problem):
    """Refuse a warm start that would not be the same model."""
    before = (previous.network.full_sizes, previous.groups)
    now = (problem.sizes, problem.groups)
    if before != now:
        raise ValueError(
            "warm_start=True goes on from the network of the previous fit, with layers "
            f"of {before[0]} units and groups={before[1]}; this fit needs {now[0]} and "
            f"{now[1]}. Keep hidden_layer_sizes, groups and the number of inputs and "
            "outputs, or set warm_start=False."
        )


def _spread(array):
    """Standard deviations, 1 for constant columns."""
    scale = array.std(axis=0)
    scale[_is_constant(array)] = 1.0
    return scale


def _is_constant(array):
    return np.ptp(array, axis=0) == 0.0


def _choose_curvature(curvature, solver, sizes, n_observations):
    """Resolve "auto", and refuse what would not fit into memory."""
    n_parameters = count_parameters(sizes)
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


def _run(problem, seed, previous):
    """One restart: Algorithm 1 from random weights or from the previous fit."""
    rng = np.random.default_rng(seed)
    settings = problem.settings
    with checks.one_blas_thread():
        network, prior, noise = _start(problem, rng, previous)
        state = sparse_bayes.init(problem.data, network, settings, prior, noise)
        history = []
        try:
            for cycle in range(problem.max_cycles):
                state, info = sparse_bayes.step(settings, state, rng)
                history.append(info)
                if problem.verbose:
                    _report(cycle, info)
                if sparse_bayes.converged(state):
                    break
        except KeyboardInterrupt:
            if not history:
                raise
            return _Run(state, history, True)
    return _Run(state, history, False)


def _start(problem, rng, previous):
    if previous:
        noise = previous.noise if problem.settings.noise_variance == "auto" else None
        return previous.network, previous.prior, noise
    network = init_network(problem.sizes, problem.activation, rng)
    prior = evidence.init_prior(problem.sizes, problem.groups)
    drop = np.zeros(len(network.theta), dtype=bool)
    first = split_layers(drop, network.sizes)[0][0]
    first[problem.constant_inputs] = True
    if problem.constant_output:
        drop = ~bias_mask(network.sizes)
    network, index = prune(network, drop)
    return network, evidence.take(prior, index), None


def _report(cycle, info):
    print(
        f"cycle {cycle + 1}: objective {info.objective:.6g}, {info.n_weights} weights "
        f"in {info.n_neurons} hidden units"
    )


def _noise_std(problem, state):
    return np.sqrt(state.noise) / problem.data.weights


def _rank(run, problem, scaling, rank):
    error = run.state.objective
    if rank is not None:
        state = run.state
        no_spread = np.zeros(int(state.network.keep.sum()))
        noise_std = _noise_std(problem, state)
        error = rank(FittedNetwork(state.network, scaling, no_spread, noise_std))
    return error if np.isfinite(error) else np.inf


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


def _history(infos, problem, scaling):
    """Columns of the cycles' records, errors in the units of y."""
    n_samples = problem.data.YT.shape[1]
    n_outputs = len(scaling.y_scale)
    columns = {
        name: np.array([getattr(i, name) for i in infos]) for name in infos[0]._fields
    }
    rmse = np.sqrt(np.array([i.squared_errors for i in infos]) / n_samples)
    rmse = rmse * scaling.y_scale
    return {
        "objective_start": columns["objective_start"],
        "objective": columns["objective"],
        "objective_pruned": columns["objective_pruned"],
        "rmse": rmse[:, 0] if n_outputs == 1 else rmse,
        "n_active_weights": columns["n_weights"],
        "n_active_neurons": columns["n_neurons"],
        "n_iter": columns["n_iter"],
    }
