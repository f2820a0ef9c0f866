"""The solvers of the weights: descent, and conditions of optimality."""

import numpy as np
import pytest
from learning_cases import random_data, random_drop, random_network, start_fit
from numpy.testing import assert_allclose

from skbayesnn.sparse_bayes.learning import weights
from skbayesnn.sparse_bayes.learning.curvature import (
    Diagonal,
    Dual,
    DualSystem,
    Full,
    FullSystem,
    linearize,
)
from skbayesnn.sparse_bayes.learning.weights import (
    SOLVERS,
    WeightProblem,
    fit_weights,
    penalized_error,
)
from skbayesnn.sparse_bayes.network import (
    init_network,
    split_layers,
)


@pytest.mark.parametrize("form", [Full, Dual, Diagonal])
@pytest.mark.parametrize("activation", ["tanh", "relu", "logistic"])
@pytest.mark.parametrize("solver", list(SOLVERS))
def test_a_fit_never_ascends(solver, activation, form):
    if solver == "lm" and form is Diagonal:
        pytest.skip("Levenberg-Marquardt needs the matrix")
    rng = np.random.default_rng(0)
    for seed in range(4):
        network = random_network((3, 4, 2), activation, seed)
        data = random_data(network, seed=seed)
        drop = random_drop(network, 0.2, rng)
        network = network._replace(theta=np.where(drop, 0.0, network.theta), keep=~drop)
        n_kept = int(network.keep.sum())
        noise = 10.0 ** rng.uniform(-3.0, 1.0)
        precision = 10.0 ** rng.uniform(-3.0, 6.0, size=n_kept)
        precision[0] = 0.0
        fit = start_fit(network, data, solver, form)
        problem = WeightProblem(data, precision, noise, form, 3, 1e-6)
        values = [penalized_error(problem, fit)]
        for _ in range(5):
            fit = fit_weights(solver, problem, fit, rng)
            values.append(penalized_error(problem, fit))
            assert fit.network.theta.shape == network.theta.shape
            assert not fit.network.theta[drop].any()
            assert 0 <= fit.n_iter <= 3
        assert (np.diff(values) <= 1e-12 * np.abs(values[:-1])).all()
        assert values[-1] < values[0]
        # the linearisation belongs to the weights
        again = linearize(fit.network, data, form)
        assert_allclose(
            fit.linearization.squared_error, again.squared_error, rtol=1e-12
        )
        assert_allclose(fit.linearization.gradient, again.gradient, rtol=1e-9)


@pytest.mark.parametrize("form", [Full, Dual])
@pytest.mark.parametrize("sizes", [(3, 4, 1), (2, 3, 3, 2), (3, 20, 1)])
def test_levenberg_marquardt_reaches_a_stationary_point(sizes, form):
    network = random_network(sizes, seed=2)
    data = random_data(network, seed=2)
    precision, noise = np.full(len(network.theta), 2.0), 0.5
    fit = start_fit(network, data, "lm", form)
    start = fit
    problem = WeightProblem(data, precision, noise, form, 500, 1e-13)
    fit = fit_weights("lm", problem, fit, None)

    def gradient(fit):
        weights = fit.network.theta
        return fit.linearization.gradient / noise + precision * weights

    assert np.abs(gradient(fit)).max() < 1e-5 * np.abs(gradient(start)).max()


@pytest.mark.parametrize("form", [Full, Dual])
@pytest.mark.parametrize("solver, tol", [("lm", 1e-7), ("lbfgs", 1e-4)])
def test_a_linear_network_is_a_ridge_regression(solver, tol, form):
    network = random_network((4, 2))
    data = random_data(network)
    rng = np.random.default_rng(0)
    precision, noise = 10.0 ** rng.uniform(-2.0, 2.0, size=10), 0.3
    fit = start_fit(network, data, solver, form)
    problem = WeightProblem(data, precision, noise, form, 200, 1e-12)
    fit = fit_weights(solver, problem, fit, rng)
    W, b = split_layers(fit.network.theta, fit.network.sizes)[0]
    (P, p), design = split_layers(precision, (4, 2))[0], data.XT.T
    design = np.column_stack([design, np.ones(len(design))])
    for o in range(2):
        # the output's own noise
        own = noise / data.weights[o] ** 2
        matrix = design.T @ design / own + np.diag([*P[:, o], p[o]])
        expected = np.linalg.solve(matrix, design.T @ data.YT[o] / own)
        assert_allclose([*W[:, o], b[o]], expected, rtol=tol, atol=tol)


@pytest.mark.parametrize("form", [Full, Dual])
def test_errors_that_are_linear_take_one_step(monkeypatch, form):
    """One solution leads to the minimum, and another finds that nothing is left."""
    network = random_network((4, 2))
    data = random_data(network)
    network = network._replace(theta=1e3 * network.theta)
    systems, n_solved, n_made = (FullSystem, DualSystem), [], []
    for system in systems:
        solve = system.solve

        def counted(self, *arguments, solve=solve):
            n_solved.append(1)
            return solve(self, *arguments)

        monkeypatch.setattr(system, "solve", counted)
    fit = start_fit(network, data, "lm", form)
    monkeypatch.setattr(weights, "linearize", lambda *_: n_made.append(1))
    problem = WeightProblem(data, np.full(10, 0.1), 0.3, form, 200, 1e-9)
    fit = fit_weights("lm", problem, fit, None)
    again = fit_weights("lm", problem, fit, None)
    assert 2 <= len(n_solved) <= 3
    assert not n_made
    least = penalized_error(problem, fit)
    assert penalized_error(problem, again) == pytest.approx(least, rel=1e-12)
    gradient = fit.linearization.gradient / 0.3 + 0.1 * fit.network.theta
    assert_allclose(gradient, 0.0, atol=1e-6)


def test_a_singular_curvature_is_damped():
    network = init_network((3, 1), "tanh", np.random.default_rng(0))
    data = random_data(network)
    # a feature twice, and nothing that would tell both apart
    data = data._replace(XT=data.XT[[0, 1, 1]])
    fit = start_fit(network, data, "lm", Full)
    problem = WeightProblem(data, np.zeros(4), 1.0, Full, 50, 1e-12)
    fit = fit_weights("lm", problem, fit, None)
    design = np.vstack([data.XT, np.ones(data.XT.shape[1])]).T
    expected = np.linalg.lstsq(design, data.YT[0])[1] * data.weights[0] ** 2
    assert_allclose(fit.linearization.squared_error, expected, rtol=1e-8)


@pytest.mark.parametrize("strength", [0.0, 1e-6])
@pytest.mark.parametrize("form", [Full, Dual])
def test_levenberg_marquardt_moves_without_a_prior(form, strength):
    network = init_network((3, 20, 1), "tanh", np.random.default_rng(0))
    data = random_data(network, 50)
    precision = np.full(len(network.theta), strength)
    fit = start_fit(network, data, "lm", form)
    problem = WeightProblem(data, precision, 0.3, form, 3, 1e-8)
    before = penalized_error(problem, fit)
    for _ in range(10):
        fit = fit_weights("lm", problem, fit, None)
    assert penalized_error(problem, fit) < 0.5 * before
