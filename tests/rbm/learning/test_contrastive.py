"""Contrastive divergence against gradients of the enumerated likelihood."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rbm_models import (
    PLAIN,
    check_distribution,
    check_mean,
    multiset,
    numbers,
    random_model,
    random_states,
    start_state,
    twin,
    uniform_weights,
)

from skbayesnn.rbm import model as rbm_model
from skbayesnn.rbm.learning import contrastive


def use_chains(monkeypatch, chains):
    """Let the chains of a step be at these visible states."""

    def sample(settings, state, batch, seed):
        states = np.concatenate([batch, chains]).astype(np.float32)
        return chains, rbm_model.hidden_means(state.rbm, states), state.chains

    for name in ["_sample_from_batch", "_persistent_sample", "_fractional_sample"]:
        monkeypatch.setattr(contrastive, name, sample)


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_the_expected_update_is_the_gradient(monkeypatch, fractional, decay):
    """Of the penalised mean log-likelihood, with chains that enumerate the model."""
    rbm, model = random_model(3, 4, 2, fractional=fractional)
    batch = random_states(9, 4, dtype=np.uint8)
    data = batch.astype(float)

    def objective(part, array):
        changed = list(model)
        changed[part] = array
        return naive.rbm_mean_log_likelihood(changed, data, decay)

    slopes = [
        naive.finite_differences(lambda array, part=part: objective(part, array), start)
        for part, start in enumerate(model[:3])
    ]
    V, p = naive.rbm_distribution(model)
    at_data = naive.rbm_moments(model, data, uniform_weights(data))
    at_model = naive.rbm_moments(model, V, p)
    for part in range(3):
        expected = at_data[part] - at_model[part]
        if part == 0:
            expected = expected - decay * model[0]
        assert_allclose(slopes[part], expected, atol=1e-8)

    chains, shares = multiset(model, 20000, np.uint8)
    use_chains(monkeypatch, chains)
    settings = PLAIN._replace(weight_decay=decay)
    state, _ = contrastive.step(settings, start_state(rbm, chains[:5]), batch, 1.0, 0)
    # moments are at most c = 3; float32 means of 20,000 states round by some 1e-4
    bound = 3.0 * np.abs(shares - p).sum() + 1e-4
    assert bound < 2e-3
    for part in range(3):
        change = state.rbm[part].astype(float) - model[part]
        assert_allclose(change, slopes[part], atol=bound)


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("kind", ["states", "probabilities"])
def test_updates(monkeypatch, kind, fractional, centered):
    """Two steps with momentum and decay, from given states."""
    rbm, model = random_model(3, 5, 4, fractional=fractional)
    rng = np.random.default_rng(0)
    mu, lam = rng.uniform(0.1, 0.9, 5), rng.uniform(0.1, 0.9, 3)
    mu, lam = (np.float64(np.float32(a)) for a in (mu, lam))
    settings = PLAIN._replace(momentum=0.8, weight_decay=0.1, centered=centered)
    state = start_state(rbm, random_states(2, 5, dtype=np.uint8), mu, lam)
    velocity = [np.zeros_like(array) for array in model[:3]]
    model = list(model)
    for number, rate in enumerate([0.5, 0.2]):
        batch = random_states(7, 5, 10 + number, np.uint8)
        if kind == "probabilities":
            batch = 0.1 + np.float32(0.7) * batch
            assert batch.dtype == np.float32
        chains = random_states(11, 5, 20 + number, np.uint8)
        use_chains(monkeypatch, chains)
        state, info = contrastive.step(settings, state, batch, rate, 0)
        assert state.step == number + 2
        V, U = batch.astype(float), chains.astype(float)
        at_data = naive.rbm_moments(model, V, uniform_weights(V))
        at_model = naive.rbm_moments(model, U, uniform_weights(U))
        error = np.mean((at_data[2] - at_model[2]) ** 2)
        assert_allclose(info.mean_error, error, rtol=1e-5)
        if centered:
            lam = 0.99 * lam + 0.01 * at_data[1]
            gradient = naive.centred_gradient(
                naive.centred_moments(model, V, uniform_weights(V), lam, mu),
                naive.centred_moments(model, U, uniform_weights(U), lam, mu),
                lam,
                mu,
            )
        else:
            gradient = [d - m for d, m in zip(at_data, at_model, strict=True)]
        for part in range(3):
            shrink = 0.1 * model[part] if part == 0 else 0.0
            velocity[part] = 0.8 * velocity[part] + rate * (gradient[part] - shrink)
            model[part] = model[part] + velocity[part]
            assert_allclose(state.rbm[part], model[part], atol=2e-6)
            speed = state.velocity[part]
            speed = speed.matrix.T if part == 0 else speed
            assert_allclose(speed, velocity[part], atol=2e-6)
        # two views of the same weights
        assert_array_equal(state.transposed.matrix, state.rbm.weights.T)
        assert_allclose(state.hidden_offset, lam, atol=1e-6)
        assert_allclose(state.visible_offset, mu)


def test_the_centred_gradient_does_not_depend_on_what_is_called_1():
    """Flipping all visible units of data and model flips the update with them."""
    _, model = random_model(3, 4, 6)
    V, U = (random_states(8, 4, s).astype(float) for s in range(2))
    W, hidden, visible, c = model
    flipped = (-W, hidden + W.sum(axis=1), -visible, c)
    mu, lam = np.array([0.2, 0.5, 0.9, 0.4]), np.array([0.3, 0.6, 0.1])

    def gradient(model, V, U, mu):
        at = [
            naive.centred_moments(model, X, uniform_weights(X), lam, mu) for X in (V, U)
        ]
        return naive.centred_gradient(*at, lam, mu)

    dW, dh, dv = gradient(model, V, U, mu)
    other = gradient(flipped, 1.0 - V, 1.0 - U, 1.0 - mu)
    assert_allclose(other[0], -dW, atol=1e-12)
    assert_allclose(other[1], dh + dW.sum(axis=1), atol=1e-12)
    assert_allclose(other[2], -dv, atol=1e-12)


@pytest.mark.parametrize("n_steps", [1, 2, 3])
@pytest.mark.parametrize("kind", ["batch", "persistent", "fractional"])
def test_chains_of_a_step(kind, n_steps):
    """Their distribution after k steps from one state; 9 tests of 1e-5, 9 means."""
    rbm, model = random_model(2, 4, 8, 1.5, fractional=kind == "fractional")
    T = np.linalg.matrix_power(naive.gibbs_transition(model), n_steps)
    n, start = 20000, 13
    batch = np.repeat(naive.all_states(4)[[start]], n, axis=0).astype(np.uint8)
    settings = PLAIN._replace(n_gibbs_steps=n_steps, persistent=kind == "persistent")
    sample = {
        "batch": contrastive._sample_from_batch,
        "persistent": contrastive._persistent_sample,
        "fractional": contrastive._fractional_sample,
    }[kind]
    state = start_state(rbm, batch, seed=4)
    few = batch if kind == "fractional" else batch[: n if kind == "batch" else 3]
    states, means, chains = sample(settings, state, few, np.uint64(9))
    assert states.dtype == chains.dtype == np.uint8
    both = np.concatenate([few, states]).astype(np.float32)
    assert_allclose(means, rbm_model.hidden_means(rbm, both), rtol=1e-5)
    check_distribution(states, T[start])
    if kind == "persistent":
        # the chains continue with hidden states drawn from the visible ones
        assert chains.shape == (n, 2)
        check_mean((chains - means[len(few) :]).astype(float), np.zeros(2))
        again, _, _ = sample(
            settings, state._replace(chains=chains, step=2), few, np.uint64(9)
        )
        T2 = np.linalg.matrix_power(naive.gibbs_transition(model), 2 * n_steps)
        check_distribution(again, T2[start])


@pytest.mark.parametrize("persistent", [False, True])
def test_training_approaches_the_maximum(persistent):
    """Of a model of one unit and two features; data that a unit explains."""
    data = np.uint8([[1, 1]] * 4 + [[0, 0]] * 4 + [[1, 0], [0, 1]])
    rbm, _ = random_model(1, 2, 3)
    settings = PLAIN._replace(n_gibbs_steps=5, persistent=persistent, centered=True)
    state = start_state(rbm, np.repeat(data, 40, axis=0), data.mean(axis=0), [0.5])
    batch = np.repeat(data, 40, axis=0)
    for _ in range(400):
        state, _ = contrastive.step(settings, state, batch, 0.3, 1)
    V, p = naive.rbm_distribution(twin(state.rbm))
    # the model can hold the data's distribution exactly
    assert_allclose(p[[0, 3]], 0.4, atol=0.05)
    contrastive.check(state)


@pytest.mark.parametrize("averaging", [0.0, 0.1, 0.6, 1.0])
def test_parameters_are_averaged(averaging):
    """Over a share of the steps so far, by a look at every fifth of them."""
    rbm, _ = random_model(2, 3)
    settings = PLAIN._replace(momentum=0.5, averaging=averaging)
    state = start_state(rbm, random_states(4, 3, dtype=np.uint8))
    plain = contrastive.copy(state)
    expected = twin(state.rbm)[:3]
    batch = random_states(5, 3, dtype=np.uint8)
    for number in range(1, 33):
        state, _ = contrastive.step(settings, state, batch, 0.5, 0)
        plain, _ = contrastive.step(PLAIN._replace(momentum=0.5), plain, batch, 0.5, 0)
        # training does not see it
        for a, b in zip(state.rbm, plain.rbm, strict=True):
            assert_array_equal(a, b)
        model = contrastive.model(settings, state)
        if averaging == 0.0 or number < 5:
            assert model is state.rbm
            continue
        if number % 5 == 0:
            share = min(1.0, 5.0 / (averaging * number))
            expected = [
                (1.0 - share) * mean + share * values
                for mean, values in zip(expected, state.rbm[:3], strict=True)
            ]
        for part in range(3):
            assert_allclose(model[part], expected[part], atol=1e-6)
        assert_array_equal(model.unit_weights, state.rbm.unit_weights)
    if averaging == 1.0:
        assert not np.allclose(model.weights, state.rbm.weights, atol=1e-3)


@pytest.mark.parametrize("value", [np.nan, np.inf, -2e3])
def test_divergence_is_told(value):
    rbm, _ = random_model(2, 3)
    state = start_state(rbm, random_states(2, 3, dtype=np.uint8))
    contrastive.check(state)
    for part in range(3):
        broken = contrastive.copy(state)
        broken.rbm[part].flat[0] = value
        with pytest.raises(contrastive.Diverged):
            contrastive.check(broken)
    contrastive.check(state)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
def test_a_step_leaves_a_copy_alone(persistent, fractional, dtype):
    rbm, _ = random_model(2, 3, fractional=fractional)
    settings = PLAIN._replace(
        n_gibbs_steps=2,
        persistent=persistent,
        momentum=0.5,
        weight_decay=0.1,
        centered=True,
        averaging=1.0,
    )
    state = start_state(rbm, random_states(4, 3, dtype=np.uint8))
    # the average is brought up to date, to half from what it was
    state = state._replace(step=10)
    kept = contrastive.copy(state)
    batch = random_states(5, 3, dtype=dtype)
    copy = batch.copy()
    one, _ = contrastive.step(settings, state, batch, 0.1, 1)
    assert_array_equal(batch, copy)
    assert not np.array_equal(kept.rbm.weights, one.rbm.weights)
    # the average is where the model started
    assert_array_equal(kept.average.weights, kept.rbm.weights)
    assert not np.array_equal(kept.average.weights, one.average.weights)
    # the copy gives the same step
    two, _ = contrastive.step(settings, contrastive.copy(kept), batch, 0.1, 1)
    for a, b in zip(one.rbm, two.rbm, strict=True):
        assert_array_equal(a, b)
    assert_array_equal(one.transposed.matrix, two.transposed.matrix)
    for a, b in zip(one.average, two.average, strict=True):
        assert_array_equal(a, b)
    assert_array_equal(one.chains, two.chains)


@pytest.mark.parametrize("n_steps", [1, 2, 3])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
def test_steps_of_training_share_no_random_numbers(
    places, fractional, persistent, n_steps
):
    rbm, _ = random_model(2, 3, fractional=fractional)
    settings = PLAIN._replace(
        n_gibbs_steps=n_steps, persistent=persistent, centered=True
    )
    state = start_state(rbm, random_states(4, 3, dtype=np.uint8))
    batch = random_states(5, 3, dtype=np.uint8)
    for _ in range(4):
        state, _ = contrastive.step(settings, state, batch, 0.1, 0)
    # at least the 4 chains
    assert len(places) >= 2 * 4 * n_steps * 4
    assert len(set(places)) == len(places)


def changes_of_a_step(settings, state, batch, rate):
    """By how much a step changes each state's unnormalised log probability."""
    V = naive.all_states(batch.shape[1])
    before = naive.rbm_log_probability(twin(state.rbm), V)
    state, info = contrastive.step(settings, contrastive.copy(state), batch, rate, 0)
    return naive.rbm_log_probability(twin(state.rbm), V) - before, info


