"""The solvers against dense references, closed forms and conditions of optimality."""

import itertools

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import LinAlgError
from sklearn.linear_model import Lasso

from skbayesnn.sparse_bayes.kernels import layers as mlp
from skbayesnn.sparse_bayes.learning import cycle as sparse_bayes
from skbayesnn.sparse_bayes.learning import prior as evidence
from skbayesnn.sparse_bayes.learning import restarts as _restarts
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
from skbayesnn.sparse_bayes.learning.cycle import Settings
from skbayesnn.sparse_bayes.learning.weights import (
    WeightFit,
    fit_weights,
    initial_memory,
    penalized_error,
)
from skbayesnn.sparse_bayes.network import (
    bias_mask,
    column_index,
    count_parameters,
    expand,
    init_network,
    join_layers,
    layer_index,
    prune,
    split_layers,
)
from skbayesnn.sparse_bayes.records import residuals as data_module
from skbayesnn.sparse_bayes.records.one_step import OneStepData

NAMES = {0: "tanh", 1: "relu", 2: "logistic"}
SOLVERS = ["lm", "lbfgs", "adam"]
GROUPS = [
    ("element",),
    ("row",),
    ("column",),
    ("row", "column"),
    ("element", "row"),
    ("element", "row", "column"),
    ("layer",),
    ("layer", "row"),
]


def random_network(sizes, activation="tanh", seed=0, skip=False):
    """All parameters random, the biases too."""
    rng = np.random.default_rng(seed)
    network = init_network(sizes, activation, rng, skip)
    return network._replace(theta=rng.standard_normal(len(network.theta)))


def random_data(network, n_samples=50, seed=0, weighted=True):
    rng = np.random.default_rng(seed + 100)
    n_in, n_out = network.full_sizes[0], network.full_sizes[-1]
    weights = rng.uniform(0.5, 1.5, size=n_out) if weighted else np.ones(n_out)
    X = rng.standard_normal((n_in, n_samples))
    return OneStepData(X, rng.standard_normal((n_out, n_samples)), weights)


def outputs(network, XT):
    used = np.ascontiguousarray(XT[network.units[0]])
    return mlp.forward(network.layers, used)


def reference(network):
    """Layers and activation for the references."""
    return naive.unflatten(network.theta, network.sizes), NAMES[network.activation]


def weighted_jacobian(network, data):
    """(n_outputs * n_samples, n_kept), outputs first, as the curvature stacks them."""
    J = naive.jacobian(*reference(network), data.XT.T) * data.weights[:, None]
    J = J.transpose(1, 0, 2).reshape(-1, len(network.theta))
    return J[:, network.keep]


def random_drop(network, share, rng):
    drop = rng.uniform(size=len(network.theta)) < share
    return drop & ~bias_mask(network)


# network


def test_layout():
    sizes = (2, 3, 1)
    vector = np.arange(count_parameters(sizes))
    layers = split_layers(vector, sizes)
    assert [(W.shape, b.shape) for W, b in layers] == [((2, 3), (3,)), ((3, 1), (1,))]
    assert_array_equal(join_layers(layers), vector)
    network = random_network(sizes)
    assert_array_equal(vector[bias_mask(network)], [6, 7, 8, 12])
    assert_array_equal(layer_index(network), [0] * 9 + [1] * 4)
    assert_array_equal(column_index(np.array([True, False, True])), [0, -1, 1])


@pytest.mark.parametrize("sizes", [(2, 3, 2), (3, 1), (2, 4, 3, 1), (2, 0, 3)], ids=str)
def test_a_skip_connection_follows_the_layers(sizes):
    n_layers = len(sizes) - 1
    network = random_network(sizes, skip=True)
    n_skip = sizes[0] * sizes[-1]
    n_parameters = count_parameters(sizes, skip=True)
    assert n_parameters == count_parameters(sizes) + n_skip == len(network.theta)
    *layers, (weights, none) = split_layers(network.theta, sizes, skip=True)
    for layer, expected in zip(layers, split_layers(network.theta, sizes), strict=True):
        for part, part_expected in zip(layer, expected, strict=True):
            assert_array_equal(part, part_expected)
    assert weights.shape == (sizes[0], sizes[-1]) and none.shape == (0,)
    # a view, like those of the layers
    assert np.shares_memory(weights, network.theta)
    assert_array_equal(join_layers([*layers, (weights, none)]), network.theta)
    again = join_layers(list(zip(*expand(network, network.theta), strict=True)))
    assert_array_equal(again, network.theta)
    assert not bias_mask(network)[n_parameters - n_skip :].any()
    assert np.count_nonzero(bias_mask(network)) == sum(sizes[1:])
    index = layer_index(network)
    assert_array_equal(index[n_parameters - n_skip :], np.full(n_skip, n_layers))
    assert_array_equal(
        index[: n_parameters - n_skip], layer_index(random_network(sizes))
    )
    started = init_network(sizes, "tanh", np.random.default_rng(0), skip=True)
    assert not started.theta[n_parameters - n_skip :].any() and started.keep.all()


def test_initial_weights_keep_to_their_limits():
    network = init_network((5, 7, 2), "relu", np.random.default_rng(0))
    for (W, b), total in zip(
        split_layers(network.theta, network.sizes), (12, 9), strict=True
    ):
        assert np.abs(W).max() <= np.sqrt(6.0 / total)
        assert not b.any()
    assert network.keep.all()


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("hidden", [(), (4,), (4, 3), (3, 4, 3)])
@pytest.mark.parametrize("activation", ["tanh", "relu", "logistic"])
def test_prune_keeps_the_function(activation, hidden, share, skip):
    rng = np.random.default_rng(0)
    for seed in range(3):
        network = random_network((4, *hidden, 2), activation, seed, skip)
        XT = rng.standard_normal((4, 20))
        drop = random_drop(network, share, rng)
        before = network.theta.copy()
        theta = np.where(drop, 0.0, network.theta)
        expected = outputs(network._replace(theta=theta), XT)
        pruned, index = prune(network, drop)
        # it works on copies
        assert_array_equal(network.theta, before)
        assert network.keep.all()
        assert_allclose(outputs(pruned, XT), expected, rtol=1e-12, atol=1e-13)
        check_consistency(network, pruned, index, drop)
        weights, biases = expand(pruned, pruned.theta)
        full = naive.forward(list(zip(weights, biases, strict=True)), activation, XT.T)
        assert_allclose(full.T, expected, rtol=1e-12, atol=1e-13)


