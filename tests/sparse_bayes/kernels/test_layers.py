"""The compiled passes against their slow references.

Also run with bounds checks and without the compiler: sizes stay small.
"""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from random_networks import CODES, Case

from skbayesnn.sparse_bayes.kernels import layers as mlp
from skbayesnn.sparse_bayes.kernels.layers import Layers

HIDDEN = [(), (4,), (4, 3), (3, 4, 2)]
N_SAMPLES = [1, 63, 64, 65, 130]


def check_all_passes(case):
    """Every pass over samples agrees with its reference."""
    tol = dict(rtol=1e-11, atol=1e-11)
    X, Y, XT, YT, weights = case.X, case.Y, case.XT, case.YT, case.weights
    expected = naive.forward(*case.reference, X)
    out = mlp.forward(*case.network, XT)
    assert out.shape == expected.T.shape
    assert_allclose(out, expected.T, **tol)

    loss, gradient = mlp.loss_gradient(*case.network, weights, XT, YT)
    loss_expected, gradient_expected = naive.loss_gradient(
        *case.reference, weights[:, 0], X, Y
    )
    assert_allclose(loss, loss_expected, **tol)
    assert_allclose(gradient, gradient_expected, rtol=1e-10, atol=1e-9)

    diag = mlp.ggn_diag(*case.network, weights, XT)
    diag_expected = naive.ggn_diag(*case.reference, weights[:, 0], X)
    assert_allclose(diag, diag_expected, rtol=1e-10, atol=1e-10)

    out, JT = mlp.jacobian(*case.network, case.kept, weights, XT)
    J = naive.jacobian(*case.reference, X) * weights
    assert_allclose(out, expected.T, **tol)
    assert JT.shape == (len(case.kept), case.sizes[-1], len(X))
    assert_allclose(JT, J.transpose(2, 1, 0)[case.keep], **tol)
    assert_allclose(
        np.einsum("pos,pos->p", JT, JT), diag[case.keep], rtol=1e-11, atol=1e-12
    )


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("activation", CODES)
def test_passes_by_layers(activation, hidden, n_outputs):
    check_all_passes(Case((3, *hidden, n_outputs), activation))


@pytest.mark.parametrize("n_samples", [1, 2, 65, 130])
def test_each_observation_may_have_a_weight(n_samples):
    case = Case((3, 4, 2), n_samples=n_samples, pruned=0.3, skip=True)
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.0, 2.0, size=case.YT.shape)
    weights[0, 0] = 0.0
    J = naive.jacobian(*case.reference, case.X) * weights.T[:, :, None]
    residual = (naive.forward(*case.reference, case.X) - case.Y) * weights.T
    tol = dict(rtol=1e-11, atol=1e-12)
    loss, gradient = mlp.loss_gradient(*case.network, weights, case.XT, case.YT)
    assert_allclose(loss, 0.5 * np.sum(residual**2), **tol)
    assert_allclose(gradient, np.einsum("sop,so->p", J, residual), **tol)
    diag = mlp.ggn_diag(*case.network, weights, case.XT)
    assert_allclose(diag, np.sum(J**2, axis=(0, 1)), **tol)
    _, JT = mlp.jacobian(*case.network, case.kept, weights, case.XT)
    assert_allclose(JT, J.transpose(2, 1, 0)[case.keep], **tol)
    # the same for all samples
    same = np.repeat(case.weights, n_samples, axis=1)
    for function in (mlp.loss_gradient, mlp.ggn_diag):
        targets = (case.YT,) if function is mlp.loss_gradient else ()
        one = function(*case.network, case.weights, case.XT, *targets)
        many = function(*case.network, same, case.XT, *targets)
        assert_allclose(np.hstack(one), np.hstack(many), rtol=1e-14)


@pytest.mark.parametrize("n_samples", N_SAMPLES)
@pytest.mark.parametrize("activation", CODES)
def test_passes_by_sample_count(activation, n_samples):
    check_all_passes(Case((2, 3, 2), activation, n_samples))


@pytest.mark.parametrize("pruned", [0.3, 0.7, 1.0])
@pytest.mark.parametrize("activation", CODES)
def test_passes_with_pruned_parameters(activation, pruned):
    check_all_passes(Case((4, 3, 3, 2), activation, pruned=pruned, seed=1))


@pytest.mark.parametrize("sizes", [(0, 1), (0, 0, 1), (0, 0, 0, 2), (2, 0, 3)])
@pytest.mark.parametrize("activation", CODES)
def test_passes_with_layers_of_no_units(activation, sizes):
    case = Case(sizes, activation)
    check_all_passes(case)
    out = mlp.forward(*case.network, case.XT)
    assert_array_equal(out, np.repeat(case.layers[-1][1][:, None], 65, axis=1))


@pytest.mark.parametrize("pruned", [0.0, 0.6])
@pytest.mark.parametrize("hidden", [(), (4,), (0,), (3, 2)])
@pytest.mark.parametrize("activation", CODES)
def test_passes_with_a_skip_connection(activation, hidden, pruned):
    case = Case((3, *hidden, 2), activation, pruned=pruned, seed=1, skip=True)
    assert case.theta[-6:].any()
    check_all_passes(case)


def test_the_skip_connection_starts_behind_the_layers():
    for sizes in [(3, 2), (3, 4, 2), (3, 0, 2), (0, 1)]:
        expected = len(Case(sizes).theta)
        assert mlp.n_layer_parameters(np.array(sizes)) == expected


