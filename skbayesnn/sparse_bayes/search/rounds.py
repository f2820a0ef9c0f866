"""The search for lags, strength of the prior and kind of model, by held-out errors.

Every candidate is judged alike: it is fitted without the outputs of a stretch of the
record, and its free run through that stretch is scored (its single steps for
``focus="prediction"``). The search begins with what is cheap, and spends fits only
where they may still change the choice:

1. references: the mean, the last value, and linear ARX models with more and more lags,
   with and without u(t), from now on or behind dead times, of levels and of differences
   of the outputs;
2. networks of all lags, and a state-space network if these are asked for, on three of
   the stretches: a part of both, because the time may be limited;
3. networks of other strengths, and what continues the grids of both;
4. other state-space networks, another activation first, where one of them comes close;
5. those that are still close to the best, on more stretches.

Networks of hidden states that are behind on the first stretch are not tried on others.
Those of lags are: what is behind there may be ahead elsewhere, and an ensemble of lags
needs several settings.

Where the best value is the last of its grid, the grid is continued. Where linear models
of levels and of differences are close, both are searched, and the error of a candidate
includes its drift, see `drift`.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from ..learning.realization import can_fit_arx
from .candidates import Candidate
from .members import EQUAL, first_of, leading, simplest

# Grids of "auto". Linear models are cheap, and are tried with far longer lags.
LAGS = (5, 10, 20)
LINEAR_LAGS = (1, 2, 3, 5, 7, 10, 14, 20, 30)
STRENGTHS = (6.0, 20.0)
LAG_GROWTH = 1.6
STRENGTH_RANGE = (0.2, 200.0)
STATES = (4,)
MAX_STATES = 10
STATES_STRENGTHS = (5.0,)
# Smooth systems ask for the first, saturations, magnitudes and overflows for the other.
ACTIVATIONS = ("tanh", "relu")
# Fits that go on from there to their end, and search for their number of states, are
# another model: on simulated tanks of 1,024 rows their errors were about half as large,
# on 300 rows of a hair dryer larger.
FEW_CYCLES = 15
# Numbers of states grow on where the last step has made the error smaller by this.
WORTH_MORE_STATES = 1.1
# Stretches of the first rounds and of the last one, and candidates that come into it:
# those whose error is not so many times the least one.
FIRST_FOLDS = 3
LAST_FOLDS = 5
N_FINALISTS = 6
N_OF_EACH_KIND = 2
HOPEFUL = 1.75
# Linear models of differences have so many times the error of those of levels where
# differences are wrong. Where they are right, they may have more than twice as much:
# roots beside that of the integrator make up for what is not linear.
FAR_BEHIND = 3.0
# Lags with which a linear model errs so many times more than with longer ones miss a
# part of the memory, such as a dead time, for a network as well.
TOO_SHORT = 1.5
# What a model may say, see `SparseBayesNARXRegressor`.
OUTPUTS = ("level", "difference")
# A fit takes about observations, of all outputs, times squared weights; beyond this a
# lag is left to linear models.
MAX_WORK = 1.5e8


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

    def affordable(self, lag):
        n_regressors = self.n_signals * (lag + 1)
        n_weights = n_regressors * (self.n_hidden + 1)
        return self.rows * self.n_outputs * n_weights**2 <= MAX_WORK

    def linear(self, lag):
        """Whether the rows tell the weights of a linear model."""
        return can_fit_arx(lag, self.n_signals, self.rows)


class Search:
    """The rounds of a search.

    Parameters
    ----------
    evaluate : callable
        Takes pairs of candidate and fold, and adds their errors to ``table``; it may
        return early when the time is over.
    kinds : tuple of str
        Errors that networks are fitted to, "prediction" and "simulation" or one.
    lags, strengths : lists of candidates, or "auto"
    current_input : whether u(t) is a regressor, or "auto"
    states : list of numbers of hidden states, or "auto"
    activations, states_cycles : of networks of hidden states, and of their fits; the
        others are tried where the first are the best
    models : which of the models of a `Candidate` are tried
    outputs : which of `OUTPUTS`; with both, linear models tell whether differences are
        worth more fits
    n_outputs : number of outputs, each of which needs a state for its level
    dead_times : tuple of int, of each input, which linear models may confirm; or empty
    drift : callable or None
        Takes a candidate, and returns its drift. It is asked where differences are
        tried. None for errors one step ahead, where nothing drifts.
    """

    def __init__(
        self,
        table,
        evaluate,
        kinds,
        lags,
        strengths,
        current_input,
        limits,
        states="auto",
        activations=ACTIVATIONS,
        states_cycles=(FEW_CYCLES,),
        models=("linear", "network"),
        outputs=("level",),
        n_outputs=1,
        dead_times=(),
        drift=None,
    ):
        # with both outputs, linear models tell first whether differences are tried
        self.drift, self.measures_drift = drift, outputs == ("difference",)
        self.table, self.evaluate, self.kinds = table, evaluate, kinds
        self.models, self.outputs, self.n_outputs = models, outputs, n_outputs
        self.current_input, self.dead_times = current_input, dead_times
        self.extend_lags = isinstance(lags, str)
        self.extend_strengths = isinstance(strengths, str)
        self.lags = list(LAGS) if self.extend_lags else lags
        self.strengths = list(STRENGTHS) if self.extend_strengths else strengths
        self.extend_states = isinstance(states, str)
        self.states = list(STATES) if self.extend_states else states
        self.activations, self.states_cycles = activations, states_cycles
        self.limits = limits
        places = (np.arange(1, table.n_folds + 1) * 0.618034) % 1.0
        self.order = np.argsort(places)[:LAST_FOLDS].tolist()
        self.network = "network" if limits.n_hidden else "linear"

    def run(self):
        """Fill the table, round by round."""
        tried, networks, states = [], [], []
        if {"linear", "network"} & set(self.models) or len(self.outputs) > 1:
            linear = self.linear_round()
            self.measures_drift = "difference" in self.outputs
            self.add_drift(self.table.errors)
            if "network" in self.models:
                networks = self.first_networks(linear)
        if "states" in self.models:
            states = self.first_states()
        # a part of both, before the time may be over
        first = [c for c in networks if c.reg_lambda == self.strengths[0]]
        self.try_all([*first, *states], self.order[:FIRST_FOLDS])
        if networks:
            tried += self.grid_round(networks)
        if "linear" not in self.models:
            # they have told the lags
            self.forget([c for c in self.table.errors if not self.may_keep(c)])
        if states:
            tried += self.states_round(states)
        self.try_all(self.finalists(tried), self.order)

    def may_keep(self, candidate):
        """Whether a candidate is of a kind that was asked for."""
        return not candidate.is_arx or "linear" in self.models

    def try_all(self, candidates, folds):
        candidates = list(candidates)
        self.evaluate(self.table.missing(candidates, folds))
        self.add_drift(c for c in candidates if c in self.table.errors)

    def try_hopeful(self, candidates, rivals):
        """Try candidates on a few folds, and only on the first where they are behind.

        Their fits take long. Those that may take more cycles than all of the rivals
        have to be as good, because they take several times as long.
        """
        # one fit does not show how far a candidate drifts
        if not self.measures_drift:
            first = self.order[:1]
            self.try_all(candidates, first)
            error = partial(self.table.error, folds=first)
            least = min(map(error, rivals))
            longest = max(c.max_cycles for c in rivals)
            factors = {
                c: EQUAL if c.max_cycles > longest else HOPEFUL for c in candidates
            }
            candidates = [c for c, by in factors.items() if error(c) <= by * least]
        self.try_all(candidates, self.order[:FIRST_FOLDS])

    def add_drift(self, candidates):
        """What candidates drift, if that is to be compared."""
        if not self.measures_drift or self.drift is None:
            return
        for candidate in candidates:
            drift = self.drift(candidate)
            # the time was over after one fit
            unknown = np.isnan(drift)
            drift = self.linear_drift(candidate.output) if unknown else drift
            self.table.drifts[candidate] = drift

    def linear_drift(self, output):
        """The least drift of linear models with an output; 0 without one."""
        drifts = self.table.drifts.items()
        linear = [drift for c, drift in drifts if c.is_arx and c.output == output]
        return min(linear, default=0.0)

    def linear_round(self):
        """Linear ARX models by least squares, on all folds.

        Of levels, and of differences where these are not far behind with the same lags.

        Returns
        -------
        linear : dict of str to list of Candidate, by output
        """
        first, *others = self.outputs
        linear = {first: self.linear_models_of(first)}
        for output in others:
            best = min(linear[first], key=self.of_all)
            if self.is_far_behind(best._replace(output=output), best):
                self.outputs = (first,)
            else:
                linear[output] = self.linear_models_of(output)
        return linear

    def of_all(self, candidate):
        """The error of a candidate on all folds."""
        return self.table.error(candidate, self.order)

    def forget(self, candidates):
        """Twice as many linear models would win by chance more often."""
        for candidate in candidates:
            self.table.errors.pop(candidate, None)
            self.table.drifts.pop(candidate, None)

    def is_far_behind(self, candidate, best):
        """Whether a candidate is not worth more fits, by the first folds."""
        folds = self.order[:FIRST_FOLDS]
        self.try_all([candidate], folds)
        limit = FAR_BEHIND * self.table.error(best, folds)
        far = not self.table.error(candidate, folds) <= limit
        if far:
            self.forget([candidate])
        return far

    def linear_models_of(self, output):
        """Linear models of levels or of differences.

        With and without u(t), if that is open. It is left out where linear models are
        better without it: an output that was sampled with its input seldom depends on
        it at once.
        """
        if self.current_input != "auto":
            return self.behind_dead_times(
                self.linear_models(self.current_input, output)
            )
        both = {use: self.linear_models(use, output) for use in (False, True)}
        without, with_it = (
            min(map(self.of_all, models), default=np.inf) for models in both.values()
        )
        use = EQUAL * without > with_it
        self.forget(both[not use])
        return self.behind_dead_times(both[use])

    def behind_dead_times(self, models):
        """Linear models, or those behind dead times if these are better.

        Lags that networks can have are compared: many lags of a linear model may reach
        as far as few behind a dead time. If they even are better, they stay beside.
        """
        if not (models and self.dead_times):
            return models
        use, output = models[0].current_input, models[0].output
        behind = self.linear_models(use, output, self.dead_times)

        def least(models, longest=np.inf):
            errors = [self.of_all(c) for c in models if c.lag <= longest]
            return min(errors, default=np.inf)

        longest = max(filter(self.limits.affordable, self.lags), default=0)
        if not least(behind, longest) < least(models, longest):
            self.forget(behind)
            return models
        if least(behind) <= EQUAL * least(models):
            self.forget(models)
        return behind

    def linear_models(self, current_input, output, dead_times=()):
        """Linear ARX models by least squares, on all folds; the lags may grow."""

        def arx(lag):
            arguments = "linear", "prediction", lag, 0.0, current_input
            return Candidate(*arguments, output=output, dead_times=dead_times)

        grid = LINEAR_LAGS if self.extend_lags else self.lags
        lags = [lag for lag in grid if lag <= self.longest(dead_times)]
        lags = [lag for lag in lags if self.limits.linear(lag)] or lags[:1]
        self.try_all(map(arx, lags), self.order)
        best = self.table.ranked(map(arx, lags), self.order)
        # bound: lags grow up to the longest
        while self.extend_lags and best and best[0].lag == max(lags):
            longer = self.longer(max(lags), dead_times)
            if longer is None or not self.limits.linear(longer):
                break
            lags.append(longer)
            self.try_all([arx(longer)], self.order)
            best = self.table.ranked(map(arx, lags), self.order)
        return list(map(arx, lags))

    def longest(self, dead_times):
        """The longest lag of which stretches hold two windows behind dead times."""
        return self.limits.longest - (max(dead_times, default=0) + 1) // 2

    def longer(self, lag, dead_times):
        """The next longer lag of the grid, or None."""
        lag = round(LAG_GROWTH * lag)
        return lag if lag <= self.longest(dead_times) else None

    def network_lags(self, linear):
        """Lags for networks: affordable, and not too short by the linear models."""
        longest = self.longest(dead_times_of(linear))
        lags = [lag for lag in self.lags if lag <= longest] or [longest]
        if not self.extend_lags:
            return lags
        lags = [lag for lag in lags if self.limits.affordable(lag)] or lags[:1]
        arx = {c.lag: self.table.error(c, self.order) for c in linear}
        least = min(arx.values(), default=np.inf)
        enough = [lag for lag in lags if not arx.get(lag, 0.0) > TOO_SHORT * least]
        if enough:
            return enough
        best = min(arx, key=arx.get)
        return [best] if self.limits.affordable(best) else lags[-1:]

    def first_networks(self, linear):
        """Networks of all lags and strengths.

        Linear models with the same output tell the lags, and whether u(t) is used, and
        dead times. Of two kinds the one-step fits get the weakest strength alone.
        """
        return [
            Candidate(
                self.network,
                kind,
                lag,
                strength,
                any(c.current_input for c in models),
                output=output,
                dead_times=dead_times_of(models),
            )
            for output, models in linear.items()
            for kind in self.kinds
            for lag in self.network_lags(models)
            for strength in self.strengths[: None if kind == self.kinds[0] else 1]
        ]

    def grid_round(self, first):
        """The first networks on a few folds, and what continues their grids.

        Where fits of the other kind are best, they get the other strengths, too. Where
        the best candidate is at the end of a grid, this is continued.
        """
        folds = self.order[:FIRST_FOLDS]
        tried = []

        def attempt(candidates):
            tried.extend(c for c in candidates if c not in tried)
            self.try_all(candidates, folds)
            return self.table.ranked(tried, folds)

        best = attempt(first)
        # bound: all candidates differ, and both grids have ends
        while best:
            leaders = [first_of(best, output) for output in self.outputs]
            new = [c for one in leaders for c in self.neighbours(one, tried)]
            if not new:
                break
            best = attempt(new)
        return tried

    def neighbours(self, best, tried):
        """What continues the grids where the best of an output is at their end."""
        if best is None:
            return []
        alike = [c for c in tried if c.fitted_to == best.fitted_to]
        alike = [c for c in alike if c.output == best.output]
        strengths = [c.reg_lambda for c in alike if c.lag == best.lag]
        new = [best._replace(reg_lambda=s) for s in self.strengths]
        if self.extend_strengths:
            following = self.next_strength(best.reg_lambda, strengths + self.strengths)
            new += [best._replace(reg_lambda=s) for s in following]
        if self.extend_lags and best.lag == max(c.lag for c in alike):
            longer = self.longer(best.lag, best.dead_times)
            if longer is not None and self.limits.affordable(longer):
                new.append(best._replace(lag=longer))
        return [c for c in new if c not in tried]

    def first_states(self):
        """State-space networks that decide whether there are others.

        Of the first activation and few cycles.
        """
        strengths = STATES_STRENGTHS if self.extend_strengths else self.strengths
        kind = self.activations[0], self.states_cycles[0]
        return [
            Candidate("states", "simulation", 0, strength, True, n, *kind, output)
            for output in self.outputs
            for n in self.numbers_of_states(output)
            for strength in strengths
        ]

    def states_round(self, first):
        """The first state-space networks on a few folds, and others.

        Their fits take longer than those of lags, and where the outputs show the state
        they are far behind. Other activations and more cycles are tried where the best
        is, and the grids go on with those of the best, that of states before that of
        strengths. Of those that are as good, that is the one with the fewest states,
        and then with the fewest cycles.
        """
        folds = self.order[:FIRST_FOLDS]
        error = partial(self.table.error, folds=folds)
        rivals = [c for c in self.table.errors if c.model != "states"]
        rivals = self.table.ranked(rivals, folds)
        least = min(map(error, rivals), default=np.inf)
        tried = list(first)
        self.try_all(tried, folds)
        ranked = self.table.ranked(tried, folds)
        # farther behind where another activation may be better
        hopeless = HOPEFUL ** min(len(self.activations), 2)
        # bound: all candidates differ, and all grids have ends
        while ranked and error(ranked[0]) <= hopeless * least:
            output = leading(ranked, error).output
            alike = [c for c in ranked if c.output == output]
            # fits of more states and cycles take longer, and so do those that follow
            best = simplest(alike, error, lambda c: (c.n_states, c.max_cycles))
            new = self.states_neighbours(best, tried)
            if not new:
                break
            tried += new
            self.try_hopeful(new, [best])
            ranked, hopeless = self.table.ranked(tried, folds), HOPEFUL
        return tried

    def numbers_of_states(self, output):
        """The first numbers to try.

        Each level is a state. As levels keep networks from losing states that do not
        pay, networks of differences also begin with one more state than levels.
        """
        if output == "level":
            return self.states
        few = [self.n_outputs + 1] if self.extend_states else []
        return sorted({n for n in [*few, *self.states] if n >= self.n_outputs})

    def states_neighbours(self, best, tried):
        """Other activations, more cycles, and then what continues the grids."""
        same = [c for c in tried if c.output == best.output]
        seen = {c.activation for c in same}
        others = [
            best._replace(activation=a) for a in self.activations if a not in seen
        ]
        if not others:
            seen = {c.max_cycles for c in same}
            more = [n for n in self.states_cycles if n not in seen]
            others = [best._replace(max_cycles=n) for n in more]
        if others:
            return others
        like_best = best.activation, best.max_cycles
        alike = [c for c in same if (c.activation, c.max_cycles) == like_best]
        # of states first: a strength that is found for too few is another for more
        more = best._replace(n_states=best.n_states + 2)
        if self.extend_states and more not in tried and self.is_worth_more(best, alike):
            return [more]
        if not self.extend_strengths:
            return []
        strengths = [c.reg_lambda for c in alike if c.n_states == best.n_states]
        following = self.next_strength(best.reg_lambda, strengths)
        others = [best._replace(reg_lambda=s) for s in following]
        return [c for c in others if c not in tried]

    def is_worth_more(self, best, tried):
        """Whether the last states have made the error smaller, and more are allowed."""
        folds, error = self.order[:FIRST_FOLDS], self.table.error
        fewer = [c for c in tried if c.n_states < best.n_states]
        before = min((error(c, folds) for c in fewer), default=np.inf)
        worth = WORTH_MORE_STATES * error(best, folds) <= before
        return worth and best.n_states < MAX_STATES

    def finalists(self, tried):
        """Candidates for the remaining folds: those that may still be close.

        Half of them are models of levels and half of differences, if both are tried.
        The best of lags and of hidden states are among them, however many of the other
        kind are better: three stretches do not tell which kind is.
        """
        folds = self.order[:FIRST_FOLDS]
        ranked, error = self.table.ranked(tried, folds), self.table.error
        hopeful = [
            c for c in ranked if error(c, folds) <= HOPEFUL * error(ranked[0], folds)
        ]
        finalists = []
        for output in self.outputs:
            of_output = [c for c in hopeful if c.output == output]
            of_kinds = [[c for c in of_output if c.model == m] for m in self.models]
            best = [c for alike in of_kinds for c in alike[:N_OF_EACH_KIND]]
            rest = [c for c in of_output if c not in best]
            finalists += [*best, *rest][: N_FINALISTS // len(self.outputs)]
        return finalists

    def next_strength(self, best, strengths):
        """What continues the grid beyond its best value; nothing within the grid."""
        low, high = STRENGTH_RANGE
        following = []
        if best == max(strengths) and 3.0 * best <= high:
            following.append(3.0 * best)
        if best == min(strengths) and best / 3.0 >= low:
            following.append(round(best / 3.0, 3))
        return following


def longest_dead_time(longest):
    """That with which stretches hold two windows of the shortest lag of the grid.

    ``longest`` is the longest lag without a dead time.
    """
    return 2 * (longest - LAGS[0])


def dead_times_of(models):
    """Those that linear models have confirmed."""
    return models[0].dead_times if models else ()
