"""The number of hidden units: models of several sizes and starts are compared.

1. Each size is trained for the same number of rounds, from small random weights. At
   first, all sizes are on a plateau, where they cannot be told apart: the first size
   trains until it has left it. Sizes double until two doublings have brought hardly
   anything. Several sizes may be hardly behind the best one. The smallest of them has
   won; or twice as many units, while all still gain much; or the best one, if it
   overfits.
2. Two other starts are compared with the winner. One has units for the pairs of a tree
   (`pair_tree`), which is a model of all pairs that matter before any training. The
   other one has units that were found by Frank-Wolfe searches, each on rows of its own.
   A tree is ahead at once, but gains less from training: while the winner may catch up
   soon, both train on. In a limited time, which may be over before all sizes have been
   compared, a tree that is ahead at once begins behind the first stage of the first
   size.
3. The best of them trains on from where it is. If it begins to overfit, other sizes
   that began at random weights are trained on as far: the same size and larger ones, as
   long as the larger one is better; then all smaller ones.
"""

from functools import cache, partial
from typing import NamedTuple

import numpy as np

from ..learning import contrastive
from . import adaptive, gains, pair_tree
from .history import append_record
from .job import computing
from .row_probabilities import error_of_lead
from .size_starts import random_units, searched_units, tree_units
from .training_result import Training
from .trials import (
    LEAST,
    TRAINED_ON,
    Ended,
    Trial,
    best_of,
    effort_of,
    hardly,
    near_best,
    records_of,
    run_trial,
    whole_gain,
)

# Number of units that is tried first.
_FIRST = 16
# Largest number that is tried, unless there are fewer rows.
MAX_UNITS = 1024
# Rounds after which a size gets the temperatures of others, 400 and 946 updates, and
# those after which sizes are compared, 1,681 updates, if training gains something in
# the first ones.
_STAGES = 4, 7, 9
# Fraction of the whole gain by which sizes differ without a meaning where little
# training follows.
_HARDLY_IN_THE_END = 0.003
# Fraction of the whole gain by which twice the updates may have raised a size whose
# comparison with others is settled.
_SETTLED = 0.03
# Doublings of a size that is hardly behind the best, after which they end: the next one
# may yet win, and estimates are noisy.
_MAX_DOUBLINGS = 2
# Doublings of the updates by which a tree has to be ahead, at what the last ones have
# gained, and the rounds in which it may become so: up to 9,082 updates.
_CATCHES_UP, _BOTH_ROUNDS = 2.0, 6
# Rounds behind those of the winner in which others may overtake it, where it overfits.
_MORE_ROUNDS = 2


class Comparison(NamedTuple):
    """All sizes and starts that were compared, and the best of them."""

    winner: Trial
    """the best one"""
    training: Training
    """its best model, with one entry of the history per start"""
    trials: tuple
    """all that ran"""


def _others(winner, trials):
    """Other trials from random weights: those of fewer units, and the others.

    Both begin with the smallest. Starts at searched units are left out: they learn
    faster at first, and may overfit sooner.
    """
    others = [
        one for one in trials if one.compared_with is None and one.name != winner.name
    ]
    others = sorted(others, key=lambda one: one.n_units)
    fewer = [one for one in others if one.n_units < winner.n_units]
    return fewer, others[len(fewer) :]


def compare(settings, search, job, task):
    """Find the number of units, and how they start.

    Returns a `Comparison`.
    """
    # by name, in the order in which they began
    trials, compared = {}, {}
    run = partial(run_trial, settings, job, task, trials)
    interrupted, stopped = False, False
    records = None
    try:
        tree = cache(partial(_tree, settings, job))
        winner, stages = _compare_sizes(settings, job, run, tree)
        if settings.verbose and winner.n_units == _limit(job):
            n_units = winner.n_units
            print(f"no more than {n_units} units are tried: set n_components for more")
        searched = _searched(settings, search, winner.n_units)
        best, pairs = winner, tree()
        if pairs is not None:
            # in a limited time, it may have begun
            best = _compare_tree(run, winner, stages, trials.get(pairs.name, pairs))
        # what is recorded is what each had reached by as many updates as the others
        compared = dict(trials)
        winner = _overtaken(settings, job, run, best, winner)
        start = _compare_start(run, winner, stages, searched)
        compared[start.name] = start
        winner = best_of([winner, start])
        records = records_of(compared.values())
        winner = _compare_overfits(settings, run, winner, trials)
    except KeyboardInterrupt:
        if not (settings.keep_last and trials):
            raise
        winner, interrupted = best_of(trials.values()), True
    except Ended as end:
        (last,) = end.args
        winner = best_of(trials.values())
        interrupted, stopped = last.interrupted, last.stopped
        if settings.verbose and not (interrupted or stopped):
            print(f"{winner.name}: the best when the time for comparisons was over")
    history, records = {}, records or records_of({**trials, **compared}.values())
    for record in records:
        history = append_record(history, record)
    training = Training(
        winner.outcome.best.state,
        history,
        len(records),
        interrupted=interrupted,
        stopped=stopped,
    )
    return Comparison(winner, training, tuple(trials.values()))


