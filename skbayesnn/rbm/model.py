"""The restricted Boltzmann machine as pure functions: energies and Gibbs sampling.

The model is (11) of Ping, Liu and Ihler,

    log p(v) = sum_i c_i softplus(w_i . v + b_i) + b . v - log Z,

the standard RBM where all c_i are 1. Hidden units are binary. What depends on the kind
of the visible units is in `visible`. Arithmetic is float32.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from .._saved_state import saved_as
from .kernels import units as kernels
from .states import by_feature, draw, product
from .visible import BINARY, BinaryUnits

# Rows of a block where a whole data set passes through the hidden layer.
BLOCK_ROWS = 2048
# Rows from which the products of states are worth the weights' transposition.
_MANY_ROWS = 64
# A step of the chains draws the hidden units, then the visible ones.
_DRAWS_PER_STEP = 2


@saved_as("RBM")
class RBM(NamedTuple):
    """Parameters, float32 and C-contiguous, and the kind of the visible units."""

    weights: np.ndarray
    """(n_units, n_features)"""
    hidden: np.ndarray
    """(n_units,) biases of the hidden units"""
    visible: np.ndarray
    """(n_features,) biases of the visible units"""
    unit_weights: np.ndarray
    """(n_units,) the c_i"""
    units: BinaryUnits = BINARY
    """what the visible units are"""


@saved_as("Chains")
class Chains(NamedTuple):
    """Markov chains over visible states.

    Chain i of step s draws its numbers from (seed, s, first_row + i): chains may be
    split into blocks as one likes.
    """

    states: np.ndarray
    """(n_chains, n_features) as the visible units draw them: uint8, 0 or 1, for binary
    ones; float32 where values are clamped that are neither"""
    seed: np.uint64
    step: int
    first_row: int


class Clamp(NamedTuple):
    """Visible units that are held."""

    mask: np.ndarray
    """bool, broadcastable to (n_chains, n_features)"""
    values: np.ndarray
    """the same: uint8, 0 or 1, or float32"""


def part_of(clamp, chains):
    """The `Clamp` of some chains, where those of all may be the same."""
    return Clamp(*(a[chains] if len(a) > 1 else a for a in clamp))


def make_rbm(weights, hidden, visible, unit_weights=None, units=BINARY):
    """An RBM that owns its arrays."""
    if unit_weights is None:
        unit_weights = np.ones(len(weights))
    arrays = (weights, hidden, visible, unit_weights)
    own = (np.array(a, dtype=np.float32, order="C", copy=True) for a in arrays)
    return RBM(*own, units)


def independent_units(visible, units=BINARY):
    """The model without hidden units."""
    return make_rbm(
        np.zeros((0, len(visible))), np.zeros(0), visible, np.zeros(0), units
    )


def is_standard(rbm):
    """Whether all unit weights are 1."""
    return bool((rbm.unit_weights == 1.0).all())


def copy(rbm):
    """The model with arrays of its own."""
    return RBM(*(array.copy() for array in rbm[:4]), rbm.units)


def zeros_like(rbm):
    """Zeros in the shapes of the parameters."""
    return RBM(*(np.zeros_like(array) for array in rbm[:4]), rbm.units)


def select(rbm, index):
    """The model of some of the hidden units."""
    return make_rbm(
        rbm.weights[index],
        rbm.hidden[index],
        rbm.visible,
        rbm.unit_weights[index],
        rbm.units,
    )


def append(rbm, weights, biases):
    """The standard model with more units, one per row of ``weights``."""
    return make_rbm(
        np.vstack([rbm.weights, weights]),
        np.append(rbm.hidden, biases),
        rbm.visible,
        np.append(rbm.unit_weights, np.ones(len(np.atleast_2d(weights)))),
        rbm.units,
    )


def shrink(rbm, norm, base, V):
    """The model with its units' inputs scaled down, so that |w| is at most ``norm``.

    Visible biases become those that leave the base rates (log-odds ``base``) as they
    are, to first order: base - w' E[h], by the mean hidden states over ``V``.
    """
    lengths = np.linalg.norm(rbm.weights, axis=1)
    scale = np.minimum(1.0, norm / np.maximum(lengths, 1e-12)).astype(np.float32)
    weights, hidden = rbm.weights * scale[:, None], rbm.hidden * scale
    small = rbm._replace(weights=weights, hidden=hidden)
    visible = base - hidden_means(small, V).mean(axis=0) @ weights
    return make_rbm(weights, hidden, visible, rbm.unit_weights, rbm.units)


def inputs(rbm, V):
    """Inputs of the hidden units, (n_samples, n_units), in the type of the parameters.

    ``V`` are states of uint8, or values of that type.
    """
    if V.dtype == np.uint8:
        if len(V) >= _MANY_ROWS and rbm.weights.dtype == np.float32:
            return product(V, by_feature(rbm.weights)) + rbm.hidden
        V = V.astype(rbm.weights.dtype)
    x = V @ rbm.weights.T
    x += rbm.hidden
    return x


def hidden_means(rbm, V):
    """c E[h | v], (n_samples, n_units), in the type of the parameters."""
    x = inputs(rbm, V)
    expit(x, out=x)
    x *= rbm.unit_weights
    return x


def visible_means(rbm, H):
    """E[v | h], (n_samples, n_features), ``H`` with the c_i in it."""
    y = H @ rbm.weights
    y += rbm.visible
    return rbm.units.means(y)


def free_energy(rbm, V):
    """-log of the unnormalised probabilities, (n_samples,) float64."""
    x = inputs(rbm, V)
    return -_hidden_energy(rbm, x) - rbm.units.log_factor(V, rbm.visible)


def pseudo_likelihood(rbm, V):
    """Sum over features of log p(v_j | all others), (n_samples,) float64.

    For visible units of two values.
    """
    x = inputs(rbm, V)
    before = _hidden_energy(rbm, x)
    total = np.zeros(len(V))
    for j in range(V.shape[1]):
        flip = rbm.units.flip(V[:, j]).astype(x.dtype)
        change = _hidden_energy(rbm, x + np.outer(flip, rbm.weights[:, j])) - before
        change += flip * float(rbm.visible[j])
        # p(v_j | others) = p(v) / (p(v) + p(v with v_j flipped))
        total += log_expit(-change)
    return total


def _hidden_energy(rbm, x):
    """Sum of c softplus(x) over the units, float64."""
    # twenty times as fast as scipy's log_expit, and as exact
    softplus = np.exp(-np.abs(x))
    np.log1p(softplus, out=softplus)
    softplus += np.maximum(x, 0.0)
    softplus *= rbm.unit_weights
    return softplus.sum(axis=1, dtype=np.float64)


def unnormalised_log_probability(rbm, V):
    """As `free_energy` with the other sign, by compiled float32 passes.

    For blocks of a whole data set during a fit. ``V`` are states or float32, sums are
    float64.
    """
    result = np.empty(len(V))
    x = product(V, by_feature(rbm.weights))
    kernels.softplus_sum(x, rbm.hidden, rbm.unit_weights, result)
    return result + rbm.units.fast_log_factor(V, rbm.visible)


def start_chains(rbm, n_chains, seed, first_row=0):
    """Chains that start from independent units with the model's visible biases."""
    x = np.zeros((n_chains, len(rbm.visible)), dtype=np.float32)
    states = rbm.units.draw(x, rbm.visible, (np.uint64(seed), 0, first_row))
    return Chains(states, np.uint64(seed), 1, first_row)


