"""A fit that follows its noise begins anew with a stronger prior.

Where parameters are hardly fewer than observations, one optimum of the evidence is a
network that passes through all of them: the noise variance goes to zero, and no weight
can leave any more. With a stronger prior there is no such optimum. From what it leaves,
the fit goes on as asked; the better of both is the result.
"""

import numpy as np

from . import cycle
from . import prior as priors

# Parameters that the data determine, as a fraction of the observations, from which on a
# fit may follow its noise; and the multiple of the strength with which it begins anew.
_MOST_DETERMINED, _STRONGER = 0.5, 3.0


def begin_anew(settings, stage, state, max_cycles, rng):
    """Yield ``(state, info)`` of the last cycles to a better optimum, if there is one.

    ``state`` is where a fit ended. Nothing is yielded if it did not end by itself.
    """
    if not (cycle.converged(state) and _follows_noise(settings, state)):
        return
    variances = (np.full_like(v, priors.MAX_VARIANCE) for v in state.prior.variances)
    prior = state.prior._replace(variances=tuple(variances))
    start = state.network, prior
    for strength in (_STRONGER, 1.0):
        asked = settings._replace(reg_lambda=strength * settings.reg_lambda)
        begun = cycle.init(asked, stage.data, *start)
        cycles = list(cycle.steps(asked, begun, rng, max_cycles))
        now, _ = cycles[-1]
        start = now.network, now.prior, now.noise, now.likelihood
    # the objectives of the stronger prior are none of this fit
    if now.objective < state.objective:
        yield from cycles


def _follows_noise(settings, state):
    determined = float(cycle.assess(settings, state).gamma.sum())
    return determined > _MOST_DETERMINED * state.data.n_observations
