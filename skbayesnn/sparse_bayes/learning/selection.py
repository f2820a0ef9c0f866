"""How fits of the same record are ranked and weighted."""

import numpy as np
from scipy.optimize import nnls

from ..prediction import posterior
from ..prediction.ensemble import LaggedNetwork
from ..prediction.forecast import of_network
from ..records.lags import build_lag_matrix, complete_rows
from ..records.layout import Record


def held_out_rows(starts, fraction):
    """The last rows of every session, as a mask."""
    held_out = np.zeros(starts[-1], dtype=bool)
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        held_out[stop - int(np.ceil(fraction * (stop - start))) : stop] = True
    return held_out


def free_run_error(model, record, Y):
    """Mean squared scaled error, against ``Y``, of the free run through the record.

    One step ahead the restarts hardly differ; whether the errors add up when they are
    fed back tells good from bad.
    """
    U, _, lags, _ = record
    network = LaggedNetwork(model, lags)
    total, count = 0.0, 0
    for start, stop in gap_free_stretches(record):
        rows = slice(start, stop)
        part = Record(U[rows], record.Y[rows], lags, np.array([0, stop - start]))
        simulated = of_network(network, part, lags.max_lag, np.inf, False).mean
        error = ((simulated - Y[rows]) / model.scaling.y_scale)[lags.max_lag :]
        scored = np.isfinite(Y[rows][lags.max_lag :])
        total += float(np.sum(np.square(error[scored])))
        count += int(np.count_nonzero(scored))
    return total / count if count else np.inf


def gap_free_stretches(record):
    """First and last row of every stretch whose windows are all complete."""
    rows = complete_rows(record.U, record.Y, record.lags, record.starts)
    first = rows[np.flatnonzero(np.diff(rows, prepend=-2) > 1)]
    last = rows[np.flatnonzero(np.diff(rows, append=rows[-1] + 2) > 1)]
    return zip(first - record.lags.max_lag, last + 1, strict=True)


def evidence_weights(objective, strength):
    """Posterior probabilities of the networks at the temperature of their fit."""
    relative = np.exp(-0.5 * (objective - objective.min()) / strength)
    return relative / relative.sum()


def stacking_weights(members, record, held_out):
    """Weights, not negative, whose mixture fits the held-out free run best.

    Equal ones where no run reaches a held-out row.
    """
    U, Y, lags, _ = record
    scaling = members[0]._model.scaling
    offset, scale = scaling.y_offset, scaling.y_scale
    paths, targets = [], []
    for start, stop in gap_free_stretches(record):
        rows = slice(start, stop)
        ends = np.array([0, stop - start])
        arguments = (U[rows], Y[rows], ends, lags.max_lag, np.inf, False)
        runs = np.array([member._forecast(*arguments).mean for member in members])
        scored = held_out[rows] & np.isfinite(runs).any(axis=(0, 2))
        scored[: lags.max_lag] = False
        paths.append(((runs - offset) / scale)[:, scored].reshape(len(members), -1))
        targets.append(((Y[rows] - offset) / scale)[scored].ravel())
    paths, target = np.concatenate(paths, axis=1), np.concatenate(targets)
    # what diverged is far off
    matrix = np.where(np.isfinite(paths), paths, 1e6).T
    # a heavy row asks the weights to sum to one
    heavy = 1e3 * np.sqrt(len(target))
    matrix = np.vstack([matrix, np.full(len(members), heavy)])
    weights, _ = nnls(matrix, np.append(target, heavy))
    total = weights.sum()
    return weights / total if total > 0.0 else np.full(len(members), 1 / len(members))


def one_step_error(model, record, Y):
    """Mean squared scaled error, against ``Y``, one step ahead."""
    U, measured, lags, starts = record
    rows = complete_rows(U, measured, lags, starts)
    rows = rows[np.isfinite(Y[rows]).all(axis=1)]
    if not len(rows):
        return np.inf
    error = posterior.mean(model, build_lag_matrix(U, measured, lags, rows)) - Y[rows]
    return float(np.mean(np.square(error / model.scaling.y_scale)))


def stretches(starts, n_stretches):
    """The number of the contiguous stretch of its session that each row is in."""
    number = [np.arange(n) * n_stretches // n for n in np.diff(starts)]
    return np.concatenate(number)


def not_clearly_worse(errors):
    """The best candidate, and the stronger ones not clearly worse, as a mask.

    ``errors`` (n_candidates, n_folds), from the weakest candidate to the strongest.
    Folds differ far more than candidates, so they are compared fold by fold: clearly
    is a mean difference of more than two of its standard errors. Weaker candidates do
    not count, since what they gain on a few folds they may lose many times over where
    the record is left.
    """
    best = errors.mean(axis=1).argmin()
    difference = errors - errors[best]
    spread = difference.std(axis=1, ddof=1) / np.sqrt(errors.shape[1])
    close = difference.mean(axis=1) <= 2.0 * spread
    return close & (np.arange(len(errors)) >= best)
