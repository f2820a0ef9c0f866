"""Growth: gains are changes of the likelihood, steps raise it."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rbm_models import (
    KINDS,
    SETTINGS,
    ArrayRows,
    all_rows,
    blocks_data,
    grow,
    growing_state,
    independent_likelihood,
    likelihood_of,
    make_unit,
    multiset,
    numbers,
    objective_of,
    random_model,
    random_states,
    twin,
    with_alpha,
)

from skbayesnn.rbm import model as rbm_model
from skbayesnn.rbm.kernels import units as kernels
from skbayesnn.rbm.learning import growth
from skbayesnn.rbm.learning import unit_search as fw


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
    objective = growth._objective(settings, state, settings.unit_penalty)
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
        # what takes the place of the chains is drawn
        assert (samples.conditionals is None) == (alpha != "count")
        samples = samples._replace(conditionals=None)
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
        new = twin(rbm_model.select(rbm, keep))
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
        on = rbm_model.make_rbm(np.ones((3, 4)), np.zeros(3), np.zeros(4))
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
        assert state.alpha == n_units and rbm_model.is_standard(state.rbm)
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


@pytest.mark.parametrize("objective", KINDS)
def test_the_penalty_is_the_strongest_that_costs_little(objective):
    """On other samples: of all strengths at first, then of the last and a neighbour."""
    settings = SETTINGS._replace(objective=objective, unit_penalty=None)
    data = blocks_data()
    state, infos = grow(settings, data, 6)
    tried = growth._PENALTIES
    strengths = [info.unit_penalty for info in infos]
    assert strengths[0] in tried and state.unit_penalty == strengths[-1]
    ratios = np.divide(strengths[1:], strengths[:-1])
    near = np.array([1.0, growth._PENALTY_FACTOR, 1.0 / growth._PENALTY_FACTOR])
    assert all(np.isclose(near, ratio).any() for ratio in ratios)
    assert min(tried) <= min(strengths) <= max(strengths) <= max(tried)
    if objective == "likelihood":
        given = [
            grow(settings._replace(unit_penalty=one), data, 1)[1][0].gain
            for one in tried
        ]
        # the strongest of those that find nearly as much
        assert (1 - growth._HARDLY) * max(given) <= infos[0].gain <= max(given)
        stronger = [
            gain for one, gain in zip(tried, given, strict=True) if one > strengths[0]
        ]
        assert all(gain < (1 - growth._HARDLY) * max(given) for gain in stronger)
        assert likelihood_of(state, data) > independent_likelihood(data) + 0.2


def test_a_penalty_that_is_given_stays():
    _, infos = grow(SETTINGS, blocks_data(), 3)
    assert {info.unit_penalty for info in infos} == {SETTINGS.unit_penalty}


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
    return [
        *state.rbm[:4],
        state.chains.states,
        state.visible_offset,
        state.hidden_offset,
    ]


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
    rbm = rbm_model.append(state.rbm, bad, 3.0)
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
    objective = growth._objective(SETTINGS, state, SETTINGS.unit_penalty)
    unit = fw.search(
        objective, searched, fw.choose_start(objective, searched, rng), 20, 1e-9
    )
    gap, worst, harm = growth._judge_units(state, objective, searched, unit)
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


@pytest.mark.parametrize("alpha", ["count", 2.5])
def test_chains_and_corrective_steps_share_no_random_numbers(places, alpha):
    grow(SETTINGS._replace(alpha=alpha), blocks_data(), 2)
    # hidden means of a new unit are no draw: all of these are, of 20 rows at least
    assert len(places) > 20 * 20
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("n_chains", [4, 5, 9, 10, 11, 31])
def test_another_number_of_chains_keeps_the_halves_apart(n_chains):
    rbm, _ = random_model(2, 4)
    # numbers in place of states tell where each comes from
    states = np.arange(36, dtype=np.uint8).reshape(9, 4)
    state = growing_state(rbm, states, random_states(5, 4))
    new = growth.with_chains(state, n_chains).chains.states
    assert len(new) == n_chains
    half = n_chains // 2
    first, second = numbers_of(new[:half]), numbers_of(new[half:])
    assert_array_equal(first, np.arange(half) % 4)
    assert_array_equal(second, 4 + np.arange(n_chains - half) % 5)


def numbers_of(states):
    return states[:, 0] // 4
