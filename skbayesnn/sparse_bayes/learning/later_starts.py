"""Free runs that begin later than the record does.

A network that was fitted to free runs may have learned a disturbance by heart, or
states between which the record leaves it no choice: its run follows the record from
where the fit began, and from other rows goes elsewhere.
"""

from functools import partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._warnings import warn_caller
from .output_errors import joint_error, mean_squared_errors
from .runs_to_score import free_runs_of, free_runs_through, gap_free_stretches

# Rows in the first half of a stretch without a gap from which runs are tried, windows
# that each run is long at least, and stretches, the longest ones: where there are many,
# runs begin in many rows anyway.
N_STARTS, LEAST_WINDOWS, MOST_STRETCHES = 4, 4, 10
# Multiple of the error of the fit that tells another course from an unlike start.
ELSEWHERE = 3.0


def errors_of_later_starts(network, scaling, record, Y):
    """Mean squared errors of runs that begin later, against ``Y`` where it is not NaN.

    Returns
    -------
    squared : list of (n_outputs,) arrays
        One for each start behind which an output is scored; scaled, NaN for the other
        outputs, infinite where a run diverges.
    """
    found, window = [], record.lags.max_lag + 1
    longest = sorted(gap_free_stretches(record), key=lambda one: one[0] - one[1])
    for start, stop in longest[:MOST_STRETCHES]:
        for part in np.arange(1, N_STARTS + 1) / (2 * N_STARTS):
            begin = start + int(part * (stop - start))
            if stop - begin >= LEAST_WINDOWS * window:
                run = free_runs_of(record, scaling, Y, [slice(begin, stop)])
                if run.n_observations:
                    found.append(mean_squared_errors(network, run))
    return found


def warn_of_later_starts(network, scaling, record):
    """Say where runs follow the record only if they begin as those of the fit did."""
    unit = (np.nanstd(record.Y, axis=0) / scaling.y_scale) ** 2
    error = partial(joint_error, variance=unit)
    run = free_runs_through(record, scaling, record.Y)
    of_fit = error(mean_squared_errors(network, run))
    later = errors_of_later_starts(network, scaling, record, record.Y)
    worst = max(map(error, later), default=0.0)
    if worst > max(1.0, ELSEWHERE * of_fit):
        warn_caller(
            "Free runs follow the training record only if they begin where those of "
            f"the fit did: from there they err by {of_fit:.2g} standard deviations of "
            f"the outputs, from later rows by up to {worst:.2g}; their mean errs by 1. "
            "The network may have learned a disturbance by heart. Increase reg_lambda, "
            "shorten the lags, or take focus='prediction'.",
            ConvergenceWarning,
        )
