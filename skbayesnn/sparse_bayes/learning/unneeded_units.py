r"""Inputs and hidden units that are not needed leave a network, see `reduction`.

The ones without which the errors rise least are tried first. A network without one is
kept if neither the objective nor the evidence is worse by more than the price of a
unit. With a strength above 1, the objective alone would give up what the data support:
it weighs them less. With much noise both would, see `better_optima`: if the smaller
network explains little, the mean of the objective and of what observations are worth
that are left out may not be worse, either. (If it explains much and there are few rows,
this mean kept irrelevant inputs.) A trial ends
early where the objective is lower than with the unit, or would not come down as far at
the pace of its last cycle.

The price is that of one variance, :math:`\log n`. Without it, one fit in eight kept an
input by chance, and errors on new rows of simulated data were about the same.
"""

import numpy as np

from ..network import split_layers
from . import cycle
from .better_optima import has_evidence, mean_criterion, misses_much
from .reduction import TRIAL_CYCLES, price, reduce_network, trial_cycles

# Cycles of a trial behind which its pace is known.
_FIRST_CYCLES = 3


def remove_units(settings, stage, state, max_cycles, rng):
    """Yield ``(state, info)`` of the cycles of every network that needs fewer units.

    ``state`` is where a fit ended. Fits without a prior, reweighting or pruning keep
    all units, as do those whose evidence is from a diagonal curvature, which is too
    rough. The trials that fail before one that does not take about ``max_cycles``.
    """
    prunes = settings.kappa_variance > 0.0 or settings.kappa_weight > 0.0
    if not (prunes and has_evidence(settings)):
        return

    def trials(state):
        n_cycles = 0
        for drop in _by_rise(state):
            cycles = _trial(settings, state, drop, rng)
            n_cycles += len(cycles)
            yield cycles
            if n_cycles > max_cycles:
                return

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


def _limit(settings, state):
    """The objective up to which a network without a unit is kept."""
    return state.objective + price(settings, state.data, 1)


def _trial(settings, state, drop, rng):
    """The cycles of a network without some weights, as far as they may succeed."""
    limit = _limit(settings, state)

    def may_go_on(cycles):
        if len(cycles) < _FIRST_CYCLES:
            return True
        before, now = (found.objective for found, _ in cycles[-2:])
        n_left = TRIAL_CYCLES - len(cycles)
        can_come_down = now - n_left * max(before - now, 0.0) <= limit
        # what is better already need not end here: the last network does
        return can_come_down and now > state.objective

    smaller = cycle.without(settings, state, drop)
    smaller = smaller._replace(lowest_objective=np.inf, idle_cycles=0)
    return trial_cycles(settings, smaller, rng, may_go_on)


def _by_rise(state):
    """Indices of the parameters of each unit, those that add least to the errors first.

    The last unit of a layer stays.
    """
    network = state.network
    units = [(0, unit) for unit in range(network.sizes[0])]
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
