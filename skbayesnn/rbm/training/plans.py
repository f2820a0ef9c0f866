"""What follows a round of updates: step size, chains, weight decay, or the end.

After each round, the log-likelihoods of training and validation rows decide:

- the validation rows gained: training continues;
- they lost in two rounds, and the training rows as well: the chains no longer follow
  the model. Training returns to the best model, with more temperatures or, if it has
  the most or its chains forget where they were, with less of a weight decay that the
  best model did not have, or with half of the step size;
- they lost while the training rows gained: the model overfits. Training returns to the
  best model, with a larger weight decay; so, too, where several rounds with a weight
  decay have gained next to nothing;
- four times the updates gained next to nothing, or several changes did not help: the
  training ends at the best model, from which the step size falls to zero.

Chains of contrastive divergence that starts at the data, and those of fractional
models, get more Gibbs steps in place of temperatures.
"""

from typing import NamedTuple

import numpy as np

from ..learning import contrastive
from ..model import is_standard
from . import tracking
from .path import Point, Segment

# Updates of the first round, and growth of their number from round to round.
FIRST_ROUND = 100
_GROWTH = 1 / 3
_LONGEST_ROUND = 2000
# Rounds with a loss, and none with a gain, after which training returns to the best
# model.
_PATIENCE = 2
# Fraction of the whole gain so far that four times the updates have to add: twice are
# too few, since the best of noisy estimates is hard to exceed.
_LOOK_BACK, _LEAST_GAIN = 4, 0.004
# Rounds with one weight decay from which on they may stall.
_STALLED_ROUNDS = 4
# Updates before which nothing is taken as the end of progress.
_LEAST_UPDATES = 1000
# A smaller loss may be chance even if both likelihoods are exact, nats.
_LEAST_LOSS = 0.02
# At first, from small random weights, the model moves little in any direction: by less
# than this fraction of its log-likelihood, for up to so many updates.
PLATEAU, PLATEAU_UPDATES = 0.003, 5000
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
    batch_size: int
    max_updates: int
    adapts_gibbs: bool
    tempers: bool
    """whether chains may get several temperatures"""
    adapts_decay: bool
    enumerates: bool
    """whether standard models are trained without chains, see `few_features`"""
    keep_last: bool
    """whether a Ctrl-C keeps the best model so far"""
    n_jobs: int | None
    limit_blas: bool
    verbose: bool


class Plan(NamedTuple):
    """What the next round does."""

    rate: float
    n_gibbs_steps: int
    weight_decay: float
    n_updates: int
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

    @property
    def segment(self):
        """The `Segment` of these updates."""
        return Segment(
            self.n_updates,
            self.rate,
            0.0 if self.cools else self.rate,
            self.n_gibbs_steps,
            self.weight_decay,
            self.n_replicas,
        )


class Adapting(NamedTuple):
    """State of a training between two rounds."""

    current: Point
    best: Point
    plan: Plan
    first_score: float
    """validation log-likelihood of the start"""
    others: tuple = ()
    """the points that come next to the best"""

    @property
    def whole_gain(self):
        """What the validation rows have gained so far, nats."""
        return self.best.validation - self.first_score

    @property
    def least_gain(self):
        """A smaller gain is next to nothing, nats."""
        return _LEAST_GAIN * self.whole_gain


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


def decide(settings, n_rows, adapting):
    """What follows a round: the new `Adapting`, and whether the training is over."""
    current, best, plan = adapting.current, adapting.best, adapting.plan
    if plan.cools:
        return adapting, True
    gained = current.validation > best.validation
    points = [best, *adapting.others, current]
    best, *others = sorted(points, key=_validation, reverse=True)
    adapting = adapting._replace(best=best, others=tuple(others[:_MAX_OTHERS]))
    # a loss within the error of the estimates is none
    lost = current.validation < best.validation - noise(current, best)
    lost = lost and not _is_on_plateau(adapting, current)
    n_losses = 0 if gained else plan.n_losses + lost
    plan = plan._replace(n_losses=n_losses)
    ends = current.n_updates >= settings.max_updates
    stalls = _stalls(settings, adapting)
    if n_losses >= _PATIENCE or stalls:
        if stalls:
            changed = _more_decay(settings, n_rows, plan)
        else:
            changed = _change(settings, n_rows, plan, current, best)
        helped = best.validation > plan.score_at_change + adapting.least_gain
        n_in_vain = 0 if helped else plan.n_in_vain + 1
        most = _MAX_IN_VAIN + (best.n_updates < _LEAST_UPDATES)
        ends = ends or changed is None or n_in_vain >= most
        if not ends:
            changed = changed._replace(
                n_losses=0,
                n_in_vain=n_in_vain,
                score_at_change=best.validation,
                rounds_at_change=len(best.path),
                n_updates=_next_round(settings, best),
            )
            return adapting._replace(current=best, plan=changed), False
    if ends or _has_converged(adapting):
        plan = plan._replace(cools=True, n_updates=last_round(settings, best))
        return adapting._replace(current=best, plan=plan), False
    plan = plan._replace(n_updates=_next_round(settings, current))
    return adapting._replace(plan=plan), False


