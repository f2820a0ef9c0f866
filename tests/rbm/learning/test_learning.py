"""The solvers of the restricted Boltzmann machine against enumeration of all states."""

from types import SimpleNamespace

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtri
from scipy.stats import chi2

from skbayesnn.rbm import model as solver
from skbayesnn.rbm.kernels import units as kernels
from skbayesnn.rbm.learning import contrastive, growth
from skbayesnn.rbm.learning import unit_search as fw
from skbayesnn.rbm.likelihood import annealing

# Of each statistical test; the seeds are fixed, so it is what a change of the random
# numbers would meet. There are some 100 of them.
FALSE_ALARM = 1e-5
FRACTIONS = [0.5, 1.7, 3.0, 0.25, 1.0, 2.2]
# n_units, n_features; the last ones are summed over in more than one block
SIZES = [(0, 5), (1, 1), (3, 7), (7, 3), (12, 4), (2, 12), (12, 12), (13, 14)]


def random_model(n_units, n_features, seed=0, scale=1.0, fractional=False):
    """A model and its float64 twin."""
    rng = np.random.default_rng((n_units, n_features, seed))
    weights = rng.normal(0.0, scale, (n_units, n_features))
    hidden, visible = rng.normal(0.0, 0.7, n_units), rng.normal(0.0, 0.7, n_features)
    c = np.resize(FRACTIONS, n_units) if fractional else None
    rbm = solver.make_rbm(weights, hidden, visible, c)
    return rbm, twin(rbm)


def twin(rbm):
    return tuple(array.astype(np.float64) for array in rbm)


def random_states(n_rows, n_features, seed=0, dtype=np.float32):
    rng = np.random.default_rng((n_rows, n_features, seed))
    return rng.integers(0, 2, (n_rows, n_features)).astype(dtype)


def exact_draws(model, n, seed=0, dtype=np.float32):
    """Independent draws from a small model."""
    V, p = naive.rbm_distribution(model)
    index = np.random.default_rng((n, seed)).choice(len(V), size=n, p=p)
    return V[index].astype(dtype)


def multiset(model, n, dtype=np.float32):
    """About n states, each as often as its probability asks, and their shares."""
    V, p = naive.rbm_distribution(model)
    counts = np.round(p * n).astype(int)
    states = np.repeat(V.astype(dtype), counts, axis=0)
    return states, counts / counts.sum()


def numbers(states):
    """Of states among all."""
    return (states @ 2.0 ** np.arange(states.shape[1])).astype(int)


def check_distribution(states, p):
    """Chi-square of independent states; cells that expect few are taken together."""
    n = len(states)
    counts = np.bincount(numbers(states), minlength=len(p)).astype(float)
    assert len(counts) == len(p)
    assert not counts[p == 0.0].any()
    few = n * p < 5.0
    expected = np.append(n * p[~few], n * p[few].sum())
    counts = np.append(counts[~few], counts[few].sum())
    if expected[-1] < 5.0:
        # too few for a cell of their own: with the smallest one
        smallest = np.argmin(expected[:-1])
        expected[smallest] += expected[-1]
        counts[smallest] += counts[-1]
        expected, counts = expected[:-1], counts[:-1]
    statistic = np.sum((counts - expected) ** 2 / expected)
    assert statistic < chi2.isf(FALSE_ALARM, len(expected) - 1)


def check_mean(values, expected):
    """Means of independent values, by their standard errors; Bonferroni over all."""
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    bound = -ndtri(FALSE_ALARM / 2 / np.size(expected))
    assert (np.abs(values.mean(axis=0) - expected) <= bound * error + 1e-6).all()


# Energies and means.


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("n_units, n_features", SIZES)
def test_exact_log_partition(n_units, n_features, fractional):
    rbm, model = random_model(n_units, n_features, fractional=fractional)
    expected = naive.rbm_log_partition(model)
    assert_allclose(exact.log_partition(rbm), expected, rtol=1e-12)
    side = n_features if fractional and n_units else min(n_units, n_features)
    assert exact.size(rbm) == side


def test_references_agree_with_the_joint_distribution():
    _, model = random_model(3, 4)
    V, H = naive.all_states(4), naive.all_states(3)
    joint = np.array([[naive.joint_log_probability(model, v, h) for h in H] for v in V])
    by_joint = np.log(np.exp(joint).sum(axis=1))
    assert_allclose(naive.rbm_log_probability(model, V), by_joint, rtol=1e-12)
    p_v = np.exp(joint).sum(axis=1) / np.exp(joint).sum()
    assert_allclose(naive.rbm_distribution(model)[1], p_v, rtol=1e-12)
    up = np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True)
    down = np.exp(joint) / np.exp(joint).sum(axis=0)
    assert_allclose(naive.gibbs_transition(model), up @ down.T, rtol=1e-10)


