"""The stages of a fit: errors one step ahead, then free runs of growing length.

From random weights a free run through a whole record would mostly diverge. Each stage
starts from the network of the one before it.
"""

from typing import NamedTuple

import numpy as np

from ..records.free_runs import free_run_data, with_horizon, with_unknown_start
from ..records.initial_outputs import estimate_initial
from ..records.residuals import Data, FreeRunData
from . import cycle as sparse_bayes

# Cycles of the stages before the last, which only have to provide its start.
FIRST_STAGE_CYCLES = 15
STAGE_CYCLES = 5


class Stage(NamedTuple):
    """The errors that a part of a fit squares.

    horizon : number of rows of a free run, infinite for whole records
    step_variance : (n_outputs,) of the random walk of unknown initial outputs, if any
    """

    data: Data | FreeRunData
    horizon: float
    step_variance: np.ndarray | None = None


def free_run_stages(record, data, scaling, horizons, step_variance):
    """Stages for increasing ``horizons``, of which 1 stands for ``data``.

    With ``step_variance``, in scaled units, the outputs before each session are
    estimated, and every session is simulated from its first row.
    """
    U, Y, lags, starts = record
    make = free_run_data if step_variance is None else with_unknown_start
    free, can_start = make(U, Y, lags, starts, scaling, data.weights)
    if not len(free.origin):
        raise ValueError(
            f"y holds no {lags.max_lag} measured rows in turn from which a free run "
            "could start. Shorten output_lags, fill the gaps, or set "
            "initial_conditions='estimated'."
        )
    longest = int(np.max(np.arange(len(free.origin)) - free.origin)) + 1
    stages = []
    for horizon in horizons:
        if horizon == 1:
            stages.append(Stage(data, 1.0))
        elif horizon < longest or horizon == horizons[-1]:
            run = with_horizon(free, can_start, horizon)
            stages.append(Stage(run, float(horizon), step_variance))
    return tuple(stages)


def run_stage(problem, number, network, prior, noise, rng):
    """Yield ``(state, info)`` of each cycle; FloatingPointError if it diverges."""
    stage, last = problem.stages[number], number == len(problem.stages) - 1
    settings, n_cycles = problem.settings, problem.max_cycles
    if not last:
        # a weight that one step ahead does not need may matter in free run
        settings = settings._replace(kappa_variance=0.0, kappa_weight=0.0)
        n_cycles = min(n_cycles, STAGE_CYCLES if number else FIRST_STAGE_CYCLES)
    state = sparse_bayes.init(settings, stage.data, network, prior, noise)
    for cycle in range(n_cycles):
        state = _with_initial(settings, state, stage.step_variance)
        state, info = sparse_bayes.step(settings, state, rng)
        if problem.verbose:
            _report(cycle, stage.horizon, info)
        yield state, info
        if sparse_bayes.converged(state):
            return


def _with_initial(settings, state, step_variance):
    """Estimate the unknown initial outputs anew, if there are any."""
    data = state.data
    if step_variance is None or not (data.unknown >= 0).any():
        return state
    data = estimate_initial(state.network, data, state.noise, step_variance)
    return sparse_bayes.with_data(settings, state, data)


def _report(cycle, horizon, info):
    ahead = "" if horizon == 1 else f"horizon {horizon:g}, "
    print(
        f"{ahead}cycle {cycle + 1}: objective {info.objective:.6g}, {info.n_weights} "
        f"weights in {info.n_units} hidden units"
    )
