"""The round of networks of lags: strengths of their prior, and longer lags.

Networks that are behind on a few folds may be ahead elsewhere, and an ensemble of them
needs several settings: all of the grid are tried on the few folds.
"""

import numpy as np

from .candidates import Candidate
from .members import first_of
from .search_space import strengths_beyond

# Lags with which a linear model errs so many times more than with longer ones miss a
# part of the memory, such as a dead time, for a network as well.
TOO_SHORT = 1.5


def first_networks(linear, comparison, space):
    """Networks of all lags and strengths of the grids.

    Linear models with the same output tell the lags, and whether u(t) is used, and dead
    times. Where networks are fitted to both errors, those that are fitted to the second
    get the first strength alone.

    Parameters
    ----------
    linear : dict of str to list of Candidate
        See `linear_round`.
    comparison : Comparison
    space : SearchSpace
    """
    main, *others = space.fitted_to
    strengths = {main: space.strengths.values}
    strengths |= dict.fromkeys(others, space.strengths.values[:1])
    return [
        Candidate(
            space.network_model,
            fitted_to,
            lag,
            strength,
            any(c.current_input for c in models),
            output=output,
            dead_times=_dead_times_of(models),
        )
        for output, models in linear.items()
        for fitted_to in space.fitted_to
        for lag in _lags_of_networks(models, comparison, space)
        for strength in strengths[fitted_to]
    ]


def _lags_of_networks(linear, comparison, space):
    """Lags for networks: neither too slow, nor too short by the linear models."""
    longest = space.limits.longest_lag(_dead_times_of(linear))
    lags = [lag for lag in space.lags.values if lag <= longest] or [longest]
    if not space.lags.grows:
        return lags
    lags = [lag for lag in lags if space.limits.allow_network(lag)] or lags[:1]
    arx = {c.lag: comparison.error_on_all(c) for c in linear}
    least = min(arx.values(), default=np.inf)
    enough = [lag for lag in lags if not arx.get(lag, 0.0) > TOO_SHORT * least]
    if enough:
        return enough
    best = min(arx, key=arx.get)
    return [best] if space.limits.allow_network(best) else lags[-1:]


def _dead_times_of(linear):
    """Those that linear models have confirmed."""
    return linear[0].dead_times if linear else ()


def lag_networks_round(first, outputs, comparison, space):
    """Try networks on a few folds, and what continues their grids.

    Where the best candidate was fitted to the second kind of errors, the other
    strengths are tried for it, too. Where it is at the end of a grid, this is
    continued.

    Parameters
    ----------
    first : list of Candidate
        See `first_networks`.
    outputs : tuple of str
        Outputs whose best candidate is looked at.
    comparison : Comparison
    space : SearchSpace

    Returns
    -------
    tried : list of Candidate
    """
    tried = []

    def attempt(candidates):
        tried.extend(c for c in candidates if c not in tried)
        comparison.try_on(candidates, comparison.few_folds)
        return comparison.ranked(tried)

    ranked = attempt(first)
    # bound: all candidates differ, and both grids have ends
    while ranked:
        leaders = [first_of(ranked, output) for output in outputs]
        new = [c for best in leaders if best for c in _neighbours(best, tried, space)]
        if not new:
            break
        ranked = attempt(new)
    return tried


def _neighbours(best, tried, space):
    """Other strengths, and what continues the grids where the best is at their end."""
    alike = [c for c in tried if c.fitted_to == best.fitted_to]
    alike = [c for c in alike if c.output == best.output]
    new = [best._replace(reg_lambda=s) for s in space.strengths.values]
    if space.strengths.grows:
        strengths = [c.reg_lambda for c in alike if c.lag == best.lag]
        strengths += space.strengths.values
        following = strengths_beyond(best.reg_lambda, strengths)
        new += [best._replace(reg_lambda=s) for s in following]
    if space.lags.grows and best.lag == max(c.lag for c in alike):
        longer = space.limits.longer_lag(best.lag, best.dead_times)
        if longer is not None and space.limits.allow_network(longer):
            new.append(best._replace(lag=longer))
    return [c for c in new if c not in tried]
