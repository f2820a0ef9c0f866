"""Training that measures what it does, in rounds of updates.

Each round is a third of what was done before (`one_round`). From what it has gained,
`plans` decides what follows: chains that remember where they were many steps ago get
several temperatures; training goes on, or back to the best model with other settings,
or it ends there, and the step size falls to zero.

Which point was the best, and whether the last one is better, are decided by
`precise_estimates`.
"""

import time
from typing import NamedTuple

import numpy as np

from ..._persistence import Progress
from ..learning import contrastive
from . import gains, plans, precise_estimates, tracking
from .history import append_record, print_return, print_round
from .job import computing, resume
from .model_states import states_for_changes
from .one_round import run_round
from .path import Point
from .plans import Adapting
from .row_probabilities import MAX_MONITORED, mean_log_probability, monitored_rows
from .start import base_of, normalised_independent_model
from .training_result import Training

# Fraction of the time behind which no further training begins: the rest is for the best
# one, and to repeat it on all rows.
COMPARED = 0.4
# Fraction of the time for trainings; the rest is for estimates and checks behind them.
_TRAINED = 0.8
# A round takes longer.
_LEAST_SECONDS = 1e-9


class Outcome(NamedTuple):
    """What `train` gives back: a training that has ended, or paused."""

    training: Training
    """with the state of the best point"""
    best: Point
    """the one with the most likely validation rows"""
    first_score: float
    """validation log-likelihood of the start"""
    measured: tracking.Measured | None
    """of the best point; None if the training is not over"""
    adapting: Adapting
    """from which the training can go on"""


def train(
    settings,
    job,
    start,
    stage,
    task,
    *,
    adapting=None,
    n_rounds=None,
    until=gains.overfits_or_cools,
):
    """Train until the validation rows gain no more.

    Parameters
    ----------
    settings : plans.Settings
    job : Job
        With validation rows.
    start : Start
        Its state is left as it is.
    stage : str
        Name of the training in the checkpoint.
    task : callback context
        The task of which the rounds are parts.
    adapting : Adapting or None
        Where an earlier call has paused, whose history ``start`` has. None begins at
        the state of ``start``.
    n_rounds : int, inf or None
        Pause after so many entries of the history, or where ``until`` says so. None
        trains to the end.
    until : callable
        ``until(settings, adapting)``; by default whether the model overfits, or nothing
        is left but to lower the step size. Read only with ``n_rounds``.

    Returns
    -------
    outcome : Outcome
    """
    monitored = monitored_rows(job.train, job.seed, MAX_MONITORED)

    def begin():
        return adapting or _begin(settings, job, start, monitored)

    def pauses(adapting, n_iter):
        if n_rounds is None:
            return False
        # a new training has one round at least
        is_late = n_iter > start.n_iter and job.clock.over(COMPARED)
        return is_late or n_iter >= n_rounds or until(settings, adapting)

    progress = resume(job, stage, start._replace(make_state=begin))
    adapting, history, n_iter = progress[:3]
    began, done = time.perf_counter() - progress.seconds, progress.done
    stopped = False
    # bound: max_updates. From the best point training goes back to, at least one update
    # leads to a better one, and few returns in vain end it
    while not (done or pauses(adapting, n_iter)):
        round_task = job.callbacks.begin(task.subcontext("round"))
        try:
            adapting, record = run_round(settings, job, adapting, monitored, n_iter)
        except KeyboardInterrupt:
            if not (settings.keep_last and n_iter > start.n_iter):
                raise
            return _outcome(adapting, history, n_iter, interrupted=True)
        before = adapting.plan
        record["seconds"] = time.perf_counter() - began
        left = np.inf
        if n_rounds is None:
            left = _updates_left(job, before, record["seconds"] - progress.seconds)
        adapting, done = _decide(settings, job, adapting, n_iter, left)
        history, n_iter = append_record(history, record), n_iter + 1
        if settings.verbose:
            print_round(stage, record)
            if not done:
                name = f"{stage}, if chosen" if pauses(adapting, n_iter) else stage
                print_return(name, before, adapting.plan, adapting.best.n_updates)
        rbm = contrastive.model(settings.update, adapting.best.state)
        stopped = job.callbacks.end(round_task, rbm)
        done = done or stopped
        ends = done or pauses(adapting, n_iter)
        progress = Progress(adapting, history, n_iter, record["seconds"], ends)
        job.checkpoint.save(stage, progress)
    outcome = _outcome(adapting, history, n_iter, stopped=stopped)
    if n_rounds is not None:
        return outcome
    best, measured = precise_estimates.choose(settings, job, adapting, n_iter)
    if settings.verbose:
        print(f"{stage}: ended; the best model is that of {best.n_updates} updates")
    training = outcome.training._replace(state=best.state)
    return outcome._replace(training=training, best=best, measured=measured)


def _outcome(adapting, history, n_iter, **ends):
    """The `Outcome` after the rounds so far; ``ends`` says how they have ended."""
    best = adapting.best
    training = Training(best.state, history, n_iter, **ends)
    return Outcome(training, best, adapting.first_score, None, adapting)


def _updates_left(job, plan, seconds):
    """Updates for which there is time, if a round by ``plan`` takes so many seconds."""
    left = _TRAINED * job.clock.max_time - job.clock.passed
    return left / max(seconds, _LEAST_SECONDS) * plan.n_updates


def _decide(settings, job, adapting, number, left):
    """What follows a round, as `plans.decide`; the last one begins at the best point.

    That is by precise estimates, if there is time for them.
    """
    settings = settings._replace(refit=settings.refit and job.whole is not None)
    adapting, done = plans.decide(settings, len(job.train), adapting, left)
    begins_last = adapting.plan.cools and not done
    if begins_last and adapting.plan.reason != gains.NO_TIME:
        adapting = precise_estimates.reconsider(settings, job, adapting, number)
    return adapting, done


def _begin(settings, job, start, monitored):
    """The state before the first round: the start counts as a model, too."""
    state = contrastive.copy(start.make_state())
    with computing(settings.n_jobs, settings.learning_rate, settings.limit_blas):
        tracked = tracking.track(
            contrastive.model(settings.update, state),
            base_of(job.train),
            job,
            monitored,
            0,
        )
        states = states_for_changes(settings, job, state, plans.FIRST_ROUND, 0)
    point = Point(state, (), *tracked[:5], states)
    plan = plans.first_plan(settings, state)
    # what a start knows has been gained, too
    independent, log_partition = normalised_independent_model(job.train)
    score = mean_log_probability(independent, job.validation) - log_partition
    return Adapting(point, point, plan, min(tracked.validation, score))


def start_of(settings, job, start):
    """The `Point` where a training starts, and its `tracking.Measured`."""
    monitored = monitored_rows(job.train, job.seed, MAX_MONITORED)
    point = _begin(settings, job, start, monitored).best
    (measured,) = precise_estimates.measure(settings, job, [point], 0)
    return precise_estimates.measured_point(point, measured), measured
