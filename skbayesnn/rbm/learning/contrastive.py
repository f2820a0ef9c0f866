"""Contrastive divergence, plain and persistent: ``init`` and ``step``.

The gradient of the mean log-likelihood by the weights is E_data[h v'] - E_model[h v']
(4). Contrastive divergence takes the second term from chains that start at the data of
the batch and run k Gibbs steps; persistent contrastive divergence from chains that are
continued from batch to batch. In a fractional RBM, h has the weight c of its unit.

The gradient may be centred (Melchior, Fischer and Wiskott, 2016): with offsets mu and
lambda, the weights see (h - lambda)(v - mu)', and the biases what that leaves.

The parameters wander around the maximum by an amount that the step size sets. Their
average over the last part of the steps is nearer to it than the last ones are (Polyak
and Juditsky, 1992).

Where features are strongly correlated, a step size that is small elsewhere moves whole
modes of the model by many nats at once, before the chains can tell. ``max_change``
limits the step size by what a step changes: the standard deviation of the change of the
log probability over the rows of the batch and the chains, which is the square root of
twice the Kullback-Leibler divergence between both models, to second order.

With ``damping``, the step follows the natural gradient, see `natural`, and with
``jumps`` the chains move between distant modes, see `jumps`.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from ..._saved_state import saved_as
from .. import model as rbm_model
from ..kernels import units as kernels
from ..model import (
    RBM,
    Chains,
    gibbs,
    hidden_means,
    is_standard,
)
from ..states import (
    PANEL,
    ByFeature,
    blend,
    by_feature,
    draw_from,
    give_transposed_product,
    product,
    sum_states,
    weigh,
    weigh_transposed,
)
from . import jumps, natural, tempering

# Larger weights indicate a divergence: a unit then is a step function.
MAX_WEIGHT = 1e3
# Chains that a data set with fewer rows may have.
MAX_SPARE_CHAINS = 1000
# Fraction of the past in the running mean of the hidden units, for centring.
_MEMORY = 0.99
# Steps from one look at the parameters to the next, for their average.
_AVERAGED = 5
# Rows of the batch, and of the chains, by which the change of a step is judged.
_JUDGED = 16
_LEAST_SLOPE = 1e-12


class Settings(NamedTuple):
    """Parameters of all updates of a fit."""

    n_gibbs_steps: int
    persistent: bool
    momentum: float
    weight_decay: float
    centered: bool
    averaging: float
    """fraction of the steps so far over which parameters are averaged; 0 for none"""
    max_change: float | None = None
    """limit of the change of the log probability by a step, nats; None for none"""
    damping: float | None = None
    """of the natural gradient; None for the plain one"""
    jumps: bool = False
    """whether the persistent chains of a standard RBM, of several temperatures those of
    the model, also move by `jumps`"""
    jump_interval: int | None = None
    """steps from one jump to the next; None for as few as add little to their work"""


@saved_as("State of contrastive divergence")
class State(NamedTuple):
    """A model in training; ``step`` and ``settle`` update its arrays in place."""

    rbm: RBM
    transposed: ByFeature
    """the same weights, as update and way up take them"""
    velocity: RBM
    """its weights are transposed, too"""
    average: RBM
    """the averaged parameters"""
    chains: np.ndarray | tempering.Replicas
    """persistent chains, uint8: hidden states (n_chains, n_units) of a standard RBM,
    which saves a product, visible states (n_chains, n_features) of a fractional one;
    or replicas"""
    visible_offset: np.ndarray
    """(n_features,) mean of the data, float32"""
    hidden_offset: np.ndarray
    """(n_units,) running mean of the hidden units, float32"""
    step: int


class Info(NamedTuple):
    """Diagnostics of a step."""

    mean_error: float
    """mean squared difference between the visible means of the data and the chains"""
    rate: float
    """the step size"""


class Diverged(ArithmeticError):
    """Raised if the weights exceed `MAX_WEIGHT` or are not finite."""


def clip_batch(batch_size, n_rows):
    """The rows of a batch, and chains: more of them than rows help up to a point."""
    return min(batch_size, max(n_rows, MAX_SPARE_CHAINS))


def init(rbm, visible_offset, hidden_offset, chains, seed):
    """The state before the first step.

    Takes over the arrays of ``rbm``. ``chains`` (n_chains, n_features) are visible
    states for the persistent chains: draws from the model, or data.
    """
    transposed = by_feature(rbm.weights)
    if is_standard(rbm):
        place = np.uint64(seed), 0, 0
        chains = draw_from(chains, transposed, rbm.hidden, place)
    zeros = rbm_model.zeros_like(rbm)
    return State(
        rbm,
        transposed,
        zeros._replace(weights=transposed.zeros()),
        rbm_model.copy(rbm),
        chains,
        np.asarray(visible_offset, dtype=np.float32),
        np.array(hidden_offset, dtype=np.float32),
        1,
    )


def temper(state, base, n_replicas, seed):
    """The state with as many chains at each of several temperatures.

    ``base`` (n_features,) are the biases of independent features.
    """
    is_tempered = isinstance(state.chains, tempering.Replicas)
    states = state.chains.states[-1] if is_tempered else state.chains
    chains = tempering.start(
        state.rbm, state.transposed, base, n_replicas, len(states), seed
    )
    return state._replace(chains=chains)


def with_chains(state, batch_size, n_rows):
    """The state with as many chains as one that begins with these would have.

    The first ones, and copies of them, whose random numbers are others. Fewer rows take
    no chains away.
    """
    is_tempered = isinstance(state.chains, tempering.Replicas)
    states = state.chains.states if is_tempered else state.chains
    n_before = states.shape[-2]
    n_chains = clip_batch(batch_size, max(n_rows, n_before))
    if n_chains == n_before:
        return state
    states = np.take(states, np.arange(n_chains) % n_before, axis=-2)
    chains = state.chains._replace(states=states) if is_tempered else states
    return state._replace(chains=chains)


def n_replicas(state):
    """Number of temperatures of the chains."""
    chains = state.chains
    return len(chains.betas) if isinstance(chains, tempering.Replicas) else 1


def copy(state):
    """A state whose arrays no later step changes."""
    return state._replace(
        rbm=rbm_model.copy(state.rbm),
        transposed=state.transposed.copy(),
        velocity=rbm_model.copy(state.velocity),
        average=rbm_model.copy(state.average),
        hidden_offset=state.hidden_offset.copy(),
    )


def shifted(state, biases):
    """A state whose models have other visible biases, by so much (n_features,)."""

    def moved(rbm):
        return rbm._replace(visible=(rbm.visible + biases).astype(np.float32))

    return state._replace(rbm=moved(state.rbm), average=moved(state.average))


# products of a few finite columns have raised this flag (in one of three runs of all
# tests, OpenBLAS 0.3.31 on SkylakeX; the cause was not found, and not reproduced with
# NaN or infinity in the memory around); what is not finite is found by `check`
@np.errstate(invalid="ignore")
def step(settings, state, batch, learning_rate, seed):
    """One update from a mini-batch (n_rows, n_features): uint8 states, or float32.

    Updates the arrays of ``state`` in place: the state given must not be used again.
    Keep a `copy` to return to it.

    Values of float32 are the probabilities of the states, in [0, 1].
    """
    n_rows = len(batch)
    if isinstance(state.chains, tempering.Replicas):
        sample = _tempered_sample
    elif not is_standard(state.rbm):
        sample = _fractional_sample
    else:
        sample = _persistent_sample if settings.persistent else _sample_from_batch
    model, means, chains = sample(settings, state, batch, np.uint64(seed))

    # rows of data and of the model below each other: one product for both
    states = np.concatenate([batch, model])
    of_data, of_model = np.float32(1.0 / n_rows), np.float32(1.0 / len(model))
    mean_v = of_data * sum_states(batch) - of_model * sum_states(model)
    error = float(np.dot(mean_v, mean_v)) / len(mean_v)
    gradient = _gradient(settings, state, (states, means), n_rows, mean_v)
    rate = learning_rate
    if settings.max_change is not None:
        slopes = _changes(gradient, (states, means), n_rows)
        largest = (1.0 - settings.momentum) * settings.max_change
        rate = min(rate, largest / max(float(slopes.std()), _LEAST_SLOPE))
    _update(settings, state, rate, gradient)
    if state.step % _AVERAGED == 0:
        _average(settings, state, _AVERAGED, state.step)
    return state._replace(chains=chains, step=state.step + 1), Info(error, rate)


class Gradient(NamedTuple):
    """A gradient by its factors: with s = 1 / n for data and -1 / n for the chains,

        dW = sum_k s_k (h_k - lambda) (v_k - mu)'

    that of the weights, and those of the biases with centred weights.
    """

    states: np.ndarray
    """v, (n_rows, n_features)"""
    means: np.ndarray
    """s h, (n_rows, n_units) float32; of the natural gradient, divided as the others"""
    mean_v: np.ndarray
    mean_h: np.ndarray
    mu: np.ndarray
    offset: np.ndarray
    """lambda"""
    plain_offset: np.ndarray
    """lambda, not divided"""


def _gradient(settings, state, factors, n_rows, mean_v):
    """The `Gradient`, after an update of the hidden offset."""
    states, means = factors
    mu, offset = state.visible_offset, state.hidden_offset
    if not settings.centered:
        mu, offset = np.zeros_like(mu), np.zeros_like(offset)
    signed = means.copy()
    data_h, mean_h = np.empty((2, means.shape[1]), dtype=np.float32)

    kernels.difference_of_means(signed, n_rows, data_h, mean_h, 0, len(mean_h))
    if settings.centered:
        offset *= np.float32(_MEMORY)
        offset += np.float32(1.0 - _MEMORY) * data_h
    plain = offset
    if settings.damping is not None and is_standard(state.rbm):
        try:
            signed, (mean_h, offset) = natural.divide(
                means, n_rows, settings.damping, np.stack([mean_h, offset])
            )
        except np.linalg.LinAlgError as error:
            # of means that are not finite, by some libraries; `check` finds others
            raise Diverged(np.nan) from error
    return Gradient(states, signed, mean_v, mean_h, mu, offset, plain)


def _changes(gradient, factors, n_rows):
    """By how much some rows' log probability grows with the step size, to first order.

    With the gradient G = sum_k s_k (v_k - mu)(h_k - lambda)', that of the row i is

        sum_k s_k (v_k - mu)'(v_i - mu) (h_k - lambda)'(h_i - lambda)

    and what the biases add: no product with G is needed.
    """
    states, means = factors
    v, n_model = states - gradient.mu, len(states) - n_rows
    some_v, some_h = (_judged(rows, n_rows) for rows in (v, means))
    h = some_h - gradient.plain_offset
    # lambda is taken off behind the product, whose array is the smaller one
    of_rows, of_offset = h @ gradient.means.T, (h @ gradient.offset)[:, None]
    of_rows[:, :n_rows] -= np.float32(1.0 / n_rows) * of_offset
    of_rows[:, n_rows:] += np.float32(1.0 / n_model) * of_offset
    return (
        ((some_v @ v.T) * of_rows).sum(axis=1)
        + some_v @ gradient.mean_v
        + h @ gradient.mean_h
    )


def _judged(rows, n_rows):
    """Of rows of data, the first ``n_rows``, and of chains the first few each."""
    return np.concatenate([rows[:n_rows][:_JUDGED], rows[n_rows:][:_JUDGED]])


def settle(settings, state):
    """Bring the average up to date with the last steps.

    Updates the arrays of ``state`` in place.
    """
    n_done = state.step - 1
    _average(settings, state, n_done % _AVERAGED, n_done)


def _average(settings, state, n_steps, n_done):
    """Move the average as far as so many of the steps so far ask for."""
    if not (settings.averaging and n_steps):
        return
    fraction = np.float32(min(1.0, n_steps / (settings.averaging * n_done)))
    for mean, values in zip(state.average[:3], state.rbm[:3], strict=True):
        blend(np.atleast_2d(mean), np.atleast_2d(values), fraction)


def model(settings, state):
    """What has been learned: the average, where there is one."""
    has_average = settings.averaging and state.step > _AVERAGED
    return state.average if has_average else state.rbm


def check(state):
    """Raise `Diverged` when the weights have left their range."""
    # the maximum of NumPy, through which a NaN comes
    largest = np.max([np.abs(array).max(initial=0.0) for array in state.rbm[:3]])
    if not largest <= MAX_WEIGHT:
        raise Diverged(float(largest))


def _persistent_sample(settings, state, batch, seed):
    """Visible states of the chains, hidden means of data and chains, new chains."""
    rbm, transposed, n_rows = state.rbm, state.transposed, len(batch)
    h, y, x = state.chains, None, None
    number = 2 * settings.n_gibbs_steps * state.step
    if _jumps(settings, state, n_rows):
        x = product(batch, transposed)
        h, y = jumps.move(rbm, x, h, seed, state.step)
    v = _visible(rbm, h, y, (seed, number, 0))
    for _ in range(settings.n_gibbs_steps - 1):
        h = draw_from(v, transposed, rbm.hidden, (seed, number + 1, 0))
        number += 2
        v = rbm.units.draw_from(h, rbm.weights, rbm.visible, (seed, number, 0))
    means = np.empty((n_rows + len(v), len(rbm.weights)), dtype=np.float32)
    of_data, of_chains = means[:n_rows], means[n_rows:]
    chains = np.empty_like(state.chains)

    def activate(first, last):
        place = seed, number + 1, 0
        kernels.mean_units(of_data, rbm.hidden, first, last)
        kernels.mean_and_sample_units(
            of_chains, rbm.hidden, *place, chains, first, last
        )

    if x is None:
        product(np.concatenate([batch, v]), transposed, means, activate)
    else:
        # the inputs at the batch are known
        of_data[:] = x
        product(v, transposed, of_chains, activate)
    return v, means, chains


def _jumps(settings, state, n_rows):
    """Whether the chains jump in this update, to the rows of its batch."""
    if not settings.jumps:
        return False
    interval = settings.jump_interval
    if interval is None:
        interval = jump_interval(state.rbm, state.chains, n_rows)
    return state.step % interval == 0


def jump_interval(rbm, chains, n_rows):
    """Steps from one of the chains' jumps to the next, with so many rows of data."""
    is_tempered = isinstance(chains, tempering.Replicas)
    n_replicas, n_chains = chains.states.shape[:2] if is_tempered else (1, len(chains))
    return jumps.interval(n_rows, n_chains, n_replicas, rbm.weights.shape[1])


