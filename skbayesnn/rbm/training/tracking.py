"""The log-likelihood during a training: exact where it is cheap, else by annealing.

A short annealed importance sampling is enough to compare the models of one training.
Each estimate tells how many temperatures the next one needs, and where.
"""

from typing import NamedTuple

import numpy as np

from ..._random import Stream, derived_seed
from ..likelihood import annealing, exact
from ..likelihood.adaptation import respace
from ..likelihood.bound import log_partition_bound
from ..likelihood.estimates import combine, summarise
from .gap import log_probabilities, monitored_rows

# Units of the smaller side up to which the states are enumerated.
_ENUMERATED = 16
_N_CHAINS = 100
# Chains that are added to a doubtful estimate, as a multiple.
_DOUBTED = 2
_FEWEST, _MOST = 100, 3200
# Standard deviation of the log weights above which temperatures are doubled, and below
# which they are halved.
_MANY, _FEW = 1.0, 0.3
# Training rows whose states bound the log partition function of a precise estimate.
_N_BOUNDING = 5000

FIRST_BETAS = annealing.make_betas(_FEWEST + 1)


class Tracked(NamedTuple):
    """What a training knows of a model."""

    log_likelihood: float
    """mean over the monitored training rows, nats"""
    validation: float
    """the same of the validation rows; NaN without"""
    error: float
    """standard error of the log partition function, nats"""
    betas: np.ndarray
    """temperatures for the next estimate"""


def track(
    rbm, base, job, monitored, number, betas=FIRST_BETAS, most=_FEWEST, n_jobs=None,
    *, doubted=None,
):  # fmt: skip
    """Estimate the log-likelihoods of a model.

    Parameters
    ----------
    rbm : RBM
    base : ndarray of shape (n_features,)
        Biases of the independent units from which annealing starts.
    job : Job
    monitored : Rows
        Training rows.
    number : int
        Tells the random numbers of this estimate from those of others.
    betas : ndarray
        Temperatures, as the last estimate advised.
    most : int
        Largest number of temperatures of the next estimate.
    n_jobs : int or None
    doubted : callable, optional
        Tells of a `Tracked` whether twice as many chains are to be added to it.

    Returns
    -------
    tracked : Tracked
    """
    train, held_out = log_probabilities(rbm, monitored), None
    bounds = [log_partition_bound(train, monitored.are_states)]
    if job.validation is not None:
        held_out = log_probabilities(rbm, job.validation)
        bounds.append(log_partition_bound(held_out, job.validation.are_states))

    def tracked(log_partition, error):
        validation = np.nan if held_out is None else held_out.mean() - log_partition
        likelihood = train.mean() - log_partition
        return Tracked(float(likelihood), float(validation), float(error), betas)

    if not len(rbm.weights) or exact.size(rbm) <= _ENUMERATED:
        return tracked(exact.log_partition(rbm), 0.0)
    path = annealing.make_path(rbm, base, betas)
    offset = annealing.base_log_partition(rbm, base)

    def summary(log_weights):
        result = summarise(log_weights, offset, 1.0)
        # the interval is three standard errors to both sides
        error = (result.interval[1] - result.log_partition) / 3.0
        return result, tracked(max(result.log_partition, *bounds), error)

    seed = int(derived_seed(job.seed, Stream.TRACKING, number))
    run = annealing.run_forward(path, _N_CHAINS, seed, n_jobs)
    result, estimate = summary(run.log_weights)
    if doubted is not None and doubted(estimate):
        seed = int(derived_seed(job.seed, Stream.TRACKING, number, 2))
        more = annealing.run_forward(path, _DOUBTED * _N_CHAINS, seed, n_jobs)
        _, estimate = summary(np.concatenate([run.log_weights, more.log_weights]))
    return estimate._replace(betas=_next_betas(path, run, result, most))


class Measured(NamedTuple):
    """What two directions of annealing tell of a model.

    No likelihood is above that by the bound of the rows.
    """

    validation: float
    """mean log-likelihood of the validation rows by both directions, nats"""
    forward: float
    reverse: float
    error: float
    """standard error of the first, nats"""
    missed: float
    """by how much a direction is below the bound of the log partition function, nats"""

    @property
    def lowest(self):
        """The least of the three: what misses a mode looks better than it is."""
        return min(self.validation, self.forward, self.reverse)

    @property
    def gap(self):
        """By how much annealing contradicts itself, or the rows, nats."""
        return max(abs(self.forward - self.reverse), self.missed)


def measure(rbm, base, job, number, n_betas, n_jobs=None):
    """Estimate the log-likelihood of the validation rows in both directions.

    The estimate of one direction is biased, and the best of many models is the one
    with the largest error: this one is for few models. The arguments are those of
    `track`, with the number of temperatures.
    """
    values = log_probabilities(rbm, job.validation)
    energy = values.mean()
    if not len(rbm.weights) or exact.size(rbm) <= _ENUMERATED:
        value = float(energy - exact.log_partition(rbm))
        return Measured(value, value, value, 0.0, 0.0)
    seed = int(derived_seed(job.seed, Stream.TRACKING, number, 1))
    betas = np.linspace(0.0, 1.0, n_betas // 4 + 1)
    pair = _run_both(rbm, base, betas, seed, n_jobs)
    betas = respace(pair.betas, pair.lengths, n_betas)
    pair = _run_both(rbm, base, betas, seed, n_jobs)
    result = combine(pair, annealing.base_log_partition(rbm, base))
    estimates = (
        result.log_partition, result.forward.log_partition, result.reverse.log_partition
    )  # fmt: skip
    error = (result.interval[1] - result.interval[0]) / 6.0
    bound = _bound(rbm, job)
    missed = max(0.0, bound - min(estimates))
    estimates = (float(energy - max(value, bound)) for value in estimates)
    return Measured(*estimates, float(error), float(missed))


def _bound(rbm, job):
    """Of the log partition function, by the validation rows and training rows."""
    some = monitored_rows(job.train, job.seed, _N_BOUNDING)
    return max(
        log_partition_bound(log_probabilities(rbm, rows), rows.are_states)
        for rows in (job.validation, some)
    )


def _run_both(rbm, base, betas, seed, n_jobs):
    path = annealing.make_path(rbm, base, betas)
    return annealing.run_both(path, _N_CHAINS, seed, n_jobs)


def _next_betas(path, run, result, most):
    """Temperatures where the work of these chains varies, as many as it asks for."""
    n_steps = len(path.betas) - 1
    if result.log_weight_std > _MANY:
        n_steps = max(_FEWEST, min(_MOST, most, 2 * n_steps))
    elif result.log_weight_std < _FEW:
        n_steps = max(_FEWEST, n_steps // 2)
    return respace(path.betas, run.works.std(axis=1), n_steps)
