"""What a search compares: candidates, and their errors where they did not look."""

from typing import NamedTuple

import numpy as np

from ..records.lags import lags_behind

# A fold in which a candidate diverges counts as so many standard deviations of y.
WORST_ERROR = 3.0
# Smaller errors, of an output that does not change, count as this.
LEAST_ERROR = 1e-12


class Candidate(NamedTuple):
    """One choice of the settings of a model.

    model : "linear" or "network", both of lags, or "states", a network of hidden states
    fitted_to : "prediction" or "simulation", the errors that its fit squares
    lag : longest lag of inputs and outputs; 0 for hidden states
    reg_lambda : strength of the prior; 0 for a linear model by least squares
    current_input : whether u(t) is a regressor
    n_states : number of hidden states; 0 for lags
    activation : of the hidden units of a network of hidden states; empty for lags,
        where all candidates have the same
    max_cycles : of the last stage of fits of hidden states; 0 for lags
    output : "level" or "difference"
    dead_times : rows of each input behind which its lags begin; empty for none
    n_units : hidden units of a network of hidden states; 0 for lags, and where the
        layers were given, which all candidates have
    """

    model: str
    fitted_to: str
    lag: int
    reg_lambda: float
    current_input: bool
    n_states: int = 0
    activation: str = ""
    max_cycles: int = 0
    output: str = "level"
    dead_times: tuple = ()
    n_units: int = 0

    @property
    def dead_time(self):
        """The longest of its dead times, rows; 0 for none."""
        return max(self.dead_times, default=0)

    def input_lags(self, names):
        """Lags of inputs with these names, for an estimator."""
        if not self.dead_times:
            return self.lag
        return lags_behind(self.dead_times, self.lag, self.current_input, names)

    @property
    def is_arx(self):
        """Whether it is a linear model by least squares."""
        return self.model == "linear" and self.reg_lambda == 0.0

    def __str__(self):
        kind = {"prediction": "one-step", "simulation": "free-run"}[self.fitted_to]
        first = "0" if self.current_input else "1"
        what, how = f"{self.model} of lags {first} to {self.lag}", ""
        if self.dead_times:
            what += f" behind up to {self.dead_time} rows of dead time"
        if self.n_states:
            what = f"network of {self.n_states} hidden states"
            what += f" and {self.n_units} units" if self.n_units else ""
            how = f", up to {self.max_cycles} cycles"
        if self.output == "difference":
            what += " for differences"
        if self.activation:
            what += f", {self.activation}"
        return f"{what}, reg_lambda {self.reg_lambda:g}{how} ({kind})"


class Table:
    """Errors of candidates, root mean squares in standard deviations of the outputs.

    Stretches differ far more than candidates do, and by factors. So the error of a
    candidate is the geometric mean over the stretches, and candidates are compared
    stretch by stretch: one stretch that is hard for all does not decide alone.

    errors : dict of Candidate to (n_folds,) array, of the stretches that were held out,
        NaN where not tried
    drifts : dict of Candidate to float, what they leave out, see `drift`; 0 where it
        was not measured
    """

    def __init__(self, n_folds):
        self.n_folds = n_folds
        self.errors, self.drifts = {}, {}

    def add(self, candidate, fold, error):
        row = self.errors.setdefault(candidate, np.full(self.n_folds, np.nan))
        row[fold] = min(error, WORST_ERROR) if np.isfinite(error) else WORST_ERROR

    def missing(self, candidates, folds):
        """Pairs that are not in the table yet, fold by fold."""
        empty = np.full(self.n_folds, np.nan)
        candidates = list(dict.fromkeys(candidates))
        return [
            (candidate, fold)
            for fold in folds
            for candidate in candidates
            if np.isnan(self.errors.get(candidate, empty)[fold])
        ]

    def held_out(self, candidate):
        """Geometric mean over the folds that were tried, without drift."""
        row = self.errors[candidate]
        return geometric_mean(row[np.isfinite(row)])

    def with_drift(self, candidate):
        """Errors (n_folds,) halfway between those without and with the drift.

        In a new record like its own an error is one of these, or between them: what
        drifts on inputs in any order may not do so in a closed loop. They differ by
        factors, so this is their geometric mean.
        """
        row = self.errors.get(candidate, np.full(self.n_folds, np.nan))
        return np.sqrt(row * np.hypot(row, self.drifts.get(candidate, 0.0)))

    def error(self, candidate, folds=None):
        """Geometric mean over some folds, or all that were tried, with drift.

        Infinite where one of the given folds was not tried.
        """
        row = self.with_drift(candidate)
        row = row[np.isfinite(row)] if folds is None else row[folds]
        return np.inf if np.isnan(row).any() else geometric_mean(row)

    def ranked(self, candidates, folds):
        """The candidates that were tried on all of these folds, the best first."""
        tried = [c for c in candidates if np.isfinite(self.error(c, folds))]
        return sorted(tried, key=lambda c: self.error(c, folds))

    def comparable(self):
        """The table of the candidates that can be compared, on the same folds.

        ARX models are tried on all folds at once, others on more and more of them.
        Those that were tried on the most stay, and ARX models, with their errors on
        these. They are all folds, unless the time was over before.
        """
        tried = {c: np.isfinite(row) for c, row in self.errors.items()}
        others = [c for c in tried if not c.is_arx] or list(tried)
        most = max(tried[c].sum() for c in others)
        stay = [c for c in tried if tried[c].sum() >= most]
        folds = np.all([tried[c] for c in stay], axis=0)
        table = Table(self.n_folds)
        table.errors = {c: np.where(folds, self.errors[c], np.nan) for c in stay}
        table.drifts = {c: self.drifts[c] for c in stay if c in self.drifts}
        return table

    def best_first(self):
        """All candidates, by their errors on the folds that were tried."""
        return sorted(self.errors, key=self.error)

    def clearly_worse(self, candidate, best):
        """Whether errors exceed those of the best by a standard error.

        The ratios of the folds on which both were tried are compared.
        """
        ratio = np.log(np.maximum(self.with_drift(candidate), LEAST_ERROR))
        ratio = ratio - np.log(np.maximum(self.with_drift(best), LEAST_ERROR))
        ratio = ratio[np.isfinite(ratio)]
        if len(ratio) < 2:
            return candidate != best
        spread = ratio.std(ddof=1) / np.sqrt(len(ratio))
        return bool(ratio.mean() > spread)


def geometric_mean(errors):
    """Of the folds' errors; infinite for none."""
    if not len(errors):
        return np.inf
    return float(np.exp(np.log(np.maximum(errors, LEAST_ERROR)).mean()))
