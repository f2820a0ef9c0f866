"""What a new unit does to a model: against enumeration, and where draws miss states."""

import naive
import numpy as np
import pytest
from grids import first_by_default
from numpy.testing import assert_allclose, assert_array_equal
from rbm_models import exact_draws, make_unit, objective_of, random_model, random_states

from skbayesnn.rbm import model as rbm_model
from skbayesnn.rbm.learning import conditionals
from skbayesnn.rbm.learning import unit_search as fw

PLACE = (np.uint64(3), 0, 0)


def enumerated(model):
    """`Conditionals` at all hidden states, each as often as its probability asks."""
    weights, hidden, visible, _ = model
    H = naive.all_states(len(weights))
    y = H @ weights + visible
    log_p = H @ hidden + naive.softplus(y).sum(axis=1)
    p = np.exp(log_p - naive.log_sum(log_p))
    times = np.round(100_000 * p).astype(int)
    inputs = np.repeat(y.astype(np.float32), times, axis=0)
    return conditionals.Conditionals(inputs, naive.softplus(inputs).sum(1)[:, None])


def with_unit(model, w, bias, shift):
    """The model with the unit, whose visible biases follow it."""
    weights, hidden, visible, c = model
    new = np.vstack([weights, w]), np.append(hidden, bias), visible - shift * w
    return *new, np.append(c, 1.0)


def samples_of(model, data, draws):
    states = exact_draws(model, 50)
    return fw.Samples(fw.pack(data), fw.pack(states), conditionals=draws)


@pytest.mark.parametrize("n_units", [0, 2, 3])
@pytest.mark.parametrize("shift", [0.0, 0.3, 1.0])
def test_the_gain_is_the_change_of_the_likelihood(shift, n_units):
    rbm, model = random_model(n_units, 5, 1)
    data = random_states(40, 5, 2)
    draws = conditionals.draw(rbm, data, PLACE) if not n_units else enumerated(model)
    assert n_units or len(draws.inputs) == 1
    samples, objective = samples_of(model, data, draws), objective_of("likelihood")
    w, bias = np.array([1.5, -2.0, 0.5, 1.0, -1.0]), 0.4

    def exact(fraction):
        new = with_unit(model, fraction * w, fraction * bias, shift)
        change = naive.rbm_mean_log_likelihood(new, data.astype(float))
        return change - naive.rbm_mean_log_likelihood(model, data.astype(float))

    found = fw.gains(objective, samples, [make_unit(w, bias, shift)], (1.0, 0.5, 0.0))
    # of numbers of states that are rounded to integers
    atol = 1e-3 if n_units else 1e-5
    for one, fraction in zip(found, (1.0, 0.5, 0.0), strict=True):
        assert_allclose(one.value, exact(fraction), atol=atol)
    # what an exact mean needs is one draw, and counts as all of them
    if not n_units:
        assert_allclose([one.effective_sample_size for one in found], 50)


@pytest.mark.parametrize("shift", first_by_default([0.3, 0.0, 1.0]))
def test_slopes(shift):
    _, model = random_model(3, 5, 1)
    data = random_states(40, 5, 2)
    samples, objective = (
        samples_of(model, data, enumerated(model)),
        objective_of("likelihood"),
    )

    y = samples.conditionals.inputs.astype(float)

    def reference(z):
        """The penalised gain, term by term in double precision."""
        w, bias, shift = z[:-2], z[-2], z[-1]
        x = data @ w + bias
        logs = [
            t * bias + (naive.softplus(y + t * w) - naive.softplus(y)).sum(axis=1)
            for t in (-shift, 1.0 - shift)
        ]
        change = naive.log_sum(np.concatenate(logs)) - np.log(len(y))
        gain = (naive.softplus(x) - shift * x).mean() - change
        return gain - 0.5 * objective.unit_penalty * (z[:-1] @ z[:-1])

    z = np.append(np.float32([1.5, -2.0, 0.5, 1.0, -1.0, 0.4]).astype(float), shift)
    found, slope, of_shift = fw.value_and_gradient(objective, samples, z[:-1], z[-1])
    assert_allclose(found, reference(z), rtol=1e-5, atol=1e-6)
    expected = naive.finite_differences(reference, z)
    assert_allclose(np.append(slope, of_shift), expected, rtol=1e-4, atol=1e-5)


def test_draws_tell_less_and_less_by_chance():
    rbm, model = random_model(3, 6, 1)
    w = np.array([1.5, -2.0, 0.5, 1.0, -1.0, 1.0], dtype=np.float32)
    expected = conditionals.log_mean(enumerated(model), w, 0.4, 0.3)
    found = []
    for seed in range(20):
        draws = conditionals.draw(rbm, exact_draws(model, 500, seed), PLACE)
        found.append(conditionals.log_mean(draws, w, 0.4, 0.3))
    values, fractions = np.transpose(found)
    assert abs(values.mean() - expected[0]) < 4 * values.std() / np.sqrt(20)
    assert values.std() < 0.1
    assert_allclose(fractions.mean(), expected[1], rtol=0.05)


def test_draws_of_many_features_are_fewer(monkeypatch):
    """And count as all of them, as far as they tell the same."""
    rbm, model = random_model(3, 6, 1)
    monkeypatch.setattr(conditionals, "_MOST_INPUTS", 6 * 200 + 5)
    states = exact_draws(model, 500)
    some = conditionals.draw(rbm, states, PLACE)
    assert some.inputs.shape == (200, 6)
    monkeypatch.undo()
    every = conditionals.draw(rbm, states, PLACE)
    assert_array_equal(some.inputs, every.inputs[:200])
    data, unit = (
        random_states(40, 6, 2),
        make_unit([1.5, -2.0, 0.5, 1.0, -1.0, 0.4], 0.3),
    )
    found, expected = (
        fw.gain(
            objective_of("likelihood"),
            fw.Samples(fw.pack(data), fw.pack(states), conditionals=draws),
            unit,
        )
        for draws in (some, every)
    )
    assert_allclose(found, expected, rtol=0.1)


def test_a_unit_that_makes_up_states_gains_nothing():
    """Its input is far below zero at all draws, and far above at states beyond them."""
    rbm = rbm_model.make_rbm(np.zeros((0, 40)), np.zeros(0), np.zeros(40))
    data = np.repeat([[1, 0]], 20, axis=1) ^ (
        np.random.default_rng(0).random((400, 40)) < 0.05
    )
    data[:200] = 1 - data[:200]
    data = data.astype(np.float32)
    draws = (np.random.default_rng(1).random((400, 40)) < 0.5).astype(np.float32)
    unit = make_unit(np.repeat([20.0, -20.0], 20), -200.0)
    objective = objective_of("likelihood")
    plain = fw.Samples(fw.pack(data), fw.pack(draws))
    assert fw.gain(objective, plain, unit).value > 50.0
    summed_out = plain._replace(conditionals=conditionals.draw(rbm, draws, PLACE))
    assert fw.gain(objective, summed_out, unit).value < -50.0
