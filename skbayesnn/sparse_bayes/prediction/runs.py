"""Runs of one network through a record: several steps ahead, and free runs.

A prediction several steps ahead is the end of a short run of its own. Such runs are
laid out below each other, in batches that bound the memory, and share the kernels of
whole free runs.
"""

from typing import NamedTuple

import numpy as np

from ..kernels.recursion import (
    draw_fed_back_errors,
    fed_back_errors,
    fed_back_noise,
    run_path,
    sensitivity_blocks,
)
from ..records.layout import lay_out
from . import posterior

# Memory of the derivatives of one block of rows.
BLOCK_BYTES = 4 * 2**20


class Runs(NamedTuple):
    """Rows of a record, run after run.

    rows : (n,) int64, rows of the record
    origin : (n,) int64, place of the first row of each row's run
    ends : (n,) bool, places whose outputs are predictions
    """

    rows: np.ndarray
    origin: np.ndarray
    ends: np.ndarray


class Path(NamedTuple):
    """Simulated outputs (n, n_outputs) in scaled units.

    variance : (n, n_outputs) of new observations, None unless asked for
    diverged : (n,) bool; a NaN elsewhere is a missing value
    of_noise : (n, n_outputs), the part of the variance that is that of noise
    """

    outputs: np.ndarray
    variance: np.ndarray | None
    diverged: np.ndarray
    of_noise: np.ndarray | None = None


def free_runs(starts, n_known):
    """One run per session, behind its first ``n_known`` rows."""
    first = np.minimum(starts[:-1] + n_known, starts[1:])
    lengths = starts[1:] - first
    return _concatenate(first, lengths, lengths)


def runs_ahead(starts, max_lag, horizon, max_rows):
    """Yield `Runs` of at most ``max_rows`` rows each, but at least one run.

    Row t is the end of a run from the row ``t - horizon + 1`` on. The rows near the
    start of a session follow from its first complete window: they share one run.
    """
    first, lengths, n_ends = [], [], []
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        begin = start + max_lag
        if begin >= stop:
            continue
        later = np.arange(begin + 1, stop - horizon + 1)
        length = min(horizon, stop - begin)
        first.append(np.append(begin, later))
        lengths.append(np.full(len(later) + 1, length))
        n_ends.append(np.append(length, np.ones(len(later), dtype=np.int64)))
    if not first:
        return
    first, lengths, n_ends = map(np.concatenate, (first, lengths, n_ends))
    batch = (np.cumsum(lengths) - lengths) // max_rows
    edges = np.flatnonzero(np.diff(batch, prepend=-1, append=batch[-1] + 1))
    for start, stop in zip(edges[:-1], edges[1:], strict=True):
        part = slice(start, stop)
        yield _concatenate(first[part], lengths[part], n_ends[part])


def _concatenate(first, lengths, n_ends):
    """Runs by their first rows, lengths, and numbers of predictions at their ends."""
    start = np.cumsum(lengths) - lengths
    origin = np.repeat(start, lengths).astype(np.int64)
    place = np.arange(len(origin)) - origin
    ends = place >= np.repeat(lengths - n_ends, lengths)
    return Runs(np.repeat(first, lengths) + place, origin, ends)


def laid_out(network, record, runs):
    """The runs of a `LaggedNetwork` in the layout of the kernels."""
    fitted, lags = network
    used = fitted.network.units[0]
    return lay_out(record, lags, fitted.scaling, used, runs.rows, runs.origin)


def simulate(fitted, run):
    """The path without variances."""
    outputs = np.empty((len(run.X), len(fitted.noise_std)))
    diverged = run_path(fitted.network.layers, run, outputs)
    return Path(outputs, None, diverged)


def linearize(fitted, run):
    """Fill the path block after block of rows.

    Yields (rows, outputs, S, gains, diverged), with the derivatives S (n, n_outputs,
    n_kept) of the outputs by the kept weights.
    """
    kept = np.flatnonzero(fitted.network.keep)
    shape = len(run.X), len(fitted.noise_std)
    outputs, unknown = np.empty(shape), np.full(shape, -1)
    block = BLOCK_BYTES // (8 * max(1, len(kept)) * shape[1])
    for rows, S, gains, diverged in sensitivity_blocks(
        fitted.network.layers, run, kept, unknown, outputs, block
    ):
        S = S.reshape(rows.stop - rows.start, shape[1], len(kept))
        yield rows, outputs[rows], S, gains, diverged


