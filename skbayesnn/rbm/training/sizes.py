"""The number of hidden units: sizes that double race for the validation rows.

Each size is trained for the same number of rounds, from small random weights. The first
one trains until it has left the plateau where all start, on which sizes cannot be told
apart. Sizes double until two doublings of one have brought hardly anything. Of those
that are hardly behind the best, the smallest has won, or the next one while all still
gain much, or the best itself if it overfits. Against it, two other starts run the same
way: units for the pairs of a tree (`pair_tree`), which are a model of all pairs that
matter before any training, and units that were found by Frank-Wolfe searches, each on
rows of its own. A tree is ahead at once, and learns the less: while the other may catch
up soon, both train on. The best of them trains on from where it is. If it begins to
overfit, random weights of the same size are trained on as far, too, and those of the
next larger one, and so forth as long as the larger one is better, and all smaller ones.
The best of them gets a weight decay, and trains to its end. If its chains do not move
between its modes then, so that its likelihood is in doubt, the best smaller sizes are
trained on as well, each for no longer, and the best of them is the result.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ..._persistence import Progress
from .. import model as solver
from ..learning import contrastive, growth
from . import adaptive, automatic, pair_tree, plans
from .growing import MONITORED_ROWS, start_growth
from .history import append_record, join_histories
from .job import Start, computing
from .outcome import Training
from .start import base_of, independent_model, start_model, start_training

_FIRST = 16
# Largest number that is tried, unless there are fewer rows.
MAX_UNITS = 1024
# Rounds after which a size gets the temperatures of others, 400 and 946 updates, and
# those after which sizes are compared, 1,681 updates, if training gains something in
# the first ones.
_STAGES = 4, 7, 9
# A smaller gain may be chance, nats.
_LEAST = 0.02
# Fraction of the whole gain by which sizes differ without a meaning for the training
# that follows.
_HARDLY = 0.01
# The same, as a fraction of what twice the updates have gained the best: at first, all
# sizes learn the same, and large ones more slowly.
_HARDLY_SO_FAR = 0.1
# The fraction of the whole gain where little training follows.
_HARDLY_IN_THE_END = 0.003
# Fraction of the whole gain by which twice the updates may have raised a size whose
# comparison with others is settled.
_SETTLED = 0.03
# Doublings of a size that is hardly behind the best, after which they end: the next one
# may yet win, and estimates are noisy.
_IN_VAIN = 2
# Doublings of the updates by which a tree has to be ahead, at what the last ones have
# gained, and the rounds in which it may become so: up to 9,082 updates.
_CATCHES_UP, _DUEL_ROUNDS = 2.0, 6
# Smaller sizes that are trained to their end where the chains of the winner do not move
# between its modes.
_MAX_OTHERS = 2
# Norm of the units' weights at the start: they are directions, not yet units.
_START_NORM = 0.5
# Rounds behind those of the winner in which others may overtake it, where it overfits.
_MORE_ROUNDS = 2


class Search(NamedTuple):
    """How units are searched for."""

    step: growth.Settings
    n_chains: int


class Runner(NamedTuple):
    """A size and its start, with how far it came."""

    name: str
    n_units: int
    make_state: Callable
    """``make_state(job, n_units)`` gives the first state of a training"""
    outcome: adaptive.Outcome | None = None
    gain: float = 0.0
    """what the last doubling of its updates has gained, nats"""
    has_ended: bool = False
    """whether it overfits, or cannot train on for another reason"""
    rival: "Runner | None" = None
    """the winner so far, of the same size; None for random weights"""

    @property
    def score(self):
        """Validation log-likelihood of the best model so far, nats."""
        return self.outcome.best.validation

    @property
    def is_on_plateau(self):
        """Whether it is still where it started, and may yet leave."""
        has_gained = plans.has_left(self.outcome.first_score, self.score)
        n_updates = self.outcome.training.history["n_updates"][-1]
        may_leave = n_updates < plans.PLATEAU_UPDATES and not self.has_ended
        return may_leave and not has_gained

    def score_after(self, n_rounds):
        """The score that it had after so many rounds."""
        scores = self.outcome.training.history["validation_log_likelihood"]
        return max(self.outcome.first_score, scores[:n_rounds].max())


class Race(NamedTuple):
    """The end of a race."""

    winner: Runner
    training: Training
    """its best model, with one entry of the history per start that raced"""
    runners: tuple
    """all that ran"""


def train(settings, search, job, task, refit):
    """Find the number of units, and train so many.

    Parameters
    ----------
    settings : plans.Settings
    search : Search
    job : Job
        With validation rows.
    task : callback context
    refit : bool
        Whether to repeat the training on all rows.

    Returns
    -------
    found : automatic.Found
    """
    finished = job.checkpoint.load("result")
    if finished is not None:
        return finished.state
    winner, training, runners = race(settings, search, job, task)
    seconds = _elapsed(runners)
    decided = automatic.decisions(winner.outcome.best)
    found = automatic.Found(training, None, decided)
    if training.interrupted:
        return found
    if training.stopped:
        progress = Progress(found, training.history, training.n_iter, seconds, True)
        job.checkpoint.save("result", progress, finished=True)
        return found
    entrant = _entrant(winner, training, seconds)._replace(retries=True)
    rivals = (
        _entrant(one, training, seconds, f"training, {one.n_units} units")
        for one in _smaller(winner, runners)
    )
    try:
        return automatic.train(settings, job, entrant, task, refit, rivals=rivals)
    except KeyboardInterrupt:
        if not settings.keep_last:
            raise
        start = entrant.make_start(job)
        history, n_iter = start.history, start.n_iter
        training = training._replace(history=history, n_iter=n_iter, interrupted=True)
        return found._replace(training=training)


def _entrant(runner, race, seconds, stage="training"):
    """How the training of a runner goes on behind the race."""
    # its rounds follow those of the race
    rounds = runner.outcome.training
    history = join_histories(race.history, rounds.history)
    n_iter = race.n_iter + rounds.n_iter

    def make_start(job):
        state = partial(runner.make_state, job, runner.n_units)
        return Start(state, history, n_iter, seconds)

    return automatic.Entrant(make_start, stage, runner.outcome.adapting)


def _smaller(winner, runners):
    """Each the best of those with fewer units than the one before.

    The chains of a smaller model move more easily.
    """
    n_units = winner.n_units
    for _ in range(_MAX_OTHERS):
        smaller = [one for one in runners if one.n_units < n_units]
        if not smaller:
            return
        best = _best(smaller)
        n_units = best.n_units
        yield best


def _others(winner, runners):
    """Those from random weights: fewer units, and no fewer with the next size first.

    Searched units learn faster at first, and may overfit the sooner.
    """
    others = [one for one in runners if one.rival is None and one.name != winner.name]
    others = sorted(others, key=lambda one: one.n_units)
    fewer = [one for one in others if one.n_units < winner.n_units]
    return fewer, others[len(fewer) :]


class _Ended(Exception):
    """Ctrl-C or a callback has ended the race; the argument is the last training."""


def race(settings, search, job, task):
    """Find the number of units, and how they start.

    Returns a `Race`.
    """
    # by name: the sizes as they double, and last the searched units
    runners = {}
    run = partial(_run, settings, job, task, runners)
    interrupted, stopped = False, False
    records = None
    try:
        winner, stages = _race_sizes(settings, job, run)
        if settings.verbose and winner.n_units == _limit(job):
            n_units = winner.n_units
            print(f"no more than {n_units} units are tried: set n_components for more")
        searched = _searched(settings, search, winner.n_units)
        winner = _try_tree(settings, job, run, winner, stages)
        winner = _best([winner, _challenge(run, winner, stages, searched)])
        # what all of them had reached by as many updates can be compared
        records = _records(runners.values())
        winner = _outlast(settings, run, winner, runners)
    except KeyboardInterrupt:
        if not (settings.keep_last and runners):
            raise
        winner, interrupted = _best(runners.values()), True
    except _Ended as end:
        (last,) = end.args
        winner = _best(runners.values())
        interrupted, stopped = last.interrupted, last.stopped
    history, records = {}, records or _records(runners.values())
    for record in records:
        history = append_record(history, record)
    training = Training(
        winner.outcome.best.state,
        history,
        len(records),
        interrupted=interrupted,
        stopped=stopped,
    )
    return Race(winner, training, tuple(runners.values()))


def _limit(job):
    """The largest size that is tried."""
    return max(1, min(MAX_UNITS, len(job.train)))


def _race_sizes(settings, job, run):
    """The runner of the size that has won, and the rounds of the stages."""
    limit = _limit(job)
    size, runners, stages = min(_FIRST, limit), [], _STAGES
    # bound: sizes double up to the limit
    while True:
        new = Runner(f"{size} units", size, partial(_random_units, settings))
        new = run(new, stages[0])
        if not runners:
            new, stages = _leave_plateau(new, run)
        for n_rounds in stages[1:]:
            new = run(new, n_rounds, _effort([*runners, new]))
        runners.append(new)
        if size == limit or _has_enough_units(runners):
            return _chosen(runners), stages
        size = min(2 * size, limit)


def _leave_plateau(runner, run):
    """The first runner where it has gained something, and the stages from there."""
    n_more = 0
    # bound: PLATEAU_UPDATES, and the training may end before
    while runner.is_on_plateau:
        n_more += 1
        runner = run(runner, _STAGES[0] + n_more, {})
    return runner, tuple(n_rounds + n_more for n_rounds in _STAGES)


def _outlast(settings, run, winner, runners):
    """The winner, or another that is better where both have begun to overfit.

    After a few updates, those that overfit later look alike, and few units, which learn
    more slowly, are behind. More units are tried until they are no better, and then all
    that are fewer. None of the others trains much longer than the winner.
    """
    further = partial(run, stage="further", until=plans.needs_decay)
    first = winner = further(winner, np.inf, {})
    if not plans.has_decayed(settings, winner.outcome.adapting):
        return winner
    n_rounds = winner.outcome.training.n_iter + _MORE_ROUNDS
    fewer, others = _others(winner, runners.values())
    for other in others:
        other = further(other, n_rounds, _effort([winner, other]))
        if other.score > winner.score:
            winner = other
        elif other.n_units > winner.n_units:
            break
    for other in fewer:
        other = further(other, n_rounds, _effort([first, other]))
        winner = other if other.score > winner.score else winner
    size = min(one.n_units for one in runners.values())
    # bound: sizes halve down to one unit
    while winner.n_units == size > 1:
        size //= 2
        other = Runner(f"{size} units", size, partial(_random_units, settings))
        other = further(other, n_rounds)
        winner = other if other.score > winner.score else winner
    return winner


def _challenge(run, winner, stages, new):
    """Another start, as far as it came while it kept up with the winner."""
    new, effort = new._replace(rival=winner), {}
    for n_rounds in stages:
        new = run(new, n_rounds, effort)
        score = winner.score_after(n_rounds)
        is_hopeless = new.score < score - _hardly([winner])
        if is_hopeless or n_rounds >= winner.outcome.training.n_iter:
            break
        effort = _effort([winner, new])
    return new


def _try_tree(settings, job, run, winner, stages):
    """The winner, or units for the pairs of a tree, and others where these learn."""
    if job.train.n_features > pair_tree.MAX_FEATURES:
        return winner
    n_units = winner.n_units
    with computing(settings.n_jobs, settings.learning_rate):
        pairs = pair_tree.tree_model(job.train)
    n_pairs = len(pairs.weights)
    # as for all sizes, no more units than rows
    if not 0 < n_pairs <= len(job.train):
        return winner
    make_state = partial(_tree_units, settings, job.train, pairs)
    tree = Runner(f"tree of {n_pairs} pairs", n_pairs, make_state)
    tree = _challenge(run, winner, stages, tree)
    best = _best([winner, tree])
    if n_units > n_pairs and tree.outcome.best.n_updates:
        more = Runner(f"tree, {n_units} units", n_units, make_state)
        best = _best([best, _challenge(run, best, stages, more)])
    return _duel(run, best, winner)


def _duel(run, tree, winner):
    """The better of both, when the winner so far can no longer catch up."""
    first = winner.outcome.training.n_iter + 1
    for n_rounds in range(first, first + _DUEL_ROUNDS):
        lead = tree.score - winner.score
        may_gain = _CATCHES_UP * (winner.gain - tree.gain)
        if winner.has_ended or not 0.0 < lead < may_gain:
            break
        # a tree may need temperatures that only slow the other down
        tree = run(tree, n_rounds, _effort([tree, winner]))
        winner = run(winner, n_rounds, {})
    return _best([winner, tree])


def _searched(settings, search, n_units):
    """A start from so many units that Frank-Wolfe searches find."""
    make_state = partial(_searched_units, settings, search)
    return Runner(f"{n_units} searched units", n_units, make_state)


def _best(runners):
    return max(runners, key=lambda one: one.score)


def _whole(runners):
    """What the best of them has gained, nats."""
    best = _best(runners)
    return best.score - best.outcome.first_score


def _hardly(runners):
    """Difference without a meaning, nats."""
    so_far = _HARDLY_SO_FAR * _best(runners).gain
    return max(_LEAST, _HARDLY * _whole(runners), so_far)


def _near(runners):
    """Those that are hardly behind the best."""
    least = _best(runners).score - _hardly(runners)
    return [one for one in runners if one.score >= least]


def _has_enough_units(runners):
    """Whether doubling the smallest of the near ones has brought hardly anything."""
    doubled = runners[:-_IN_VAIN]
    return bool(doubled) and _near(runners)[0].n_units <= doubled[-1].n_units


def _is_settled(runner, runners):
    return runner.gain <= _SETTLED * _whole(runners)


def _chosen(runners):
    """The smallest of the sizes that are hardly behind the best, or twice as many.

    Which of them is ahead is chance, and the training that follows is longer. If they
    still gain much, a larger one can use it. Where the best one has ended, little
    training follows, and what is ahead stays so.
    """
    best = _best(runners)
    if best.has_ended:
        least = best.score - max(_LEAST, _HARDLY_IN_THE_END * _whole(runners))
        return next(one for one in runners if one.score >= least)
    near = _near(runners)
    if _is_settled(best, runners):
        return near[0]
    return [one for one in near if one.n_units <= 2 * near[0].n_units][-1]


def _effort(runners):
    """Temperatures and Gibbs steps for all of them: those of the one with the most.

    Which size needs them first is chance, and with them a model is ahead.
    """
    plans = [one.outcome.adapting.plan for one in runners]
    return {
        name: max(getattr(plan, name) for plan in plans)
        for name in ("n_replicas", "n_gibbs_steps")
    }


def _run(
    settings,
    job,
    task,
    runners,
    runner,
    n_rounds,
    effort=None,
    *,
    stage=None,
    until=plans.has_ended,
):
    """Train a runner on for so many rounds at most, and keep it in ``runners``."""
    name, adapting = runner.name, None
    if runner.outcome and until(settings, runner.outcome.adapting):
        return runner
    start = Start(partial(runner.make_state, job, runner.n_units), {}, 0)
    if runner.outcome is not None:
        name = f"{name}, {stage or f'{n_rounds} rounds'}"
        training, adapting = runner.outcome.training, runner.outcome.adapting
        adapting = adapting._replace(plan=adapting.plan._replace(**effort))
        start = start._replace(history=training.history, n_iter=training.n_iter)
    start = start._replace(seconds=_elapsed(runners.values()))
    size_task = job.callbacks.begin(task.subcontext(name, max_subtasks=None))
    outcome = adaptive.train(
        settings, job, start, name, size_task,
        adapting=adapting, n_rounds=n_rounds, until=until,
    )  # fmt: skip
    training = outcome.training
    if not training.interrupted:
        rbm = contrastive.model(settings.update, outcome.best.state)
        stopped = job.callbacks.end(size_task, rbm) or training.stopped
        outcome = outcome._replace(training=training._replace(stopped=stopped))
    has_ended = plans.has_ended(settings, outcome.adapting)
    gain = 0.0 if has_ended else plans.gain_since(outcome.adapting, 0.5)
    gain = 0.0 if np.isnan(gain) else gain
    runner = runner._replace(outcome=outcome, gain=gain, has_ended=has_ended)
    runners[runner.name] = runner
    if settings.verbose:
        print(f"{name}: {_place_of(runner, runners.values())}")
    if outcome.training.interrupted or outcome.training.stopped:
        raise _Ended(outcome.training)
    return runner


def _place_of(runner, runners):
    """How a runner does beside the best of the others, in words."""
    others = [one for one in runners if one.name != runner.name]
    if not others:
        return "the first of the sizes"
    best = _best(others)
    # one that has trained for longer is ahead for that alone
    n_rounds = min(one.outcome.training.n_iter for one in (runner, best))
    lead = runner.score_after(n_rounds) - best.score_after(n_rounds)
    side = "ahead of" if lead >= 0.0 else "behind"
    return f"{abs(lead):.2f} nats {side} {best.name} after as many rounds"


def _elapsed(runners):
    """Duration of all that has run, seconds."""
    ends = [one.outcome.training.history["seconds"][-1] for one in runners]
    return max(ends, default=0.0)


def _records(runners):
    """Entries of the history: each start with its gain over the best before.

    That of searched units is over the winner, after as many rounds.
    """
    records, best = [], None
    for one in runners:
        training, point = one.outcome.training, one.outcome.best
        before = best.score if best else one.outcome.first_score
        if one.rival is not None:
            best, before = one.rival, one.rival.score_after(training.n_iter)
        records.append(
            {
                "n_components": one.n_units,
                "change": one.n_units - (best.n_units if best else 0),
                "gain": one.score - before,
                "from_small_weights": float(one.rival is None),
                "n_updates": training.history["n_updates"][-1],
                "log_likelihood": point.log_likelihood,
                "validation_log_likelihood": point.validation,
                "seconds": training.history["seconds"][-1],
            }
        )
        best = one if best is None or one.score > best.score else best
    return records


def _random_units(settings, job, n_units):
    """The first state of a training from small random weights."""
    rbm = start_model("random", n_units, job.train, job.seed)
    return start_training(rbm, job.train, settings.batch_size, job.seed)


def _tree_units(settings, seen, pairs, job, n_units):
    """The same with units for the pairs of a tree, and small random weights for others.

    ``pairs`` are those of the rows that were ``seen``. On all rows, the tree may have
    another number of them.
    """
    rows = job.train
    with computing(settings.n_jobs, settings.learning_rate):
        rbm = pairs if rows is seen else pair_tree.tree_model(rows, n_units)
        others = start_model("random", n_units - len(rbm.weights), rows, job.seed)
        rbm = _with_idle(rbm, others.weights, rows.mean())
    return start_training(rbm, rows, settings.batch_size, job.seed)


def _with_idle(rbm, weights, means):
    """The model with more units, without what they add to the means of features.

    At the mean of its inputs, the log factor of a unit has a slope of one half.
    """
    rbm = solver.append(rbm, weights, -weights @ means)
    visible = rbm.visible - 0.5 * weights.sum(axis=0)
    return rbm._replace(visible=visible.astype(np.float32))


def _searched_units(settings, search, job, n_units):
    """The same from directions that Frank-Wolfe searches have found."""
    rows = job.train
    with computing(settings.n_jobs, settings.learning_rate):
        state = start_growth(independent_model(rows), rows, search.n_chains, job.seed)
        chains, _ = solver.gibbs(state.rbm, state.chains, 1)
        state = state._replace(chains=chains)
        rbm = growth.diverse_units(search.step, state, rows, n_units, job.seed)
        base = base_of(rows)
        rbm = solver.shrink(rbm, _START_NORM, base, rows.states(slice(MONITORED_ROWS)))
    return start_training(rbm, rows, settings.batch_size, job.seed)
