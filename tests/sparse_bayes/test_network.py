"""Networks as arrays: layout, pruning and compaction."""

import itertools

import naive
import numpy as np
import pytest
from learning_cases import outputs, random_drop, random_network
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn.sparse_bayes.network import (
    bias_mask,
    count_parameters,
    expand,
    init_network,
    join_layers,
    layer_index,
    prune,
    split_layers,
)


def test_layout():
    sizes = (2, 3, 1)
    vector = np.arange(count_parameters(sizes))
    layers = split_layers(vector, sizes)
    assert [(W.shape, b.shape) for W, b in layers] == [((2, 3), (3,)), ((3, 1), (1,))]
    assert_array_equal(join_layers(layers), vector)
    network = random_network(sizes)
    assert_array_equal(vector[bias_mask(network)], [6, 7, 8, 12])
    assert_array_equal(layer_index(network), [0] * 9 + [1] * 4)


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
@pytest.mark.parametrize(
    "share",
    [
        pytest.param(0.0, marks=pytest.mark.slow),
        0.3,
        pytest.param(0.6, marks=pytest.mark.slow),
        0.8,
        pytest.param(0.95, marks=pytest.mark.slow),
        1.0,
    ],
)
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


def test_a_weight_that_is_fixed_stays():
    """It is no parameter, and here the only one that reads its input."""
    network = random_network((3, 2, 2), seed=0, skip=True)
    fixed, drop = np.zeros((2, len(network.theta)), dtype=bool)
    split_layers(fixed, network.sizes, True)[-1][0][0] = [True, False]
    split_layers(drop, network.sizes, True)[-1][0][0] = [False, True]
    split_layers(drop, network.sizes, True)[0][0][0] = True
    network = network._replace(keep=~fixed)
    pruned, index = prune(network, drop)
    assert_array_equal(pruned.units[0], [0, 1, 2])
    assert_array_equal(pruned.theta, np.where(drop, 0.0, network.theta)[index])
    assert pruned.theta[fixed[index]] == network.theta[fixed] != 0.0
    assert_array_equal(pruned.keep, ~(fixed | drop)[index])


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
