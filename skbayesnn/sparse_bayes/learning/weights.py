r"""Inner fit of the weights: equation (15) with its penalty as a quadratic.

All three solvers lower

.. math:: F(w) = \|y - \mathrm{Net}(w)\|^2 / \sigma^2 + \sum_i p_i w_i^2,

with the precisions :math:`p_i = \lambda / \upsilon_i` held fixed.  The quadratic and
:math:`2 \lambda \omega_i |w_i|` are the two sides of the inequality before equation
(38) and touch at the current hyper-parameters, so the outer loop is the same
convex-concave procedure, but the inner problem is smooth.

A solver is a function ``(problem, fit, rng) -> WeightFit``; what is computed for its
result, and that it does not end at a larger ``F``, is seen to by `fit_weights`. A new
solver is one function and one entry of `SOLVERS`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError
from scipy.optimize import minimize

from ..network import Network
from ..records.residuals import FitData
from .curvature import (
    Linearization,
    damped_system,
    linearize,
    squared_error,
    with_curvature,
)

MAX_REJECTIONS = 12
MIN_DAMPING = 1e-9
# A bold first step from random weights can throw a wide network onto the saddle point
# where all weights are zero.
INITIAL_DAMPING = 1.0
ADAM_BATCH = 200
ADAM_RATE = 1e-2


class WeightProblem(NamedTuple):
    """What the weight fit of one cycle minimises, and when it ends.

    precision : (n_kept,) array, >= 0
    form : of the curvature at the result
    max_iter : largest number of iterations
    tol : an iteration that lowers ``F`` by less than this is the last
    """

    data: FitData
    precision: np.ndarray
    noise: float
    form: type
    max_iter: int
    tol: float


class WeightFit(NamedTuple):
    """Weights, the linearisation there, and what the solver remembers.

    linearization : None where a solver leaves it to `fit_weights`
    memory : damping of "lm", learning rate of "adam", unused by "lbfgs"
    """

    network: Network
    linearization: Linearization | None
    memory: float
    n_iter: int = 0


def fit_weights(solver, problem, fit, rng):
    """Lower ``F`` by the named solver, from the weights of ``fit``."""
    if not len(problem.precision):
        return fit._replace(n_iter=0)
    found = SOLVERS[solver].run(problem, fit, rng)
    if found.linearization is not None:
        return found
    after = _penalized(problem, squared_error(found.network, problem.data), found)
    if not after < penalized_error(problem, fit):
        # the start is the best that is known; a shorter step may do next time
        return fit._replace(memory=0.5 * found.memory, n_iter=found.n_iter)
    linearization = linearize(found.network, problem.data, problem.form)
    return found._replace(linearization=linearization)


def penalized_error(problem, fit):
    """``F`` where the network was linearised."""
    return _penalized(problem, fit.linearization.squared_error, fit)


def _penalized(problem, squared, fit):
    weights = fit.network.theta[fit.network.keep]
    penalty = float(problem.precision @ (weights * weights))
    return squared / problem.noise + penalty


def _with_weights(network, weights):
    theta = np.zeros_like(network.theta)
    theta[network.keep] = weights
    return network._replace(theta=theta)


def _levenberg_marquardt(problem, fit, rng):
    """Damped Gauss-Newton steps, the damping adapted to the success of the last one.

    Where ``F`` is quadratic no step is damped: the first one leads to its minimum, and
    another takes back what rounding has left.
    """
    data, precision, noise = problem.data, problem.precision, problem.noise
    objective = penalized_error(problem, fit)
    quadratic = data.errors_are_linear(fit.network)
    for n_iter in range(1, problem.max_iter + 1):
        network, linearization, damping, _ = fit
        weights = network.theta[network.keep]
        gradient = linearization.gradient / noise + precision * weights
        system = damped_system(linearization.curvature, precision, noise)
        descend = _step_to_minimum if quadratic else _descend
        trial, value, damping = descend(
            problem, network, system, gradient, damping, objective
        )
        if trial is None:
            # no descent direction is left above rounding; start gently next time
            return fit._replace(memory=INITIAL_DAMPING, n_iter=n_iter)
        if quadratic:
            # the same everywhere
            linearization = with_curvature(trial, data, linearization.curvature)
        else:
            linearization = linearize(trial, data, problem.form)
        damping = max(damping / 5.0, MIN_DAMPING)
        fit = WeightFit(trial, linearization, damping)
        if objective - value < problem.tol:
            break
        objective = value
    return fit._replace(n_iter=n_iter)


def _descend(problem, network, system, gradient, damping, objective):
    """The first step that lowers ``F``, ``F`` there, and its damping; or no step."""
    growth = 4.0
    for _ in range(MAX_REJECTIONS):
        trial = _trial_step(network, system, gradient, damping)
        if trial is not None:
            squared = squared_error(trial, problem.data)
            value = _penalized(problem, squared, WeightFit(trial, None, damping))
            if value < objective:
                return trial, value, damping
        # faster and faster: a prior may be weaker than the data by any factor
        damping = growth * max(damping, 1e-6)
        growth *= 2.0
    return None, objective, damping


def _step_to_minimum(problem, network, system, gradient, damping, objective):
    """As `_descend` where ``F`` is quadratic: a whole step lowers it, or nothing does.

    Steps are damped only where the curvature is singular.
    """
    trial = _trial_step(network, system, gradient, 0.0)
    if trial is None:
        return _descend(problem, network, system, gradient, damping, objective)
    squared = squared_error(trial, problem.data)
    value = _penalized(problem, squared, WeightFit(trial, None, 0.0))
    return (trial if value < objective else None), min(value, objective), damping


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


def _lbfgs(problem, fit, rng):
    """SciPy's L-BFGS-B, which keeps its own memory within a call only."""

    def objective(weights):
        trial = _with_weights(fit.network, weights)
        return _value_and_gradient(
            trial, problem.data, problem.precision, problem.noise
        )

    result = minimize(
        objective,
        fit.network.theta[fit.network.keep],
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": problem.max_iter,
            "ftol": 0.0,
            "gtol": 0.1 * np.sqrt(problem.tol),
        },
    )
    network = _with_weights(fit.network, result.x)
    return WeightFit(network, None, 0.0, max(1, int(result.nit)))


