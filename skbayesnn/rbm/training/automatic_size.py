"""Automatic training of as many units as the held-out rows ask for.

The best of several sizes and starts (`sizes`) is trained to its end (`automatic`). If
its chains do not move between its modes then, its likelihood is in doubt. So the best
smaller sizes are trained on as well, each for no longer, and the best of them is the
result.
"""

from functools import partial

from ..._persistence import Progress
from . import automatic
from .candidate_trainings import Candidate
from .decisions import decisions
from .history import join_histories
from .job import Start
from .sizes import compare
from .training_result import Result
from .trials import best_of, elapsed

# Smaller sizes that are trained to their end where the chains of the winner do not move
# between its modes.
_MAX_OTHERS = 2


def train(settings, search, job, task):
    """Find the number of units, and train so many.

    Parameters
    ----------
    settings : plans.Settings
    search : Search
    job : Job
        With validation rows.
    task : callback context

    Returns
    -------
    result : Result
    """
    finished = job.checkpoint.load("result")
    if finished is not None:
        return finished.state
    winner, training, trials = compare(settings, search, job, task)
    seconds = elapsed(trials)
    result = Result(training, None, decisions(winner.outcome.best))
    if training.interrupted:
        return result
    if training.stopped:
        progress = Progress(result, training.history, training.n_iter, seconds, True)
        job.checkpoint.save("result", progress, finished=True)
        return result
    chosen = _continued(winner, training, seconds)._replace(retries=True)
    smaller = (
        _continued(one, training, seconds, f"training, {one.n_units} units")
        for one in _smaller(winner, trials)
    )
    try:
        return automatic.train(settings, job, chosen, task, smaller=smaller)
    except KeyboardInterrupt:
        if not settings.keep_last:
            raise
        start = chosen.make_start(job)
        history, n_iter = start.history, start.n_iter
        training = training._replace(history=history, n_iter=n_iter, interrupted=True)
        return result._replace(training=training)


def _continued(trial, compared, seconds, stage="training"):
    """How the training of a trial goes on behind the comparison."""
    # its rounds follow the entries of what was compared
    rounds = trial.outcome.training
    history = join_histories(compared.history, rounds.history)
    n_iter = compared.n_iter + rounds.n_iter

    def make_start(job):
        state = partial(trial.make_state, job, trial.n_units)
        return Start(state, history, n_iter, seconds)

    begins_at = "model" if trial.compared_with else "random"
    begins_at = "tree" if trial.is_tree else begins_at
    return Candidate(make_start, stage, trial.outcome.adapting, begins_at=begins_at)


def _smaller(winner, trials):
    """Each the best of those with fewer units than the one before.

    The chains of a smaller model move more easily.
    """
    n_units = winner.n_units
    for _ in range(_MAX_OTHERS):
        smaller = [one for one in trials if one.n_units < n_units]
        if not smaller:
            return
        best = best_of(smaller)
        n_units = best.n_units
        yield best
