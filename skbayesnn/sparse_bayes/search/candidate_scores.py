"""Scores of the candidates of a search: for each stretch, of a fit that did not see it.

A single start may end in a poor optimum, and would then decide on its candidate. It
shows on the rows that the fit has seen: the fits without other stretches, which have
seen nearly the same rows, err far less there. Such a fit is begun anew, once, and of
both the one counts that errs less on what it has seen.
"""

from typing import NamedTuple

from ..._parallel import at_hand
from .candidates import Table
from .comparison import Comparison
from .drift import drift
from .rounds import run_rounds
from .settled_starts import SETTLED
from .tasks import Task


class Scores(NamedTuple):
    """What the fits of a search have told about its candidates.

    table : Table
        Their held-out errors.
    fits : dict of (Candidate, int) to Score
        By the stretch that they did not see.
    not_tried : list of (Candidate, int)
        For which there was no time.
    """

    table: Table
    fits: dict
    not_tried: list

    @property
    def networks(self):
        """The network of every fit that has one."""
        found = {pair: score.network for pair, score in self.fits.items()}
        return {pair: one for pair, one in found.items() if one is not None}

    @property
    def starts(self):
        """Where fits of hidden states to the whole record can go on."""
        found = {pair: score.start for pair, score in self.fits.items()}
        return {pair: one for pair, one in found.items() if one is not None}

    def put(self, pair, score):
        """Keep the score of a candidate and a stretch, in place of an earlier one."""
        self.table.add(*pair, score.error)
        self.fits[pair] = score

    def poor(self, candidates):
        """Pairs of candidate and fold whose fits ended in a poor optimum.

        They err far more on what they have seen than the best fit of their candidate.
        """
        found = []
        for candidate in candidates:
            seen = {
                pair: score.seen
                for pair, score in self.fits.items()
                if pair[0] == candidate and score.network is not None
            }
            limit = SETTLED * min(seen.values(), default=0.0)
            found += [pair for pair, error in seen.items() if error > limit]
        return found


def judge(space, runner, seeds, samples, n_folds, fraction):
    """The `Scores` of the candidates of a search, which tries them round by round.

    Parameters
    ----------
    space : SearchSpace
    runner : Runner
    seeds : list of int
        Of the fits without each fold, and of those that are begun anew.
    samples : dict of str to Shared of CutRecord
        What the models of candidates are fitted to.
    fraction : float
        Of the time, behind which no further fit begins but the first of a candidate
        of a kind that was asked for.
    """
    evaluation = _Evaluation(space, runner, seeds, samples, n_folds, fraction)
    with at_hand(runner.data, *samples.values()):
        run_rounds(evaluation.comparison, space)
    evaluation.tell_of_linear()
    return evaluation.scores


class _Evaluation:
    """Fits of candidates without a stretch, and the `Scores` that they fill.

    Parameters
    ----------
    As those of `judge`.

    Attributes
    ----------
    scores : Scores
    comparison : Comparison
        Asks for the scores of candidates.
    """

    def __init__(self, space, runner, seeds, samples, n_folds, fraction):
        self.scores = Scores(Table(n_folds), {}, [])
        # one step ahead nothing drifts
        drift_of = self._drift if runner.settings.focus == "simulation" else None
        self.comparison = Comparison(self.scores.table, self._evaluate, drift_of)
        self._space, self._runner, self._fraction = space, runner, fraction
        self._seeds, self._samples, self._n_folds = seeds, samples, n_folds
        self._begun_anew, self._told_of_linear = set(), False

    @property
    def _time_is_over(self):
        return self._runner.clock.over(self._fraction)

    def _evaluate(self, pairs):
        """Score pairs, and begin poor fits anew, as far as there is time."""
        if not all(candidate.is_arx for candidate, _ in pairs):
            self.tell_of_linear()
        scores = self.scores
        # without any fit of a kind that was asked for, there would be no model
        has_fit = any(self._space.asks_for(candidate) for candidate, _ in scores.fits)
        if not has_fit or not self._time_is_over:
            for pair, score in self._fit(pairs, 0):
                scores.put(pair, score)
        scores.not_tried.extend(pair for pair in pairs if pair not in scores.fits)
        if not self._time_is_over:
            self._begin_anew(dict.fromkeys(candidate for candidate, _ in pairs))

    def _begin_anew(self, candidates):
        """Begin fits that ended in a poor optimum from another seed, once."""
        pairs = [p for p in self.scores.poor(candidates) if p not in self._begun_anew]
        self._begun_anew.update(pairs)
        for pair, score in self._fit(pairs, self._n_folds):
            if score.seen < self.scores.fits[pair].seen:
                self.scores.put(pair, score)

    def _fit(self, pairs, first_seed):
        """The pairs with their scores, from a seed for each fold."""
        seeds = self._seeds[first_seed:]
        tasks = [Task(candidate, seeds[fold], fold) for candidate, fold in pairs]
        # fewer than tasks when the time is over
        results = self._runner.run(tasks, self._samples, self._fraction)
        return zip(pairs, results, strict=False)

    def _drift(self, candidate):
        """How far the fits of a candidate drift apart."""
        networks = self.scores.networks.items()
        alike = [network for (of, _), network in networks if of == candidate]
        return drift(alike, self._runner.data.value)

    def tell_of_linear(self):
        """Print one line of all linear models, once: a line each would be too many."""
        if self._runner.verbose and not self._told_of_linear:
            self._told_of_linear = True
            _tell_of_linear(self.scores, self.comparison)


def _tell_of_linear(scores, comparison):
    """Print how many linear models there are, and which of them is the best."""
    stretches = [fold for candidate, fold in scores.fits if candidate.is_arx]
    if not stretches:
        return
    n = len(set(stretches))
    where = "1 stretch" if n == 1 else f"{n} stretches"
    text = f"{len(stretches)} fits of linear models, on {where}"
    kept = [c for c in comparison.table.errors if c.is_arx]
    ranked = comparison.table.ranked(kept, comparison.all_folds)
    if ranked:
        error = comparison.error_on_all(ranked[0])
        text += f": the best is {ranked[0]}, error {error:.4g}"
    print(text)
