"""The number of hidden units: sizes that double race for the validation rows.

Every size is trained for the same number of updates, from small random weights. The
race ends when two doublings gain little of what all units have gained. Of the sizes
that are hardly behind the best, the middle one has won. At this size, units that were
found by Frank-Wolfe searches, each on rows of its own, run once more: training goes on
from the better start.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ..._persistence import Progress
from .. import model as solver
from ..learning import contrastive, growth
from . import adaptive, automatic
from .growing import MONITORED_ROWS, start_growth
from .history import append_record, print_round
from .job import Start, computing
from .outcome import Training
from .start import independent_model, start_model, start_training

_FIRST = 16
# Largest number that is tried, unless there are fewer rows.
MAX_UNITS = 1024
# Updates of a race: enough to tell sizes apart, few beside those of a training.
_N_UPDATES = 1500
# Fraction of the whole gain that a doubling has to add.
_LEAST_GAIN = 0.003
# A smaller gain may be chance, nats.
_LEAST = 0.02
# Fraction of the whole gain by which sizes differ without a meaning for the training
# that follows.
_HARDLY = 0.015
# Doublings in a row without such a gain that end the race: estimates are noisy.
_MAX_IN_VAIN = 2
# Norm of the units' weights at the start: they are directions, not yet units.
_START_NORM = 0.5


class Search(NamedTuple):
    """How units are searched for."""

    step: growth.Settings
    n_chains: int


class Runner(NamedTuple):
    """A size and its start, with how far it came."""

    outcome: adaptive.Outcome | None
    make_state: Callable
    """``make_state(job, n_units)`` gives the first state of a training"""
    n_units: int
    history: dict
    """one entry for it and each before it"""


class Race(NamedTuple):
    """The end of a race."""

    n_units: int
    make_state: Callable
    best: adaptive.Point
    training: Training
    """of that size, with one entry of the history per size"""


def train(settings, search, job, task, refit):
    """Find the number of units, and train so many.

    Parameters
    ----------
    settings : adaptive.Settings
    search : Search
    job : Job
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
    raced = race(settings, search, job, task)
    training, seconds = raced.training, raced.training.history["seconds"][-1]
    found = automatic.Found(training, None, automatic.decisions(raced.best))
    if training.interrupted:
        return found
    if training.stopped:
        progress = Progress(found, training.history, training.n_iter, seconds, True)
        job.checkpoint.save("result", progress, finished=True)
        return found

    def make_start(job):
        state = partial(raced.make_state, job, raced.n_units)
        return Start(state, training.history, training.n_iter, seconds)

    try:
        return automatic.train(settings, job, make_start, task, refit)
    except KeyboardInterrupt:
        if not settings.keep_last:
            raise
        return found._replace(training=training._replace(interrupted=True))


def race(settings, search, job, task):
    """Find the number of units, and how they start.

    Returns a `Race`.
    """
    n_updates = min(_N_UPDATES, settings.max_updates)
    # overfitting ends a run: how far a size comes by itself is what counts
    settings = settings._replace(max_updates=n_updates, adapts_decay=False)
    random = partial(_random_units, settings)
    searched = partial(_searched_units, settings, search)
    limit = max(1, min(MAX_UNITS, len(job.train)))
    run = partial(_run, settings, job, task)
    best, size, n_in_vain = Runner(None, random, 0, {}), min(_FIRST, limit), 0
    runners = []
    # bound: sizes double up to the limit
    while True:
        new = run(best, random, size, f"{size} units")
        runners.append(new)
        whole = new.outcome.best.validation - new.outcome.first_score
        # the first one is the best so far, even if it has gained nothing
        least = max(_LEAST, _LEAST_GAIN * whole)
        is_better = not best.n_units or new.history["gain"][-1] > least
        best = new if is_better else best._replace(history=new.history)
        n_in_vain = 0 if is_better else n_in_vain + 1
        ends = n_in_vain == _MAX_IN_VAIN or size == limit
        if ends or _has_ended(new):
            break
        size = min(2 * size, limit)
    if not _has_ended(new):
        best = _middle(runners, best)
        new = run(best, searched, best.n_units, f"{best.n_units} searched units")
        is_better = new.history["gain"][-1] > 0.0
        best = new if is_better else best._replace(history=new.history)
    point, n_iter = best.outcome.best, len(best.history["gain"])
    training = Training(
        point.state,
        best.history,
        n_iter,
        interrupted=new.outcome.training.interrupted,
        stopped=new.outcome.training.stopped,
    )
    return Race(best.n_units, best.make_state, point, training)


def _middle(runners, best):
    """The middle one of the sizes that are hardly behind the best.

    Which of them is ahead is chance, and the training that follows is longer. If their
    number is even, the smaller one of the middle is faster.
    """
    point, first_score = best.outcome.best, best.outcome.first_score
    behind = _HARDLY * (point.validation - first_score)
    if behind < _LEAST:
        return best
    least = point.validation - behind
    near = [one for one in runners if one.outcome.best.validation >= least]
    return near[(len(near) - 1) // 2]._replace(history=runners[-1].history)


def _has_ended(runner):
    """Whether Ctrl-C or a callback has ended the race."""
    return runner.outcome.training.interrupted or runner.outcome.training.stopped


def _run(settings, job, task, best, make_state, size, name):
    """Train one size from one start, and compare it with the best so far."""
    size_task = job.callbacks.begin(task.subcontext(name, max_subtasks=None))
    start = Start(partial(make_state, job, size), {}, 0)
    try:
        outcome = adaptive.train(settings, job, start, name, size_task)
    except KeyboardInterrupt:
        if not (settings.keep_last and best.n_units):
            raise
        return _interrupted(best)
    point, stopped = outcome.best, outcome.training.stopped
    if not outcome.training.interrupted:
        rbm = contrastive.model(settings.update, point.state)
        stopped = job.callbacks.end(size_task, rbm) or stopped
    before = best.outcome.best.validation if best.n_units else outcome.first_score
    seconds = best.history["seconds"][-1] if best.n_units else 0.0
    record = {
        "n_components": size,
        "change": size - best.n_units,
        "gain": point.validation - before,
        "log_likelihood": point.log_likelihood,
        "validation_log_likelihood": point.validation,
        "seconds": seconds + outcome.training.history["seconds"][-1],
    }
    if settings.verbose:
        print_round(name, record)
    outcome = outcome._replace(training=outcome.training._replace(stopped=stopped))
    return Runner(outcome, make_state, size, append_record(best.history, record))


def _interrupted(runner):
    """The best size so far, when the next one has not come far enough."""
    training = runner.outcome.training._replace(interrupted=True)
    return runner._replace(outcome=runner.outcome._replace(training=training))


def _random_units(settings, job, n_units):
    """The first state of a training from small random weights."""
    rbm = start_model("random", n_units, job.train, job.seed)
    return start_training(rbm, job.train, settings.batch_size, job.seed)


def _searched_units(settings, search, job, n_units):
    """The same from directions that Frank-Wolfe searches have found."""
    rows = job.train
    with computing(settings.n_jobs, settings.learning_rate):
        state = start_growth(independent_model(rows), rows, search.n_chains, job.seed)
        chains, _ = solver.gibbs(state.rbm, state.chains, 1)
        state = state._replace(chains=chains)
        rbm = growth.diverse_units(search.step, state, rows, n_units, job.seed)
        base = adaptive.base_of(rows)
        rbm = solver.shrink(rbm, _START_NORM, base, rows.states(slice(MONITORED_ROWS)))
    return start_training(rbm, rows, settings.batch_size, job.seed)
