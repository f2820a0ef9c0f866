"""How far fits of a candidate drift apart on a record that nobody has measured.

A held-out stretch begins and ends among rows that the fit has seen. Of a system that
integrates, these rows tell the fit what the stretch has added up, and errors on it do
not show how far a run drifts in a new record, where nothing holds it. So all fits of a
candidate, each without another stretch, are run through the inputs of the record in
another order. Where the record has not told what the system does, these runs differ.
Their scatter is a part of the error in a new record, and needs no outputs.
"""

import numpy as np

from ..learning.output_errors import joint_error
from ..records.lags import n_complete_before, union_of_lags
from ..records.layout import Record
from .candidates import WORST_ERROR, geometric_mean
from .cut_record import output_deviation, output_variance
from .stretches import numbered

# Rows of a run, at most; longer records are cut to the first rows of every stretch.
ROWS = 30_000


def drift(networks, data):
    """Scatter of free runs, a `joint_error` of all outputs.

    Parameters
    ----------
    networks : list of LaggedNetwork or StateSpaceNetwork
        Fits of one candidate, each without another stretch.
    data : CutRecord

    Returns
    -------
    scatter : float
        The geometric mean over several orders; NaN for a single network, which has
        nothing to drift apart from, and 0 where no run can begin.
    """
    if len(networks) < 2:
        return np.nan
    n_known = max(network.max_lag for network in networks)
    lags = [network.lags for network in networks if hasattr(network, "lags")]
    lags = union_of_lags(lags) if lags else None
    deviation, found = output_deviation(data), []
    is_judged = (output_variance(data) > 0.0).astype(float)
    for rows in _reordered(data, n_known):
        starts = np.array([0, len(rows)])
        record = Record(data.U[rows], data.Y[rows], lags, starts)
        runs = [one.forecast(record, n_known, np.inf, False).mean for one in networks]
        scatter = _scatter(np.array(runs)[:, n_known:] / deviation)
        found.append(joint_error(scatter, is_judged))
    return geometric_mean(found) if found else 0.0


def _scatter(runs):
    """Mean squares around the median of runs (n_networks, n_rows, n_outputs)."""
    runs = np.ma.masked_invalid(runs)
    median, n = np.ma.median(runs, axis=0), len(runs)
    # one that has diverged is as wrong as a candidate can be
    around = (runs - median).filled(WORST_ERROR)
    around = np.clip(around, -WORST_ERROR, WORST_ERROR)
    return (around**2).mean(axis=(0, 1)) * n / (n - 1)


def _reordered(data, n_known):
    """Rows of the record with its stretches in other orders, for several of these.

    A run begins in the first of them, behind rows that lie in it, or before it: short
    stretches do not hold as many as hidden states need to be known.
    """
    stretches = _stretches(data)
    before = n_complete_before(data.U, data.Y, data.starts)
    for order in _orders(len(stretches)):
        first, *others = (stretches[k] for k in order)
        ready = first[before[first] >= n_known]
        if not len(ready):
            continue
        inside = ready[ready >= first[0] + n_known]
        ready = inside if len(inside) else ready
        known = np.arange(ready[0] - n_known, ready[0])
        yield np.concatenate([known, ready, *others])


def _orders(n):
    """Orders of n stretches in which few follow the one that they followed."""
    every = np.arange(n)
    even, odd = every[::2], every[1::2]
    return every[::-1], np.concatenate([odd, even]), np.concatenate([odd, even])[::-1]


def _stretches(data):
    """Rows of the stretches of all sessions, without those that miss an input."""
    block = numbered(data.starts, data.folds)
    stretches = np.split(np.arange(len(block)), np.flatnonzero(np.diff(block)) + 1)
    n_rows = max(ROWS // len(stretches), 1)
    known = np.isfinite(data.U).all(axis=1)
    return [rows[known[rows]][:n_rows] for rows in stretches]