def judged(changes, batch, chains):
    """Of the states by which a step is judged."""
    return changes[numbers(np.concatenate([batch, chains]).astype(float))]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
def test_a_step_is_as_long_as_its_change_allows(
    monkeypatch, fractional, centered, dtype
):
    """The limited step size times the spread of the slopes is the limit."""
    rbm, model = random_model(3, 5, 4, fractional=fractional)
    rng = np.random.default_rng(0)
    chains = random_states(11, 5, 20, np.uint8)
    state = start_state(rbm, chains[:2], rng.uniform(0.2, 0.8, 5), rng.random(3))
    batch = random_states(7, 5, 10, dtype)
    use_chains(monkeypatch, chains)
    plain = PLAIN._replace(centered=centered)
    # a finite difference along the step that an update takes
    small = 1e-2
    changes, info = changes_of_a_step(plain, state, batch, small)
    assert info.rate == small
    spread = judged(changes, batch, chains).std() / small
    for limit in (1e-3, 1e-2):
        settings = plain._replace(max_change=limit)
        _, info = changes_of_a_step(settings, state, batch, 1e3)
        assert info.rate == pytest.approx(limit / spread, rel=0.05)
        # with momentum, so many steps add up
        _, info = changes_of_a_step(settings._replace(momentum=0.75), state, batch, 1e3)
        assert info.rate == pytest.approx(0.25 * limit / spread, rel=0.05)
    # a step that is shorter stays as it is
    _, info = changes_of_a_step(plain._replace(max_change=1e3), state, batch, small)
    assert info.rate == small