def simulate_variance(fitted, run, from_measured):
    r"""The path and its variance, linearised around it.

    The variance is :math:`s_t^T C s_t + E[e_t^2]`: that of the weights, and of the
    noise of each step that is fed back. Where the errors of a free run are known, the
    second term has a `_ceiling`, and in a free run (not ``from_measured``) it is that
    from the first row on.
    """
    shape = len(run.X), len(fitted.noise_std)
    outputs, variance = np.empty(shape), np.empty(shape)
    gains = np.zeros((*shape, len(run.feedback.terms.lag)))
    diverged = np.zeros(len(run.X), dtype=bool)
    # the derivatives of an unstable run may exceed all numbers where it does not
    with np.errstate(all="ignore"):
        for rows, part, S, gains[rows], diverged[rows] in linearize(fitted, run):
            outputs[rows] = part
            flat = S.reshape(part.size, S.shape[2])
            by_weights = np.einsum(
                "ij,ji->i", flat, posterior.apply_covariance(fitted.covariance, flat.T)
            )
            variance[rows] = by_weights.reshape(part.shape)
        of_noise = _noise(fitted, run, gains, from_measured)
        variance += of_noise
    missing = np.isnan(outputs)
    variance[missing] = of_noise[missing] = np.nan
    return Path(outputs, variance, diverged, of_noise)


def _noise(fitted, run, gains, from_measured):
    """Variance (n_rows, n_outputs) that noise adds to each row."""
    ceiling = _ceiling(fitted, run, gains)
    if fitted.free_run_std is not None and not from_measured:
        return ceiling
    fed_back = fed_back_noise(run, gains, fitted.noise_std)
    # a variance beyond all numbers, a NaN, meets the ceiling
    return np.where(fed_back < ceiling, fed_back, ceiling)


def _ceiling(fitted, run, gains):
    """The largest variance of noise in a run: that of the errors of free runs.

    Where errors one step ahead are larger than those, the outputs that were measured
    before a run err themselves. Then as much is added as these errors make of what one
    step has more.
    """
    known = fitted.free_run_std is not None
    ceiling = np.full(gains.shape[:2], fitted.free_run_std**2 if known else np.inf)
    if not _excess(fitted).any():
        return ceiling
    variance, _ = _of_start(fitted, run, gains)
    # where it has no course of its own, as if it were new in each row
    lasts = np.isfinite(variance)
    return ceiling + np.where(lasts, variance, _excess(fitted))


def _excess(fitted):
    """What the variances of errors one step ahead have more than those of free runs."""
    if fitted.free_run_std is None:
        return np.zeros(1)
    return np.maximum(fitted.noise_std**2 - fitted.free_run_std**2, 0.0)


def _of_start(fitted, run, gains):
    """Variance (n_rows, n_outputs) that errors of the outputs before a run add to it.

    In its first row it is the `_excess`; NaN or infinite where it has no course. And
    the factor by which errors of free runs, fed back, have this variance.
    """
    by_errors = fed_back_errors(run, gains, fitted.free_run_std)
    of_first = by_errors[run.origin]
    of_first = np.where(of_first > 0.0, of_first, np.nan)
    excess = _excess(fitted)
    return excess * (by_errors / of_first), excess / of_first


def draw_noise(fitted, run, from_measured, n_draws, rng):
    """Draws (n_draws, n_rows, n_outputs) of the noise of a path, as in `Path.of_noise`.

    What errors of the outputs before a free run add, such as one of the level of a
    model of differences, stays in a path from row to row.
    """
    shape = n_draws, len(run.X), len(fitted.noise_std)
    gains = np.zeros((*shape[1:], len(run.feedback.terms.lag)))
    with np.errstate(all="ignore"):
        for part in linearize(fitted, run):
            rows, _, _, gains[rows], _ = part
        if from_measured or not _excess(fitted).any():
            white, lasting = _noise(fitted, run, gains, from_measured), 0.0
        else:
            lasting = _draw_of_start(fitted, run, gains, n_draws, rng)
            lost = ~np.isfinite(lasting).all(axis=0)
            white = fitted.free_run_std**2 + lost * _excess(fitted)
            lasting[:, lost] = 0.0
    return lasting + posterior.unit_noise(fitted, shape, rng) * np.sqrt(white)


def _draw_of_start(fitted, run, gains, n_draws, rng):
    """Draws with the variance `_of_start`, not finite where it is not."""
    variance, factor = _of_start(fitted, run, gains)
    paths = draw_fed_back_errors(run, gains, fitted.free_run_std, n_draws, rng)
    return np.where(np.isfinite(variance), np.sqrt(factor) * paths, np.nan)
