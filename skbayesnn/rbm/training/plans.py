"""What follows a round of updates: step size, chains, weight decay, or the end.

After each round, the log-likelihoods of training and validation rows decide:

- The validation rows gained: training continues.
- Both lost, and the validation rows did so in two rounds: the chains no longer follow
  the model. Training returns to the best model, with one change, the first of these
  that is possible: more temperatures, unless the chains forget quickly where they were
  and no smaller step was in vain; a smaller weight decay, if the best model had less;
  half of the step size.
- The validation rows lost in two rounds while the training rows gained: the model
  overfits. Training returns to the best model, with a larger weight decay. It does the
  same where several rounds with a weight decay have gained next to nothing (`gains`),
  and where four times the updates gained next to nothing but for the training rows.
- Four times the updates gained next to nothing, or several changes did not help, or
  there is no time for more: training returns to the best model, and ends with a round
  in which the step size falls to zero.

Where chains begin at the data at each update, or the model is fractional, chains get
more Gibbs steps instead of temperatures.
"""

from typing import NamedTuple

import numpy as np

from ..learning import contrastive
from ..model import is_standard
from . import gains, tracking
from .path import Point, Segment

# Updates of the first round, and the most of a later one.
FIRST_ROUND, _LONGEST_ROUND = 100, 2000
# Rounds with a loss, and none with a gain, after which training returns to the best
# model.
_PATIENCE = 2
# Changes of plan in a row that may be in vain before training ends; one more at the
# beginning, where rounds are short.
_MAX_IN_VAIN = 2
# Temperatures, or Gibbs steps, of chains that mix too slowly.
_MORE = 10
# Correlation of chains with their states of some steps before up to which they have
# forgotten these: nothing is to be had by other chains.
_FORGOTTEN = 0.1
# Factors of a change of plan; the first weight decay is that of a prior with as many
# pseudo-rows.
_RATE_FACTOR, _DECAY_FACTOR = 0.5, 3.0
_FIRST_DECAY_ROWS = 2.0
# Points beside the best of which precise estimates are made, if they may be better.
_MAX_OTHERS = 2
# Updates of the cool-down, as a fraction of those before.
_COOL_DOWN = 0.3


class Settings(NamedTuple):
    """What stays the same over all rounds."""

    update: contrastive.Settings
    """its Gibbs steps and weight decay are those of the start"""
    learning_rate: float
    """step size of the first updates"""
    batch_size: int
    max_updates: int
    """after as many, the step size falls to zero"""
    adapts_gibbs: bool
    """whether chains that mix too slowly get temperatures or Gibbs steps"""
    tempers: bool
    """whether chains may get several temperatures"""
    adapts_decay: bool
    """whether a model that overfits gets a weight decay"""
    enumerates: bool
    """whether standard models are trained without chains, see `few_features`"""
    keep_last: bool
    """whether a Ctrl-C keeps the best model so far"""
    refit: bool
    """whether the training is repeated on all rows, if some were held out"""
    n_jobs: int | None
    limit_blas: bool
    """whether BLAS gets one thread: not where products of all data go through it"""
    verbose: bool


class Plan(NamedTuple):
    """What the next round does."""

    rate: float
    """step size of the first update"""
    n_gibbs_steps: int
    """Gibbs steps of the chains in an update"""
    weight_decay: float
    """fraction of the weights that an update of step size 1 takes away"""
    n_updates: int
    """updates of the round"""
    n_replicas: int = 1
    """temperatures of the chains"""
    cools: bool = False
    """whether the step size falls to zero; the last round"""
    n_losses: int = 0
    """rounds with a loss since the last gain"""
    n_in_vain: int = 0
    """changes of plan since the last that helped"""
    score_at_change: float = -np.inf
    """best validation log-likelihood when the plan was changed"""
    rounds_at_change: int = 0
    """rounds that had led to this best model"""
    betas: np.ndarray = tracking.FIRST_BETAS
    """temperatures of the next estimate"""
    correlation: float = 1.0
    """how far the chains remember where they were, as far as it is known"""
    reason: str = ""
    """why the round begins at the best model, in words; empty where training goes on"""

    @property
    def segment(self):
        """The `Segment` of these updates."""
        # of plain numbers: settings may be numbers of NumPy
        return Segment(
            int(self.n_updates),
            float(self.rate),
            0.0 if self.cools else float(self.rate),
            int(self.n_gibbs_steps),
            float(self.weight_decay),
            int(self.n_replicas),
        )


