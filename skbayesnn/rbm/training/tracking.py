"""The log-likelihood during a training: exact where it is cheap, else by two estimates.

One is a short annealing, from independent features to the model and from the chains of
the training back. Its forward direction alone errs upwards, by more than the models of
a training differ. Each tells how many temperatures the next one needs, and where.

The other draws the hidden states of rows of data (`row_estimates`): a mode of the data
which the model overrates, and to which no annealed chain comes, is in it. What either
misses makes the model look better, so the lower likelihood of both counts. A precise
estimate follows the model from there where the rows leave open what it has missed.

A prediction from the last model, by what `changes` says of the round between both, is
more certain than either, unless they contradict it.
"""

from typing import NamedTuple

import numpy as np

from ..._random import Stream, derived_seed
from ..likelihood import annealing, exact
from ..likelihood.adaptation import respace
from ..likelihood.estimates import acceptance_ratio, combine
from . import row_estimates
from .changes import Estimate, larger, reconcile
from .row_probabilities import log_probabilities, monitored_rows

# Units of the smaller side up to which the states are enumerated.
_ENUMERATED = 16
# Chains of an annealing in each direction; in a doubtful or precise one, three times as
# many.
_N_CHAINS, _MANY_CHAINS = 100, 300
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
    """standard error of the log partition function, nats: of its change, if it was
    predicted"""
    log_partition: float
    """log partition function by which both are normalised, nats"""
    level_error: float
    """standard error of the log partition function itself, nats"""
    betas: np.ndarray
    """temperatures for the next estimate"""
    shift: float = 0.0
    """by how much the log partition function exceeds its prediction: earlier values are
    too small by as much"""


def track(
    rbm, base, job, monitored, number, betas=FIRST_BETAS, most=_FEWEST, n_jobs=None,
    *, draws=None, doubted=None, predicted=None,
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
    draws : callable, optional
        ``draws(n)`` gives so many states of the model by the chains of the training,
        from which annealing goes back. Without, it starts where it has arrived.
    doubted : callable, optional
        Tells of a `Tracked` whether it is to be estimated again, by more chains, where
        nothing is predicted.
    predicted : pair of Estimate, optional
        The log partition function, and by how much it has changed.

    Returns
    -------
    tracked : Tracked
    """
    train, held_out = log_probabilities(rbm, monitored), None
    values = [(train, monitored)]
    if job.validation is not None:
        held_out = log_probabilities(rbm, job.validation)
        values.append((held_out, job.validation))

    def tracked(level, error=None, shift=0.0):
        error = level.error if error is None else error
        validation = np.nan if held_out is None else held_out.mean() - level.value
        found = train.mean() - level.value, validation, error, *level
        return Tracked(*map(float, found), betas, shift)

    if is_exact(rbm):
        return tracked(Estimate(exact.log_partition(rbm), 0.0))
    seed = int(derived_seed(job.seed, Stream.TRACKING, number))
    path = annealing.make_path(rbm, base, betas)
    known = row_estimates.short(rbm, values, monitored, seed)

    def annealed(pair):
        return larger(_by_annealing(path, pair), known)

    pair = annealing.run_both(path, _N_CHAINS, seed, n_jobs, draws)
    level = annealed(pair)
    if predicted is None:
        is_doubtful = doubted is not None and doubted(tracked(level))
    else:
        is_doubtful = level.contradicts(predicted[0])
    if is_doubtful:
        level = annealed(annealing.run_both(path, _MANY_CHAINS, seed, n_jobs, draws))
    if predicted is None:
        found = tracked(level)
    else:
        found = _with_prediction(tracked, level, *predicted)
    return found._replace(betas=_next_betas(pair, most))


def _with_prediction(tracked, annealed, predicted, change):
    """The `Tracked` by both; ``tracked`` makes it."""
    level, contradict = reconcile(annealed, predicted)
    if contradict:
        return tracked(level)
    return tracked(level, change.error, level.value - predicted.value)


def is_exact(rbm):
    """Whether the states are enumerated."""
    return not len(rbm.weights) or exact.size(rbm) <= _ENUMERATED


class Measured(NamedTuple):
    """What precise estimates tell of a model.

    No likelihood is above what the rows alone allow.
    """

    validation: float
    """mean log-likelihood of the validation rows, nats"""
    forward: float
    """the same by annealing from independent features to the model alone"""
    reverse: float
    """the same by annealing back alone"""
    error: float
    """standard error of the first, nats"""
    missed: float
    """by how much annealing is below what the rows say of the log partition function,
    nats"""

    @property
    def gap(self):
        """By how much annealing contradicts itself, or the rows, nats."""
        return max(abs(self.forward - self.reverse), self.missed)


def measure(rbm, base, job, number, n_betas, n_jobs=None, *, draws=None):
    """Estimate the log-likelihood of the validation rows precisely.

    The arguments are those of `track`, with the number of temperatures.
    """
    values = log_probabilities(rbm, job.validation)
    energy = values.mean()
    if is_exact(rbm):
        value = float(energy - exact.log_partition(rbm))
        return Measured(value, value, value, 0.0, 0.0)
    seed = int(derived_seed(job.seed, Stream.TRACKING, number, 1))
    some = monitored_rows(job.train, job.seed, _N_BOUNDING)
    rows = [(values, job.validation), (log_probabilities(rbm, some), some)]
    known = row_estimates.precise(rbm, rows, job.train, seed)
    path = annealing.make_path(rbm, base, np.linspace(0.0, 1.0, n_betas // 4 + 1))
    pair = annealing.run_both(path, _N_CHAINS, seed, n_jobs, draws)
    path = path._replace(betas=respace(pair.betas, pair.lengths, n_betas))
    pair = annealing.run_both(path, _MANY_CHAINS, seed, n_jobs, draws)
    annealed = _by_annealing(path, pair)
    known = row_estimates.followed(rbm, job.train, annealed, known, seed)
    found = combine(pair, annealing.base_log_partition(rbm, base))
    directions = found.forward.log_partition, found.reverse.log_partition
    log_partition, error = larger(annealed, known)
    missed = max(0.0, known.value - min(annealed.value, *directions))
    forward, reverse = (float(energy - max(one, known.value)) for one in directions)
    return Measured(float(energy - log_partition), forward, reverse, error, missed)


def _by_annealing(path, pair):
    """Both directions, by Bennett's acceptance ratio."""
    ratio, error = acceptance_ratio(pair.forward, pair.reverse)
    value = annealing.base_log_partition(path.rbm, path.base) + ratio
    return Estimate(float(value), float(error))


def _next_betas(pair, most):
    """Temperatures where the work of these chains varies, as many as it asks for."""
    n_steps, spread = len(pair.betas) - 1, float(pair.forward.std(ddof=1))
    if spread > _MANY:
        n_steps = max(_FEWEST, min(_MOST, most, 2 * n_steps))
    elif spread < _FEW:
        n_steps = max(_FEWEST, n_steps // 2)
    return respace(pair.betas, pair.lengths, n_steps)