@pytest.mark.parametrize("limit", [0.05, 0.5])
def test_steps_change_the_log_probability_by_the_limit(limit):
    """Over a training whose step size would change it by much more."""
    data = np.repeat(np.random.default_rng(0).random((200, 2)) < 0.5, 4, axis=1)
    data = data.astype(np.uint8)
    rbm, _ = random_model(4, 8, 1, 0.5)
    settings = PLAIN._replace(persistent=True, centered=True, max_change=limit)
    state = start_state(rbm, data[:32], data.mean(axis=0), np.full(4, 0.5))
    ratios = []
    for number in range(40):
        batch = data[32 * (number % 6) :][:32]
        before = twin(state.rbm)
        at_data = naive.rbm_log_probability(before, batch.astype(float))
        state, info = contrastive.step(settings, state, batch, 50.0, 0)
        assert info.rate < 50.0
        change = naive.rbm_log_probability(twin(state.rbm), batch.astype(float))
        ratios.append((change - at_data).std() / limit)
    # half of the judged rows are these; the others are chains
    assert 0.3 < np.median(ratios) < 1.5
    assert max(ratios) < 4.0


def test_a_step_without_a_gradient_has_no_limit():
    """Data and chains that are the same change nothing."""
    rbm, _ = random_model(2, 3, scale=0.0)
    batch = np.ones((4, 3), dtype=np.uint8)
    settings = PLAIN._replace(max_change=0.1)
    before = twin(rbm)
    # a model under which the chains stay where they are
    rbm.visible[:] = 40.0
    state, info = contrastive.step(settings, start_state(rbm, batch), batch, 0.5, 0)
    assert info.rate == 0.5 and info.mean_error == 0.0
    assert_allclose(state.rbm.weights, before[0], atol=1e-6)