def _validation(point):
    return point.validation


def has_left(before, score):
    """Whether training has left the plateau where it began, nats."""
    return score - before > max(_LEAST_LOSS, PLATEAU * abs(before))


def noise(one, other):
    """Difference of two log-likelihoods that may be chance, nats."""
    return max(_LEAST_LOSS, 2.0 * float(np.hypot(one.error, other.error)))


def _is_on_plateau(adapting, current):
    """Whether a model has not left the likelihoods of its start in either direction.

    What its validation rows lose there is chance, and says nothing of step or decay.
    A start that is better than independent features is on no plateau.
    """
    best = adapting.best
    starts_there = not has_left(adapting.first_score, best.validation)
    is_early = not best.n_updates and current.n_updates < PLATEAU_UPDATES
    if not (starts_there and is_early):
        return False
    moved = abs(current.log_likelihood - best.log_likelihood)
    return moved <= max(_LEAST_LOSS, PLATEAU * abs(best.log_likelihood))


def _next_round(settings, point):
    n_updates = max(FIRST_ROUND, min(_LONGEST_ROUND, int(_GROWTH * point.n_updates)))
    return max(1, min(n_updates, settings.max_updates - point.n_updates))


def last_round(settings, point):
    least = min(FIRST_ROUND, settings.max_updates)
    return max(least, int(_COOL_DOWN * point.n_updates))


def _change(settings, n_rows, plan, current, best):
    """The plan after a loss of the validation rows; None if nothing can be changed."""
    if current.log_likelihood < best.log_likelihood - noise(current, best):
        if settings.enumerates:
            # without chains and step size
            return _less_decay(settings, plan, best)
        is_slow = plan.correlation > _FORGOTTEN
        faster = mix_faster(settings, plan, best.state) if is_slow else None
        # chains that follow first, then less of a decay that takes more than it gives,
        # then a model that changes more slowly
        weaker = _less_decay(settings, plan, best)
        return faster or weaker or plan._replace(rate=_RATE_FACTOR * plan.rate)
    return _more_decay(settings, n_rows, plan)


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


def gain_since(adapting, fraction):
    """What the validation rows have gained since a fraction of the updates, nats.

    NaN if no round had ended then.
    """
    current = adapting.current
    n_updates = np.cumsum([one.segment.n_updates for one in current.path])
    n_earlier = np.count_nonzero(n_updates <= fraction * current.n_updates)
    if not n_earlier:
        return np.nan
    earlier = max(one.validation for one in current.path[:n_earlier])
    before = max(adapting.first_score, earlier)
    return float(adapting.best.validation - before)


def cannot_reach(adapting, score, n_rounds):
    """Whether a model is behind one that it does not reach in so many rounds, all told.

    Validation rows gain ever less from one doubling of the updates to the next, once
    the model has left the plateau where it began.
    """
    current, best = adapting.current, adapting.best
    begins = current.n_updates < _LEAST_UPDATES
    if begins or not has_left(adapting.first_score, best.validation):
        return False
    n_more = max(0, n_rounds - len(current.path))
    n_doublings = n_more * np.log2(1.0 + _GROWTH)
    return best.validation + n_doublings * gain_since(adapting, 0.5) <= score


def overfits_or_cools(settings, adapting):
    """Whether validation rows lose alone, and what `has_decay_or_cools` says."""
    current, best, plan = adapting[:3]
    overfits = plan.n_losses and current.log_likelihood > best.log_likelihood
    return bool(overfits or has_decay_or_cools(settings, adapting))


def has_decay(settings, adapting):
    """Whether the model has a larger weight decay than given, as it has overfitted."""
    return adapting.plan.weight_decay > settings.update.weight_decay


def has_decay_or_cools(settings, adapting):
    """Whether the model was given a weight decay, or its step size falls to zero."""
    return has_decay(settings, adapting) or adapting.plan.cools


def _stalls(settings, adapting):
    """Whether the later half of the rounds with a weight decay gained next to nothing.

    The decay holds the weights where they are, and more updates change little. Both
    likelihoods may even fall a little.
    """
    current, best, plan = adapting[:3]
    n_rounds = len(current.path) - plan.rounds_at_change
    if not has_decay(settings, adapting) or n_rounds < _STALLED_ROUNDS:
        return False
    earlier = current.path[: plan.rounds_at_change + n_rounds // 2]
    before = max(one.validation for one in earlier)
    return best.validation - before <= adapting.least_gain


def _has_converged(adapting):
    """Whether the last three quarters of the updates have gained next to nothing."""
    gain = gain_since(adapting, 1 / _LOOK_BACK)
    # a slow start is no end: from small weights, nothing is gained for long
    has_begun = adapting.whole_gain > _LEAST_LOSS
    least = _LEAST_UPDATES if has_begun else PLATEAU_UPDATES
    return adapting.current.n_updates > least and gain <= adapting.least_gain
