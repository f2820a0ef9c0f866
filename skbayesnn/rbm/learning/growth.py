"""Growing an RBM unit by unit: Algorithm 1 as ``init`` and ``step``.

A step advances Markov chains of the current model, searches the unit that gains most
on them and on some training rows, checks it on other chains and rows, and inserts it
(or, with away steps, takes out a unit that does more harm). Then visible biases and, in
corrective steps, all parameters follow the likelihood.
"""

from typing import NamedTuple

import numpy as np

from ..._random import Stream, derived_seed, generator
from ..._saved_state import saved_as
from .. import model as rbm_model
from ..states import by_feature, product, sum_states
from . import conditionals, contrastive, jumps
from . import unit_search as fw

# Fractions of the searched unit that are tried on the held-out chains.
_FRACTIONS = (1.0, 0.5, 0.25, 0.125, 0.0625)
# Least effective number of held-out chains, as a fraction, after reweighting to the
# model with the unit: if a few chains carry all the weight, the estimate is unreliable.
_MIN_EFFECTIVE_FRACTION = 0.05
# Strengths of the penalty that the first search tries, if none is given, and the factor
# by which later ones depart from the last one.
_PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
_PENALTY_FACTOR = 3.0
# Fraction of the best gain by which that of a stronger penalty may be smaller.
_HARDLY = 0.1
# Training rows on which all present units are judged at each step.
_MAX_JUDGED_ROWS = 1000
# Training rows whose hidden states are proposed to the chains before a search.
_PROPOSED_ROWS = 500
# Corrective steps from one jump to the next: more of them help no further, and double
# the time; with 8, the shares of some groups were wrong.
_JUMP_INTERVAL = 4
# Largest relative change of a learned temperature in a step.
_MAX_ALPHA_CHANGE = 0.2
# Relative change of the objective at which a search ends.
_SEARCH_TOL = 1e-6
# Tells the seeds after a run of corrective steps from those before it.
_SEED_OFFSET = 2**31


class Settings(NamedTuple):
    """Parameters of all steps of a growth."""

    objective: str
    unit_penalty: float | None
    """None for the strongest that costs little of the gain on held-out samples"""
    radius: float | None
    alpha: float | str
    away_steps: bool
    units_per_step: int
    n_search_rows: int
    max_search_iter: int
    n_gibbs_steps: int
    n_bias_steps: int
    n_corrective_steps: int
    batch_size: int
    learning_rate: float
    averaging: float
    """fraction of the corrective steps so far over which the parameters are averaged"""
    tol: float


@saved_as("State of growth")
class State(NamedTuple):
    """A growing model. No function here writes to its arrays: they are replaced."""

    rbm: rbm_model.RBM
    """what the chains sample, and units are searched for"""
    average: rbm_model.RBM
    """its average over the last corrective steps: what has been learned"""
    alpha: float
    """temperature of the infinite model: the sum of the unit weights"""
    chains: rbm_model.Chains
    """the first half for the search, the second half held out"""
    visible_offset: np.ndarray
    hidden_offset: np.ndarray
    number: int
    n_updates: int
    """corrective steps so far"""
    unit_penalty: float | None = None
    """that of the last search, if none is given; None before the first one"""


class Info(NamedTuple):
    """Diagnostics of a step."""

    change: int
    """units added; -1: one was removed, 0: none was worth it"""
    gain: float
    """nats per sample on held-out chains and rows, without the penalty"""
    norm: float
    """of the unit, its bias included; the largest of several"""
    effective_sample_size: float
    """of the held-out chains after reweighting to the model with the unit"""
    frank_wolfe_gap: float
    """by the linearised objective, on the samples of the search, nats"""
    acceptance: float
    """of the Markov chains' proposals"""
    unit_penalty: float
    """of the search"""


def init(rbm, n_chains, visible_offset, hidden_offset, seed):
    """The state before the first step, with chains that start at the visible biases.

    The offsets are the mean states of the data.
    """
    # not the seed of the corrective steps, which count from one as well
    chains = rbm_model.start_chains(rbm, n_chains, _seed_of(seed, 0xFFFFFFFF))
    offsets = (np.asarray(a, dtype=np.float32) for a in (visible_offset, hidden_offset))
    alpha = float(rbm.unit_weights.sum())
    return State(rbm, rbm, alpha, chains, *offsets, 0, 0)


