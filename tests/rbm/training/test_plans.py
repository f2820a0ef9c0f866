"""What follows from the likelihoods after a round of an automatic training."""

import numpy as np
import pytest
from rbm_models import random_model, random_states, start_state
from training_points import (
    BEST,
    CLEAR,
    OVERFITTED,
    PLAN,
    TINY,
    WORSE,
    adapting,
    path_of,
    point,
    settings_of,
)

from skbayesnn.rbm.training import gains, plans
from skbayesnn.rbm.training.history import print_return


def decide(current, best=BEST, settings=None, **plan):
    """What follows: the new state, and whether the training is over."""
    settings = settings or settings_of()
    return plans.decide(settings, 1000, adapting(current, best, **plan))


def lose_twice(current, settings=None, **plan):
    first, done = decide(current, settings=settings, **plan)
    assert not done and first.current is current and first.plan.rate == 0.1
    plan = {**plan, "n_losses": first.plan.n_losses}
    return decide(current, settings=settings, **plan)


def test_a_gain_is_kept():
    better = point(-29.0, n_updates=2500)
    found, done = decide(better, n_losses=1)
    assert found.best is found.current is better
    assert not done and found.plan.n_losses == 0
    # a round is longer after more updates
    later, _ = decide(point(-28.0, n_updates=5000))
    assert 0 < found.plan.n_updates < later.plan.n_updates


@pytest.mark.parametrize("persistent", [True, False])
def test_a_loss_of_both_likelihoods_asks_for_chains_that_mix(persistent):
    """From the best model on: temperatures, or Gibbs steps where chains begin anew."""
    settings = settings_of(persistent=persistent)
    found, done = lose_twice(WORSE, settings)
    assert not done and found.current is found.best is BEST
    assert found.plan.rate == 0.1
    efforts = found.plan.n_replicas, found.plan.n_gibbs_steps
    assert efforts[not persistent] > 1 and efforts[persistent] == 1
    assert found.plan.weight_decay == 0.0 and found.plan.n_losses == 0
    plan = dict(zip(("n_replicas", "n_gibbs_steps"), efforts, strict=True))
    more, _ = lose_twice(WORSE, settings, **plan)
    assert more.plan.rate < 0.1
    assert (more.plan.n_replicas, more.plan.n_gibbs_steps) == efforts


@pytest.mark.parametrize(
    "parameters, plan", [({"n_gibbs_steps": 1}, {}), ({}, {"n_replicas": 10})]
)
def test_chains_with_no_more_to_get_ask_for_smaller_steps(parameters, plan):
    found, _ = lose_twice(WORSE, settings_of(**parameters), **plan)
    assert found.current is BEST and found.plan.rate < 0.1
    assert found.plan.n_gibbs_steps == 1
    assert found.plan.n_replicas == plan.get("n_replicas", 1)


def test_without_chains_only_a_decay_can_have_taken_from_both():
    settings = settings_of()._replace(enumerates=True)
    found, done = lose_twice(WORSE, settings, weight_decay=0.03)
    assert not done and 0.0 < found.plan.weight_decay < 0.03
    assert found.plan.n_replicas == 1 and found.plan.rate == 0.1
    # of the best model, there is none to take back
    found, done = lose_twice(WORSE, settings)
    assert not done and found.plan.cools


def test_chains_that_forget_ask_for_smaller_steps():
    """Temperatures would bring nothing, and take ten times as long."""
    found, _ = lose_twice(WORSE, correlation=0.05)
    assert found.plan.n_replicas == 1 and found.plan.rate < 0.1
    found, _ = lose_twice(WORSE, correlation=0.3)
    assert found.plan.n_replicas > 1 and found.plan.rate == 0.1


