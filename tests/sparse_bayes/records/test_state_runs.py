"""Training data along the runs of a state-space network."""

import naive
import numpy as np
import pytest

from skbayesnn.sparse_bayes.network import init_network, prune
from skbayesnn.sparse_bayes.records.state_runs import lay_out_for_fit


def problem(observation_weights=False, **options):
    """A network of 2 states and 2 outputs, and two sessions with missing outputs."""
    rng = np.random.default_rng(0)
    U, Y = rng.standard_normal((20, 1)), rng.standard_normal((20, 2))
    Y[3, 0] = Y[15] = np.nan
    data = lay_out_for_fit(
        U, Y, np.array([0, 12, 20]), 2, np.array([1.0, 2.0]), **options
    )
    if observation_weights:
        weights = rng.uniform(0.5, 2.0, data.Y.shape)
        data = data.with_observation_weights(weights)
    network = init_network((5, 3, 4), "tanh", rng, skip=True)
    theta = network.theta + 0.3 * rng.standard_normal(len(network.theta))
    return data, network._replace(theta=theta), U, Y


def test_indicators_are_the_states_at_the_starts_of_sessions():
    data, network, U, Y = problem()
    layers = naive.unflatten(network.theta, (5, 3, 4))
    expected = []
    for number, rows in enumerate([slice(0, 12), slice(12, 20)]):
        indicator = np.eye(2)[number]
        before = np.concatenate([np.zeros(3), indicator])[None]
        x = naive.forward(layers, "tanh", before)[0, :2]
        inputs = np.hstack([U[rows], np.zeros((len(U[rows]), 2))])
        expected.append(naive.state_space_run(layers, "tanh", inputs, x, 2))
    residuals = data.residuals(network)
    scaled = (np.concatenate(expected) - Y) * [1.0, 2.0]
    assert np.isnan(residuals[[0, 13]]).all()
    np.testing.assert_allclose(np.delete(residuals, [0, 13], axis=0), scaled)


@pytest.mark.parametrize("options", [{}, {"step": 0.2}, {"step": 0.5, "n_levels": 1}])
@pytest.mark.parametrize("observation_weights", [False, True])
def test_blocks_hold_residuals_and_their_derivatives(observation_weights, options):
    data, network, _, _ = problem(observation_weights, **options)
    ((residual, JT),) = data.blocks(network, False)
    assert residual.shape == (data.n_observations,) == (37,)
    np.testing.assert_array_equal(data.counts, [18, 19])
    squared = data.squared_errors(network) @ data.weights**2
    assert residual @ residual == pytest.approx(squared)

    direction = np.random.default_rng(1).standard_normal(len(network.theta))

    def moved(step):
        theta = network.theta + step * direction
        ((residual, _),) = data.blocks(network._replace(theta=theta), False)
        return residual

    differences = (moved(1e-6) - moved(-1e-6)) / 2e-6
    np.testing.assert_allclose(direction @ JT, differences, atol=1e-7)


def test_a_pruned_network_reads_what_is_left():
    data, network, _, _ = problem()
    drop = np.zeros((5, 3), dtype=bool)
    drop[1] = True
    skip = np.zeros((5, 4), dtype=bool)
    skip[1] = True
    mask = np.concatenate([drop.ravel(), np.zeros(3 + 12 + 4, bool), skip.ravel()])
    pruned, _ = prune(network, mask)
    assert pruned.units[0].tolist() == [0, 2, 3, 4]
    theta = np.where(mask, 0.0, network.theta)
    expected = data.residuals(network._replace(theta=theta))
    found = data.select_inputs(pruned.units[0]).residuals(pruned)
    np.testing.assert_allclose(found, expected)


def test_after_a_divergence_errors_are_infinite():
    data, network, _, _ = problem()
    network = network._replace(theta=1e6 * network.theta)
    assert np.isinf(data.squared_errors(network)).all()
    residuals = data.residuals(network)
    np.testing.assert_array_equal(np.isinf(residuals), np.isfinite(data.Y))
    with pytest.raises(FloatingPointError, match="diverged"):
        next(data.blocks(network, False))
