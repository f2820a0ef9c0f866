"""States that many rows have in common, far from all others: each gets its own unit.

An example are ballots of those who were absent: the same in a quarter of the rows, and
hundreds of features from any other. Gibbs steps neither find nor leave such a state. A
training does not learn, then, how likely it has made it, and both directions of
annealing miss it.

No chain is needed for a single state. The training sees the other rows alone. Then each
lone state a gets a unit with the inputs

    x(v) = c - kappa d(v, a),

where d counts the features that differ. It multiplies the unnormalised probability
f(v) by 1 + exp(x(v)). c makes the state as likely as it is in the rows. All other
states together change by less than exp(-10) of that, because kappa exceeds by 10 + log
n what one feature can add to log f: (1 - 2 a_i) b_i + sum_j max(0, (1 - 2 a_i) w_ji).
"""

from typing import NamedTuple

import numpy as np

from ..._random import Stream
from ..._sklearn import one_blas_thread
from .. import model as rbm_model
from . import tracking
from .row_probabilities import log_probabilities
from .start import base_of

# Least fraction of the rows, and least number of them.
_FRACTION, _LEAST_ROWS = 0.01, 5
# Least distance to the next other row, as a fraction of the mean distance to them, and
# in features. Gibbs steps cross a few features: such a state, as the empty one of rows
# with one or two ones, is learned with the others. A model of those alone would have to
# be unlikely there, which takes most of its units.
_DISTANCE, _LEAST_DISTANCE = 0.5, 10
# Least fraction of the rows that other states must have.
_OTHERS = 0.5
# What a unit adds to all other states, as a logarithm of its state's probability.
_LEAKAGE = -10.0
# Temperatures of the estimate that their probabilities are relative to.
_N_BETAS = 2000


class LoneStates(NamedTuple):
    """Lone states, and the fraction of the rows that each has."""

    states: np.ndarray
    """(n_lone, n_features) uint8"""
    fractions: np.ndarray
    """(n_lone,) float64"""

    def __len__(self):
        return len(self.states)


def none(rows):
    """No lone states, of as many features."""
    return LoneStates(np.zeros((0, rows.n_features), dtype=np.uint8), np.zeros(0))


def set_aside(job, verbose=False):
    """The job without the rows of lone states, and these.

    Nothing is set aside where too few other rows are left.
    """
    lone = _find(job.train)
    if not len(lone):
        return job, lone
    parts = {}
    for name in ("train", "validation", "whole"):
        rows = getattr(job, name)
        if rows is None:
            continue
        others = rows.without(lone.states)
        if len(others) < _OTHERS * len(rows):
            return job, none(rows)
        parts[name] = others
    if verbose:
        print(
            f"set aside: {100 * lone.fractions.sum():.0f} % of the rows, which share a "
            "state far from others"
        )
    return job._replace(**parts), lone


def finish(training, rbm, lone, job, n_jobs):
    """A training and its model, with a unit for each lone state.

    Returns the training, the model, and the states that have got a unit.
    """
    if not len(lone):
        return training, rbm, lone.states
    rbm, states = give_back(rbm, lone, job, n_jobs)
    # the state of the training lacks the new units: what goes on starts from the model
    return training._replace(state=None), rbm, states


def give_back(rbm, lone, job, n_jobs):
    """The model with a unit for each lone state, and the states that have got one.

    Parameters
    ----------
    rbm : RBM
        Trained on the rows of ``job``, without the lone states.
    lone : LoneStates
    job : Job
    n_jobs : int or None

    Returns
    -------
    rbm : RBM
        The new units are the last ones.
    states : ndarray of shape (n_lone, n_features), uint8
        Those to which ``rbm`` gave less than their fraction of the rows.
    """
    base, number = base_of(job.train), int(Stream.LONE_STATES)
    with one_blas_thread():
        measured = tracking.measure(rbm, base, job, number, _N_BETAS, n_jobs)
    mean = log_probabilities(rbm, job.validation).mean()
    log_partition = mean - measured.validation
    wanted = log_partition + np.log(lone.fractions) - np.log1p(-lone.fractions.sum())
    excess = wanted - rbm_model.unnormalised_log_probability(rbm, lone.states)
    lacking = excess > 0.0
    states, excess = lone.states[lacking], excess[lacking]
    # log(exp(excess) - 1), which a small excess would make large and negative
    inputs = excess + np.log(-np.expm1(-excess))
    signs = 2.0 * states - 1.0
    kappa = _steepness(rbm, signs)
    weights = kappa[:, None] * signs
    biases = inputs - kappa * states.sum(axis=1)
    return rbm_model.append(rbm, weights, biases), states


def _steepness(rbm, signs):
    """Weights that leave hardly anything to the neighbours of the states."""
    n_features = signs.shape[1]
    gain = -signs * rbm.visible
    for k, sign in enumerate(signs):
        gain[k] += np.maximum(0.0, -sign * rbm.weights).sum(axis=0)
    gain = np.maximum(0.0, gain.max(axis=1, initial=0.0))
    return gain + np.log(n_features) - _LEAKAGE


def _find(rows):
    """The lone states of some rows, most often none."""
    if not rows.are_states:
        return none(rows)
    packed = np.concatenate([np.packbits(V, axis=1) for V in rows.blocks()])
    packed = np.ascontiguousarray(packed).view(f"V{packed.shape[1]}").ravel()
    _, first, counts = np.unique(packed, return_index=True, return_counts=True)
    frequent = counts >= max(_LEAST_ROWS, _FRACTION * len(rows))
    index, fractions = first[frequent], counts[frequent] / len(rows)
    states = rows.states(index)
    lone = np.array([_is_lone(rows, state) for state in states], dtype=bool)
    return LoneStates(states[lone], fractions[lone])


def _is_lone(rows, state):
    distances = np.concatenate([(V != state).sum(axis=1) for V in rows.blocks()])
    distances = distances[distances > 0]
    if not len(distances):
        return False
    return distances.min() >= max(_LEAST_DISTANCE, _DISTANCE * distances.mean())
