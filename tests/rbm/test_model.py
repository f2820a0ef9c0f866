"""Energies, means and Markov chains against enumeration of all states."""

import naive
import numpy as np
import pytest
from grids import each_value_once, first_by_default
from numpy.testing import assert_allclose, assert_array_equal
from rbm_models import (
    CLAMPED,
    SIZES,
    check_distribution,
    check_mean,
    clamp_of,
    random_model,
    random_states,
)

from skbayesnn.rbm import model as rbm_model
from skbayesnn.rbm.likelihood import annealing
from skbayesnn.rbm.visible import BINARY


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("n_units, n_features", SIZES[1:-1])
def test_free_energy(n_units, n_features, fractional, dtype):
    rbm, model = random_model(n_units, n_features, fractional=fractional)
    states = random_states(40, n_features)
    expected = naive.rbm_log_probability(model, states.astype(float))
    tol = dict(rtol=1e-5, atol=1e-5) if dtype == np.float32 else dict(rtol=1e-12)
    typed = rbm_model.RBM(*(array.astype(dtype) for array in rbm[:4]))
    energy = rbm_model.free_energy(typed, states.astype(dtype))
    assert energy.dtype == np.float64
    assert_allclose(-energy, expected, **tol)
    if dtype == np.float32:
        compiled = rbm_model.unnormalised_log_probability(rbm, states)
        assert compiled.dtype == np.float64
        assert_allclose(compiled, expected, **tol)


def test_free_energy_without_units():
    rbm, _ = random_model(0, 5)
    states = random_states(6, 5)
    expected = states @ rbm.visible
    assert_allclose(-rbm_model.free_energy(rbm, states), expected, rtol=1e-6)
    assert_allclose(
        rbm_model.unnormalised_log_probability(rbm, states), expected, rtol=1e-6
    )


@pytest.mark.parametrize("fractional", [False, True])
def test_log_probability_of_states_and_of_probabilities(fractional):
    rbm, model = random_model(5, 6, fractional=fractional)
    states = random_states(23, 6, dtype=np.uint8)
    for V in [states, states.astype(np.float32), 0.1 + np.float32(0.7) * states]:
        result = rbm_model.unnormalised_log_probability(rbm, V)
        assert result.dtype == np.float64
        expected = naive.rbm_log_probability(model, V.astype(float))
        assert_allclose(result, expected, rtol=1e-5)


@pytest.mark.parametrize("fractional", [False, True])
def test_means_of_units(fractional):
    rbm, model = random_model(4, 5, fractional=fractional)
    V, H = naive.all_states(5), naive.all_states(4)
    W, hidden, visible, c = model
    means = rbm_model.hidden_means(rbm, V.astype(np.float32))
    assert_allclose(means, c * naive.logistic(V @ W.T + hidden), rtol=1e-5)
    means = rbm_model.visible_means(rbm, H.astype(np.float32))
    assert_allclose(means, naive.logistic(H @ W + visible), rtol=1e-5)
    if not fractional:
        joint = np.exp(
            [[naive.joint_log_probability(model, v, h) for h in H] for v in V]
        )
        by_joint = joint @ H / joint.sum(axis=1, keepdims=True)
        assert_allclose(
            rbm_model.hidden_means(rbm, V.astype(np.float32)), by_joint, rtol=1e-5
        )
        by_joint = joint.T @ V / joint.sum(axis=0)[:, None]
        assert_allclose(means, by_joint, rtol=1e-5)


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("n_units, n_features", [(1, 1), (4, 6), (12, 9)])
def test_pseudo_likelihood(n_units, n_features, fractional):
    rbm, model = random_model(n_units, n_features, fractional=fractional)
    V, p = naive.rbm_distribution(model)
    p = p.reshape((2,) * n_features, order="F")
    expected = np.zeros(p.shape)
    for j in range(n_features):
        expected += np.log(p / p.sum(axis=j, keepdims=True))
    result = rbm_model.pseudo_likelihood(rbm, V.astype(np.float32))
    assert_allclose(result, expected.ravel(order="F"), rtol=1e-4, atol=1e-5)


def test_log_odds():
    assert_allclose(BINARY.natural_parameters([0.5], 10), [0.0], atol=1e-15)
    rates = naive.logistic(BINARY.natural_parameters([0.0, 0.25, 1.0], 8))
    assert_allclose(rates, [0.5 / 9, 2.5 / 9, 8.5 / 9], rtol=1e-12)


def test_models_own_their_arrays():
    weights = np.ones((2, 3), dtype=np.float32)
    rbm = rbm_model.make_rbm(weights, np.zeros(2), np.zeros(3))
    larger = rbm_model.append(rbm, np.full(3, 2.0), 5.0)
    larger = larger._replace(unit_weights=np.float32([1.0, 1.0, 0.5]))
    part = rbm_model.select(larger, [2])
    again = rbm_model.copy(larger)
    for one in (rbm, larger, part, again):
        for array in one[:4]:
            assert array.dtype == np.float32 and array.flags.c_contiguous
            array += 1.0
    assert_array_equal(weights, 1.0)
    assert_array_equal(part.weights, [[3.0] * 3])
    assert_array_equal(part.unit_weights, [1.5])
    assert not rbm_model.is_standard(part)
    assert rbm_model.is_standard(rbm_model.independent_units(np.zeros(3)))


