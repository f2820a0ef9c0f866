"""Prior variances of groups: layout, gradients and updates."""

import numpy as np
import pytest
from grids import each_value_once
from learning_cases import (
    GROUPS,
    make_settings,
    random_drop,
    random_network,
    random_prior,
    state_of,
)
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn.sparse_bayes.learning import cycle
from skbayesnn.sparse_bayes.learning import prior as priors
from skbayesnn.sparse_bayes.network import (
    bias_mask,
    layer_index,
    split_layers,
)


def test_groups():
    prior = priors.init_prior((2, 3, 1), ("element", "row", "column"))
    element, row, column = prior.labels
    assert_array_equal(element[[0, 1, 5, 6, 9, 11, 12]], [0, 1, 5, -1, 6, 8, -1])
    # weights (2, 3), biases, weights (3, 1), bias
    assert_array_equal(row, [0, 0, 0, 1, 1, 1, -1, -1, -1, 2, 3, 4, -1])
    assert_array_equal(column, [0, 1, 2, 0, 1, 2, -1, -1, -1, 3, 3, 3, -1])
    assert [len(v) for v in prior.variances] == [9, 5, 4]
    # three groups of variance one each
    variance = priors.parameter_variance(prior)
    biases = bias_mask(random_network((2, 3, 1)))
    assert_allclose(variance[~biases], 1.0 / 3.0)
    assert_allclose(variance[biases], priors.BIAS_VARIANCE)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_which_groups_separate_inputs(n_outputs):
    for kinds in GROUPS:
        prior = priors.init_prior((3, n_outputs), kinds)
        expected = not {"element", "row"}.isdisjoint(kinds)
        assert priors.separates_inputs(prior, (3, n_outputs)) == expected


def test_groups_of_a_skip_connection():
    kinds = ("element", "row", "column", "layer")
    prior = priors.init_prior((2, 2, 1), kinds, skip=True)
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
    updated = priors.update_variances(prior, theta, keep, gamma)
    spread = np.zeros(len(theta))
    spread[keep] = gamma
    weights = keep & ~bias_mask(network)
    for layer, old in enumerate(prior.variances[0]):
        members = weights & (layer_index(network) == layer)
        ratio = np.sum(theta[members] ** 2) / (old * np.sum(spread[members]))
        assert_allclose(updated.variances[0][layer], old * np.sqrt(ratio), rtol=1e-12)
    assert (updated.variances[0] < priors.MAX_VARIANCE).all()
    assert len(updated.variances[0]) == 2 + skip


def test_precisions_of_the_groups_add():
    prior = random_prior((3, 2), ("row", "column"))
    variance = split_layers(priors.parameter_variance(prior), (3, 2))[0][0]
    rows, columns = prior.variances
    assert_allclose(1.0 / variance, 1.0 / rows[:, None] + 1.0 / columns)
    index = np.array([0, 3, 7])
    part = priors.parameter_variance(priors.take(prior, index))
    assert_allclose(part, priors.parameter_variance(prior)[index])


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
    down, up = (cycle.assess(settings, end).objective for end in ends)
    return (up - down) / (2.0 * step)


@pytest.mark.parametrize("strength", [1.0, 4.0, (1.0, 4.0)], ids=str)
@pytest.mark.parametrize("groups", GROUPS, ids="+".join)
def test_gradient_by_the_group_variances(groups, strength):
    """alpha of a group as the module's docstring has it."""
    settings = make_settings(reg_lambda=strength)
    state = state_of(groups, settings)
    gamma = cycle.assess(settings, state).gamma
    variance = priors.parameter_variance(state.prior)
    strengths = cycle.strengths(settings, state.network)
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


@pytest.mark.parametrize(
    *each_value_once(
        groups=GROUPS, strength=[1.0, 4.0, (1.0, 4.0)], curvature=["full", "diag"]
    )
)
def test_updates_descend_to_a_stationary_point(groups, strength, curvature):
    settings = make_settings(reg_lambda=strength, curvature=curvature)
    state = state_of(groups, settings)
    keep, theta = state.network.keep, state.network.theta
    found = cycle.assess(settings, state)
    values = [found.objective]
    for _ in range(600):
        prior = priors.update_variances(state.prior, theta, keep, found.gamma)
        state = state._replace(prior=prior)
        found = cycle.assess(settings, state)
        values.append(found.objective)
    assert (np.diff(values) <= 1e-10 * np.abs(values[0])).all()
    for number, variances in enumerate(state.prior.variances):
        assert (variances >= priors.MIN_VARIANCE).all()
        assert (variances <= priors.MAX_VARIANCE).all()
        for g, value in enumerate(variances):
            slope = derivative(settings, state, number, g)
            if value < priors.MAX_VARIANCE:
                assert abs(slope) < 1e-4
            else:
                # held back by the bound: more would be better
                assert slope < 1e-6


def test_a_group_with_nothing_to_explain_keeps_its_variance():
    prior = priors.init_prior((2, 1), ("element",))
    keep = np.array([True, False, True])
    theta = np.array([0.5, 0.0, 1.0])
    updated = priors.update_variances(prior, theta, keep, np.array([0.5, 1.0]))
    assert_allclose(updated.variances[0], [np.sqrt(0.25 / 0.5), 1.0])
    nothing = priors.update_variances(prior, theta, keep, np.zeros(2))
    assert_array_equal(nothing.variances[0], [1.0, 1.0])


def test_variances_stay_within_their_bounds():
    prior = priors.init_prior((2, 1), ("element",))
    keep, theta = np.ones(3, dtype=bool), np.array([0.0, 1e3, 0.0])
    updated = priors.update_variances(prior, theta, keep, np.ones(3))
    assert_array_equal(updated.variances[0], [priors.MIN_VARIANCE, priors.MAX_VARIANCE])


def test_fixed_penalty():
    prior = priors.init_prior((2, 2), ("row",))
    theta = np.array([3.0, 4.0, 0.0, 0.0, 7.0, 8.0])
    keep = np.array([True, True, True, False, True, True])
    fixed = priors.fixed_penalty_variances(prior, theta, keep)
    assert_allclose(fixed.variances[0], [5.0, priors.MIN_VARIANCE])
    penalty = priors.group_penalty(fixed, keep, np.full(6, 2.0))
    assert_allclose(penalty, 10.0)
    # with the quadratic it makes up 2 lambda |W|
    variance = priors.parameter_variance(fixed)
    quadratic = 2.0 * np.sum((theta**2 / variance)[:4])
    assert_allclose(quadratic + penalty, 2.0 * 2.0 * 5.0)
    # a group all of whose weights are gone costs nothing
    gone = np.array([True, True, False, False, True, True])
    ones = priors.init_prior((2, 2), ("row",))
    assert priors.group_penalty(ones, gone, np.full(6, 2.0)) == 2.0