def _visible(rbm, h, y, place):
    """Visible states of hidden ones, whose products with the weights may be known."""
    if y is None:
        return rbm.units.draw_from(h, rbm.weights, rbm.visible, place)
    return rbm.units.draw(y, rbm.visible, place)


def _tempered_sample(settings, state, batch, seed):
    """The same with replicas."""
    rbm, transposed, replicas = state.rbm, state.transposed, state.chains
    if _jumps(settings, state, len(batch)):
        x = product(batch, transposed)
        replicas = jump(rbm, transposed, x, replicas, seed, state.step)
    replicas = tempering.advance(rbm, transposed, replicas, seed, state.step)
    v = replicas.states[-1]
    means = product(np.concatenate([batch, v]), transposed)
    kernels.mean_units(means, rbm.hidden, 0, means.shape[1])
    return v, means, replicas


def jump(rbm, transposed, x, replicas, seed, number):
    """Replicas whose chains of the model have moved by `jumps`.

    ``x`` (n_rows, n_units) are the inputs of the hidden units at rows of data.
    """
    *others, states = replicas.states
    states = jumps.move_visible(rbm, transposed, x, states, seed, number)
    return replicas._replace(states=np.stack([*others, states]))


def _sample_from_batch(settings, state, batch, seed):
    """The same with chains that start at the batch."""
    rbm, n_rows = state.rbm, len(batch)
    means = np.empty((2 * n_rows, len(rbm.weights)), dtype=np.float32)
    of_data, of_chains = means[:n_rows], means[n_rows:]
    h = np.empty((n_rows, len(rbm.weights)), dtype=np.uint8)
    number = 2 * settings.n_gibbs_steps * state.step
    start = partial(
        kernels.mean_and_sample_units, of_data, rbm.hidden, seed, number, 0, h
    )
    product(batch, state.transposed, of_data, start)
    for _ in range(settings.n_gibbs_steps - 1):
        place = seed, number + 1, 0
        v = rbm.units.draw_from(h, rbm.weights, rbm.visible, place)
        h = draw_from(v, state.transposed, rbm.hidden, (seed, number + 2, 0))
        number += 2
    v = rbm.units.draw_from(h, rbm.weights, rbm.visible, (seed, number + 1, 0))
    activate = partial(kernels.mean_units, of_chains, rbm.hidden)
    product(v, state.transposed, of_chains, activate)
    return v, means, state.chains


