"""Trainings to their end, of which the best one gives the result of a fit.

Most often there is one. Another one follows

- from larger random weights, if the first one has not left its start;
- of each smaller model, while the chains of the best one do not move between its modes.

A training that has begun at a tree (`pair_tree`) has to be better than the tree.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ..learning import contrastive
from ..likelihood.estimates import MAX_DIFFERENCE
from . import adaptive, gains, plans
from .job import Start
from .row_probabilities import error_of_lead
from .start import larger_model, start_training

# Difference of both directions of annealing, as a fraction of what training has gained,
# that is worth another training.
_DOUBTFUL = 0.01


class Candidate(NamedTuple):
    """A training whose model may be the result of a fit."""

    make_start: Callable
    """``make_start(job)`` gives the `Start`"""
    stage: str = "training"
    """its name in the checkpoint"""
    adapting: plans.Adapting | None = None
    """where it has paused; None begins at the start"""
    retries: bool = False
    """whether larger weights are tried where the start is not left"""
    begins_at: str = "model"
    """"random" weights, which know nothing; a "model"; or a "tree", which stays unless
    training surely improves it"""
    outcome: adaptive.Outcome | None = None
    """its end; None before"""

    @property
    def ends_fit(self):
        """Whether a Ctrl-C or a callback has ended the fit with it."""
        training = self.outcome.training
        return training.interrupted or training.stopped


def train_best(settings, job, candidate, task, smaller=()):
    """Train a candidate to its end, and others where it may not be the best.

    Parameters
    ----------
    settings : plans.Settings
    job : Job
        With validation rows.
    candidate : Candidate
    task : callback context
    smaller : iterable of Candidate
        Smaller models that have paused, asked for one by one.

    Returns
    -------
    best : Candidate
        With its outcome.
    """
    best = _trained(settings, job, candidate, task)
    best = _or_larger_weights(settings, job, best, task)
    return _or_smaller(settings, job, best, smaller, task)


def _trained(settings, job, candidate, task):
    """The candidate with its outcome."""
    start, stage = candidate.make_start(job), candidate.stage
    outcome = adaptive.train(
        settings, job, start, stage, task, adapting=candidate.adapting
    )
    return candidate._replace(outcome=outcome)


def _or_larger_weights(settings, job, best, task):
    """The best one, or a training from another start if it has not left its own."""
    outcome = best.outcome
    training, point = outcome.training, outcome.best
    has_left = gains.has_left(outcome.first_score, point.validation)
    is_fine = has_left or gains.ended_by(settings, outcome) is not None
    # where training takes next to no time, both starts have their chance
    is_final = best.ends_fit or (is_fine and not settings.enumerates)
    if is_final or not best.retries or job.clock.over(adaptive.COMPARED):
        return best
    rounds = training.history, training.n_iter, training.history["seconds"][-1]

    def make_start(job):
        rbm = larger_model(point.n_units, job.train, job.seed)
        arguments = rbm, job.train, settings.batch_size, job.seed
        return Start(partial(start_training, *arguments), *rounds)

    stage = f"{best.stage}, larger weights"
    other = Candidate(make_start, stage, begins_at="random")
    return _better(settings, job, best, other, task)


def _or_smaller(settings, job, best, smaller, task):
    """The best one, or a smaller one that is better while its chains do not move.

    What is compared is what annealing and the rows say of each model together: where
    chains do not move between its modes, annealing alone is wishful.
    """
    for other in smaller:
        is_late = job.clock.over(adaptive.COMPARED)
        if is_late or best.ends_fit or not _is_in_doubt(best.outcome):
            break
        best = _better(_as_long(settings, best, other), job, best, other, task)
    return best


def _is_in_doubt(outcome):
    """Whether annealing contradicts itself, or the rows, by much."""
    whole = outcome.best.validation - outcome.first_score
    return outcome.measured.gap > max(MAX_DIFFERENCE, _DOUBTFUL * whole)


def _as_long(settings, best, other):
    """Settings by which the other may train for as long as the best model.

    The time of an update is about in proportion to the number of units. A small model
    would go on for as long as it gains, which may take many times as long.
    """
    point, n_before = best.outcome.best, other.adapting.current.n_updates
    n_updates = point.n_updates * point.n_units // other.adapting.best.n_units
    most = max(n_before, min(settings.max_updates, n_updates))
    return settings._replace(max_updates=most)


def _better(settings, job, best, other, task):
    """The better of both, after the training of the other one.

    If a Ctrl-C or a callback ends that, what is complete stays, as the end of the fit.
    """
    try:
        other = _trained(settings, job, other, task)
    except KeyboardInterrupt:
        if not settings.keep_last:
            raise
        return _ended(best, interrupted=True)
    if other.ends_fit:
        end = other.outcome.training
        return _ended(best, interrupted=end.interrupted, stopped=end.stopped)
    measured = [one.outcome.measured.validation for one in (best, other)]
    return other if measured[1] > measured[0] else best


def _ended(candidate, **ends):
    """The candidate, whose training counts as ended in this way."""
    outcome = candidate.outcome
    training = outcome.training._replace(**ends)
    return candidate._replace(outcome=outcome._replace(training=training))


def or_tree(settings, job, candidate):
    """The candidate, or the tree that it began at, if it gains no more than chance.

    The best round of many is better on the rows that have chosen it.
    """
    outcome = candidate.outcome
    has_changed = outcome.best.n_updates > 0
    if candidate.begins_at != "tree" or candidate.ends_fit or not has_changed:
        return candidate
    point, measured = adaptive.start_of(settings, job, candidate.make_start(job))
    lead = outcome.measured.validation - measured.validation
    models = [
        contrastive.model(settings.update, one.state) for one in (outcome.best, point)
    ]
    if lead > error_of_lead(job.validation, *models):
        return candidate
    training = outcome.training._replace(state=point.state)
    outcome = outcome._replace(training=training, best=point, measured=measured)
    return candidate._replace(outcome=outcome)
