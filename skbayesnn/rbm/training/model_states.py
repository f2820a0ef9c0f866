"""States of a model, drawn by the chains that have trained it."""

from functools import partial

from ..._random import Stream, derived_seed
from ..learning import contrastive, mixing
from ..model import is_standard
from . import changes, tracking


def draws_of(settings, job, state, number):
    """A function that gives states of the model, for `tracking`.

    None where chains begin anew at each batch: their states are not those of the model.
    """
    if not settings.update.persistent:
        return None
    return partial(
        mixing.draws,
        contrastive.model(settings.update, state),
        state,
        seed=derived_seed(job.seed, Stream.MIXING, number, 1),
        rows=rows_to_jump_to(settings, job, state),
    )


def states_for_changes(settings, job, state, n_updates, number):
    """States of the model that tell what a round has changed; None without.

    Chains with several temperatures move too slowly for that: they agree with a model
    that has become worse.
    """
    draws = draws_of(settings, job, state, number)
    if draws is None or contrastive.n_replicas(state) > 1:
        return None
    n_states = changes.n_states(len(state.chains), n_updates)
    return draws(n_states) if n_states and not tracking.is_exact(state.rbm) else None


def rows_to_jump_to(settings, job, state):
    """Rows of data for the jumps of chains, if they have some."""
    if not (settings.update.jumps and is_standard(state.rbm)):
        return None
    return job.train.states(slice(settings.batch_size))
