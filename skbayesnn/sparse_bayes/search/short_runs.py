"""Free runs that missing inputs cut into pieces, by which a search would be misled.

A free run ends where an input is missing, and begins anew behind it from measured
outputs. Short runs err little: what adds up in a long one does not show.
"""

import numpy as np

from ..._warnings import warn_caller
from ...exceptions import MissingInputWarning
from ..records.lags import is_complete, n_complete_before
from .scored_rows import rows_behind

# Rows of a run in which errors have mostly grown as far as they do: several of the
# longest lags that are usual.
LONG = 100


def warn_of_short_runs(data):
    """Say how long runs are, if missing inputs leave less than a quarter of them."""
    U, Y, starts = data.U, data.Y, data.starts
    counts = is_complete(U, Y[:, :0]) & np.isfinite(Y).any(axis=1)
    if counts.sum() == len(Y) or not counts.any():
        return
    behind_gap = np.median(n_complete_before(U, Y[:, :0], starts)[counts])
    in_session = np.median(rows_behind(starts)[counts])
    if behind_gap < min(LONG, 0.25 * in_session):
        warn_caller(
            "Missing inputs cut the free runs by which models are compared: half of "
            f"the rows are at most {behind_gap:.0f} rows behind a missing input or the "
            "start of their session. Held-out errors and bands are those of such short "
            "runs, and longer ones may err more. Fill short gaps in X before the fit, "
            "by interpolation or with the last value.",
            MissingInputWarning,
        )
