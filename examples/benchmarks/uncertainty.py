"""Are the intervals calibrated? On systems drawn from the prior, and on the tanks.

    python examples/benchmarks/uncertainty.py --output uncertainty.json

``--parts`` runs some of

- prior: systems drawn from the prior, coverage of the 50, 90 and 95 % intervals of
  weights, of the network's function, and of one-step and free-run predictions of a new
  record; with the prior known, and with all that is learned;
- mcmc: a small network, the posterior by Hamiltonian Monte Carlo beside the Gaussian
  approximations of ``curvature="full"`` and ``"diag"``, the same prior and noise;
- real: coverage and continuous ranked probability score on the measured Cascaded Tanks
  test record, from row 50 on, the seeds 0 to 4;
- gp: a Gaussian process NARX on the same record.

A standard error of a coverage is that over systems: errors within a record are
correlated. A draw that diverged counts as infinitely far off, on either side in turn;
the score leaves such draws out, and their number stands beside it.
"""

import argparse
import json
import os
import platform
import time
import warnings

import numpy as np
from scipy.stats import norm

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn._numba import kernel
from skbayesnn.datasets import fetch_cascaded_tanks
from skbayesnn.exceptions import DivergenceWarning
from skbayesnn.metrics import (
    crps_gaussian,
    crps_samples,
    interval_coverage,
    simulation_rmse,
)
from skbayesnn.sparse_bayes.fitted import FittedNetwork
from skbayesnn.sparse_bayes.kernels import layers as mlp
from skbayesnn.sparse_bayes.kernels.sampled_runs import draw_paths
from skbayesnn.sparse_bayes.learning.curvature import (
    Diagonal,
    Full,
    diagonal_of,
    linearize,
    posterior_covariance,
)
from skbayesnn.sparse_bayes.learning.prior import parameter_variance
from skbayesnn.sparse_bayes.learning.weights import (
    SOLVERS,
    WeightFit,
    WeightProblem,
    fit_weights,
)
from skbayesnn.sparse_bayes.network import init_network
from skbayesnn.sparse_bayes.prediction import posterior, runs
from skbayesnn.sparse_bayes.prediction.ensemble import Ensemble, LaggedNetwork
from skbayesnn.sparse_bayes.records.layout import Record
from skbayesnn.sparse_bayes.records.one_step import OneStepData
from skbayesnn.sparse_bayes.scaling import Scaling

LEVELS = (0.5, 0.9, 0.95)
N_DRAWS = 999
MAX_R_HAT = 1.05
LINEAR = {"input_lags": 2, "output_lags": 2, "hidden_layer_sizes": ()}
TANH = {
    "input_lags": 1,
    "output_lags": 1,
    "include_current_input": False,
    "hidden_layer_sizes": 2,
    "skip_connection": False,
}
# Bayes' rule, and the right unit of the prior
EXACT = {"reg_lambda": 1.0, "normalize": False, "selection": "evidence"}
UNPRUNED = {"kappa_variance": 0.0, "kappa_weight": 0.0}
TANKS = {
    "prediction": {"input_lags": 5, "output_lags": 5},
    "simulation": {
        "input_lags": 20,
        "output_lags": 20,
        "hidden_layer_sizes": 5,
        "focus": "simulation",
        # what SparseBayesNARXRegressorCV keeps on the training record
        "reg_lambda": 20.0,
    },
}


# Systems


