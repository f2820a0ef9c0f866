"""The proportions of the modes of a model, against modes that are known."""

import numpy as np
import pytest
from grids import first_by_default
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn._clock import Clock, Pace
from skbayesnn.rbm import model as rbm_model
from skbayesnn.rbm.likelihood.exact import log_partition
from skbayesnn.rbm.states import all_states
from skbayesnn.rbm.training import mode_correction
from skbayesnn.rbm.training.rows import Rows
from skbayesnn.rbm.training.start import base_of

N_FEATURES = 12
# States and temperatures: more of them tell the same of so few features.
N_STATES, N_BETAS = 2000, 120


def modes_in(fractions, n_rows=2000, seed=0):
    """Rows around two states that no Gibbs step leads between, and noise."""
    rng = np.random.default_rng(seed)
    centres = np.zeros((2, N_FEATURES), dtype=bool)
    centres[0, :6] = centres[1, 6:] = True
    rows = centres[rng.choice(2, n_rows, p=fractions)]
    return rows ^ (rng.random(rows.shape) < 0.02)


def model_of(fraction):
    """One unit: a mode by each of its states, the second one of this fraction."""
    weights = np.full((1, N_FEATURES), -7.0)
    weights[0, 6:] = 7.0
    visible = np.where(np.arange(N_FEATURES) < 6, 3.5, -3.5)
    # the log factors of both modes are equal but for the bias of the unit
    rbm = rbm_model.make_rbm(weights, np.zeros(1), visible)
    states = all_states(N_FEATURES)
    of_second = _share(rbm, states)
    hidden = np.log(fraction / (1.0 - fraction)) - np.log(of_second / (1.0 - of_second))
    return rbm_model.make_rbm(weights, np.full(1, hidden), visible)


def _share(rbm, states):
    p = np.exp(-rbm_model.free_energy(rbm, states) - log_partition(rbm))
    return p[states[:, 6:].sum(axis=1) > states[:, :6].sum(axis=1)].sum()


def log_likelihood(rbm, X):
    values = -rbm_model.free_energy(rbm, X.astype(np.float32))
    return values.mean() - log_partition(rbm)


def shift_for(rbm, X, seed=0):
    rows = Rows(X, 0.5)
    return mode_correction.find_shift(rbm, base_of(rows), rows, seed)


def draws_for(rows):
    base = base_of(rows)
    pace = Pace(Clock())
    return mode_correction.Draws(base, rows, N_BETAS, N_STATES, 0, None, pace)


@pytest.fixture(autouse=True, params=[False])
def fewer_states(request, monkeypatch):
    """Enough for a model of few features, of which nothing is listed by default."""
    if not request.param:
        listed = mode_correction.listed_states
        monkeypatch.setattr(listed, "can_list", lambda rbm: False)
    for name in ("_N_STATES", "_FEW_STATES"):
        monkeypatch.setattr(mode_correction, name, N_STATES)
    for name in ("_FEW_BETAS", "_MOST_BETAS"):
        monkeypatch.setattr(mode_correction, name, N_BETAS)


@pytest.mark.parametrize("fraction", [pytest.param(0.2, marks=pytest.mark.slow), 0.5])
@pytest.mark.parametrize("fewer_states", [False, True], indirect=True)
@pytest.mark.parametrize("seed", first_by_default(range(3)))
def test_modes_get_their_share(fraction, seed):
    X, rbm = (
        modes_in([0.75, 0.25], seed=seed),
        model_of(0.7 if fraction == 0.2 else 0.5),
    )
    shift = shift_for(rbm, X, seed)
    moved = rbm._replace(visible=(rbm.visible + shift.biases).astype(np.float32))
    states = all_states(N_FEATURES)
    assert _share(rbm, states) > 0.49
    assert_allclose(_share(moved, states), 0.25, atol=0.04)
    gain = log_likelihood(moved, X) - log_likelihood(rbm, X)
    assert_allclose(shift.gain, gain, atol=3.0 * shift.error + 0.01)
    assert gain > 0.1