@pytest.mark.parametrize("kind", ["standard", "fractional", "tempered"])
def test_another_number_of_chains(kind):
    """The first ones, and copies, which part; fewer rows take none away."""
    rbm, _ = random_model(3, 4, 2, fractional=kind == "fractional")
    state = start_state(rbm, random_states(6, 4, dtype=np.uint8))
    if kind == "tempered":
        state = contrastive.temper(state, np.zeros(4), 3, 0)

    def chains(state):
        found = state.chains.states if kind == "tempered" else state.chains
        return np.moveaxis(found, -2, 0)

    before = chains(state).copy()
    assert contrastive.with_chains(state, 6, 100) is state
    assert contrastive.with_chains(state, 6, 2) is state
    few = contrastive.with_chains(state, 4, 100)
    assert_array_equal(chains(few), before[:4])
    many = contrastive.with_chains(state, 600, 5)
    assert_array_equal(chains(many), before[np.arange(600) % 6])
    batch = random_states(20, 4, dtype=np.uint8)
    settings = PLAIN._replace(persistent=True)
    after, _ = contrastive.step(settings, contrastive.copy(many), batch, 0.1, 0)
    of_first = chains(after)[::6].reshape(100, -1)
    assert 1 < len(np.unique(of_first, axis=0))
    # no more chains than there are rows, beyond 1000
    assert len(chains(contrastive.with_chains(state, 5000, 1200))) == 1200