def test_after_smaller_steps_in_vain_chains_that_forget_get_temperatures():
    """All of them may be where the data are, and miss a mode that the model prefers."""
    best = BEST._replace(path=path_of([2000], [-30.0]))
    rate = best.path[-1].segment.first_rate
    plan = dict(n_losses=1, correlation=0.05, score_at_change=-30.0)
    found, done = decide(WORSE, best, rate=0.5 * rate, **plan)
    assert not done and found.current is best and found.plan.n_replicas > 1
    # where the steps are still those of the best model, or smaller ones have helped
    found, _ = decide(WORSE, best, rate=rate, **plan)
    assert found.plan.n_replicas == 1 and found.plan.rate < rate
    plan["score_at_change"] = -31.0
    found, _ = decide(WORSE, best, rate=0.5 * rate, **plan)
    assert found.plan.n_replicas == 1 and found.plan.rate < 0.5 * rate


@pytest.mark.parametrize("of_best, expected", [(0.0, 0.02), (0.03, np.sqrt(0.0018))])
def test_a_decay_that_takes_from_both_is_weakened(of_best, expected):
    """Towards that of the best model, a third at a time."""
    path = path_of([2000], [-30.0], of_best)
    best = point(-30.0, train=-25.0)._replace(path=path)
    found, _ = decide(WORSE, best, n_losses=1, n_replicas=10, weight_decay=0.06)
    assert found.current is best and found.plan.rate == 0.1
    assert found.plan.weight_decay == pytest.approx(expected)
    # the best model has it, too
    found, _ = decide(WORSE, best, n_losses=1, n_replicas=10, weight_decay=of_best)
    assert found.plan.rate < 0.1 and found.plan.weight_decay == of_best


def test_chains_of_a_fractional_model_get_no_temperatures():
    rbm, _ = random_model(2, 3, fractional=True)
    state = start_state(rbm, random_states(4, 3, dtype=np.uint8))
    best, worse = BEST._replace(state=state), WORSE._replace(state=state)
    found, _ = decide(worse, best, n_losses=1)
    assert found.current is best and found.plan.n_replicas == 1
    assert found.plan.n_gibbs_steps > 1


def test_a_loss_of_the_validation_rows_alone_asks_for_weight_decay():
    found, done = lose_twice(OVERFITTED)
    assert not done and found.current is BEST
    assert found.plan.rate == 0.1 and found.plan.n_gibbs_steps == 1
    # as of a prior that weighs as much as few rows
    assert 1 / 1000 <= found.plan.weight_decay < 10 / 1000
    more, _ = lose_twice(OVERFITTED, weight_decay=found.plan.weight_decay)
    assert more.plan.weight_decay > found.plan.weight_decay
    # if it is given, nothing is left to change: the step size falls to zero
    found, done = lose_twice(OVERFITTED, settings_of(weight_decay=0.0))
    assert not done and found.plan.cools and found.current is BEST


def test_a_decay_takes_no_more_than_there_is():
    """Of a weight in an update, by which it would grow; then nothing is left to do."""
    most = lose_twice(OVERFITTED, weight_decay=3.0)[0].plan
    assert most.weight_decay * most.rate <= 1.0 and not most.cools
    assert lose_twice(OVERFITTED, weight_decay=4.0)[0].plan.cools


def test_a_loss_within_the_errors_is_none():
    near = point(-30.5, train=-25.5, n_updates=2500, error=0.5)
    found, done = decide(near, n_losses=1)
    assert not done and found.plan.rate == 0.1 and found.current is near
    # nor is a tiny one, of exact likelihoods
    near = point(-30.0 - TINY, train=-26.0, n_updates=2500, error=0.0)
    found, done = decide(near, BEST._replace(error=0.0), n_losses=1)
    assert not done and found.plan.rate == 0.1 and found.current is near


def test_changes_in_vain_end_the_training():
    n_in_vain, plan = 0, {}
    while True:
        found, done = lose_twice(WORSE, n_in_vain=n_in_vain, score_at_change=-30.0)
        assert not done
        if found.plan.cools:
            break
        n_in_vain = found.plan.n_in_vain
        assert n_in_vain < 10
    assert n_in_vain >= 1
    # one that has helped is none of them, one that has brought next to nothing is
    for score, helped in [(-31.0, True), (-30.05, False)]:
        plan = dict(n_in_vain=n_in_vain, score_at_change=score)
        found, _ = lose_twice(WORSE, **plan)
        assert found.plan.cools != helped
        assert not helped or found.plan.n_in_vain < n_in_vain


