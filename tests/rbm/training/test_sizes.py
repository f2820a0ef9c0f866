"""Which sizes and starts are compared, how long, and which of them is chosen."""

from types import SimpleNamespace

import numpy as np
import pytest
from training_points import adapting, path_of, point, settings_of, trial_of

from skbayesnn._clock import Clock
from skbayesnn.rbm import model as rbm_model
from skbayesnn.rbm.learning import contrastive
from skbayesnn.rbm.training import adaptive, gains, sizes
from skbayesnn.rbm.training.rows import Rows
from skbayesnn.rbm.training.trials import Trial


@pytest.mark.parametrize(
    "values, expected",
    [
        # of a gain of 20 nats, 0.2 make no difference
        ([-40.0, -31.0, -30.3, -30.1, -30.0, -30.2, -31.0], 8),
        ([-40.0, -30.2, -30.1, -30.0, -30.2, -30.2, -31.0], 2),
        ([-40.0, -31.0, -30.8, -30.7, -30.6, -30.5, -30.0], 64),
        # a gain of nothing
        ([-50.0, -50.0, -50.0, -50.0, -50.0, -50.0, -50.0], 1),
    ],
)
def test_the_smallest_of_sizes_that_are_hardly_behind_wins(values, expected):
    trials = [trial_of(2**k, value) for k, value in enumerate(values)]
    assert sizes._chosen(trials).n_units == expected


def test_a_tree_has_to_be_ahead_by_more_than_chance(monkeypatch):
    """Few rows may lack just the ones that no tree explains."""
    monkeypatch.setattr(contrastive, "model", lambda update, state: state)
    V = np.random.default_rng(0).random((25, 6)) < 0.5
    rows = Rows(V, 0.5)
    # rows of ones are more likely by the first model, others by the second
    one, other = (rbm_model.independent_units(np.full(6, bias)) for bias in (1.0, -1.0))
    error = 2.0 * V.sum(axis=1).std(ddof=1) / 5.0
    trials = [
        trial_of(4, score)._replace(
            outcome=SimpleNamespace(best=SimpleNamespace(state=rbm, validation=score))
        )
        for rbm, score in [(one, -3.0 + 0.9 * error), (other, -3.0)]
    ]
    job = SimpleNamespace(validation=rows)
    assert not sizes._leads(settings_of(), job, *trials)
    best = SimpleNamespace(state=one, validation=-3.0 + 1.1 * error)
    ahead = trials[0]._replace(outcome=SimpleNamespace(best=best))
    assert sizes._leads(settings_of(), job, ahead, trials[1])


def test_the_next_one_wins_if_all_still_gain_much():
    """Large ones learn more slowly at first: a tenth of the last gain says nothing."""
    trials = [
        trial_of(16, -32.0, 2.0),
        trial_of(32, -30.0, 4.0),
        trial_of(64, -30.3, 4.0),
    ]
    assert sizes._chosen([*trials, trial_of(128, -30.5, 4.0)]).n_units == 64
    # no more than twice as many
    assert sizes._chosen([*trials, trial_of(128, -30.3, 4.0)]).n_units == 64
    assert sizes._chosen([*trials[:2], trial_of(128, -30.3, 4.0)]).n_units == 32


@pytest.mark.parametrize("ended, expected", [(16, 16), (32, 32), (64, 16)])
def test_a_best_size_that_overfits_wins(ended, expected):
    """Little training follows: it stays ahead of smaller ones."""
    trials = [trial_of(16, -30.1), trial_of(32, -30.0), trial_of(64, -30.1)]
    trials = [one._replace(has_ended=one.n_units == ended) for one in trials]
    assert sizes._chosen(trials).n_units == expected


def test_a_best_size_that_overfits_has_to_be_ahead():
    """By 0.06 nats, if 20 were gained."""
    best = trial_of(32, -30.0)._replace(has_ended=True)
    for score, expected in [(-30.05, 16), (-30.07, 32)]:
        assert sizes._chosen([trial_of(16, score), best]).n_units == expected


@pytest.mark.parametrize(
    "values, expected",
    [
        ([-30.0], False),
        # the next one may yet be better
        ([-30.0, -30.1], False),
        ([-30.0, -30.1, -30.1], True),
        # of a gain of 20 nats, 0.2 make no difference
        ([-30.15, -30.1, -30.0], True),
        ([-30.25, -30.1, -30.0], False),
        ([-30.25, -30.1, -30.0, -30.0], True),
    ],
)
def test_sizes_end_when_two_doublings_of_one_bring_nothing(values, expected):
    trials = [trial_of(16 * 2**k, value) for k, value in enumerate(values)]
    assert sizes._has_enough_units(trials) is expected