def _adam(problem, fit, rng):
    """Adam over shuffled mini-batches (Kingma and Ba, 2015), ``max_iter`` epochs."""
    rate, beta1, beta2 = fit.memory, 0.9, 0.999
    n_samples = problem.data.XT.shape[1]
    n_batches = max(1, n_samples // ADAM_BATCH)
    weights = fit.network.theta[fit.network.keep].copy()
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    step = 0
    for _ in range(problem.max_iter):
        for rows in np.array_split(rng.permutation(n_samples), n_batches):
            batch = problem.data.take(rows)
            trial = _with_weights(fit.network, weights)
            fraction = len(rows) / n_samples
            _, gradient = _value_and_gradient(
                trial, batch, fraction * problem.precision, problem.noise
            )
            gradient /= n_samples * fraction
            step += 1
            mean += (1.0 - beta1) * (gradient - mean)
            square += (1.0 - beta2) * (gradient * gradient - square)
            slope = mean / (1.0 - beta1**step)
            spread = np.sqrt(square / (1.0 - beta2**step)) + 1e-8
            weights = weights - rate * slope / spread
    network = _with_weights(fit.network, weights)
    return WeightFit(network, None, rate, problem.max_iter)


class Solver(NamedTuple):
    """A solver, and what it needs.

    memory : what it remembers at the start of a fit
    max_iter : iterations per cycle by default; a step of Levenberg-Marquardt does the
        work of dozens of the others'
    needs_whole_curvature : whether the diagonal of the curvature is not enough
    for_free_runs : whether it works without taking some of the rows at random
    """

    run: Callable
    memory: float
    max_iter: int
    needs_whole_curvature: bool = False
    for_free_runs: bool = True


SOLVERS = {
    "lm": Solver(_levenberg_marquardt, INITIAL_DAMPING, 3, needs_whole_curvature=True),
    "lbfgs": Solver(_lbfgs, 0.0, 50),
    "adam": Solver(_adam, ADAM_RATE, 20, for_free_runs=False),
}