def check_consistency(network, pruned, index, drop):
    assert_array_equal([len(u) for u in pruned.units], pruned.sizes)
    n_parameters = count_parameters(pruned.sizes, pruned.skip)
    assert len(pruned.theta) == len(pruned.keep) == n_parameters
    assert pruned.skip == network.skip
    assert pruned.theta.dtype == np.float64 and pruned.sizes.dtype == np.int64
    assert pruned.full_sizes == network.full_sizes
    # weights are where the index says; biases may have absorbed a constant unit
    is_weight = ~bias_mask(pruned)
    assert_array_equal(bias_mask(network)[index], ~is_weight)
    kept = is_weight & pruned.keep
    assert_array_equal(pruned.theta[kept], network.theta[index][kept])
    assert not pruned.theta[~pruned.keep].any()
    assert not drop[index[pruned.keep]].any()
    assert_array_equal(layer_index(network)[index], layer_index(pruned))
    # every unit that is left has a way in and a way out
    layers = split_layers(pruned.keep, pruned.sizes, pruned.skip)
    masks = [W for W, _ in layers[: len(pruned.sizes) - 1]]
    for mask_in, mask_out in itertools.pairwise(masks):
        assert mask_in.any(axis=0).all() and mask_out.any(axis=1).all()
    is_read = masks[0].any(axis=1)
    if pruned.skip:
        is_read |= layers[-1][0].any(axis=1)
    assert is_read.all()
    # labels of the full network end up at the right places
    label = np.arange(len(network.theta))
    weights, biases = expand(pruned, label[index], fill=-1)
    again = join_layers(list(zip(weights, biases, strict=True)))
    if network.full_sizes == tuple(network.sizes):
        assert_array_equal(again[again >= 0], label[again >= 0])
        assert_array_equal(np.sort(again[again >= 0]), index)


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_prune_is_idempotent_and_may_be_done_in_parts(seed, skip):
    rng = np.random.default_rng(seed)
    network = random_network((5, 4, 3, 2), seed=seed, skip=skip)
    first, second = random_drop(network, 0.4, rng), random_drop(network, 0.4, rng)
    once, index = prune(network, first | second)
    again, identity = prune(once, np.zeros(len(once.theta), dtype=bool))
    assert_array_equal(identity, np.arange(len(once.theta)))
    half, half_index = prune(network, first)
    rest, rest_index = prune(half, second[half_index])
    assert_array_equal(half_index[rest_index], index)
    for other in (again, rest):
        assert_allclose(other.theta, once.theta, rtol=1e-13, atol=1e-14)
        assert_array_equal(other.keep, once.keep)
        assert_array_equal(other.sizes, once.sizes)
        for a, b in zip(other.units, once.units, strict=True):
            assert_array_equal(a, b)


@pytest.mark.parametrize("activation", ["tanh", "relu", "logistic"])
def test_constant_units_move_into_the_biases(activation):
    network = random_network((2, 3, 1), activation)
    (W, b), (W2, b2) = split_layers(network.theta, network.sizes)
    drop = np.zeros(len(network.theta), dtype=bool)
    split_layers(drop, network.sizes)[0][0][:, 1] = True
    pruned, index = prune(network, drop)
    assert_array_equal(pruned.sizes, [2, 2, 1])
    assert_array_equal(pruned.units[1], [0, 2])
    (V, c), (V2, c2) = split_layers(pruned.theta, pruned.sizes)
    assert_array_equal(V, W[:, [0, 2]])
    assert_array_equal(c, b[[0, 2]])
    assert_array_equal(V2, W2[[0, 2]])
    assert_allclose(c2, b2 + naive.activate(activation, b[1]) * W2[1], rtol=1e-14)


def test_a_constant_moves_through_several_layers():
    network = random_network((2, 2, 2, 1))
    drop = np.zeros(len(network.theta), dtype=bool)
    split_layers(drop, network.sizes)[0][0][:] = True
    pruned, index = prune(network, drop)
    assert_array_equal(pruned.sizes, [0, 0, 0, 1])
    theta = np.where(drop, 0.0, network.theta)
    constant = outputs(network._replace(theta=theta), np.zeros((2, 1)))
    assert_allclose(pruned.theta, constant[0], rtol=1e-14)
    assert_array_equal(index, [len(network.theta) - 1])


def test_units_without_a_way_out_take_their_inputs_along():
    network = random_network((3, 2, 1))
    drop = np.zeros(len(network.theta), dtype=bool)
    layers = split_layers(drop, network.sizes)
    layers[1][0][0] = True
    # only the unit that goes reads the last input
    layers[0][0][2, 1] = True
    pruned, _ = prune(network, drop)
    assert_array_equal(pruned.sizes, [2, 1, 1])
    assert_array_equal(pruned.units[0], [0, 1])


def test_an_input_stays_while_the_skip_connection_reads_it():
    network = random_network((4, 3, 2), skip=True)
    drop = np.zeros(len(network.theta), dtype=bool)
    (first, _), _, (skip, _) = split_layers(drop, network.sizes, skip=True)
    # the layers read inputs 0 and 1, the skip 1 and 2
    first[[2, 3]] = True
    skip[[0, 3]] = True
    pruned, index = prune(network, drop)
    assert_array_equal(pruned.units[0], [0, 1, 2])
    (first, _), _, (skip, _) = split_layers(pruned.keep, pruned.sizes, skip=True)
    assert_array_equal(first.any(axis=1), [True, True, False])
    assert_array_equal(skip.any(axis=1), [False, True, True])
    # what was dropped may leave a gap in the arrays, but no value
    assert not pruned.theta[~pruned.keep].any()