def test_sizes_that_still_gain_much_differ_by_chance():
    """A tenth of what the best has gained by its last updates."""
    trials = [trial_of(16, -30.3), trial_of(32, -30.0), trial_of(64, -30.1)]
    assert not sizes._has_enough_units(trials)
    trials[1] = trial_of(32, -30.0, gain=4.0)
    assert sizes._has_enough_units(trials)


def test_larger_sizes_begin_with_these_temperatures(monkeypatch):
    """After the first stage, in which they may find out by themselves."""
    monkeypatch.setattr(sizes, "_leave_plateau", lambda new, run: (new, (4, 7)))
    asked = []

    def run(one, n_rounds, effort=None):
        given = effort and effort["n_replicas"]
        asked.append((one.n_units, n_rounds, given))
        needed = 5 if one.n_units == 32 else 1
        return trial_of(one.n_units, -30.0, n_replicas=max(needed, given or 1))

    job = SimpleNamespace(train=range(1000), clock=Clock())
    winner, stages = sizes._compare_sizes(None, job, run, tree=None)
    assert (winner.n_units, stages) == (16, (4, 7))
    alone, first, second = [(16, 4, None), (16, 7, 1)], (32, 4, None), (32, 7, 5)
    assert asked == [*alone, first, second, (64, 4, None), (64, 7, 5)]


@pytest.mark.parametrize(
    ("winner", "expected"),
    [
        ("4 units", (["2 units"], ["8 units"])),
        ("4 units found by searches", (["2 units"], ["4 units", "8 units"])),
        ("8 units", (["2 units", "4 units"], [])),
    ],
)
def test_random_weights_follow_where_searched_units_overfit(winner, expected):
    trials = [Trial(f"{n} units", n, None) for n in (8, 2, 4)]
    trials.append(Trial("4 units found by searches", 4, None, compared_with=trials[-1]))
    (winner,) = (one for one in trials if one.name == winner)
    found = sizes._others(winner, trials)
    assert tuple([one.name for one in some] for some in found) == expected


@pytest.mark.parametrize(
    ("overfits", "validations", "n_tried", "expected"),
    [
        (False, {}, "", -9.0),
        # against -9 of 4 searched units
        (True, {4: -9.5, 8: -9.6, 2: -9.6}, "4 8 2", -9.0),
        (True, {4: -9.5, 8: -8.5, 16: -8.6, 2: -9.1}, "4 8 16 2", -8.5),
        (True, {4: -8.5, 8: -8.6, 2: -8.6}, "4 8 2", -8.5),
        (True, {4: -8.5, 8: -8.4, 16: -9, 2: -8.3, 1: -8.6}, "4 8 16 2 1", -8.3),
        (True, {4: -8.5, 8: -8.6, 2: -8.4, 1: -8.2}, "4 8 2 1", -8.2),
    ],
)
def test_other_sizes_are_tried_until_they_are_worse(
    overfits, validations, n_tried, expected
):
    """Whether or not random weights are better than searched units."""
    calls, tried = [], []

    def at(trial, validation, n_iter, weight_decay=0.0):
        best = point(validation, n_units=trial.n_units)
        state = adapting(best, best)
        state = state._replace(plan=state.plan._replace(weight_decay=weight_decay))
        training = SimpleNamespace(n_iter=n_iter)
        outcome = adaptive.Outcome(training, best, -60.0, None, state)
        return trial._replace(outcome=outcome)

    def run(trial, n_rounds, effort=None, *, stage, until):
        calls.append((trial.name, n_rounds, effort))
        assert (effort is None) == (trial.outcome is None)
        if len(calls) == 1:
            assert until is gains.has_decay_or_cools
            return at(trial, -9.0, 20, 0.1 if overfits else 0.0)
        ended = at(trial, validations[trial.n_units], 22)
        # one that has gained nothing since half of the updates, at the best score
        best = max([-9.0, *(validations[n] for n in tried if n in validations)])
        tried.append(trial.n_units)
        for lead, is_over in [(1e-6, False), (-1e-6, True)]:
            path = path_of([400] * 22, [best + lead] * 22)
            behind = point(best + lead, n_units=trial.n_units)._replace(path=path)
            assert until(settings_of(), adapting(behind, behind)) == is_over
        return ended

    trials = [at(Trial(f"{n} units", n, None), -9.9, 9) for n in (2, 4, 8, 16)]
    winner = Trial("4 units found by searches", 4, None, compared_with=trials[1])
    winner = at(winner, -9.5, 9)
    by_name = {one.name: one for one in [*trials, winner]}
    found = sizes._compare_overfits(settings_of(), run, winner, by_name)
    assert found.score == expected
    others = [f"{n} units" for n in n_tried.split()]
    assert [name for name, *_ in calls] == ["4 units found by searches", *others]
    # others train hardly longer than the winner, by chains like its
    chains = {"n_replicas": 1, "n_gibbs_steps": 1}
    assert calls[1:] == [
        (name, 22, None if name == "1 units" else chains) for name in others
    ]