@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
def test_references_of_the_chains_are_reversible(fractional, clamped):
    _, model = random_model(2, 3, fractional=fractional)
    T, p = naive.gibbs_transition(model), naive.rbm_distribution(model)[1]
    if clamped:
        mask, values = np.array([True, False, False]), np.array([1.0, 0.0, 0.0])
        T = naive.gibbs_transition(model, mask, values)
        _, p = naive.rbm_conditional(model, mask, values)
    assert_allclose(T.sum(axis=1), 1.0)
    flow = p[:, None] * T
    assert_allclose(flow, flow.T, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("n_units, n_features", SIZES[1:-1])
def test_free_energy(n_units, n_features, fractional, dtype):
    rbm, model = random_model(n_units, n_features, fractional=fractional)
    states = random_states(40, n_features)
    expected = naive.rbm_log_probability(model, states.astype(float))
    tol = dict(rtol=1e-5, atol=1e-5) if dtype == np.float32 else dict(rtol=1e-12)
    typed = solver.RBM(*(array.astype(dtype) for array in rbm))
    energy = solver.free_energy(typed, states.astype(dtype))
    assert energy.dtype == np.float64
    assert_allclose(-energy, expected, **tol)
    if dtype == np.float32:
        compiled = solver.unnormalised_log_probability(rbm, states)
        assert compiled.dtype == np.float64
        assert_allclose(compiled, expected, **tol)


def test_free_energy_without_units():
    rbm, _ = random_model(0, 5)
    states = random_states(6, 5)
    expected = states @ rbm.visible
    assert_allclose(-solver.free_energy(rbm, states), expected, rtol=1e-6)
    assert_allclose(
        solver.unnormalised_log_probability(rbm, states), expected, rtol=1e-6
    )


@pytest.mark.parametrize("fractional", [False, True])
def test_log_probability_of_states_and_of_probabilities(fractional):
    rbm, model = random_model(5, 6, fractional=fractional)
    states = random_states(23, 6, dtype=np.uint8)
    for V in [states, states.astype(np.float32), 0.1 + np.float32(0.7) * states]:
        result = solver.unnormalised_log_probability(rbm, V)
        assert result.dtype == np.float64
        expected = naive.rbm_log_probability(model, V.astype(float))
        assert_allclose(result, expected, rtol=1e-5)


@pytest.mark.parametrize("fractional", [False, True])
def test_means_of_units(fractional):
    rbm, model = random_model(4, 5, fractional=fractional)
    V, H = naive.all_states(5), naive.all_states(4)
    W, hidden, visible, c = model
    means = solver.hidden_means(rbm, V.astype(np.float32))
    assert_allclose(means, c * naive.logistic(V @ W.T + hidden), rtol=1e-5)
    means = solver.visible_means(rbm, H.astype(np.float32))
    assert_allclose(means, naive.logistic(H @ W + visible), rtol=1e-5)
    if not fractional:
        joint = np.exp(
            [[naive.joint_log_probability(model, v, h) for h in H] for v in V]
        )
        by_joint = joint @ H / joint.sum(axis=1, keepdims=True)
        assert_allclose(
            solver.hidden_means(rbm, V.astype(np.float32)), by_joint, rtol=1e-5
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
    result = solver.pseudo_likelihood(rbm, V.astype(np.float32))
    assert_allclose(result, expected.ravel(order="F"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n_units", [0, 3])
def test_base_log_partition(n_units):
    rbm, _ = random_model(n_units, 4, fractional=True)
    base = np.array([-2.0, 0.0, 1.0, 30.0])
    rbm0 = (np.zeros((n_units, 4)), np.zeros(n_units), base, rbm.unit_weights)
    expected = naive.rbm_log_partition(tuple(np.float64(a) for a in rbm0))
    assert_allclose(annealing.base_log_partition(rbm, base), expected, rtol=1e-12)


def test_log_odds():
    assert_allclose(BINARY.natural_parameters([0.5], 10), [0.0], atol=1e-15)
    rates = naive.logistic(BINARY.natural_parameters([0.0, 0.25, 1.0], 8))
    assert_allclose(rates, [0.5 / 9, 2.5 / 9, 8.5 / 9], rtol=1e-12)


def test_models_own_their_arrays():
    weights = np.ones((2, 3), dtype=np.float32)
    rbm = solver.make_rbm(weights, np.zeros(2), np.zeros(3))
    larger = solver.append(rbm, np.full(3, 2.0), 5.0)
    larger = larger._replace(unit_weights=np.float32([1.0, 1.0, 0.5]))
    part = solver.select(larger, [2])
    again = solver.copy(larger)
    for one in (rbm, larger, part, again):
        for array in one:
            assert array.dtype == np.float32 and array.flags.c_contiguous
            array += 1.0
    assert_array_equal(weights, 1.0)
    assert_array_equal(part.weights, [[3.0] * 3])
    assert_array_equal(part.unit_weights, [1.5])
    assert not solver.is_standard(part)
    assert solver.is_standard(solver.independent_units(np.zeros(3)))


# Markov chains.

CLAMPED = (np.array([False, True, False, True]), np.array([0, 1, 0, 0], np.uint8))


def clamp_of(clamped):
    return solver.Clamp(*(part[None] for part in CLAMPED)) if clamped else None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
def test_chains_converge_to_the_model(fractional, clamped, seed):
    """16 chi-square tests of 1e-5 each."""
    rbm, model = random_model(3, 4, seed, fractional=fractional)
    p = naive.rbm_distribution(model)[1]
    T = naive.gibbs_transition(model)
    chains = solver.start_chains(rbm, 10000, seed)
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
    chains2, acceptance = solver.gibbs(rbm, chains, n_steps, clamp_of(clamped))
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
        chains = solver.Chains(states.astype(np.uint8), np.uint64(start), 5, 3)
        chains, _ = solver.gibbs(rbm, chains, n_steps, clamp_of(clamped))
        check_distribution(chains.states, T[start])


@pytest.mark.parametrize("fractional", [False, True])
def test_chains_may_be_split_and_continued(fractional):
    rbm, _ = random_model(5, 6, fractional=fractional)
    chains = solver.start_chains(rbm, 12, 3)
    whole, _ = solver.gibbs(rbm, chains, 6)
    part, _ = solver.gibbs(rbm, chains, 2)
    part, _ = solver.gibbs(rbm, part, 4)
    assert_array_equal(part.states, whole.states)
    second = solver.start_chains(rbm, 5, 3, first_row=7)
    assert_array_equal(second.states, chains.states[7:])
    second, _ = solver.gibbs(rbm, second, 6)
    assert_array_equal(second.states, whole.states[7:])
    other, _ = solver.gibbs(rbm, chains._replace(seed=np.uint64(4)), 6)
    assert not np.array_equal(other.states, whole.states)


@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
def test_mean_visible(fractional, clamped):
    """Of chains at the model; 4 tests of 1e-5 each."""
    rbm, model = random_model(2, 4, 5, scale=3.0, fractional=fractional)
    V, p = naive.rbm_distribution(model)
    if clamped:
        V, p = naive.rbm_conditional(model, *CLAMPED)
    index = np.random.default_rng(0).choice(len(V), size=40000, p=p)
    chains = solver.Chains(V[index].astype(np.uint8), np.uint64(3), 1, 0)
    means = solver.mean_visible(rbm, chains, 2, clamp_of(clamped))
    free = ~CLAMPED[0] if clamped else slice(None)
    check_mean(means[:, free].astype(float), (p @ V)[free])


@pytest.mark.parametrize("fractional", [False, True])
def test_what_is_held_may_be_a_probability(fractional):
    rbm, _ = random_model(3, 6, fractional=fractional)
    mask, values = random_states(40, 6) > 0.5, random_states(40, 6, 1, np.uint8)

    def run(values):
        clamp = solver.Clamp(mask, values)
        betas = annealing.make_betas(10)
        chains = annealing.annealed_chains(rbm, np.zeros(6), betas, 40, 0, clamp)
        return solver.gibbs(rbm, chains, 3, clamp)[0].states

    states = run(values)
    assert states.dtype == np.uint8
    # 0 and 1 of another type are the same
    assert_array_equal(run(values.astype(np.float32)), states)
    between = 0.2 + np.float32(0.6) * values
    states = run(between)
    assert states.dtype == np.float32
    assert_array_equal(states[mask], between[mask])
    assert np.isin(states[~mask], (0.0, 1.0)).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_products_of_states_and_of_probabilities(dtype):
    V = random_states(30, 9, dtype=dtype)
    if dtype == np.float32:
        V = 0.1 + np.float32(0.7) * V
    rng = np.random.default_rng(0)
    values = rng.normal(size=(9, 4)).astype(np.float32)
    others = rng.normal(size=(30, 4)).astype(np.float32)
    result = products.product(V, values)
    assert result.dtype == np.float32
    assert_allclose(result, V.astype(float) @ values, atol=2e-6)
    # into a part of another array
    whole = np.zeros((40, 4), dtype=np.float32)
    assert_array_equal(products.product(V, values, whole[5:35]), result)
    assert_array_equal(whole[5:35], result)
    assert not whole[:5].any() and not whole[35:].any()
    result = products.transposed_product(V, others)
    assert result.dtype == np.float32 and result.flags.c_contiguous
    assert_allclose(result, V.T.astype(float) @ others, atol=1e-5)
    result = products.sum_states(V)
    assert result.dtype == np.float32
    assert_allclose(result, V.astype(float).sum(axis=0), rtol=1e-6)


# Contrastive divergence.

PLAIN = contrastive.Settings(1, False, 0.0, 0.0, False, averaging=0.0)


def start_state(rbm, chains, visible_offset=None, hidden_offset=None, seed=0):
    n_units, n_features = rbm.weights.shape
    if visible_offset is None:
        visible_offset = np.zeros(n_features)
    if hidden_offset is None:
        hidden_offset = np.zeros(n_units)
    return contrastive.init(
        solver.copy(rbm), visible_offset, hidden_offset, chains, seed
    )


def use_chains(monkeypatch, chains):
    """Let the chains of a step be at these visible states."""

    def sample(settings, state, batch, seed):
        states = np.concatenate([batch, chains]).astype(np.float32)
        return chains, solver.hidden_means(state.rbm, states), state.chains

    for name in ["_sample_from_batch", "_persistent_sample", "_fractional_sample"]:
        monkeypatch.setattr(contrastive, name, sample)


def uniform_weights(V):
    return np.full(len(V), 1.0 / len(V))


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
            speed = velocity[part].T if part == 0 else velocity[part]
            assert_allclose(state.velocity[part], speed, atol=2e-6)
        # two views of the same weights
        assert_array_equal(state.transposed, state.rbm.weights.T)
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
    assert_allclose(means, solver.hidden_means(rbm, both), rtol=1e-5)
    check_distribution(states, T[start])
    if kind == "persistent":
        # the chains go on with hidden states drawn from the visible ones
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
    assert_array_equal(one.transposed, two.transposed)
    for a, b in zip(one.average, two.average, strict=True):
        assert_array_equal(a, b)
    assert_array_equal(one.chains, two.chains)


# The partition function.


def test_temperatures_of_the_paper():
    betas = annealing.make_betas("paper")
    assert betas[0] == 0.0 and betas[-1] == 1.0
    # 500, 4,000 and 10,000 of them, and the end
    assert len(betas) - 1 == 14500
    steps = np.diff(betas)
    assert_allclose(steps[:500], 0.5 / 500, rtol=1e-9)
    assert_allclose(steps[500:4500], 0.4 / 4000, rtol=1e-9)
    assert_allclose(steps[4500:], 0.1 / 10000, rtol=1e-9)
    assert_allclose(betas[[500, 4500]], [0.5, 0.9], rtol=1e-12)


def test_other_temperatures():
    assert_allclose(annealing.make_betas(5), [0.0, 0.25, 0.5, 0.75, 1.0])
    assert_allclose(annealing.make_betas([0, 0.5, 1]), [0.0, 0.5, 1.0])


def base_of(rbm, model):
    """Log odds of the model's own rates."""
    V, p = naive.rbm_distribution(model)
    return BINARY.natural_parameters(p @ V, 1000)


def random_small_model(number):
    rng = np.random.default_rng((77, number))
    n_units, n_features = rng.integers(1, 9, 2)
    scale = np.exp(rng.uniform(np.log(0.1), np.log(3.0)))
    return random_model(n_units, n_features, number, scale, number % 4 == 0)


@pytest.mark.parametrize("reverse", [False, True])
def test_intervals_of_ais_hold_the_exact_value(reverse):
    """In at least 95 % of 200 random models, weights of 0.1 to 3."""
    n_models, held, errors = 200, 0, []
    betas = annealing.make_betas(200)
    for number in range(n_models):
        rbm, model = random_small_model(number)
        base = base_of(rbm, model) if number % 2 else np.zeros(len(rbm.visible))
        result = annealing.ais(rbm, base, betas, 100, number, reverse=reverse)
        low, high = result.interval
        exact = naive.rbm_log_partition(model)
        held += low <= exact <= high
        errors.append(
            3.0 * (result.log_partition - exact) / (high - result.log_partition)
        )
    # 190 of 200 would be met by intervals of 98 % with a probability of 99 %
    assert held >= 0.95 * n_models
    # nor are the intervals too wide
    assert np.std(errors) > 0.7


@pytest.mark.parametrize("fractional", [False, True])
def test_forward_and_reverse_means_hold_the_exact_value_between_them(fractional):
    """log of a mean is concave: both err, to opposite sides; 4 tests of 1e-5."""
    rbm, model = random_model(6, 8, 3, scale=2.5, fractional=fractional)
    exact = naive.rbm_log_partition(model)
    base, betas = np.zeros(8), annealing.make_betas(6)
    for sign, reverse in [(-1.0, False), (1.0, True)]:
        values = [
            annealing.ais(rbm, base, betas, 2, seed, reverse=reverse).log_partition
            for seed in range(400)
        ]
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        assert sign * (np.mean(values) - exact) > -ndtri(FALSE_ALARM) * error


@pytest.mark.parametrize("fractional", [False, True])
def test_weights_of_ais_are_unbiased(fractional):
    """Their mean is the ratio of the partition functions; 2 tests of 1e-5."""
    rbm, model = random_model(3, 4, 1, fractional=fractional)
    base = np.array([0.5, -0.5, 0.0, 1.0], dtype=np.float32)
    exact = naive.rbm_log_partition(model)
    betas = annealing.make_betas(5)
    path = annealing.make_path(rbm, base, betas)
    log_weights, states = annealing._forward(path, np.uint64(3), 0, 20000, True)
    assert states.dtype == np.uint8
    ratio = np.exp(log_weights + annealing.base_log_partition(rbm, base) - exact)
    check_mean(ratio, 1.0)
    assert ratio.std() > 0.01
    # weighted, the states are draws from the model
    V, p = naive.rbm_distribution(model)
    check_mean(ratio[:, None] * (states - p @ V), np.zeros(4))


@pytest.mark.parametrize("fractional", [False, True])
def test_reverse_weights_of_ais_are_unbiased(fractional):
    """Their mean is the inverse ratio; 2 tests of 1e-5."""
    rbm, model = random_model(3, 4, 1, fractional=fractional)
    base = np.array([0.5, -0.5, 0.0, 1.0], dtype=np.float32)
    states = exact_draws(model, 20000, dtype=np.uint8)
    path = annealing.make_path(rbm, base, annealing.make_betas(5)[::-1])
    log_weights = annealing._backward(path, states, np.uint64(3), 0)
    exact = naive.rbm_log_partition(model)
    offset = annealing.base_log_partition(rbm, base)
    check_mean(np.exp(log_weights + exact - offset), 1.0)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
def test_jobs_change_nothing(fractional, reverse):
    rbm, _ = random_model(5, 7, fractional=fractional)
    base, betas = np.zeros(7), annealing.make_betas(20)
    one, two, three = (
        annealing.ais(rbm, base, betas, 130, 5, n_jobs, reverse) for n_jobs in (1, 2, 3)
    )
    assert one == two == three
    assert annealing.ais(rbm, base, betas, 130, 6, 1, reverse) != one


@pytest.mark.parametrize("fractional", [False, True])
def test_splits_of_the_chains_change_nothing(fractional):
    rbm, _ = random_model(5, 7, fractional=fractional)
    path = annealing.make_path(rbm, np.zeros(7), annealing.make_betas(20))

    def run(first, n):
        return annealing._forward(path, np.uint64(2), first, n, True)

    weights, states = run(0, 60)
    parts = [run(0, 10), run(10, 37), run(47, 13)]
    assert_array_equal(np.concatenate([part[1] for part in parts]), states)
    # products of another shape may round differently
    together = np.concatenate([part[0] for part in parts])
    assert_allclose(together, weights, atol=1e-4)


@pytest.mark.parametrize("n_chains", [1, 2, 3, 127, 128, 129, 256, 257, 1000])
def test_blocks_of_chains(n_chains):
    blocks = annealing._blocks(n_chains)
    first, sizes = zip(*blocks, strict=True)
    assert sum(sizes) == n_chains
    assert_array_equal(first, np.cumsum([0, *sizes[:-1]]))
    assert 1 <= min(sizes) and max(sizes) <= 128 and max(sizes) - min(sizes) <= 1
    # two cores have something to do
    assert len(blocks) >= min(2, n_chains)


@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
def test_slopes_are_those_of_the_states(fractional, clamped):
    """Also of chains that a rejected proposal leaves where they are."""
    rbm, model = random_model(6, 4, 3, scale=3.0, fractional=fractional)
    base = np.float32([0.5, -0.5, 0.0, 1.0])
    path = annealing.make_path(rbm, base, annealing.make_betas(4), clamp_of(clamped))
    move = annealing._fractional_move if fractional else annealing._standard_move
    v, slope = annealing._start(path, 500, (np.uint64(1), 0, 0))
    log_weights, n_new = np.zeros(500), []
    for step, betas in enumerate([(0.3, 0.6), (0.6, 0.8), (0.8, 1.0)]):
        place = np.uint64(1), step + 1, 0
        old = v
        v, slope = move(path, v, slope, betas, place, log_weights)
        n_new.append((v != old).any(axis=1).sum())
        if clamped:
            assert (v[:, CLAMPED[0]] == CLAMPED[1][CLAMPED[0]]).all()
        else:
            assert_allclose(slope, v @ (model[2] - base), atol=1e-5)
    assert 0 < min(n_new) and max(n_new) < 500


def test_one_step_from_the_base():
    """With two temperatures the weights are importance weights of the base."""
    rbm, model = random_model(3, 4, 2)
    base = np.float32([0.5, -1.0, 0.0, 2.0])
    V = naive.all_states(4)
    log_weights, _, _ = annealing._anneal(
        annealing.make_path(rbm, base, [0.0, 1.0]),
        V.astype(np.uint8),
        V @ (rbm.visible - base),
        (np.uint64(0), 0, 0),
    )
    expected = naive.rbm_log_probability(model, V) - V @ base - 3 * np.log(2.0)
    assert_allclose(log_weights, expected, atol=1e-5)


def test_summary():
    log_weights = np.log([1.0, 2.0, 3.0, 6.0])
    result = annealing.summarise(log_weights, 10.0, 1.0)
    assert_allclose(result.log_partition, 10.0 + np.log(3.0))
    error = 3.0 * np.std([1, 2, 3, 6], ddof=1) / 2.0 / 3.0
    assert_allclose(result.interval, result.log_partition + np.array([-error, error]))
    assert_allclose(result.log_weight_std, np.std(log_weights, ddof=1))
    assert_allclose(result.effective_sample_size, 12.0**2 / (1 + 4 + 9 + 36))
    other = annealing.summarise(log_weights + 800.0, 10.0, -1.0)
    assert_allclose(other.log_partition, 10.0 - 800.0 - np.log(3.0))
    assert_allclose(other.effective_sample_size, result.effective_sample_size)


def test_resampling_is_in_proportion_to_weights():
    states = np.arange(5.0)[:, None]
    weights = np.array([0.1, 0.0, 0.4, 0.3, 0.2])
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights) + 1000.0
    drawn = np.stack(
        [annealing._resample(log_weights, states, seed)[:, 0] for seed in range(400)]
    )
    for state, weight in enumerate(weights):
        counts = (drawn == state).sum(axis=1)
        # systematic: next to the expected count, and exact on average
        assert (np.abs(counts - 5 * weight) < 1.0 + 1e-9).all()
        check_mean(counts[:, None].astype(float), [5 * weight])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
def test_annealed_chains(fractional, clamped, seed):
    """Led slowly they end at the model, held bits in place; 8 tests of 1e-5."""
    rbm, model = random_model(3, 4, seed, fractional=fractional)
    betas = annealing.make_betas(150)
    chains = annealing.annealed_chains(
        rbm, np.zeros(4), betas, 10000, seed, clamp_of(clamped)
    )
    p = naive.rbm_distribution(model)[1]
    if clamped:
        p = naive.rbm_conditional(model, *CLAMPED)[1]
        mask, values = CLAMPED
        assert (chains.states[:, mask] == values[mask]).all()
    # some steps at the model take away what annealing left
    chains, _ = solver.gibbs(rbm, chains, 30, clamp_of(clamped))
    check_distribution(chains.states, p)


@pytest.mark.parametrize("fractional", [False, True])
def test_annealed_chains_with_a_clamp_for_each(fractional):
    rbm, _ = random_model(3, 6, fractional=fractional)
    mask, values = random_states(40, 6) > 0.5, random_states(40, 6, 1, np.uint8)
    clamp = solver.Clamp(mask, values)
    chains = annealing.annealed_chains(
        rbm, np.zeros(6), annealing.make_betas(10), 40, 0, clamp
    )
    assert_array_equal(chains.states[mask], values[mask])
    assert np.isin(chains.states, (0.0, 1.0)).all()
    assert not np.array_equal(chains.states[~mask], values[~mask])


# The search for a unit.

KINDS = ["linearized", "likelihood"]


def objective_of(kind, unit_weight=1.0, unit_penalty=0.1, radius=None):
    return fw.Objective(kind, unit_penalty, radius, unit_weight)


def search_samples(kind, with_offsets, seed=0, scale=1.0):
    """Samples of an enumerated model, and their exact probabilities.

    With a ``scale``, the data are probabilities.
    """
    _, model = random_model(2, 4, seed)
    data = np.float32(scale) * random_states(12, 4, seed)
    states, shares = multiset(model, 2000)
    rng = np.random.default_rng(seed)
    offsets = None, None
    if with_offsets:
        offsets = rng.normal(size=len(data)), rng.normal(size=16)
    samples = fw.Samples(fw.pack(data), fw.pack(states), offsets[0], None)
    assert isinstance(samples.data, fw.PackedRows if scale == 1.0 else fw.DenseRows)
    if with_offsets:
        samples = samples._replace(model_offset=offsets[1][numbers(states)])
    o_data, o_model = offsets if with_offsets else (np.zeros(len(data)), np.zeros(16))
    return samples, (data.astype(float), naive.all_states(4), shares), (o_data, o_model)


def all_rows(rows):
    return rows.take(slice(None))


def make_unit(weights, bias, shift=0.0):
    return fw.Unit(np.float32(weights), float(bias), shift, 0.0, 0)


@pytest.mark.parametrize("shift", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("with_offsets", [False, True])
@pytest.mark.parametrize("unit_weight", [1.0, 0.4, 2.5])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_objective_of_a_unit(scale, kind, unit_weight, with_offsets, shift):
    samples, exact, offsets = search_samples(kind, with_offsets, scale=scale)
    objective = objective_of(kind, unit_weight)
    w = np.float32(np.random.default_rng(1).normal(0.0, 2.0, 5)).astype(float)

    def reference(z):
        return naive.unit_objective(kind, *exact, z, unit_weight, 0.1, *offsets)

    value, slope, shift_slope = fw.value_and_gradient(objective, samples, w, shift)
    z = np.append(w, shift)
    assert_allclose(value, reference(z), rtol=1e-5, atol=1e-6)
    expected = naive.finite_differences(reference, z)
    assert_allclose(slope, expected[:-1], rtol=1e-4, atol=1e-5)
    if kind == "linearized":
        # biases follow the chains, not the linearised objective
        assert shift_slope == 0.0
    else:
        assert_allclose(shift_slope, expected[-1], rtol=1e-4, atol=1e-5)

    unit = make_unit(w[:-1], w[-1], shift)
    gain, penalty = fw.gain(objective, samples, unit), fw.penalty(objective, unit)
    assert_allclose(penalty, 0.5 * unit_weight * 0.1 * w @ w, rtol=1e-6)
    assert_allclose(gain.value - penalty, value, rtol=1e-5, atol=1e-6)
    x = all_rows(samples.model) @ w[:-1] + w[-1]
    offset = 0.0 if samples.model_offset is None else samples.model_offset
    ratio = np.exp(unit_weight * (naive.softplus(x) - shift * x) + offset)
    size = naive.effective_sample_size(ratio)
    assert_allclose(gain.effective_sample_size, size, rtol=1e-4)


@pytest.mark.parametrize("radius", [0.5, 3.0, None])
def test_gradients_through_the_ball(radius):
    matrix = np.random.default_rng(0).normal(size=(5, 5))
    for scale in [0.0, 0.1, 1.0, 20.0]:
        z = scale * np.array([0.3, -1.0, 2.0, 0.5, 0.1])
        w, pull_back = fw._into_ball(z, radius)
        assert radius is None or np.linalg.norm(w) < radius

        def mapped(z):
            w = fw._into_ball(z, radius)[0]
            return np.sin(w) @ matrix @ w

        slope = np.cos(w) * (matrix @ w) + np.sin(w) @ matrix
        expected = naive.finite_differences(mapped, z)
        assert_allclose(pull_back(slope), expected, rtol=1e-6, atol=1e-8)
    # the whole ball is reached
    if radius is not None:
        direction = np.ones(5) / np.sqrt(5.0)
        assert_allclose(fw._into_ball(1e6 * direction, radius)[0], radius * direction)


@pytest.mark.parametrize("radius", [None, 1.5])
@pytest.mark.parametrize("kind", KINDS)
def test_search_ends_at_a_maximum(kind, radius):
    samples, exact, offsets = search_samples(kind, False, 1)
    objective = objective_of(kind, 0.7, radius=radius)
    rng = np.random.default_rng(0)
    start = fw.choose_start(objective, samples, rng)
    again = fw.choose_start(objective, samples, np.random.default_rng(0))
    assert_array_equal(start, again)
    inside = fw._into_ball(start[:-1], radius)[0]
    at_start, _, _ = fw.value_and_gradient(objective, samples, inside, start[-1])
    unit = fw.search(objective, samples, start, 200, 1e-12)
    z = np.append(unit.weights, [unit.bias, unit.shift]).astype(float)
    assert unit.weights.dtype == np.float32 and unit.n_evaluations > 1
    assert radius is None or np.linalg.norm(z[:-1]) <= radius * (1 + 1e-6)
    assert 0.0 <= unit.shift <= 1.0
    assert kind == "likelihood" or unit.shift == 0.0

    def reference(z):
        return naive.unit_objective(kind, *exact, z, 0.7, 0.1, *offsets)

    assert_allclose(unit.value, reference(z), atol=1e-5)
    assert unit.value > at_start
    for _ in range(100):
        near = z + rng.normal(0.0, 0.05, 6)
        if radius is not None:
            near[:-1] *= min(1.0, radius / np.linalg.norm(near[:-1]))
        near[-1] = np.clip(near[-1], 0.0, 1.0) if kind == "likelihood" else 0.0
        assert reference(near) < unit.value + 1e-5


@pytest.mark.parametrize("unit_weight", [0.3, 1.0, 2.0])
def test_the_exact_gain_never_exceeds_the_linearized_one(unit_weight):
    rng = np.random.default_rng(0)
    for seed in range(20):
        V = random_states(9, 5, seed), random_states(30, 5, seed + 99)
        samples = fw.Samples(*(fw.pack(one) for one in V))
        unit = make_unit(rng.normal(0.0, 2.0, 5), rng.normal())
        exact, linear = (
            fw.gain(objective_of(kind, unit_weight), samples, unit).value
            for kind in ("likelihood", "linearized")
        )
        assert exact < linear
        # a unit without weights gains nothing
        for kind in KINDS:
            none = unit._replace(weights=0.0 * unit.weights)
            gain = fw.gain(objective_of(kind), samples, none)
            # softplus is float32, and its last bit depends on the length of the rows
            assert_allclose(gain.value, 0.0, atol=2e-7)
            assert_allclose(gain.effective_sample_size, 30.0)


def test_rows_are_packed_where_they_are_binary(monkeypatch):
    monkeypatch.setattr(fw, "BLOCK_ROWS", 4)
    V = random_states(11, 9)
    index = np.array([0, 2, 3, 4, 5, 8, 9, 10])
    w, s = np.random.default_rng(0).normal(size=(2, 9)).astype(np.float32)
    s = s[: len(index)]
    soft = V.astype(np.float32)
    # in the second block alone
    soft[9, 3] = 0.5
    kinds = {np.uint8: fw.PackedRows, np.float32: fw.PackedRows, None: fw.DenseRows}
    for dtype, kind in kinds.items():
        values = soft if dtype is None else V.astype(dtype)
        dense = np.float32(values[index])
        source = SimpleNamespace(states=values.__getitem__)
        for rows in (fw.gather(source, index), fw.pack(values[index])):
            assert isinstance(rows, kind) and len(rows) == 8
            assert_array_equal(all_rows(rows), dense)
            assert_array_equal(rows.take([5, 0]), dense[[5, 0]])
            assert_allclose(rows.inputs(w, 0.5), dense @ w + 0.5, atol=1e-5)
            assert_allclose(rows.weighted_sum(s), s @ dense, atol=1e-5)
            assert rows.weighted_sum(s).dtype == np.float64
            for n, kept in [(8, slice(None)), (4, slice(0, 8, 2)), (3, slice(0, 8, 3))]:
                assert_array_equal(all_rows(rows.thin(n)), dense[kept])
            assert len(rows.thin(1000)) == 8 and len(rows.thin(1)) == 1


class ArrayRows:
    """Training rows, as the estimators hand them to a solver."""

    def __init__(self, V):
        self.V = V

    def __len__(self):
        return len(self.V)

    def take(self, index):
        return self.V[index]

    def states(self, index):
        return self.take(index).astype(np.uint8)


SETTINGS = growth.Settings(
    objective="likelihood",
    unit_penalty=0.01,
    radius=None,
    alpha="count",
    away_steps=False,
    units_per_step=1,
    n_search_rows=1000,
    max_search_iter=20,
    n_gibbs_steps=3,
    n_bias_steps=1,
    n_corrective_steps=5,
    batch_size=20,
    learning_rate=0.1,
    averaging=0.0,
    tol=0.0,
)


def growing_state(rbm, states, data):
    means = solver.hidden_means(rbm, data).mean(axis=0)
    chains = solver.Chains(states, np.uint64(1), 1, 0)
    state = growth.init(rbm, len(states), data.mean(axis=0), means, 0)
    return state._replace(chains=chains)


def with_alpha(rbm, alpha):
    n_units = len(rbm.weights)
    return rbm._replace(unit_weights=np.full(n_units, alpha / n_units, np.float32))


@pytest.mark.parametrize("n_new", [1, 2])
@pytest.mark.parametrize("shift", [0.0, 0.4])
@pytest.mark.parametrize("n_units", [0, 1, 3])
@pytest.mark.parametrize("alpha", ["count", 2.5, "learn"])
def test_the_exact_gain_is_the_change_of_the_likelihood(alpha, n_units, shift, n_new):
    """Chains that enumerate the model; others' weights change with the temperature."""
    rbm, _ = random_model(n_units, 4, 3)
    if alpha != "count" and n_units:
        rbm = with_alpha(rbm, 2.5)
    model = twin(rbm)
    half, shares = multiset(model, 20000)
    data = random_states(50, 4, 5)
    state = growing_state(rbm, np.concatenate([half, half]), data)
    settings = SETTINGS._replace(alpha=alpha, units_per_step=n_new)
    rng = np.random.default_rng(0)
    searched, checked = growth._draw_samples(settings, state, ArrayRows(data), rng)
    assert len(searched.data) == len(checked.data) == 25
    both = np.concatenate([all_rows(searched.data), all_rows(checked.data)])
    assert_array_equal(np.sort(numbers(both)), np.sort(numbers(data)))
    objective = growth._objective(settings, state)
    units = [
        make_unit([1.0, -2.0, 0.5, 1.5], 0.3, shift),
        make_unit([-0.5, 0.5, 1.0, 0.0], -0.2, 2 * shift),
    ][:n_new]
    grown = growth._insert(settings, state, units, fw.pack(data))
    n_after = n_units + n_new
    expected_alpha = {"count": float(n_after), 2.5: 2.5}.get(alpha)
    if alpha == "learn":
        expected_alpha = 2.5 * n_after / n_units if n_units else float(n_new)
    assert_allclose(grown.alpha, expected_alpha)
    c = grown.rbm.unit_weights
    assert_allclose(c, expected_alpha / n_after, rtol=1e-6)
    means = [naive.logistic(data @ unit.weights + unit.bias).mean() for unit in units]
    assert_allclose(grown.hidden_offset[n_units:], c[-1] * np.array(means), rtol=1e-5)
    new = twin(grown.rbm)
    # exp of the change of the log probability is the ratio whose mean is taken
    V, p = naive.rbm_distribution(model)
    ratio = np.exp(
        naive.rbm_log_probability(new, V) - naive.rbm_log_probability(model, V)
    )
    bound = np.abs(shares - p) @ ratio / (p @ ratio) * 1.01 + 1e-5
    assert bound < 8e-3
    for samples in (searched, checked):
        none, gain = (
            one.value for one in fw.gains(objective, samples, units, (0.0, 1.0))
        )
        rows = all_rows(samples.data).astype(float)
        change = naive.rbm_mean_log_likelihood(new, rows)
        change -= naive.rbm_mean_log_likelihood(model, rows)
        assert_allclose(gain, change, atol=bound)
        assert abs(change) > 2 * bound
        if alpha == "count":
            assert_allclose(none, 0.0, atol=1e-6)
        if n_new == 1:
            assert_allclose(fw.gain(objective, samples, units[0]).value, gain)


@pytest.mark.parametrize("fractional", [False, True])
def test_the_removal_gain_is_the_change_of_the_likelihood(fractional):
    rbm, model = random_model(3, 4, 2, fractional=fractional)
    states, shares = multiset(model, 100000)
    V, p = naive.rbm_distribution(model)
    data = random_states(30, 4, 1)
    packed = fw.Samples(fw.pack(data), fw.pack(states))
    at_data, at_states = (
        naive.softplus(V @ model[0].T + model[1]) for V in (data, states)
    )
    total = fw.total_outputs(rbm, packed.data)
    assert_allclose(total, at_data.sum(axis=1), rtol=1e-5)
    linear, gains = fw.unit_gains(rbm, packed)
    expected = at_data.mean(axis=0) - at_states.mean(axis=0)
    assert_allclose(linear, expected, atol=1e-6)
    for unit in range(3):
        keep = np.arange(3) != unit
        new = twin(solver.select(rbm, keep))
        change = naive.rbm_mean_log_likelihood(new, data.astype(float))
        change -= naive.rbm_mean_log_likelihood(model, data.astype(float))
        ratio = np.exp(
            naive.rbm_log_probability(new, V) - naive.rbm_log_probability(model, V)
        )
        bound = np.abs(shares - p) @ ratio / (p @ ratio) * 1.01 + 1e-5
        assert bound < 1e-3
        assert_allclose(gains[unit], change, atol=bound)
    penalties = fw.penalties(objective_of("likelihood", unit_penalty=0.3), rbm)
    squares = (model[0] ** 2).sum(axis=1) + model[1] ** 2
    assert_allclose(penalties, 0.15 * model[3] * squares, rtol=1e-6)


@pytest.mark.parametrize("alpha", [1.5, 3.0])
def test_temperature_follows_the_gradient(alpha):
    """Newton's step for the mean log-likelihood by alpha, by finite differences."""
    rbm, _ = random_model(3, 4, 4)
    rbm = with_alpha(rbm, alpha)
    model = twin(rbm)
    states, _ = multiset(model, 20000)
    better = twin(with_alpha(rbm, 1.04 * alpha))
    data, _ = multiset(better, 20000)

    def likelihood(a):
        new = (*model[:3], np.full(3, a[0] / 3))
        return naive.rbm_mean_log_likelihood(new, data.astype(float))

    slope = naive.finite_differences(likelihood, [alpha], 1e-3)[0]
    ahead, behind, here = (likelihood([alpha + d]) for d in (1e-2, -1e-2, 0.0))
    curvature = (ahead + behind - 2.0 * here) / 1e-4
    assert slope > 0.0 > curvature
    settings = SETTINGS._replace(alpha="learn", n_search_rows=10**6)
    state = growing_state(rbm, states, data)
    rng = np.random.default_rng(0)
    new = growth._learn_alpha(settings, state, ArrayRows(data), rng)
    assert_allclose(new.alpha - alpha, -slope / curvature, rtol=0.03, atol=2e-3)
    assert_allclose(new.rbm.unit_weights, new.alpha / 3, rtol=1e-6)
    # a large step is cut off
    for rows, factor in [(np.ones((50, 4)), 1.2), (np.zeros((50, 4)), 0.8)]:
        # units that are on with all features
        on = solver.make_rbm(np.ones((3, 4)), np.zeros(3), np.zeros(4))
        state = growing_state(with_alpha(on, alpha), states, data)
        new = growth._learn_alpha(settings, state, ArrayRows(rows), rng)
        assert_allclose(new.alpha, factor * alpha)


@pytest.mark.parametrize("whole", [0, 1, 3])
def test_bounds_of_the_standard_proposal(whole):
    """Proposition 3.2 for the remainder r: log 2 (r - 1) <= log p - log p~ <= 0."""
    rest = np.float32(np.arange(16) / 16)
    c = np.append(whole + rest, np.float32([whole + 1.0]))
    x = np.linspace(-30.0, 30.0, 241, dtype=np.float32)[:, None].copy()
    x = np.concatenate([x, np.float32([[-1e3], [1e3]])])
    for weight in c:
        r = float(weight - np.floor(weight))
        total, excess = np.empty((2, len(x)))
        zero = np.zeros(1, np.float32)
        kernels.fractional_softplus(x, zero, np.float32([weight]), 1.0, total, excess)
        rounding = 1e-6 * (1.0 + np.abs(x[:, 0]))
        assert (excess <= rounding).all()
        assert (excess >= (r - 1.0) * np.log(2.0) - rounding).all()
        exact = naive.fractional_excess(x, zero, [weight], 1.0)
        assert (exact <= 1e-12).all()
        assert (exact >= (r - 1.0) * np.log(2.0) - 1e-12).all()
        # the bounds are reached: at 0, and far from it
        assert_allclose(exact[120], (r - 1.0) * np.log(2.0))
        if r:
            assert_allclose(exact[-2:], 0.0, atol=1e-9)
    # the proposition itself, for c in (0, 1]
    for weight in [1e-3, 0.2, 0.5, 0.9, 1.0]:
        value = x[:-2, 0].astype(float)
        middle = (1.0 + np.exp(value)) ** weight
        upper = 1.0 + np.exp(weight * value)
        assert (middle <= upper * (1 + 1e-12)).all()
        assert (middle >= upper / 2.0 ** (1.0 - weight) * (1 - 1e-12)).all()


# Growth.


def blocks_data(n=400, seed=0):
    """Two groups of features that are on or off together."""
    rng = np.random.default_rng(seed)
    V = np.repeat(rng.integers(0, 2, (n, 2)), 3, axis=1)
    noise = rng.random(V.shape) < 0.05
    return np.abs(V - noise).astype(np.float32)


def grow(settings, data, n_steps, seed=0, n_chains=200):
    rbm = solver.independent_units(BINARY.natural_parameters(data.mean(axis=0), len(data)))
    state = growth.init(rbm, n_chains, data.mean(axis=0), np.zeros(0), seed)
    infos = []
    for _ in range(n_steps):
        state, info = growth.step(settings, state, ArrayRows(data), seed)
        infos.append(info)
        assert all(array.dtype == np.float32 for array in state.rbm)
        assert state.chains.states.dtype == np.uint8
    return state, infos


@pytest.mark.parametrize("n_corrective_steps", [0, 5])
@pytest.mark.parametrize("alpha", ["count", "learn", 2.5])
@pytest.mark.parametrize("objective", KINDS)
def test_growth(objective, alpha, n_corrective_steps):
    data = blocks_data()
    settings = SETTINGS._replace(
        objective=objective, alpha=alpha, n_corrective_steps=n_corrective_steps
    )
    state, infos = grow(settings, data, 3)
    assert infos[0].change == 1 and infos[0].gain > 0.1
    n_units = len(state.rbm.weights)
    assert n_units == sum(info.change for info in infos)
    assert state.number == 3 and state.n_updates == 3 * n_corrective_steps
    assert_allclose(state.rbm.unit_weights.sum(), state.alpha, rtol=1e-6)
    if alpha == "count":
        assert state.alpha == n_units and solver.is_standard(state.rbm)
    if alpha == 2.5:
        assert_allclose(state.rbm.unit_weights, 2.5 / n_units, rtol=1e-6)
    assert len(state.hidden_offset) == n_units
    for info in infos:
        assert info.norm > 0.0 and 0.0 < info.acceptance <= 1.0
        assert 1.0 <= info.effective_sample_size <= 100.0
    # the units explain what independent features cannot; whole steps along the
    # linearised objective may overshoot
    if objective == "likelihood":
        assert likelihood_of(state, data) > independent_likelihood(data) + 0.2


def likelihood_of(state, data):
    return naive.rbm_mean_log_likelihood(twin(state.rbm), data.astype(float))


def independent_likelihood(data):
    base = BINARY.natural_parameters(data.mean(axis=0), len(data))
    model = twin(solver.independent_units(base))
    return naive.rbm_mean_log_likelihood(model, data.astype(float))


@pytest.mark.parametrize("seed", range(3))
def test_small_steps_along_the_linearised_objective_go_up(seed):
    """By what the first step promises, to first order in the unit's weight."""
    data = blocks_data(20000, seed)
    settings = SETTINGS._replace(
        objective="linearized",
        alpha=0.01,
        n_search_rows=10000,
        radius=2.0,
        n_bias_steps=0,
        n_corrective_steps=0,
    )
    # many chains and rows: the standard error of the promise is far below it
    state, infos = grow(settings, data, 1, seed, n_chains=20000)
    gain = likelihood_of(state, data) - independent_likelihood(data)
    assert gain > 0.0
    assert_allclose(gain, infos[0].gain, rtol=0.2)


@pytest.mark.parametrize("alpha", ["count", "learn"])
def test_growth_is_a_function_of_the_seed(alpha):
    data = blocks_data()
    settings = SETTINGS._replace(alpha=alpha)
    one, infos = grow(settings, data, 3, seed=4)
    two, again = grow(settings, data, 3, seed=4)
    for a, b in zip(one.rbm, two.rbm, strict=True):
        assert_array_equal(a, b)
    assert_array_equal(one.chains.states, two.chains.states)
    assert infos == again
    other, _ = grow(settings, data, 3, seed=5)
    assert not np.array_equal(other.rbm.visible, one.rbm.visible)


def arrays_of(state):
    return [*state.rbm, state.chains.states, state.visible_offset, state.hidden_offset]


@pytest.mark.parametrize("away_steps", [False, True])
@pytest.mark.parametrize("alpha", ["count", "learn", 2.5])
def test_growth_replaces_arrays(alpha, away_steps):
    data = blocks_data()
    settings = SETTINGS._replace(alpha=alpha, away_steps=away_steps)
    state, _ = grow(settings, data, 2)
    kept = [array.copy() for array in arrays_of(state)]
    rows = data.copy()
    for array in [*arrays_of(state), rows]:
        array.flags.writeable = False
    new, _ = growth.step(settings, state, ArrayRows(rows), 0)
    for array, before in zip(arrays_of(state), kept, strict=True):
        assert_array_equal(array, before)
    assert not np.array_equal(new.rbm.visible, state.rbm.visible)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("objective", KINDS)
def test_away_steps_take_out_the_unit_that_hurts(objective, seed):
    """A unit that forbids what the data show, among units that help."""
    data = blocks_data(seed=seed)
    state, _ = grow(SETTINGS, data, 2, seed)
    # under a strong penalty no new unit can make up for the bad one
    settings = SETTINGS._replace(
        objective=objective,
        away_steps=True,
        n_corrective_steps=0,
        n_gibbs_steps=20,
        unit_penalty=0.5,
    )
    n_units = len(state.rbm.weights)
    # it wants both groups to differ within themselves
    bad = np.float32([4.0, -4.0, 4.0, 4.0, -4.0, 4.0])
    rbm = solver.append(state.rbm, bad, 3.0)
    state = state._replace(
        rbm=rbm,
        average=rbm,
        alpha=n_units + 1.0,
        hidden_offset=np.append(state.hidden_offset, np.float32(0.5)),
    )
    new, info = growth.step(settings, state, ArrayRows(data), seed)
    assert info.change == -1 and info.gain > 0.0
    assert len(new.rbm.weights) == n_units
    assert not (new.rbm.weights == bad).all(axis=1).any()
    assert new.alpha == n_units and len(new.hidden_offset) == n_units
    before, after = (
        naive.rbm_mean_log_likelihood(twin(one.rbm), data.astype(float))
        for one in (state, new)
    )
    assert after > before
    # without away steps it stays
    plain, _ = growth.step(
        settings._replace(away_steps=False), state, ArrayRows(data), seed
    )
    assert (plain.rbm.weights == bad).all(axis=1).any()


def test_the_gap_bounds_what_a_model_can_gain():
    """At the found unit, the linearised objective less that of the present units."""
    data = blocks_data()
    state, _ = grow(SETTINGS._replace(n_corrective_steps=0), data, 2)
    rng = np.random.default_rng(0)
    searched, _ = growth._draw_samples(SETTINGS, state, ArrayRows(data), rng)
    objective = growth._objective(SETTINGS, state)
    unit = fw.search(
        objective, searched, fw.choose_start(objective, searched, rng), 20, 1e-9
    )
    gap, worst, harm = growth._judge_units(SETTINGS, state, objective, searched, unit)
    W, hidden, _, c = twin(state.rbm)

    def linear(w, b):
        at_data, at_model = (
            naive.softplus(all_rows(V) @ w + b).mean() for V in searched[:2]
        )
        return at_data - at_model - 0.005 * (w @ w + b * b)

    present = [linear(w, b) for w, b in zip(W, hidden, strict=True)]
    expected = state.alpha * linear(unit.weights.astype(float), unit.bias) - c @ present
    assert_allclose(gap, expected, rtol=1e-4, atol=1e-5)
    removal = fw.unit_gains(state.rbm, searched).removal
    assert worst == np.argmax(removal)
    assert_allclose(harm, removal.max(), rtol=1e-5)


def test_no_unit_is_added_that_gains_too_little():
    data = blocks_data()
    for objective in KINDS:
        settings = SETTINGS._replace(tol=50.0, objective=objective)
        state, infos = grow(settings, data, 1)
        assert infos[0].change == 0 and len(state.rbm.weights) == 0


def test_an_idle_unit_changes_no_probability():
    state, _ = grow(SETTINGS, blocks_data(), 1)
    more = growth.idle_unit(state.rbm)
    assert len(more.weights) == len(state.rbm.weights) + 1
    before, after = (naive.rbm_distribution(twin(rbm))[1] for rbm in (state.rbm, more))
    assert_allclose(after, before, rtol=1e-12)


@pytest.mark.parametrize("alpha", ["count", 2.5])
def test_corrective_steps_raise_the_likelihood(alpha):
    data = blocks_data()
    settings = SETTINGS._replace(alpha=alpha, n_corrective_steps=0, max_search_iter=2)
    state, _ = grow(settings, data, 2)
    batches = np.random.default_rng(0).integers(len(data), size=(150, 20))
    new = growth.correct(settings, state, ArrayRows(data), batches, 0)
    assert likelihood_of(new, data) > likelihood_of(state, data) + 0.02
    assert new.n_updates == state.n_updates + 150
    # as many chains as a batch has rows follow; the others wait
    moved = (new.chains.states != state.chains.states).any(axis=1)
    assert moved[:20].any() and not moved[20:].any()
    assert np.isin(new.chains.states, (0.0, 1.0)).all()
    assert_array_equal(new.rbm.unit_weights, state.rbm.unit_weights)


# Places of random numbers.


@pytest.fixture
def places(monkeypatch):
    """(seed, step, row) of each draw of a row of units, in order."""
    seen = []
    for name, position in [
        ("sample_units", 2),
        ("mean_and_sample_units", 2),
        ("anneal_hidden", 4),
        ("anneal_visible", 4),
        ("fractional_hidden", 4),
    ]:
        kernel = getattr(kernels, name)

        def record(*arguments, kernel=kernel, position=position):
            seed, step, first_row = arguments[position : position + 3]
            for row in range(first_row, first_row + len(arguments[0])):
                seen.append((int(seed), int(step), row))
            return kernel(*arguments)

        monkeypatch.setattr(kernels, name, record)
    return seen


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


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
def test_temperatures_share_no_random_numbers(places, fractional, reverse):
    rbm, _ = random_model(2, 3, fractional=fractional)
    annealing.ais(rbm, np.zeros(3), annealing.make_betas(5), 10, 0, reverse=reverse)
    # the chains at the start, and up and down at each of 4 temperatures
    assert len(places) >= 9 * 10
    assert len(set(places)) == len(places)
    del places[:]
    chains = annealing.annealed_chains(rbm, np.zeros(3), np.linspace(0, 1, 5), 10, 0)
    solver.gibbs(rbm, chains, 4)
    assert len(places) == 10 * (1 + 2 * 4 + 2 * 4)
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("alpha", ["count", 2.5])
def test_chains_and_corrective_steps_share_no_random_numbers(places, alpha):
    grow(SETTINGS._replace(alpha=alpha), blocks_data(), 2)
    # hidden means of a new unit are no draw: all of these are, of 20 rows at least
    assert len(places) > 20 * 20
    assert len(set(places)) == len(places)
