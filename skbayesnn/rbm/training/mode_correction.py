r"""How likely the modes of a trained model are, set right by its visible biases.

Persistent chains that hardly move between modes follow the data within each of them,
and do not tell how likely the model has made each: of a survey with a question that
others skip, 25 % of the rows had skipped it, and 47 % of the states of a trained model.
Independent states tell, where the hidden ones are few enough to be listed. Else
weighted states do: of annealed chains, or with the hidden states of rows (see
`likelihood.row_weights`). Those that have missed a part of the mass give a smaller
partition function: then each counts where it has met more. Of two that agree within
their errors, those with the more even weights count.

Modes differ most where states vary most, along the leading principal components. With
z(v) the first of these, and a shift of the visible biases along them, log-likelihoods
change by

.. math:: L(a) = a \cdot \bar z - \log E [\exp(a \cdot z(v))],

with the mean of z over the rows, and its expectation over the states of the model. It
is concave, and cheap. A shift counts for what it gains by states by which it was not
found.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.special import logsumexp

from ..._clock import Clock, NoTime, Pace
from ..._random import Stream, derived_seed
from .. import listed_states
from ..likelihood import annealing
from ..likelihood.adaptation import respace
from ..likelihood.row_weights import draw_weighted
from ..model import is_standard
from ..states import product

# States of the model, and numbers of components that are tried: what many of these gain
# is hardly more than its error with fewer states.
_N_STATES, _NUMBERS = 8000, (1, 2, 3, 5, 8, 13, 21, 34, 55)
# Effective size of the sample from which on its weights are believed.
_LEAST_SAMPLE = 50.0
# States from which a sample begins, and the fraction of them that has to tell as much
# with equal weights: a smaller one is worth more temperatures.
_FEW_STATES, _ENOUGH = 2000, 0.25
# Temperatures of the first sample, and the most.
_FEW_BETAS, _MOST_BETAS = 200, 2000
# What an annealing may cost, in weights times temperatures and states: some 20 seconds.
# Beyond it there are no more temperatures, and fewer states, down to as many.
_MOST_WORK, _FEWEST_STATES = 5e11, 500
# Fraction of the variance of the rows that states have where no mode is missing.
_LEAST_COVERED = 0.6
# Rows whose hidden states are drawn.
_N_ROWS = 2000
# A smaller gain is next to nothing, nats; and standard errors that it has to exceed.
_LEAST_GAIN, _CERTAIN = 0.02, 3.0
# Standard errors by which one partition function has to exceed the other: weights have
# heavier tails than their errors tell. And nats by which that of a shifted model may
# exceed what is expected.
_CLEARLY, _MOST_MISSED = 4.0, 0.5
# Of the random numbers of samples: the first one, that by which a shift is tested, that
# of the shifted model, and those by which the first one grows.
_FIRST, _TEST, _AFTER, _GROWING = 0, 1, 2, 3
# Fraction of the largest variance below which a component is none.
_LEAST_VARIANCE = 1e-9
# Precision of a shift of one standard deviation before any state is seen.
_PRIOR = 1e-3


class Sample(NamedTuple):
    """Weighted states of a model."""

    states: np.ndarray
    """(n_states, n_features)"""
    log_weights: np.ndarray
    """(n_states,), which sum to one"""
    log_partition: float
    """of the model, by the mean weight; or the mass of a region"""
    n_drawn: int
    """states of the model that were drawn: of a region, in all regions"""

    @property
    def size(self):
        """How many states of equal weights would tell as much."""
        squares = np.exp(2.0 * self.log_weights).sum()
        return 1.0 / squares if squares > 0.0 else 0.0

    @property
    def error(self):
        """Standard error of the log partition function, nats."""
        if self.size == 0.0:
            return 0.0
        return np.sqrt(max(0.0, 1.0 / self.size - 1.0 / self.n_drawn))


class Shift(NamedTuple):
    """Of the visible biases, with what it gains."""

    biases: np.ndarray
    """(n_features,)"""
    gain: float
    """mean log-likelihood of the rows, nats"""
    error: float
    """its standard error"""


class Draws(NamedTuple):
    """How states of models are drawn."""

    base: np.ndarray
    """(n_features,) biases of the independent units from which annealing starts"""
    rows: object
    """`Rows` whose hidden states tell of a model, too"""
    n_betas: int
    """temperatures of an annealing"""
    n_states: int
    """the most states of a sample"""
    seed: int
    n_jobs: int | None
    pace: Pace
    """of an annealing, for each state and temperature"""

    def sample(self, rbm, n_states, number):
        """A `Sample` of a model, with the random numbers of this ``number``.

        Raises `NoTime` where it would not end in time.
        """
        if listed_states.can_list(rbm):
            return _independent(rbm, n_states, self._place(number))
        amount, place = (n_states, self.n_betas), self._place(number)
        with self.pace.work(n_states * self.n_betas):
            return _annealed(rbm, self.base, amount, place, self.n_jobs)

    def by_rows(self, rbm, number):
        """The `Sample` by the hidden states of rows; None where it tells nothing more.

        That is where all are listed, and of a fractional model.
        """
        if not is_standard(rbm) or listed_states.can_list(rbm):
            return None
        return _from_rows(rbm, self.rows, self._place(number))

    def _place(self, number):
        return int(derived_seed(self.seed, Stream.PROPORTIONS, number))


def find_shift(rbm, base, rows, seed, n_jobs=None, clock=None):
    """The `Shift` that makes a model agree with rows; None if it gains nothing certain.

    Nor is there one where it would take longer than the time that is left.

    Parameters
    ----------
    rbm : RBM
    base : ndarray of shape (n_features,)
        Biases of the independent units from which annealing starts.
    rows : Rows
    seed : int
    n_jobs : int or None
    clock : Clock or None
        None for as long as it takes.
    """
    draws = Draws(base, rows, _FEW_BETAS, 0, seed, n_jobs, Pace(clock or Clock()))
    try:
        return _find_shift(rbm, rows, draws)
    except NoTime:
        return None


def _find_shift(rbm, rows, draws):
    """As `find_shift`; raises `NoTime` where that is over before."""
    target, n_rows = rows.mean(), len(rows)
    draws, few = _first_draws(rbm, draws)
    sample = _grown(rbm, draws, few, target)
    if sample is None or not _is_believed(sample, target, rows.units):
        return None
    shift = _shift_by(sample, target, n_rows)
    if not _is_certain(shift):
        return None
    # the second sample is a test: the first may be misled by a few of its weights
    test = draws.sample(rbm, _n_to_test(shift, draws.n_states), _TEST)
    test = _better(test, draws.by_rows(rbm, _TEST))
    if not _is_believed(test, target, rows.units):
        return None
    gain, error = _gain(test, shift.biases, target)
    shift = shift._replace(gain=gain, error=error)
    is_certain = _is_certain(shift) and not _finds_others(rbm, draws, test, shift)
    return shift if is_certain else None


def _first_draws(rbm, draws):
    """The `Draws` with so many temperatures that weights are even, and few states.

    The variance of log weights is in inverse proportion to the temperatures, and a
    given work tells most where it is one.
    """
    draws = draws._replace(n_states=_most_states(rbm, draws.n_betas, _FEW_STATES))
    work_of_each = draws.n_states * max(rbm.weights.size, 1)
    most = max(draws.n_betas, min(_MOST_BETAS, int(_MOST_WORK / work_of_each)))
    few = draws.sample(rbm, draws.n_states, _FIRST)
    # bound: _MOST_BETAS, as each time they are multiplied by log 4 at least
    while few.size < _ENOUGH * len(few.states) and draws.n_betas < most:
        variance = -np.log(few.size / len(few.states))
        draws = draws._replace(n_betas=min(most, int(draws.n_betas * variance)))
        few = draws.sample(rbm, draws.n_states, _FIRST)
    return draws._replace(n_states=_most_states(rbm, draws.n_betas, _N_STATES)), few


def _most_states(rbm, n_betas, wanted):
    """The states that are wanted, or as many as can be had."""
    most = int(_MOST_WORK / (n_betas * max(rbm.weights.size, 1)))
    return min(wanted, max(_FEWEST_STATES, most))


def _grown(rbm, draws, sample, target):
    """Ever more states, while they tell that a shift gains something; or None."""
    of_rows, number = draws.by_rows(rbm, _FIRST), _GROWING
    best = _better(sample, of_rows)
    # bound: their number doubles, up to that of the draws
    while _may_be_enough(best, draws) and _may_gain(best, target, len(draws.rows)):
        n = len(sample.states)
        if n >= draws.n_states:
            return best
        more = draws.sample(rbm, min(n, draws.n_states - n), number)
        sample, number = _joined(sample, more), number + 1
        best = _better(sample, of_rows)
    return None


def _may_be_enough(sample, draws):
    """Whether its weights are so even that all states may be believed."""
    return sample.size * draws.n_states >= _LEAST_SAMPLE * len(sample.states)


def _joined(*samples):
    """The `Sample` of all states of several ones."""
    log_weights = [
        one.log_weights + one.log_partition + np.log(len(one.states)) for one in samples
    ]
    states = np.concatenate([one.states for one in samples])
    return _sample(states, np.concatenate(log_weights))


def _is_believed(sample, target, units):
    return sample.size >= _LEAST_SAMPLE and not _misses_modes(sample, target, units)


def _n_to_test(shift, n_states):
    """States by which a gain is certain, if it is what the first ones say.

    Of twice the standard errors that are asked, as the first ones may err.
    """
    asked = 2.0 * _CERTAIN * shift.error
    share = (asked / max(shift.gain, asked, np.finfo(float).tiny)) ** 2
    return int(np.clip(share * n_states, min(_FEW_STATES, n_states), n_states))


def _finds_others(rbm, draws, sample, shift):
    """Whether states that no sample had have become likely by a shift.

    They show in the partition function of the shifted model.
    """
    moved = rbm._replace(visible=(rbm.visible + shift.biases).astype(np.float32))
    after = draws.sample(moved, min(_FEW_STATES, draws.n_states), _AFTER)
    after = _better(after, draws.by_rows(moved, _AFTER))
    tilted = logsumexp(sample.log_weights + sample.states @ shift.biases)
    return after.log_partition >= sample.log_partition + tilted + _MOST_MISSED


def _is_certain(shift):
    return shift.gain >= max(_LEAST_GAIN, _CERTAIN * shift.error)


def _shift_by(sample, target, n_rows):
    """The best shift, by one sample, along as many components as gain most."""
    weights = np.exp(sample.log_weights)
    mean = weights @ sample.states
    components = _components(sample.states - mean, weights)
    along = sample._replace(states=(sample.states - mean) @ components)
    target = (target - mean) @ components
    best = Shift(np.zeros(len(mean)), 0.0, 0.0)
    for n in _NUMBERS:
        if n > components.shape[1]:
            break
        part, part_target = along._replace(states=along.states[:, :n]), target[:n]
        gain, error = _gain_of_halves(part, part_target)
        # less what so many numbers gain on rows that they were fitted to
        gain -= 0.5 * n / n_rows
        if gain > best.gain:
            biases = components[:, :n] @ _best(part, part_target)
            best = Shift(biases, float(gain), float(error))
    return best


def _may_gain(few, target, n_rows):
    """Whether a shift gains something, as far as few states tell.

    By the quadratic part of L, at its best: half of the squared mean of z, less what
    chance adds to it in the states and in the rows.
    """
    weights = np.exp(few.log_weights)
    mean = weights @ few.states
    z = (target - mean) @ _components(few.states - mean, weights)
    by_chance = len(z) * (1.0 / few.size + 1.0 / n_rows)
    return 0.5 * (z @ z - by_chance) >= _LEAST_GAIN


def _misses_modes(sample, target, units):
    """Whether states vary less than rows with the mean ``target``, by much.

    A mode to which no chain comes takes its part of the variance with it. What is left
    would be moved towards that mode, which may be likely enough.
    """
    found = units.variances(np.exp(sample.log_weights) @ sample.states).sum()
    return found < _LEAST_COVERED * units.variances(target).sum()


def _better(sample, other):
    """States of both samples, in two regions: around the mean of each.

    Annealed chains miss a mode altogether to which no temperature leads, and the hidden
    states of rows a part of a wide one. In each region, the sample with clearly more of
    the mass counts, or the one that tells more. The first one, if the other is None.
    """
    if other is None:
        return sample
    samples = sample, other
    # without the weights, of which a few may be nearly all
    means = [one.states.mean(axis=0) for one in samples]
    direction = means[1] - means[0]
    middle = 0.5 * (means[0] + means[1]) @ direction
    sides = [one.states @ direction > middle for one in samples]
    parts = [
        _clearer(*map(_within, samples, (side == upper for side in sides)))
        for upper in (True, False)
    ]
    masses = np.concatenate([one.log_weights + one.log_partition for one in parts])
    states = np.concatenate([one.states for one in parts])
    log_partition = float(logsumexp(masses))
    n_drawn = min(one.n_drawn for one in samples)
    return Sample(states, masses - log_partition, log_partition, n_drawn)


def _clearer(sample, other):
    """The sample with clearly more mass than the other one, or more even weights."""
    low, high = sorted((sample, other), key=lambda one: one.log_partition)
    chance = _CLEARLY * np.hypot(low.error, high.error)
    if high.log_partition - low.log_partition > chance:
        return high
    return max(sample, other, key=lambda one: one.size)


def _within(sample, inside):
    """The `Sample` of the states that are ``inside``, with their mass."""
    log_weights = sample.log_weights[inside]
    share = logsumexp(log_weights) if len(log_weights) else -np.inf
    log_partition = float(sample.log_partition + share)
    states = sample.states[inside]
    return Sample(states, log_weights - share, log_partition, sample.n_drawn)


def _sample(states, log_weights, offset=0.0):
    total = logsumexp(log_weights)
    level = float(offset + total - np.log(len(log_weights)))
    weights = log_weights - total
    return Sample(states.astype(float), weights, level, len(states))


def _from_rows(rbm, rows, seed):
    """The `Sample` by the hidden states of rows."""
    log_weights, h = draw_weighted(rbm, rows.spread(_N_ROWS), _N_STATES, seed)
    states = rbm.units.draw(product(h, rbm.weights), rbm.visible, _place(seed))
    return _sample(states, log_weights)


def _place(seed):
    """Of the random numbers of visible states."""
    return np.uint64(derived_seed(seed, Stream.PROPORTIONS)), 0, 0


def _independent(rbm, n_states, seed):
    """The `Sample` by the list of all hidden states."""
    states, log_masses = listed_states.sample(rbm, n_states, None, seed)
    return _sample(states, np.zeros(n_states), float(log_masses[0]))


def _annealed(rbm, base, amount, seed, n_jobs):
    """The `Sample` of annealed chains: so many states, by so many temperatures."""
    n_states, n_betas = amount
    path = annealing.make_path(rbm, base, np.linspace(0.0, 1.0, n_betas // 4 + 1))
    first = annealing.run_forward(path, max(n_states // 4, 1), seed, n_jobs)
    betas = respace(path.betas, first.works.std(axis=1), n_betas)
    run = annealing.run_forward(path._replace(betas=betas), n_states, seed, n_jobs)
    offset = annealing.base_log_partition(rbm, base)
    return _sample(run.states, run.log_weights, offset)


def _components(deviations, weights):
    """Leading principal components (n_features, n), the largest first.

    In units in which each has a variance of one.
    """
    weighted = deviations * np.sqrt(weights)[:, None]
    # of features, or of states, where there are fewer of these
    has_few = weighted.shape[1] <= weighted.shape[0]
    products = weighted.T @ weighted if has_few else weighted @ weighted.T
    n = len(products)
    most = min(n, _NUMBERS[-1])
    values, vectors = eigh(products, subset_by_index=(n - most, n - 1))
    is_some = values > _LEAST_VARIANCE * max(values[-1], _LEAST_VARIANCE)
    values, vectors = values[is_some][::-1], vectors[:, is_some][:, ::-1]
    if not has_few:
        vectors = weighted.T @ vectors / np.sqrt(values)
    return vectors / np.sqrt(values)


def _best(sample, target):
    """The shift along all of its states that gains most, slightly pulled to none."""
    z, log_weights = sample[:2]

    def loss(a):
        tilted = log_weights + z @ a
        level = logsumexp(tilted)
        slope = np.exp(tilted - level) @ z - target + _PRIOR * a
        return level - logsumexp(log_weights) - target @ a + 0.5 * _PRIOR * a @ a, slope

    return minimize(loss, np.zeros(z.shape[1]), jac=True, method="BFGS").x


def _gain(sample, shift, target):
    """What a shift gains by a sample, and the standard error."""
    before = sample.log_weights - logsumexp(sample.log_weights)
    after = before + sample.states @ shift
    level = logsumexp(after)
    error = np.sqrt(np.square(np.exp(after - level) - np.exp(before)).sum())
    return float(target @ shift - level), float(error)


def _gain_of_halves(sample, target):
    """What shifts by half of the states gain by the others, and the standard error."""
    even = np.arange(len(sample.states)) % 2 == 0
    halves = [
        sample._replace(states=sample.states[k], log_weights=sample.log_weights[k])
        for k in (even, ~even)
    ]
    found = [
        _gain(other, _best(one, target), target)
        for one, other in (halves, halves[::-1])
    ]
    gains, errors = np.transpose(found)
    return gains.mean(), 0.5 * np.hypot(*errors)