def gibbs(rbm, chains, n_steps, clamp=None):
    """Advance the chains.

    A step of a standard RBM is blocked Gibbs sampling. A step of a fractional one is
    the Metropolis-Hastings step of section 3.3. Chains have to hold the clamped values
    already: a rejected proposal leaves them as they are.

    Returns
    -------
    chains : Chains
        New states; those given are left as they were.
    acceptance : float
        Fraction of accepted proposals, 1 for a standard RBM.
    """
    step = _gibbs_step if is_standard(rbm) else _metropolis_step
    states, transposed = chains.states.copy(), by_feature(rbm.weights)
    accepted = 0
    for number in range(chains.step, chains.step + n_steps):
        states, n_accepted = step(rbm, transposed, states, chains, number, clamp)
        accepted += n_accepted
    n_proposed = max(1, n_steps * len(states))
    chains = chains._replace(states=states, step=chains.step + n_steps)
    return chains, accepted / n_proposed


def sum_visible(rbm, chains, n_steps, clamp=None):
    """Sum of the visible states over ``n_steps`` steps of the chains, and the chains.

    Of a standard RBM, E[v | h] is summed up, which varies less than v. The hidden
    states of a fractional one are those of a proposal, and it has to be v.
    """
    total = np.zeros(chains.states.shape, dtype=np.float32)
    if not is_standard(rbm):
        for _ in range(n_steps):
            chains, _ = gibbs(rbm, chains, 1, clamp)
            total += chains.states
        return total, chains
    states, transposed = chains.states, by_feature(rbm.weights)
    for number in range(chains.step, chains.step + n_steps):
        y = _down_from(rbm, transposed, states, chains, number)
        states = _draw_visible(rbm, y, chains, number, clamp)
        rbm.units.add_means(y, rbm.visible, total)
    return total, chains._replace(states=states, step=chains.step + n_steps)


def _gibbs_step(rbm, transposed, states, chains, number, clamp):
    y = _down_from(rbm, transposed, states, chains, number)
    return _draw_visible(rbm, y, chains, number, clamp), len(states)


def _down_from(rbm, transposed, states, chains, number):
    """Inputs of the visible units, by way of drawn hidden ones."""
    place = chains.seed, _DRAWS_PER_STEP * number, chains.first_row
    h = draw(product(states, transposed), rbm.hidden, place)
    return product(h, rbm.weights)


def _metropolis_step(rbm, transposed, states, chains, number, clamp):
    seed, first_row = chains.seed, chains.first_row
    total, before, after = np.empty((3, len(states)))
    h = product(states, transposed)
    kernels.fractional_hidden(
        h,
        rbm.hidden,
        rbm.unit_weights,
        1.0,
        seed,
        _DRAWS_PER_STEP * number,
        first_row,
        before,
    )
    proposal = _draw_visible(rbm, h @ rbm.weights, chains, number, clamp)
    x = product(proposal, transposed)
    kernels.fractional_softplus(x, rbm.hidden, rbm.unit_weights, 1.0, total, after)
    accepted = np.empty(len(states), dtype=np.bool_)
    kernels.metropolis(
        after - before, seed, _DRAWS_PER_STEP * number, first_row, accepted
    )
    return np.where(accepted[:, None], proposal, states), int(accepted.sum())


def _draw_visible(rbm, y, chains, number, clamp):
    place = chains.seed, _DRAWS_PER_STEP * number + 1, chains.first_row
    v = rbm.units.draw(y, rbm.visible, place)
    return v if clamp is None else rbm.units.hold(v, clamp)
