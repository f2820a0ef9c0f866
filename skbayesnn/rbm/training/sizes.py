"""The number of hidden units: sizes that double race for the validation rows.

Every size starts from as many units as it has, each found by a Frank-Wolfe search on
rows of its own, and is trained for the same number of updates. The race ends when a
doubling gains little of what all units have gained.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from .. import model as solver
from ..learning import growth
from . import adaptive
from .growing import MONITORED_ROWS, start_growth
from .history import append_record
from .job import Start, computing
from .start import independent_model, start_training

_FIRST = 16
# Updates of a race: enough to tell sizes apart, few beside those of a training.
_N_UPDATES = 2000
# Fraction of the whole gain that a doubling has to add.
_LEAST_GAIN = 0.01
# Norm of the units' weights at the start: they are directions, not yet units.
_START_NORM = 0.5


class Search(NamedTuple):
    """How units are searched for."""

    step: growth.Settings
    n_chains: int


class Race(NamedTuple):
    """The end of a race."""

    n_units: int
    history: dict
    """one entry per size"""
    stopped: bool


def limit_of(rows):
    """Largest number of units that is tried: no more than rows."""
    return max(1, min(1024, len(rows)))


def race(settings, search, job, limit, task, history):
    """Find the number of units.

    Parameters
    ----------
    settings : adaptive.Settings
        Of the training that follows.
    search : Search
    job : Job
    limit : int
        Largest number of units.
    task : callback context
    history : dict
        Entries so far.

    Returns
    -------
    race : Race
    """
    n_updates = min(_N_UPDATES, settings.max_updates)
    settings = settings._replace(races=True, max_updates=n_updates)
    best, size, whole = None, min(_FIRST, limit), 0.0
    while True:
        start = units_start(search, settings, job, size)
        name = f"{size} units"
        outcome = adaptive.train(settings, job, start, name, task)
        training, point = outcome.training, outcome.best
        if training.interrupted:
            raise KeyboardInterrupt
        gain = point.validation - (best[1] if best else outcome.first_score)
        whole += gain
        record = {
            "n_components": size,
            "change": size if best is None else size - best[0],
            "gain": gain,
            "log_likelihood": point.log_likelihood,
            "validation_log_likelihood": point.validation,
        }
        history = append_record(history, record)
        if best is not None and gain < max(_LEAST_GAIN * whole, 2.0 * point.error):
            return Race(best[0], history, training.stopped)
        best = size, point.validation
        if size == limit or training.stopped:
            return Race(size, history, training.stopped)
        size = min(2 * size, limit)


def units_start(search, settings, job, n_units):
    """The `Start` of a training of so many units, in directions that were searched."""
    return Start(partial(_first_state, search, settings, job, n_units), {}, 0)


def _first_state(search, settings, job, n_units):
    rows = job.train
    with computing(settings.n_jobs, settings.learning_rate):
        state = start_growth(independent_model(rows), rows, search.n_chains, job.seed)
        chains, _ = solver.gibbs(state.rbm, state.chains, 1)
        state = state._replace(chains=chains)
        rbm = growth.diverse_units(search.step, state, rows, n_units, job.seed)
        base = rows.units.natural_parameters(rows.mean(), len(rows))
        rbm = solver.shrink(rbm, _START_NORM, base, rows.states(slice(MONITORED_ROWS)))
    return start_training(rbm, rows, settings.batch_size, job.seed)
