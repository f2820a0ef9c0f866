"""Estimates of a log partition function from the weights of annealed chains.

The mean weight of forward chains, that of reverse chains, and both combined by
Bennett's acceptance ratio: the value C at which

    sum_i 1 / (1 + exp(C - a_i)) = sum_i 1 / (1 + exp(b_i - C)),

with a_i the log weights of the forward chains and b_i minus those of as many reverse
chains. Of all combinations of both it varies least (Bennett, 1976; Shirts et al., 2003,
for chains out of equilibrium), and the errors of both directions cancel to a large
part.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_expit, logsumexp

# Directions that differ by more are never reliable, in nats, ...
MAX_DIFFERENCE = 1.0
# ... and by less are, however short their bars: no likelihood needs to be that precise.
MIN_DIFFERENCE = 0.1
# An interval that reaches so far to both sides, in nats, needs no more computation, ...
HALF_WIDTH = 0.5
# ... and one that is wider than this tells little of a likelihood.
MAX_WIDTH = 2.0


class LogPartition(NamedTuple):
    """Estimate of a log partition function, in nats."""

    log_partition: float
    interval: tuple
    log_weight_std: float
    effective_sample_size: float


class TwoWayLogPartition(NamedTuple):
    """Estimate of a log partition function from both directions, in nats."""

    log_partition: float
    interval: tuple
    log_weight_std: float
    effective_sample_size: float
    forward: LogPartition
    reverse: LogPartition
    n_betas: int
    rows: LogPartition | None = None
    """by the hidden states of rows of data"""


def with_known(result, known):
    """The estimate of a sum with a part that is known, as its logarithm in nats."""

    def add(value):
        return float(np.logaddexp(value, known))

    low, high = result.interval
    result = result._replace(
        log_partition=add(result.log_partition), interval=(add(low), add(high))
    )
    if isinstance(result, TwoWayLogPartition):
        parts = {"forward": result.forward, "reverse": result.reverse}
        if result.rows is not None:
            parts["rows"] = result.rows
        parts = {name: with_known(part, known) for name, part in parts.items()}
        result = result._replace(**parts)
    return result


def shifted(result, by):
    """The estimate of a partition function that is larger by a factor, in nats."""
    low, high = result.interval
    return result._replace(
        log_partition=result.log_partition + by, interval=(low + by, high + by)
    )


def with_rows(result, rows):
    """The estimate of annealing beside that of `row_weights`.

    The latter is the result where it is larger: by more than its error, or with a
    shorter interval. What an estimate does not meet is missing in it, and in its error
    as well: draws that are all far from a mode agree on a value that is too small.
    """
    low, high = result.interval
    result = result._replace(rows=rows)
    if rows.interval[0] > result.log_partition:
        interval = min(low, rows.interval[0]), max(high, rows.interval[1])
    elif rows.log_partition > result.log_partition and _width(rows) < _width(result):
        # what annealing leaves open above, rows do not rule out
        interval = rows.interval[0], max(high, rows.interval[1])
    else:
        return result
    return result._replace(log_partition=rows.log_partition, interval=interval)


def leaves_open(result, rows):
    """Whether annealing may have missed half a nat, by what rows do not rule out.

    Or rests on so few chains that it may err by a nat to either side: one with a mode
    of its own is above all that the first draws from the rows know.
    """
    may_be_above = rows.interval[1] > result.interval[0] + HALF_WIDTH
    return may_be_above or is_wide(result)


def better_rows(first, followed):
    """One of two estimates by rows, whose draws followed the model in the second."""
    if followed.interval[0] > first.log_partition or _width(followed) < _width(first):
        return followed
    return first


def rests_on_few(result):
    """Whether the forward run alone leaves more than half a nat to either side.

    The agreement of both directions hides it: `with_forward_error`.
    """
    return 0.5 * _width(result.forward) > HALF_WIDTH


def is_wide(result):
    """Whether likelihoods are uncertain by more than two nats."""
    return _width(result) > MAX_WIDTH


def is_contested(result, rows):
    """Whether annealing is above a more precise estimate by rows, but not clearly.

    It may have met a mode that has no rows, or err by chance: more temperatures tell.
    """
    above = result.log_partition - rows.log_partition
    clear = result.interval[0] > rows.interval[1]
    return above > MIN_DIFFERENCE and not clear and _width(rows) < _width(result)


def _width(result):
    return result.interval[1] - result.interval[0]


def misses_rows(result):
    """Whether rows say that both directions have missed more than a nat."""
    if result.rows is None:
        return False
    annealed = max(result.forward.log_partition, result.reverse.log_partition)
    return result.rows.interval[0] > annealed + MAX_DIFFERENCE


def summarise(log_weights, offset, sign):
    """Mean of the weights on the log scale, with three standard errors of it.

    The interval is symmetric on the log scale, so it reaches further up than that of
    the mean itself: the error of heavy-tailed weights is mostly downwards.
    """
    n = len(log_weights)
    log_mean = logsumexp(log_weights) - np.log(n)
    relative = np.exp(log_weights - log_mean)
    error = 3.0 * relative.std(ddof=1) / np.sqrt(n) if n > 1 else np.inf
    value = offset + sign * log_mean
    return LogPartition(
        log_partition=float(value),
        interval=(float(value - error), float(value + error)),
        log_weight_std=float(log_weights.std(ddof=1)) if n > 1 else np.nan,
        effective_sample_size=float(relative.sum() ** 2 / np.square(relative).sum()),
    )


def summarise_rounds(log_weights):
    """The same of draws in several rounds (n_rounds, n_draws), whose q differ.

    The interval covers the value of each round, too: a part that most rounds miss
    shows there first.
    """
    result = summarise(log_weights.ravel(), 0.0, 1.0)
    values = logsumexp(log_weights, axis=1) - np.log(log_weights.shape[1])
    low, high = result.interval
    ends = (float(min(low, values.min())), float(max(high, values.max())))
    return result._replace(interval=ends)


def combine(pair, offset):
    """Both directions, by the log weights of as many chains in each.

    The interval covers three standard errors of the combined value, and the values of
    both directions.
    """
    ahead = summarise(pair.forward, offset, 1.0)
    back = summarise(pair.reverse, offset, -1.0)
    ratio, error = acceptance_ratio(pair.forward, pair.reverse)
    value = offset + ratio
    ends = (value - 3.0 * error, value + 3.0 * error)
    ends = (*ends, ahead.log_partition, back.log_partition)
    return TwoWayLogPartition(
        log_partition=float(value),
        interval=(float(min(ends)), float(max(ends))),
        log_weight_std=max(ahead.log_weight_std, back.log_weight_std),
        effective_sample_size=min(
            ahead.effective_sample_size, back.effective_sample_size
        ),
        forward=ahead,
        reverse=back,
        n_betas=len(pair.betas),
    )


def with_forward_error(result):
    """The result whose interval covers that of the forward run.

    Reverse chains that start where forward chains have arrived are in the same modes,
    in the same proportions, and so agree with them on what they have met by chance: a
    mode that one forward chain has reached counts with the error of this one chain.
    """
    (low, high), (ahead_low, ahead_high) = result.interval, result.forward.interval
    return result._replace(interval=(min(low, ahead_low), max(high, ahead_high)))


def differ(result):
    """Whether the directions differ by more than a nat, or by more than their bars."""
    ahead, back = result.forward, result.reverse
    difference = abs(ahead.log_partition - back.log_partition)
    apart = ahead.interval[1] < back.interval[0] or back.interval[1] < ahead.interval[0]
    return difference > MAX_DIFFERENCE or (apart and difference > MIN_DIFFERENCE)


def acceptance_ratio(forward, reverse):
    """Bennett's combination of the log weights, and its standard error.

    The errors of both sums are added rather than their squares: the reverse chains
    start where the forward chains have arrived, so they are not independent.
    """

    def excess(ratio):
        return _log_mean(forward - ratio) - _log_mean(reverse + ratio)

    # falls from a positive to a negative value
    values = np.concatenate([forward, -reverse])
    ratio = brentq(excess, values.min() - 1.0, values.max() + 1.0, xtol=1e-9)
    return ratio, _relative_error(forward - ratio) + _relative_error(reverse + ratio)


def _log_mean(x):
    """Of 1 / (1 + exp(-x))."""
    return logsumexp(log_expit(x)) - np.log(len(x))


def _relative_error(x):
    """Standard error of the mean of 1 / (1 + exp(-x)), relative to it."""
    return acceptances(x).std(ddof=1) / np.sqrt(len(x))


def acceptances(x):
    """1 / (1 + exp(-x)), relative to its mean."""
    return np.exp(log_expit(x) - _log_mean(x))