def test_a_skip_connection_is_a_linear_network_beside_the_layers():
    case = Case((3, 4, 2), skip=True)
    layers = mlp.forward(Layers(case.theta[:-6], case.sizes, case.code, False), case.XT)
    beside = case.theta[-6:].reshape(3, 2).T @ case.XT
    found = mlp.forward(*case.network, case.XT)
    assert_allclose(found, layers + beside, rtol=1e-12, atol=1e-13)


def test_no_samples():
    case = Case((2, 3, 1), n_samples=0)
    assert mlp.forward(*case.network, case.XT).shape == (1, 0)
    loss, gradient = mlp.loss_gradient(*case.network, case.weights, case.XT, case.YT)
    assert loss == 0.0 and not gradient.any()


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("activation", CODES)
def test_references_agree_with_each_other(activation, skip):
    case = Case((3, 4, 2, 2), activation, n_samples=7, skip=skip)
    by_step = naive.jacobian(*case.reference, case.X)
    by_hand = naive.jacobian_backpropagation(*case.reference, case.X)
    assert_allclose(by_step, by_hand, rtol=1e-12, atol=1e-13)


# the package hands over arrays of one kind; these are compiled for others
@pytest.mark.slow
def test_inputs_stay_untouched_and_may_be_read_only():
    case = Case((3, 4, 2), pruned=0.3)
    arrays = [case.theta, case.sizes, case.weights, case.kept, case.XT, case.YT]
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    check_all_passes(case)
    for array, copy in zip(arrays, before, strict=True):
        assert_array_equal(array, copy)


# the package hands over arrays of one kind; these are compiled for others
@pytest.mark.slow
def test_orders_of_memory_agree():
    case = Case((3, 4, 2))
    expected = mlp.forward(*case.network, case.XT)
    fortran = mlp.forward(*case.network, np.asfortranarray(case.XT))
    strided = mlp.forward(*case.network, np.repeat(case.XT, 2, axis=1)[:, ::2])
    assert_array_equal(fortran, expected)
    assert_array_equal(strided, expected)
    assert expected.dtype == np.float64


@pytest.mark.parametrize("before", ["targets", "derivatives"])
def test_sums_do_not_depend_on_the_place_in_memory(before):
    """Compiled loops that store as well may sum in another order beside their data."""
    for seed in range(10):
        case = Case((3, 1), n_samples=297, seed=seed)
        (layers,) = case.network
        memory = mlp.block_memory(layers.sizes)
        n_targets, n_derivatives = case.YT.size, memory.delta.size
        buffer = np.zeros(n_targets + n_derivatives)
        if before == "targets":
            YT, delta = buffer[:n_targets], buffer[n_targets:]
        else:
            delta, YT = buffer[:n_derivatives], buffer[n_derivatives:]
        YT, delta = YT.reshape(case.YT.shape), delta.reshape(memory.delta.shape)
        YT[:] = case.YT
        apart = mlp.loss_gradient(*case.network, case.weights, case.XT, case.YT)
        gradient = np.zeros_like(apart[1])
        memory = memory._replace(delta=delta)
        places = mlp.parameter_places(layers)
        arguments = layers, places, case.weights, case.XT, YT, memory, gradient
        assert mlp._loss_gradient(*arguments) == apart[0]
        assert_array_equal(gradient, apart[1])


# NaN and infinity under the floating-point policy


@pytest.mark.parametrize("activation", CODES)
def test_a_missing_value_spoils_its_own_sample_only(activation):
    case = Case((2, 3, 2), activation, n_samples=70)
    case.XT[1, 5] = np.nan
    with np.errstate(all="ignore"):
        out = mlp.forward(*case.network, case.XT)
        _, JT = mlp.jacobian(*case.network, case.kept, case.weights, case.XT)
        loss, gradient = mlp.loss_gradient(
            *case.network, case.weights, case.XT, case.YT
        )
    assert_array_equal(np.flatnonzero(np.isnan(out).any(axis=0)), [5])
    assert np.isnan(out[:, 5]).all()
    assert np.isnan(JT[:, :, 5]).any()
    assert np.isfinite(np.delete(JT, 5, axis=2)).all()
    assert np.isnan(loss) and np.isnan(gradient).any()


def test_infinity_saturates_and_differences_of_infinities_are_nan():
    theta = np.array([1.0, 1.0, 0.0])
    XT = np.array([[np.inf, np.inf, -np.inf, 1.0], [1.0, -np.inf, 2.0, 1.0]])
    with np.errstate(all="ignore"):
        layers = Layers(theta, np.array([2, 1]), CODES["tanh"], False)
        linear = mlp.forward(layers, XT)
    assert_array_equal(linear, [[np.inf, np.nan, -np.inf, 2.0]])
    case = Case((2, 3, 1))
    XT = np.array([[np.inf], [0.0]])
    with np.errstate(all="ignore"):
        out = mlp.forward(*case.network, XT)
    (W, _), (W2, b2) = case.layers
    assert_allclose(out[:, 0], np.sign(W[0]) @ W2 + b2, rtol=1e-14)


def test_a_pruned_weight_does_not_read_its_input():
    case = Case((2, 3, 1))
    case.theta[:3] = 0.0
    case.XT[0] = np.nan
    assert np.isfinite(mlp.forward(*case.network, case.XT)).all()
