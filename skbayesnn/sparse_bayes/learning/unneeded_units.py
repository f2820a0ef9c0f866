r"""Inputs and hidden units that are not needed leave a network, see `reduction`.

The ones without which the errors rise least are tried first. A trial ends early where
the objective is lower than with the unit, or would not come down as far at the pace of
its last cycle.

Where errors of single steps are fitted (`remove_units`), a network without a unit is
kept if neither the objective nor the evidence is worse by more than the price of a
unit. With a strength above 1, the objective alone would give up what the data support:
it weighs them less. With much noise both would, see `better_optima`: if the smaller
network explains little, the mean of the objective and of what observations are worth
that are left out may not be worse, either. (If it explains much and there are few rows,
this mean kept irrelevant inputs.) The price is that of one variance, :math:`\log n`.
Without it, one fit in eight kept an input by chance, and errors on new rows of
simulated data were about the same.

Errors of free runs (`remove_hidden_units`) are alike from row to row, and the evidence
takes them for as many independent ones: networks of hidden states kept 7 of 8 units
where one or two are enough, and went astray where a test left the range of the record.
So many of them tell as much as :math:`\nu` independent ones (`independent_errors`), and
:math:`n / \nu` is the strength that they justify. A network without a unit is kept if
the objective is not higher, at the strength that was asked for and at this one. At the
first alone, networks whose errors are white lost units that they needed: of an
oscillator with white noise, one seed erred by 15 % more.
"""

import numpy as np

from ..network import split_layers
from . import cycle
from .better_optima import has_evidence, mean_criterion, misses_much
from .independent_errors import independent_errors
from .reduction import TRIAL_CYCLES, price, reduce_network, trial_cycles

# Cycles of a trial behind which its pace is known.
_FIRST_CYCLES = 3
# Units of networks that run freely that are tried in turn; their cycles take longer.
_FEW_TRIALS = 3


def remove_units(settings, stage, state, max_cycles, rng):
    """Yield ``(state, info)`` of the cycles of every network that needs fewer units.

    ``state`` is where a fit to single steps ended. Fits without a prior, reweighting or
    pruning keep all units, as do those whose evidence is from a diagonal curvature,
    which is too rough. The trials that fail before one that does not take about
    ``max_cycles``.
    """
    if not _may_lose_units(settings):
        return

    def trials(state):
        limit, drops = _limit(settings, state), _by_rise(state)
        return _trials(settings, state, drops, limit, max_cycles, rng)

    def is_enough(state, smaller):
        if smaller.objective > _limit(settings, state):
            return False
        before, after = (
            cycle.log_marginal_likelihood(settings, one) for one in (state, smaller)
        )
        if after < before - 0.5 * np.log(state.data.n_observations):
            return False
        if not misses_much(smaller):
            return True
        before, after = (mean_criterion(settings, one) for one in (state, smaller))
        return after <= before + price(settings, state.data, 1)

    yield from reduce_network(settings, state, max_cycles, rng, trials, is_enough)


def remove_hidden_units(settings, stage, state, max_cycles, rng):
    """The same for the hidden units of networks that were fitted to free runs."""
    if not _may_lose_units(settings):
        return

    def trials(state):
        drops = _by_rise(state, with_inputs=False)[:_FEW_TRIALS]
        return _trials(settings, state, drops, state.objective, max_cycles, rng)

    def is_enough(state, smaller):
        if smaller.objective > state.objective:
            return False
        strengths = np.minimum(settings.reg_lambda, justified_strength(state))
        justified = settings._replace(reg_lambda=strengths)
        before, after = (cycle.objective(justified, one) for one in (state, smaller))
        return after <= before

    yield from reduce_network(settings, state, max_cycles, rng, trials, is_enough)


def justified_strength(state):
    """How many observations tell as much as one that is independent of the others."""
    residuals = state.data.residuals(state.network)
    found = [independent_errors([of_output]) for of_output in residuals.T]
    if None in found:
        return 1.0
    return state.data.n_observations / sum(of_variance for of_variance, _ in found)


def _may_lose_units(settings):
    prunes = settings.kappa_variance > 0.0 or settings.kappa_weight > 0.0
    return prunes and has_evidence(settings)


def _limit(settings, state):
    """The objective up to which a network without a unit is kept, of single steps."""
    return state.objective + price(settings, state.data, 1)


def _trials(settings, state, drops, limit, max_cycles, rng):
    """Yield the cycles without some weights each, until they are ``max_cycles``."""
    n_cycles = 0
    for drop in drops:
        cycles = _trial(settings, state, drop, limit, rng)
        n_cycles += len(cycles)
        yield cycles
        if n_cycles > max_cycles:
            return


def _trial(settings, state, drop, limit, rng):
    """The cycles of a network without some weights, as far as they may succeed."""

    def may_go_on(cycles):
        if len(cycles) < _FIRST_CYCLES:
            return True
        before, now = (found.objective for found, _ in cycles[-2:])
        n_left = TRIAL_CYCLES - len(cycles)
        can_come_down = now - n_left * max(before - now, 0.0) <= limit
        # what is better already need not end here: the last network does
        return can_come_down and now > state.objective

    try:
        smaller = cycle.without(settings, state, drop)
    except FloatingPointError:
        # its run diverges
        return []
    smaller = smaller._replace(lowest_objective=np.inf, idle_cycles=0)
    return trial_cycles(settings, smaller, rng, may_go_on)


def _by_rise(state, with_inputs=True):
    """Indices of the parameters of each unit, those that add least to the errors first.

    Inputs are layer 0. The last unit of a layer stays.
    """
    network = state.network
    units = [(0, unit) for unit in range(network.sizes[0] if with_inputs else 0)]
    for layer, size in enumerate(network.sizes[1:-1], start=1):
        units += [(layer, unit) for unit in range(size) if size > 1]
    drops = [np.flatnonzero(_of_unit(network, *unit)) for unit in units]
    drops = [drop for drop in drops if len(drop)]
    rises = [cycle.rise(state, drop) for drop in drops]
    return [drops[k] for k in np.argsort(rises, kind="stable")]


def _of_unit(network, layer, unit):
    """The kept parameters of a unit, as a mask; an input, in layer 0, has no bias."""
    mask = np.zeros(len(network.theta), dtype=bool)
    parts = split_layers(mask, network.sizes, network.skip)
    leaves = [parts[layer]]
    if layer:
        weights, biases = parts[layer - 1]
        weights[:, unit] = True
        if len(biases):
            biases[unit] = True
    elif network.skip:
        leaves.append(parts[-1])
    for weights, _ in leaves:
        weights[unit] = True
    return mask & network.keep
