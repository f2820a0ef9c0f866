"""How networks that were fitted to the same record are ranked and weighted."""

import numpy as np
from scipy.optimize import nnls

from ..kernels.recursion import run_path
from ..records.lags import added_outputs, build_lag_matrix, complete_rows
from ..records.layout import free_run_data
from .problem import scaled_data

# What a diverged run stands for, in standard deviations of the outputs.
FAR_OFF = 1e6
# Smaller errors, in the same unit, are none, where those of several outputs are joined.
LEAST_ERROR = 1e-6


def held_out_rows(starts, fraction):
    """The last rows of every session, as a mask."""
    held_out = np.zeros(starts[-1], dtype=bool)
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        held_out[stop - int(np.ceil(fraction * (stop - start))) : stop] = True
    return held_out


def free_runs_through(record, scaling, Y):
    """Data of free runs through a record, scored against ``Y`` where that is not NaN.

    Each run starts from measured outputs, passes through those that are missing, and
    ends where an input is, or with the last row that is scored. One step ahead the
    restarts hardly differ; whether the errors add up when they are fed back tells good
    from bad.
    """
    U, measured, lags, starts = record
    weights = np.ones(Y.shape[1])
    data, _ = free_run_data(U, measured, lags, starts, scaling, weights, Y)
    return data


def free_runs_of(record, scaling, Y, pieces):
    """`FreeRunData` of slices of a record that have no gap in what the lags read."""
    lags, n_outputs = record.lags, Y.shape[1]
    U = np.concatenate([record.U[:0], *(record.U[rows] for rows in pieces)])
    known = np.concatenate([record.Y[:0], *(record.Y[rows] for rows in pieces)])
    target = [Y[rows][lags.max_lag :] for rows in pieces]
    target = np.concatenate([Y[:0], *target])
    starts = np.cumsum([0, *(rows.stop - rows.start for rows in pieces)])
    # values that no lag reads may be missing among the first rows
    U, known = np.nan_to_num(U), np.nan_to_num(known)
    data, _ = free_run_data(U, known, lags, starts, scaling, np.ones(n_outputs))
    return data._replace(Y=(target - scaling.y_offset) / scaling.y_scale)


def gap_free_stretches(record):
    """First and last row of every stretch whose windows are all complete."""
    rows = complete_rows(record.U, record.Y, record.lags, record.starts)
    first = rows[np.flatnonzero(np.diff(rows, prepend=-2) > 1)]
    last = rows[np.flatnonzero(np.diff(rows, append=rows[-1] + 2) > 1)]
    return zip(first - record.lags.max_lag, last + 1, strict=True)


def steps_through(record, scaling, Y):
    """Data of single steps through a record, against the complete rows of ``Y``."""
    U, measured, lags, starts = record
    rows = complete_rows(U, measured, lags, starts)
    rows = rows[np.isfinite(Y[rows]).all(axis=1)]
    Z = build_lag_matrix(U, measured, lags, rows)
    target = Y[rows] - added_outputs(measured, lags, rows)
    return scaled_data(Z, target, scaling, np.ones(Y.shape[1]))


def mean_squared_errors(network, data):
    """Of every scaled output; infinite after a divergence.

    NaN where nothing is scored, infinite where this is so of all outputs.
    """
    if not data.n_observations:
        return np.full(len(data.counts), np.inf)
    data = data.select_inputs(network.units[0])
    return mean_squares(data.squared_errors(network), data.counts)


def mean_squares(sums, counts):
    """Sums of squares (n_outputs,) over their numbers, NaN where this is 0."""
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def joint_error(mean_squares, variance=1.0):
    """One number for the errors of all outputs, in their standard deviations.

    The geometric mean of the root mean squares of those that are scored: a tenth less
    counts the same for a clean output as for a noisy one, which alone would tell in the
    arithmetic mean. For Gaussian errors whose variances are not known it is the order
    of the likelihood. Outputs without a ``variance`` do not count.
    """
    variance = np.broadcast_to(variance, mean_squares.shape)
    counts = ~np.isnan(mean_squares) & (variance > 0.0)
    if not counts.any():
        return np.nan
    relative = mean_squares[counts] / variance[counts]
    if len(relative) == 1:
        return float(np.sqrt(relative[0]))
    return float(np.exp(0.5 * np.log(np.maximum(relative, LEAST_ERROR**2)).mean()))


def ensemble_weights(networks, weighting, strength, record, held_out_fraction):
    """Weights of learned networks, which sum to one.

    They are equal; by evidence, at the temperature ``strength`` of the fit; or those
    that fit the ends of the sessions best.
    """
    if weighting == "validation" and len(networks) > 1:
        held_out = held_out_rows(record.starts, held_out_fraction)
        scaling = networks[0].fitted.scaling
        return stacking_weights(
            [one.fitted.network for one in networks], scaling, record, held_out
        )
    if weighting == "evidence":
        objective = np.array([one.objective for one in networks])
        return evidence_weights(objective, max(1.0, strength))
    return np.full(len(networks), 1.0 / len(networks))


def evidence_weights(objective, strength):
    """Posterior probabilities of the networks at the temperature of their fit."""
    relative = np.exp(-0.5 * (objective - objective.min()) / strength)
    return relative / relative.sum()


def stacking_weights(networks, scaling, record, held_out):
    """Nonnegative weights whose mixture fits the held-out free run best.

    They are equal where no run reaches a held-out row.
    """
    pieces = [slice(start, stop) for start, stop in gap_free_stretches(record)]
    data = free_runs_of(record, scaling, record.Y, pieces)
    runs = np.array([_path(network, data) for network in networks])
    before = record.lags.max_lag
    scored = np.concatenate([held_out[rows][before:] for rows in pieces])
    scored &= np.isfinite(runs).any(axis=(0, 2))
    paths, target = runs[:, scored].reshape(len(networks), -1), data.Y[scored].ravel()
    matrix = np.where(np.isfinite(paths), paths, FAR_OFF).T
    # a heavy row asks the weights to sum to one
    heavy = 1e3 * np.sqrt(len(target))
    matrix = np.vstack([matrix, np.full(len(networks), heavy)])
    weights, _ = nnls(matrix, np.append(target, heavy))
    total = weights.sum()
    n_networks = len(networks)
    return weights / total if total > 0.0 else np.full(n_networks, 1 / n_networks)


def _path(network, data):
    """Scaled outputs of free runs, NaN from the row on in which one diverges."""
    data = data.select_inputs(network.units[0])
    path = data.initial.copy()
    run_path(network.layers, data.run, path)
    return path


def stretches(starts, n_stretches):
    """The number of the contiguous stretch of its session that each row is in.

    ``n_stretches`` is one number for all sessions, or one for each.
    """
    lengths = np.diff(starts)
    counts = np.broadcast_to(n_stretches, lengths.shape)
    number = [np.arange(n) * k // n for n, k in zip(lengths, counts, strict=True)]
    return np.concatenate(number)