@pytest.mark.parametrize(
    ("gains", "weight_decay", "stalls"),
    [
        # of the later half of the rounds since the change; all of the earlier one
        ([1.0, 1.0, 0.05, 0.05], 0.01, True),
        ([1.0, 1.0, 1.0, 0.05], 0.01, False),
        # a few rounds, or those without a decay, may go on to gain
        ([1.0, 0.0, 0.05], 0.01, False),
        ([1.0, 1.0, 0.05, 0.05], 0.0, False),
    ],
)
def test_a_decay_that_holds_the_weights_becomes_larger(gains, weight_decay, stalls):
    n_before, first = 5, -33.0
    values = first + np.concatenate([np.zeros(n_before), np.cumsum(gains)])
    path = path_of([600] * len(values), values)
    current = point(values[-1])._replace(path=path)
    best = current._replace(path=path[:-1], validation=current.validation - gains[-1])
    plan = dict(
        weight_decay=weight_decay, rounds_at_change=n_before, score_at_change=first
    )
    found, done = decide(current, best, **plan)
    assert not done and not found.plan.cools and found.best is current
    assert (found.plan.weight_decay > weight_decay) == stalls
    assert found.plan.rate == PLAN["rate"]
    if stalls:
        # the next one is compared with this place
        assert found.plan.rounds_at_change == len(path)
        assert found.plan.score_at_change == current.validation
        assert found.current is current
    # a fixed one is the last
    settings = settings_of(weight_decay=0.0)
    found, _ = decide(current, best, settings=settings, **plan)
    assert found.plan.cools == stalls


def test_the_last_round_cools():
    settings = settings_of(max_updates=2500)
    better = point(-29.0, n_updates=2500)
    found, done = decide(better, settings=settings)
    assert not done and found.plan.cools and found.plan.n_updates < 2500
    _, done = decide(point(-28.0), better, cools=True)
    assert done


@pytest.mark.parametrize("refit, needed", [(False, 1), (True, 2)])
def test_a_training_ends_while_there_is_time_for_its_end(refit, needed):
    """The next round and the last one; and to repeat these, and all before."""
    settings = settings_of()._replace(refit=refit)
    better = point(-29.0, n_updates=3000)
    found, _ = decide(better, settings=settings)
    n_next, n_last = found.plan.n_updates, plans.last_round(settings, better)
    enough = needed * (n_next + n_last) + (needed - 1) * 3000
    state = adapting(better, BEST)
    found, _ = plans.decide(settings, 1000, state, enough)
    assert not found.plan.cools and found.plan.n_updates == n_next
    found, done = plans.decide(settings, 1000, state, enough - 1)
    assert not done and found.plan.cools and found.plan.n_updates == n_last
    assert "max_time" in found.plan.reason
    # the last round is as long as there is time for it
    short = needed * 50 + (needed - 1) * 3000
    found, _ = plans.decide(settings, 1000, state, short)
    assert found.plan.cools and found.plan.n_updates == 50
    found, _ = plans.decide(settings, 1000, state, 0)
    assert found.plan.cools and found.plan.n_updates == 1


def test_the_next_best_points_are_kept():
    points = [point(value) for value in (-32.0, -30.5, -29.0, -31.0, -30.0)]
    state = adapting(points[0], BEST._replace(validation=-40.0))
    for current in points:
        state, _ = plans.decide(settings_of(), 1000, state._replace(current=current))
    assert state.best is points[2]
    assert [one.validation for one in state.others] == [-30.0, -30.5]


@pytest.mark.parametrize("gain, ends", [(0.0, True), (0.01, True), (1.0, False)])
def test_four_times_the_updates_without_gain_are_the_end(gain, ends):
    """Of 30 nats in all."""
    first = point(-30.0, n_updates=2000, n_rounds=4)
    path = path_of([500] * 8, [-30.0] * 2 + [-30.0 + gain] * 6)
    last = first._replace(path=path, validation=-30.0 + gain)
    found, _ = decide(last, first)
    assert found.plan.cools == ends


