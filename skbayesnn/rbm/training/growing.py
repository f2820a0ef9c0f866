"""Training by growth: Frank-Wolfe steps until the model is large enough."""

import time
from typing import NamedTuple

import numpy as np

from ..._persistence import Progress
from ..._random import Stream, generator
from .. import model as rbm_model
from ..learning import growth
from .history import append_record, print_step
from .job import computing, resume
from .row_probabilities import has_risen, mean_log_probability, monitored_rows
from .training_result import Training

# Rows whose mean free energy is recorded after each unit.
MONITORED_ROWS = 1000


class Settings(NamedTuple):
    """What stays the same over all steps."""

    step: growth.Settings
    """of a Frank-Wolfe step"""
    n_components: int
    """number of units at which the growth ends"""
    n_iter_no_change: int
    """steps in a row without a new unit at which it ends"""
    max_gap: float | None
    """largest rise of the gap; None without early stopping"""
    keep_last: bool
    """whether a Ctrl-C keeps the last finished step"""
    ends_fit: bool
    """whether no fine-tuning follows"""
    n_jobs: int | None
    verbose: bool


def step_settings(estimator):
    """The settings of a step, from the parameters of `FrankWolfeRBM`."""
    names = growth.Settings._fields
    step = growth.Settings(**{name: getattr(estimator, name) for name in names})
    strength = None if step.unit_penalty == "auto" else float(step.unit_penalty)
    return step._replace(
        unit_penalty=strength,
        learning_rate=float(step.learning_rate),
        averaging=float(step.averaging),
        tol=float(step.tol),
    )


def settings_of(estimator):
    """The settings of a growth, from the parameters of `FrankWolfeRBM`."""
    return Settings(
        step_settings(estimator),
        estimator.n_components,
        estimator.n_iter_no_change,
        estimator.max_gap if estimator.early_stopping else None,
        estimator.warm_start,
        estimator.fine_tune is None,
        estimator.n_jobs,
        estimator.verbose,
    )


def start_growth(rbm, rows, n_chains, seed):
    """The state before the first step."""
    means = rbm_model.hidden_means(rbm, rows.states(slice(MONITORED_ROWS)))
    return growth.init(rbm, n_chains, rows.mean(), means.mean(axis=0), seed)


def grow(settings, job, start, fit_task):
    """Take steps until the model is large enough, or gains nothing more.

    Parameters
    ----------
    settings : Settings
    job : Job
    start : Start
        Its state is left as it is.
    fit_task : callback context
        The task of which the growth is a part.

    Returns
    -------
    training : Training
    """
    monitored = monitored_rows(job.train, job.seed, MONITORED_ROWS)
    n_before = len(start.history.get("change", ()))
    progress = resume(job, "growth", start)
    training = Training(progress.state, progress.history, progress.n_iter)
    began = time.perf_counter() - progress.seconds
    done, largest = progress.done, _n_units(training)
    if largest >= settings.n_components and not done:
        done = True
        if not training.history:
            training = _without_step(job, training, monitored, began)
        _save(settings, job, training, progress.seconds, done)
    growth_task = fit_task.subcontext(
        "growth", max_subtasks=0 if done else _n_steps(settings, largest)
    )
    job.callbacks.begin(growth_task)
    task = None
    # bound: ten steps per unit, see _is_done
    while not done:
        # a task ends when the model is larger than ever, after however many steps
        task = task or job.callbacks.begin(growth_task.subcontext("unit"))
        try:
            training = take_step(settings, job, training, monitored, began)
        except KeyboardInterrupt:
            if not (settings.keep_last and training.n_iter > start.n_iter):
                raise
            return _end(training)._replace(interrupted=True)
        if settings.verbose:
            print_step(*training[1:3], n_before, settings.n_components)
        done = _is_done(settings, training, start.n_iter, n_before)
        if done or _n_units(training) > largest:
            largest = _n_units(training)
            done = job.callbacks.end(task, model(training)) or done
            task = None
        _save(settings, job, training, training.history["seconds"][-1], done)
    stopped = job.callbacks.end(growth_task, model(training))
    # or a callback has ended this fit in an earlier call
    stopped = stopped or job.checkpoint.ends_with("growth")
    return _end(training)._replace(stopped=stopped)


