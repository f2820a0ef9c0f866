"""The posterior of a state-space network against long Hamiltonian Monte Carlo."""

import numpy as np
import pytest

from skbayesnn import SparseBayesStateSpaceRegressor
from skbayesnn.sparse_bayes.kernels.state_recursion import (
    run_state_sensitivities,
    run_states,
)
from skbayesnn.sparse_bayes.learning.prior import parameter_variance
from skbayesnn.sparse_bayes.learning.restarts import learn
from skbayesnn.sparse_bayes.learning.state_space_problem import pose_state_space
from skbayesnn.sparse_bayes.parameters import learning_options
from skbayesnn.sparse_bayes.records.state_runs import select_features

NOISE = 0.05
N_DRAWS, N_WARM, N_LEAPS = 4000, 300, 6


def record(n_rows=150):
    """Two states, one of which is bent, and noise."""
    rng = np.random.default_rng(3)
    u, y, x = rng.uniform(-2.0, 2.0, (n_rows, 1)), np.empty((n_rows, 1)), np.zeros(2)
    for t in range(n_rows):
        y[t] = x[0] + NOISE * rng.standard_normal()
        x = np.array([0.7 * x[0] + np.tanh(x[1]), 0.5 * x[1] + u[t, 0]])
    return u, y


@pytest.fixture(scope="module")
def learned():
    """The fitted network and its prior variances, and its record in scaled units."""
    u, y = record()
    model = SparseBayesStateSpaceRegressor(
        2, hidden_layer_sizes=1, reg_lambda=1.0, n_restarts=1, random_state=0
    )
    options = learning_options(model._fixed_parameters(), 1)
    problem = pose_state_space(options, u, y, np.array([0, len(u)]), 2, 15)
    network = learn(problem, 0, n_starts=8, n_networks=1, n_jobs=None)
    network = network.networks[0]
    variance = parameter_variance(network.start.prior)
    used = network.fitted.network.units[0]
    run = select_features(problem.data.run, used)
    return network.fitted, variance, run, problem.data.Y


class Target:
    """The density of the kept parameters: that of which a fit finds the mode."""

    def __init__(self, fitted, variance, run, Y):
        network = fitted.network
        self.network, self.run = network, run
        self.kept = np.flatnonzero(network.keep)
        self.variance = variance[self.kept]
        self.mode = network.theta[self.kept]
        self.noise, self.Y = float(fitted.noise_std[0]), Y[:, 0]
        self.known = np.isfinite(self.Y)

    def layers(self, weights):
        theta = self.network.theta.copy()
        theta[self.kept] = weights
        return self.network._replace(theta=theta).layers

    def path(self, weights):
        return run_states(self.layers(weights), self.run, 1)[1][self.known, 0]

    def energy(self, weights):
        """- log p up to a constant, and its gradient."""
        _, outputs, S = run_state_sensitivities(
            self.layers(weights), self.run, 1, self.kept
        )
        error = (outputs[:, 0] - self.Y)[self.known] / self.noise
        if not np.isfinite(error).all():
            return np.inf, np.zeros(len(weights))
        energy = 0.5 * error @ error + 0.5 * np.sum(weights**2 / self.variance)
        gradient = S[self.known].T @ error / self.noise + weights / self.variance
        return energy, gradient


def scales_of_states(covariance):
    """Weights to hold, one for each direction that only rescales a state.

    Nothing but the prior says how large a state is. Along such a valley, which is
    curved, a sampler hardly moves, and the path does not change.
    """
    values, vectors = np.linalg.eigh(covariance)
    valleys = vectors[:, np.sqrt(values) > 0.5]
    return np.unique(np.abs(valleys).argmax(axis=0))


def sample_by_hamiltonian(target, covariance, free, rng):
    """Draws of the target with some weights free, and the fraction of accepted moves.

    Coordinates are those in which the approximate posterior is a standard normal.
    """
    root = np.zeros((len(covariance), len(free)))
    root[free] = np.linalg.cholesky(covariance[np.ix_(free, free)])
    z = np.zeros(len(free))

    def energy(z):
        value, gradient = target.energy(target.mode + root @ z)
        return value, root.T @ gradient

    value, gradient = energy(z)
    draws, accepted = [], 0
    for number in range(N_WARM + N_DRAWS):
        momentum = rng.standard_normal(len(z))
        before = value + 0.5 * momentum @ momentum
        step = 0.4 * rng.uniform(0.5, 1.0)
        there, new, slope = z.copy(), value, gradient
        for _ in range(N_LEAPS):
            momentum = momentum - 0.5 * step * slope
            there = there + step * momentum
            new, slope = energy(there)
            momentum = momentum - 0.5 * step * slope
        if np.log(rng.uniform()) < before - new - 0.5 * momentum @ momentum:
            z, value, gradient = there, new, slope
            accepted += number >= N_WARM
        if number >= N_WARM:
            draws.append(target.mode + root @ z)
    return np.array(draws), accepted / N_DRAWS


@pytest.mark.slow
def test_paths_have_the_mean_and_the_deviation_of_the_approximation(learned):
    """Of the path, not of the weights: the basis of the states is arbitrary."""
    fitted = learned[0]
    target = Target(*learned)
    # the fit has found the system
    assert fitted.noise_std * fitted.scaling.y_scale == pytest.approx(NOISE, rel=0.2)
    held = scales_of_states(fitted.covariance)
    free = np.setdiff1d(np.arange(len(target.kept)), held)
    assert len(held) == 2
    conditional = np.zeros_like(fitted.covariance)
    precision = np.linalg.inv(fitted.covariance)
    conditional[np.ix_(free, free)] = np.linalg.inv(precision[np.ix_(free, free)])
    draws, accepted = sample_by_hamiltonian(
        target, conditional, free, np.random.default_rng(0)
    )
    assert accepted > 0.6
    paths = np.array([target.path(weights) for weights in draws])
    _, mode, S = run_state_sensitivities(
        target.layers(target.mode), target.run, 1, target.kept
    )
    mode, S = mode[target.known, 0], S[target.known]
    std = np.sqrt(np.einsum("ij,jk,ik->i", S, fitted.covariance, S))
    first, second = paths[: N_DRAWS // 2], paths[N_DRAWS // 2 :]
    # the chain has forgotten where it began
    assert (np.abs(first.mean(axis=0) - second.mean(axis=0)) < 0.2 * std).all()
    ratio = paths.std(axis=0) / std
    bias = np.abs(paths.mean(axis=0) - mode) / std
    assert 0.9 < ratio.min() and ratio.max() < 1.1
    assert bias.max() < 0.15
