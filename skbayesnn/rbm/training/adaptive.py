"""Training that measures what it does, in rounds of updates.

Each round is a third of what was done before. After it, the log-likelihoods of training
and validation rows are estimated (`tracking`), by what the round has gained
(`changes`), and `plans` decides what follows: chains that remember where they were many
steps ago get several temperatures; training goes on, or back to the best model with
other settings, or it ends there, and the step size falls to zero.

The step size falls with the root of the number of updates, besides: a constant one
stirs up the weights, which looks like overfitting.

Without states of the chains, estimates scatter, and the best of many errs upwards. One
that is a little better than the best is repeated with more chains. Which point was the
best, and whether the last one is better, are decided by precise estimates, too.

The path to the best model is kept: the same updates can be run on other rows.
"""

import time
from functools import partial
from typing import NamedTuple

import numpy as np

from ..._persistence import Progress
from ..._random import Stream, derived_seed, generator
from ..learning import contrastive, mixing
from ..model import is_standard
from . import changes, few_features, plans, tracking
from .gap import MAX_MONITORED, mean_log_probability, monitored_rows
from .history import append_record, print_round
from .job import computing, resume
from .outcome import Training
from .path import Point, Round
from .plans import Adapting
from .start import base_of, normalised_independent_model

# Steps after which the chains should have forgotten where they were: a fraction of the
# round's updates, as the next one has more, and the fewest and most of them; if their
# states still correlate by more than this with those before, they mix too slowly.
_MIXING, _MIXING_STEPS, _MAX_CORRELATION = 0.2, (20, 100), 0.5
# Multiple of what may be chance below which a gain is estimated again: the estimates
# have heavier tails than they know.
_DOUBT = 2.0
# Updates from which on the step size falls with the root of their number, as the
# averages of Polyak and Juditsky ask for: behind the comparison of sizes.
_FALLING = 2000
# Temperatures of a precise estimate per update, and the fewest and most of them.
_MEASURED, _N_BETAS = 0.1, (200, 2000)
# Tells the estimate of a repeated training from those of the first.
_REPEATED = 2**20


class Outcome(NamedTuple):
    """The end of a training."""

    training: Training
    best: Point
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
    until=plans.overfits_or_cools,
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
    base = base_of(job.train)

    def begin():
        return adapting or _begin(settings, job, start, monitored, base)

    def pauses(adapting, n_iter):
        if n_rounds is None:
            return False
        return n_iter >= n_rounds or until(settings, adapting)

    progress = resume(job, stage, start._replace(make_state=begin))
    adapting, history, n_iter = progress[:3]
    began, done = time.perf_counter() - progress.seconds, progress.done
    stopped = False
    # bound: max_updates. From the best point training goes back to, at least one update
    # leads to a better one, and few returns in vain end it
    while not (done or pauses(adapting, n_iter)):
        round_task = job.callbacks.begin(task.subcontext("round"))
        try:
            adapting, record = run_round(
                settings, job, adapting, monitored, base, n_iter
            )
        except KeyboardInterrupt:
            if not (settings.keep_last and n_iter > start.n_iter):
                raise
            training = Training(adapting.best.state, history, n_iter, interrupted=True)
            return Outcome(
                training, adapting.best, adapting.first_score, None, adapting
            )
        adapting, done = plans.decide(settings, len(job.train), adapting)
        if adapting.plan.cools and not done:
            adapting = _reconsider(settings, job, adapting, n_iter)
        record["seconds"] = time.perf_counter() - began
        history, n_iter = append_record(history, record), n_iter + 1
        if settings.verbose:
            print_round(stage, record)
        rbm = contrastive.model(settings.update, adapting.best.state)
        stopped = job.callbacks.end(round_task, rbm)
        done = done or stopped
        ends = done or pauses(adapting, n_iter)
        progress = Progress(adapting, history, n_iter, record["seconds"], ends)
        job.checkpoint.save(stage, progress)
    best, measured = adapting.best, None
    if n_rounds is None:
        best, measured = _choose(settings, job, adapting, n_iter)
    training = Training(best.state, history, n_iter, stopped=stopped)
    return Outcome(training, best, adapting.first_score, measured, adapting)