def _limit(job):
    """The largest size that is tried."""
    return max(1, min(MAX_UNITS, len(job.train)))


def _compare_sizes(settings, job, run, tree):
    """The trial of the size that has won, and the rounds of the stages.

    ``tree()`` gives the trial of a tree, which may begin behind the first stage of the
    first size.
    """
    limit = _limit(job)
    size, trials, stages = min(_FIRST, limit), [], _STAGES
    # bound: sizes double up to the limit
    while True:
        new = Trial(f"{size} units", size, partial(random_units, settings))
        new = run(new, stages[0])
        if not trials:
            _begin_tree(job, run, tree, new)
            new, stages = _leave_plateau(new, run)
        for n_rounds in stages[1:]:
            new = run(new, n_rounds, effort_of([*trials, new]))
        trials.append(new)
        if size == limit or _has_enough_units(trials):
            return _chosen(trials), stages
        size = min(2 * size, limit)


def _leave_plateau(trial, run):
    """The first trial where it has gained something, and the stages from there."""
    n_more = 0
    # bound: PLATEAU_UPDATES, and the training may end before
    while trial.is_on_plateau:
        n_more += 1
        trial = run(trial, _STAGES[0] + n_more, {})
    return trial, tuple(n_rounds + n_more for n_rounds in _STAGES)


def _compare_overfits(settings, run, winner, trials):
    """The winner, or another that is better where both have begun to overfit.

    After a few updates, those that overfit later look alike, and few units, which learn
    more slowly, are behind. More units are tried until they are no better, and then all
    that are fewer. None of the others trains on for much longer than the winner, or for
    longer than it may still become the better one.
    """
    further = partial(run, stage=TRAINED_ON)
    first = winner = further(winner, np.inf, {}, until=gains.has_decay_or_cools)
    if not gains.has_decay(settings, winner.outcome.adapting):
        return winner
    n_rounds = winner.n_iter + _MORE_ROUNDS

    def until(settings, adapting):
        is_over = gains.has_decay_or_cools(settings, adapting)
        return is_over or gains.cannot_reach(adapting, winner.score, n_rounds)

    further = partial(further, n_rounds=n_rounds, until=until)
    fewer, others = _others(winner, trials.values())
    for other in others:
        other = further(other, effort=effort_of([winner, other]))
        if other.score > winner.score:
            winner = other
        elif other.n_units > winner.n_units:
            break
    for other in fewer:
        other = further(other, effort=effort_of([first, other]))
        winner = other if other.score > winner.score else winner
    size = min(one.n_units for one in trials.values())
    # bound: sizes halve down to one unit
    while winner.n_units == size > 1:
        size //= 2
        other = Trial(f"{size} units", size, partial(random_units, settings))
        other = further(other)
        winner = other if other.score > winner.score else winner
    return winner


def _compare_start(run, winner, stages, new):
    """Another start, as far as it came while it kept up with the winner."""
    new, effort = new._replace(compared_with=winner), {}
    for n_rounds in stages:
        if new.n_iter < n_rounds:
            new = run(new, n_rounds, effort)
        score = winner.score_after(n_rounds)
        is_hopeless = new.score < score - hardly([winner])
        if is_hopeless or n_rounds >= winner.n_iter:
            break
        effort = effort_of([winner, new])
    return new


