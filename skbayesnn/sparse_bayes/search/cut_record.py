"""The record of a search: checked data, and the stretches that fits leave out."""

from typing import NamedTuple

import numpy as np

from ... import _validation as checks
from ..records.lags import is_complete, n_complete_before
from ..training_record import TrainingRecord
from .stretches import numbered


class CutRecord(NamedTuple):
    """A record, and the stretches into which it is cut.

    given : TrainingRecord
    folds : (n_rows,) number of the fold of each row
    scored : (n_rows,) bool, rows whose errors count, see `rows_for_all`. None for all
        rows that a model can predict; those of hidden states predict across gaps, too.
    doubtful : (n_rows, n_outputs) bool, outputs that are neither fitted nor scored,
        though free runs may start from them; None if there are none
    """

    given: TrainingRecord
    folds: np.ndarray
    scored: np.ndarray | None = None
    doubtful: np.ndarray | None = None

    @property
    def U(self):
        return self.given.U

    @property
    def Y(self):
        return self.given.Y

    @property
    def starts(self):
        return self.given.starts

    def without_doubtful(self, Y):
        """Outputs ``Y`` (n_rows, n_outputs), with NaN where they are doubtful."""
        return Y if self.doubtful is None else np.where(self.doubtful, np.nan, Y)

    def only_scored(self, Y):
        """Outputs ``Y`` with NaN where their errors do not count."""
        Y = self.without_doubtful(Y)
        return Y if self.scored is None else np.where(self.scored[:, None], Y, np.nan)

    def to_fit(self, hidden=False):
        """The `TrainingRecord` of a fit that does not see outputs that are hidden.

        Doubtful outputs are missing in it as well.
        """
        Y = self.without_doubtful(self.Y)
        return self.given._replace(Y=np.where(hidden, np.nan, Y))

    def thinned(self, n_rows):
        """A record of about ``n_rows`` rows: the first ones of every stretch.

        Each stretch is a session of its own. A record that has no more rows stays.
        """
        if len(self.Y) <= n_rows:
            return self
        block = numbered(self.starts, self.folds)
        first = np.flatnonzero(np.diff(block, prepend=-1))
        behind = np.arange(len(block))
        behind -= np.repeat(first, np.diff(np.append(first, len(block))))
        rows = np.flatnonzero(behind < -(-n_rows // len(first)))
        given = self.given._replace(
            U=self.U[rows],
            Y=self.Y[rows],
            starts=checks.session_starts(block[rows], len(rows)),
        )
        doubtful = None if self.doubtful is None else self.doubtful[rows]
        return CutRecord(given, self.folds[rows], doubtful=doubtful)


def check_windows(data, lags):
    """Refuse a record on which no model of lags can be tried.

    ``lags`` are the sorted candidates, or "auto".
    """
    if not has_windows(data, lags):
        lag = _shortest(lags)
        raise ValueError(
            f"X and y hold too few complete windows of {lag + 1} rows without a "
            "missing value for models of lags. Those with hidden states pass over "
            "missing outputs: SparseBayesStateSpaceRegressor, or a "
            "DynamicSystemRegressor with 'states' among its kinds; or fill the gaps."
        )


def has_windows(data, lags):
    """Whether at least two folds hold a complete window of the shortest lag."""
    before = n_complete_before(data.U, data.Y, data.starts)
    rows = is_complete(data.U, data.Y) & (before >= _shortest(lags))
    return len(np.unique(data.folds[rows])) > 1


def _shortest(lags):
    return 1 if isinstance(lags, str) else lags[0]


def output_variance(data):
    """Variance (n_outputs,) of the outputs, without values that are doubtful.

    It is 0 for outputs that do not change, which are not judged. If none changes, it is
    1 for all of them.
    """
    variance = np.nanvar(data.without_doubtful(data.Y), axis=0)
    return variance if variance.any() else np.ones_like(variance)


def output_deviation(data):
    """Standard deviations (n_outputs,) of the outputs; 1 where these do not change."""
    variance = output_variance(data)
    return np.sqrt(np.where(variance > 0.0, variance, 1.0))
