"""Weights of the networks of an ensemble, which were fitted to the same record."""

import numpy as np
from scipy.optimize import nnls

from ..kernels.recursion import run_path
from .runs_to_score import free_runs_of, gap_free_stretches
from .session_parts import held_out_rows

# What a diverged run stands for, in standard deviations of the outputs.
FAR_OFF = 1e6


def ensemble_weights(networks, weighting, strength, record, held_out_fraction):
    """Weights of learned networks, which sum to one.

    Parameters
    ----------
    networks : list of Learned
    weighting : {"uniform", "evidence", "validation"}
        Equal weights; posterior probabilities; or the weights whose mixture fits the
        ends of the sessions best.
    strength : float
        Of the prior: the temperature of the fit, for posterior probabilities.
    record : Record
    held_out_fraction : float
        How much of each session the fit did not see, for "validation".
    """
    if weighting == "validation" and len(networks) > 1:
        held_out = held_out_rows(record.starts, held_out_fraction)
        scaling = networks[0].fitted.scaling
        return stacking_weights(
            [one.fitted.network for one in networks], scaling, record, held_out
        )
    if weighting == "evidence":
        objective = np.array([one.objective for one in networks])
        return evidence_weights(objective, max(1.0, strength))
    return np.full(len(networks), 1.0 / len(networks))


def evidence_weights(objective, strength):
    """Posterior probabilities of the networks at the temperature of their fit."""
    relative = np.exp(-0.5 * (objective - objective.min()) / strength)
    return relative / relative.sum()


def stacking_weights(networks, scaling, record, held_out):
    """Nonnegative weights whose mixture fits the held-out free run best.

    They are equal where no run reaches a held-out row.
    """
    pieces = [slice(start, stop) for start, stop in gap_free_stretches(record)]
    data = free_runs_of(record, scaling, record.Y, pieces)
    runs = np.array([_path(network, data) for network in networks])
    before = record.lags.max_lag
    scored = np.concatenate([held_out[rows][before:] for rows in pieces])
    scored &= np.isfinite(runs).any(axis=(0, 2))
    paths, target = runs[:, scored].reshape(len(networks), -1), data.Y[scored].ravel()
    matrix = np.where(np.isfinite(paths), paths, FAR_OFF).T
    # a heavy row asks the weights to sum to one
    heavy = 1e3 * np.sqrt(len(target))
    matrix = np.vstack([matrix, np.full(len(networks), heavy)])
    weights, _ = nnls(matrix, np.append(target, heavy))
    total = weights.sum()
    n_networks = len(networks)
    return weights / total if total > 0.0 else np.full(n_networks, 1 / n_networks)


def _path(network, data):
    """Scaled outputs of free runs, NaN from the row on in which one diverges."""
    data = data.select_inputs(network.units[0])
    path = data.initial.copy()
    run_path(network.layers, data.run, path)
    return path
