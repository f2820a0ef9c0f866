"""Fits of hidden states to all rows that go on from another fit.

A fit to a fraction of dense rows (`dense_rows`) goes on with all of them in small
steps, and ends as a network with whole steps, x(t + 1) = f(x(t), u(t)). A fit to a
whole record may go on from one that has not seen a stretch of it.
"""

import numpy as np

from ..network import split_layers
from ..records.layout import Stage
from .prior import Prior, parameter_variance
from .restarts import learn


def refine(problem, learned, seed):
    """The `Learned` network, after a fit to all rows, with whole steps.

    ``problem.data`` holds all rows; ``learned`` comes from a fit to the stages.
    """
    if problem.data.run.step == 1.0:
        return _with_whole_steps(learned, problem.data.run, problem.starts)
    return _fit_all_rows(problem, learned.start, seed)


def resume(problem, start, seed):
    """The `Learned` network of a fit to all rows that goes on from an earlier one.

    Parameters
    ----------
    start : Start
        Of a network with whole steps, for the same sessions and in the scaling of the
        problem.
    """
    start = _with_small_steps(start, problem.data.run, problem.starts)
    return _fit_all_rows(problem, start, seed)


def _fit_all_rows(problem, start, seed):
    strengths = problem.settings.reg_lambda / problem.data.run.step
    fine = problem._replace(
        stages=(Stage(problem.data, np.inf),),
        settings=problem.settings._replace(reg_lambda=strengths),
        start=start,
        starts=None,
        n_screening=0,
        reduce=None,
        predicts=None,
    )
    learned = learn(fine, seed).networks[0]
    return _with_whole_steps(learned, problem.data.run, problem.starts)


def with_whole_steps(data):
    """The data of all rows for networks with whole steps."""
    X = data.run.X.copy()
    X[data.run.begin] *= data.run.step
    held = np.zeros_like(data.run.held)
    return data._replace(run=data.run._replace(X=X, held=held, step=1.0))


def _with_whole_steps(learned, run, starts):
    """The same network as x(t+1) = f(x(t), u(t)), with its covariance and its prior."""
    network = learned.fitted.network
    if not run.held.any():
        return learned
    factor = _step_factors(network, run.step, starts)
    theta = network.theta * factor + _held_weights(network, run, starts)
    network = network._replace(theta=theta)
    kept = factor[network.keep]
    covariance = learned.fitted.covariance * np.outer(kept, kept)
    return learned._replace(
        fitted=learned.fitted._replace(network=network, covariance=covariance),
        start=learned.start._replace(
            network=network, prior=_scaled_prior(learned.start.prior, factor)
        ),
    )


def _with_small_steps(start, run, starts):
    """The inverse of `_with_whole_steps`, of a `Start`."""
    network = start.network
    if not run.held.any():
        return start
    factor = _step_factors(network, run.step, starts)
    theta = (network.theta - _held_weights(network, run, starts)) / factor
    # a pruned weight may come from a step of another length
    theta[~network.keep] = 0.0
    prior = _scaled_prior(start.prior, 1.0 / factor)
    return start._replace(network=network._replace(theta=theta), prior=prior)


def _step_factors(network, step, starts):
    """Parameters of whole steps over those of small ones."""
    factor = np.ones(len(network.theta))
    blocks = split_layers(factor, network.sizes, network.skip)
    n_states = starts.n_states
    sessions = network.units[0] >= starts.sizes[0] - starts.n_sessions
    for weights, biases in (blocks[len(network.sizes) - 2], blocks[-1]):
        weights[:, :n_states] = step
        if len(biases):
            biases[:n_states] = step
    # where sessions begin is the same for every step
    blocks[-1][0][sessions] = 1.0
    return factor


def _held_weights(network, run, starts):
    """What stays of a state in a small step, as weights (n_parameters,)."""
    values = np.zeros(len(network.theta))
    linear = split_layers(values, network.sizes, network.skip)[-1][0]
    read = network.units[0][network.units[0] < starts.n_states]
    linear[np.arange(len(read)), read] = run.held[read]
    return values


def _scaled_prior(prior, factor):
    """The prior of weights so many times larger, each with a variance of its own."""
    labels = np.where(prior.labels[0] >= 0, np.arange(len(factor)), -1)
    return Prior((labels,), (parameter_variance(prior) * factor**2,))
