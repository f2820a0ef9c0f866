"""The log-likelihood during a training: exact where it is cheap, else by annealing.

A short annealed importance sampling with few temperatures is enough to compare models
of one training. How many it takes is measured: if the weights of its chains vary much,
the next one gets more.
"""

from typing import NamedTuple

import numpy as np

from ..._random import Stream, derived_seed
from ..likelihood import annealing, exact
from .gap import mean_log_probability

# Units of the smaller side up to which the states are enumerated.
_ENUMERATED = 12
_N_CHAINS = 100
_FEWEST, _MOST = 200, 3200
# Standard deviation of the log weights above which temperatures are doubled, and below
# which they are halved.
_MANY, _FEW = 1.0, 0.3


class Tracked(NamedTuple):
    """What a training knows of a model."""

    log_likelihood: float
    """mean over the monitored training rows, nats"""
    validation: float
    """the same of the validation rows; NaN without"""
    error: float
    """standard error of the log partition function, nats"""
    n_temperatures: int
    """for the next estimate"""


def track(rbm, base, job, monitored, number, n_temperatures=_FEWEST, n_jobs=None):
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
    n_temperatures : int
        As the last estimate advised.
    n_jobs : int or None

    Returns
    -------
    tracked : Tracked
    """
    log_partition, error, n_next = _log_partition(
        rbm, base, derived_seed(job.seed, Stream.TRACKING, number), n_temperatures,
        n_jobs,
    )  # fmt: skip
    validation = np.nan
    if job.validation is not None:
        validation = mean_log_probability(rbm, job.validation) - log_partition
    train = mean_log_probability(rbm, monitored) - log_partition
    return Tracked(train, validation, error, n_next)


def _log_partition(rbm, base, seed, n_temperatures, n_jobs):
    """Its estimate, standard error, and temperatures for the next estimate."""
    if not len(rbm.weights) or exact.size(rbm) <= _ENUMERATED:
        return exact.log_partition(rbm), 0.0, n_temperatures
    betas = annealing.make_betas(n_temperatures)
    result = annealing.ais(rbm, base, betas, _N_CHAINS, seed, n_jobs)
    if result.log_weight_std > _MANY:
        n_temperatures = min(_MOST, 2 * n_temperatures)
    elif result.log_weight_std < _FEW:
        n_temperatures = max(_FEWEST, n_temperatures // 2)
    # of the logarithm of a mean: half of the interval is three standard errors
    error = (result.interval[1] - result.log_partition) / 3.0
    return result.log_partition, float(error), n_temperatures