@pytest.mark.parametrize("fewer_states", [False, True], indirect=True)
@pytest.mark.parametrize("seed", first_by_default(range(5)))
def test_a_model_that_agrees_stays(seed):
    assert shift_for(model_of(0.25), modes_in([0.75, 0.25], seed=seed), seed) is None


@pytest.mark.parametrize("fewer_states", [True], indirect=True)
def test_listed_states_need_no_annealing(monkeypatch):
    """Their shares are those of the model within chance, in both modes."""
    rbm, states = model_of(0.3), all_states(N_FEATURES)
    for name in ("_annealed", "_from_rows"):
        monkeypatch.setattr(mode_correction, name, lambda *a: pytest.fail("estimated"))
    rows = Rows(modes_in([0.75, 0.25]), 0.5)
    sample = draws_for(rows).sample(rbm, N_STATES, 0)
    assert sample.size == pytest.approx(2000) and sample.error < 1e-6
    assert sample.log_partition == pytest.approx(log_partition(rbm))
    p = np.exp(-rbm_model.free_energy(rbm, states) - log_partition(rbm))
    error = np.sqrt(p @ states * (1.0 - p @ states) / 2000)
    assert (np.abs(sample.states.mean(axis=0) - p @ states) < 5.0 * error).all()
    assert shift_for(model_of(0.7), rows.X).gain > 0.1


def test_few_states_tell_where_nothing_is_to_be_had(monkeypatch):
    rng = np.random.default_rng(0)
    states = (rng.random((4000, N_FEATURES)) < 0.3).astype(float)

    def few(n):
        return mode_correction._sample(states[:n], np.zeros(n))

    rows = states[2000:].mean(axis=0)
    for n in (100, 2000):
        # what chance adds to the means is no gain
        assert not mode_correction._may_gain(few(n), rows, 2000)
        assert mode_correction._may_gain(few(n), rows + 0.2, 2000)
    # then no more are drawn
    X, drawn = modes_in([0.75, 0.25]), []
    alike = mode_correction._sample(X, np.zeros(len(X)))

    def like_rows(rbm, base, amount, *others):
        drawn.append(amount)
        return alike

    monkeypatch.setattr(mode_correction, "_N_STATES", 8000)
    monkeypatch.setattr(mode_correction, "_annealed", like_rows)
    monkeypatch.setattr(mode_correction, "_from_rows", lambda *a: alike)
    assert shift_for(model_of(0.7), X) is None
    assert drawn == [(N_STATES, N_BETAS)]


@pytest.mark.parametrize("excess, stays", [(0.4, False), (0.6, True)])
def test_a_shift_that_makes_other_states_likely_does_not_count(
    excess, stays, monkeypatch
):
    """States that no sample had show in the partition function of the shifted model."""
    rbm = model_of(0.7)

    def exactly(sample):
        def drawn(self, model, *others):
            by = 0.0 if model is rbm else excess
            found = sample(self, model, *others)
            return found._replace(log_partition=log_partition(model) + by)

        return drawn

    for name in ("sample", "by_rows"):
        sample = getattr(mode_correction.Draws, name)
        monkeypatch.setattr(mode_correction.Draws, name, exactly(sample))
    assert (shift_for(rbm, modes_in([0.75, 0.25])) is None) == stays


def test_units_without_weights_and_constant_features():
    X = np.zeros((50, 3), dtype=bool)
    rbm = rbm_model.make_rbm(np.zeros((2, 3)), np.zeros(2), np.full(3, -200.0))
    assert shift_for(rbm, X) is None


