"""One stage of a fit: cycles that square errors of one kind.

From random weights a free run through a whole record would mostly diverge. So a fit
begins with errors one step ahead, and continues with those of longer and longer free
runs; each stage starts from the network of the one before it.
"""

from ..records.initial_outputs import estimate_initial
from . import cycle

# Cycles of the stages before the last, which only have to provide its start.
FIRST_STAGE_CYCLES = 15
STAGE_CYCLES = 5


def run_stage(problem, number, start, rng):
    """Yield ``(state, info)`` of each cycle; FloatingPointError if it diverges.

    ``start`` holds network, prior, noise and likelihood.
    """
    stage, last = problem.stages[number], number == len(problem.stages) - 1
    settings, n_cycles = problem.settings, problem.max_cycles
    if not last:
        # a weight that one step ahead does not need may matter in free run
        settings = settings._replace(kappa_variance=0.0, kappa_weight=0.0)
        n_cycles = min(n_cycles, STAGE_CYCLES if number else FIRST_STAGE_CYCLES)
    state = cycle.init(settings, stage.data, *start)
    for k in range(1, n_cycles + 1):
        state = _with_initial(settings, state, stage.step_variance)
        state, info = cycle.step(settings, state, rng)
        if problem.verbose:
            report(k, stage.horizon, info)
        yield state, info
        if cycle.converged(state):
            return


def _with_initial(settings, state, step_variance):
    """Estimate the unknown initial outputs anew, if there are any."""
    data = state.data
    if step_variance is None or not (data.unknown >= 0).any():
        return state
    data = estimate_initial(state.network, data, state.noise, step_variance)
    return cycle.with_data(settings, state, data)


def report(number, horizon, info):
    """Print a line about a cycle, for ``verbose``."""
    ahead = "" if horizon == 1 else f"horizon {horizon:g}, "
    print(
        f"{ahead}cycle {number}: objective {info.objective:.6g}, {info.n_weights} "
        f"weights in {info.n_units} hidden units"
    )
