r"""Ascent of the likelihood itself, where all states of the features can be listed.

Of few features no chain is needed: with all states v, of probabilities p(v) by the data
and q(v) by the model, the gradient (4) of the mean log-likelihood is

.. math:: \sum_v (p(v) - q(v)) E[h | v] v',

and L-BFGS follows it in a small fraction of the steps that noise allows.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from ..model import free_energy, hidden_means, make_rbm
from ..states import all_states

# Features up to which a step takes no longer than one of chains.
_MAX_FEATURES = 12
# Steps that L-BFGS remembers, and bound of all parameters, beyond which a unit is a
# step function: the likelihood of few rows may grow without one.
_MEMORY, _LARGEST = 20, 100.0


def can_list(units, n_features):
    """Whether the states of so many visible units are few enough."""
    return units.enumerable and n_features <= _MAX_FEATURES


def probabilities(rbm):
    """(2**n_features,) of all states."""
    return softmax(-free_energy(rbm, all_states(len(rbm.visible))))


def ascend(rbm, of_data, n_steps, weight_decay):
    """The model after some steps of L-BFGS.

    ``of_data`` (2**n_features,) are the fractions of the data in each state, and
    ``weight_decay / 2`` is the strength of the squared weights.
    """
    states, shape = all_states(len(rbm.visible)), rbm.weights.shape
    size = rbm.weights.size

    def model(theta):
        hidden, visible = theta[size : size + shape[0]], theta[size + shape[0] :]
        parts = {"hidden": hidden, "visible": visible}
        return rbm._replace(weights=theta[:size].reshape(shape), **parts)

    def descent(theta):
        """The negative objective and its gradient."""
        one = model(theta)
        values = -free_energy(one, states)
        log_partition, weights = logsumexp(values), theta[:size]
        penalty = 0.5 * weight_decay * float(weights @ weights)
        difference = np.exp(values - log_partition) - of_data
        by_hidden = hidden_means(one, states) * difference[:, None]
        gradient = (by_hidden.T @ states).ravel() + weight_decay * weights
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
    return make_rbm(*model(found.x)[:3], units=rbm.units)