def _tree(settings, job):
    """The trial of a tree's pairs before its first round, or None without a tree."""
    if job.train.n_features > pair_tree.MAX_FEATURES:
        return None
    with computing(settings.n_jobs, settings.learning_rate):
        pairs = pair_tree.tree_model(job.train)
    n_pairs = len(pairs.weights)
    # as for all sizes, no more units than rows
    if not 0 < n_pairs <= len(job.train):
        return None
    make_state = partial(tree_units, settings, job.train, pairs)
    return Trial(f"tree of {n_pairs} pairs", n_pairs, make_state, is_tree=True)


def _begin_tree(job, run, tree, first):
    """Begin with a tree where larger sizes may take all of a limited time.

    One round tells whether it is ahead of the first size, which has had a whole stage.
    """
    clock = job.clock
    if np.isinf(clock.max_time) or tree() is None:
        return
    new = tree()._replace(compared_with=first)
    left = adaptive.COMPARED * clock.max_time - clock.passed
    if _seconds_of_round(first, new) > left:
        return
    new = run(new, 1)
    if new.score > first.score:
        run(new, _STAGES[0], {})


def _seconds_of_round(trial, other):
    """How long a round of another size takes, by the last one of a trial.

    The times are in proportion to the number of units, or less.
    """
    seconds = np.diff(trial.outcome.training.history["seconds"], prepend=0.0)[-1]
    return seconds * max(1.0, other.n_units / trial.n_units)


def _compare_tree(run, winner, stages, tree):
    """The winner, or units for the pairs of a tree, and others where these learn."""
    tree = _compare_start(run, winner, stages, tree)
    best = best_of([winner, tree])
    n_units = winner.n_units
    if n_units > tree.n_units and tree.outcome.best.n_updates:
        more = Trial(f"tree, {n_units} units", n_units, tree.make_state)
        best = best_of([best, _compare_start(run, best, stages, more)])
    return best


def _overtaken(settings, job, run, tree, winner):
    """The better one of a tree and the winner before, which learns for longer."""
    if tree.name == winner.name:
        return winner
    best = _train_both(run, tree, winner)
    return best if _leads(settings, job, best, winner) else winner


def _leads(settings, job, tree, winner):
    """Whether a tree is ahead by more than the standard error of its lead.

    Few held-out rows may lack just the ones that no tree explains.
    """
    models = [
        contrastive.model(settings.update, one.outcome.best.state)
        for one in (tree, winner)
    ]
    return tree.score - winner.score > error_of_lead(job.validation, *models)


def _train_both(run, tree, winner):
    """The better of both, when the winner so far can no longer catch up."""
    first = winner.n_iter + 1
    for n_rounds in range(first, first + _BOTH_ROUNDS):
        lead = tree.score - winner.score
        may_gain = _CATCHES_UP * (winner.gain - tree.gain)
        if winner.has_ended or not 0.0 < lead < may_gain:
            break
        # a tree may need temperatures that only slow the other down
        tree = run(tree, n_rounds, effort_of([tree, winner]))
        winner = run(winner, n_rounds, {})
    return best_of([winner, tree])


def _searched(settings, search, n_units):
    """A start from so many units that Frank-Wolfe searches find."""
    make_state = partial(searched_units, settings, search)
    return Trial(f"{n_units} units found by searches", n_units, make_state)


def _has_enough_units(trials):
    """Whether doubling the smallest of the near ones has brought hardly anything."""
    doubled = trials[:-_MAX_DOUBLINGS]
    return bool(doubled) and near_best(trials)[0].n_units <= doubled[-1].n_units


def _is_settled(trial, trials):
    return trial.gain <= _SETTLED * whole_gain(trials)


def _chosen(trials):
    """The smallest of the sizes that are hardly behind the best, or twice as many.

    Which of them is ahead is chance, and the training that follows is longer. If they
    still gain much, a larger one can use it. Where the best one has ended, little
    training follows, and what is ahead stays so.
    """
    best = best_of(trials)
    if best.has_ended:
        least = best.score - max(LEAST, _HARDLY_IN_THE_END * whole_gain(trials))
        return next(one for one in trials if one.score >= least)
    near = near_best(trials)
    if _is_settled(best, trials):
        return near[0]
    return [one for one in near if one.n_units <= 2 * near[0].n_units][-1]
