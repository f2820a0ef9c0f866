"""First states of trainings from so many units: random, of a tree, or searched."""

from typing import NamedTuple

import numpy as np

from .. import model as rbm_model
from ..learning import growth
from . import pair_tree
from .growing import MONITORED_ROWS, start_growth
from .job import computing
from .start import base_of, independent_model, start_model, start_training

# Norm of the units' weights at the start: they are directions, not yet units.
_START_NORM = 0.5


class Search(NamedTuple):
    """How units are searched for."""

    step: growth.Settings
    """of a Frank-Wolfe step, whose search finds the units"""
    n_chains: int
    """Markov chains that give the states of the model"""


def random_units(settings, job, n_units):
    """The first state of a training from small random weights."""
    rbm = start_model("random", n_units, job.train, job.seed)
    return start_training(rbm, job.train, settings.batch_size, job.seed)


def tree_units(settings, seen, pairs, job, n_units):
    """The same with units for the pairs of a tree, and small random weights for others.

    ``pairs`` are those of the rows that were ``seen``. On all rows, the tree may have
    another number of them.
    """
    rows = job.train
    with computing(settings.n_jobs, settings.learning_rate):
        rbm = pairs if rows is seen else pair_tree.tree_model(rows, n_units)
        others = start_model("random", n_units - len(rbm.weights), rows, job.seed)
        rbm = _with_idle(rbm, others.weights, rows.mean())
    return start_training(rbm, rows, settings.batch_size, job.seed)


def _with_idle(rbm, weights, means):
    """The model with more units, without what they add to the means of features.

    At the mean of its inputs, the log factor of a unit has a slope of one half.
    """
    rbm = rbm_model.append(rbm, weights, -weights @ means)
    visible = rbm.visible - 0.5 * weights.sum(axis=0)
    return rbm._replace(visible=visible.astype(np.float32))


def searched_units(settings, search, job, n_units):
    """The same from directions that Frank-Wolfe searches have found."""
    rows = job.train
    with computing(settings.n_jobs, settings.learning_rate):
        state = start_growth(independent_model(rows), rows, search.n_chains, job.seed)
        chains, _ = rbm_model.gibbs(state.rbm, state.chains, 1)
        state = state._replace(chains=chains)
        rbm = growth.diverse_units(search.step, state, rows, n_units, job.seed)
        base = base_of(rows)
        rbm = rbm_model.shrink(
            rbm, _START_NORM, base, rows.states(slice(MONITORED_ROWS))
        )
    return start_training(rbm, rows, settings.batch_size, job.seed)
