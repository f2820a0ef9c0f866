r"""Algorithm 1: sparse Bayesian learning of a network, one cycle a step.

The objective is (9) with the regularisation strength :math:`\lambda` of (15) as a
temperature: the likelihood is raised to the power :math:`1/\lambda`, which scales its
Hessian as well. Multiplied by :math:`\lambda`,

.. math:: L = \frac{\|y - \mathrm{Net}(W)\|^2}{\sigma^2} + n \log 2 \pi \sigma^2
   + \sum_l \lambda_l \left( W_l^T \Upsilon_l^{-1} W_l + \log|\Upsilon_l|
   + \log|H_l / \lambda_l + \Upsilon_l^{-1}| \right),

minus twice the log marginal likelihood where every :math:`\lambda` is 1. With one
:math:`\lambda` the determinant is that of all parameters together; with one a layer it
is taken layer by layer, as the paper writes it.

A cycle fits the weights, evaluates the curvature there, updates prior and noise
variances, and prunes.  With the curvature of the cycle held fixed, as in (10), the
weight fit lowers ``L`` because it lowers the penalised error, and an update of the
variances is accepted only if it lowers ``L`` too; pruning is the one step that may
raise it.  Between cycles the curvature moves with the weights.  (Refusing weights
whose curvature raises ``L`` was tried: fits then stall at dense networks, because the
weight fit does not see the determinant.)
"""

from typing import NamedTuple

import numpy as np

from ..network import Network, layer_index, prune
from ..records.residuals import FitData
from . import prior as evidence
from .curvature import (
    Diagonal,
    choose_form,
    diagonal_of,
    linearize,
    log_determinant,
    restrict,
    squared_error,
    well_determined,
)
from .prior import Prior
from .weights import WeightFit, fit_weights, initial_memory, penalized_error

INITIAL_NOISE = 0.1
MIN_NOISE = 1e-10
PATIENCE = 10
# Objective an observation that one cycle's pruning may cost; the next fit of the
# weights wins most of it back.
MAX_RISE = 0.1


class Settings(NamedTuple):
    """What stays fixed during a fit.

    reg_lambda : (n_layers,) array
    noise_variance : "auto" or the common factor of the noise variances
    curvature : "full" or "diag"
    tol : per observation
    """

    reg_lambda: np.ndarray
    reweight: bool
    kappa_variance: float
    kappa_weight: float
    noise_variance: object
    curvature: str
    solver: str
    max_iter: int
    tol: float


class State(NamedTuple):
    """Where a fit stands: enough to continue it."""

    network: Network
    prior: Prior
    noise: float
    data: FitData
    linearization: NamedTuple
    memory: float
    objective: float
    lowest_objective: float = np.inf
    idle_cycles: int = 0


class Info(NamedTuple):
    """What one cycle did.

    objective_start, objective : (10) with the curvature of this cycle, before the
        weight fit and after the update of the variances
    objective_pruned : after pruning, with the curvature of what is left
    squared_errors : (n_outputs,), not weighted
    """

    objective_start: float
    objective: float
    objective_pruned: float
    squared_errors: np.ndarray
    noise: float
    n_weights: int
    n_neurons: int
    n_iter: int


class Assessment(NamedTuple):
    """Objective and well-determined fractions (of the kept parameters)."""

    objective: float
    gamma: np.ndarray


def init(data, network, settings, prior, noise=None):
    """A state at the given weights and prior."""
    if noise is None:
        auto = settings.noise_variance == "auto"
        noise = INITIAL_NOISE if auto else settings.noise_variance
    if len(network.units[0]) < network.full_sizes[0]:
        data = data.select_inputs(network.units[0])
    form = _form(settings, network, data)
    state = State(
        network=network,
        prior=prior,
        noise=float(noise),
        data=data,
        linearization=linearize(network, data, form),
        memory=initial_memory(settings.solver),
        objective=np.inf,
    )
    return state._replace(objective=objective(settings, state))


def with_data(settings, state, data):
    """The state at other data for the same network."""
    form = _form(settings, state.network, data)
    linearization = linearize(state.network, data, form)
    return state._replace(data=data, linearization=linearization)


def converged(state):
    """Whether the last cycles neither pruned nor brought the objective a new low."""
    return state.idle_cycles >= PATIENCE