@pytest.mark.slow
def test_weights_of_few_states_are_not_believed(monkeypatch):
    def few(sample):
        log_weights = sample.log_weights.copy()
        log_weights[:3] += 50.0
        log_weights -= np.logaddexp.reduce(log_weights)
        return sample._replace(log_weights=log_weights)

    X = modes_in([0.75, 0.25])
    for name in ("_annealed", "_from_rows"):
        assert shift_for(model_of(0.7), X) is not None
        draw = getattr(mode_correction, name)
        monkeypatch.setattr(mode_correction, name, lambda *a, draw=draw: few(draw(*a)))
    assert shift_for(model_of(0.7), X) is None
    # whatever they seem to say
    for name in ("_may_gain", "_may_be_enough", "_is_certain"):
        monkeypatch.setattr(mode_correction, name, lambda *a: True)
    monkeypatch.setattr(mode_correction, "_misses_modes", lambda *a: False)
    monkeypatch.setattr(mode_correction, "_MOST_MISSED", np.inf)
    assert shift_for(model_of(0.7), X) is None
    monkeypatch.setattr(mode_correction, "_LEAST_SAMPLE", 0.0)
    assert shift_for(model_of(0.7), X) is not None


def test_what_a_shift_gains():
    """Of two states, -1 and 1, that are equally likely: a t - log cosh a."""
    sample = mode_correction._sample(np.array([[-1.0], [1.0]]), np.zeros(2))
    for a, t in [(0.5, 0.2), (-1.5, 0.4), (3.0, 1.0)]:
        gain, _ = mode_correction._gain(sample, np.array([a]), np.array([t]))
        assert gain == pytest.approx(a * t - np.log(np.cosh(a)))
    assert mode_correction._best(sample, np.array([0.3])) == pytest.approx(
        np.arctanh(0.3), rel=5e-3
    )


def sample_of(weights, level, states=None):
    """By the weights of its states, and the log partition function."""
    states = np.zeros((len(weights), 2)) if states is None else states
    sample = mode_correction._sample(states, np.log(weights))
    return sample._replace(log_partition=level)


def test_the_larger_mass_counts_where_it_is_clear():
    """What rows tell of a model had missed 15 % of its mass, and its means by .1."""
    even, uneven = sample_of(np.ones(100), 5.0), sample_of(np.arange(1.0, 101.0), 5.0)
    assert uneven.size < even.size == pytest.approx(100.0)
    clearer = mode_correction._clearer
    assert clearer(uneven, even) is even
    # by four standard errors of both
    assert uneven.error == pytest.approx(np.sqrt(1.0 / uneven.size - 0.01))
    assert even.error == pytest.approx(0.0, abs=1e-6)
    chance = 4.0 * uneven.error
    alike = uneven._replace(log_partition=5.0 + 0.9 * chance)
    assert clearer(alike, even) is even
    higher = uneven._replace(log_partition=5.0 + 1.1 * chance)
    assert clearer(higher, even) is clearer(even, higher) is higher
    # of a region, errors are those of all states that were drawn
    part = mode_correction._within(even, np.arange(100) < 25)
    assert part.log_partition == pytest.approx(5.0 + np.log(0.25))
    assert part.error == pytest.approx(np.sqrt(1.0 / 25.0 - 0.01))
    nothing = mode_correction._within(even, np.zeros(100, dtype=bool))
    assert nothing.size == 0.0 and clearer(nothing, part) is part


def test_each_sample_counts_where_it_has_met_more():
    """One misses a mode, and one a part of the other, where few states have weights."""
    n = 400
    one, other = np.zeros((n, 2)), np.zeros((n, 2))
    other[200:] = 1.0
    annealed = sample_of(np.ones(n), np.log(3.0), one)
    weights = np.where(np.arange(n) < 200, 1e-6, 1.0)
    weights[0] = 100.0
    by_rows = sample_of(weights, np.log(3.0), other)
    for pair in ((annealed, by_rows), (by_rows, annealed)):
        best = mode_correction._better(*pair)
        # 3 of the first mode, by annealing; 200 of 300 thirds of the second one
        assert np.exp(best.log_partition) == pytest.approx(5.0, rel=1e-4)
        assert np.exp(best.log_weights) @ best.states[:, 0] == pytest.approx(0.4)
        assert best.size > 500.0 and len(best.states) == 600
    assert mode_correction._better(annealed, None) is annealed


