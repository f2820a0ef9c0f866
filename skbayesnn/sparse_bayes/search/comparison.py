"""Candidates that are tried on more and more stretches, and compared there.

Most fits of a search are spent here: a candidate is tried on a few stretches first, and
on the others only if it may still be chosen.
"""

from functools import partial

import numpy as np

from .members import EQUAL

# Stretches of the first comparisons, and of the last one.
FEW_FOLDS = 3
MOST_FOLDS = 5
# Candidates whose error is at most so many times the least one may still be the best on
# other stretches.
HOPEFUL = 1.75


class Comparison:
    """Candidates that were tried, and a way to try others.

    Parameters
    ----------
    table : Table
        Errors of all candidates that were tried.
    evaluate : callable
        Takes pairs of candidate and fold, and adds their errors to ``table``. It may
        return early when the time is over.
    drift : callable or None
        Takes a candidate, and returns its drift. It is asked while ``measures_drift``
        is True. None for errors one step ahead, where nothing drifts.

    Attributes
    ----------
    few_folds, all_folds : lists of int
        Stretches of the first comparisons, and of the last one.
    measures_drift : bool
        Whether the errors of candidates include their drift.
    """

    def __init__(self, table, evaluate, drift=None):
        self.table, self.evaluate, self.drift = table, evaluate, drift
        self.measures_drift = False
        # by the golden ratio: the first few lie far from each other in the record
        places = (np.arange(1, table.n_folds + 1) * 0.618034) % 1.0
        self.all_folds = np.argsort(places)[:MOST_FOLDS].tolist()
        self.few_folds = self.all_folds[:FEW_FOLDS]

    def error(self, candidate):
        """The error of a candidate on the few folds."""
        return self.table.error(candidate, self.few_folds)

    def error_on_all(self, candidate):
        """The error of a candidate on all folds."""
        return self.table.error(candidate, self.all_folds)

    def ranked(self, candidates):
        """The candidates that were tried on the few folds, the best first."""
        return self.table.ranked(candidates, self.few_folds)

    def try_on(self, candidates, folds):
        """Try candidates on folds, if they have not been tried there."""
        candidates = list(candidates)
        self.evaluate(self.table.missing(candidates, folds))
        self._add_drift(c for c in candidates if c in self.table.errors)

    def try_hopeful(self, candidates, rivals):
        """Try candidates on the few folds, or on the first one if they are behind.

        For candidates whose fits take long. Those that may take more cycles than all of
        the rivals have to be as good as these, because they take several times as long.
        """
        # one fit does not show how far a candidate drifts
        if not self.measures_drift:
            first = self.few_folds[:1]
            self.try_on(candidates, first)
            error = partial(self.table.error, folds=first)
            least = min(map(error, rivals))
            longest = max(c.max_cycles for c in rivals)
            factors = {
                c: EQUAL if c.max_cycles > longest else HOPEFUL for c in candidates
            }
            candidates = [c for c, by in factors.items() if error(c) <= by * least]
        self.try_on(candidates, self.few_folds)

    def remove(self, candidates):
        """Remove candidates that shall not be chosen: more of them win by chance."""
        for candidate in candidates:
            self.table.errors.pop(candidate, None)
            self.table.drifts.pop(candidate, None)

    def measure_drift(self):
        """Let errors include the drift, those of earlier candidates as well."""
        self.measures_drift = True
        self._add_drift(self.table.errors)

    def _add_drift(self, candidates):
        """Note how far candidates drift, if errors include that."""
        if not self.measures_drift or self.drift is None:
            return
        for candidate in candidates:
            drift = self.drift(candidate)
            # the time was over after one fit
            unknown = np.isnan(drift)
            drift = self._linear_drift(candidate.output) if unknown else drift
            self.table.drifts[candidate] = drift

    def _linear_drift(self, output):
        """The least drift of linear models with an output; 0 without one."""
        drifts = self.table.drifts.items()
        linear = [drift for c, drift in drifts if c.is_arx and c.output == output]
        return min(linear, default=0.0)