class System:
    """A network drawn from the prior, with the noise of its steps.

    ``prior_std`` is that of weights and biases alike.
    """

    def __init__(self, structure, prior_std, noise_std, seed):
        self.structure, self.noise_std = structure, noise_std
        self.prior_std = prior_std
        self.rng = np.random.default_rng(seed)
        while True:
            self._draw()
            if self._stable():
                break

    def _draw(self):
        lags = [self.structure[name] for name in ("input_lags", "output_lags")]
        self.first_lag = 0 if self.structure.get("include_current_input", True) else 1
        self.lags = (lags[0] + 1 - self.first_lag, lags[1])
        hidden = np.atleast_1d(self.structure["hidden_layer_sizes"]).astype(int)
        sizes = (sum(self.lags), *hidden, 1)
        network = init_network(sizes, "tanh", self.rng)
        theta = self.prior_std * self.rng.standard_normal(len(network.theta))
        self.network = network._replace(theta=theta)

    def _stable(self):
        """A linear system has its poles within the unit circle; a tanh is bounded."""
        if len(self.network.sizes) > 2:
            return True
        past = self.network.theta[self.lags[0] : sum(self.lags)]
        return bool((np.abs(np.roots([1.0, *-past])) < 0.95).all())

    def function(self, Z):
        network = self.network
        return mlp.forward(network.layers, np.ascontiguousarray(Z.T))[0]

    def regressors(self, u, y):
        """Of every row from the longest lag on."""
        n, start = len(y), max(self.structure["input_lags"], self.lags[1])
        first, (n_u, n_y) = self.first_lag, self.lags
        columns = [u[start - first - k : n - first - k] for k in range(n_u)]
        columns += [y[start - k : n - k] for k in range(1, n_y + 1)]
        return np.column_stack(columns)

    def record(self, n_rows, settle=50):
        """Inputs (n_rows, 1) and outputs of a new experiment."""
        u = self.rng.standard_normal(n_rows + settle)
        y = np.zeros(n_rows + settle)
        start = max(self.structure["input_lags"], self.lags[1])
        for t in range(start, len(y)):
            window = slice(t - start, t + 1)
            z = self.regressors(u[window], y[window])
            y[t] = self.function(z)[0] + self.noise_std * self.rng.standard_normal()
        return u[settle:, None], y[settle:]


def fit(system, u, y, **options):
    """The estimator with the true structure; a fit that still falls will do."""
    model = SparseBayesNARXRegressor(
        **system.structure, **{**EXACT, "random_state": 0, **options}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(u, y)


def fit_with_known_prior(system, u, y):
    """A model whose posterior has the prior and the noise that made the system.

    The weights start at the true ones, so that they end in the nearest of the modes
    that a change of signs or an exchange of units leaves alike.
    """
    model = fit(system, u, y, max_cycles=1)
    Z = system.regressors(u[:, 0], y)
    data = OneStepData(
        np.ascontiguousarray(Z.T), y[None, len(y) - len(Z) :], np.ones(1)
    )
    network, noise = system.network, system.noise_std**2
    variance = np.full(len(network.theta), system.prior_std**2)
    memory = SOLVERS["lm"].memory
    start = WeightFit(network, linearize(network, data, Full), memory)
    problem = WeightProblem(data, 1.0 / variance, noise, Full, 100, 1e-9)
    found = fit_weights("lm", problem, start, None)
    curvature = found.linearization.curvature
    covariance = posterior_covariance(curvature, variance, noise)
    scaling = Scaling(np.zeros(len(Z.T)), np.ones(len(Z.T)), np.zeros(1), np.ones(1))
    noise_std = np.array([system.noise_std])
    set_fitted(model, FittedNetwork(found.network, scaling, covariance, noise_std))
    return model


# Scores


def ends_of(draws, level):
    """Ends of the central interval of draws, one a column."""
    lost = np.isnan(draws)
    side = np.where(np.arange(draws.shape[1]) % 2, np.inf, -np.inf)
    with np.errstate(invalid="ignore"):
        ends = ((1 - level) / 2, (1 + level) / 2)
        method = "nearest" if lost.any() else "linear"
        return np.quantile(np.where(lost, side, draws), ends, axis=1, method=method)


def coverage_of_draws(y, draws, n_init):
    return [
        interval_coverage(y, *ends_of(draws, level), n_initialization=n_init)
        for level in LEVELS
    ]


def coverage_of_normal(y, mean, std, n_init=0):
    # not predicted is not covered
    half = norm.ppf((1 + np.array(LEVELS)) / 2)
    return [
        interval_coverage(y, mean - h * std, mean + h * std, n_initialization=n_init)
        for h in half
    ]


def over_systems(rows):
    """Mean and standard error of each number, over the rows of systems."""
    table = {}
    for name in rows[0]:
        values = np.array([row[name] for row in rows], dtype=float)
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        mean = values.mean(axis=0)
        table[name] = {"mean": mean.tolist(), "standard_error": error.tolist()}
    return table


# Part 1: systems drawn from the prior


def coverage_on_new_record(system, model, u, y):
    """Shares covered at the three levels, of all that a model predicts."""
    n_init = model.max_lag_
    mean, std = model.predict(u, y, return_std=True)
    shares = {"one_step": coverage_of_normal(y, mean, std, n_init)}
    drawn = model.sample_y(u, y, n_samples=N_DRAWS)
    shares["one_step_draws"] = coverage_of_draws(y, drawn, n_init)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)  # diverged: not covered
        mean_free, std_free = model.predict(u, y_init=y[:n_init], return_std=True)
        drawn = model.sample_y(u, y_init=y[:n_init], n_samples=N_DRAWS)
    shares["free_run"] = coverage_of_normal(y, mean_free, std_free, n_init)
    shares["free_run_draws"] = coverage_of_draws(y, drawn, n_init)
    function = system.function(system.regressors(u[:, 0], y))
    spread = std[n_init:] ** 2 - np.ravel(model.noise_variance_)[0]
    if fitted_network(model).noise_std[0] == system.noise_std:
        spread = std[n_init:] ** 2 - system.noise_std**2
    spread = np.sqrt(np.maximum(spread, 0.0))
    shares["function"] = coverage_of_normal(function, mean[n_init:], spread)
    return shares


