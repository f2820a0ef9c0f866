"""The number of states of a network: fits with fewer and fewer, as long as they pay.

A network with states to spare often ends in an optimum from which no single state can
be taken away, although a network that begins without it is better. So after a fit with
all states there are fits with as many as it has left, with one less, and so on, until
one more would have been worth its price (see `state_order`).
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..kernels.activations import ACTIVATION_NAMES
from .all_rows import refine
from .restarts import learn
from .stages import FIRST_STAGE_CYCLES
from .state_order import count_states, price

# Fraction of the starts that a fit with fewer states has; the activation is settled.
STARTS = 0.5
# These starts do not go on where their objectives, behind the screening, are so much
# higher per observation than in the end those of a fit with more states, or twice as
# much as that one has still won.
CATCHES_UP = 0.5


def learn_states(problem, seed, *, n_starts, n_networks, n_jobs):
    """The `result.Fit` with the smallest number of states that pays, to all rows.

    Arguments as of `restarts.learn`. All networks of an ensemble come from one fit.
    Fits whose best network did not end by itself keep their states.
    """
    fit = _search(problem, seed, n_starts, n_networks, n_jobs)
    networks = tuple(refine(problem, one, seed) for one in fit.networks)
    return fit._replace(networks=networks)


def _search(problem, seed, n_starts, n_networks, n_jobs):
    options = {"n_networks": n_networks, "n_jobs": n_jobs}
    fit = learn(problem, seed, n_starts=n_starts, **options)
    if not fit.networks[0].finished:
        return fit
    n_starts = max(n_networks, int(STARTS * n_starts))
    order = _order(problem, fit)
    tried = min(order, problem.starts.n_states - 1)
    # bound: each turn tries fewer states
    while tried > problem.starts.n_levels:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            smaller = learn(
                _with_fewer(problem, fit, tried),
                seed + tried,
                n_starts=n_starts,
                hopeless=_hopeless(problem, fit, tried),
                **options,
            )
        if smaller and _is_better(problem, smaller, fit):
            fit, order = smaller, _order(problem, smaller)
        elif tried < order:
            break
        tried = min(tried, order) - 1
    return fit


def _order(problem, fit):
    """Number of states of the best network."""
    return count_states(fit.networks[0].fitted.network, problem.starts.n_states)


def _is_better(problem, smaller, fit):
    if smaller.networks[0].diverged:
        return False
    if smaller.predicts != fit.predicts:
        return smaller.predicts
    return _cost(problem, smaller) <= _cost(problem, fit)


def _hopeless(problem, fit, n_states):
    """The objective behind the screening from which so many states cannot catch up."""
    best = fit.networks[0]
    screened = best.history["objective_pruned"][:FIRST_STAGE_CYCLES][-1]
    data = problem.stages[-1].data
    still = max(CATCHES_UP * data.n_observations, 2.0 * (screened - best.objective))
    return _cost(problem, fit) - n_states * price(problem.settings, data) + still


def _cost(problem, fit):
    """Mean objective of the networks, with the price of their states."""
    n_states = problem.starts.n_states
    orders = [count_states(one.fitted.network, n_states) for one in fit.networks]
    objectives = [one.objective for one in fit.networks]
    of_a_state = price(problem.settings, problem.stages[-1].data)
    return np.mean(objectives) + of_a_state * np.mean(orders)


def _with_fewer(problem, fit, n_states):
    """The problem whose networks begin with so many states."""
    activation = ACTIVATION_NAMES[fit.networks[0].fitted.network.activation]
    starts = problem.starts._replace(n_read=n_states, activations=(activation,))
    return problem._replace(starts=starts)
