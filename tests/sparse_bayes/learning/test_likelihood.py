"""The seam of the likelihood: the Gaussian one, and a second one fitted through it."""

import numpy as np
import pytest
from grids import first_by_default
from learning_cases import linear_record, make_settings, random_data, random_network
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from skbayesnn import SparseBayesMLPRegressor
from skbayesnn.sparse_bayes.learning import cycle, restarts
from skbayesnn.sparse_bayes.learning import prior as priors
from skbayesnn.sparse_bayes.learning.likelihood import (
    MIN_NOISE,
    Gaussian,
    StudentT,
)
from skbayesnn.sparse_bayes.learning.problem import pose
from skbayesnn.sparse_bayes.learning.weights import (
    SOLVERS,
    WeightFit,
    WeightProblem,
    fit_weights,
    penalized_error,
)
from skbayesnn.sparse_bayes.network import init_network
from skbayesnn.sparse_bayes.parameters import learning_options
from skbayesnn.sparse_bayes.prediction import posterior
from skbayesnn.sparse_bayes.records.one_step import OneStepData


def student(freedom, noise_variance="auto"):
    """Errors with heavy tails, with fixed degrees of freedom."""
    return StudentT(noise_variance, freedom, (freedom, freedom))


def regression(n_samples=200, outliers=0.0, seed=0):
    """Scaled inputs, outputs with gross outliers, and the function behind them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.7, 1.7, size=(3, n_samples))
    truth = np.sin(2.0 * X[[0]]) + 0.5 * X[[1]]
    Y = truth + 0.1 * rng.standard_normal(truth.shape)
    gross = rng.uniform(size=n_samples) < outliers
    Y[0, gross] += rng.choice([-1.0, 1.0], size=gross.sum()) * rng.uniform(3.0, 6.0)
    return OneStepData(X, Y, np.ones(1)), truth


def learn(data, likelihood, n_cycles=60, **options):
    rng = np.random.default_rng(0)
    settings = make_settings(
        tol=1e-4, kappa_variance=1e-6, kappa_weight=1e-3, **options
    )._replace(likelihood=likelihood)
    network = init_network((len(data.XT), 6, len(data.YT)), "tanh", rng)
    prior = priors.init_prior(network.sizes, ("row", "column"))
    state = cycle.init(settings, data, network, prior)
    for _ in range(n_cycles):
        state, _ = cycle.step(settings, state, rng)
        if cycle.converged(state):
            break
    return settings, state


def function_error(state, data, truth):
    """Root mean squared error against the function without noise."""
    clean = data._replace(XT=data.XT[state.network.units[0]], YT=truth)
    error = clean.with_observation_weights(None).residuals(state.network)
    return float(np.sqrt(np.mean(error**2)))


# the Gaussian likelihood


def test_the_misfit_is_minus_twice_the_log_density():
    network = random_network((3, 4, 2))
    data = random_data(network)
    residuals = data.residuals(network)
    found = Gaussian().misfit(
        lambda: residuals, np.sum(residuals**2), data.counts, data.weights, 0.3
    )
    std = np.sqrt(0.3) / data.weights[:, None]
    errors = residuals / data.weights[:, None]
    expected = -2.0 * stats.norm.logpdf(errors, scale=std).sum()
    assert_allclose(found, expected, rtol=1e-12)
    assert_allclose(Gaussian().noise_std(0.3, data.weights), std[:, 0])
    assert Gaussian().observation_weights(lambda: residuals, 0.3) is None


def test_the_update_of_the_noise_is_bounded():
    learned, given = Gaussian(), Gaussian(0.7)
    assert learned.update_noise(30.0, 60.0, 0.4) == 0.5
    assert learned.update_noise(30.0, 60.0, 0.1) == 0.2
    assert learned.update_noise(30.0, 60.0, 10.0) == 1.0
    assert learned.update_noise(30.0, -1.0, 0.1) == 0.2
    assert learned.update_noise(0.0, 60.0, MIN_NOISE) == MIN_NOISE
    assert given.update_noise(30.0, 60.0, 0.7) == 0.7
    assert learned.initial_noise(0.3) == 0.3
    assert given.initial_noise(0.3) == 0.7


@pytest.mark.parametrize("likelihood", [Gaussian(), StudentT()])
def test_each_output_has_a_noise(likelihood):
    """Its own fixed point, as far as one cycle may change it."""
    squared, counts = np.array([30.0, 6.0, 1e-9]), np.array([100, 50, 50])
    noise, weights = 0.4, np.array([1.0, 2.0, 1.0])
    learned, common = likelihood.with_noises(
        lambda: squared, counts, 150.0, noise, weights
    )
    variances = learned.noise_std(common, learned.output_weights) ** 2
    nu = learned.degrees_of_freedom
    of_scale = 1.0 if nu == np.inf else (nu - 2.0) / nu
    # three quarters of the observations are free
    assert_allclose(of_scale * variances, [30.0 / 75.0, 6.0 / 37.5, 0.04])
    squared[2] = 0.04 * 37.5
    same = learned.with_noises(
        lambda: squared, counts, 150.0, common, learned.output_weights
    )
    assert same[0] is learned and same[1] == common
    given = likelihood._replace(noise_variance=0.4)
    again, same = given.with_noises(lambda: squared, counts, 150.0, noise, weights)
    assert again is given and same == noise


def test_given_variances_become_factors_and_weights():
    y_scale = np.array([2.0, 5.0])
    likelihood, weights = Gaussian(np.array([4.0, 1.0])).scaled(y_scale)
    noise_std = likelihood.noise_std(likelihood.initial_noise(), weights)
    assert_allclose((noise_std * y_scale) ** 2, [4.0, 1.0])
    learned, ones = Gaussian().scaled(y_scale)
    assert learned == Gaussian()
    assert_array_equal(ones, 1.0)


# a likelihood with heavy tails, through the same seam


def test_the_second_misfit_is_minus_twice_the_log_density():
    network = random_network((3, 4, 2))
    data = random_data(network)
    residuals = data.residuals(network)
    found = student(3.0).misfit(
        lambda: residuals, np.nan, data.counts, data.weights, 0.3
    )
    scale = np.sqrt(0.3) / data.weights[:, None]
    errors = residuals / data.weights[:, None]
    expected = -2.0 * stats.t.logpdf(errors, 3.0, scale=scale).sum()
    assert_allclose(found, expected, rtol=1e-12)
    limit = student(1e9).misfit(
        lambda: residuals, np.nan, data.counts, data.weights, 0.3
    )
    gaussian = -2.0 * stats.norm.logpdf(errors, scale=scale).sum()
    assert_allclose(limit, gaussian, rtol=1e-6)


@pytest.mark.parametrize("seed", first_by_default(range(4)))
def test_heavy_tails_withstand_outliers(seed):
    data, truth = regression(outliers=0.05, seed=seed)
    errors = {}
    for likelihood in (Gaussian(), student(3.0)):
        _, state = learn(data, likelihood)
        errors[type(likelihood)] = function_error(state, data, truth)
    assert errors[StudentT] < 0.5 * errors[Gaussian]
    # not far from what the noise of 0.1 allows
    assert errors[StudentT] < 0.06


@pytest.mark.parametrize("solver", list(SOLVERS))
def test_a_weight_fit_at_held_observation_weights_lowers_the_objective(solver):
    """The weighted squared error rises by at least as much as the misfit."""
    data, _ = regression(outliers=0.05)
    settings, state = learn(data, student(3.0), n_cycles=3, solver=solver)
    rng = np.random.default_rng(1)
    likelihood, lowered = settings.likelihood, 0.0
    for _ in range(5):
        weights = likelihood.observation_weights(
            lambda state=state: state.data.residuals(state.network), state.noise
        )
        held = state.data.with_observation_weights(weights)
        state = cycle.with_data(settings, state, held)
        keep = state.network.keep
        precision = 1.0 / priors.parameter_variance(state.prior)[keep]
        form = type(state.linearization.curvature)
        problem = WeightProblem(held, precision, state.noise, form, 3, 1e-9)
        start = WeightFit(state.network, state.linearization, state.memory)
        fit = fit_weights(solver, problem, start, rng)

        def objective(one, state=state, precision=precision):
            misfit = likelihood.misfit(
                lambda: state.data.residuals(one.network),
                np.nan,
                state.data.counts,
                state.data.weights,
                state.noise,
            )
            theta = one.network.theta[one.network.keep]
            return misfit + float(precision @ theta**2)

        gain = penalized_error(problem, start) - penalized_error(problem, fit)
        true_gain = objective(start) - objective(fit)
        assert gain >= 0.0
        assert true_gain >= gain - 1e-9 * abs(objective(start))
        lowered += true_gain
        state = state._replace(
            network=fit.network, linearization=fit.linearization, memory=fit.memory
        )
    assert lowered > 0.0


@pytest.mark.parametrize("solver", ["lm", "lbfgs"])
def test_many_degrees_of_freedom_are_the_gaussian_likelihood(solver):
    data, _ = regression()
    _, gaussian = learn(data, Gaussian(), n_cycles=8, solver=solver)
    _, heavy = learn(data, student(1e12), n_cycles=8, solver=solver)
    assert_array_equal(heavy.network.sizes, gaussian.network.sizes)
    assert_allclose(heavy.network.theta, gaussian.network.theta, atol=1e-5)
    assert_allclose(heavy.noise, gaussian.noise, rtol=1e-5)


def test_its_noise_may_be_given():
    data = linear_record()
    _, state = learn(data, student(4.0, 0.7), n_cycles=3)
    assert state.noise == 0.7
    assert_allclose(student(4.0).noise_std(0.5, np.ones(1)), 1.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_whole_fit_by_another_likelihood():
    """From parameters to learned networks, with several starts and two outputs."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.7, 1.7, size=(150, 3))
    truth = np.column_stack([np.sin(2.0 * X[:, 0]), 20.0 * X[:, 1]])
    Y = truth + [0.1, 2.0] * rng.standard_normal(truth.shape)
    Y[::20] += [5.0, 100.0]
    parameters = SparseBayesMLPRegressor((6,), max_cycles=40).get_params()
    options = learning_options(parameters, 2)
    errors = {}
    for likelihood in (Gaussian(), student(3.0)):
        problem = pose(options._replace(likelihood=likelihood), X, Y)
        fit = restarts.learn(problem, 0, n_starts=3, n_networks=2)
        first, second = fit.networks
        assert first.objective <= second.objective
        assert not fit.interrupted and fit.n_diverged == 0
        error = (posterior.mean(first.fitted, X) - truth) / truth.std(axis=0)
        errors[type(likelihood)] = np.sqrt(np.mean(error**2))
        # errors in the history are not weighted
        rmse = np.sqrt(np.mean((posterior.mean(first.fitted, X) - Y) ** 2, axis=0))
        assert first.history["rmse"].shape == (len(first.history["n_iter"]), 2)
        assert_allclose(first.history["rmse"][-1], rmse, rtol=0.05)
        assert first.start.network is first.fitted.network
    assert errors[StudentT] < 0.5 * errors[Gaussian]
