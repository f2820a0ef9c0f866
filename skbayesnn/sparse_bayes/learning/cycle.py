r"""Algorithm 1: sparse Bayesian learning of a network, one cycle per step.

The objective is (9) with the regularisation strength :math:`\lambda` of (15) as a
temperature: the likelihood is raised to the power :math:`1/\lambda`, which scales its
Hessian as well. Multiplied by :math:`\lambda`,

.. math:: L = \frac{\|y - \mathrm{Net}(W)\|^2}{\sigma^2} + n \log 2 \pi \sigma^2
   + \sum_l \lambda_l \left( W_l^T \Upsilon_l^{-1} W_l + \log|\Upsilon_l|
   + \log|H_l / \lambda_l + \Upsilon_l^{-1}| \right),

minus twice the log marginal likelihood where every :math:`\lambda` is 1. With one
:math:`\lambda` the determinant is that of all parameters together; with one per layer
it is taken layer by layer, as the paper writes it.

Here the likelihood is Gaussian; `likelihood` has others, and says what they provide.
Parameters of their own are updated last, by a step that lowers ``L`` as well.

A cycle fits the weights, evaluates the curvature there, updates prior and noise
variances, and prunes.  With the curvature of the cycle held fixed, as in (10), the
weight fit lowers ``L`` because it lowers the penalised error, and an update of the
variances is accepted only if it lowers ``L`` too; pruning is the one step that may
raise it, and in a linear network it waits until ``L`` has settled.  Between cycles the
curvature moves with the weights.  (Refusing weights whose curvature raises ``L`` was
tried: fits then stall at dense networks, because the weight fit does not see the
determinant.)
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from ..network import Network, layer_index, prune
from ..records.residuals import FitData
from . import prior as priors
from .curvature import (
    Diagonal,
    Linearization,
    choose_form,
    diagonal_of,
    linearize,
    log_determinant,
    restrict,
    squared_error,
    well_determined,
)
from .likelihood import Gaussian, StudentT
from .prior import Prior
from .weights import SOLVERS, WeightFit, WeightProblem, fit_weights, penalized_error

PATIENCE = 10
# By how much the pruning of one cycle may raise the objective, per observation; the
# next fit of the weights wins most of it back.
MAX_RISE = 0.1
# A linear network is pruned in cycles that lower the objective by less than this, or
# than ``tol``, per observation; see `_may_prune`.
SETTLED = 1e-3


class Settings(NamedTuple):
    """What stays fixed during a fit.

    likelihood : of `likelihood`, as it starts
    reg_lambda : (n_layers,) array
    curvature : "full" or "diag"
    solver : a name in `weights.SOLVERS`
    tol : per observation
    """

    likelihood: Gaussian | StudentT
    reg_lambda: np.ndarray
    reweight: bool
    kappa_variance: float
    kappa_weight: float
    curvature: str
    solver: str
    max_iter: int
    tol: float


class State(NamedTuple):
    """Where a fit stands: enough to continue it.

    memory : what the solver of the weights remembers, see `WeightFit`
    likelihood : with what has been learned of it
    objective : ``L`` at the network, prior and noise
    lowest_objective, idle_cycles : of the cycles since something was pruned
    """

    network: Network
    prior: Prior
    noise: float
    data: FitData
    linearization: Linearization
    memory: float
    likelihood: Gaussian | StudentT
    objective: float
    lowest_objective: float = np.inf
    idle_cycles: int = 0


class Info(NamedTuple):
    """What one cycle did.

    objective_start, objective : (10) with the curvature of this cycle, before the
        weight fit and after the update of the variances
    objective_pruned : after pruning, with the curvature of what is left
    squared_errors : (n_outputs,), without any weights
    """

    objective_start: float
    objective: float
    objective_pruned: float
    squared_errors: np.ndarray
    noise: float
    n_weights: int
    n_units: int
    n_iter: int


class Assessment(NamedTuple):
    """Objective and well-determined fractions (of the kept parameters)."""

    objective: float
    gamma: np.ndarray


def init(settings, data, network, prior, noise=None, likelihood=None):
    """A state at the given weights and prior."""
    likelihood = settings.likelihood if likelihood is None else likelihood
    if noise is None:
        noise = likelihood.initial_noise()
    if len(network.units[0]) < network.full_sizes[0]:
        data = data.select_inputs(network.units[0])
    if likelihood.output_weights is not None:
        data = data.with_weights(likelihood.output_weights)
    form = _form(settings, network, data)
    state = State(
        network=network,
        prior=prior,
        noise=float(noise),
        data=data,
        linearization=linearize(network, data, form),
        memory=SOLVERS[settings.solver].memory,
        likelihood=likelihood,
        objective=np.inf,
    )
    return state._replace(objective=objective(settings, state))


def with_data(settings, state, data):
    """The state at other data for the same network."""
    form = _form(settings, state.network, data)
    linearization = linearize(state.network, data, form)
    return state._replace(data=data, linearization=linearization)


def converged(state):
    """Whether the last cycles neither pruned nor improved the best objective."""
    return state.idle_cycles >= PATIENCE


def step(settings, state, rng):
    """One cycle of Algorithm 1: ``(state, info)``."""
    before = state.objective
    state = _weight_observations(settings, state)
    state, gain, n_iter = _fit_weights(settings, state, rng)
    found = assess(settings, state)
    start = found.objective + gain
    state = _update_hyper_parameters(settings, state, found)
    updated, n_weights = state.objective, _count_weights(state)
    if _may_prune(settings, state, before):
        state = _prune(settings, state)
    pruned = _count_weights(state) < n_weights
    state = _count_idle_cycles(settings, state, pruned)
    info = Info(
        objective_start=start,
        objective=updated,
        objective_pruned=state.objective,
        squared_errors=_squared_errors(state),
        noise=state.noise,
        n_weights=_count_weights(state),
        n_units=int(state.network.sizes[1:-1].sum()),
        n_iter=n_iter,
    )
    return state, info


def steps(settings, state, rng, n_cycles):
    """Yield ``(state, info)`` of so many cycles at most, until nothing changes."""
    for _ in range(n_cycles):
        if converged(state):
            return
        state, info = step(settings, state, rng)
        yield state, info


def _weight_observations(settings, state):
    """The state at the observation weights of its residuals, if there are any."""
    residuals = _residuals(state)
    weights = state.likelihood.observation_weights(residuals, state.noise)
    if weights is None:
        return state
    return with_data(settings, state, state.data.with_observation_weights(weights))


def _residuals(state):
    """A function for the residuals in units in which their variance is the noise."""
    return lambda: state.data.residuals(state.network)


def _squared_errors(state):
    return state.data.with_observation_weights(None).squared_errors(state.network)


def _count_idle_cycles(settings, state, pruned):
    """The count begins again after pruning and after a better objective."""
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
    value = misfit(state) + float(np.sum(quadratic[lambdas[keep] > 0.0]))
    if settings.reweight:
        value += sum(settings.reg_lambda[k] * v for k, v in logdets.items())
    else:
        value += priors.group_penalty(state.prior, keep, lambdas)
    return float(value)


def log_marginal_likelihood(settings, state):
    """Laplace approximation of the log evidence: ``-L / 2`` at temperature 1."""
    network = state.network
    variance = priors.parameter_variance(state.prior)[network.keep]
    weights = network.theta[network.keep]
    curvature = used_curvature(settings, state)
    logdet = log_determinant(curvature, variance, state.noise)
    quadratic = float(np.sum(weights * weights / variance))
    return -0.5 * (misfit(state) + quadratic + logdet)


def effective_variance(settings, state):
    """Prior variances over temperatures, the inverse precisions of the weight fit.

    With it in the place of the prior variance, ``H / lambda`` becomes plain ``H``.
    Where ``lambda`` is 0 there is no prior; its variance then only serves a report.
    """
    keep = state.network.keep
    lambdas = strengths(settings, state.network)[keep]
    variance = priors.parameter_variance(state.prior)[keep]
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


def misfit(state):
    """Minus twice the log-likelihood of the observations."""
    data = state.data
    return state.likelihood.misfit(
        _residuals(state),
        state.linearization.squared_error,
        data.counts,
        data.weights,
        state.noise,
        data.sample_weight,
    )


def strengths(settings, network):
    """``lambda`` of each parameter."""
    return settings.reg_lambda[layer_index(network)]


def _count_weights(state):
    return int(np.count_nonzero(state.network.keep & (state.prior.labels[0] >= 0)))


def _form(settings, network, data):
    whole = SOLVERS[settings.solver].needs_whole_curvature
    curvature = "full" if whole else settings.curvature
    return choose_form(curvature, int(network.keep.sum()), data.n_observations)


def _fit_weights(settings, state, rng):
    """Step 1: lower the penalised error; returns by how much."""
    network, n_observations = state.network, state.data.n_observations
    variance = priors.parameter_variance(state.prior)
    problem = WeightProblem(
        data=state.data,
        precision=(strengths(settings, network) / variance)[network.keep],
        noise=state.noise,
        form=_form(settings, network, state.data),
        max_iter=settings.max_iter,
        tol=0.1 * settings.tol * n_observations,
    )
    start = WeightFit(network, state.linearization, state.memory)
    fit = fit_weights(settings.solver, problem, start, rng)
    gain = penalized_error(problem, start) - penalized_error(problem, fit)
    state = state._replace(
        network=fit.network, linearization=fit.linearization, memory=fit.memory
    )
    return state, gain, fit.n_iter


def _update_hyper_parameters(settings, state, found):
    """Step 2: prior and noise variances, by the first update that does not ascend."""
    for proposal in _proposals(settings, state, found):
        value = objective(settings, proposal)
        if value <= found.objective:
            return _refine_likelihood(proposal._replace(objective=value))
    return _refine_likelihood(state._replace(objective=found.objective))


def _refine_likelihood(state):
    """Learned parameters of the likelihood, of which only the misfit depends."""
    refined = state.likelihood.refined(
        _residuals(state), state.noise, state.data.sample_weight
    )
    if refined is state.likelihood:
        return state
    better = state._replace(likelihood=refined)
    change = misfit(better) - misfit(state)
    return better._replace(objective=state.objective + change)


def _proposals(settings, state, found):
    """Updates to try; the last one keeps the noise, and always descends."""
    updated, has_prior = state, settings.reg_lambda.any()
    if has_prior:
        updated = state._replace(prior=_update_prior(settings, state, found))
    n_free = _count_free(settings, state, found)
    if len(state.data.weights) > 1:
        with_noises = _with_noises(settings, updated, n_free)
        if with_noises is not updated:
            yield with_noises
    squared = state.linearization.squared_error
    noise = state.likelihood.update_noise(squared, n_free, state.noise)
    yield updated._replace(noise=noise)
    if has_prior:
        yield updated


def _update_prior(settings, state, found):
    theta, keep = state.network.theta, state.network.keep
    if settings.reweight:
        return priors.update_variances(state.prior, theta, keep, found.gamma)
    return priors.fixed_penalty_variances(state.prior, theta, keep)


def _count_free(settings, state, found):
    """Observations, less those that the parameters are determined by."""
    n_free = state.data.n_observations
    if settings.reweight:
        keep = state.network.keep
        n_free -= float(strengths(settings, state.network)[keep] @ found.gamma)
    return n_free


def _with_noises(settings, state, n_free):
    """The state with a noise for each output: clean ones count more than noisy ones."""
    data = state.data
    squared_errors = partial(data.squared_errors, state.network)
    likelihood, noise = state.likelihood.with_noises(
        squared_errors, data.counts, n_free, state.noise, data.weights
    )
    if likelihood is state.likelihood:
        return state
    state = state._replace(likelihood=likelihood, noise=noise)
    return with_data(settings, state, data.with_weights(likelihood.output_weights))


def _may_prune(settings, state, before):
    """Whether a small weight is one that is not needed.

    Collinear inputs, such as the lags of one output, have weights that change their
    sign while the noise variance falls from its start to that of the data: a weight
    near zero may be passing through it, and once pruned it does not return. So a
    linear network waits until the objective has settled since ``before``.

    Two do not wait: one with hidden layers, which has units to spare and gets cheaper
    with each that it loses; and one whose inputs share their variances, which would
    shrink the inputs that matter with the others (measured: its objective gets worse
    as often as better).
    """
    network = state.network
    if not (network.linear and priors.separates_inputs(state.prior, network.sizes)):
        return True
    fall = before - state.objective
    return fall <= max(settings.tol, SETTLED) * state.data.n_observations


def _prune(settings, state):
    """Step 3: drop weights below the thresholds, and units that this disconnects.

    In a wide layer many small weights may together carry the signal. Where dropping
    them all would raise the objective too far, only the smaller half of them is tried,
    and so on.
    """
    network, prior = state.network, state.prior
    weights = network.keep & (prior.labels[0] >= 0)
    small = priors.parameter_variance(prior) < settings.kappa_variance
    small |= np.abs(network.theta) < settings.kappa_weight
    drop = np.flatnonzero(weights & small & (strengths(settings, network) > 0.0))
    drop = drop[np.argsort(np.abs(network.theta[drop]), kind="stable")]
    # bound: their number is halved
    while len(drop):
        if rise(state, drop) <= MAX_RISE * state.data.n_observations:
            return without(settings, state, drop)
        drop = drop[: len(drop) // 2]
    return state


def rise(state, drop):
    """What dropping weights adds to the objective at most, with the curvature fixed.

    Their part of the prior and of the determinant goes away, and both are positive, so
    only the misfit can raise it, by at most the weighted squared error.
    """
    theta = state.network.theta.copy()
    theta[drop] = 0.0
    squared = squared_error(state.network._replace(theta=theta), state.data)
    return (squared - state.linearization.squared_error) / state.noise


def without(settings, state, drop):
    """The state after weights were dropped and the arrays compacted."""
    mask = np.zeros(len(state.network.theta), dtype=bool)
    mask[drop] = True
    network, index = prune(state.network, mask)
    data = state.data
    if len(network.units[0]) < len(state.network.units[0]):
        kept = np.isin(state.network.units[0], network.units[0])
        data = data.select_inputs(np.flatnonzero(kept))
    state = state._replace(
        network=network, prior=priors.take(state.prior, index), data=data
    )
    form = _form(settings, network, data)
    state = state._replace(linearization=linearize(network, data, form))
    return state._replace(objective=objective(settings, state))
