"""A fit: several random starts, their ranking, and what is kept of them."""

import math
from typing import NamedTuple

import numpy as np
from joblib import delayed
from scipy.linalg import LinAlgError
from sklearn.exceptions import ConvergenceWarning

from ..._parallel import Shared, at_hand, in_order, with_shared
from ..._sklearn import one_blas_thread
from ..._warnings import warn_caller
from ..network import bias_mask, init_network, prune, split_layers
from . import cycle
from . import prior as priors
from .better_optima import begin_anew
from .likelihood import StudentT
from .output_errors import joint_error, mean_squared_errors
from .result import Fit, learned_network
from .stages import report, run_stage

# After so many halvings the initial weights are below the rounding errors of the data.
MAX_HALVINGS = 100
# Of the starts that are screened, the fraction and the smallest number that go on. The
# best one in the end was among the three best of sixteen behind the first stage
# (measured on simulated drives, tanks and a hair dryer).
FINALISTS = 0.25
MIN_FINALISTS = 2


class Cycle(NamedTuple):
    """One entry of a fit's history."""

    info: cycle.Info
    horizon: float
    counts: np.ndarray


class Run(NamedTuple):
    """One finished (or interrupted) restart.

    diverged : whether the free run of the last stage left the plausible range, so that
        ``state`` is that of an earlier stage
    n_stages : number of stages that it has been through
    predicts : whether it predicts the record that it was fitted to, see `Problem`
    """

    state: cycle.State
    history: list
    interrupted: bool
    diverged: bool
    n_stages: int
    predicts: bool


def learn(
    problem,
    seed,
    *,
    n_starts=1,
    n_networks=1,
    n_jobs=None,
    keep=False,
    hopeless=np.inf,
):
    """The best networks of several starts, as a `Fit`.

    Starts that diverged are left out, unless all of them did, and those that do not
    predict what they were fitted to, unless none does.

    Parameters
    ----------
    seed : int
        Each start has its own stream of random numbers: ``n_jobs`` changes nothing.
    n_starts : int
        Number of starts; a fit that resumes from a previous one has a single start.
    n_networks : int
        Number of networks to return.
    keep : bool
        After Ctrl-C, return what has been learned so far, if anything. Otherwise
        Ctrl-C is raised.
    hopeless : float
        Starts that are screened and whose errors exceed this do not go on. If none is
        left, there is no fit: None.
    """
    seeds = np.random.SeedSequence(seed).spawn(1 if problem.start else n_starts)
    screens = len(seeds) > max(n_networks, MIN_FINALISTS) or hopeless < np.inf
    screened = problem.n_screening if screens else 0
    begun = [(seed, None) for seed in seeds]
    out = 0
    if screened:
        runs, interrupted = run_restarts(problem, begun, n_jobs, keep, screened)
        begun, out = _finalists(problem, seeds, runs, n_networks, hopeless)
        if not begun:
            return None
    if not (screened and interrupted):
        runs, interrupted = run_restarts(problem, begun, n_jobs, keep)
    kept = _kept(_rank(problem, runs), n_networks)
    if kept[0].state is None:
        raise ValueError(
            "Every start diverged in its first cycle, so there is no model. Rescale X "
            "and y, increase reg_lambda or n_restarts, or use fewer lags or states."
        )
    fit = Fit(
        networks=tuple(learned_network(problem, run) for run in kept),
        n_diverged=out + sum(run.diverged for run in runs),
        interrupted=interrupted,
        predicts=kept[0].predicts,
    )
    if not (interrupted or fit.networks[0].finished):
        _warn_unfinished(fit.networks[0], problem.max_cycles)
    return fit


def _finalists(problem, seeds, runs, n_networks, hopeless):
    """Seeds and runs of the starts that go on, and how many of the others diverged."""
    n_kept = max(n_networks, MIN_FINALISTS, math.ceil(FINALISTS * len(runs)))
    errors = [_ranking_error(problem, run) for run in runs]
    order = np.argsort(errors, kind="stable").tolist()
    kept = sorted(k for k in order[:n_kept] if errors[k] <= hopeless)
    out = sum(run.diverged for k, run in enumerate(runs) if k not in kept)
    return [(seeds[k], runs[k]) for k in kept], out


def _rank(problem, runs):
    """The runs, the best first."""
    if len(runs) == 1:
        return runs
    errors = [_ranking_error(problem, run) for run in runs]
    return [runs[k] for k in np.argsort(errors, kind="stable")]


def _kept(ranked, n_networks):
    """The best runs that are models."""
    whole = [run for run in ranked if not run.diverged]
    predict = [run for run in whole if run.predicts]
    return (predict or whole or ranked[:1])[:n_networks]


def _ranking_error(problem, run):
    """Error by which restarts are ordered; infinite where the free run diverged."""
    if run.state is None:
        return np.inf
    error = run.state.objective
    if problem.ranking is not None:
        error = joint_error(mean_squared_errors(run.state.network, problem.ranking))
    return error if np.isfinite(error) and not run.diverged else np.inf


def _warn_unfinished(learned, max_cycles):
    if learned.diverged:
        horizon = learned.history["horizon"][-1]
        message = (
            "Every start diverged in free run over the whole record: the model is that "
            f"of the horizon {horizon:g}. Increase reg_lambda, the lags or n_restarts, "
            "or check whether the system is stable."
        )
    else:
        message = (
            f"The objective was still falling after max_cycles={max_cycles} "
            "cycles. Increase max_cycles or tol."
        )
    warn_caller(message, ConvergenceWarning)


