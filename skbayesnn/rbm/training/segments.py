"""Updates of an automatic training, one segment of its path after another.

The step size falls with the root of the number of updates, besides what a segment says:
a constant one stirs up the weights, which looks like overfitting.
"""

import numpy as np

from ..._random import Stream, derived_seed, generator
from ..learning import contrastive
from ..model import is_standard
from . import few_features
from .start import base_of

# Updates from which on the step size falls with the root of their number, as the
# averages of Polyak and Juditsky ask for: behind the comparison of sizes.
_FALLING = 2000


def run_segment(settings, job, state, segment, n_before):
    """Run some updates; returns the new state, and mean error and step size."""
    n_updates, n_replicas = segment.n_updates, segment.n_replicas
    if lists_states(settings, state):
        return few_features.ascend(settings, job, state, segment, n_before)
    update = settings.update
    if update.max_change is not None:
        # half of the rate is half of the change, too
        part = _fallen(state.step) * segment.first_rate / settings.learning_rate
        update = update._replace(max_change=update.max_change * part)
    update = update._replace(
        n_gibbs_steps=segment.n_gibbs_steps, weight_decay=segment.weight_decay
    )
    seed = derived_seed(job.seed, Stream.EPOCH_CHAINS)
    if n_replicas > 1 and contrastive.n_replicas(state) != n_replicas:
        start_seed = derived_seed(job.seed, Stream.EPOCH_CHAINS, n_before)
        base = base_of(job.train)
        state = contrastive.temper(state, base, n_replicas, start_seed)
    batches = batches_from(job, settings.batch_size, n_before)
    error, mean_rate = 0.0, 0.0
    first_rate, change = segment.first_rate, segment.last_rate - segment.first_rate
    for k in range(n_updates):
        rate = first_rate + change * k / n_updates
        rate *= _fallen(state.step)
        batch = job.train.states(next(batches))
        state, info = contrastive.step(update, state, batch, rate, seed)
        error += info.mean_error / n_updates
        mean_rate += info.rate / n_updates
    contrastive.settle(update, state)
    contrastive.check(state)
    return state, error, mean_rate


def lists_states(settings, state):
    """Whether a segment needs no chains."""
    return settings.enumerates and is_standard(state.rbm)


def _fallen(number):
    """What is left of the step size at an update; the first has the number 1."""
    return min(1.0, float(np.sqrt(_FALLING / number)))


def batches_from(job, batch_size, n_before):
    """Indices of the rows of all batches after the first ones, epoch after epoch."""
    n_rows = len(job.train)
    n_batches = -(-n_rows // batch_size)
    epoch, first = divmod(n_before, n_batches)
    # bound: what the caller takes
    while True:
        order = generator(job.seed, Stream.EPOCH_ORDER, epoch).permutation(n_rows)
        yield from np.array_split(order, n_batches)[first:]
        epoch, first = epoch + 1, 0