def step(settings, state, rng):
    """One cycle of Algorithm 1: ``(state, info)``."""
    state, gain, n_iter = _fit_weights(settings, state, rng)
    found = assess(settings, state)
    start = found.objective + gain
    state = _update_hyper_parameters(settings, state, found)
    updated, n_weights = state.objective, _count_weights(state)
    state = _prune(settings, state)
    pruned = _count_weights(state) < n_weights
    state = _count_idle_cycles(settings, state, pruned)
    info = Info(
        objective_start=start,
        objective=updated,
        objective_pruned=state.objective,
        squared_errors=state.data.squared_errors(state.network),
        noise=state.noise,
        n_weights=_count_weights(state),
        n_neurons=int(state.network.sizes[1:-1].sum()),
        n_iter=n_iter,
    )
    return state, info


def _count_idle_cycles(settings, state, pruned):
    """A new low, by more than the tolerance, starts the count anew; so does pruning."""
    lowest, tol = state.lowest_objective, settings.tol * state.data.n_observations
    idle = 0 if pruned or state.objective < lowest - tol else state.idle_cycles + 1
    lowest = state.objective if pruned else min(lowest, state.objective)
    return state._replace(lowest_objective=lowest, idle_cycles=idle)


def assess(settings, state):
    """Objective ``L`` and well-determined fractions of a state."""
    gamma, logdets = _determine(settings, state, well_determined)
    return Assessment(_objective(settings, state, logdets), gamma)


def objective(settings, state):
    """Objective ``L`` alone, which costs half as much."""

    def no_fractions(curvature, variance, noise):
        return np.nan, log_determinant(curvature, variance, noise)

    _, logdets = _determine(settings, state, no_fractions)
    return _objective(settings, state, logdets)


def _objective(settings, state, logdets):
    network = state.network
    keep = network.keep
    weights = network.theta[keep]
    lambdas = strengths(settings, network)
    quadratic = weights * weights / effective_variance(settings, state)
    value = _misfit(state) + float(np.sum(quadratic[lambdas[keep] > 0.0]))
    if settings.reweight:
        value += sum(settings.reg_lambda[k] * v for k, v in logdets.items())
    else:
        value += evidence.group_penalty(state.prior, keep, lambdas)
    return float(value)


def log_marginal_likelihood(settings, state):
    """Laplace approximation of the log evidence: ``-L / 2`` at temperature 1."""
    network = state.network
    variance = evidence.parameter_variance(state.prior)[network.keep]
    weights = network.theta[network.keep]
    curvature = used_curvature(settings, state)
    logdet = log_determinant(curvature, variance, state.noise)
    quadratic = float(np.sum(weights * weights / variance))
    return -0.5 * (_misfit(state) + quadratic + logdet)


def effective_variance(settings, state):
    """Prior variances over temperatures, the inverse precisions of the weight fit.

    With it in the place of the prior variance, ``H / lambda`` becomes plain ``H``.
    Where ``lambda`` is 0 there is no prior; its variance then only serves a report.
    """
    keep = state.network.keep
    lambdas = strengths(settings, state.network)[keep]
    variance = evidence.parameter_variance(state.prior)[keep]
    return variance / np.where(lambdas > 0.0, lambdas, 1.0)


def used_curvature(settings, state):
    """The curvature that the hyper-parameters see."""
    curvature = state.linearization.curvature
    if settings.curvature == "diag":
        return Diagonal(diagonal_of(curvature))
    return curvature


def _determine(settings, state, function):
    """Well-determined fractions, and log-determinants by layer, as ``function`` gives.

    One strength for all layers needs no split: the determinant of the whole stands
    under the first layer.
    """
    curvature, noise = used_curvature(settings, state), state.noise
    variance = effective_variance(settings, state)
    if np.ptp(settings.reg_lambda) == 0.0:
        gamma, logdet = function(curvature, variance, noise)
        return gamma, {0: logdet}
    layers = layer_index(state.network)[state.network.keep]
    gamma, logdets = np.empty(len(layers)), {}
    for layer in np.unique(layers):
        index = np.flatnonzero(layers == layer)
        gamma[index], logdets[layer] = function(
            restrict(curvature, index), variance[index], noise
        )
    return gamma, logdets


def _misfit(state):
    """Weighted squared error over the noise, and the noise's normalising constant."""
    return state.linearization.squared_error / state.noise + _noise_constant(state)


def _noise_constant(state):
    """``log |2 pi noise|`` over all observations."""
    log_weights = 2.0 * float(state.data.counts @ np.log(state.data.weights))
    return state.data.n_observations * np.log(2.0 * np.pi * state.noise) - log_weights