def with_chains(state, n_chains):
    """The state with so many chains: the first of each half, and copies of them.

    Chains that are held out are no copies of those of the search.
    """
    states = state.chains.states
    half, new_half = len(states) // 2, n_chains // 2
    if n_chains == len(states):
        return state
    searched = np.arange(new_half) % half
    checked = half + np.arange(n_chains - new_half) % (len(states) - half)
    states = states[np.concatenate([searched, checked])]
    return state._replace(chains=state.chains._replace(states=states))


def step(settings, state, rows, seed):
    """Add a unit, or remove one. Leaves the arrays of ``state`` as they are.

    ``rows.states(index)`` gives training rows.
    """
    rng = generator(seed, Stream.UNIT_SEARCH, state.number)
    chains, acceptance = rbm_model.gibbs(
        state.rbm, state.chains, settings.n_gibbs_steps
    )
    state = state._replace(chains=chains, number=state.number + 1)
    if _jumps(settings, state.rbm):
        state = _jump(state, rows, rng)
    searched, checked = _draw_samples(settings, state, rows, rng)
    unit, objective = _search_penalty(settings, state, searched, checked, rng)
    strength = objective.unit_penalty
    if settings.unit_penalty is None:
        state = state._replace(unit_penalty=strength)
    gap, worst, harm = _judge_units(state, objective, searched, unit)
    may_go = settings.away_steps and len(state.rbm.weights)
    if may_go and harm > max(unit.value, settings.tol):
        # the minimum over many units is biased: check it on other samples
        one = rbm_model.select(state.rbm, [worst])
        harm = float(fw.unit_gains(one, checked).removal[0])
    if may_go and harm > max(unit.value, settings.tol):
        info = Info(-1, harm, 0.0, np.nan, gap, acceptance, strength)
        state = _remove(settings, state, worst)
    else:
        units = [unit]
        for _ in range(settings.units_per_step - 1):
            # on other rows: the same ones would show the same unit again
            others, _ = _draw_samples(settings, state, rows, rng)
            units.append(_search(settings, objective, others, checked, rng))
        units, gain, size = _guard(settings, objective, checked, units)
        norms = [np.linalg.norm(np.append(one.weights, one.bias)) for one in units]
        change = len(units) * _is_worth(settings, unit, gain)
        norm = float(max(norms))
        info = Info(change, gain, norm, size, gap, acceptance, strength)
        if info.change:
            state = _insert(settings, state, units, searched.data)
    state = follow(settings, state, rows, seed, rng)
    contrastive.check(state)
    return state, info


def diverse_units(settings, state, rows, n_units, seed):
    """The model with ``n_units`` more, each searched on rows of its own.

    They are not meant to enter together as they are: they are directions in which a
    training may start.
    """
    rng = generator(seed, Stream.UNIT_SEARCH, n_units)
    searched, checked = _draw_samples(settings, state, rows, rng)
    unit, objective = _search_penalty(settings, state, searched, checked, rng)
    units = [unit]
    for _ in range(n_units - 1):
        searched, checked = _draw_samples(settings, state, rows, rng)
        units.append(_search(settings, objective, searched, checked, rng))
    weights = np.stack([unit.weights for unit in units])
    return rbm_model.append(state.rbm, weights, [unit.bias for unit in units])


def idle_unit(rbm):
    """A model with a unit of zero weights, which changes no probability."""
    return rbm_model.append(rbm, np.zeros_like(rbm.visible), 0.0)


def follow(settings, state, rows, seed, rng):
    """Bring temperature, biases and, by corrective steps, all weights up to date."""
    if settings.alpha == "learn" and len(state.rbm.weights):
        state = _learn_alpha(settings, state, rows, rng)
    for _ in range(settings.n_bias_steps):
        chains, _ = rbm_model.gibbs(state.rbm, state.chains, 1)
        means = sum_states(chains.states) / len(chains.states)
        slope = state.visible_offset - means
        visible = state.rbm.visible + np.float32(settings.learning_rate) * slope
        # the average follows, as it does a new unit
        change = visible - state.rbm.visible
        average = state.average._replace(visible=state.average.visible + change)
        rbm = state.rbm._replace(visible=visible)
        state = state._replace(rbm=rbm, average=average, chains=chains)
    if settings.n_corrective_steps and len(state.rbm.weights):
        n_batch = contrastive.clip_batch(settings.batch_size, len(rows))
        index = rng.integers(len(rows), size=(settings.n_corrective_steps, n_batch))
        state = correct(settings, state, rows, index, seed)
    return state


