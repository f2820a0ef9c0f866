"""Annealed importance sampling against enumeration of all states."""

import naive
import numpy as np
import pytest
from grids import each_value_once
from numpy.testing import assert_allclose, assert_array_equal
from rbm_models import (
    CLAMPED,
    FALSE_ALARM,
    base_of,
    check_distribution,
    check_mean,
    clamp_of,
    exact_draws,
    random_model,
    random_states,
)
from scipy.special import ndtri

from skbayesnn.rbm import model as rbm_model
from skbayesnn.rbm.likelihood import annealing, estimates


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


def random_small_model(number):
    rng = np.random.default_rng((77, number))
    n_units, n_features = rng.integers(1, 9, 2)
    scale = np.exp(rng.uniform(np.log(0.1), np.log(3.0)))
    return random_model(n_units, n_features, number, scale, number % 4 == 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_models", "reverse"),
    [
        (100, False),
        pytest.param(200, False, marks=pytest.mark.slow),
        pytest.param(200, True, marks=pytest.mark.slow),
    ],
)
def test_intervals_of_ais_hold_the_exact_value(n_models, reverse):
    """In at least 95 % of random models, weights of 0.1 to 3."""
    held, errors = 0, []
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_seeds", "fractional"),
    [
        (200, False),
        (400, False),
        (400, True),
    ],
)
def test_forward_and_reverse_means_hold_the_exact_value(n_seeds, fractional):
    """log of a mean is concave: both err, to opposite sides; 6 tests of 1e-5."""
    rbm, model = random_model(6, 8, 3, scale=2.5, fractional=fractional)
    exact = naive.rbm_log_partition(model)
    base, betas = np.zeros(8), annealing.make_betas(6)
    for sign, reverse in [(-1.0, False), (1.0, True)]:
        values = [
            annealing.ais(rbm, base, betas, 2, seed, reverse=reverse).log_partition
            for seed in range(n_seeds)
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
    log_weights, _, states, _ = annealing._forward(path, np.uint64(3), 0, 20000)
    assert states.dtype == np.uint8
    ratio = np.exp(log_weights + annealing.base_log_partition(rbm, base) - exact)
    check_mean(ratio, 1.0)
    assert ratio.std() > 0.01
    # weighted, the states are draws from the model
    V, p = naive.rbm_distribution(model)
    check_mean(ratio[:, None] * (states - p @ V), np.zeros(4))


@pytest.mark.slow
@pytest.mark.parametrize("fractional", [False, True])
def test_reverse_weights_of_ais_are_unbiased(fractional):
    """Their mean is the inverse ratio; 2 tests of 1e-5."""
    rbm, model = random_model(3, 4, 1, fractional=fractional)
    base = np.array([0.5, -0.5, 0.0, 1.0], dtype=np.float32)
    states = exact_draws(model, 20000, dtype=np.uint8)
    path = annealing.make_path(rbm, base, annealing.make_betas(5)[::-1])
    log_weights = annealing._reverse(path, states, np.uint64(3), 0).log_weights
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
        return annealing._forward(path, np.uint64(2), first, n)

    whole = run(0, 60)
    joined = annealing._joined([run(0, 10), run(10, 37), run(47, 13)])
    assert_array_equal(joined.states, whole.states)
    # products of another shape may round differently
    assert_allclose(joined.log_weights, whole.log_weights, atol=1e-4)
    assert_allclose(joined.works, whole.works, atol=1e-4)
    assert joined.step == whole.step


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n_units", [0, 6])
def test_small_models_take_the_same_moves(n_units, reverse):
    rbm, _ = random_model(n_units, 9)
    # as of a model that was loaded, or cut
    rbm = rbm._replace(weights=np.asfortranarray(rbm.weights))
    path = annealing.make_path(rbm, np.linspace(-1.0, 1.0, 9), [0.0, 0.2, 0.7, 1.0])
    if reverse:
        path = path._replace(betas=path.betas[::-1])
    place = np.uint64(4), 3, 2
    v, slope = annealing._start(path, 40, (np.uint64(3), 0, 2))
    before = v.copy(), slope.copy()
    weights, expected = np.full(40, 0.5), np.full(40, 0.5)
    new = annealing._small_moves(path, v, slope, place, weights)
    old = annealing._moves(path, v, slope, place, expected)
    assert_array_equal(new[0], old[0])
    assert_array_equal(new[1], old[1])
    assert_allclose(weights, expected, rtol=1e-12)
    assert (new[0] != v).any()
    assert_array_equal(v, before[0])
    assert_array_equal(slope, before[1])


def test_what_a_small_model_is():
    rbm, _ = random_model(6, 9)
    fractional, _ = random_model(6, 9, fractional=True)
    v = np.zeros((40, 9), np.uint8)

    def is_small(rbm, v, clamp=None):
        path = annealing.make_path(rbm, np.zeros(9), [0.0, 1.0], clamp)
        return annealing._is_small(path, v)

    assert is_small(rbm, v)
    assert not is_small(fractional, v)
    assert not is_small(rbm, v.astype(np.float32))
    assert not is_small(rbm, np.zeros((4000, 9), np.uint8))
    assert not is_small(rbm, v, rbm_model.Clamp(v > 0, v.astype(np.float32)))


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
    log_weights, works, _, step = annealing._anneal(
        annealing.make_path(rbm, base, [0.0, 1.0]),
        V.astype(np.uint8),
        V @ (rbm.visible - base),
        (np.uint64(0), 0, 0),
    )
    expected = naive.rbm_log_probability(model, V) - V @ base - 3 * np.log(2.0)
    assert_allclose(log_weights, expected, atol=1e-5)
    assert_array_equal(works, log_weights[None])
    assert step == 1


def test_works_of_the_parts():
    """Each part has its own; together they are the log weights."""
    rbm, _ = random_model(5, 7)
    betas = annealing.make_betas(61)
    path = annealing.make_path(rbm, np.zeros(7), betas)
    run = annealing.run_forward(path, 30, 0)
    assert run.works.shape == (annealing.N_PARTS, 30)
    assert_allclose(run.works.sum(axis=0), run.log_weights, atol=1e-9)
    # the first 3 of 60 steps are those of a shorter run
    start = path._replace(betas=betas[:4])
    assert_allclose(annealing.run_forward(start, 30, 0).log_weights, run.works[0])


def test_both_directions_are_those_of_single_runs():
    rbm, _ = random_model(5, 7)
    base, betas = np.zeros(7), annealing.make_betas(41)
    path = annealing.make_path(rbm, base, betas)
    pair = annealing.run_both(path, 30, 7)
    offset = annealing.base_log_partition(rbm, base)
    for reverse, weights in enumerate([pair.forward, pair.reverse]):
        single = annealing.ais(rbm, base, betas, 30, 7, reverse=bool(reverse))
        assert estimates.summarise(weights, offset, 1.0 - 2.0 * reverse) == single
    assert_array_equal(pair.betas, betas)
    starts = annealing.resample(*annealing.run_forward(path, 30, 7)[::2], 7)
    ahead = annealing.run_forward(path, 30, 7).works
    back = annealing.run_back(path, starts, 7).works
    expected = [
        np.sqrt((np.var(a) + np.var(b)) / 2.0)
        for a, b in zip(ahead, back[::-1], strict=True)
    ]
    assert_allclose(pair.lengths, expected)


def test_resampling_is_in_proportion_to_weights():
    states = np.arange(5.0)[:, None]
    weights = np.array([0.1, 0.0, 0.4, 0.3, 0.2])
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights) + 1000.0
    drawn = np.stack(
        [annealing.resample(log_weights, states, seed)[:, 0] for seed in range(400)]
    )
    for state, weight in enumerate(weights):
        counts = (drawn == state).sum(axis=1)
        # systematic: next to the expected count, and exact on average
        assert (np.abs(counts - 5 * weight) < 1.0 + 1e-9).all()
        check_mean(counts[:, None].astype(float), [5 * weight])


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    *each_value_once(fractional=[False, True], clamped=[False, True])
)
def test_annealed_chains(fractional, clamped, seed):
    """Led slowly they end at the model, held bits in place; 8 tests of 1e-5."""
    rbm, model = random_model(3, 4, seed, fractional=fractional)
    betas = annealing.make_betas(150)
    chains, _ = annealing.annealed_chains(
        rbm, np.zeros(4), betas, 4000, seed, clamp_of(clamped)
    )
    p = naive.rbm_distribution(model)[1]
    if clamped:
        p = naive.rbm_conditional(model, *CLAMPED)[1]
        mask, values = CLAMPED
        assert (chains.states[:, mask] == values[mask]).all()
    # some steps at the model take away what annealing left
    chains, _ = rbm_model.gibbs(rbm, chains, 30, clamp_of(clamped))
    check_distribution(chains.states, p)


