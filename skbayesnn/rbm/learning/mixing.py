"""The chains of a training while the model stands still.

They tell how fast the chains move, and what the model is like: after some steps they
are draws from it, as far as chains go.
"""

from itertools import islice

import numpy as np

from ..model import Chains, gibbs, is_standard
from ..states import by_feature, draw_from, product
from . import jumps, tempering
from .contrastive import jump, jump_interval

# Steps after which chains that have followed a changing model count as draws from it,
# and steps from one draw to the next.
_RELAXED, _SPACED = 20, 20


def chain_correlation(state, n_steps, seed, rows=None):
    """How far the chains remember their visible states, 1 for chains that stand still.

    The correlation over the chains of the states with those so many steps later, all
    features together; with ``rows`` of data, of steps with `jumps`. The chains of
    ``state`` stay where they are.
    """
    path = _path(state.rbm, state.chains, np.uint64(seed), rows)
    one, other = (
        states.astype(float) - states.astype(float).mean(axis=0)
        for states in islice(path, 0, n_steps + 1, n_steps)
    )
    norm = np.sqrt(np.square(one).sum() * np.square(other).sum())
    return float((one * other).sum() / norm) if norm > 0.0 else 1.0


def draws(rbm, state, n_draws, seed, rows=None):
    """Visible states (n_draws, n_features) of a model, by the chains of its training.

    Parameters
    ----------
    rbm : RBM
        The model: that of ``state``, or its average.
    state : State
        Its chains, which stay where they are, are persistent ones.
    n_draws : int
    seed : int
    rows : ndarray of shape (n_rows, n_features), optional
        Rows of data, for steps with `jumps`.
    """
    path = _path(rbm, state.chains, np.uint64(seed), rows)
    found, n_found = [], 0
    # bound: each of these adds all chains, of which there is at least one
    for states in islice(path, _RELAXED, None, _SPACED):
        found.append(states)
        n_found += len(states)
        if n_found >= n_draws:
            break
    return np.concatenate(found)[:n_draws]


def _path(rbm, chains, seed, rows):
    """Visible states of the chains, before the first step and after each."""
    transposed = by_feature(rbm.weights)
    if isinstance(chains, tempering.Replicas):
        return _replicas(rbm, transposed, chains, seed, rows)
    if is_standard(rbm):
        return _standard(rbm, transposed, chains, seed, rows)
    return _fractional(rbm, chains, seed)


def _replicas(rbm, transposed, replicas, seed, rows):
    x, interval = _jumps(rbm, transposed, rows, replicas)
    number = 0
    # bound: what the caller takes
    while True:
        yield replicas.states[-1]
        number += 1
        if x is not None and number % interval == 0:
            replicas = jump(rbm, transposed, x, replicas, seed, number)
        replicas = tempering.advance(rbm, transposed, replicas, seed, number)


def _standard(rbm, transposed, h, seed, rows):
    x, interval = _jumps(rbm, transposed, rows, h)
    number = 0
    # bound: what the caller takes
    while True:
        v = rbm.units.draw_from(h, rbm.weights, rbm.visible, (seed, 2 * number, 0))
        yield v
        h = draw_from(v, transposed, rbm.hidden, (seed, 2 * number + 1, 0))
        if x is not None and number % interval == 0:
            h, _ = jumps.move(rbm, x, h, seed, number)
        number += 1


def _jumps(rbm, transposed, rows, chains):
    """Inputs of the hidden units at the rows to jump to, and steps between jumps.

    None without rows.
    """
    if rows is None:
        return None, 0
    return product(rows, transposed), jump_interval(rbm, chains, len(rows))


def _fractional(rbm, states, seed):
    chains = Chains(states, seed, 0, 0)
    # bound: what the caller takes
    while True:
        yield chains.states
        chains, _ = gibbs(rbm, chains, 1)