def _begin(settings, job, start, monitored, base):
    """The state before the first round: the start counts as a model, too."""
    state = contrastive.copy(start.make_state())
    with computing(settings.n_jobs, settings.learning_rate, settings.limit_blas):
        tracked = tracking.track(
            contrastive.model(settings.update, state), base, job, monitored, 0
        )
        states = _states(settings, job, state, plans.FIRST_ROUND, 0)
    point = Point(state, (), *tracked[:5], states)
    plan = plans.first_plan(settings, state)
    # what a start knows has been gained, too
    independent, log_partition = normalised_independent_model(job.train)
    score = mean_log_probability(independent, job.validation) - log_partition
    return Adapting(point, point, plan, min(tracked.validation, score))


def start_of(settings, job, start):
    """The `Point` where a training starts, and its `tracking.Measured`."""
    monitored = monitored_rows(job.train, job.seed, MAX_MONITORED)
    point = _begin(settings, job, start, monitored, base_of(job.train)).best
    (measured,) = _measure(settings, job, [point], 0)
    return _measured_point(point, measured), measured


def run_round(settings, job, adapting, monitored, base, number):
    """Run the updates of the plan, and estimate the log-likelihoods.

    Returns the new `Adapting`, with the same plan, and an entry for the history.
    """
    plan, before = adapting.plan, adapting.current
    segment = plan.segment
    state = contrastive.copy(before.state)
    with computing(settings.n_jobs, settings.learning_rate, settings.limit_blas):
        state, error, rate = run_segment(
            settings, job, state, segment, before.n_updates
        )
        states = _states(settings, job, state, plan.n_updates, number + 1)
        tracked = tracking.track(
            contrastive.model(settings.update, state), base, job, monitored,
            number + 1, plan.betas, plan.n_updates, settings.n_jobs,
            draws=_draws(settings, job, state, number),
            doubted=partial(_is_doubtful, adapting.best),
            predicted=_predicted(settings, before, state, states),
        )  # fmt: skip
    adapting = _corrected(adapting, tracked.shift)
    path = (*adapting.current.path, Round(segment, tracked.validation))
    point = Point(state, path, *tracked[:5], states)
    record = {
        "n_updates": point.n_updates,
        "learning_rate": rate,
        "n_gibbs_steps": plan.n_gibbs_steps,
        "n_replicas": plan.n_replicas,
        "weight_decay": plan.weight_decay,
        "mean_error": error,
        "log_likelihood": tracked.log_likelihood,
        "validation_log_likelihood": tracked.validation,
        "log_partition_error": tracked.level_error,
    }
    plan = adapting.plan._replace(betas=tracked.betas)
    is_plain = plan.n_replicas == 1 and plan.n_gibbs_steps == 1
    if settings.adapts_gibbs and is_plain and not _lists_states(settings, state):
        plan = _with_mixing(settings, job, plan, state, number)
        record["correlation"] = plan.correlation
    return adapting._replace(current=point, plan=plan), record


def _with_mixing(settings, job, plan, state, number):
    """The plan with what the chains remember, and other chains if that is too much."""
    seed = derived_seed(job.seed, Stream.MIXING, number)
    rows = _rows_to_jump_to(settings, job, state)
    n_steps = int(np.clip(_MIXING * plan.n_updates, *_MIXING_STEPS))
    correlation = mixing.chain_correlation(state, n_steps, seed, rows)
    plan = plan._replace(correlation=correlation)
    if correlation > _MAX_CORRELATION:
        plan = plans.mix_faster(settings, plan, state)
    return plan