@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
def test_annealed_chains_tell_the_mass_of_what_is_held(fractional, clamped):
    rbm, model = random_model(3, 4, fractional=fractional)
    betas, base = annealing.make_betas(20), np.linspace(-1.0, 1.0, 4)
    _, log_masses = annealing.annealed_chains(
        rbm, base, betas, 4000, 0, clamp_of(clamped)
    )
    V = naive.all_states(4)
    if clamped:
        mask, values = CLAMPED
        V = V[(V[:, mask] == np.asarray(values)[mask]).all(axis=1)]
    free = -rbm_model.free_energy(rbm, V.astype(np.float32))
    expected = np.log(np.exp(free).sum())
    masses = np.exp(log_masses - expected)
    assert abs(masses.mean() - 1.0) < 5.0 * masses.std() / np.sqrt(4000)
    assert masses.std() < 1.0


@pytest.mark.parametrize("fractional", [False, True])
def test_annealed_chains_with_a_clamp_for_each(fractional):
    rbm, _ = random_model(3, 6, fractional=fractional)
    mask, values = random_states(40, 6) > 0.5, random_states(40, 6, 1, np.uint8)
    clamp = rbm_model.Clamp(mask, values)
    chains, _ = annealing.annealed_chains(
        rbm, np.zeros(6), annealing.make_betas(10), 40, 0, clamp
    )
    assert_array_equal(chains.states[mask], values[mask])
    assert np.isin(chains.states, (0.0, 1.0)).all()
    assert not np.array_equal(chains.states[~mask], values[~mask])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
def test_temperatures_share_no_random_numbers(places, fractional, reverse):
    rbm, _ = random_model(2, 3, fractional=fractional)
    annealing.ais(rbm, np.zeros(3), annealing.make_betas(5), 10, 0, reverse=reverse)
    # the chains at the start, and up and down at each of 4 temperatures
    assert len(places) >= 9 * 10
    assert len(set(places)) == len(places)
    del places[:]
    chains, _ = annealing.annealed_chains(rbm, np.zeros(3), np.linspace(0, 1, 5), 10, 0)
    rbm_model.gibbs(rbm, chains, 4)
    assert len(places) == 10 * (1 + 2 * 4 + 2 * 4)
    assert len(set(places)) == len(places)