def coverage_of_weights(system, model):
    """Shares of the true weights, without the bias, in their intervals.

    A weight that was pruned has an interval without width.
    """
    network, n_weights = fitted_network(model).network, len(system.network.theta) - 1
    mean, std = np.zeros(n_weights), np.zeros(n_weights)
    kept, keep = network.units[0], network.keep
    covariance = fitted_network(model).covariance
    variance = np.diagonal(covariance) if covariance.ndim == 2 else covariance
    spread = np.zeros(len(keep))
    spread[keep] = np.sqrt(variance)
    mean[kept], std[kept] = network.theta[:-1], spread[:-1]
    return coverage_of_normal(system.network.theta[:-1], mean, std)


VARIANTS = {
    "linear": {
        "prior and noise known": None,
        "learned, one variance": {"groups": "layer"},
        "learned, a variance each": {},
        "learned, a variance each, no pruning": UNPRUNED,
    },
    "tanh": {
        "prior and noise known": None,
        "learned, a variance a layer": {"groups": "layer", "n_restarts": 3},
        "learned, default groups": {"n_restarts": 3},
        "learned, default groups, no pruning": {"n_restarts": 3, **UNPRUNED},
    },
}


def make_system(kind, seed):
    if kind == "linear":
        return System(LINEAR, 0.4, 0.3, [1, seed])
    return System(TANH, 1.0, 0.1, [2, seed])


def prior_coverage(kind, n_systems, variants=None, n_train=150, n_test=200):
    """Tables of coverage, one a variant, over systems drawn from the prior."""
    tables = {}
    for name in variants or VARIANTS[kind]:
        rows = []
        for seed in range(n_systems):
            system = make_system(kind, seed)
            u, y = system.record(n_train)
            options = VARIANTS[kind][name]
            if options is None:
                model = fit_with_known_prior(system, u, y)
            else:
                model = fit(system, u, y, **options)
            row = coverage_on_new_record(system, model, *system.record(n_test))
            if kind == "linear":
                row["weights"] = coverage_of_weights(system, model)
            rows.append(row)
        tables[name] = over_systems(rows)
    return tables


def part_prior(arguments):
    n_systems = arguments.systems
    results = {"n_systems": n_systems, "levels": LEVELS}
    for kind in VARIANTS:
        results[kind] = prior_coverage(kind, n_systems)
        for name, table in results[kind].items():
            print(f"{kind}, {name}")
            for what, numbers in table.items():
                pairs = zip(numbers["mean"], numbers["standard_error"], strict=True)
                shown = ", ".join(f"{m:.1%} ({e:.1%})" for m, e in pairs)
                print(f"    {what:16s} {shown}", flush=True)
    return results


# Part 2: Hamiltonian Monte Carlo


@kernel
def minus_log_density(theta, sizes, activation, XT, YT, noise, variance):
    """Up to a constant, with its gradient by the weights."""
    layers = mlp.Layers(theta, sizes, activation, False)
    loss, gradient = mlp.loss_gradient(layers, np.ones((len(YT), 1)), XT, YT)
    value = loss / noise
    for p in range(len(theta)):
        value += 0.5 * theta[p] * theta[p] / variance[p]
        gradient[p] = gradient[p] / noise + theta[p] / variance[p]
    return value, gradient