def _fractional_sample(settings, state, batch, seed):
    """The same by Metropolis-Hastings steps, for units of any weights."""
    start = state.chains if settings.persistent else batch
    chains = Chains(start, seed, settings.n_gibbs_steps * state.step, 0)
    chains, _ = gibbs(state.rbm, chains, settings.n_gibbs_steps)
    states = np.concatenate([batch, chains.states]).astype(np.float32)
    return chains.states, hidden_means(state.rbm, states), chains.states


def _update(settings, state, learning_rate, gradient):
    """Move the parameters along the gradient."""
    rbm, velocity = state.rbm, state.velocity
    states, means, mean_v, mean_h, mu, offset, plain_offset = gradient
    rate, momentum = np.float32(learning_rate), np.float32(settings.momentum)
    rates = rate, momentum, np.float32(settings.weight_decay)

    def update(part, first, last):
        panel, units = first // PANEL, slice(first, last)
        kernels.update_weights(
            state.transposed.panels[panel],
            velocity.weights.panels[panel],
            part,
            rbm.weights[units],
            (mu, mean_h[units], mean_v, offset[units]),
            rates,
        )

    give_transposed_product(states, means, update)
    slope_v, slope_h = mean_v, mean_h
    if settings.centered:
        # less the centred gradient times lambda and mu, which the update of the
        # weights does to the means already
        slope_v = mean_v * (1 + offset @ plain_offset) + mu * (mean_h @ plain_offset)
        slope_v -= weigh_transposed(states, means @ plain_offset)
        slope_h = mean_h * (1 + mu @ mu) + offset * (mu @ mean_v)
        slope_h -= weigh(states, mu) @ means
    for values, speed, slope in [
        (rbm.hidden, velocity.hidden, slope_h),
        (rbm.visible, velocity.visible, slope_v),
    ]:
        speed *= momentum
        speed += rate * slope
        values += speed