def _rows_to_jump_to(settings, job, state):
    """Rows of data for the jumps of chains, if they have some."""
    if not (settings.update.jumps and is_standard(state.rbm)):
        return None
    return job.train.states(slice(settings.batch_size))


def _draws(settings, job, state, number):
    """A function that gives states of the model, for `tracking`.

    None where chains begin anew at each batch, and are none of the model.
    """
    if not settings.update.persistent:
        return None
    return partial(
        mixing.draws,
        contrastive.model(settings.update, state),
        state,
        seed=derived_seed(job.seed, Stream.MIXING, number, 1),
        rows=_rows_to_jump_to(settings, job, state),
    )


def _states(settings, job, state, n_updates, number):
    """States of the model that tell what a round has changed; None without.

    Chains with several temperatures move too slowly for that: they agree with a model
    that has become worse.
    """
    draws = _draws(settings, job, state, number)
    if draws is None or contrastive.n_replicas(state) > 1:
        return None
    n_states = changes.n_states(len(state.chains), n_updates)
    return draws(n_states) if n_states and not tracking.is_exact(state.rbm) else None


def _predicted(settings, before, state, states):
    """The log partition function after a round, and its change; None without states."""
    is_known = states is not None and before.states is not None
    n_chains = len(state.chains)
    if not is_known or len(before.state.chains) != n_chains:
        return None
    models = [contrastive.model(settings.update, one) for one in (before.state, state)]
    change = changes.log_ratio(*models, before.states, states, n_chains)
    error = float(np.hypot(before.level_error, change.error))
    return changes.Estimate(before.log_partition + change.value, error), change


def _corrected(adapting, shift):
    """All points with the level that is known now."""
    current, best, *others = (
        changes.corrected(point, shift)
        for point in (adapting.current, adapting.best, *adapting.others)
    )
    # what the last change of plan has to exceed is the best point of then: if that is
    # the best one still, it is exactly its score
    gained = adapting.best.validation - adapting.plan.score_at_change
    score = best.validation - gained
    return adapting._replace(
        current=current,
        best=best,
        plan=adapting.plan._replace(score_at_change=score),
        others=tuple(others),
    )


def _is_doubtful(best, tracked):
    """Whether a model looks better than the best one, by what may be chance.

    The best of many estimates is one that errs upwards: later ones hardly exceed it.
    """
    gain = tracked.validation - best.validation
    return 0.0 < gain < _DOUBT * plans.noise(tracked, best)


def run_segment(settings, job, state, segment, n_before):
    """Run some updates; returns the new state, and mean error and step size."""
    n_updates, n_replicas = segment.n_updates, segment.n_replicas
    if _lists_states(settings, state):
        return few_features.ascend(
            settings, job, state, n_updates, segment.weight_decay, n_before
        )
    update = settings.update
    if update.max_change is not None:
        # half of the rate is half of the change, too
        part = _fallen(state.step) * segment.first_rate / settings.learning_rate
        update = update._replace(max_change=update.max_change * part)
    update = update._replace(
        n_gibbs_steps=segment.n_gibbs_steps, weight_decay=segment.weight_decay
    )
    seed = derived_seed(job.seed, Stream.EPOCH_CHAINS)
    if n_replicas > 1 and contrastive.n_replicas(state) != n_replicas:
        start_seed = derived_seed(job.seed, Stream.EPOCH_CHAINS, n_before)
        base = base_of(job.train)
        state = contrastive.temper(state, base, n_replicas, start_seed)
    batches = batches_from(job, settings.batch_size, n_before)
    error, mean_rate = 0.0, 0.0
    first_rate, change = segment.first_rate, segment.last_rate - segment.first_rate
    for k in range(n_updates):
        rate = first_rate + change * k / n_updates
        rate *= _fallen(state.step)
        batch = job.train.states(next(batches))
        state, info = contrastive.step(update, state, batch, rate, seed)
        error += info.mean_error / n_updates
        mean_rate += info.rate / n_updates
    contrastive.settle(update, state)
    contrastive.check(state)
    return state, error, mean_rate