def test_a_sample_without_a_mode_of_the_rows_is_not_believed(monkeypatch):
    X, rbm = modes_in([0.6, 0.4]), model_of(0.7)
    assert shift_for(rbm, X) is not None
    draw = mode_correction._better

    def without_second(*samples):
        sample = draw(*samples)
        second = sample.states[:, 6:].sum(axis=1) > sample.states[:, :6].sum(axis=1)
        log_weights = np.where(second, -np.inf, sample.log_weights)
        log_weights -= np.logaddexp.reduce(log_weights)
        return sample._replace(log_weights=log_weights)

    monkeypatch.setattr(mode_correction, "_better", without_second)
    monkeypatch.setattr(
        mode_correction, "_shift_by", lambda *a: pytest.fail("believed")
    )
    assert shift_for(rbm, X) is None


def test_a_fit_shifts_what_its_chains_do_not_see(monkeypatch, capsys):
    """The state of a trained model is moved, and so is what goes on from it."""
    X = modes_in([0.75, 0.25], 400)
    found = []

    def shift(rbm, base, rows, *others):
        found.append(len(rows))
        return mode_correction.Shift(np.linspace(0.0, 0.1, N_FEATURES), 0.05, 0.01)

    def fit():
        return ContrastiveDivergenceRBM(
            3, max_iter="auto", max_updates=150, random_state=0, verbose=True
        ).fit(X)

    monkeypatch.setattr(mode_correction, "find_shift", lambda *arguments: None)
    plain = fit()
    assert "modes in proportion" not in capsys.readouterr().out
    monkeypatch.setattr(mode_correction, "find_shift", shift)
    model = fit()
    # all rows, also those that were held out
    assert found == [400]
    assert "modes in proportion to the rows: 0.05 nats" in capsys.readouterr().out
    assert_array_equal(model.components_, plain.components_)
    moved = model.intercept_visible_ - plain.intercept_visible_
    assert_allclose(moved, np.linspace(0.0, 0.1, N_FEATURES), atol=1e-5)


@pytest.fixture
def runs(monkeypatch):
    """Temperatures and states of each annealing."""
    forward, runs = mode_correction.annealing.run_forward, []

    def counted(path, n_states, *others):
        runs.append((len(path.betas) - 1, n_states))
        return forward(path, n_states, *others)

    monkeypatch.setattr(mode_correction.annealing, "run_forward", counted)
    return runs


def test_no_sample_is_drawn_that_would_end_too_late(monkeypatch):
    X, rbm, taken = modes_in([0.75, 0.25]), model_of(0.7), []
    rows, annealed = Rows(X, 0.5), mode_correction._annealed

    def timed(rbm, base, amount, *others):
        taken.append(float(np.prod(amount)))
        return annealed(rbm, base, amount, *others)

    class Hands:
        """A clock of which an annealing takes as long as it has work."""

        def __init__(self, max_time):
            self.max_time = max_time

        @property
        def passed(self):
            return sum(taken)

    def find(max_time):
        taken.clear()
        clock = Hands(max_time)
        return mode_correction.find_shift(rbm, base_of(rows), rows, 0, None, clock)

    monkeypatch.setattr(mode_correction, "_annealed", timed)
    assert find(np.inf).gain > 0.1
    needed = np.cumsum(taken)
    assert len(needed) > 1
    for n, whole in enumerate(needed):
        assert find(whole - 1.0) is None
        # how long the first one takes is not known before
        assert len(taken) == max(n, 1)
    assert find(needed[-1]).gain > 0.1
    assert find(-1.0) is None and not taken


def test_uneven_weights_get_more_temperatures(runs):
    """As many as make the variance of the log weights one, by that of the first."""
    X, rbm = modes_in([0.75, 0.25]), model_of(0.7)
    first = draws_for(Rows(X, 0.5))._replace(n_betas=20)
    uneven = first.sample(rbm, N_STATES, 0)
    assert uneven.size < 0.25 * N_STATES
    runs.clear()
    draws, few = mode_correction._first_draws(rbm, first)
    assert few.size > uneven.size
    n_betas = [k for k, n in runs if n == N_STATES]
    assert n_betas[:2] == [20, int(-20.0 * np.log(uneven.size / N_STATES))]
    assert n_betas[-1] == draws.n_betas <= N_BETAS