def test_the_first_size_leaves_the_plateau_or_may_never():
    leaves_after, asked = 0, []

    def run(one, n_rounds, effort):
        asked.append((n_rounds, effort))
        training = SimpleNamespace(history={"n_updates": np.array([600 * n_rounds])})
        gain = 1.0 if n_rounds == leaves_after else 0.1
        best = one.outcome.best._replace(validation=-50.0 + gain)
        return one._replace(outcome=one.outcome._replace(training=training, best=best))

    start = run(trial_of(16, -50.0), 4, None)
    leaves_after = 6
    found, stages = sizes._leave_plateau(start, run)
    assert found.score == -49.0 and stages == (6, 9, 11)
    assert asked[1:] == [(5, {}), (6, {})]
    leaves_after = 0
    found, stages = sizes._leave_plateau(start, run)
    assert found.outcome.training.history["n_updates"] == [5400]
    assert stages == (9, 12, 14)
    ended = start._replace(has_ended=True)
    assert sizes._leave_plateau(ended, run) == (ended, sizes._STAGES)


@pytest.mark.parametrize(
    ("winner", "trees", "sizes_gained", "expected", "n_rounds"),
    [
        # far ahead; behind
        ((-20.0, 1.0), [(-10.0, 0.1)], [], "tree", 0),
        ((-20.0, 1.0), [(-21.0, 0.1)], [], "units", 0),
        # ahead, and overtaken in the second round
        ((-20.0, 1.0), [(-19.0, 0.1)] * 3, [(-19.5, 0.9), (-18.9, 0.8)], "units", 2),
        # ahead, and the other learns too little
        ((-20.0, 1.0), [(-19.0, 0.1)] * 2, [(-19.9, 0.2)], "tree", 1),
        # ahead to the end
        ((-20.0, 1.0), [(-19.9, 0.0)] * 7, [(-20.0, 1.0)] * 6, "tree", 6),
    ],
)
def test_a_tree_has_to_stay_ahead(winner, trees, sizes_gained, expected, n_rounds):
    def begun(name, score, gain):
        one = trial_of(8, score, gain)
        history = SimpleNamespace(n_iter=9)
        outcome = one.outcome._replace(training=history)
        return one._replace(name=name, outcome=outcome)

    later = {
        "tree": iter([begun("tree", *one) for one in trees[1:]]),
        "units": iter([begun("units", *one) for one in sizes_gained]),
    }
    ran = []

    def run(one, n_rounds, effort):
        ran.append((one.name, n_rounds))
        return next(later[one.name])

    found = sizes._train_both(run, begun("tree", *trees[0]), begun("units", *winner))
    assert found.name == expected
    rounds = [(name, 10 + k) for k in range(n_rounds) for name in ("tree", "units")]
    assert ran == rounds


@pytest.mark.parametrize(
    ("max_time", "n_pairs", "score", "expected"),
    [
        # one round has to be ahead of what the first size has reached in four
        (60.0, 8, -29.0, [(1, None), (4, {})]),
        (60.0, 8, -31.0, [(1, None)]),
        # two fifths of the time are enough for the largest of these trees alone
        (10.0, 31, -29.0, [(1, None), (4, {})]),
        (10.0, 40, -29.0, []),
        # all sizes are compared first
        (None, 8, -29.0, []),
        (60.0, None, None, []),
    ],
)
def test_a_tree_begins_early_in_a_limited_time(max_time, n_pairs, score, expected):
    first, ran = trial_of(16, -30.0), []
    history = {"seconds": np.array([0.5, 1.0, 1.5, 3.5])}
    training = SimpleNamespace(history=history)
    first = first._replace(outcome=first.outcome._replace(training=training))
    job = SimpleNamespace(clock=Clock(max_time))

    def tree():
        return None if n_pairs is None else Trial("tree", n_pairs, None, is_tree=True)

    def run(one, n_rounds, effort=None):
        assert one.compared_with is first
        ran.append((n_rounds, effort))
        return trial_of(n_pairs, score)._replace(compared_with=first)

    sizes._begin_tree(job, run, tree, first)
    assert ran == expected
