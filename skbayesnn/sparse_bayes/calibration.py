"""The factor of a searched ensemble's bands, by stretches that its fits did not see.

Each stretch has an ensemble of its own: the fits of the chosen candidates that did not
see it. Their errors there are those which the whole ensemble may expect in a new record
like its own; they are compared with the standard deviations of that ensemble, which is
fitted to more rows and in more cycles.
"""

import numpy as np

from .prediction.bands import learn_factor
from .prediction.ensemble import Ensemble, forecast
from .records.lags import complete_rows, union_of_lags
from .records.layout import Record

# Rows before a stretch from which a free run through it begins, at most.
RUN_UP = 2000


def by_stretch(networks, kept):
    """The fits of the candidates that were kept, by the stretch that they did not see.

    ``networks`` are those of all candidates, by candidate and stretch.
    """
    found = {}
    for (candidate, fold), network in networks.items():
        if candidate in kept:
            found.setdefault(fold, []).append(network)
    return dict(sorted(found.items()))


def band_factor(networks, ensemble, data):
    """Factors (n_outputs,) of the standard deviations of free runs.

    Parameters
    ----------
    networks : dict of int to list of LaggedNetwork or StateSpaceNetwork
        By the number of a stretch, fits that did not see it.
    ensemble : Ensemble
        Whose bands they are.
    data : Data
    """
    deviations = [
        _deviations(members, ensemble, fold, data) for fold, members in networks.items()
    ]
    n_outputs = data.Y.shape[1]
    return np.array(
        [learn_factor([d[:, o] for d in deviations]) for o in range(n_outputs)]
    )


def _deviations(members, ensemble, fold, data):
    """Errors (n_rows, n_outputs) in standard deviations, NaN where there are none."""
    unseen = Ensemble(tuple(members), np.full(len(members), 1.0 / len(members)))
    everyone = [*members, *ensemble.members]
    of_lags = [network.lags for network in everyone if hasattr(network, "lags")]
    lags, found = union_of_lags(of_lags) if of_lags else None, []
    n_known = max(unseen.max_lag, ensemble.max_lag)
    for start, stop in zip(data.starts[:-1], data.starts[1:], strict=True):
        held_out = start + np.flatnonzero(data.folds[start:stop] == fold)
        rows = _run(data, lags, held_out, start)
        if rows is None:
            continue
        U, Y = data.U[rows], data.Y[rows]
        record = Record(U, Y, lags, np.array([0, len(U)]))
        mean = forecast(unseen, record, n_known, np.inf, return_std=False).mean
        std = forecast(ensemble, record, n_known, np.inf, return_std=True).std
        judged = data.folds[rows] == fold
        judged[:n_known] = False
        target = data.without_doubtful(data.Y)[rows]
        found.append((target[judged] - mean[judged]) / std[judged])
    return np.concatenate(found) if found else np.zeros((0, data.Y.shape[1]))


def _run(data, lags, held_out, first):
    """Rows of the free run through a stretch; None where none can begin before it."""
    if not len(held_out):
        return None
    begin = max(first, held_out[0] - RUN_UP)
    stop = held_out[-1] + 1
    part = slice(begin, stop)
    if lags is None:
        # hidden states need no complete window
        return part
    complete = complete_rows(
        data.U[part], data.Y[part], lags, np.array([0, stop - begin])
    )
    return slice(begin + complete[0] - lags.max_lag, stop) if len(complete) else None