class Adapting(NamedTuple):
    """State of a training between two rounds."""

    current: Point
    """after the last round, or where training has returned to"""
    best: Point
    """the one with the most likely validation rows"""
    plan: Plan
    """of the next round"""
    first_score: float
    """validation log-likelihood of the start"""
    others: tuple = ()
    """the points that come next to the best"""


def first_plan(settings, state):
    """The plan of the first round."""
    update = settings.update
    return Plan(
        settings.learning_rate,
        update.n_gibbs_steps,
        update.weight_decay,
        min(FIRST_ROUND, settings.max_updates),
        # a fit that is continued may have several
        contrastive.n_replicas(state),
    )


def decide(settings, n_rows, adapting, left=np.inf):
    """What follows a round: the new `Adapting`, and whether the training is over.

    ``left`` is the number of updates for which there is time.
    """
    if adapting.plan.cools:
        return adapting, True
    adapting = _ranked(adapting)
    current, best, plan = adapting.current, adapting.best, adapting.plan
    end = ""
    if current.n_updates >= settings.max_updates:
        end = "max_updates is reached"
    if _lacks_time(settings, adapting, left):
        end = gains.NO_TIME
    stalls = gains.stalls(settings, adapting)
    has_converged = gains.has_converged(adapting)
    overfits = has_converged and gains.overfits_in_the_end(adapting)
    if plan.n_losses >= _PATIENCE or stalls or overfits:
        changed = _changed(settings, n_rows, adapting, stalls)
        if changed is not None and not end:
            return adapting._replace(current=best, plan=changed), False
        end = end or "other settings do not help any more"
    if not end and has_converged:
        end = "the last three quarters of the updates have gained next to nothing"
    if end:
        plan = plan._replace(
            cools=True, n_updates=last_round(settings, best, left), reason=end
        )
        return adapting._replace(current=best, plan=plan), False
    plan = plan._replace(n_updates=_next_round(settings, current), reason="")
    return adapting._replace(plan=plan), False


def _ranked(adapting):
    """The same after a round: with the best points, and the losses since the last gain.

    A loss within the error of the estimates is none.
    """
    current, plan = adapting.current, adapting.plan
    gained = current.validation > adapting.best.validation
    points = [adapting.best, *adapting.others, current]
    best, *others = sorted(points, key=_validation, reverse=True)
    adapting = adapting._replace(best=best, others=tuple(others[:_MAX_OTHERS]))
    lost = current.validation < best.validation - gains.noise(current, best)
    lost = lost and not gains.is_on_plateau(adapting, current)
    n_losses = 0 if gained else plan.n_losses + lost
    return adapting._replace(plan=plan._replace(n_losses=n_losses))


def _validation(point):
    return point.validation


def _next_round(settings, point):
    most = min(_LONGEST_ROUND, int(gains.GROWTH * point.n_updates))
    left = settings.max_updates - point.n_updates
    return max(1, min(max(FIRST_ROUND, most), left))


def last_round(settings, point, left=np.inf):
    """Updates of the last round, in which the step size falls to zero."""
    least = min(FIRST_ROUND, settings.max_updates)
    wanted = max(least, int(_COOL_DOWN * point.n_updates))
    times = 2 if settings.refit else 1
    most = (left - (times - 1) * point.n_updates) / times
    return int(max(1, min(wanted, most)))


