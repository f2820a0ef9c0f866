r"""Ascent of the likelihood itself, where all states of the features can be listed.

Of few features no chain is needed: with all states v, of probabilities p(v) by the data
and q(v) by the model, the gradient (4) of the mean log-likelihood is

.. math:: \sum_v (p(v) - q(v)) E[h | v] v',

and L-BFGS follows it in a small fraction of the steps that noise allows.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax

from ..model import make_rbm
from .exact import all_states

# Features up to which a step takes no longer than one of chains.
_MAX_FEATURES = 12
# Steps that L-BFGS remembers, and bound of all parameters, beyond which a unit is a
# step function: the likelihood of few rows may grow without one.
_MEMORY, _LARGEST = 20, 100.0


def can_list(units, n_features):
    """Whether the states of so many visible units are few enough."""
    return units.enumerable and n_features <= _MAX_FEATURES


def shares(blocks, n_features):
    """(2**n_features,) the fraction of rows in each state, in blocks of 0 and 1."""
    places = 2 ** np.arange(n_features)
    counts = np.zeros(2**n_features)
    for rows in blocks:
        counts += np.bincount(rows.astype(np.int64) @ places, minlength=len(counts))
    return counts / counts.sum()


def probabilities(rbm):
    """(2**n_features,) of all states."""
    states = all_states(len(rbm.visible))
    inputs = states @ rbm.weights.T.astype(np.float64) + rbm.hidden
    return softmax(np.logaddexp(0.0, inputs).sum(axis=1) + states @ rbm.visible)


def ascend(rbm, of_data, n_steps, weight_decay):
    """The model after some steps of L-BFGS.

    ``of_data`` are the `shares` of the data, and ``weight_decay / 2`` is the strength
    of the squared weights.
    """
    states, shape = all_states(len(rbm.visible)), rbm.weights.shape
    size = rbm.weights.size

    def parts(theta):
        hidden, visible = theta[size : size + shape[0]], theta[size + shape[0] :]
        return theta[:size].reshape(shape), hidden, visible

    def descent(theta):
        """The negative objective and its gradient."""
        weights, hidden, visible = parts(theta)
        inputs = states @ weights.T + hidden
        values = np.logaddexp(0.0, inputs).sum(axis=1) + states @ visible
        log_partition = logsumexp(values)
        penalty = 0.5 * weight_decay * float(theta[:size] @ theta[:size])
        difference = np.exp(values - log_partition) - of_data
        by_hidden = expit(inputs) * difference[:, None]
        gradient = (by_hidden.T @ states).ravel() + weight_decay * theta[:size]
        gradient = [gradient, by_hidden.sum(axis=0), difference @ states]
        return log_partition - of_data @ values + penalty, np.concatenate(gradient)

    start = np.concatenate([rbm.weights.ravel(), rbm.hidden, rbm.visible])
    start = np.clip(start.astype(np.float64), -_LARGEST, _LARGEST)
    found = minimize(
        descent,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(-_LARGEST, _LARGEST)] * len(start),
        options={"maxiter": n_steps, "maxcor": _MEMORY, "ftol": 0.0, "gtol": 0.0},
    )
    return make_rbm(*parts(found.x), units=rbm.units)
