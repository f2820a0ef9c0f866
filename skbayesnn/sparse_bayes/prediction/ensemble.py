"""Several fitted networks that predict together: what all prediction works on.

A single network is an ensemble of one. `forecast` and `draws` predict whole records;
`streaming` predicts row by row.
"""

from typing import NamedTuple

import numpy as np

from ..._saved_state import saved_as
from ..fitted import FittedNetwork
from ..records.lags import Lags, complete_rows
from . import draws as drawing
from . import forecast as forecasting
from .forecast import Forecast, copy_initial_rows
from .hidden_states import StateSpaceNetwork

# Of sums of weights that should be one half; also in the median of `kernels.packed`.
ROUNDING = 1e-9

# A member that is as many times further from the mean of the ensemble, by its own
# standard deviation and by its distance, as members are by the median is about to
# diverge: the others would say so, too, if it were the system.
_OUTLYING = 3.0


@saved_as("LaggedNetwork")
class LaggedNetwork(NamedTuple):
    """A fitted network, and which past values are its inputs."""

    fitted: FittedNetwork
    lags: Lags

    @property
    def n_inputs(self):
        return self.lags.n_inputs

    @property
    def n_outputs(self):
        return self.lags.n_outputs

    @property
    def max_lag(self):
        """Rows needed before the first prediction."""
        return self.lags.max_lag

    @property
    def n_required(self):
        """Rows without which no run can start."""
        return self.lags.max_lag

    @property
    def output_reach(self):
        """Rows before the first prediction whose outputs are read."""
        return self.lags.output_reach

    @property
    def reads_input(self):
        """Which inputs are among the regressors, (n_inputs,) bool."""
        return np.isin(np.arange(self.n_inputs), self.lags.signal)

    def forecast(self, record, n_known, horizon, return_std, from_measured=False):
        """As `forecast` below."""
        arguments = record, n_known, horizon, return_std, from_measured
        return forecasting.of_network(self, *arguments)

    def draws(self, record, n_known, horizon, n_samples, rng, from_measured=False):
        """As `draws.of_network`."""
        arguments = record, n_known, horizon, n_samples, rng, from_measured
        return drawing.of_network(self, *arguments)

    def rows_to_score(self, U, Y, starts):
        """Measured rows whose window is complete."""
        return complete_rows(U, Y, self.lags, starts)


@saved_as("Ensemble")
class Ensemble(NamedTuple):
    """Networks with the same signals, whose lags, states and kinds may differ.

    members : tuple of LaggedNetwork or StateSpaceNetwork
    weights : (n_members,), sum to one
    """

    members: tuple[LaggedNetwork | StateSpaceNetwork, ...]
    weights: np.ndarray

    @classmethod
    def single(cls, fitted, lags):
        """An ensemble of one network."""
        return cls((LaggedNetwork(fitted, lags),), np.ones(1))

    @property
    def has_states(self):
        """Whether all members have hidden states."""
        return all(isinstance(one, StateSpaceNetwork) for one in self.members)

    @property
    def is_linear(self):
        """Whether no member has hidden units."""
        return all(one.fitted.network.linear for one in self.members)

    @property
    def filters(self):
        """For each member itself if it has hidden states, else None; () for lags."""
        filters = tuple(
            one if isinstance(one, StateSpaceNetwork) else None for one in self.members
        )
        return filters if any(filters) else ()

    @property
    def numbers_of_states(self):
        """Hidden states of each member (n_members,), of which lags have none."""
        return np.array([getattr(member, "n_states", 0) for member in self.members])

    @property
    def is_mixed(self):
        """Whether the numbers of hidden states differ."""
        return len(set(self.numbers_of_states)) > 1

    def singles(self):
        """Each member as an ensemble of one."""
        return [Ensemble((member,), np.ones(1)) for member in self.members]

    def alike(self):
        """Members with each number of hidden states, with their weights in this one."""
        numbers = self.numbers_of_states
        groups = [np.flatnonzero(numbers == n) for n in np.unique(numbers)]
        return [
            Ensemble(tuple(self.members[k] for k in group), self.weights[group])
            for group in groups
        ]

    @property
    def max_lag(self):
        """Rows needed before the first prediction."""
        return max(member.max_lag for member in self.members)

    @property
    def n_required(self):
        """Rows without which no run can start."""
        return max(member.n_required for member in self.members)

    @property
    def output_reach(self):
        """Rows before the first prediction whose outputs some member on lags reads."""
        return max(getattr(member, "output_reach", 0) for member in self.members)

    @property
    def reads_input(self):
        """Which inputs some member reads, (n_inputs,) bool."""
        return np.any([member.reads_input for member in self.members], axis=0)

    @property
    def n_inputs(self):
        return self.members[0].n_inputs

    @property
    def n_outputs(self):
        return self.members[0].n_outputs