def test_a_plateau_at_the_start_is_no_end():
    """Small weights change next to nothing for long."""
    slow = point(-60.0, n_updates=2000, n_rounds=8)
    found, done = decide(slow, slow)
    assert not done and not found.plan.cools
    endless = point(-60.0, n_updates=25000, n_rounds=8)
    assert decide(endless, endless)[0].plan.cools


def test_a_loss_on_the_plateau_of_the_start_changes_nothing():
    """The training rows have not moved: nothing says that a step or decay is wrong."""

    def decide(current, best, first_score=-30.0):
        state = adapting(current, best, n_losses=plans._PATIENCE - 1)
        state = state._replace(first_score=first_score)
        return plans.decide(settings_of(), 1000, state)

    start = point(-30.0, train=-25.0, n_updates=0)
    for moved in (-0.05, 0.05):
        still = point(-30.0 - CLEAR, train=-25.0 + moved, n_updates=300)
        found, done = decide(still, start)
        assert not done and found.current is still and found.plan.weight_decay == 0.0
        # a start that is better than independent features is on no plateau
        assert decide(still, start, first_score=-60.0)[0].current is start
    # but for ever, where they have moved, or behind the start
    late = point(-30.0 - CLEAR, train=-25.0, n_updates=gains.PLATEAU_UPDATES)
    overfits = point(-30.0 - CLEAR, train=-24.5, n_updates=300)
    behind = point(-30.0, train=-25.0, n_updates=100)
    for current, best in ((late, start), (overfits, start), (still, behind)):
        found, _ = decide(current, best)
        assert found.current is best and found.plan.weight_decay > 0.0


def test_a_plan_says_why_it_goes_back():
    """And where training goes on, nothing."""
    after_loss, _ = lose_twice(WORSE)
    assert after_loss.current is BEST
    assert "training and validation rows" in after_loss.plan.reason
    after_overfit, _ = lose_twice(OVERFITTED)
    assert after_overfit.plan.reason.startswith("only the validation rows")
    better = point(-29.0, n_updates=2500)
    assert not decide(better, reason="a loss before")[0].plan.reason
    found, _ = decide(better, settings=settings_of(max_updates=2500))
    assert found.plan.cools and found.plan.reason == "max_updates is reached"


def test_a_return_is_printed_with_what_changes(capsys):
    before = adapting(BEST, BEST).plan
    plan = before._replace(n_replicas=10, reason="both have lost")
    print_return("training", before, plan, 900)
    last = before._replace(cools=True, reason="max_updates is reached")
    print_return("training", before, last, 900)
    print_return("training", before, before, 900)
    assert capsys.readouterr().out.splitlines() == [
        "training: back to the model of 900 updates, temperatures 10, because both "
        "have lost",
        "training: last round, from the model of 900 updates to a step size of 0, "
        "because max_updates is reached",
    ]


@pytest.mark.parametrize(
    "train, validation, gets_decay",
    [(-24.0, -30.1, True), (-24.0, -30.0, False), (-24.9, -30.1, False)],
    ids=["overfits", "does not lose", "does not learn"],
)
def test_a_converged_model_that_overfits_within_the_errors(
    train, validation, gets_decay
):
    """The gap between the rows is more certain than the likelihoods."""
    best = point(-30.0, train=-25.0, n_updates=1000, error=0.2)
    later = path_of([1000] * 4, [-30.0] + [validation] * 3)
    current = point(validation, train=train, n_updates=4000, error=0.2)
    current = current._replace(path=later)
    found, done = decide(current, best)
    assert not done and found.current is found.best is best
    assert (found.plan.weight_decay > 0.0) == gets_decay
    assert found.plan.cools != gets_decay
    # no further one where those before were in vain
    found, _ = decide(current, best, n_in_vain=1, score_at_change=-30.0)
    assert found.plan.cools and found.plan.weight_decay == 0.0
