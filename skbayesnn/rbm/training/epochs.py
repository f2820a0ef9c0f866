"""Training of a given model: epochs of contrastive divergence over all rows."""

import time
from functools import partial
from typing import NamedTuple

import numpy as np

from ..._persistence import Progress
from ..._random import Stream, derived_seed, generator
from ..learning import contrastive
from .history import append_record, print_epoch
from .job import computing, resume
from .row_probabilities import MAX_MONITORED, free_energy_gap, has_risen, monitored_rows
from .training_result import Training
from .update_settings import update_of

# Step size of a given number of epochs, where the estimator says "auto".
_LEARNING_RATE = 0.2


class Settings(NamedTuple):
    """What stays the same over all epochs."""

    update: contrastive.Settings
    """of a step of contrastive divergence"""
    learning_rate: float
    """step size at the start"""
    schedule: str
    """how the step size falls: "constant", "linear" or "inverse\""""
    batch_size: int
    max_iter: int
    """number of epochs"""
    max_gap: float | None
    """largest rise of the gap; None without early stopping"""
    keep_last: bool
    """whether a Ctrl-C keeps the last finished epoch"""
    limit_blas: bool
    """whether BLAS gets one thread: not where products of all data go through it"""
    n_jobs: int | None
    verbose: bool


def settings_of(estimator):
    """The settings of an estimator with the parameters of contrastive divergence."""
    rate = estimator.learning_rate
    return Settings(
        update_of(estimator),
        _LEARNING_RATE if rate == "auto" else rate,
        estimator.schedule,
        estimator.batch_size,
        estimator.max_iter,
        estimator.max_gap if estimator.early_stopping else None,
        estimator.warm_start,
        estimator.binarize is not None,
        estimator.n_jobs,
        estimator.verbose,
    )


def train(settings, job, start, stage="epochs"):
    """Run ``max_iter`` more epochs, or until the gap has risen.

    Parameters
    ----------
    settings : Settings
    job : Job
    start : Start
        Its state is left as it is.
    stage : str
        Name of the training in the checkpoint.

    Returns
    -------
    training : Training
    """
    monitored = monitored_rows(job.train, job.seed, MAX_MONITORED)
    progress = resume(job, stage, start)
    n_last = start.n_iter + settings.max_iter
    began = time.perf_counter() - progress.seconds
    state = contrastive.copy(progress.state)
    training = Training(state, progress.history, progress.n_iter)
    done = progress.done
    fit_task = job.callbacks.begin_fit(0 if done else n_last - training.n_iter)
    # bound: max_iter
    while not done:
        task = job.callbacks.begin(fit_task.subcontext("epoch"))
        rate = partial(_rate, settings, training.n_iter - start.n_iter)
        try:
            state, error = run_epoch(settings, job, state, training.n_iter, rate)
        except KeyboardInterrupt:
            if not (settings.keep_last and training.n_iter > start.n_iter):
                raise
            return training._replace(interrupted=True)
        record = {
            "learning_rate": settings.learning_rate * rate(1.0),
            "mean_error": error,
            "seconds": time.perf_counter() - began,
        }
        rbm = contrastive.model(settings.update, state)
        if job.validation is not None:
            record["gap"] = free_energy_gap(rbm, monitored, job.validation)
        training = Training(
            contrastive.copy(state) if settings.keep_last else state,
            append_record(training.history, record),
            training.n_iter + 1,
        )
        if settings.verbose:
            seconds = training.history["seconds"][start.n_iter - training.n_iter :]
            print_epoch(record, seconds, training.n_iter, n_last)
        done = job.callbacks.end(task, rbm) or _is_done(settings, training, n_last)
        progress = Progress(*training[:3], record["seconds"], done)
        job.checkpoint.save(stage, progress, finished=done)
    job.callbacks.end(fit_task, model(settings, training))
    return training


def decisions(settings, training):
    """Fitted attributes that tell how a model was trained."""
    return {
        "n_updates_": training.state.step - 1,
        "n_gibbs_steps_": settings.update.n_gibbs_steps,
        "n_replicas_": contrastive.n_replicas(training.state),
        "weight_decay_": settings.update.weight_decay,
    }


def model(settings, training):
    """The RBM that a training gives back."""
    return contrastive.model(settings.update, training.state)


def run_epoch(settings, job, state, number, rate=lambda fraction: 1.0):
    """Go once through the training rows, in mini-batches of a new order.

    Updates the arrays of ``state`` in place. ``rate(fraction)`` scales the learning
    rate after that fraction of the epoch. Returns the new state and the mean error of
    the batches.
    """
    rows, error = job.train, 0.0
    # from the number of the epoch: a fit that is resumed draws what a longer one does
    order = generator(job.seed, Stream.EPOCH_ORDER, number).permutation(len(rows))
    n_batches = -(-len(rows) // settings.batch_size)
    seed = derived_seed(job.seed, Stream.EPOCH_CHAINS)
    with computing(settings.n_jobs, settings.learning_rate, settings.limit_blas):
        for k, index in enumerate(np.array_split(order, n_batches)):
            step_size = settings.learning_rate * rate(k / n_batches)
            state, info = contrastive.step(
                settings.update, state, rows.states(index), step_size, seed
            )
            error += info.mean_error / n_batches
        contrastive.check(state)
    return state, error


def _rate(settings, n_done, fraction):
    """Learning rate within an epoch, relative to that at the start of the fit."""
    t = (n_done + fraction) / settings.max_iter
    if settings.schedule == "linear":
        return 1.0 - t
    return 1.0 / (1.0 + 10.0 * t) if settings.schedule == "inverse" else 1.0


def _is_done(settings, training, n_last):
    """Whether the last epoch was the last of this fit."""
    if training.n_iter == n_last:
        return True
    return settings.max_gap is not None and has_risen(
        training.history["gap"], settings.max_gap
    )
