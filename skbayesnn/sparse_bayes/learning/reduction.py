"""Parts that a network does not need leave it behind a fit, one after the other.

Pruning waits until single weights or variances are small. Where many of them share what
one would do, none is: the objective would be lower without them, but a fit that lowers
it step by step stays where it is.
"""

import numpy as np
from scipy.linalg import LinAlgError

from . import cycle

# Cycles in which a smaller network has to become as good as it is asked to.
TRIAL_CYCLES = 25


def reduce_network(settings, state, max_cycles, rng, trials, is_enough):
    """Yield ``(state, info)`` of the cycles of every smaller network that is kept.

    Parameters
    ----------
    state : cycle.State
        Where a fit ended. Nothing is yielded if it did not end by itself.
    max_cycles : int
        Of the last network that is kept, behind its trial.
    trials : callable
        ``trials(state)`` yields lists of ``(state, info)``, the cycles of a network
        without one of the parts each; empty ones are left out.
    is_enough : callable
        ``is_enough(state, smaller)`` tells of the end of a trial whether the network is
        kept. The first one is.
    """
    if not cycle.converged(state):
        return
    is_smaller = False
    # bound: each turn removes a part
    while True:
        ended = (cycles for cycles in trials(state) if cycles)
        kept = next((c for c in ended if is_enough(state, c[-1][0])), None)
        if kept is None:
            break
        yield from kept
        state, is_smaller = kept[-1][0], True
    if is_smaller:
        yield from cycle.steps(settings, state, rng, max_cycles)


def price(settings, data, n_parameters):
    r"""By how much a part with so many parameters has to lower the objective.

    :math:`\log n` for each, that of the Bayesian information criterion: the objective
    is the best over them, and follows the noise a little.
    """
    strength = max(float(np.mean(settings.reg_lambda)), 1.0)
    return strength * n_parameters * np.log(data.n_observations)


def trial_cycles(settings, state, rng, may_go_on=None):
    """Cycles of a smaller network; none if they diverge.

    ``may_go_on(cycles)`` tells whether the trial is worth another one.
    """
    cycles = []
    try:
        for found in cycle.steps(settings, state, rng, TRIAL_CYCLES):
            cycles.append(found)
            if may_go_on and not may_go_on(cycles):
                break
    # the derivatives of a run that is nearly unstable have no precision
    except (FloatingPointError, LinAlgError):
        return []
    return cycles
