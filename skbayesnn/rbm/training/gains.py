"""What a training has gained so far, and whether it goes on to gain.

The functions take the `plans.Adapting` of a training between two rounds.
"""

import numpy as np

# Growth of the number of updates by a round.
GROWTH = 1 / 3
# Fraction of the whole gain so far that four times the updates have to add: twice are
# too few, since the best of noisy estimates is hard to exceed.
_LOOK_BACK, _LEAST_GAIN = 4, 0.004
# Rounds with one weight decay from which on they may stall.
_STALLED_ROUNDS = 4
# Updates before which nothing is taken as the end of progress.
LEAST_UPDATES = 1000
# A smaller loss may be chance even if both likelihoods are exact, nats.
_LEAST_LOSS = 0.02
# At first, from small random weights, the model moves little in any direction: by less
# than this fraction of its log-likelihood, for up to so many updates.
PLATEAU, PLATEAU_UPDATES = 0.003, 5000
# Why a training ends that has no time for more.
NO_TIME = "max_time is nearly over"


def whole_gain(adapting):
    """What the validation rows have gained since the start, nats."""
    return adapting.best.validation - adapting.first_score


def least_gain(adapting):
    """A smaller gain is next to nothing, nats."""
    return _LEAST_GAIN * whole_gain(adapting)


def noise(one, other):
    """Largest difference of two log-likelihoods that may be chance, nats."""
    return max(_LEAST_LOSS, 2.0 * float(np.hypot(one.error, other.error)))


def has_left(before, score):
    """Whether training has left the plateau where it began, by two scores in nats."""
    return score - before > max(_LEAST_LOSS, PLATEAU * abs(before))


def ended_by(settings, outcome):
    """What has ended a training on the plateau where it began, in words, or None.

    ``outcome`` is its `adaptive.Outcome`.
    """
    n_updates = outcome.training.history["n_updates"].max()
    if n_updates >= PLATEAU_UPDATES:
        return None
    if outcome.adapting.plan.reason == NO_TIME:
        return "max_time"
    if n_updates >= settings.max_updates:
        return f"max_updates={settings.max_updates}"
    return None


def is_on_plateau(adapting, current):
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
    """Whether a model cannot reach a score in so many rounds, with those so far.

    Validation rows gain ever less from one doubling of the updates to the next, once
    the model has left the plateau where it began.
    """
    current, best = adapting.current, adapting.best
    begins = current.n_updates < LEAST_UPDATES
    if begins or not has_left(adapting.first_score, best.validation):
        return False
    n_more = max(0, n_rounds - len(current.path))
    n_doublings = n_more * np.log2(1.0 + GROWTH)
    return best.validation + n_doublings * gain_since(adapting, 0.5) <= score


def overfits_or_cools(settings, adapting):
    """Whether only the validation rows lose, or `has_decay_or_cools`."""
    current, best, plan = adapting[:3]
    overfits = plan.n_losses and current.log_likelihood > best.log_likelihood
    return bool(overfits or has_decay_or_cools(settings, adapting))


def overfits_in_the_end(adapting):
    """Whether the training rows still gain, where the validation rows do not.

    What these lose may be within the error of the estimates. That is the error of the
    partition function: what the training rows gain beyond it is learned.
    """
    current, best = adapting[:2]
    gained = current.log_likelihood - best.log_likelihood
    return current.validation < best.validation and gained > noise(current, best)


def has_decay(settings, adapting):
    """Whether the model has a larger weight decay than given, as it has overfitted."""
    return adapting.plan.weight_decay > settings.update.weight_decay


def has_decay_or_cools(settings, adapting):
    """Whether the model was given a weight decay, or its step size falls to zero."""
    return has_decay(settings, adapting) or adapting.plan.cools


def stalls(settings, adapting):
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
    return best.validation - before <= least_gain(adapting)


def has_converged(adapting):
    """Whether the last three quarters of the updates have gained next to nothing."""
    gain = gain_since(adapting, 1 / _LOOK_BACK)
    # a slow start is no end: from small weights, nothing is gained for long
    has_begun = whole_gain(adapting) > _LEAST_LOSS
    least = LEAST_UPDATES if has_begun else PLATEAU_UPDATES
    return adapting.current.n_updates > least and gain <= least_gain(adapting)
