"""The round of linear ARX models: lags, u(t), dead times, levels or differences.

They are fitted by least squares, which is cheap, on all folds. What is best for them
tells what is worth a network.
"""

import numpy as np

from .candidates import Candidate
from .members import EQUAL

# The grid of "auto". Linear models are cheap, and are tried with far longer lags than
# networks.
LINEAR_LAGS = (1, 2, 3, 5, 7, 10, 14, 20, 30)
# Linear models of differences have so many times the error of those of levels where
# differences are wrong. Where they are right, they may have more than twice as much:
# roots beside that of the integrator make up for what is not linear.
FAR_BEHIND = 3.0


def linear_round(comparison, space):
    """Try linear models, of levels and of differences where `space` has both.

    Of differences, one model is tried on a few folds, with the best lags of levels. The
    others follow if it is not far behind.

    Parameters
    ----------
    comparison : Comparison
    space : SearchSpace

    Returns
    -------
    linear : dict of str to list of Candidate
        By output. An output that is far behind is missing.
    """
    first, *others = space.outputs
    linear = {first: _models_of(first, comparison, space)}
    for output in others:
        best = min(linear[first], key=comparison.error_on_all)
        rival = best._replace(output=output)
        comparison.try_on([rival], comparison.few_folds)
        if comparison.error(rival) <= FAR_BEHIND * comparison.error(best):
            linear[output] = _models_of(output, comparison, space)
        else:
            comparison.remove([rival])
    return linear


def _models_of(output, comparison, space):
    """Linear models of levels or of differences that stay in the comparison."""
    if space.current_input == "auto":
        models = _with_or_without_current_input(output, comparison, space)
    else:
        models = _of_all_lags(output, space.current_input, comparison, space)
    if models and space.dead_times:
        models = _behind_dead_times_or_not(models, comparison, space)
    return models


def _with_or_without_current_input(output, comparison, space):
    """Linear models of all lags, all with u(t) or all without.

    It is left out where linear models are better without it: an output that was sampled
    with its input seldom depends on it at once.
    """
    both = {use: _of_all_lags(output, use, comparison, space) for use in (False, True)}
    without, with_it = (
        min(map(comparison.error_on_all, models), default=np.inf)
        for models in both.values()
    )
    use = EQUAL * without > with_it
    comparison.remove(both[not use])
    return both[use]


def _behind_dead_times_or_not(models, comparison, space):
    """Linear models, or those behind dead times if these are better.

    They are compared with lags that networks can have: many lags of a linear model may
    reach as far as few behind a dead time. If the models without a dead time are better
    with more lags than that, both stay in the comparison.
    """
    use, output = models[0].current_input, models[0].output
    behind = _of_all_lags(output, use, comparison, space, space.dead_times)

    def least(models, longest=np.inf):
        errors = [comparison.error_on_all(c) for c in models if c.lag <= longest]
        return min(errors, default=np.inf)

    longest = max(filter(space.limits.allow_network, space.lags.values), default=0)
    if not least(behind, longest) < least(models, longest):
        comparison.remove(behind)
        return models
    if least(behind) <= EQUAL * least(models):
        comparison.remove(models)
    return behind


def _of_all_lags(output, current_input, comparison, space, dead_times=()):
    """Linear models of all lags of the grid, which may grow."""

    def arx(lag):
        arguments = "linear", "prediction", lag, 0.0, current_input
        return Candidate(*arguments, output=output, dead_times=dead_times)

    limits, all_folds = space.limits, comparison.all_folds
    grid = LINEAR_LAGS if space.lags.grows else space.lags.values
    lags = [lag for lag in grid if lag <= limits.longest_lag(dead_times)]
    lags = [lag for lag in lags if limits.allow_linear(lag)] or lags[:1]
    comparison.try_on(map(arx, lags), all_folds)
    best = comparison.table.ranked(map(arx, lags), all_folds)
    # bound: lags grow up to the longest
    while space.lags.grows and best and best[0].lag == max(lags):
        longer = limits.longer_lag(max(lags), dead_times)
        if longer is None or not limits.allow_linear(longer):
            break
        lags.append(longer)
        comparison.try_on([arx(longer)], all_folds)
        best = comparison.table.ranked(map(arx, lags), all_folds)
    return list(map(arx, lags))
