"""Errors of every output, and one number for the errors of all of them."""

import numpy as np

# In standard deviations of an output: where several outputs are joined, smaller errors
# count as this, because one error of 0 would make the geometric mean 0.
LEAST_ERROR = 1e-6


def mean_squared_errors(network, data):
    """Mean squared errors (n_outputs,) of a network, in the units of scaled outputs.

    Infinite after a divergence. NaN for outputs that are not scored; infinite for all
    of them where no output is scored.
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

    The geometric mean of the root mean squares of the outputs that are scored. In it,
    an error that is smaller by a tenth counts the same for a clean output as for a
    noisy one; in an arithmetic mean the noisy output alone would decide. For Gaussian
    errors of unknown variances it orders models as their likelihoods do. Outputs whose
    ``variance`` is 0 do not count. NaN if no output counts.
    """
    variance = np.broadcast_to(variance, mean_squares.shape)
    counts = ~np.isnan(mean_squares) & (variance > 0.0)
    if not counts.any():
        return np.nan
    relative = mean_squares[counts] / variance[counts]
    if len(relative) == 1:
        return float(np.sqrt(relative[0]))
    return float(np.exp(0.5 * np.log(np.maximum(relative, LEAST_ERROR**2)).mean()))
