"""The path of an automatic training: the rounds that have led to a model.

A path can be run again, on other rows: what each round has done is in its `Segment`.
"""

from typing import NamedTuple

import numpy as np

from ..learning import contrastive


class Segment(NamedTuple):
    """Consecutive updates, with all that has been decided of them."""

    n_updates: int
    """number of updates, each by a mini-batch"""
    first_rate: float
    """step size of the first update"""
    last_rate: float
    """step size that the last update comes near: from one to the other, it changes
    linearly"""
    n_gibbs_steps: int
    """Gibbs steps of the chains in an update"""
    weight_decay: float
    """fraction of the weights that an update of step size 1 takes away"""
    n_replicas: int
    """temperatures of the chains"""


class Round(NamedTuple):
    """A segment, with what was estimated after it."""

    segment: Segment
    """its updates"""
    validation: float
    """mean log-likelihood of the validation rows, nats"""


class Point(NamedTuple):
    """A model to which some rounds have led, with what is known of it."""

    state: contrastive.State
    """of the solver: model, chains and running means"""
    path: tuple
    """the `Round` values that led here, the first one first"""
    log_likelihood: float
    """mean over the monitored training rows, nats"""
    validation: float
    """mean over the validation rows, nats"""
    error: float
    """standard error that both have in common, nats: against the points next to this
    one, if states of the chains tell how they differ"""
    log_partition: float = np.nan
    """logarithm of the partition function, by which both are normalised"""
    level_error: float = 0.0
    """standard error of both by themselves, nats"""
    states: np.ndarray | None = None
    """visible states of the model by its chains, for `changes`"""
    shift: float = 0.0
    """sum of the corrections of the level since this point was reached"""

    @property
    def n_updates(self):
        """Updates that led here."""
        return sum(one.segment.n_updates for one in self.path)

    @property
    def n_units(self):
        """Hidden units of the model."""
        return len(self.state.rbm.weights)