def model(training):
    """The RBM that a growth gives back: without units, one that is idle is added.

    An estimator without units would have no features.
    """
    rbm = training.state.average
    return rbm if len(rbm.weights) else growth.idle_unit(rbm)


def take_step(settings, job, training, monitored, began):
    """A step, with its entry in the history."""
    state = training.state
    n_missing = settings.n_components - len(state.rbm.weights)
    n_new = min(settings.step.units_per_step, n_missing)
    step_settings = settings.step._replace(units_per_step=n_new)
    with computing(settings.n_jobs, settings.step.learning_rate):
        state, info = growth.step(step_settings, state, job.train, job.seed)
    return _record(job, training._replace(state=state), info, monitored, began)


def _without_step(job, training, monitored, began):
    """The entry of a growth that begins with all of its units."""
    unknown = dict.fromkeys(growth.Info._fields, np.nan)
    info = growth.Info(**unknown | {"change": 0})
    return _record(job, training, info, monitored, began)


def _record(job, training, info, monitored, began):
    """The training with one more entry in its history."""
    state = training.state
    record = {
        "n_components": len(state.rbm.weights),
        **info._asdict(),
        "free_energy": -mean_log_probability(state.average, monitored),
    }
    if job.validation is not None:
        energy = -mean_log_probability(state.average, job.validation)
        record["validation_free_energy"] = energy
        record["gap"] = energy - record["free_energy"]
    record["seconds"] = time.perf_counter() - began
    return Training(state, append_record(training.history, record), training.n_iter + 1)


def take_partial_step(settings, job, training, visible_offset):
    """A step up to ``n_components``, then corrective steps once through the rows."""
    offset = np.asarray(visible_offset, dtype=np.float32)
    training = training._replace(state=training.state._replace(visible_offset=offset))
    # the corrective steps follow, as one pass through the rows
    plain = settings.step._replace(n_corrective_steps=0)
    if _n_units(training) < settings.n_components:
        training = take_step(
            settings._replace(step=plain), job, training, job.train, time.perf_counter()
        )
        if settings.verbose:
            n_before = len(training.history["seconds"]) - 1
            print_step(*training[1:3], n_before, settings.n_components)
    if settings.step.n_corrective_steps and _n_units(training):
        rows = job.train
        rng = generator(job.seed, Stream.CORRECTIVE_ORDER, training.n_iter)
        order = rng.permutation(len(rows))
        batches = np.array_split(order, -(-len(rows) // plain.batch_size))
        with computing(settings.n_jobs, plain.learning_rate):
            state = growth.correct(plain, training.state, rows, batches, job.seed)
        training = training._replace(state=state)
    return _end(training)


def _end(training):
    """An estimator counts at least one step, even if none was needed."""
    return training._replace(n_iter=max(1, training.n_iter))


def _n_units(training):
    return len(training.state.rbm.weights)


def _n_steps(settings, n_units):
    """Steps to ``n_components``, if each finds what it searches."""
    return -(-(settings.n_components - n_units) // settings.step.units_per_step)


def _is_done(settings, training, n_iter_before, n_before):
    """Whether the last step was the last of this growth."""
    history = training.history
    if history["n_components"][-1] >= settings.n_components:
        return True
    changes = history["change"][n_before:]
    found = np.flatnonzero(changes)
    n_in_vain = len(changes) - (found[-1] + 1 if len(found) else 0)
    if n_in_vain >= settings.n_iter_no_change:
        return True
    # additions and removals may undo each other for ever
    if training.n_iter - n_iter_before >= 10 * settings.n_components:
        return True
    return settings.max_gap is not None and has_risen(history["gap"], settings.max_gap)


def _save(settings, job, training, seconds, done):
    progress = Progress(*training[:3], float(seconds), done)
    job.checkpoint.save("growth", progress, done and settings.ends_fit)