@kernel
def leapfrog(
    theta, momentum, factor, step, n_steps, sizes, activation, XT, YT, noise, variance
):
    """Follow the Hamiltonian; ``factor @ factor.T`` is the inverse of the masses.

    Returns weights and momentum at the end, with the potential energy there.
    """
    data = (sizes, activation, XT, YT, noise, variance)
    value, gradient = minus_log_density(theta, *data)
    for _ in range(n_steps):
        momentum = momentum - 0.5 * step * (factor.T @ gradient)
        theta = theta + step * (factor @ momentum)
        value, gradient = minus_log_density(theta, *data)
        momentum = momentum - 0.5 * step * (factor.T @ gradient)
    return theta, momentum, value


class Posterior:
    """Weights given prior variances and noise, and the mode of their density."""

    def __init__(self, network, data, variance, noise, covariance):
        self.network, self.covariance = network, covariance
        arguments = (network.sizes, network.activation, data.XT, data.YT)
        self.arguments = (*arguments, float(noise), variance)


def hmc(target, theta, factor, rng, n_warmup, n_draws, n_leapfrog=(10, 150)):
    """Hamiltonian Monte Carlo: draws, and the mean acceptance.

    The step size moves towards an acceptance of 0.85 during the warm-up.
    """
    # a step that is too long overflows, and is refused
    np.seterr(over="ignore", invalid="ignore")
    value, _ = minus_log_density(theta, *target.arguments)
    log_step, draws, accepted = np.log(0.1), [], []
    for k in range(n_warmup + n_draws):
        step = np.exp(log_step) * rng.uniform(0.6, 1.2)
        momentum = rng.standard_normal(len(theta))
        energy = value + 0.5 * momentum @ momentum
        trial, momentum, trial_value = leapfrog(
            theta,
            momentum,
            factor,
            step,
            int(rng.integers(*n_leapfrog)),
            *target.arguments,
        )
        change = energy - trial_value - 0.5 * momentum @ momentum
        probability = np.exp(min(0.0, change)) if np.isfinite(change) else 0.0
        if rng.uniform() < probability:
            theta, value = trial, trial_value
        if k < n_warmup:
            log_step += (probability - 0.85) / (1 + k) ** 0.6
        else:
            accepted.append(probability)
        draws.append(theta)
    return np.array(draws), float(np.mean(accepted))