def test_a_skip_connection_may_be_all_that_is_left():
    network = random_network((3, 2, 2), skip=True)
    drop = ~bias_mask(network)
    kept = split_layers(drop, network.sizes, skip=True)[-1][0]
    kept[[0, 2]] = False
    pruned, _ = prune(network, drop)
    assert_array_equal(pruned.sizes, [2, 0, 2])
    XT = np.random.default_rng(0).standard_normal((3, 7))
    weights = split_layers(network.theta, network.sizes, skip=True)[-1][0][[0, 2]]
    constant = split_layers(pruned.theta, pruned.sizes, skip=True)[1][1]
    assert_allclose(outputs(pruned, XT), weights.T @ XT[[0, 2]] + constant[:, None])
    # pruned once more, it is gone as well
    nothing, _ = prune(pruned, ~bias_mask(pruned))
    assert_array_equal(nothing.sizes, [0, 0, 2])
    assert_array_equal(nothing.theta, constant)


# curvature


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


# weights


def start_fit(network, data, solver, form=Full):
    return WeightFit(network, linearize(network, data, form), initial_memory(solver))


@pytest.mark.parametrize("form", [Full, Dual, Diagonal])
@pytest.mark.parametrize("activation", ["tanh", "relu", "logistic"])
@pytest.mark.parametrize("solver", SOLVERS)
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
        values = [penalized_error(fit.linearization, network, precision, noise)]
        for _ in range(5):
            fit = fit_weights(solver, fit, data, precision, noise, form, 3, 1e-6, rng)
            values.append(
                penalized_error(fit.linearization, fit.network, precision, noise)
            )
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
    fit = fit_weights("lm", fit, data, precision, noise, form, 500, 1e-13, None)

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
    fit = fit_weights(solver, fit, data, precision, noise, form, 200, 1e-12, rng)
    W, b = split_layers(fit.network.theta, fit.network.sizes)[0]
    (P, p), design = split_layers(precision, (4, 2))[0], data.XT.T
    design = np.column_stack([design, np.ones(len(design))])
    for o in range(2):
        # the output's own noise
        own = noise / data.weights[o] ** 2
        matrix = design.T @ design / own + np.diag([*P[:, o], p[o]])
        expected = np.linalg.solve(matrix, design.T @ data.YT[o] / own)
        assert_allclose([*W[:, o], b[o]], expected, rtol=tol, atol=tol)


# evidence


def make_settings(n_layers=2, **options):
    defaults = dict(
        reg_lambda=1.0,
        reweight=True,
        kappa_variance=0.0,
        kappa_weight=0.0,
        noise_variance=0.3,
        curvature="full",
        solver="lm",
        max_iter=3,
        tol=1e-6,
    )
    settings = {**defaults, **options}
    settings["reg_lambda"] = np.broadcast_to(
        np.asarray(settings["reg_lambda"], dtype=float), (n_layers,)
    ).copy()
    return Settings(**settings)


def random_prior(sizes, groups, seed=0, skip=False):
    rng = np.random.default_rng(seed)
    prior = evidence.init_prior(sizes, groups, skip)
    variances = tuple(10.0 ** rng.uniform(-3.0, 0.0, len(v)) for v in prior.variances)
    return prior._replace(variances=variances)


def test_groups():
    prior = evidence.init_prior((2, 3, 1), ("element", "row", "column"))
    element, row, column = prior.labels
    assert_array_equal(element[[0, 1, 5, 6, 9, 11, 12]], [0, 1, 5, -1, 6, 8, -1])
    # weights (2, 3), biases, weights (3, 1), bias
    assert_array_equal(row, [0, 0, 0, 1, 1, 1, -1, -1, -1, 2, 3, 4, -1])
    assert_array_equal(column, [0, 1, 2, 0, 1, 2, -1, -1, -1, 3, 3, 3, -1])
    assert [len(v) for v in prior.variances] == [9, 5, 4]
    # three groups of variance one each
    variance = evidence.parameter_variance(prior)
    biases = bias_mask(random_network((2, 3, 1)))
    assert_allclose(variance[~biases], 1.0 / 3.0)
    assert_allclose(variance[biases], evidence.BIAS_VARIANCE)


def test_groups_of_a_skip_connection():
    kinds = ("element", "row", "column", "layer")
    prior = evidence.init_prior((2, 2, 1), kinds, skip=True)
    # weights (2, 2), biases, weights (2, 1), bias, and the skip's weights (2, 1)
    expected = [
        [0, 1, 2, 3, -1, -1, 4, 5, -1, 6, 7],
        # an input's weights to the outputs are a group of their own
        [0, 0, 1, 1, -1, -1, 2, 3, -1, 4, 5],
        [0, 1, 0, 1, -1, -1, 2, 2, -1, 3, 3],
        [0, 0, 0, 0, -1, -1, 1, 1, -1, 2, 2],
    ]
    assert_array_equal(prior.labels, expected)
    assert [len(v) for v in prior.variances] == [8, 6, 4, 3]


@pytest.mark.parametrize("skip", [False, True])
def test_update_of_the_variance_of_a_layer(skip):
    """One variance for all weights: equation (13) in closed form."""
    rng = np.random.default_rng(0)
    network = random_network((3, 4, 2), skip=skip)
    network = network._replace(theta=0.1 * network.theta)
    drop = random_drop(network, 0.3, rng)
    keep, theta = ~drop, np.where(drop, 0.0, network.theta)
    prior = random_prior(network.sizes, ("layer",), skip=skip)
    gamma = rng.uniform(0.5, 1.0, size=np.count_nonzero(keep))
    updated = evidence.update_variances(prior, theta, keep, gamma)
    spread = np.zeros(len(theta))
    spread[keep] = gamma
    weights = keep & ~bias_mask(network)
    for layer, old in enumerate(prior.variances[0]):
        members = weights & (layer_index(network) == layer)
        ratio = np.sum(theta[members] ** 2) / (old * np.sum(spread[members]))
        assert_allclose(updated.variances[0][layer], old * np.sqrt(ratio), rtol=1e-12)
    assert (updated.variances[0] < evidence.MAX_VARIANCE).all()
    assert len(updated.variances[0]) == 2 + skip


