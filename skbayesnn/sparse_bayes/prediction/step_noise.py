r"""Noise of both equations of a state-space network, which its fit does not tell apart.

The fit squares the errors of a free run, and its noise variance :math:`\sigma^2` is
that of these errors. How much of it is noise of the measurement, and how much comes
from noise that enters the states and stays there for a while, is seen in the errors one
step ahead of a filter: they are white and small only if it trusts the measured outputs
as much as they deserve. So with

.. math:: Q = c \rho \, \bar\sigma^2 \Sigma, \qquad R = c \, \mathrm{diag}(\sigma^2)

and the covariance :math:`\Sigma` of the states in the training record, the numbers
:math:`\rho` and c maximise the likelihood of the training record as the filter
factorises it, one innovation e with variance s after the other:

.. math:: -2 \log p = \sum \log (c s) + e^2 / (c s)

(with Student's t in its place where the fit has it). The best c for a given
:math:`\rho` has a closed form, so this is a search over one number. One number, because
the record of one system says little of the direction of the noise; and :math:`\Sigma`,
because it makes Q the same noise in any basis of the states, which is arbitrary: each
direction is disturbed in proportion to how far it moves. :math:`\rho = 0` is allowed:
then the filter is a free run, as where all noise is that of the measurement.

What that makes of the errors one step ahead is right, as it was learned from them. In a
free run, noise in a direction that is guessed may add more or less than the errors of
free runs are. `learn_spread` tells how much it adds in both.
"""

import numpy as np

from ..kernels.state_filter import FilterNoise, Plan, run_filter

# Ratios that are tried, by powers of ten, and the steps of the search between the best
# of them and its neighbours.
POWERS = np.arange(-5.0, 6.0)
GOLDEN_STEPS = 8
# More rows say no more of two numbers.
MOST_ROWS = 5_000
# Errors that are smaller, beside those of a free run, are rounding.
LEAST_SCALE = np.finfo(np.float64).eps ** 2
# Steps of the scale of Student's t, which has no closed form.
SCALE_STEPS = 20


def learn_noise(fitted, run, Y, covariance):
    """`FilterNoise` of a fitted network from its training record.

    Parameters
    ----------
    run : StateRun
        The record, with a row before each session that tells its state.
    Y : (n_rows, n_outputs) scaled outputs, NaN where missing
    covariance : (n_states, n_states) of the states there
    """
    run, Y = _first_rows(run, Y)
    variance = fitted.noise_std**2

    def noise_of(ratio, scale):
        process = scale * ratio * float(variance.mean()) * covariance
        return FilterNoise(process, scale * variance, fitted.degrees_of_freedom)

    def cost_and_scale(ratio):
        noise = noise_of(ratio, 1.0)
        return _cost(_innovations(fitted, run, Y, noise), fitted.degrees_of_freedom)

    found = [(*cost_and_scale(ratio), ratio) for ratio in (0.0, *10.0**POWERS)]
    best = min(found)
    if best[2] > 0.0:
        found.append(_between(cost_and_scale, np.log10(best[2])))
    _, scale, ratio = min(found)
    return noise_of(ratio, scale)


def learn_spread(fitted, run, Y, noise):
    """Variances (2, n_outputs) that the noise of the states gives to the outputs.

    One step ahead of measured ones, and in a free run; means over the training record.
    Arguments as of `learn_noise`, and the `FilterNoise` that it returned.
    """
    run, Y = _first_rows(run, Y)
    spread = np.zeros((2, len(noise.measurement)))
    for mean, outputs in zip(spread, (Y, np.full_like(Y, np.nan)), strict=True):
        variance = _filter(fitted, run, outputs, noise).variance
        known = np.isfinite(variance).all(axis=1)
        if known.any():
            mean[:] = variance[known].mean(axis=0)
    return spread


def _first_rows(run, Y):
    """As many rows of a record as are looked at."""
    part = slice(MOST_ROWS)
    X, begin, initial = run.X[part], run.begin[part], run.initial[part]
    return run._replace(X=X, begin=begin, initial=initial), Y[part]


def _between(cost_and_scale, power):
    """Golden section of a decade to both sides: cost, scale and ratio."""
    golden = 0.5 * (np.sqrt(5.0) - 1.0)
    low, high = power - 1.0, power + 1.0
    inner = {}
    for _ in range(GOLDEN_STEPS):
        left, right = high - golden * (high - low), low + golden * (high - low)
        for one in (left, right):
            if one not in inner:
                inner[one] = (*cost_and_scale(10.0**one), 10.0**one)
        if inner[left] <= inner[right]:
            high = right
        else:
            low = left
    return min(inner.values())


def _innovations(fitted, run, Y, noise):
    """Errors one step ahead and their variances, of the measured outputs."""
    filtered, measured = _filter(fitted, run, Y, noise), np.isfinite(Y)
    return filtered.innovation[measured], filtered.innovation_variance[measured]


def _filter(fitted, run, Y, noise):
    """`Filtered` training record, with a prediction of each row."""
    n_rows, n_states = run.initial.shape
    every = np.arange(n_rows)
    plan = Plan(Y, np.ones(n_rows, dtype=bool), every, every)
    # the state of the row before each session is 0
    certain = np.zeros((int(run.begin.sum()), n_states, n_states))
    return run_filter(fitted.network.layers, run, certain, noise, plan)


def _cost(innovations, nu):
    """-2 log p up to a constant, and the scale c that makes it smallest."""
    error, variance = innovations
    if not (np.isfinite(error).all() and (variance > 0.0).all()):
        return np.inf, 1.0
    squared = error**2 / variance
    scale = max(float(squared.mean()), LEAST_SCALE)
    if nu == np.inf:
        return float(np.sum(np.log(scale * variance) + squared / scale)), scale
    for _ in range(SCALE_STEPS):
        weights = (nu + 1.0) / (nu - 2.0 + squared / scale)
        scale = max(float(np.mean(weights * squared)), LEAST_SCALE)
    tails = (nu + 1.0) * np.log1p(squared / ((nu - 2.0) * scale))
    return float(np.sum(np.log(scale * variance) + tails)), scale
