"""Automatic training: trained, checked, repeated on all rows, and corrected.

1. `candidate_trainings`: rounds of updates, by which the held-out rows gain, until they
   gain no more; if need be, from another start, or with fewer units.
2. `final_check`: against independent features, and by annealing in both directions.
3. `repetition`: the same updates on all rows. It counts only if the rows that were held
   out, which it has seen, are at least as likely as before.
4. `mode_correction`: modes are made as likely as in the rows.
"""

import time

from ..._persistence import Progress
from ..learning import contrastive
from . import mode_correction
from .candidate_trainings import or_tree, train_best
from .decisions import decisions, summary
from .final_check import check
from .job import computing
from .repetition import repeat_on_all_rows
from .start import base_of
from .training_result import Result


def train(settings, job, candidate, task, *, smaller=()):
    """Train, check, and repeat on all rows.

    Parameters
    ----------
    settings : plans.Settings
    job : Job
        With validation rows, and all rows if those were held out.
    candidate : Candidate
    task : callback context
    smaller : iterable of Candidate
        Smaller models: trained as well, one by one, while the chains of the best one do
        not move between its modes.

    Returns
    -------
    result : Result
    """
    finished = job.checkpoint.load("result")
    if finished is not None:
        return finished.state
    began = time.perf_counter()
    chosen = train_best(settings, job, candidate, task, smaller)
    if chosen.outcome.training.interrupted:
        return _unchecked(chosen)
    try:
        chosen = or_tree(settings, job, chosen)
        result, is_repeated = _finish(settings, job, chosen)
    except KeyboardInterrupt:
        if not settings.keep_last:
            raise
        result = _unchecked(chosen)
        return result._replace(training=result.training._replace(interrupted=True))
    if settings.verbose:
        print(summary(settings, chosen.outcome, is_repeated))
    seconds, training = time.perf_counter() - began, chosen.outcome.training
    progress = Progress(result, training.history, training.n_iter, seconds, done=True)
    job.checkpoint.save("result", progress, finished=True)
    return result


def model(settings, result):
    """The RBM that a training gives back."""
    return contrastive.model(settings.update, result.training.state)


def _unchecked(chosen):
    """The `Result` of a training that a Ctrl-C has ended."""
    outcome = chosen.outcome
    return Result(outcome.training, None, decisions(outcome.best))


def _finish(settings, job, chosen):
    """What follows a training; returns the `Result`, and whether it was repeated."""
    training = chosen.outcome.training
    result = check(settings, job, chosen)
    may_repeat = job.whole is not None and not job.clock.over()
    sees_all = settings.refit and may_repeat and not training.stopped
    # independent features in the place of the model need no repetition
    is_repeated = sees_all and result.training is training
    if is_repeated:
        result = _repeated(settings, job, chosen, result)
    if result.learned and not training.stopped:
        rows = job.whole if sees_all else job.train
        result = _with_corrected_modes(settings, job, result, rows)
    return result, is_repeated


def _repeated(settings, job, chosen, result):
    """The result with the same updates on all rows, unless that went wrong."""
    best = chosen.outcome.best
    if settings.verbose:
        print(f"refit: {best.n_updates} updates on all {len(job.whole)} rows")
    state = repeat_on_all_rows(settings, job, chosen.make_start, best)
    if state is None:
        return result
    return result._replace(training=result.training._replace(state=state))


def _with_corrected_modes(settings, job, result, rows):
    """The same with modes as likely as in the rows, where that is certain to gain."""
    training, rbm = result.training, model(settings, result)
    if not len(rbm.weights):
        return result
    with computing(settings.n_jobs, settings.learning_rate, settings.limit_blas):
        shift = mode_correction.find_shift(
            rbm, base_of(job.train), rows, job.seed, settings.n_jobs, job.clock
        )
    if shift is None:
        return result
    if settings.verbose:
        print(f"modes in proportion to the rows: {shift.gain:.2f} nats gained")
    state = contrastive.shifted(training.state, shift.biases)
    return result._replace(training=training._replace(state=state))