def test_precisions_of_the_groups_add():
    prior = random_prior((3, 2), ("row", "column"))
    variance = split_layers(evidence.parameter_variance(prior), (3, 2))[0][0]
    rows, columns = prior.variances
    assert_allclose(1.0 / variance, 1.0 / rows[:, None] + 1.0 / columns)
    index = np.array([0, 3, 7])
    part = evidence.parameter_variance(evidence.take(prior, index))
    assert_allclose(part, evidence.parameter_variance(prior)[index])


STRENGTHS = [1.0, 4.0, (1.0, 4.0), (0.0, 2.0), 0.0]


def determinant_parts(settings, network):
    """Which strengths go with which parameters (of the kept) in one determinant."""
    if len(set(settings.reg_lambda)) == 1:
        return [(settings.reg_lambda[0], np.arange(int(network.keep.sum())))]
    layers = layer_index(network)[network.keep]
    return [
        (strength, np.flatnonzero(layers == number))
        for number, strength in enumerate(settings.reg_lambda)
    ]


def naive_objective(settings, state, network=None, at=None):
    """``L`` of a state by dense algebra; ``at`` takes the Jacobian elsewhere."""
    network = state.network if network is None else network
    keep, data = network.keep, state.data
    J = weighted_jacobian(network if at is None else at, data)
    H = J.T @ J / state.noise
    if settings.curvature == "diag":
        H = np.diag(np.diag(H))
    out = naive.forward(*reference(network), data.XT.T)
    residual = (out - data.YT.T) * data.weights
    return naive.evidence_objective(
        np.sum(residual**2),
        H,
        network.theta[keep],
        evidence.parameter_variance(state.prior)[keep],
        state.noise,
        data.weights,
        data.YT.shape[1],
        determinant_parts(settings, network),
    )


@pytest.mark.parametrize("curvature", ["full", "diag"])
@pytest.mark.parametrize("n_samples", [5, 50])
@pytest.mark.parametrize(
    "strength, skip",
    [
        *((strength, False) for strength in STRENGTHS),
        (4.0, True),
        ((1.0, 4.0, 2.0), True),
    ],
    ids=str,
)
def test_objective(strength, skip, n_samples, curvature):
    network = random_network((3, 3, 2), skip=skip)
    settings = make_settings(2 + skip, reg_lambda=strength, curvature=curvature)
    prior = random_prior(network.sizes, ("row", "column"), skip=skip)
    data = random_data(network, n_samples)
    rng = np.random.default_rng(0)
    pruned, index = prune(network, random_drop(network, 0.3, rng))
    state = sparse_bayes.init(data, pruned, settings, evidence.take(prior, index))
    assert_allclose(state.objective, naive_objective(settings, state), rtol=1e-10)
    found = sparse_bayes.assess(settings, state)
    assert_allclose(found.objective, state.objective, rtol=1e-13)
    if strength == 1.0:
        value = sparse_bayes.log_marginal_likelihood(settings, state)
        assert_allclose(value, -0.5 * state.objective, rtol=1e-12)


@pytest.mark.parametrize("n_samples", [4, 40])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_linear_evidence_has_a_closed_form(n_samples, n_outputs):
    network = random_network((3, n_outputs))
    data = random_data(network, n_samples)
    settings = make_settings(1, max_iter=300, tol=1e-15)
    prior = random_prior(network.sizes, ("element",))
    state = sparse_bayes.init(data, network, settings, prior)
    precision = 1.0 / evidence.parameter_variance(prior)
    form = choose_form("full", len(network.theta), data.YT.size)
    fit = fit_weights(
        "lm",
        WeightFit(network, state.linearization, 1e-2),
        data,
        precision,
        state.noise,
        form,
        300,
        1e-14,
        None,
    )
    state = state._replace(network=fit.network, linearization=fit.linearization)
    V, _ = split_layers(evidence.parameter_variance(prior), network.sizes)[0]
    expected = 0.0
    for o in range(n_outputs):
        covariance = data.XT.T @ np.diag(V[:, o]) @ data.XT + evidence.BIAS_VARIANCE
        covariance += np.eye(n_samples) * settings.noise_variance / data.weights[o] ** 2
        expected += naive.gaussian_log_density(data.YT[o], covariance)
    found = sparse_bayes.log_marginal_likelihood(settings, state)
    assert_allclose(found, expected, rtol=1e-9)


def state_of(groups, settings, sizes=(3, 3, 2), seed=0, n_samples=40):
    network = random_network(sizes, seed=seed)
    network = network._replace(theta=0.3 * network.theta)
    data = random_data(network, n_samples, seed)
    prior = random_prior(sizes, groups, seed)
    return sparse_bayes.init(data, network, settings, prior)


def with_variance(prior, group_set, group, value):
    variances = [v.copy() for v in prior.variances]
    variances[group_set][group] = value
    return prior._replace(variances=tuple(variances))


def derivative(settings, state, group_set, group, step=1e-4):
    """Of the objective by the logarithm of one group variance."""
    value = state.prior.variances[group_set][group]
    ends = [
        state._replace(
            prior=with_variance(state.prior, group_set, group, value * np.exp(h))
        )
        for h in (-step, step)
    ]
    down, up = (sparse_bayes.assess(settings, end).objective for end in ends)
    return (up - down) / (2.0 * step)


@pytest.mark.parametrize("strength", [1.0, 4.0, (1.0, 4.0)], ids=str)
@pytest.mark.parametrize("groups", GROUPS, ids="+".join)
def test_gradient_by_the_group_variances(groups, strength):
    """alpha of a group as the module's docstring has it."""
    settings = make_settings(reg_lambda=strength)
    state = state_of(groups, settings)
    gamma = sparse_bayes.assess(settings, state).gamma
    variance = evidence.parameter_variance(state.prior)
    strengths = sparse_bayes.strengths(settings, state.network)
    pairs = zip(state.prior.labels, state.prior.variances, strict=True)
    for number, (label, values) in enumerate(pairs):
        for g, value in enumerate(values):
            members = label == g
            alpha = np.sum((gamma * variance)[members]) / value**2
            square = np.sum(state.network.theta[members] ** 2)
            strength_of_group = strengths[members][0]
            # log derivative of lambda (|W|^2 / v + log-determinant)
            expected = strength_of_group * (alpha * value - square / value)
            found = derivative(settings, state, number, g)
            assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("curvature", ["full", "diag"])
