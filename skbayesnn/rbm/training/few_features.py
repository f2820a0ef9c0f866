"""Rounds of a training on few features: by the likelihood itself, without chains.

A step of L-BFGS does the work of many updates, and counts as so many: rounds, plans and
repetitions stay as they are.
"""

import numpy as np

from ..._random import Stream, generator
from ..._sklearn import on_one_blas_thread
from ..learning import contrastive, exact_ascent
from ..states import all_states
from .start import start_training

# Updates that one step counts as. With 5, the first round overfits 100 rows.
_UPDATES = 20


# also where a fit leaves BLAS more of them: its rounding depends on them
@on_one_blas_thread
def ascend(settings, job, state, segment, n_before):
    """As `segments.run_segment`; the step size has no meaning, and is NaN.

    The chains of the new state are draws from its model.
    """
    rows, n_steps = job.train, -(-segment.n_updates // _UPDATES)
    of_data = rows.fractions_of_states()
    rbm = contrastive.model(settings.update, state)
    rbm = exact_ascent.ascend(rbm, of_data, n_steps, segment.weight_decay)
    of_model, states = exact_ascent.probabilities(rbm), all_states(rows.n_features)
    rng = generator(job.seed, Stream.EPOCH_CHAINS, n_before)
    n_chains = contrastive.clip_batch(settings.batch_size, len(rows))
    drawn = rng.choice(len(states), n_chains, p=of_model)
    chains = states[drawn].astype(np.uint8)
    new = start_training(rbm, rows, n_chains, job.seed, chains)
    difference = (of_data - of_model) @ states
    error = float(difference @ difference) / len(difference)
    return new._replace(step=state.step + segment.n_updates), error, np.nan
