"""What a search may try: kinds of models, grids of their settings, and limits.

Where "auto" stands for a grid, the grid grows: values beyond it are tried where the
best value is its last one.
"""

from typing import NamedTuple

from ..learning.realization import can_fit_arx

# Grids of "auto". States begin with more where linear models need them, see
# `linear_order`; units are halved as long as the smallest number is as good.
LAGS = (5, 10, 20)
STRENGTHS = (6.0, 20.0)
STATES = (4,)
STATES_STRENGTHS = (5.0,)
STATES_UNITS = (8,)
# How grids grow: the factor of the next longer lag, that of the next strength, and the
# range of strengths.
LAG_GROWTH = 1.6
STRENGTH_GROWTH = 3.0
STRENGTH_RANGE = (0.2, 200.0)
# Of networks of hidden states. The first suits smooth systems, the other saturations,
# magnitudes and overflows.
ACTIVATIONS = ("tanh", "relu")
# Cycles of short fits of hidden states. Fits that go on from there to their end, and
# search for their number of states, are another model: on simulated tanks of 1,024 rows
# their errors were about half as large, on 300 rows of a hair dryer larger.
FEW_CYCLES = 15
# What a model may say, see `SparseBayesNARXRegressor`.
OUTPUTS = ("level", "difference")
# The time of a fit grows with the number of observations, of all outputs, times the
# square of the number of weights. Beyond this product a lag is left to linear models.
MAX_WORK = 1.5e8


class Grid(NamedTuple):
    """Values of one setting.

    values : tuple, the smallest first
    grows : whether values beyond these may be tried
    """

    values: tuple
    grows: bool = False


def make_grid(values, automatic):
    """The `Grid` of some values; for "auto" the one that grows from ``automatic``."""
    if isinstance(values, str):
        return Grid(automatic, grows=True)
    return Grid(tuple(values))


class Limits(NamedTuple):
    """What the record allows.

    longest : lag with which a stretch still holds two windows
    rows : of the record on which networks are compared
    n_signals : inputs and outputs
    n_outputs : of these, outputs
    n_hidden : units of all hidden layers
    """

    longest: int
    rows: int
    n_signals: int
    n_outputs: int
    n_hidden: int

    def allow_network(self, lag):
        """Whether fits of networks with this lag do not take too long."""
        n_regressors = self.n_signals * (lag + 1)
        n_weights = n_regressors * (self.n_hidden + 1)
        return self.rows * self.n_outputs * n_weights**2 <= MAX_WORK

    def allow_linear(self, lag):
        """Whether the rows are enough for the weights of a linear model."""
        return can_fit_arx(lag, self.n_signals, self.rows)

    def longest_lag(self, dead_times):
        """The longest lag of which stretches hold two windows behind dead times."""
        return self.longest - (max(dead_times, default=0) + 1) // 2

    def longer_lag(self, lag, dead_times):
        """The lag that continues a grid, or None if stretches do not hold it."""
        lag = round(LAG_GROWTH * lag)
        return lag if lag <= self.longest_lag(dead_times) else None


class SearchSpace(NamedTuple):
    """What a search may try.

    limits : Limits
    lags : Grid
    strengths : Grid, of networks of lags; see `strengths_of_states`
    states : Grid, numbers of hidden states
    units : Grid, of hidden units of networks of hidden states, which are halved where
        it grows; 0 where their layers were given
    kinds : kinds of models that were asked for, of "linear", "network", "states"
    fitted_to : errors that networks of lags are fitted to, "simulation", "prediction"
        or both; those of the first get more fits
    current_input : whether u(t) is a regressor, or "auto"
    dead_times : tuple of int, of each input, which linear models may confirm; or empty
    outputs : which of `OUTPUTS`; with both, linear models tell whether models of
        differences are worth more fits
    activations, states_cycles : of networks of hidden states, and of their fits. The
        first ones are tried first, the others where these are the best.
    """

    limits: Limits
    lags: Grid = Grid(LAGS, grows=True)
    strengths: Grid = Grid(STRENGTHS, grows=True)
    states: Grid = Grid(STATES, grows=True)
    units: Grid = Grid(STATES_UNITS, grows=True)
    kinds: tuple = ("linear", "network")
    fitted_to: tuple = ("simulation",)
    current_input: bool | str = "auto"
    dead_times: tuple = ()
    outputs: tuple = OUTPUTS[:1]
    activations: tuple = ACTIVATIONS
    states_cycles: tuple = (FEW_CYCLES,)

    @property
    def strengths_of_states(self):
        """First strengths of networks of hidden states: those given, or other ones."""
        return STATES_STRENGTHS if self.strengths.grows else self.strengths.values

    @property
    def network_model(self):
        """`Candidate.model` of networks of lags: "linear" without hidden units."""
        return "network" if self.limits.n_hidden else "linear"

    @property
    def may_be_nonlinear(self):
        """Whether models with hidden units are among those that may be chosen."""
        return self.limits.n_hidden > 0 and self.kinds != ("linear",)

    def asks_for(self, candidate):
        """Whether a candidate is of a kind that was asked for.

        Linear ARX models are tried for networks as well: they tell the lags.
        """
        return not candidate.is_arx or "linear" in self.kinds


def strengths_beyond(best, strengths):
    """What continues a grid of strengths if ``best`` is at an end of it."""
    low, high = STRENGTH_RANGE
    following = []
    if best == max(strengths) and STRENGTH_GROWTH * best <= high:
        following.append(STRENGTH_GROWTH * best)
    if best == min(strengths) and best / STRENGTH_GROWTH >= low:
        following.append(round(best / STRENGTH_GROWTH, 3))
    return following


def longest_dead_time(longest):
    """The longest dead time that is looked for.

    Behind it, stretches still hold two windows of the shortest lag of "auto".
    ``longest`` is the longest lag that they hold without a dead time.
    """
    return 2 * (longest - LAGS[0])