@pytest.mark.parametrize("strength", [1.0, 4.0, (1.0, 4.0)], ids=str)
@pytest.mark.parametrize("groups", GROUPS, ids="+".join)
def test_updates_descend_to_a_stationary_point(groups, strength, curvature):
    settings = make_settings(reg_lambda=strength, curvature=curvature)
    state = state_of(groups, settings)
    keep, theta = state.network.keep, state.network.theta
    found = sparse_bayes.assess(settings, state)
    values = [found.objective]
    for _ in range(600):
        prior = evidence.update_variances(state.prior, theta, keep, found.gamma)
        state = state._replace(prior=prior)
        found = sparse_bayes.assess(settings, state)
        values.append(found.objective)
    assert (np.diff(values) <= 1e-10 * np.abs(values[0])).all()
    for number, variances in enumerate(state.prior.variances):
        assert (variances >= evidence.MIN_VARIANCE).all()
        assert (variances <= evidence.MAX_VARIANCE).all()
        for g, value in enumerate(variances):
            slope = derivative(settings, state, number, g)
            if value < evidence.MAX_VARIANCE:
                assert abs(slope) < 1e-4
            else:
                # held back by the bound: more would be better
                assert slope < 1e-6


def test_a_group_with_nothing_to_explain_keeps_its_variance():
    prior = evidence.init_prior((2, 1), ("element",))
    keep = np.array([True, False, True])
    theta = np.array([0.5, 0.0, 1.0])
    updated = evidence.update_variances(prior, theta, keep, np.array([0.5, 1.0]))
    assert_allclose(updated.variances[0], [np.sqrt(0.25 / 0.5), 1.0])
    nothing = evidence.update_variances(prior, theta, keep, np.zeros(2))
    assert_array_equal(nothing.variances[0], [1.0, 1.0])


def test_variances_stay_within_their_bounds():
    prior = evidence.init_prior((2, 1), ("element",))
    keep, theta = np.ones(3, dtype=bool), np.array([0.0, 1e3, 0.0])
    updated = evidence.update_variances(prior, theta, keep, np.ones(3))
    assert_array_equal(
        updated.variances[0], [evidence.MIN_VARIANCE, evidence.MAX_VARIANCE]
    )


def test_fixed_penalty():
    prior = evidence.init_prior((2, 2), ("row",))
    theta = np.array([3.0, 4.0, 0.0, 0.0, 7.0, 8.0])
    keep = np.array([True, True, True, False, True, True])
    fixed = evidence.fixed_penalty_variances(prior, theta, keep)
    assert_allclose(fixed.variances[0], [5.0, evidence.MIN_VARIANCE])
    penalty = evidence.group_penalty(fixed, keep, np.full(6, 2.0))
    assert_allclose(penalty, 10.0)
    # with the quadratic it makes up 2 lambda |W|
    variance = evidence.parameter_variance(fixed)
    quadratic = 2.0 * np.sum((theta**2 / variance)[:4])
    assert_allclose(quadratic + penalty, 2.0 * 2.0 * 5.0)
    # a group all of whose weights are gone costs nothing
    gone = np.array([True, True, False, False, True, True])
    ones = evidence.init_prior((2, 2), ("row",))
    assert evidence.group_penalty(ones, gone, np.full(6, 2.0)) == 2.0


# cycles


def run_cycles(data, network, settings, groups, n_cycles, seed=0):
    rng = np.random.default_rng(seed)
    prior = evidence.init_prior(network.sizes, groups, network.skip)
    state = sparse_bayes.init(data, network, settings, prior)
    infos = []
    for _ in range(n_cycles):
        state, info = sparse_bayes.step(settings, state, rng)
        infos.append(info)
    return state, infos


