"""The check at the end of a training: what its model is worth, and a warning.

The model is checked by annealing in both directions, by what rows say of it, and
against independent features. Where those are as good, they are the result.
"""

import numpy as np
from scipy.special import stdtrit

from .. import model as rbm_model
from ..learning import contrastive
from ..likelihood.estimates import MAX_DIFFERENCE
from . import gains
from .automatic_settings import may_depend
from .decisions import decisions
from .row_probabilities import error_of_lead, log_probabilities
from .start import independent_model, normalised_independent_model, start_training
from .training_result import Result

# Fraction of the log-likelihood of independent features by which a failed training is
# behind it.
_FAILED = 0.01
# Probability of a smaller difference by chance: two standard errors of many rows.
_CHANCE = 0.977
# Rounding of a mean free energy in float32, nats.
_ROUNDING = 1e-3

_DIFFERENT = (
    "The chains do not move between the modes of the model: its mean log-likelihood of "
    "the validation rows is {:.2f} nats by annealing from independent features, and "
    "{:.2f} by annealing back. Compare both by log_partition('both'), use fewer units, "
    "or more Gibbs steps with n_gibbs_steps."
)
_MISSED = (
    "The chains do not reach all modes of the model: by the training and validation "
    "rows, the log partition function is at least {:.2f} nats larger than by "
    "annealing. Compare log_partition('both', X=X) with these rows, use fewer units, "
    "or more Gibbs steps with n_gibbs_steps."
)
_NOTHING = (
    "Training has failed, as it does where the chains do not move between the modes of "
    "the model: the validation rows have {:.2f} nats, those of independent features "
    "{:.2f}. The model is that of independent features. Use fewer units, a smaller "
    "learning_rate, or more Gibbs steps with n_gibbs_steps."
)


def check(settings, job, candidate):
    """The `Result` of a training: its model, or independent features if as good."""
    outcome = candidate.outcome
    best, validation = outcome.best, outcome.measured.validation
    warning = _warning_of(outcome.measured)
    rbm = contrastive.model(settings.update, best.state)
    independent, chance = _independent(job, rbm)
    error = 3.0 * outcome.measured.error
    is_worse = validation < independent - error - chance - _ROUNDING
    is_same = _is_the_same(settings, candidate, independent, chance)
    has_nothing = not may_depend(job.train)
    if not (is_worse or is_same or has_nothing):
        return Result(outcome.training, warning, decisions(best))
    # else there was nothing to learn, and noise has made it a little worse
    least = max(_FAILED * abs(independent), chance)
    if independent - validation > least and not has_nothing:
        warning = _NOTHING.format(validation, independent)
    state = _without_units(settings, job, best.n_units)
    training = outcome.training._replace(state=state)
    best = best._replace(validation=independent, path=())
    ended_by = None if has_nothing else gains.ended_by(settings, outcome)
    return Result(training, warning, decisions(best), False, ended_by)


def _warning_of(measured):
    """A text if annealing contradicts itself, or the rows; or None."""
    if abs(measured.forward - measured.reverse) > MAX_DIFFERENCE:
        return _DIFFERENT.format(measured.forward, measured.reverse)
    if measured.missed > MAX_DIFFERENCE:
        return _MISSED.format(measured.missed)
    return None


def _is_the_same(settings, candidate, independent, chance):
    """Whether a model is at its start still, and no better than independent features.

    A fit that goes on from another may have a good start. The best of many rounds that
    have not left a start is better by chance.
    """
    outcome = candidate.outcome
    validation, untrained = outcome.measured.validation, not outcome.best.n_updates
    knows_nothing = untrained and candidate.begins_at == "random"
    if (
        (untrained or gains.ended_by(settings, outcome) is None)
        and not gains.has_left(independent, validation)
        and (knows_nothing or validation <= independent + chance + _ROUNDING)
    ):
        return True
    # steps without noise leave a start sooner, also for what is chance: one standard
    # error, as the best of many rounds is better by about as much
    by_chance = settings.enumerates and validation <= independent + 0.5 * chance
    return by_chance and not untrained


def _independent(job, rbm):
    """Mean log-likelihood of the validation rows by independent features.

    Also what a model may differ from it by chance: from a start from which nothing was
    gained, it is on either side. That is two standard errors, or more of them where
    few rows tell how large one is (Student's t).
    """
    independent, log_partition = normalised_independent_model(job.train)
    values = log_probabilities(independent, job.validation)
    expected = float(values.mean() - log_partition)
    error = error_of_lead(job.validation, rbm, independent)
    return expected, float(stdtrit(max(len(values) - 1, 1), _CHANCE) * error)


def _without_units(settings, job, n_units):
    """A state whose units have no weights: that of independent features."""
    rbm = independent_model(job.train)
    weights = np.zeros((n_units, len(rbm.visible)))
    rbm = rbm_model.append(rbm, weights, np.zeros(n_units))
    return start_training(rbm, job.train, settings.batch_size, job.seed)