def _lacks_time(settings, adapting, left):
    """Whether another round would leave no time for the end of the training.

    That is the last round, and the repetition of all of them.
    """
    n_next, best = _next_round(settings, adapting.current), adapting.best
    n_last = last_round(settings, best)
    n_repeated = best.n_updates + n_next + n_last if settings.refit else 0
    return n_next + n_last + n_repeated > left


def _changed(settings, n_rows, adapting, stalls):
    """Another plan, from the best point on; None where that is the end.

    Nothing may be left to change, or the last changes were in vain.
    """
    current, best, plan = adapting[:3]
    if stalls:
        changed = _more_decay(settings, n_rows, plan)
        reason = "more updates with this weight decay gain next to nothing"
    elif current.log_likelihood < best.log_likelihood - gains.noise(current, best):
        changed = _when_both_lose(settings, plan, best)
        reason = "training and validation rows have become less likely"
    else:
        changed = _more_decay(settings, n_rows, plan)
        reason = "only the validation rows have become less likely"
    least = plan.score_at_change + gains.least_gain(adapting)
    n_in_vain = 0 if best.validation > least else plan.n_in_vain + 1
    most = _MAX_IN_VAIN + (best.n_updates < gains.LEAST_UPDATES)
    if changed is None or n_in_vain >= most:
        return None
    return changed._replace(
        n_losses=0,
        n_in_vain=n_in_vain,
        score_at_change=best.validation,
        rounds_at_change=len(best.path),
        n_updates=_next_round(settings, best),
        reason=reason,
    )


def _when_both_lose(settings, plan, best):
    """The plan after training and validation rows lost; None if nothing is left."""
    if settings.enumerates:
        # without chains and step size
        return _less_decay(settings, plan, best)
    is_slow = plan.correlation > _FORGOTTEN or _smaller_steps_in_vain(plan, best)
    faster = mix_faster(settings, plan, best.state) if is_slow else None
    # chains that follow first, then less of a decay that takes more than it gives, then
    # a model that changes more slowly
    weaker = _less_decay(settings, plan, best)
    return faster or weaker or plan._replace(rate=_RATE_FACTOR * plan.rate)


def _smaller_steps_in_vain(plan, best):
    """Whether the best model is that of larger steps, also after smaller ones.

    Chains that follow these, and forget where they were, may yet all be in modes of the
    data, and miss another one that the model prefers. Only temperatures lead there.
    """
    of_best = best.path[-1].segment.first_rate if best.path else np.inf
    return plan.rate < of_best and best.validation <= plan.score_at_change


def _more_decay(settings, n_rows, plan):
    """The plan with a larger weight decay; None if that is fixed, or the largest.

    A larger one would take more than there is of a weight in each update.
    """
    decay = max(_DECAY_FACTOR * plan.weight_decay, _FIRST_DECAY_ROWS / n_rows)
    if not settings.adapts_decay or decay * plan.rate > 1.0:
        return None
    return plan._replace(weight_decay=decay)


def _less_decay(settings, plan, best):
    """The plan with a decay nearer to the best point's, if it has a larger one."""
    of_best = settings.update.weight_decay
    if best.path:
        of_best = best.path[-1].segment.weight_decay
    if not plan.weight_decay > of_best:
        return None
    between = np.sqrt(of_best * plan.weight_decay)
    decay = max(float(between), plan.weight_decay / _DECAY_FACTOR)
    return plan._replace(weight_decay=decay)


def mix_faster(settings, plan, state):
    """The plan with chains that move further in an update; None if they do."""
    if not settings.adapts_gibbs:
        return None
    # of temperatures or, where there are none, of Gibbs steps: they cost the same
    tempers = settings.tempers and is_standard(state.rbm)
    name = "n_replicas" if tempers else "n_gibbs_steps"
    return plan._replace(**{name: _MORE}) if getattr(plan, name) < _MORE else None