def linear_record(n_outputs=1, n_samples=60, seed=0):
    """Centred data of a sparse linear model: no bias is needed."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, 6))
    X -= X.mean(axis=0)
    W = np.zeros((6, n_outputs))
    W[[1, 4]] = rng.uniform(0.5, 1.5, size=(2, n_outputs))
    Y = X @ W + 0.5 * rng.standard_normal((n_samples, n_outputs))
    Y -= Y.mean(axis=0)
    return OneStepData(X.T.copy(), Y.T.copy(), np.ones(n_outputs))


@pytest.mark.parametrize("strength", [1.0, 30.0, 70.0])
def test_without_reweighting_single_weights_are_a_lasso(strength):
    data = linear_record()
    noise, n_samples = 0.3, data.YT.shape[1]
    settings = make_settings(
        1,
        reg_lambda=strength,
        reweight=False,
        noise_variance=noise,
        kappa_weight=1e-7,
        max_iter=5,
        tol=1e-14,
    )
    network = init_network((6, 1), "tanh", np.random.default_rng(0))
    state, infos = run_cycles(data, network, settings, ("element",), 300)
    weights, biases = expand(state.network, state.network.theta)
    # |r|^2 / noise + 2 lambda |w| is 2 n / noise times scikit-learn's objective
    lasso = Lasso(alpha=strength * noise / n_samples, tol=1e-12, max_iter=10**5)
    lasso.fit(data.XT.T, data.YT[0])
    assert_allclose(weights[0][:, 0], lasso.coef_, atol=1e-5)
    assert_allclose(biases[0], 0.0, atol=1e-8)
    penalty = 2.0 * strength * np.abs(lasso.coef_).sum()
    residual = data.YT[0] - lasso.predict(data.XT.T)
    constant = n_samples * np.log(2.0 * np.pi * noise)
    expected = residual @ residual / noise + penalty + constant
    assert_allclose(state.objective, expected, rtol=1e-6)
    if strength == 70.0:
        assert (lasso.coef_ == 0.0).any()
        assert_array_equal(weights[0][:, 0] == 0.0, lasso.coef_ == 0.0)


@pytest.mark.parametrize("groups", ["row", "column"])
@pytest.mark.parametrize("strength", [10.0, 60.0])
def test_without_reweighting_groups_are_a_group_lasso(groups, strength):
    data = linear_record(n_outputs=2)
    # some mean is left, for the weakly penalised biases
    data = data._replace(YT=data.YT + 0.5)
    noise, n_samples = 0.3, data.YT.shape[1]
    settings = make_settings(
        1,
        reg_lambda=strength,
        reweight=False,
        noise_variance=noise,
        kappa_weight=1e-7,
        max_iter=5,
        tol=1e-14,
    )
    network = init_network((6, 2), "tanh", np.random.default_rng(0))
    state, _ = run_cycles(data, network, settings, (groups,), 300)
    design = np.vstack([data.XT, np.ones(n_samples)]).T
    # parameters of the reference: all of the first output, then of the second
    A = np.kron(np.eye(2), design) / np.sqrt(noise)
    index = np.arange(14).reshape(2, 7)
    members = list(index[:, :6].T if groups == "row" else index[:, :6])
    ridge = np.zeros(14)
    ridge[index[:, 6]] = strength / evidence.BIAS_VARIANCE
    y = data.YT.ravel() / np.sqrt(noise)
    expected = naive.group_lasso(A, y, members, strength, ridge, n_iter=3000)
    weights, biases = expand(state.network, state.network.theta)
    found = np.vstack([weights[0], biases[0]]).T.ravel()
    assert_allclose(found, expected, atol=1e-5)
    if groups == "row" and strength == 60.0:
        assert (expected.reshape(2, 7)[0] == 0.0).any()


CYCLE_GROUPS = [
    ("element",),
    ("row", "column"),
    ("element", "row", "column"),
    ("layer", "row"),
]


@pytest.mark.parametrize("curvature", ["full", "diag"])
@pytest.mark.parametrize("strength", [1.0, 4.0, (1.0, 4.0)], ids=str)
@pytest.mark.parametrize("reweight", [True, False])
@pytest.mark.parametrize("groups", CYCLE_GROUPS, ids="+".join)
@pytest.mark.parametrize("solver", SOLVERS)
def test_no_cycle_ascends(solver, groups, reweight, strength, curvature):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3, 60))
    Y = np.sin(X[:1]) + 0.1 * rng.standard_normal((1, 60))
    data = OneStepData(X, Y, np.ones(1))
    settings = make_settings(
        reg_lambda=strength,
        reweight=reweight,
        curvature=curvature,
        solver=solver,
        noise_variance="auto",
        kappa_variance=1e-4,
        kappa_weight=1e-2,
        tol=1e-4,
    )
    network = init_network((3, 3, 1), "tanh", rng)
    check_cycles(*run_cycles(data, network, settings, groups, 8))


@pytest.mark.parametrize("groups", CYCLE_GROUPS, ids="+".join)
@pytest.mark.parametrize("strength", [1.0, (1.0, 4.0, 2.0)], ids=str)
@pytest.mark.parametrize("solver", SOLVERS)
def test_no_cycle_ascends_with_a_skip_connection(solver, strength, groups):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3, 60))
    Y = X[:1] + np.sin(X[1:2]) + 0.1 * rng.standard_normal((1, 60))
    data = OneStepData(X, Y, np.ones(1))
    settings = make_settings(
        3,
        reg_lambda=strength,
        solver=solver,
        noise_variance="auto",
        kappa_variance=1e-4,
        kappa_weight=1e-2,
        tol=1e-4,
    )
    network = init_network((3, 3, 1), "tanh", rng, skip=True)
    state, infos = run_cycles(data, network, settings, groups, 8)
    check_cycles(state, infos)
    # what is linear goes through it; a few epochs of Adam do not get that far
    weights = expand(state.network, state.network.theta)[0][-1][:, 0]
    assert solver == "adam" or np.argmax(np.abs(weights)) == 0


def check_cycles(state, infos):
    """The objective falls, and the reports are those of the state."""
    for info in infos:
        scale = max(1.0, abs(info.objective_start))
        assert info.objective <= info.objective_start + 1e-10 * scale
        assert info.noise > 0.0
        assert np.isfinite(info.objective_pruned)
    assert infos[-1].objective < infos[0].objective_start
    weights = state.network.keep & ~bias_mask(state.network)
    assert infos[-1].n_weights == np.count_nonzero(weights)
    assert infos[-1].n_neurons == state.network.sizes[1:-1].sum()
    errors = state.data.squared_errors(state.network)
    assert_allclose(infos[-1].squared_errors, errors)


@pytest.mark.parametrize("n_samples", [15, 60])
@pytest.mark.parametrize("strength", [1.0, (1.0, 4.0)], ids=str)
@pytest.mark.parametrize("curvature", ["full", "diag"])
def test_objective_along_a_fit(curvature, strength, n_samples):
    """The objective a fit reports is that of its state, pruned or not."""
    network = random_network((4, 4, 2))
    data = random_data(network, n_samples)
    settings = make_settings(
        reg_lambda=strength,
        curvature=curvature,
        noise_variance="auto",
        kappa_variance=1e-3,
        kappa_weight=1e-1,
    )
    rng = np.random.default_rng(0)
    prior = evidence.init_prior(network.sizes, ("row", "column"))
    state = sparse_bayes.init(data, network, settings, prior)
    sizes = []
    for _ in range(60):
        state, info = sparse_bayes.step(settings, state, rng)
        expected = naive_objective(settings, state)
        assert_allclose(info.objective_pruned, expected, rtol=1e-8, atol=1e-8)
        assert state.objective == info.objective_pruned
        sizes.append(state.network.sizes.sum())
    assert sizes[-1] < sizes[0]


def test_the_start_of_a_cycle_has_the_old_weights_and_the_new_curvature():
    network = random_network((3, 3, 1))
    data = random_data(network)
    settings = make_settings()
    prior = random_prior(network.sizes, ("row", "column"))
    before = sparse_bayes.init(data, network, settings, prior)
    after, info = sparse_bayes.step(settings, before, np.random.default_rng(0))
    expected = naive_objective(settings, before, at=after.network)
    assert_allclose(info.objective_start, expected, rtol=1e-9)


def weight_limit(settings, groups, prior):
    """How large a weight can be that the thresholds drop.

    A weight below ``kappa_weight`` is dropped whatever its variance. One that goes by
    its variance v < kappa has, in one of its S group sets, a group whose new variance
    is below S kappa. The update that led there was
    ``v_new^2 = v_old^2 |W|^2 / sum gamma_i v_i``, with gamma <= 1 and v_i <= v_old, so
    ``|W|^2 <= v_new^2 n / v_old`` for a group of n weights; and v_old >= kappa, or the
    weight would have gone before.
    """
    kappa = settings.kappa_variance
    largest = max(np.bincount(label[label >= 0]).max() for label in prior.labels)
    return max(settings.kappa_weight, len(groups) * np.sqrt(kappa * largest))


@pytest.mark.parametrize("sizes", [(5, 1), (5, 2), (4, 5, 1), (3, 4, 3, 2)], ids=str)
@pytest.mark.parametrize("groups", GROUPS[:4], ids="+".join)
@pytest.mark.parametrize("strength", [4.0, 16.0])
def test_pruning_raises_the_objective_by_no_more_than_the_thresholds_allow(
    strength, groups, sizes
):
    """Without the dropped weights ``w_P`` all terms but two can only fall.

    Their prior terms are not negative, and the determinant of ``I + V^1/2 H V^1/2`` is
    at least that of any principal submatrix. What may rise is the data term,

    ``|r|^2`` by ``-2 g_P w_P + w_P' H_PP w_P`` to second order (exactly, if linear),

    and, if not linear, the determinant because the Jacobian moves, and the prior of
    biases that take up constant units.
    """
    rng = np.random.default_rng(1)
    n_layers = len(sizes) - 1
    network = init_network(sizes, "tanh", rng)
    X = rng.standard_normal((sizes[0], 60))
    Y = np.sin(X[:1]) + 0.3 * X[1:2] + 0.3 * rng.standard_normal((sizes[-1], 60))
    data = OneStepData(X, Y, np.ones(sizes[-1]))
    settings = make_settings(
        n_layers,
        reg_lambda=strength,
        noise_variance="auto",
        kappa_variance=1e-4,
        kappa_weight=1e-2,
    )
    unpruned_settings = settings._replace(kappa_variance=0.0, kappa_weight=0.0)
    prior = evidence.init_prior(sizes, groups)
    state = sparse_bayes.init(data, network, settings, prior)
    n_pruned = 0
    for _ in range(80):
        # the same cycle twice, without and with its last step
        whole, _ = sparse_bayes.step(unpruned_settings, state, rng)
        limit = weight_limit(settings, groups, state.prior)
        state, info = sparse_bayes.step(settings, state, rng)
        assert_allclose(whole.objective, info.objective, rtol=1e-12)
        if info.n_weights == _count(whole.network):
            assert info.objective_pruned == info.objective
            continue
        n_pruned += 1
        drop = dropped(settings, whole, state)
        w = np.where(drop, whole.network.theta, 0.0)
        assert np.abs(w).max() <= limit * (1.0 + 1e-9)

        J = weighted_jacobian(whole.network, whole.data)
        residual = outputs(whole.network, data.XT) - data.YT
        gradient, w = J.T @ residual.ravel(), w[whole.network.keep]
        data_rise = (2.0 * np.abs(gradient * w).sum() + w @ (J.T @ J) @ w) / whole.noise
        at_limit = np.where(w == 0.0, 0.0, limit)
        allowed = 2.0 * np.abs(gradient) @ at_limit
        allowed += at_limit @ np.abs(J.T @ J) @ at_limit
        assert data_rise <= allowed / whole.noise * (1.0 + 1e-9)

        zeroed = whole.network._replace(theta=np.where(drop, 0.0, whole.network.theta))
        misfit_rise = squared_error(zeroed, whole.data) - squared_error(
            whole.network, whole.data
        )
        misfit_rise /= whole.noise
        if n_layers == 1:
            assert misfit_rise <= data_rise * (1.0 + 1e-9)
            assert state.objective <= whole.objective + data_rise * (1.0 + 1e-9) + 1e-9
            continue
        # third order in small weights, beside the first two
        assert misfit_rise <= 1.5 * data_rise
        moved = naive_objective(settings, whole, zeroed, at=zeroed)
        moved -= naive_objective(settings, whole, zeroed, at=whole.network)
        rise = misfit_rise + max(moved, 0.0) + bias_rise(settings, whole, state)
        assert state.objective - whole.objective <= rise + 1e-8
    assert n_pruned


def dropped(settings, whole, pruned):
    """Weights below the thresholds that are gone, in the arrays before."""
    small = evidence.parameter_variance(whole.prior) < settings.kappa_variance
    small |= np.abs(whole.network.theta) < settings.kappa_weight
    small &= whole.network.keep & ~bias_mask(whole.network)
    position = np.arange(len(small))
    position, left = (
        join_layers(list(zip(*expand(network, values, fill=fill), strict=True)))
        for network, values, fill in [
            (whole.network, position, -1),
            (pruned.network, pruned.network.keep, False),
        ]
    )
    gone = np.zeros(len(small), dtype=bool)
    gone[position[position >= 0]] = ~left[position >= 0]
    return small & gone


def bias_rise(settings, whole, pruned):
    """Rise of the prior of the biases that are left."""
    total = 0.0
    for strength, *layers in zip(
        settings.reg_lambda,
        *(
            expand(s.network, np.where(bias_mask(s.network), s.network.theta, 0))[1]
            for s in (whole, pruned)
        ),
        strict=True,
    ):
        before, after = (b**2 for b in layers)
        total += strength * np.sum(np.maximum(after - before, 0.0))
    return total / evidence.BIAS_VARIANCE


def _count(network):
    return np.count_nonzero(network.keep & ~bias_mask(network))


@pytest.mark.parametrize("strength, spurious", [(1.0, 1), (4.0, 0)])
@pytest.mark.parametrize("seed", range(4))
def test_only_relevant_inputs_are_left(seed, strength, spurious):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.7, 1.7, size=(8, 250))
    Y = np.sin(2.0 * X[[0]]) + 0.5 * X[[3]] + 0.1 * rng.standard_normal((1, 250))
    Y = (Y - Y.mean()) / Y.std()
    data = OneStepData(X, Y, np.ones(1))
    settings = make_settings(
        reg_lambda=strength,
        noise_variance="auto",
        kappa_variance=1e-3,
        kappa_weight=1e-2,
        tol=1e-4,
    )
    network = init_network((8, 6, 1), "tanh", rng)
    prior = evidence.init_prior(network.sizes, ("row", "column"))
    state = sparse_bayes.init(data, network, settings, prior)
    sizes = [count_parameters(network.sizes)]
    for _ in range(150):
        state, _ = sparse_bayes.step(settings, state, rng)
        network = state.network
        sizes.append(count_parameters(network.sizes))
        # later cycles work on smaller arrays
        assert len(network.theta) == len(state.prior.labels[0]) == sizes[-1]
        assert len(state.data.XT) == network.sizes[0]
        assert len(state.linearization.gradient) == network.keep.sum()
        assert len(state.linearization.curvature.JTJ) == network.keep.sum()
        if sparse_bayes.converged(state):
            break
    assert (np.diff(sizes) <= 0).all()
    assert sizes[-1] < sizes[0] * 0.6
    left = state.network.units[0]
    # the evidence may be taken in by chance correlations, the tempered one is not
    assert {0, 3} <= set(left.tolist()) and len(left) <= 2 + spurious
    assert_array_equal(state.data.XT, X[left])
    # close to the noise that was put in
    scaled = state.noise * (np.sin(2.0 * X[0]) + 0.5 * X[3]).var()
    assert 0.7 * 0.01 < scaled < 1.5 * 0.01


def test_noise_is_learned_and_may_be_given():
    data = linear_record(n_samples=400)
    network = init_network((6, 1), "tanh", np.random.default_rng(0))
    given = make_settings(1, noise_variance=0.7)
    state, infos = run_cycles(data, network, given, ("element",), 5)
    assert state.noise == 0.7 and all(info.noise == 0.7 for info in infos)
    learned = make_settings(1, noise_variance="auto")
    state, infos = run_cycles(data, network, learned, ("element",), 40)
    # the standard error of a variance from 400 observations is 7 %
    assert_allclose(state.noise, 0.25, rtol=0.3)
    # stationary: |r|^2 = noise (n - sum gamma)
    gamma = sparse_bayes.assess(learned, state).gamma
    free = data.YT.size - gamma.sum()
    assert_allclose(state.noise, squared_error(state.network, data) / free, rtol=1e-4)


def test_without_a_prior_nothing_is_pruned():
    data = linear_record()
    network = init_network((6, 1), "tanh", np.random.default_rng(0))
    settings = make_settings(
        1,
        reg_lambda=0.0,
        noise_variance="auto",
        kappa_variance=10.0,
        kappa_weight=10.0,
    )
    state, _ = run_cycles(data, network, settings, ("element",), 10)
    assert state.network.keep.all()
    expected = np.linalg.lstsq(data.XT.T, data.YT[0], rcond=None)[0]
    assert_allclose(state.network.theta[:6], expected, rtol=1e-6)
    assert_allclose(state.noise, squared_error(state.network, data) / 60, rtol=1e-4)


def test_everything_may_be_pruned():
    # nothing to explain: no weight is missed
    data = linear_record()
    noise = np.random.default_rng(1).standard_normal((1, 60))
    data = data._replace(YT=0.1 * (noise - noise.mean()))
    network = init_network((6, 3, 1), "tanh", np.random.default_rng(0))
    settings = make_settings(kappa_weight=1e3, noise_variance=1.0)
    state, infos = run_cycles(data, network, settings, ("row", "column"), 4)
    assert_array_equal(state.network.sizes, [0, 0, 1])
    assert infos[-1].n_weights == infos[-1].n_neurons == 0
    assert_allclose(state.network.theta, 0.0, atol=1e-6)
    assert_allclose(state.objective, naive_objective(settings, state), rtol=1e-10)


def test_a_fit_goes_on_where_it_was_left():
    network = random_network((3, 3, 1))
    data = random_data(network)
    settings = make_settings(noise_variance="auto", solver="adam", max_iter=2)
    prior = evidence.init_prior(network.sizes, ("row",))
    state = sparse_bayes.init(data, network, settings, prior)
    kept = state.network.theta.copy()
    first, info = sparse_bayes.step(settings, state, np.random.default_rng(1))
    again, again_info = sparse_bayes.step(settings, state, np.random.default_rng(1))
    # a step is a function of its state
    assert_array_equal(state.network.theta, kept)
    assert_array_equal(first.network.theta, again.network.theta)
    assert info.objective == again_info.objective


def test_a_fit_ends():
    data = linear_record()
    network = init_network((6, 1), "tanh", np.random.default_rng(0))
    settings = make_settings(1, noise_variance="auto", tol=1e-3)
    rng = np.random.default_rng(0)
    prior = evidence.init_prior(network.sizes, ("element",))
    state = sparse_bayes.init(data, network, settings, prior)
    assert not sparse_bayes.converged(state)
    n_cycles = 0
    while not sparse_bayes.converged(state) and n_cycles < 200:
        state, _ = sparse_bayes.step(settings, state, rng)
        n_cycles += 1
    assert 1 < n_cycles < 200


@pytest.mark.parametrize("strength", [0.0, 1e-6])
@pytest.mark.parametrize("form", [Full, Dual])
def test_levenberg_marquardt_moves_without_a_prior(form, strength):
    network = init_network((3, 20, 1), "tanh", np.random.default_rng(0))
    data = random_data(network, 50)
    precision = np.full(len(network.theta), strength)
    fit = start_fit(network, data, "lm", form)
    before = penalized_error(fit.linearization, network, precision, 0.3)
    for _ in range(10):
        fit = fit_weights("lm", fit, data, precision, 0.3, form, 3, 1e-8, None)
    after = penalized_error(fit.linearization, fit.network, precision, 0.3)
    assert after < 0.5 * before


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


def test_a_start_that_cannot_be_scaled_down_is_an_error():
    """Errors that no network makes finite end the search for a start."""
    network = init_network((2, 3, 1), "tanh", np.random.default_rng(0))
    data = OneStepData(np.ones((2, 5)), np.full((1, 5), np.nan), np.ones(1))
    with pytest.raises(ValueError, match="network without weights are not finite"):
        _restarts._within_range(network, data)