def correct(settings, state, rows, batches, seed):
    """Persistent contrastive divergence on all parameters, one step per batch.

    ``batches`` holds the rows of each. The first ``batch_size`` chains follow every
    step; the others wait for the next search, whose Gibbs steps and jumps bring them
    up. Those that follow jump as well: else a model of rows in distant groups learns
    wrong shares of them, and ever larger weights.
    """
    jumping = {"jumps": True, "jump_interval": _JUMP_INTERVAL}
    cd = contrastive.Settings(1, True, 0.0, 0.0, True, settings.averaging, **jumping)
    n_chains = min(settings.batch_size, len(state.chains.states))
    states = state.chains.states.copy()
    training = contrastive.init(
        rbm_model.copy(state.rbm),
        state.visible_offset,
        state.hidden_offset,
        states[:n_chains],
        _seed_of(seed, state.n_updates),
    )._replace(step=state.n_updates + 1, average=rbm_model.copy(state.average))
    chain_seed = derived_seed(seed, Stream.CORRECTIVE_CHAINS)
    for number, index in enumerate(batches):
        # down to zero, so that chains and model agree again at the next search
        rate = settings.learning_rate * (1.0 - number / len(batches))
        batch = rows.states(index)
        training, _ = contrastive.step(cd, training, batch, rate, chain_seed)
    contrastive.settle(cd, training)
    end = _seed_of(seed, state.n_updates + _SEED_OFFSET)
    states[:n_chains] = _visible_chains(training, end)
    return state._replace(
        rbm=training.rbm,
        average=training.average if settings.averaging else training.rbm,
        hidden_offset=training.hidden_offset,
        chains=state.chains._replace(states=states),
        n_updates=state.n_updates + len(batches),
    )


def _visible_chains(training, seed):
    if not rbm_model.is_standard(training.rbm):
        return training.chains
    y = product(training.chains, training.rbm.weights)
    return training.rbm.units.draw(y, training.rbm.visible, (seed, 0, 0))


def _seed_of(seed, number):
    """A separate seed for each number."""
    return derived_seed(seed, Stream.CHAIN_UPDATES, number)


def _search_penalty(settings, state, samples, checked, rng):
    """A unit, and the objective of its search.

    If no strength of the penalty is given, several are tried: the strongest whose unit
    gains nearly as much on the other samples as any is taken. Too weak a penalty fits
    the samples of the search, and too strong a one leaves no unit.
    """
    strengths = _strengths(settings, state)
    if len(strengths) == 1:
        objective = _objective(settings, state, *strengths)
        return _search(settings, objective, samples, checked, rng), objective
    exact = settings._replace(objective="likelihood")
    place, tried = rng.bit_generator.state, []
    for strength in strengths:
        # all may start from the same rows
        rng.bit_generator.state = place
        objective = _objective(settings, state, strength)
        unit = _search(settings, objective, samples, checked, rng)
        of_gain = objective._replace(kind="likelihood")
        _, value, _ = _guard(exact, of_gain, checked, [unit])
        tried.append((value, unit, objective))
    # a smaller unit leaves more to those that follow
    best = max(value for value, *_ in tried)
    enough = [one[1:] for one in tried if one[0] >= best - _HARDLY * abs(best)]
    return max(enough, key=lambda one: one[1].unit_penalty)


def _strengths(settings, state):
    """Those of the penalty that a search tries."""
    if settings.unit_penalty is not None:
        return (settings.unit_penalty,)
    if state.unit_penalty is None:
        return _PENALTIES
    # one neighbour of the last, on either side in turn
    factor = _PENALTY_FACTOR if state.number % 2 else 1.0 / _PENALTY_FACTOR
    other = np.clip(factor * state.unit_penalty, min(_PENALTIES), max(_PENALTIES))
    return (float(other), state.unit_penalty)


def _search(settings, objective, samples, checked, rng):
    """A unit; on a path that is checked on other samples, unless that is Algorithm 1's.

    The linearised objective has no use for a check: its units enter as they are.
    """
    start = fw.choose_start(objective, samples, rng)
    if objective.kind == "linearized":
        checked = None
    n_iter = settings.max_search_iter
    return fw.search(objective, samples, start, n_iter, _SEARCH_TOL, checked)


