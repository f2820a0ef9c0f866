"""The factor of a searched ensemble's bands, by stretches that its fits did not see.

Each stretch has an ensemble of its own: the fits of the chosen candidates that did not
see it. Their errors there are those which the whole ensemble may expect in a new record
like its own; they are compared with the standard deviations of that ensemble, which is
fitted to more rows and in more cycles.

The bands of a linear model are never made narrower: they follow from its noise, of
which one step tells nearly all. Where they are too wide on the stretches, it is mostly
that nothing has disturbed the system there.

Nor are bands made narrower where candidates drift (see `drift`): rows on both sides
hold a run within a stretch, and nothing does in a new record. What the error grows by
there makes the bands wider.
"""

import numpy as np

from ..prediction.ensemble import Ensemble, forecast
from .candidates import LEAST_ERROR
from .held_out_runs import held_out_runs
from .learned_factor import typical_factor, widening


def band_factor(networks, ensemble, data):
    """Factors (n_outputs,) of the standard deviations of free runs.

    Parameters
    ----------
    networks : dict of int to list of LaggedNetwork or StateSpaceNetwork
        By the number of a stretch, fits that did not see it.
    ensemble : Ensemble
        Whose bands they are.
    data : CutRecord
    """
    found = [
        _deviations(members, ensemble, fold, data) for fold, members in networks.items()
    ]
    deviations, floors = (
        [[part[:, o] for part in parts] for o in range(data.Y.shape[1])]
        for parts in zip(*found, strict=True)
    )
    factor = np.array(list(map(typical_factor, deviations, floors)))
    if _is_linear(ensemble):
        factor = np.maximum(factor, 1.0)
    return factor * [widening(parts) for parts in deviations]


def for_drift(factor, table, candidates):
    """The factors of bands that also hold what the chosen candidates drift.

    Parameters
    ----------
    factor : (n_outputs,) array
        See `band_factor`.
    table : Table
    candidates : list of Candidate
        Those of the ensemble.
    """
    drifts = np.array([table.drifts.get(c, 0.0) for c in candidates])
    if not drifts.any():
        return factor
    ratio = drifts / [max(table.held_out(c), LEAST_ERROR) for c in candidates]
    return np.maximum(factor, 1.0) * np.sqrt(1.0 + np.mean(ratio**2))


def _is_linear(ensemble):
    """Whether no member has hidden units or states."""
    return ensemble.is_linear and not ensemble.numbers_of_states.any()


def _deviations(members, ensemble, fold, data):
    """Errors (n_rows, n_outputs) in standard deviations, NaN where there are none.

    And the part of these standard deviations below which no factor makes them.
    """
    unseen = Ensemble(tuple(members), np.full(len(members), 1.0 / len(members)))
    nothing = np.zeros((0, data.Y.shape[1]))
    found, floors = [nothing], [nothing]
    for run in held_out_runs([*members, *ensemble.members], fold, data):
        arguments = run.record, run.n_known, np.inf
        mean = forecast(unseen, *arguments, return_std=False).mean
        whole, judged = forecast(ensemble, *arguments, return_std=True), run.judged
        std = whole.std[judged]
        found.append((run.target[judged] - mean[judged]) / std)
        floors.append(whole.least[judged] / std)
    return np.concatenate(found), np.concatenate(floors)