def chain(target, seed, n_warmup, n_draws):
    """Two warm-ups, the masses of the second from the draws of the first."""
    rng = np.random.default_rng(seed)
    factor = np.linalg.cholesky(target.covariance)
    start = target.network.theta + 0.5 * factor @ rng.standard_normal(len(factor))
    first, _ = hmc(target, start, factor, rng, n_warmup - 1, 1)
    covariance = np.cov(first[n_warmup // 3 :].T)
    covariance[np.diag_indices_from(covariance)] *= 1.0 + 1e-6
    factor = np.linalg.cholesky(covariance)
    draws, acceptance = hmc(target, first[-1], factor, rng, n_warmup, n_draws)
    return draws[n_warmup:], acceptance


def r_hat(chains):
    """Split R-hat of each quantity; ``chains`` is (n_chains, n_draws, n_quantities)."""
    half = chains.shape[1] // 2
    halves = np.concatenate([chains[:, :half], chains[:, half : 2 * half]])
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    return np.sqrt((half - 1) / half + between / within)


def effective_size(chains):
    """Effective sample size of each quantity, by Geyer's initial positive sequence."""
    n_chains, n_draws, _ = chains.shape
    centred = chains - chains.mean(axis=(0, 1))
    spectrum = np.abs(np.fft.rfft(centred, 2 * n_draws, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum, axis=1)[:, :n_draws].mean(axis=0) / n_draws
    correlation = covariance / covariance[0]
    pairs = correlation[0 : n_draws - 1 : 2] + correlation[1:n_draws:2]
    positive = np.cumprod(pairs > 0.0, axis=0)
    time = np.maximum(2.0 * np.sum(pairs * positive, axis=0) - 1.0, 1e-3)
    return n_chains * n_draws / time


def sample_posterior(target, seed, n_warmup=1500, n_draws=4000, n_chains=4):
    """Weights (n_chains, n_draws, n_parameters), and the mean acceptance."""
    seeds = np.random.SeedSequence(seed).spawn(n_chains)
    runs = [chain(target, s, n_warmup, n_draws) for s in seeds]
    return np.array([run[0] for run in runs]), float(np.mean([run[1] for run in runs]))


def linear_check():
    """The sampler on a Gaussian posterior: largest errors of mean and covariance.

    In units of the exact standard deviations, and of their standard errors.
    """
    system = make_system("linear", 0)
    u, y = system.record(60)
    model = fitted_network(fit_with_known_prior(system, u, y))
    Z = system.regressors(u[:, 0], y)
    data = OneStepData(np.ascontiguousarray(Z.T), y[None, -len(Z) :], np.ones(1))
    variance = np.full(len(model.network.theta), system.prior_std**2)
    noise = system.noise_std**2
    target = Posterior(model.network, data, variance, noise, model.covariance)
    weights, acceptance = sample_posterior(target, 0)
    size = effective_size(weights)
    flat = weights.reshape(-1, len(variance))
    std = np.sqrt(np.diag(model.covariance))
    error = np.abs(flat.mean(axis=0) - model.network.theta) / (std / np.sqrt(size))
    spread = flat.std(axis=0) / std
    squares = (flat - model.network.theta) ** 2
    size = effective_size(squares.reshape(weights.shape))
    return {
        "acceptance": acceptance,
        "r_hat": float(r_hat(weights).max()),
        "least_effective_size": float(size.min()),
        "error_of_mean_in_standard_errors": float(error.max()),
        "ratio_of_std": [float(spread.min()), float(spread.max())],
        "largest_error_of_std_in_standard_errors": float(
            np.max(np.abs(spread**2 - 1.0) / np.sqrt(2.0 / size))
        ),
    }


def paths_of(model, network, thetas, u, y, n_init, rng):
    """One step and free run of the network with each of the weights: new records."""
    fitted, lags = fitted_network(model), lags_of(model)
    scaling, noise_std = fitted.scaling, fitted.noise_std[0]
    starts = np.array([0, len(y)])
    rows = runs.free_runs(starts, n_init)
    record = Record(u, y[:, None], lags, starts)
    run = runs.laid_out(LaggedNetwork(fitted, lags), record, rows)
    deviation = np.zeros((1, len(network.theta)))
    free = np.tile(y[:, None], (len(thetas), 1, 1))
    noise = noise_std * rng.standard_normal((len(thetas), len(y), 1))
    one_step = np.empty((len(thetas), len(y) - n_init))
    XT = posterior.inputs(fitted, regressors_of(model, u, y))
    for k, theta in enumerate(thetas):
        layers = network._replace(theta=theta).layers
        one_step[k] = mlp.forward(layers, XT)[0]
        path = noise[k : k + 1, rows.rows].copy()
        draw_paths(layers, run, deviation, path)
        free[k, rows.rows] = path[0] * scaling.y_scale + scaling.y_offset
    function = one_step.T * scaling.y_scale[0] + scaling.y_offset[0]
    return function, free[:, :, 0].T


def fitted_network(model):
    return model._model.ensemble.members[0].fitted


def lags_of(model):
    return model._model.ensemble.members[0].lags


def set_fitted(model, fitted):
    """Let the model predict by another network."""
    ensemble = Ensemble.single(fitted, lags_of(model))
    model._model = model._model._replace(ensemble=ensemble)


def regressors_of(model, u, y):
    from skbayesnn.sparse_bayes.records.lags import build_lag_matrix

    rows = np.arange(model.max_lag_, len(y))
    return build_lag_matrix(u, y[:, None], lags_of(model), rows)


def gaussian_draws(model, covariance, u, y, n_draws):
    """Function, one step and free run from a Gaussian posterior, as the package."""
    certain = fitted_network(model)._replace(covariance=covariance)
    set_fitted(model, certain)
    Z = regressors_of(model, u, y)
    silent = certain._replace(noise_std=np.zeros(1))
    function = posterior.draws(silent, Z, n_draws, np.random.default_rng(0))[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)
        free = model.sample_y(u, y_init=y[: model.max_lag_], n_samples=n_draws)
    return function, free


def judge(truth, y, n_init, function, free, noise_std, rng):
    """Spread, coverage and score of one posterior on a new record."""
    observed = function + noise_std * rng.standard_normal(function.shape)
    alive = ~np.isnan(free).any(axis=0)
    row = {
        "function_std": float(np.mean(function.std(axis=1))),
        "function_rmse": simulation_rmse(truth, function.mean(axis=1)),
        "function_coverage": coverage_of_draws(truth, function, 0),
        "one_step_coverage": coverage_of_draws(y[n_init:], observed, 0),
        "one_step_crps": crps_samples(y[n_init:], observed),
        "free_run_std": float(np.mean(free[n_init:, alive].std(axis=1))),
        "free_run_coverage": coverage_of_draws(y, free, n_init),
        "free_run_crps": crps_samples(y, free[:, alive], n_initialization=n_init),
        "share_diverged": float(1.0 - np.mean(alive)),
    }
    return row


def compare_posteriors(seed, n_train, n_test=200, n_draws=1000):
    """Rows of numbers for each posterior of one system, and the chains' checks."""
    rng = np.random.default_rng(seed)
    system = System({**TANH, "hidden_layer_sizes": 3}, 1.0, 0.1, [3, seed])
    u, y = system.record(n_train)
    u_test, y_test = system.record(n_test)
    options = {"groups": "layer", "n_restarts": 3, **UNPRUNED}
    model = fit(system, u, y, **options)
    fitted, n_init = fitted_network(model), model.max_lag_
    network, noise = fitted.network, fitted.noise_std[0] ** 2
    variance = parameter_variance(model._learned.start.prior)
    Z = regressors_of(model, u, y)
    data = OneStepData(posterior.inputs(fitted, Z), y[None, n_init:], np.ones(1))
    target = Posterior(network, data, variance, noise, fitted.covariance)
    weights, acceptance = sample_posterior(target, seed)
    quantities = np.array(
        [
            [
                mlp.forward(network._replace(theta=w).layers, data.XT[:, ::5])[0]
                for w in path
            ]
            for path in weights
        ]
    )
    checks = {
        "acceptance": acceptance,
        "r_hat": float(r_hat(quantities).max()),
        "least_effective_size": float(effective_size(quantities).min()),
    }
    thinned = weights[:, :: max(1, 4 * weights.shape[1] // n_draws)]
    thinned = thinned.reshape(-1, len(variance))
    curvature = linearize(network, data, Full).curvature
    diagonal = posterior_covariance(Diagonal(diagonal_of(curvature)), variance, noise)
    deviations = fitted.weight_deviations(n_draws, rng)
    record = (u_test, y_test)
    through = (*record, n_init, rng)
    predictions = {
        "mcmc": paths_of(model, network, thinned, *through),
        "full, through the network": paths_of(
            model, network, network.theta + deviations, *through
        ),
        "full": gaussian_draws(model, fitted.covariance, *record, n_draws),
        "diag, same mode": gaussian_draws(model, diagonal, *record, n_draws),
    }
    own = fit(system, u, y, **options, curvature="diag")
    predictions["diag, own fit"] = gaussian_draws(
        own, fitted_network(own).covariance, *record, n_draws
    )
    truth = system.function(system.regressors(u_test[:, 0], y_test))
    rows = {}
    for name, (function, free) in predictions.items():
        noise_std = (
            fitted_network(own).noise_std
            if name == "diag, own fit"
            else fitted.noise_std
        )
        rows[name] = judge(truth, y_test, n_init, function, free, noise_std[0], rng)
        reference = rows["mcmc"]
        for what in ("function_std", "free_run_std"):
            rows[name][f"{what}_ratio"] = rows[name][what] / reference[what]
    return rows, checks


def part_mcmc(arguments):
    results = {"sampler_on_a_linear_model": linear_check()}
    print("linear model:", results["sampler_on_a_linear_model"], flush=True)
    for n_train in (40, 200):
        found = [compare_posteriors(s, n_train) for s in range(arguments.networks)]
        checks = [check for _, check in found]
        # chains that do not agree are no reference
        found = [f for f in found if f[1]["r_hat"] < MAX_R_HAT]
        results[f"n_train {n_train}"] = {
            "checks": {
                "acceptance": float(np.mean([c["acceptance"] for c in checks])),
                "r_hat_median": float(np.median([c["r_hat"] for c in checks])),
                "r_hat_max": float(np.max([c["r_hat"] for c in checks])),
                "n_systems": len(checks),
                "n_compared": len(found),
                "least_effective_size_median": float(
                    np.median([c["least_effective_size"] for c in checks])
                ),
                "systems": checks,
            },
            **{
                name: {
                    **over_systems([rows[name] for rows, _ in found]),
                    "medians": {
                        what: float(np.median([rows[name][what] for rows, _ in found]))
                        for what in ("function_std_ratio", "free_run_std_ratio")
                    },
                }
                for name in found[0][0]
            },
        }
        print(n_train, results[f"n_train {n_train}"]["checks"]["r_hat_max"])
        for name in found[0][0]:
            table = results[f"n_train {n_train}"][name]
            shown = {
                k: np.round(v["mean"], 4).tolist()
                for k, v in table.items()
                if k != "medians"
            }
            print(f"  {name}: {shown} {table['medians']}", flush=True)
    return results


# Part 3: the measured record


def evaluate_tanks(model, test, n_init):
    """Scores of both kinds of prediction, linearised and by draws."""
    u, y = test.data, test.target
    scored = {"n_initialization": n_init}
    row = {}
    for kind, start in (("one_step", {"y": y}), ("free_run", {"y_init": y[:n_init]})):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DivergenceWarning)
            mean, std = model.predict(u, **start, return_std=True)
            drawn = model.sample_y(u, **start, n_samples=N_DRAWS)
        alive = ~np.isnan(drawn[n_init:]).any(axis=0)
        row |= {
            f"{kind}_rmse": simulation_rmse(y, mean, **scored),
            f"{kind}_crps": crps_gaussian(y, mean, std, **scored),
            f"{kind}_coverage": coverage_of_normal(y, mean, std, n_init),
            f"{kind}_draws_crps": crps_samples(y, drawn[:, alive], **scored),
            f"{kind}_draws_coverage": coverage_of_draws(y, drawn, n_init),
            f"{kind}_draws_diverged": int(np.count_nonzero(~alive)),
        }
    return row


def part_real(arguments):
    tanks = fetch_cascaded_tanks()
    results = {}
    for focus, parameters in TANKS.items():
        for n_estimators in (1, 4):
            rows = []
            for seed in range(arguments.seeds):
                model = SparseBayesNARXRegressor(
                    **parameters, n_estimators=n_estimators, random_state=seed
                )
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model.fit(tanks.data, tanks.target)
                rows.append(
                    evaluate_tanks(model, tanks.tests.test, tanks.n_initialization)
                )
            name = f"{focus}, {n_estimators} network{'s' * (n_estimators > 1)}"
            results[name] = {
                what: {
                    "median": np.median([row[what] for row in rows], axis=0).tolist(),
                    "values": [row[what] for row in rows],
                }
                for what in rows[0]
            }
            print(name)
            for what, numbers in results[name].items():
                print(f"    {what:24s} {np.round(numbers['median'], 4)}", flush=True)
    return results


def part_gp(arguments):
    import gp_narx

    tanks = fetch_cascaded_tanks()
    u, y, n_init = tanks.data[:, 0], tanks.target, tanks.n_initialization
    held_out = gp_narx.choose_lags(u, y)
    results = {}
    for kind in ("one_step", "free_run"):
        lags = min(held_out, key=lambda row: row[f"{kind}_rmse_volt"])["lags"]
        model = gp_narx.fit(u, y, lags)
        evaluate = getattr(gp_narx, f"evaluate_{kind}")
        more = () if kind == "one_step" else (gp_narx.N_TRAJECTORIES,)
        results[kind] = {
            "lags": lags,
            **evaluate(model, tanks.tests.test, n_init, *more),
        }
        print(kind, results[kind], flush=True)
    return results


PARTS = {"prior": part_prior, "mcmc": part_mcmc, "real": part_real, "gp": part_gp}


def machine():
    return {
        "python": platform.python_version(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "numpy": np.__version__,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="file for the results as JSON")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--systems", type=int, default=300)
    parser.add_argument("--networks", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    results = {}
    if arguments.output and os.path.exists(arguments.output):
        with open(arguments.output) as file:
            results = json.load(file)
    results |= {"protocol": __doc__, "machine": machine()}
    for part in arguments.parts:
        start = time.perf_counter()
        results[part] = PARTS[part](arguments)
        results[part]["seconds"] = time.perf_counter() - start
        print(f"{part}: {results[part]['seconds']:.0f} s", flush=True)
        if arguments.output:
            with open(arguments.output, "w") as file:
                json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