def run_restarts(problem, begun, n_jobs=None, keep=False, n_stages=None):
    """All restarts in the order of their seeds, and whether Ctrl-C ended them.

    ``begun`` holds the seed of each, and its run through the first stages or None;
    ``n_stages`` is the number of stages after which all of them end, by default the
    last. Without ``keep``, or before the first result, Ctrl-C is raised.
    """
    runs = []
    try:
        for run in _side_by_side(problem, begun, n_jobs, n_stages):
            runs.append(run)
            if run.interrupted:
                break
    except KeyboardInterrupt:
        if not (keep and runs):
            raise
        runs[-1] = runs[-1]._replace(interrupted=True)
    interrupted = any(run.interrupted for run in runs)
    if interrupted and not keep:
        raise KeyboardInterrupt
    return runs, interrupted


def _side_by_side(problem, begun, n_jobs, n_stages):
    """The restarts one by one."""
    if len(begun) == 1:
        # here: this process may itself be the worker of a cluster
        yield run_start(problem, *begun[0], n_stages)
        return
    shared = Shared(problem)
    jobs = (delayed(with_shared)(run_start, shared, *one, n_stages) for one in begun)
    with at_hand(shared):
        yield from in_order(jobs, n_jobs)


def run_start(problem, seed, before=None, n_stages=None):
    """One restart: Algorithm 1 from random weights or from the previous fit.

    It goes through the first ``n_stages``, by default all, or continues a run that has
    been through some. Ctrl-C after the first finished cycle ends it, and is noted.
    """
    rng = np.random.default_rng(seed)
    history, state, n_done = [], None, 0
    if before is not None and before.state is not None:
        history, state, n_done = list(before.history), before.state, before.n_stages
        start = _to_continue(state)
    else:
        start = _start(problem, rng, seed.spawn_key[-1])
    n_stages = len(problem.stages) if n_stages is None else n_stages
    diverged = interrupted = False
    with one_blas_thread():
        try:
            for number in range(n_done, n_stages):
                stage = problem.stages[number]
                if problem.start and _skippable(problem, number, start[0]):
                    continue
                if state is None:
                    start = within_range(start[0], stage.data), *start[1:]
                diverged = False
                cycles = run_stage(problem, number, start, rng)
                try:
                    for state, info in cycles:
                        history.append(Cycle(info, stage.horizon, stage.data.counts))
                        start = _to_continue(state)
                # the derivatives of a run that is nearly unstable have no precision
                except (FloatingPointError, LinAlgError):
                    diverged = True
            if n_stages == len(problem.stages) and not diverged:
                for better, info in _behind_stages(problem, stage, state, rng):
                    state = better
                    history.append(Cycle(info, stage.horizon, stage.data.counts))
        except KeyboardInterrupt:
            if not history:
                raise
            interrupted = True
        ended = n_stages == len(problem.stages) and not (diverged or interrupted)
        predicts = not (ended and problem.predicts) or problem.predicts(problem, state)
    return Run(state, history, interrupted, diverged, n_stages, predicts)


def _behind_stages(problem, stage, state, rng):
    """Yield the cycles behind the last stage, and report them."""
    cycles = _better_and_smaller(problem, stage, state, rng)
    for number, (state, info) in enumerate(cycles, start=1):
        if problem.verbose:
            report(f"{number} after the fit", stage.horizon, info)
        yield state, info


def _better_and_smaller(problem, stage, state, rng):
    """Yield the cycles to another optimum, and those of smaller networks.

    A network that follows its noise could lose no unit: the other optimum is first.
    """

    def draw():
        return _start(problem, rng, 0)[:2]

    arguments = problem.max_cycles, rng
    if problem.begins_anew:
        draws = None if problem.start else draw
        cycles = begin_anew(problem.settings, stage, state, *arguments, draws)
        for state, info in cycles:
            yield state, info
    if problem.reduce:
        yield from problem.reduce(problem.settings, stage, state, *arguments)


def _skippable(problem, number, network):
    """Whether a warm start can do without this stage: the last one does not diverge."""
    last = problem.stages[-1]
    if number == len(problem.stages) - 1:
        return False
    data = last.data.select_inputs(network.units[0])
    return bool(np.isfinite(data.squared_errors(network)).all())


def within_range(network, data):
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


def _to_continue(state):
    """What the next stage takes over."""
    return state.network, state.prior, state.noise, state.likelihood


def _start(problem, rng, number):
    """Network, prior, noise and likelihood; None where they begin by default."""
    if problem.starts is not None:
        return *problem.starts.draw(rng, number), None, None
    start = problem.start
    if start:
        likelihood = problem.settings.likelihood
        noise = likelihood.initial_noise(start.noise)
        if isinstance(start.likelihood, StudentT) and isinstance(likelihood, StudentT):
            learned = start.likelihood.degrees_of_freedom
            likelihood = likelihood._replace(degrees_of_freedom=learned)
        if likelihood.noise_variance == "auto":
            weights = start.likelihood.output_weights
            likelihood = likelihood._replace(output_weights=weights)
        return start.network, start.prior, noise, likelihood
    network = init_network(problem.sizes, problem.activation, rng, problem.skip)
    if network.linear and problem.stages[0].horizon == 1:
        # the weight fit is a least-squares problem: random weights would only make
        # the variances of the first cycles, and so what is pruned, depend on the seed
        network = network._replace(theta=np.zeros_like(network.theta))
    prior = priors.init_prior(problem.sizes, problem.groups, problem.skip)
    drop = np.zeros(len(network.theta), dtype=bool)
    layers = split_layers(drop, network.sizes, network.skip)
    for block in {0, len(network.sizes) - 1} & set(range(len(layers))):
        layers[block][0][problem.constant_inputs] = True
    if problem.constant_output:
        drop = ~bias_mask(network)
    network, index = prune(network, drop)
    return network, priors.take(prior, index), None, None
