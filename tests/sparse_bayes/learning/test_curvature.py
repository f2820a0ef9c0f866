"""The forms of the curvature, against dense algebra."""

import naive
import numpy as np
import pytest
from learning_cases import (
    outputs,
    random_data,
    random_drop,
    random_network,
    reference,
    weighted_jacobian,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import LinAlgError

from skbayesnn.sparse_bayes.kernels import layers as mlp
from skbayesnn.sparse_bayes.learning.curvature import (
    Diagonal,
    Dual,
    Full,
    choose_form,
    damped_system,
    diagonal_of,
    linearize,
    log_determinant,
    posterior_covariance,
    restrict,
    squared_error,
    well_determined,
)
from skbayesnn.sparse_bayes.network import (
    prune,
    split_layers,
)
from skbayesnn.sparse_bayes.records import residuals as data_module


class Problem:
    """A random Jacobian in all its forms."""

    def __init__(self, n_parameters, n_observations, seed=0):
        rng = np.random.default_rng(seed)
        self.J = rng.standard_normal((n_observations, n_parameters))
        self.variance = 10.0 ** rng.uniform(-6.0, 2.0, size=n_parameters)
        self.noise = 0.3
        self.vector = rng.standard_normal(n_parameters)
        self.forms = {
            "full": Full(self.J.T @ self.J),
            "dual": Dual(np.ascontiguousarray(self.J.T)),
            "diagonal": Diagonal(np.sum(self.J**2, axis=0)),
        }

    def hessian(self, form):
        H = self.J.T @ self.J / self.noise
        return np.diag(np.diag(H)) if form == "diagonal" else H


SHAPES = [(6, 20), (20, 6), (8, 8), (1, 5), (5, 1)]


@pytest.mark.parametrize("form", ["full", "dual", "diagonal"])
@pytest.mark.parametrize("shape", SHAPES)
def test_posterior(shape, form):
    problem = Problem(*shape)
    H, v = problem.hessian(form), problem.variance
    curvature, noise = problem.forms[form], problem.noise
    C = naive.posterior_covariance(H, v)
    found = posterior_covariance(curvature, v, noise)
    if form == "diagonal":
        found = np.diag(found)
    scale = np.sqrt(np.outer(np.diag(C), np.diag(C)))
    assert_allclose(found / scale, C / scale, atol=1e-7)
    assert_allclose(found, found.T, atol=1e-15)
    gamma, logdet = well_determined(curvature, v, noise)
    assert_allclose(gamma, 1.0 - np.diag(C) / v, atol=1e-8)
    assert (gamma >= 0.0).all() and (gamma <= 1.0).all()
    # log|V| + log|H + 1/V|, in the form that does not cancel
    root = np.sqrt(v)
    expected = naive.logdet(np.eye(len(v)) + root[:, None] * H * root)
    assert_allclose(logdet, expected, rtol=1e-9)
    assert_allclose(log_determinant(curvature, v, noise), logdet, rtol=1e-13)
    assert_allclose(diagonal_of(curvature), np.sum(problem.J**2, axis=0))


@pytest.mark.parametrize("form", ["full", "dual", "diagonal"])
def test_alpha_is_the_gradient_of_the_determinant(form):
    """Equation (12): alpha = gamma / variance."""
    problem = Problem(7, 10)
    curvature, noise, v = problem.forms[form], problem.noise, problem.variance
    gamma, _ = well_determined(curvature, v, noise)
    for i in range(len(v)):
        moved = [v.copy(), v.copy()]
        moved[0][i] *= 1.0 - 1e-4
        moved[1][i] *= 1.0 + 1e-4
        down, up = (well_determined(curvature, m, noise)[1] for m in moved)
        # the derivative by log v is alpha v = gamma
        assert_allclose((up - down) / 2e-4, gamma[i], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("damping", [0.0, 1e-3, 10.0])
@pytest.mark.parametrize("form", ["full", "dual"])
@pytest.mark.parametrize("shape", SHAPES)
def test_damped_system(shape, form, damping):
    problem = Problem(*shape)
    precision, H = 1.0 / problem.variance, problem.hessian(form)
    scale = precision + np.diag(H) if form == "full" else precision
    matrix = H + np.diag(precision + damping * scale)
    expected = np.linalg.solve(matrix, problem.vector)
    system = damped_system(problem.forms[form], precision, problem.noise)
    # one system serves several dampings
    system.solve(problem.vector, 3.0)
    found = system.solve(problem.vector, damping)
    assert_allclose(found, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())


def test_damped_system_refuses_what_is_singular():
    system = damped_system(Full(np.ones((2, 2))), np.zeros(2), 1.0)
    with pytest.raises(LinAlgError):
        system.solve(np.ones(2), 0.0)


@pytest.mark.parametrize("form", ["full", "dual", "diagonal"])
def test_restrict(form):
    problem = Problem(6, 20)
    index = np.array([1, 4, 5])
    part = restrict(problem.forms[form], index)
    smaller = Problem(3, 20)
    smaller.J = problem.J[:, index]
    found = well_determined(part, problem.variance[index], problem.noise)
    C = naive.posterior_covariance(smaller.hessian(form), problem.variance[index])
    assert_allclose(found[0], 1.0 - np.diag(C) / problem.variance[index], atol=1e-8)


def test_the_smaller_form_is_chosen():
    assert choose_form("full", 10, 10) is Full
    assert choose_form("full", 11, 10) is Dual
    assert choose_form("diag", 11, 10) is choose_form("diag", 1, 10) is Diagonal


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("form", [Full, Dual, Diagonal])
def test_linearize(form, share, skip):
    network = random_network((3, 4, 2), skip=skip)
    drop = random_drop(network, share, np.random.default_rng(1))
    data = random_data(network)
    # the arrays keep their size: pruned weights inside must be left out as well
    masked = network._replace(
        theta=np.where(drop, 0.0, network.theta), keep=network.keep & ~drop
    )
    found = linearize(masked, data, form)
    J = weighted_jacobian(masked, data)
    residual = (outputs(masked, data.XT) - data.YT) * data.weights[:, None]
    assert_allclose(found.squared_error, np.sum(residual**2), rtol=1e-12)
    assert_allclose(found.gradient, J.T @ residual.ravel(), rtol=1e-9, atol=1e-10)
    if form is Full:
        assert_allclose(found.curvature.JTJ, J.T @ J, rtol=1e-9, atol=1e-10)
    elif form is Dual:
        assert_allclose(found.curvature.JT, J.T, rtol=1e-9, atol=1e-11)
    assert_allclose(diagonal_of(found.curvature), np.sum(J**2, axis=0), rtol=1e-10)
    errors = data.squared_errors(masked)
    assert_allclose(errors @ data.weights**2, found.squared_error, rtol=1e-12)
    assert_allclose(squared_error(masked, data), found.squared_error, rtol=1e-12)


def test_select_inputs():
    network = random_network((4, 2, 1))
    data = random_data(network)
    drop = np.zeros(len(network.theta), dtype=bool)
    split_layers(drop, network.sizes)[0][0][[0, 2]] = True
    pruned, _ = prune(network, drop)
    selected = data.select_inputs(pruned.units[0])
    assert_array_equal(selected.XT, data.XT[[1, 3]])
    assert selected.XT.flags.c_contiguous
    assert selected.YT is data.YT
    assert_allclose(
        outputs(pruned, data.XT),
        mlp.forward(pruned.layers, selected.XT),
    )


def test_data():
    network = random_network((3, 4, 2), skip=True)
    data = random_data(network, 20)
    assert data.n_observations == 40
    assert_array_equal(data.counts, [20, 20])
    rows = np.array([7, 3, 3])
    taken = data.take(rows)
    assert_array_equal(taken.XT, data.XT[:, rows])
    assert_array_equal(taken.YT, data.YT[:, rows])
    X, Y = data.XT.T, data.YT.T
    residual = naive.forward(*reference(network), X) - Y
    assert_allclose(data.squared_errors(network), np.sum(residual**2, axis=0))
    loss, gradient = data.loss_gradient(network)
    expected = naive.loss_gradient(*reference(network), data.weights, X, Y)
    assert_allclose(loss, expected[0])
    assert_allclose(gradient, expected[1], rtol=1e-9, atol=1e-10)
    expected = naive.ggn_diag(*reference(network), data.weights, X)
    assert_allclose(data.ggn_diag(network), expected, rtol=1e-10)


@pytest.mark.parametrize("n_samples", [64, 200, 257])
def test_the_full_form_is_gathered_in_blocks(monkeypatch, n_samples):
    network = random_network((3, 4, 2))
    data = random_data(network, n_samples)
    whole = linearize(network, data, Full)
    # 26 parameters and 2 outputs: room for 80 samples
    monkeypatch.setattr(data_module, "BLOCK_BYTES", 8 * 26 * 2 * 80)
    made = []
    jacobian = mlp.jacobian

    def watched(*args):
        result = jacobian(*args)
        made.append(result[1].shape)
        return result

    monkeypatch.setattr(mlp, "jacobian", watched)
    blocked = linearize(network, data, Full)
    assert len(made) == -(-n_samples // 80)
    assert all(shape[2] <= 80 for shape in made)
    assert sum(shape[2] for shape in made) == n_samples
    assert_allclose(blocked.squared_error, whole.squared_error, rtol=1e-13)
    assert_allclose(blocked.gradient, whole.gradient, rtol=1e-10, atol=1e-11)
    assert_allclose(blocked.curvature.JTJ, whole.curvature.JTJ, rtol=1e-11, atol=1e-11)
    made.clear()
    # a tiny limit still leaves whole vectors of samples
    monkeypatch.setattr(data_module, "BLOCK_BYTES", 1)
    linearize(network, data, Full)
    assert made[0][2] == 64
    made.clear()
    # the dual form needs the Jacobian as it is
    linearize(network, data, Dual)
    assert len(made) == 1


@pytest.mark.parametrize("noise", [1e-300, 1e-12, 1e-3])
def test_observations_that_depend_on_each_other_need_no_prior(noise):
    """Without one, the noise falls below the rounding errors of J V J.T."""
    rng = np.random.default_rng(0)
    for seed in range(20):
        JT = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 20)) * 10.0**seed
        dual = Dual(np.ascontiguousarray(JT))
        gamma, logdet = well_determined(dual, np.full(60, 1e6), noise)
        assert np.isfinite(logdet) and np.isfinite(gamma).all()
        # three combinations of parameters are seen, and those exactly
        assert gamma.sum() < 20.0
        assert np.isfinite(log_determinant(dual, np.full(60, 1e6), noise))
