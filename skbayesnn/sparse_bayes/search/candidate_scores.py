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
    scores, begun_anew = Scores(Table(n_folds), {}, []), set()
    told_of_linear = not runner.verbose

    def fit(pairs, first_seed):
        """The pairs with their scores, from a seed for each fold."""
        tasks = [Task(c, seeds[first_seed + fold], fold) for c, fold in pairs]
        # fewer than tasks when the time is over
        return zip(pairs, runner.run(tasks, samples, fraction), strict=False)

    def evaluate(pairs):
        """Score pairs, and begin poor fits anew, as far as there is time."""
        nonlocal told_of_linear
        if not told_of_linear and not all(c.is_arx for c, _ in pairs):
            told_of_linear = True
            _tell_of_linear(scores, comparison)
        # without any fit of a kind that was asked for, there would be no model
        has_fit = any(space.asks_for(candidate) for candidate, _ in scores.fits)
        if not has_fit or not runner.clock.over(fraction):
            for pair, score in fit(pairs, 0):
                scores.put(pair, score)
        scores.not_tried.extend(pair for pair in pairs if pair not in scores.fits)
        if runner.clock.over(fraction):
            return
        poor = scores.poor(dict.fromkeys(candidate for candidate, _ in pairs))
        poor = [pair for pair in poor if pair not in begun_anew]
        begun_anew.update(poor)
        for pair, score in fit(poor, n_folds):
            if score.seen < scores.fits[pair].seen:
                scores.put(pair, score)

    def drift_of(candidate):
        """How far the fits of a candidate drift apart."""
        networks = scores.networks.items()
        return drift([n for (of, _), n in networks if of == candidate], data)

    data, in_free_run = runner.data.value, runner.settings.focus == "simulation"
    # one step ahead nothing drifts
    comparison = Comparison(scores.table, evaluate, drift_of if in_free_run else None)
    with at_hand(runner.data, *samples.values()):
        run_rounds(comparison, space)
    if not told_of_linear:
        _tell_of_linear(scores, comparison)
    return scores


def _tell_of_linear(scores, comparison):
    """Print one line of all linear models: a line each would take longer to read."""
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
