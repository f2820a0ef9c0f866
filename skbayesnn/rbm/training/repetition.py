"""The updates of a training, run again on all rows.

A training holds rows out, by which it decides. Its path tells what it has decided, so
the same updates can be run on the rows that were held out as well.
"""

import numpy as np

from ..learning import contrastive
from . import precise_estimates
from .job import computing
from .segments import run_segment

# Tells the estimate of a repeated training from those of the first.
_REPEATED = 2**20
# Standard errors by which a repeated training may be worse.
_MOST_ERRORS = 3.0


def repeat_on_all_rows(settings, job, make_start, best):
    """Run the updates that have led to the best point on all rows.

    Returns the last state. It is None if the held-out rows, which this training has
    seen, are clearly less likely than before.
    """
    job = job._replace(train=job.whole)
    state, n_before = contrastive.copy(make_start(job).make_state()), 0
    with computing(settings.n_jobs, settings.learning_rate, settings.limit_blas):
        for segment, _ in best.path:
            state, *_ = run_segment(settings, job, state, segment, n_before)
            n_before += segment.n_updates
    points = [best._replace(state=state)]
    (measured,) = precise_estimates.measure(settings, job, points, _REPEATED)
    noise = _MOST_ERRORS * np.hypot(best.error, measured.error)
    return state if measured.validation > best.validation - noise else None