@pytest.mark.parametrize(
    *each_value_once(fractional=[False, True], clamped=[False, True])
)
@pytest.mark.parametrize("seed", first_by_default(range(4)))
def test_chains_converge_to_the_model(fractional, clamped, seed):
    """16 chi-square tests of 1e-5 each."""
    rbm, model = random_model(3, 4, seed, fractional=fractional)
    p = naive.rbm_distribution(model)[1]
    T = naive.gibbs_transition(model)
    chains = rbm_model.start_chains(rbm, 10000, seed)
    start = np.prod(
        np.where(
            naive.all_states(4) == 1.0, *(naive.logistic(s * model[2]) for s in (1, -1))
        ),
        axis=1,
    )
    assert chains.states.dtype == np.uint8
    check_distribution(chains.states, start)
    if clamped:
        p = naive.rbm_conditional(model, *CLAMPED)[1]
        T = naive.gibbs_transition(model, *CLAMPED)
        chains.states[:, CLAMPED[0]] = CLAMPED[1][CLAMPED[0]]
    before = chains.states.copy()
    n_steps = 80
    # what is left of the start is far below what the test can see
    distance = np.abs(np.linalg.matrix_power(T, n_steps)[p > 0.0] - p).max()
    assert distance < 1e-4
    chains2, acceptance = rbm_model.gibbs(rbm, chains, n_steps, clamp_of(clamped))
    assert_array_equal(chains.states, before)
    assert chains2.states.dtype == np.uint8
    assert chains2.step == chains.step + n_steps
    check_distribution(chains2.states, p)
    assert (acceptance == 1.0) if not fractional else (0.3 < acceptance < 1.0)


@pytest.mark.parametrize("n_steps", [1, 2, 3])
@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
def test_chains_take_exact_steps(fractional, clamped, n_steps):
    """From one state, the distribution of the next ones; 24 tests of 1e-5 each."""
    rbm, model = random_model(2, 4, 7, scale=1.5, fractional=fractional)
    T = naive.gibbs_transition(model, *(CLAMPED if clamped else ()))
    T = np.linalg.matrix_power(T, n_steps)
    for start in [2, 3] if clamped else [0, 13]:
        states = np.repeat(naive.all_states(4)[[start]], 20000, axis=0)
        chains = rbm_model.Chains(states.astype(np.uint8), np.uint64(start), 5, 3)
        chains, _ = rbm_model.gibbs(rbm, chains, n_steps, clamp_of(clamped))
        check_distribution(chains.states, T[start])


@pytest.mark.parametrize("fractional", [False, True])
def test_chains_may_be_split_and_continued(fractional):
    rbm, _ = random_model(5, 6, fractional=fractional)
    chains = rbm_model.start_chains(rbm, 12, 3)
    whole, _ = rbm_model.gibbs(rbm, chains, 6)
    part, _ = rbm_model.gibbs(rbm, chains, 2)
    part, _ = rbm_model.gibbs(rbm, part, 4)
    assert_array_equal(part.states, whole.states)
    second = rbm_model.start_chains(rbm, 5, 3, first_row=7)
    assert_array_equal(second.states, chains.states[7:])
    second, _ = rbm_model.gibbs(rbm, second, 6)
    assert_array_equal(second.states, whole.states[7:])
    other, _ = rbm_model.gibbs(rbm, chains._replace(seed=np.uint64(4)), 6)
    assert not np.array_equal(other.states, whole.states)


@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
def test_sum_visible(fractional, clamped):
    """Of chains at the model; 4 tests of 1e-5 each."""
    rbm, model = random_model(2, 4, 5, scale=3.0, fractional=fractional)
    V, p = naive.rbm_distribution(model)
    if clamped:
        V, p = naive.rbm_conditional(model, *CLAMPED)
    index = np.random.default_rng(0).choice(len(V), size=40000, p=p)
    chains = rbm_model.Chains(V[index].astype(np.uint8), np.uint64(3), 1, 0)
    total, moved = rbm_model.sum_visible(rbm, chains, 2, clamp_of(clamped))
    free = ~CLAMPED[0] if clamped else slice(None)
    check_mean(total[:, free].astype(float) / 2, (p @ V)[free])
    expected, _ = rbm_model.gibbs(rbm, chains, 2, clamp_of(clamped))
    assert_array_equal(moved.states, expected.states)
    assert moved.step == expected.step


@pytest.mark.parametrize("fractional", [False, True])
def test_what_is_held_may_be_a_probability(fractional):
    rbm, _ = random_model(3, 6, fractional=fractional)
    mask, values = random_states(40, 6) > 0.5, random_states(40, 6, 1, np.uint8)

    def run(values):
        clamp = rbm_model.Clamp(mask, values)
        betas = annealing.make_betas(10)
        chains, _ = annealing.annealed_chains(rbm, np.zeros(6), betas, 40, 0, clamp)
        return rbm_model.gibbs(rbm, chains, 3, clamp)[0].states

    states = run(values)
    assert states.dtype == np.uint8
    # 0 and 1 of another type are the same
    assert_array_equal(run(values.astype(np.float32)), states)
    between = 0.2 + np.float32(0.6) * values
    states = run(between)
    assert states.dtype == np.float32
    assert_array_equal(states[mask], between[mask])
    assert np.isin(states[~mask], (0.0, 1.0)).all()
