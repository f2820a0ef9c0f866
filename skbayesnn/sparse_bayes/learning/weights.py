r"""Inner fit of the weights: equation (15) with its penalty as a quadratic.

All three solvers lower

.. math:: F(w) = \|y - \mathrm{Net}(w)\|^2 / \sigma^2 + \sum_i p_i w_i^2,

with the precisions :math:`p_i = \lambda / \upsilon_i` held fixed.  The quadratic and
:math:`2 \lambda \omega_i |w_i|` are the two sides of the inequality before equation
(38) and touch at the current hyper-parameters, so the outer loop is the same
convex-concave procedure, but the inner problem is smooth.

A solver takes and returns a `WeightFit`; it never returns a larger ``F``.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError
from scipy.optimize import minimize

from ..network import Network
from .curvature import damped_system, linearize, squared_error

MAX_REJECTIONS = 12
MIN_DAMPING = 1e-9
ADAM_BATCH = 200
ADAM_RATE = 1e-2


class WeightFit(NamedTuple):
    """Weights, the linearisation there, and what the solver remembers.

    memory : damping of "lm", learning rate of "adam", unused by "lbfgs"
    """

    network: Network
    linearization: NamedTuple
    memory: float
    n_iter: int = 0


def initial_memory(solver):
    # a bold first step from random weights can throw a wide network onto the saddle
    # point where all weights are zero
    return {"lm": 1.0, "lbfgs": 0.0, "adam": ADAM_RATE}[solver]


def fit_weights(solver, fit, data, precision, noise, form, max_iter, tol, rng):
    """Lower ``F`` by at most ``max_iter`` iterations of the named solver.

    Parameters
    ----------
    precision : (n_kept,) array, >= 0
    tol : float
        Stop when an iteration lowers ``F`` by less than this.
    """
    if not len(precision):
        return fit._replace(n_iter=0)
    if solver == "lm":
        return _levenberg_marquardt(fit, data, precision, noise, form, max_iter, tol)
    run = _lbfgs if solver == "lbfgs" else _adam
    weights, memory, n_iter = run(
        fit, data, precision, noise, max_iter=max_iter, tol=tol, rng=rng
    )
    network = _with_weights(fit.network, weights)
    before = penalized_error(fit.linearization, fit.network, precision, noise)
    after = _penalized(squared_error(network, data), network, precision, noise)
    if not after < before:
        # the start is the best that is known; a shorter step may do next time
        return fit._replace(memory=0.5 * memory, n_iter=n_iter)
    return WeightFit(network, linearize(network, data, form), memory, n_iter)


def _with_weights(network, weights):
    theta = np.zeros_like(network.theta)
    theta[network.keep] = weights
    return network._replace(theta=theta)


def _penalized(squared, network, precision, noise):
    weights = network.theta[network.keep]
    return squared / noise + float(precision @ (weights * weights))


def penalized_error(linearization, network, precision, noise):
    """``F`` where the network was linearised."""
    return _penalized(linearization.squared_error, network, precision, noise)


def _levenberg_marquardt(fit, data, precision, noise, form, max_iter, tol):
    """Damped Gauss-Newton steps on ``F``, the damping after the last one's success."""
    network, linearization, damping, _ = fit
    objective = penalized_error(linearization, network, precision, noise)
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        weights = network.theta[network.keep]
        gradient = linearization.gradient / noise + precision * weights
        system = damped_system(linearization.curvature, precision, noise)
        growth = 4.0
        for _ in range(MAX_REJECTIONS):
            trial = _trial_step(network, system, gradient, damping)
            if trial is not None:
                value = _penalized(squared_error(trial, data), trial, precision, noise)
                if value < objective:
                    break
            # faster and faster: a prior may be weaker than the data by any factor
            damping = growth * max(damping, 1e-6)
            growth *= 2.0
        else:
            # no descent direction is left above rounding; start gently next time
            damping = initial_memory("lm")
            break
        gain = objective - value
        network, objective = trial, value
        damping = max(damping / 5.0, MIN_DAMPING)
        linearization = linearize(network, data, form)
        if gain < tol:
            break
    return WeightFit(network, linearization, damping, n_iter)


def _trial_step(network, system, gradient, damping):
    try:
        step = system.solve(gradient, damping)
    except LinAlgError:
        return None
    return _with_weights(network, network.theta[network.keep] - step)


def _value_and_gradient(network, data, precision, noise):
    """``F / 2`` and its gradient by the kept parameters."""
    loss, gradient = data.loss_gradient(network)
    weights = network.theta[network.keep]
    value = loss / noise + 0.5 * float(precision @ (weights * weights))
    return value, gradient[network.keep] / noise + precision * weights


def _lbfgs(fit, data, precision, noise, *, max_iter, tol, rng):
    def objective(weights):
        trial = _with_weights(fit.network, weights)
        return _value_and_gradient(trial, data, precision, noise)

    start = fit.network.theta[fit.network.keep]
    result = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "ftol": 0.0, "gtol": 0.1 * np.sqrt(tol)},
    )
    return result.x, 0.0, max(1, int(result.nit))


def _adam(fit, data, precision, noise, *, max_iter, tol, rng):
    """Adam over shuffled mini-batches (Kingma and Ba, 2015), ``max_iter`` epochs."""
    rate, beta1, beta2 = fit.memory, 0.9, 0.999
    n_samples = data.XT.shape[1]
    n_batches = max(1, n_samples // ADAM_BATCH)
    weights = fit.network.theta[fit.network.keep].copy()
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    step = 0
    for _ in range(max_iter):
        for rows in np.array_split(rng.permutation(n_samples), n_batches):
            batch = data.take(rows)
            trial = _with_weights(fit.network, weights)
            share = len(rows) / n_samples
            _, gradient = _value_and_gradient(trial, batch, share * precision, noise)
            gradient /= n_samples * share
            step += 1
            mean += (1.0 - beta1) * (gradient - mean)
            square += (1.0 - beta2) * (gradient * gradient - square)
            slope = mean / (1.0 - beta1**step)
            spread = np.sqrt(square / (1.0 - beta2**step)) + 1e-8
            weights = weights - rate * slope / spread
    return weights, rate, max_iter