def _lists_states(settings, state):
    """Whether a segment needs no chains."""
    return settings.enumerates and is_standard(state.rbm)


def _fallen(number):
    """What is left of the step size at an update; the first has the number 1."""
    return min(1.0, float(np.sqrt(_FALLING / number)))


def batches_from(job, batch_size, n_before):
    """Indices of the rows of all batches after the first ones, epoch after epoch."""
    n_rows = len(job.train)
    n_batches = -(-n_rows // batch_size)
    epoch, first = divmod(n_before, n_batches)
    # bound: what the caller takes
    while True:
        order = generator(job.seed, Stream.EPOCH_ORDER, epoch).permutation(n_rows)
        yield from np.array_split(order, n_batches)[first:]
        epoch, first = epoch + 1, 0


def repeat(settings, job, state, best):
    """Run the updates of a path on the rows of another job.

    Returns the last state; None if its model is clearly worse than the best one.
    """
    state, n_before = contrastive.copy(state), 0
    with computing(settings.n_jobs, settings.learning_rate, settings.limit_blas):
        for segment, _ in best.path:
            state, *_ = run_segment(settings, job, state, segment, n_before)
            n_before += segment.n_updates
    (measured,) = _measure(settings, job, [best._replace(state=state)], _REPEATED)
    noise = 3.0 * np.hypot(best.error, measured.error)
    return state if measured.validation > best.validation - noise else None


def _reconsider(settings, job, adapting, number):
    """The best of the points that only chance may tell apart, by precise estimates."""
    best, plan = adapting.best, adapting.plan
    points = [best]
    for other in adapting.others:
        if other.validation > best.validation - plans.noise(other, best):
            points.append(other)
    if len(points) > 1 and best.error > 0.0:
        measured = _measure(settings, job, points, number)
        k = int(np.argmax([one.validation for one in measured]))
        best = _measured_point(points[k], measured[k])
    plan = plan._replace(n_updates=plans.last_round(settings, best))
    return adapting._replace(current=best, best=best, plan=plan, others=())


def _choose(settings, job, adapting, number):
    """The best point, or the last if it is better by a precise estimate; with that."""
    points = [adapting.best]
    if adapting.plan.cools:
        points.append(adapting.current)
    measured = _measure(settings, job, points, number)
    k = int(len(points) > 1 and _is_better(points, measured))
    return _measured_point(points[k], measured[k]), measured[k]


def _is_better(points, measured):
    """Whether the second of two points is, by annealing and by what has changed."""
    one, other = measured
    error = float(np.hypot(one.error, other.error))
    precise = changes.Estimate(other.validation - one.validation, error)
    one, other = points
    if other.states is not None:
        sharp = changes.Estimate(other.validation - one.validation, other.error)
        precise = changes.combined_difference(precise, sharp)
    return precise.value > 0.0


def _measured_point(point, measured):
    shift = point.validation - measured.validation
    return point._replace(
        validation=measured.validation,
        error=measured.error,
        log_partition=point.log_partition + shift,
        level_error=measured.error,
    )


def precise_temperatures(n_updates):
    """Temperatures of a precise annealing behind so many updates."""
    return int(np.clip(n_updates * _MEASURED, *_N_BETAS))


def _measure(settings, job, points, number):
    """Precise estimates: as long as is in proportion to the longest training."""
    n_betas = precise_temperatures(max(point.n_updates for point in points))
    base = base_of(job.train)
    with computing(settings.n_jobs, settings.learning_rate, settings.limit_blas):
        return [
            tracking.measure(
                contrastive.model(settings.update, point.state), base, job, number,
                n_betas, settings.n_jobs,
                draws=_draws(settings, job, point.state, number),
            )
            for point in points
        ]  # fmt: skip
