"""What an automatic training has decided, as fitted attributes and in words."""

from ..learning import contrastive
from . import gains


def decisions(best):
    """Fitted attributes that tell what was chosen."""
    n_steps, decay = 1, 0.0
    if best.path:
        last = best.path[-1].segment
        n_steps, decay = last.n_gibbs_steps, last.weight_decay
    return {
        "n_updates_": best.n_updates,
        "n_gibbs_steps_": int(n_steps),
        "n_replicas_": contrastive.n_replicas(best.state),
        "weight_decay_": float(decay),
    }


def summary(settings, outcome, is_repeated):
    """A line of ``verbose`` at the end of a training."""
    best = outcome.best
    chosen = decisions(best)
    text = (
        f"chosen: {best.n_units} units, {chosen['n_updates_']} updates, "
        f"Gibbs steps {chosen['n_gibbs_steps_']}, temperatures "
        f"{chosen['n_replicas_']}, weight decay {chosen['weight_decay_']:.2g}, "
        f"validation log-likelihood {best.validation:.2f} nats"
        f"{' before the refit' if is_repeated else ''}"
    )
    if outcome.adapting.plan.reason == gains.NO_TIME:
        text += "; ended by max_time"
    # the last round, in which the step size falls, is beyond the limit
    rounds = outcome.adapting.current.path[:-1]
    n_updates = sum(one.segment.n_updates for one in rounds)
    if n_updates >= settings.max_updates:
        gain = gains.gain_since(outcome.adapting, 0.5)
        text += f"; ended by max_updates, whose second half gained {gain:.2f} nats"
    return text
