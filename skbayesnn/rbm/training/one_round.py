"""A round of an automatic training: a segment of updates, and what came of it.

After the updates, the log-likelihoods of training and validation rows are estimated
(`tracking`), with the help of what the round has changed (`changes`), and it is
measured how long the chains remember where they were.

Without states of the chains, estimates scatter, and the best of many errs upwards. One
that is a little better than the best is repeated with more chains.
"""

from functools import partial

import numpy as np

from ..._random import Stream, derived_seed
from ..learning import contrastive, mixing
from . import changes, gains, plans, tracking
from .job import computing
from .model_states import draws_of, rows_to_jump_to, states_for_changes
from .path import Point, Round
from .segments import lists_states, run_segment
from .start import base_of

# Steps after which the chains should have forgotten where they were: a fraction of the
# round's updates, as the next one has more, and the fewest and most of them; if their
# states still correlate by more than this with those before, they mix too slowly.
_MIXING, _MIXING_STEPS, _MAX_CORRELATION = 0.2, (20, 100), 0.5
# Multiple of what may be chance below which a gain is estimated again: the estimates
# have heavier tails than they know.
_DOUBT = 2.0


def run_round(settings, job, adapting, monitored, number):
    """Run the updates of the plan, and estimate the log-likelihoods.

    Returns the new `Adapting`, with the same plan, and an entry for the history.
    """
    plan, before = adapting.plan, adapting.current
    segment, base = plan.segment, base_of(job.train)
    state = contrastive.copy(before.state)
    with computing(settings.n_jobs, settings.learning_rate, settings.limit_blas):
        state, error, rate = run_segment(
            settings, job, state, segment, before.n_updates
        )
        states = states_for_changes(settings, job, state, plan.n_updates, number + 1)
        tracked = tracking.track(
            contrastive.model(settings.update, state), base, job, monitored,
            number + 1, plan.betas, plan.n_updates, settings.n_jobs,
            draws=draws_of(settings, job, state, number),
            doubted=partial(_is_doubtful, adapting.best),
            predicted=_predicted(settings, before, state, states),
        )  # fmt: skip
    adapting = _corrected(adapting, tracked.shift)
    path = (*adapting.current.path, Round(segment, tracked.validation))
    point = Point(state, path, *tracked[:5], states)
    record = {
        "n_updates": point.n_updates,
        "learning_rate": rate,
        "n_gibbs_steps": plan.n_gibbs_steps,
        "n_replicas": plan.n_replicas,
        "weight_decay": plan.weight_decay,
        "mean_error": error,
        "log_likelihood": tracked.log_likelihood,
        "validation_log_likelihood": tracked.validation,
        "log_partition_error": tracked.level_error,
    }
    plan = adapting.plan._replace(betas=tracked.betas)
    is_plain = plan.n_replicas == 1 and plan.n_gibbs_steps == 1
    if settings.adapts_gibbs and is_plain and not lists_states(settings, state):
        plan = _with_mixing(settings, job, plan, state, number)
        record["correlation"] = plan.correlation
    return adapting._replace(current=point, plan=plan), record


def _with_mixing(settings, job, plan, state, number):
    """The plan with the correlation of chains, and others if they mix too slowly."""
    seed = derived_seed(job.seed, Stream.MIXING, number)
    rows = rows_to_jump_to(settings, job, state)
    n_steps = int(np.clip(_MIXING * plan.n_updates, *_MIXING_STEPS))
    correlation = mixing.chain_correlation(state, n_steps, seed, rows)
    plan = plan._replace(correlation=correlation)
    if correlation > _MAX_CORRELATION:
        plan = plans.mix_faster(settings, plan, state)
    return plan


def _predicted(settings, before, state, states):
    """The log partition function after a round, and its change; None without states."""
    is_known = states is not None and before.states is not None
    n_chains = len(state.chains)
    if not is_known or len(before.state.chains) != n_chains:
        return None
    models = [contrastive.model(settings.update, one) for one in (before.state, state)]
    change = changes.log_ratio(*models, before.states, states, n_chains)
    error = float(np.hypot(before.level_error, change.error))
    return changes.Estimate(before.log_partition + change.value, error), change


def _corrected(adapting, shift):
    """The same with all points corrected by what is known now of the level."""
    current, best, *others = (
        changes.corrected(point, shift)
        for point in (adapting.current, adapting.best, *adapting.others)
    )
    # what the last change of plan has to exceed is the best point of then: if that is
    # the best one still, it is exactly its score
    gained = adapting.best.validation - adapting.plan.score_at_change
    score = best.validation - gained
    return adapting._replace(
        current=current,
        best=best,
        plan=adapting.plan._replace(score_at_change=score),
        others=tuple(others),
    )


def _is_doubtful(best, tracked):
    """Whether a model looks better than the best one, but by no more than chance.

    The best of many estimates errs upwards, and later ones hardly exceed it.
    """
    gain = tracked.validation - best.validation
    return 0.0 < gain < _DOUBT * gains.noise(tracked, best)