def forecast(ensemble, record, n_known, horizon, return_std, from_measured=False):
    """Predict a record (U, Y, starts) one step ahead, several, or in free run.

    Parameters
    ----------
    record : records.layout.Record
    n_known : int
        Rows at the start of each session that are taken as measured: a free run starts
        behind them. At least ``ensemble.max_lag``, and that for finite horizons.
    horizon : int or inf
        Steps ahead; infinite for a free run.
    return_std : bool
    from_measured : bool
        Whether the noise of a free run is that of as many steps ahead of the known
        rows, rather than that of free runs in all rows. Other predictions have it.

    Returns
    -------
    Forecast
    """
    forecasts = [
        member.forecast(record, n_known, horizon, return_std, from_measured)
        for member in ensemble.members
    ]
    if len(forecasts) == 1:
        return forecasts[0]
    combined = combine(forecasts, ensemble.weights)
    if not ensemble.has_states:
        # which fill gaps in them
        copy_initial_rows(combined, record.Y, record.starts, n_known)
    return combined


def combine(forecasts, weights):
    """The forecast of an ensemble: the mixture of its members' forecasts.

    Its mean is the weighted median of the members, which one member that leaves the
    range on new data cannot spoil; its variance is that of the mixture, to which no
    member adds more than the median one times the square of `_OUTLYING`. A member that
    diverged is excluded from then on. Where the remaining ones have less than half of
    the weight, the ensemble has diverged.
    """
    if len(forecasts) == 1:
        return forecasts[0]
    means = np.array([forecast.mean for forecast in forecasts])
    known = np.isfinite(means)
    fractions = np.where(known, weights[:, None, None], 0.0)
    total = fractions.sum(axis=0)
    lost = total < 0.5
    fractions = fractions / np.where(lost, 1.0, total)
    mean = np.where(lost, np.nan, _weighted_median(means, fractions))
    std, least = None, None

    def root_of_mean(squares):
        most = _OUTLYING**2 * _weighted_median(squares, fractions)
        squares = np.minimum(squares, most)
        variance = np.sum(np.where(known, squares * fractions, 0.0), axis=0)
        return np.sqrt(np.where(lost, np.nan, variance))

    if forecasts[0].std is not None:
        square = np.array([forecast.std for forecast in forecasts]) ** 2
        std = root_of_mean(square + (means - mean) ** 2)
        parts = [forecast.least for forecast in forecasts]
        if not any(part is None for part in parts):
            least = root_of_mean(np.array(parts) ** 2)
    n_diverged = sum(np.array([forecast.n_diverged for forecast in forecasts]) > 0)
    rows = int(np.count_nonzero(lost.any(axis=1))) if n_diverged else 0
    return Forecast(mean, std, rows, least)


def _weighted_median(values, fractions):
    """Along the first axis; the mean of two values that halve the weight."""
    order = np.argsort(values, axis=0)
    values = np.take_along_axis(np.nan_to_num(values), order, axis=0)
    cumulated = np.cumsum(np.take_along_axis(fractions, order, axis=0), axis=0)
    low = np.argmax(cumulated >= 0.5 - ROUNDING, axis=0)[None]
    high = np.argmax(cumulated > 0.5 + ROUNDING, axis=0)[None]
    pick = np.take_along_axis
    return 0.5 * (pick(values, low, axis=0) + pick(values, high, axis=0))[0]


def draws(ensemble, record, n_known, horizon, n_samples, seed, from_measured=False):
    """Draws of a record from the mixture of the members.

    Arguments as in `forecast`. Each member has random numbers of its own.

    Returns
    -------
    drawn : ndarray of shape (n_rows, n_outputs, n_samples)
    n_diverged : int
        How many of the draws diverged.
    """
    members = ensemble.members
    root = np.random.SeedSequence(seed)
    rng, *rngs = map(np.random.default_rng, root.spawn(len(members) + 1))
    drawn, n_diverged = [], 0
    counts = allocate_draws(ensemble.weights, n_samples, rng)
    for member, count, own_rng in zip(members, counts, rngs, strict=True):
        arguments = record, n_known, horizon, count, own_rng, from_measured
        part, diverged = member.draws(*arguments)
        drawn.append(part)
        n_diverged += int(np.count_nonzero(diverged))
    if len(members) == 1:
        return drawn[0], n_diverged
    order = rng.permutation(n_samples)
    return np.concatenate(drawn, axis=2)[:, :, order], n_diverged


def allocate_draws(weights, n_samples, rng):
    """Number of draws from each member: ``n_samples`` times its weight, rounded.

    Systematic sampling: rounded up or down at random, right on average, always
    ``n_samples`` in total.
    """
    edges = np.cumsum(weights) / np.sum(weights) * n_samples
    passed = np.floor(edges + rng.uniform()).astype(int)
    passed = np.minimum(passed, n_samples)
    passed[-1] = n_samples
    return np.diff(passed, prepend=0)
