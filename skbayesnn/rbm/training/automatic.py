"""A training without settings: adapted, checked, and repeated on all rows.

The adapted training holds rows out. Its best model is checked by annealing in both
directions, and against independent features; then the same updates are run on all rows.
The repeated training counts only if the rows that were held out, which it has seen,
are at least as likely as before.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit
from sklearn.exceptions import ConvergenceWarning

from ..._persistence import Progress
from ..._warnings import warn_caller
from ...exceptions import MixingWarning
from .. import model as rbm_model
from ..learning import contrastive
from ..likelihood import enumerated
from . import adaptive, mode_correction, plans
from .gap import error_of_lead, log_probabilities
from .job import Start, computing
from .outcome import Training
from .start import (
    base_of,
    independent_model,
    larger_model,
    normalised_independent_model,
    start_training,
)

# What an adapted training starts with, where the estimator says "auto": the step size
# of features with this variance or more, and the limit of the change of the log
# probabilities by a step, in nats and as a fraction of their standard deviation over
# the rows under independent features.
_LEARNING_RATE, _USUAL_VARIANCE = 0.2, 0.15
_MAX_CHANGE, _RELATIVE_CHANGE = 1.0, 0.015
# Smaller variances count as this one: a few of thousands of rows say little.
_LEAST_VARIANCE = 1e-3
# Damping of the natural gradient, which such a training follows.
_DAMPING = 0.1
# Difference of both directions of annealing that is worth a warning, nats.
_MAX_DIFFERENCE = 1.0
# The same, as a fraction of what training has gained, that is worth another training.
_DOUBTFUL = 0.01
# Fraction of the log-likelihood of independent features by which a failed training is
# behind it.
_FAILED = 0.01
# Probability of a smaller difference by chance: two standard errors of many rows.
_CHANCE = 0.977
# Of a mean free energy in float32, nats.
_ROUNDING = 1e-3


class Entrant(NamedTuple):
    """A training that has not ended."""

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


class Found(NamedTuple):
    """The end of a training, and what is to be said of it."""

    training: Training
    warning: str | None
    decisions: dict
    """fitted attributes: what was chosen"""
    learned: bool = True
    """whether the model is more than independent features"""

    def warn(self):
        """Say it, at the end of a fit."""
        if self.warning is not None:
            warn_caller(self.warning, MixingWarning)
        elif not self.learned:
            warn_caller(_NOT_LEARNED, ConvergenceWarning)


def settings_of(estimator, rows):
    """The settings of an estimator with the parameters of contrastive divergence.

    ``rows`` are those that it is trained on.
    """
    n_steps, decay = estimator.n_gibbs_steps, estimator.weight_decay
    rate = estimator.learning_rate
    # whoever sets one of them asks for these updates
    is_free = rate == "auto" and n_steps == "auto" and estimator.persistent
    update = contrastive.Settings(
        1 if n_steps == "auto" else n_steps,
        estimator.persistent,
        float(estimator.momentum),
        0.0 if decay == "auto" else float(decay),
        estimator.centered,
        float(estimator.averaging),
        _max_change(rows) if rate == "auto" else None,
        _DAMPING if rate == "auto" else None,
        jumps=is_free,
    )
    return plans.Settings(
        update,
        _learning_rate(rows) if rate == "auto" else float(rate),
        estimator.batch_size,
        estimator.max_updates if _may_depend(rows) else 1,
        adapts_gibbs=n_steps == "auto",
        tempers=n_steps == "auto" and estimator.persistent,
        adapts_decay=decay == "auto",
        enumerates=is_free and _can_list(rows) and _may_depend(rows),
        keep_last=estimator.warm_start,
        n_jobs=estimator.n_jobs,
        limit_blas=estimator.binarize is not None,
        verbose=estimator.verbose,
    )


def _can_list(rows):
    """Whether the rows are some of few states."""
    few = enumerated.can_list(rows.units, rows.n_features)
    return few and not rows.hold_grey_values()


def _may_depend(rows):
    """Whether more than one feature varies; if not, independent ones tell all.

    Training would make constant features more certain forever.
    """
    rates = rows.mean()
    return np.count_nonzero((rates > 0.0) & (rates < 1.0)) > 1


def _learning_rate(rows):
    """The step size, which is larger where features are rare.

    The curvature of the log-likelihood by the weights of a feature is in proportion to
    its variance: with the same step size, rare features would learn nothing for
    thousands of updates. The mean weighs features by their variances, which makes it
    that of the features that diverge first.
    """
    rates = rows.mean()
    if ((rates == 0.0) | (rates == 1.0)).all():
        # of one row, or of equal ones, there is nothing to be learned
        return _LEARNING_RATE
    variances = rows.units.variances(rates)
    variance = np.square(variances).sum() / max(variances.sum(), _LEAST_VARIANCE)
    return _LEARNING_RATE * max(1.0, _USUAL_VARIANCE / max(variance, _LEAST_VARIANCE))


def _max_change(rows):
    """The limit of the change by a step, nats."""
    values = log_probabilities(independent_model(rows), rows)
    return max(_MAX_CHANGE, _RELATIVE_CHANGE * float(values.std()))


def train(settings, job, entrant, task, refit, *, rivals=()):
    """Train, check, and repeat on all rows.

    Parameters
    ----------
    settings : plans.Settings
    job : Job
        With validation rows, and all rows if those were held out.
    entrant : Entrant
    task : callback context
    refit : bool
        Whether to repeat the training on all rows.
    rivals : iterable of Entrant
        Smaller models: trained as well, one by one, while the chains of the best one do
        not move between its modes.

    Returns
    -------
    found : Found
    """
    finished = job.checkpoint.load("result")
    if finished is not None:
        return finished.state
    began = time.perf_counter()
    leader = Leader(entrant, _run(settings, job, entrant, task))
    leader = _from_elsewhere(settings, job, leader, task)
    leader = _without_doubt(settings, job, leader, rivals, task)
    training, best = leader.outcome.training, leader.outcome.best
    if training.interrupted:
        return Found(training, None, decisions(best))
    try:
        leader = _or_tree(settings, job, leader)
        entrant, outcome = leader
        training, best = outcome.training, outcome.best
        found = _check(settings, job, leader)
        whole = refit and job.whole is not None and not training.stopped
        repeats = whole and found.training is training
        if repeats:
            if settings.verbose:
                n_rows, n_updates = len(job.whole), best.n_updates
                print(f"refit: {n_updates} updates on all {n_rows} rows")
            repeated = _repeat(settings, job, entrant.make_start, training, best)
            found = found._replace(training=repeated)
        rows = job.whole if whole else job.train
        if found.learned and not training.stopped:
            found = _with_corrected_modes(settings, job, found, rows)
    except KeyboardInterrupt:
        if not settings.keep_last:
            raise
        interrupted = training._replace(interrupted=True)
        return Found(interrupted, None, decisions(best))
    if settings.verbose:
        print(_summary(settings, outcome, best, repeats))
    seconds = time.perf_counter() - began
    progress = Progress(found, training.history, training.n_iter, seconds, done=True)
    job.checkpoint.save("result", progress, finished=True)
    return found


def _run(settings, job, entrant, task):
    """The `adaptive.Outcome` of a training."""
    start, stage = entrant.make_start(job), entrant.stage
    return adaptive.train(settings, job, start, stage, task, adapting=entrant.adapting)


class Leader(NamedTuple):
    """The best of the trainings that have ended."""

    entrant: Entrant
    outcome: adaptive.Outcome

    @property
    def is_last(self):
        """Whether the fit is over, by a Ctrl-C or a callback."""
        training = self.outcome.training
        return training.interrupted or training.stopped


def _from_elsewhere(settings, job, leader, task):
    """The leader, or a training from another start if it has not left its own."""
    entrant, outcome = leader
    training, best = outcome.training, outcome.best
    has_left = plans.has_left(outcome.first_score, best.validation)
    is_fine = has_left or not _had_time(settings, training)
    # where training takes next to no time, both starts have their chance
    is_final = leader.is_last or (is_fine and not settings.enumerates)
    if is_final or not entrant.retries:
        return leader
    rounds = training.history, training.n_iter, training.history["seconds"][-1]

    def make_start(job):
        rbm = larger_model(_n_units(best), job.train, job.seed)
        arguments = rbm, job.train, settings.batch_size, job.seed
        return Start(partial(start_training, *arguments), *rounds)

    stage = f"{entrant.stage}, larger weights"
    other = Entrant(make_start, stage, begins_at="random")
    return _after(settings, job, leader, other, task)


def _had_time(settings, training):
    """Whether it had the updates that it takes to leave a plateau, or ended before."""
    n_updates = training.history["n_updates"].max()
    return n_updates >= plans.PLATEAU_UPDATES or n_updates < settings.max_updates


def _without_doubt(settings, job, leader, others, task):
    """The leader, or one of the others that is better for sure.

    What is compared is what annealing and the rows say of each model together: where
    chains do not move between its modes, annealing alone is wishful.
    """
    for other in others:
        if leader.is_last or not _is_in_doubt(leader.outcome):
            break
        leader = _after(_as_long(settings, leader, other), job, leader, other, task)
    return leader


def _as_long(settings, leader, other):
    """Settings by which the other may train for as long as the leader's best model.

    The time of an update is about in proportion to the number of units. A small model
    would go on for as long as it gains, which may take many times as long.
    """
    best = leader.outcome.best
    n_before, n_units = other.adapting.current.n_updates, _n_units(other.adapting.best)
    n_updates = best.n_updates * _n_units(best) // n_units
    most = max(n_before, min(settings.max_updates, n_updates))
    return settings._replace(max_updates=most)


def _n_units(point):
    return len(point.state.rbm.weights)


def _after(settings, job, leader, other, task):
    """The leader after another training."""
    entrant, outcome = leader
    try:
        new = _run(settings, job, other, task)
    except KeyboardInterrupt:
        if not settings.keep_last:
            raise
        return Leader(entrant, _ended(outcome, interrupted=True))
    end = new.training
    if end.interrupted or end.stopped:
        ends = {"interrupted": end.interrupted, "stopped": end.stopped}
        return Leader(entrant, _ended(outcome, **ends))
    is_better = new.measured.validation > outcome.measured.validation
    return Leader(other, new) if is_better else leader


def _ended(outcome, **ends):
    """What is complete, where another training has been ended."""
    return outcome._replace(training=outcome.training._replace(**ends))


def _is_in_doubt(outcome):
    """Whether annealing contradicts itself, or the rows, by much."""
    whole = outcome.best.validation - outcome.first_score
    return outcome.measured.gap > max(_MAX_DIFFERENCE, _DOUBTFUL * whole)


def model(settings, found):
    """The RBM that a training gives back."""
    return contrastive.model(settings.update, found.training.state)


_DIFFERENT = (
    "The chains do not move between the modes of the model: its mean log-likelihood of "
    "the validation rows is {:.2f} nats by annealing from independent features, and "
    "{:.2f} by annealing back. Compare both by log_partition('both'), use fewer units, "
    "or more Gibbs steps with n_gibbs_steps."
)
_MISSED = (
    "The chains do not reach all modes of the model: by the training and validation "
    "rows, the log partition function is at least {:.2f} nats larger than by "
    "annealing. Compare log_partition('both', X=X) with these rows, use fewer units, "
    "or more Gibbs steps with n_gibbs_steps."
)
_NOTHING = (
    "Training has failed, as it does where the chains do not move between the modes of "
    "the model: the validation rows have {:.2f} nats, those of independent features "
    "{:.2f}. The model is that of independent features. Use fewer units, a smaller "
    "learning_rate, or more Gibbs steps with n_gibbs_steps."
)
_NOT_LEARNED = (
    "Nothing was learned: by no model that was tried, the validation rows are more "
    "likely than by independent features, and these are the model. Its units have no "
    "weights, and its features are the same for all rows. Either the features are "
    "independent, or the rows are too few to tell how they depend on each other."
)


def _or_tree(settings, job, leader):
    """The leader, or the tree that it began at, if it is better by no more than chance.

    The best round of many is better on the rows that have chosen it.
    """
    entrant, outcome = leader
    if entrant.begins_at != "tree" or leader.is_last or not outcome.best.n_updates:
        return leader
    point, measured = adaptive.start_of(settings, job, entrant.make_start(job))
    lead = outcome.measured.validation - measured.validation
    models = [
        contrastive.model(settings.update, one.state) for one in (outcome.best, point)
    ]
    if lead > error_of_lead(job.validation, *models):
        return leader
    training = outcome.training._replace(state=point.state)
    outcome = outcome._replace(training=training, best=point, measured=measured)
    return Leader(entrant, outcome)


def _check(settings, job, leader):
    """The training, or independent features if those are as good, and a warning."""
    entrant, outcome = leader
    training, best, measured = outcome.training, outcome.best, outcome.measured
    warning, learned = None, True
    if abs(measured.forward - measured.reverse) > _MAX_DIFFERENCE:
        warning = _DIFFERENT.format(measured.forward, measured.reverse)
    elif measured.missed > _MAX_DIFFERENCE:
        warning = _MISSED.format(measured.missed)
    rbm = contrastive.model(settings.update, best.state)
    independent, chance = _independent(job, rbm)
    validation = measured.validation
    worse = validation < independent - 3.0 * measured.error - chance - _ROUNDING
    # a fit that goes on from another may have a good start; and the best round of many
    # that have not left a start is one by chance
    untrained = not best.n_updates
    same = untrained or _had_time(settings, training)
    same = same and not plans.has_left(independent, validation)
    knows_nothing = untrained and entrant.begins_at == "random"
    same = same and (knows_nothing or validation <= independent + chance + _ROUNDING)
    # steps without noise leave a start sooner, also for what is chance: one standard
    # error, as the best of many rounds is better by about as much
    by_chance = settings.enumerates and validation <= independent + 0.5 * chance
    same |= by_chance and not untrained
    nothing = not _may_depend(job.train)
    if worse or same or nothing:
        state = _without_units(settings, job, _n_units(best))
        # else there was nothing to learn, and noise has made it a little worse
        least = max(_FAILED * abs(independent), chance)
        if independent - validation > least and not nothing:
            warning = _NOTHING.format(validation, independent)
        training, learned = training._replace(state=state), False
        best = best._replace(validation=independent, path=())
    return Found(training, warning, decisions(best), learned)


def decisions(best):
    """Fitted attributes that tell what was chosen."""
    n_steps, decay = 1, 0.0
    if best.path:
        last = best.path[-1].segment
        n_steps, decay = last.n_gibbs_steps, last.weight_decay
    return {
        "n_updates_": best.n_updates,
        "n_gibbs_steps_": int(n_steps),
        "n_replicas_": contrastive.n_replicas(best.state),
        "weight_decay_": float(decay),
    }


def _independent(job, rbm):
    """Mean log-likelihood of the validation rows by independent features.

    Also what a model may differ from it by chance: from a start from which nothing was
    gained, it is on either side. That is two standard errors, or more of them where
    few rows tell how large one is (Student's t).
    """
    independent, log_partition = normalised_independent_model(job.train)
    values = log_probabilities(independent, job.validation)
    expected = float(values.mean() - log_partition)
    error = error_of_lead(job.validation, rbm, independent)
    return expected, float(stdtrit(max(len(values) - 1, 1), _CHANCE) * error)


def _without_units(settings, job, n_units):
    """A state whose units have no weights: that of independent features."""
    rbm = independent_model(job.train)
    weights = np.zeros((n_units, len(rbm.visible)))
    rbm = rbm_model.append(rbm, weights, np.zeros(n_units))
    return start_training(rbm, job.train, settings.batch_size, job.seed)


def _repeat(settings, job, make_start, training, best):
    """The training with the same updates on all rows, unless that went wrong."""
    job = job._replace(train=job.whole)
    state = make_start(job).make_state()
    repeated = adaptive.repeat(settings, job, state, best)
    return training if repeated is None else training._replace(state=repeated)


def _with_corrected_modes(settings, job, found, rows):
    """The same with modes as likely as in the rows, where that is certain to gain."""
    training, rbm = found.training, model(settings, found)
    if not len(rbm.weights):
        return found
    n_betas = adaptive.precise_temperatures(found.decisions["n_updates_"])
    with computing(settings.n_jobs, settings.learning_rate, settings.limit_blas):
        shift = mode_correction.find_shift(
            rbm, base_of(job.train), rows, n_betas, job.seed, settings.n_jobs
        )
    if shift is None:
        return found
    if settings.verbose:
        print(f"modes in proportion to the rows: {shift.gain:.2f} nats gained")
    state = contrastive.shifted(training.state, shift.biases)
    return found._replace(training=training._replace(state=state))


def _summary(settings, outcome, best, is_repeated):
    chosen = decisions(best)
    text = (
        f"chosen: {_n_units(best)} units, {chosen['n_updates_']} updates, "
        f"Gibbs steps {chosen['n_gibbs_steps_']}, temperatures "
        f"{chosen['n_replicas_']}, weight decay {chosen['weight_decay_']:.2g}, "
        f"validation log-likelihood {best.validation:.2f} nats"
        f"{' before the refit' if is_repeated else ''}"
    )
    # the last round, in which the step size falls, is beyond the limit
    rounds = outcome.adapting.current.path[:-1]
    n_updates = sum(one.segment.n_updates for one in rounds)
    if n_updates >= settings.max_updates:
        gain = plans.gain_since(outcome.adapting, 0.5)
        text += f"; ended by max_updates, whose second half gained {gain:.2f} nats"
    return text
