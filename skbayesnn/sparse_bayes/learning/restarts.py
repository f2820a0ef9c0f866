"""Fits from several random starts: what each needs, does and leaves."""

from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from ..._sklearn import one_blas_thread
from ..network import Network, bias_mask, init_network, prune, split_layers
from ..records.initial_outputs import estimate_initial
from . import cycle as sparse_bayes
from . import prior as evidence

# Cycles of the horizons before the last: a start for the next is all they owe.
FIRST_STAGE_CYCLES = 15
STAGE_CYCLES = 5
# After so many halvings the initial weights are below the rounding errors of the data.
MAX_HALVINGS = 100


class Start(NamedTuple):
    """Where a fit begins; also what ``warm_start`` keeps of the one before."""

    network: Network
    prior: evidence.Prior
    noise: float | None
    scaling: NamedTuple
    groups: tuple


class Cycle(NamedTuple):
    """One line of a fit's history."""

    info: sparse_bayes.Info
    horizon: float
    counts: np.ndarray


class Run(NamedTuple):
    """One finished (or interrupted) restart.

    diverged : whether the free run of the last stage left the plausible range, so that
        ``state`` is that of a stage before
    """

    state: sparse_bayes.State
    history: list
    interrupted: bool
    diverged: bool


class Problem(NamedTuple):
    """Scaled data and settings: all that a restart needs besides its seed."""

    stages: tuple
    settings: sparse_bayes.Settings
    groups: tuple
    sizes: tuple
    skip: bool
    activation: str
    constant_inputs: np.ndarray
    constant_output: bool
    max_cycles: int
    verbose: int


def run_restarts(problem, previous, seeds, n_jobs, keep_interrupted):
    """All restarts in the order of their seeds, and whether Ctrl-C ended them.

    Each has its own stream of random numbers, so ``n_jobs`` changes nothing. Without
    ``keep_interrupted``, or before the first result, Ctrl-C is raised.
    """
    runs = []
    jobs = (delayed(_run)(problem, seed, previous) for seed in seeds)
    try:
        for run in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
            runs.append(run)
            if run.interrupted:
                break
    except KeyboardInterrupt:
        if not (keep_interrupted and runs):
            raise
        runs[-1] = runs[-1]._replace(interrupted=True)
    interrupted = any(run.interrupted for run in runs)
    if interrupted and not keep_interrupted:
        raise KeyboardInterrupt
    return runs, interrupted


def _run(problem, seed, previous):
    """One restart: Algorithm 1 from random weights or from the previous fit."""
    rng = np.random.default_rng(seed)
    network, prior, noise = _start(problem, rng, previous)
    history, state = [], None
    diverged = interrupted = False
    with one_blas_thread():
        try:
            for number, stage in enumerate(problem.stages):
                if previous and _skippable(problem, number, network):
                    continue
                if state is None:
                    network = _within_range(network, stage.data)
                diverged = False
                try:
                    for state, info in _cycles(
                        problem, number, network, prior, noise, rng
                    ):
                        history.append(Cycle(info, stage.horizon, stage.data.counts))
                        network, prior, noise = state.network, state.prior, state.noise
                except FloatingPointError:
                    diverged = True
        except KeyboardInterrupt:
            if not history:
                raise
            interrupted = True
    return Run(state, history, interrupted, diverged)


def _skippable(problem, number, network):
    """Whether a warm start can do without this stage: it runs the last one already."""
    last = problem.stages[-1]
    if number == len(problem.stages) - 1:
        return False
    data = last.data.select_inputs(network.units[0])
    return bool(np.isfinite(data.squared_errors(network)).all())


def _within_range(network, data):
    """The network, its weights halved until it can run through the data at all.

    Later stages that diverge leave the model of the one before; the first has none.
    """
    data = data.select_inputs(network.units[0])
    for _ in range(MAX_HALVINGS):
        if np.isfinite(data.squared_errors(network)).all():
            return network
        network = network._replace(theta=0.5 * network.theta)
    raise ValueError(
        "The errors of a network without weights are not finite: X or y hold values "
        "too large or too small for a least-squares fit. Rescale them."
    )


def _cycles(problem, number, network, prior, noise, rng):
    """Yield the states of one stage; FloatingPointError if its free run diverges."""
    stage, last = problem.stages[number], number == len(problem.stages) - 1
    settings, n_cycles = problem.settings, problem.max_cycles
    if not last:
        # a weight that one step ahead does not need may matter in free run
        settings = settings._replace(kappa_variance=0.0, kappa_weight=0.0)
        n_cycles = min(n_cycles, STAGE_CYCLES if number else FIRST_STAGE_CYCLES)
    data = stage.data
    state = sparse_bayes.init(data, network, settings, prior, noise)
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


def _start(problem, rng, previous):
    if previous:
        noise = previous.noise if problem.settings.noise_variance == "auto" else None
        return previous.network, previous.prior, noise
    network = init_network(problem.sizes, problem.activation, rng, problem.skip)
    prior = evidence.init_prior(problem.sizes, problem.groups, problem.skip)
    drop = np.zeros(len(network.theta), dtype=bool)
    layers = split_layers(drop, network.sizes, network.skip)
    for block in {0, len(network.sizes) - 1} & set(range(len(layers))):
        layers[block][0][problem.constant_inputs] = True
    if problem.constant_output:
        drop = ~bias_mask(network)
    network, index = prune(network, drop)
    return network, evidence.take(prior, index), None


def _report(cycle, horizon, info):
    ahead = "" if horizon == 1 else f"horizon {horizon:g}, "
    print(
        f"{ahead}cycle {cycle + 1}: objective {info.objective:.6g}, {info.n_weights} "
        f"weights in {info.n_neurons} hidden units"
    )


def finished(run):
    """Whether a restart ended because nothing changed any more."""
    return sparse_bayes.converged(run.state) and not run.diverged