def test_large_models_get_fewer_states_and_no_more_temperatures(monkeypatch, runs):
    X, rbm = modes_in([0.75, 0.25]), model_of(0.7)
    monkeypatch.setattr(mode_correction, "_ENOUGH", 1.0)
    monkeypatch.setattr(mode_correction, "_MOST_BETAS", N_BETAS + 1)
    shift_for(rbm, X)
    assert (N_BETAS + 1, N_STATES) in runs
    runs.clear()
    # more temperatures would be too much
    most = N_BETAS * 1000 * rbm.weights.size
    monkeypatch.setattr(mode_correction, "_MOST_WORK", most)
    shift_for(rbm, X)
    assert {n for _, n in runs} == {250, 1000}
    assert {n for n, _ in runs} == {N_BETAS // 4, N_BETAS}
    runs.clear()
    monkeypatch.setattr(mode_correction, "_MOST_WORK", 1.0)
    shift_for(rbm, X)
    assert {n for _, n in runs} == {125, 500}


def test_states_double_while_they_tell_of_a_gain(monkeypatch, runs):
    """A gain that few of them make certain is tested by few others."""
    monkeypatch.setattr(mode_correction, "_N_STATES", 7000)
    shift = shift_for(model_of(0.7), modes_in([0.75, 0.25]))
    assert 2.0 * mode_correction._CERTAIN * shift.error < 0.5 * shift.gain
    # the last two are the test, and the shifted model
    assert [n for k, n in runs if k == N_BETAS] == [2000, 2000, 3000, 2000, 2000]


def test_states_that_test_a_gain():
    """The standard error is half of what is asked, if the gain is what it seems."""
    shift = mode_correction.Shift(np.zeros(1), 0.3, 0.05)
    assert mode_correction._n_to_test(shift, 8000) == 8000
    assert mode_correction._n_to_test(shift._replace(error=0.03), 8000) == 2880
    assert mode_correction._n_to_test(shift._replace(error=0.001), 8000) == 2000
    assert mode_correction._n_to_test(shift._replace(error=0.001), 500) == 500
    assert mode_correction._n_to_test(shift._replace(gain=0.0), 8000) == 8000


def test_states_whose_weights_few_have_are_no_reason_for_more(monkeypatch):
    """One of 8,000 states by rows had all the weight, and seemed to gain 30 nats."""
    X, rbm = modes_in([0.75, 0.25]), model_of(0.7)
    one = mode_correction._sample(X[:400], np.where(np.arange(400) < 1, 0.0, -50.0), 99)
    monkeypatch.setattr(mode_correction, "_from_rows", lambda *a: one)
    draws = draws_for(Rows(X, 0.5))._replace(n_states=4 * N_STATES)
    few = draws.sample(rbm, N_STATES, 0)
    monkeypatch.setattr(mode_correction, "_annealed", lambda *a: pytest.fail("drawn"))
    monkeypatch.setattr(mode_correction, "_may_gain", lambda *a: True)
    assert mode_correction._grown(rbm, draws, few, X.mean(axis=0)) is None


def test_samples_are_joined_by_what_they_weigh():
    rng = np.random.default_rng(0)
    log_weights = rng.normal(size=30)
    parts = [
        mode_correction._sample(np.full((len(part), 1), k), part, 2.0)
        for k, part in enumerate((log_weights[:10], log_weights[10:]))
    ]
    joined = mode_correction._joined(*parts)
    weights = np.exp(log_weights)
    assert joined.log_partition == pytest.approx(2.0 + np.log(weights.mean()))
    assert_allclose(np.exp(joined.log_weights), weights / weights.sum())
    assert_array_equal(joined.states[:, 0], np.repeat([0.0, 1.0], [10, 20]))