def strengths(settings, network):
    return settings.reg_lambda[layer_index(network)]


def _count_weights(state):
    return int(np.count_nonzero(state.network.keep & (state.prior.labels[0] >= 0)))


def _form(settings, network, data):
    curvature = "full" if settings.solver == "lm" else settings.curvature
    return choose_form(curvature, int(network.keep.sum()), data.n_observations)


def _fit_weights(settings, state, rng):
    """Step 1: lower the penalised error; returns by how much."""
    network, noise = state.network, state.noise
    variance = evidence.parameter_variance(state.prior)
    precision = (strengths(settings, network) / variance)[network.keep]
    fit = fit_weights(
        settings.solver,
        WeightFit(network, state.linearization, state.memory),
        state.data,
        precision,
        noise,
        _form(settings, network, state.data),
        settings.max_iter,
        0.1 * settings.tol * state.data.n_observations,
        rng,
    )
    before = penalized_error(state.linearization, network, precision, noise)
    after = penalized_error(fit.linearization, fit.network, precision, noise)
    state = state._replace(
        network=fit.network, linearization=fit.linearization, memory=fit.memory
    )
    return state, before - after, fit.n_iter


def _update_hyper_parameters(settings, state, found):
    """Step 2: prior and noise variances, by the first update that does not ascend."""
    for proposal in _proposals(settings, state, found):
        value = objective(settings, proposal)
        if value <= found.objective:
            return proposal._replace(objective=value)
    return state._replace(objective=found.objective)


def _proposals(settings, state, found):
    """Updates to try; the last, at the old noise, is sure to descend."""
    noise = _update_noise(settings, state, found)
    if not settings.reg_lambda.any():
        yield state._replace(noise=noise)
        return
    theta, keep = state.network.theta, state.network.keep
    if settings.reweight:
        prior = evidence.update_variances(state.prior, theta, keep, found.gamma)
    else:
        prior = evidence.fixed_penalty_variances(state.prior, theta, keep)
    yield state._replace(prior=prior, noise=noise)
    yield state._replace(prior=prior)


def _update_noise(settings, state, found):
    r"""Fixed point of the noise variance, ``|r|^2 / (n - sum lambda gamma)``."""
    if settings.noise_variance != "auto":
        return state.noise
    n_free = state.data.n_observations
    if settings.reweight:
        keep = state.network.keep
        n_free -= float(strengths(settings, state.network)[keep] @ found.gamma)
    squared = state.linearization.squared_error
    noise = squared / n_free if n_free > 0.0 else np.inf
    return max(float(np.clip(noise, 0.1 * state.noise, 2.0 * state.noise)), MIN_NOISE)


def _prune(settings, state):
    """Step 3: drop weights below the thresholds, then what hangs on them alone.

    In a wide layer many small weights may together carry the signal. Where dropping
    them all would raise the objective too far, the smaller half goes, and so on.
    """
    network, prior = state.network, state.prior
    weights = network.keep & (prior.labels[0] >= 0)
    small = evidence.parameter_variance(prior) < settings.kappa_variance
    small |= np.abs(network.theta) < settings.kappa_weight
    drop = np.flatnonzero(weights & small & (strengths(settings, network) > 0.0))
    drop = drop[np.argsort(np.abs(network.theta[drop]), kind="stable")]
    while len(drop):
        if _rise(state, drop) <= MAX_RISE * state.data.n_observations:
            return _without(settings, state, drop)
        drop = drop[: len(drop) // 2]
    return state


def _rise(state, drop):
    """What dropping weights adds to the objective at most, with the curvature fixed.

    Their part of the prior and of the determinant goes away, and both are positive, so
    only the error can raise it.
    """
    theta = state.network.theta.copy()
    theta[drop] = 0.0
    squared = squared_error(state.network._replace(theta=theta), state.data)
    return (squared - state.linearization.squared_error) / state.noise


def _without(settings, state, drop):
    """The state after weights were dropped and the arrays compacted."""
    mask = np.zeros(len(state.network.theta), dtype=bool)
    mask[drop] = True
    network, index = prune(state.network, mask)
    data = state.data
    if len(network.units[0]) < len(state.network.units[0]):
        kept = np.isin(state.network.units[0], network.units[0])
        data = data.select_inputs(np.flatnonzero(kept))
    state = state._replace(
        network=network, prior=evidence.take(state.prior, index), data=data
    )
    form = _form(settings, network, data)
    state = state._replace(linearization=linearize(network, data, form))
    return state._replace(objective=objective(settings, state))