def _jumps(settings, rbm):
    """Whether all chains jump before a search. Those of Algorithm 1 do not."""
    is_written = settings.objective == "linearized"
    return len(rbm.weights) > 0 and rbm_model.is_standard(rbm) and not is_written


def _jump(state, rows, rng):
    """The state after `jumps` of all chains, between the modes that some rows show.

    Gibbs steps leave them where they are if these are distant, whatever the parameters
    have become since; units would be searched that change nothing but their shares.
    """
    index = rng.choice(len(rows), size=min(_PROPOSED_ROWS, len(rows)), replace=False)
    transposed = by_feature(state.rbm.weights)
    x = product(rows.states(np.sort(index)), transposed)
    seed, states = int(rng.integers(2**62)), state.chains.states
    states = jumps.move_visible(state.rbm, transposed, x, states, seed, state.number)
    return state._replace(chains=state.chains._replace(states=states))


def _draw_samples(settings, state, rows, rng):
    """Samples to search on, and others to check on."""
    sums_out = settings.alpha == "count" and rbm_model.is_standard(state.rbm)
    sums_out &= settings.objective == "likelihood" or settings.unit_penalty is None
    n = min(settings.n_search_rows, max(1, len(rows) // 2))
    index = rng.choice(len(rows), size=min(2 * n, len(rows)), replace=False)
    states = state.chains.states
    half = len(states) // 2
    change = _weight_change(settings, state)
    both = []
    for part, model in [(index[:n], states[:half]), (index[-n:], states[half:])]:
        samples = fw.Samples(fw.gather(rows, np.sort(part)), fw.pack(model))
        if sums_out:
            place = derived_seed(int(rng.integers(2**62)), Stream.UNIT_SEARCH), 0, 0
            draws = conditionals.draw(state.rbm, model, place)
            samples = samples._replace(conditionals=draws)
        if change != 0.0:
            offsets = (change * fw.total_outputs(state.rbm, V) for V in samples[:2])
            samples = fw.Samples(*samples[:2], *offsets)
        both.append(samples)
    return both


def _new_alpha(settings, state):
    """Temperature once the units of a step have been added."""
    n_units, n_new = len(state.rbm.weights), settings.units_per_step
    if settings.alpha == "count":
        return float(n_units + n_new)
    if settings.alpha == "learn":
        # the others' weights stay; then it is learned
        return state.alpha * (n_units + n_new) / n_units if n_units else float(n_new)
    return float(settings.alpha)


def _weight_change(settings, state):
    """By how much the weight of each present unit grows when others are added."""
    n_units = len(state.rbm.weights)
    if not n_units:
        return 0.0
    n_after = n_units + settings.units_per_step
    change = _new_alpha(settings, state) / n_after - state.alpha / n_units
    return 0.0 if abs(change) < 1e-12 else change


def _objective(settings, state, unit_penalty):
    n_after = len(state.rbm.weights) + settings.units_per_step
    return fw.Objective(
        settings.objective,
        unit_penalty,
        settings.radius,
        _new_alpha(settings, state) / n_after,
    )


def _judge_units(state, objective, samples, unit):
    """Frank-Wolfe gap of (9), and the present unit that does most harm.

    Returns the gap in nats, the unit's index, and the gain of its removal: always the
    exact one, without the penalty. By the linearised objective, removal would cost
    nothing where the weights of a unit are at their optimum, and good units would go.
    """
    rbm = state.rbm
    # judging all units on all rows would take longer than the search
    samples = samples._replace(data=samples.data.thin(_MAX_JUDGED_ROWS))
    linear = objective._replace(kind="linearized", unit_weight=1.0)
    found = fw.gain(linear, samples, unit._replace(shift=0.0)).value
    found -= fw.penalty(linear, unit)
    if not len(rbm.weights):
        return float(found), -1, -np.inf
    gains = fw.unit_gains(rbm, samples)
    values = rbm.unit_weights * gains.linear - fw.penalties(linear, rbm)
    worst = int(np.argmax(gains.removal))
    gap = float(state.alpha * found - values.sum())
    return gap, worst, float(gains.removal[worst])


def _guard(settings, objective, samples, units):
    """The fraction of the units that gains most on the held-out samples.

    A search overfits its chains if they are few, and units that were found on the same
    model may duplicate each other; then a smaller fraction is better, or none. The
    linearised objective enters as it is (Algorithm 1), or as the mean of several.
    """
    if settings.objective == "likelihood":
        # down to the mean of as many equal units
        fractions = _FRACTIONS + tuple(
            _FRACTIONS[-1] / 2**k for k in range(1, len(units).bit_length())
        )
    else:
        fractions = (1.0 / len(units),)
    least = _MIN_EFFECTIVE_FRACTION * len(samples.model)
    gains = fw.gains(objective, samples, units, fractions)
    tried = [
        (size >= least, value, fraction, size)
        for fraction, (value, size) in zip(fractions, gains, strict=True)
    ]
    if not any(believable for believable, *_ in tried):
        # the smallest fraction has the most reliable estimate
        tried = tried[-1:]
    _, value, fraction, size = max(tried, key=lambda one: one[:2])
    believable = size >= least or settings.objective == "linearized"
    units = [
        unit._replace(
            weights=np.float32(fraction) * unit.weights, bias=fraction * unit.bias
        )
        for unit in units
    ]
    return units, (value if believable else min(value, 0.0)), size


def _is_worth(settings, unit, gain):
    """Whether a unit enters.

    With a fixed temperature each one does: it takes weight from the others, and
    corrective steps make up for the loss.
    """
    if not isinstance(settings.alpha, str):
        return True
    return (unit.value if settings.objective == "linearized" else gain) > settings.tol


def _insert(settings, state, units, data):
    """The state with more units, which start in the average as they are."""
    new_alpha = _new_alpha(settings, state)
    weights = np.stack([unit.weights for unit in units])
    biases = [unit.bias for unit in units]
    shifts = np.array([unit.shift for unit in units], dtype=np.float32)

    def grow(rbm):
        rbm = rbm_model.append(rbm, weights, biases)
        rbm, alpha = _with_alpha(settings, rbm, new_alpha)
        shift = (rbm.unit_weights[-1] * shifts) @ weights
        return rbm._replace(visible=rbm.visible - shift), alpha

    (rbm, alpha), (average, _) = grow(state.rbm), grow(state.average)
    means = [fw.mean_state(data, unit) for unit in units]
    offsets = np.append(
        state.hidden_offset, rbm.unit_weights[-1] * np.array(means, dtype=np.float32)
    )
    return state._replace(rbm=rbm, average=average, alpha=alpha, hidden_offset=offsets)


def _remove(settings, state, worst):
    keep = np.arange(len(state.rbm.weights)) != worst
    n_units = int(keep.sum())
    alpha = state.alpha
    if settings.alpha in ("count", "learn"):
        alpha *= n_units / (n_units + 1)
    rbm, alpha = _with_alpha(settings, rbm_model.select(state.rbm, keep), alpha)
    average, _ = _with_alpha(settings, rbm_model.select(state.average, keep), alpha)
    offsets = state.hidden_offset[keep]
    return state._replace(rbm=rbm, average=average, alpha=alpha, hidden_offset=offsets)


def _with_alpha(settings, rbm, alpha):
    """The model with all unit weights alpha / n_units (1 for alpha = n_units)."""
    n_units = len(rbm.weights)
    if settings.alpha == "count":
        return rbm, float(n_units)
    weight = np.float32(alpha / n_units) if n_units else 1.0
    return rbm._replace(unit_weights=np.full(n_units, weight, np.float32)), alpha


def _learn_alpha(settings, state, rows, rng):
    """A Newton step along the appendix's gradient of the temperature.

    The second derivative of the mean log-likelihood by alpha is minus the variance of
    E_q[softplus] under the model.
    """
    index = rng.choice(
        len(rows), size=min(settings.n_search_rows, len(rows)), replace=False
    )
    n_units = len(state.rbm.weights)
    data = fw.total_outputs(state.rbm, fw.gather(rows, np.sort(index))) / n_units
    model = fw.total_outputs(state.rbm, fw.pack(state.chains.states)) / n_units
    change = (data.mean() - model.mean()) / max(model.var(), 1e-12)
    limit = _MAX_ALPHA_CHANGE * state.alpha
    alpha = state.alpha + float(np.clip(change, -limit, limit))
    average, _ = _with_alpha(settings, state.average, alpha)
    rbm, alpha = _with_alpha(settings, state.rbm, alpha)
    return state._replace(rbm=rbm, average=average, alpha=alpha)
