"""How many networks an ensemble needs: more, the farther its candidates scatter.

Networks that run through a stretch that they did not see have an error in common, and
one that each has for itself, which the median of many averages out. Where the second is
small, as on records with much noise, few networks do; where single networks err in ways
of their own, as beyond the levels of their record, more of them are worth their time.
"""

import math

import numpy as np

from .candidates import LEAST_ERROR, WORST_ERROR
from .cut_record import output_deviation
from .held_out_runs import held_out_runs

# With fewer than `USUAL`, where each kind has half of them, the median lies somewhere
# between those of one kind and those of the other. Where all networks say the same,
# that does not matter, and `FEWEST` are enough.
FEWEST, USUAL, MOST = 6, 12, 24
# What the networks' own errors may add to the mean squared error of their median, and
# what they may add where there are only `FEWEST`.
ADDED, ADDED_BY_FEWEST = 0.05, 0.01


def enough_members(networks, data, focus):
    """A number of networks: `FEWEST`, or from `USUAL` to `MOST`.

    Parameters
    ----------
    networks : dict of int to list of LaggedNetwork or StateSpaceNetwork
        By the number of a stretch, fits of close candidates that did not see it.
    data : CutRecord
    focus : errors that count
    """
    horizon = np.inf if focus == "simulation" else 1
    errors = [
        _errors(members, fold, data, horizon)
        for fold, members in networks.items()
        if len(members) > 1
    ]
    errors = [part for part in errors if part.size]
    if not errors:
        return USUAL
    # stretches differ by factors, as in the comparison of candidates
    ratio = float(np.exp(np.mean([np.log(_ratio(part)) for part in errors])))
    n = np.mean([len(part) for part in errors])
    # in units of the error of the median: single = common + own, 1 = common + own / n
    own = (ratio - 1.0) / (1.0 - 1.0 / n)
    common = 1.0 - own / n
    if own <= FEWEST * ADDED_BY_FEWEST * common:
        return FEWEST
    allowed = ADDED * common
    return MOST if own >= MOST * allowed else max(USUAL, math.ceil(own / allowed))


def _ratio(errors):
    """Mean squared error of a single network, divided by that of the median of all."""
    single = np.median((errors**2).mean(axis=1))
    median = (np.median(errors, axis=0) ** 2).mean()
    return max(single, LEAST_ERROR**2) / max(median, LEAST_ERROR**2)


def _errors(members, fold, data, horizon):
    """Errors (n_members, n_values), in standard deviations of the outputs."""
    deviation, found = output_deviation(data), []
    for run in held_out_runs(members, fold, data):
        means = [
            member.forecast(run.record, run.n_known, horizon, False).mean
            for member in members
        ]
        errors = (np.array(means) - run.target) / deviation
        judged = np.isfinite(run.target) & run.judged[:, None]
        # those that have diverged are wrong, as in the comparison of candidates
        errors = np.nan_to_num(errors[:, judged], nan=WORST_ERROR)
        found.append(np.clip(errors, -WORST_ERROR, WORST_ERROR))
    return np.concatenate(found, axis=1) if found else np.zeros((len(members), 0))
