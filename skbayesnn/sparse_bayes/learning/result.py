"""What a fit gives back: learned networks, and all that is known of them."""

from typing import NamedTuple

import numpy as np

from ..._saved_state import saved_as
from ..fitted import FittedNetwork
from . import cycle
from .curvature import Diagonal, diagonal_of, posterior_covariance
from .problem import FULL_CURVATURE_LIMIT, Start


@saved_as("Learned")
class Learned(NamedTuple):
    """One network, learned.

    fitted : what a prediction needs
    start : what a warm start resumes from
    history : dict of arrays, one entry per cycle
    objective : of the last cycle, see `cycle`
    log_marginal_likelihood : in the user's units of y
    n_observations : number of errors that the last stage squared
    finished : whether the fit ended because nothing changed any more
    diverged : whether the free run of the last stage left the plausible range; the
        network is then that of an earlier stage
    """

    fitted: FittedNetwork
    start: Start
    history: dict
    objective: float
    log_marginal_likelihood: float
    n_observations: int
    finished: bool
    diverged: bool


class Fit(NamedTuple):
    """The networks that a fit keeps, the best first.

    n_diverged : number of starts that diverged
    interrupted : whether Ctrl-C ended the fit
    predicts : whether the best one predicts its own record, see `Problem`
    """

    networks: tuple
    n_diverged: int
    interrupted: bool
    predicts: bool = True


def learned_network(problem, run):
    """The `Learned` of a `restarts.Run`."""
    settings, state, scaling = problem.settings, run.state, problem.scaling
    network = state.network
    change_of_units = float(state.data.counts @ np.log(scaling.y_scale))
    evidence = cycle.log_marginal_likelihood(settings, state)
    return Learned(
        fitted=_fitted_network(problem, state),
        start=Start(
            network,
            state.prior,
            state.noise,
            state.likelihood,
            scaling,
            problem.groups,
        ),
        history=_history(run.history, scaling),
        objective=state.objective,
        log_marginal_likelihood=evidence - change_of_units,
        n_observations=state.data.n_observations,
        finished=cycle.converged(state) and not run.diverged,
        diverged=run.diverged,
    )


def _fitted_network(problem, state):
    """The network with its covariance and the standard deviations of its errors."""
    noise_std = state.likelihood.noise_std(state.noise, state.data.weights)
    network = state.network
    covariance = _covariance(problem.settings, state)
    fitted = FittedNetwork(
        network,
        problem.scaling,
        covariance,
        noise_std,
        degrees_of_freedom=state.likelihood.degrees_of_freedom,
        joint_root=_joint_root(state.data, network),
    )
    if problem.one_step is None:
        return fitted
    data = problem.one_step.select_inputs(network.units[0])
    step_std = np.sqrt(data.squared_errors(network) / data.counts)
    return fitted._replace(noise_std=step_std, free_run_std=noise_std)


def _joint_root(data, network):
    """`FittedNetwork.joint_root`, from the rows in which all outputs were measured."""
    if len(data.counts) == 1:
        return None
    errors = np.moveaxis(data.residuals(network), data.output_axis, -1)
    if data.sample_weight is not None:
        errors = errors * np.sqrt(data.sample_weight)[:, None]
    errors = errors[np.isfinite(errors).all(axis=1)]
    # unlike their correlation, it is defined where an output has no errors
    products = errors.T @ errors
    size = np.sqrt(np.diag(products))
    size[size == 0.0] = 1.0
    correlation = products / np.outer(size, size)
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _covariance(settings, state):
    """Posterior covariance at the temperature of the fit."""
    curvature = cycle.used_curvature(settings, state)
    keep = state.network.keep
    if np.count_nonzero(keep) > FULL_CURVATURE_LIMIT:
        curvature = Diagonal(diagonal_of(curvature))
    variance = cycle.effective_variance(settings, state)
    covariance = posterior_covariance(curvature, variance, state.noise)
    lambdas = cycle.strengths(settings, state.network)[keep]
    root = np.sqrt(np.where(lambdas > 0.0, lambdas, 1.0))
    if covariance.ndim == 1:
        return covariance * root**2
    return covariance * root * root[:, None]


def _history(cycles, scaling):
    """Columns of the cycles' records, errors in the units of y."""
    infos = [one.info for one in cycles]
    columns = {
        name: np.array([getattr(i, name) for i in infos]) for name in infos[0]._fields
    }
    mean = [one.info.squared_errors / one.counts for one in cycles]
    rmse = np.sqrt(np.array(mean)) * scaling.y_scale
    return {
        "objective_start": columns["objective_start"],
        "objective": columns["objective"],
        "objective_pruned": columns["objective_pruned"],
        "rmse": rmse[:, 0] if len(scaling.y_scale) == 1 else rmse,
        "n_active_weights": columns["n_weights"],
        "n_active_units": columns["n_units"],
        "n_iter": columns["n_iter"],
        "horizon": np.array([one.horizon for one in cycles], dtype=float),
    }
