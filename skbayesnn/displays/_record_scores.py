"""How well a prediction meets the rows of a record that it was not given."""

from typing import NamedTuple

import numpy as np


class RecordScores(NamedTuple):
    """A prediction, and its scores over the rows that are measured and predicted.

    y_true, y_pred : (n_rows, n_outputs), NaN where missing
    y_std : (n_rows, n_outputs), or None
    n_sigmas : half width of the band in standard deviations
    is_initial : (n_rows,) bool, rows that the prediction was given; or None
    """

    y_true: np.ndarray
    y_pred: np.ndarray
    y_std: np.ndarray | None
    n_sigmas: float
    is_initial: np.ndarray | None

    @property
    def has_band(self):
        return self.y_std is not None and self.n_sigmas > 0

    @property
    def scored(self):
        """(n_rows, n_outputs) bool."""
        scored = np.isfinite(self.y_true) & np.isfinite(self.y_pred)
        return scored if self.is_initial is None else scored & ~self.is_initial[:, None]

    @property
    def _count(self):
        """(n_outputs,) rows that count, NaN without any."""
        scored = self.scored
        return np.where(scored.any(axis=0), scored.sum(axis=0), np.nan)

    def _sum_of_squares(self, values):
        return np.sum(np.where(self.scored, values, 0.0) ** 2, axis=0)

    @property
    def rmse(self):
        return np.sqrt(self._sum_of_squares(self.y_true - self.y_pred) / self._count)

    @property
    def fit(self):
        """100 (1 - |error| / |deviation from the mean|), NaN without rows."""
        mean = np.where(self.scored, self.y_true, 0.0).sum(axis=0) / self._count
        error = self._sum_of_squares(self.y_true - self.y_pred)
        spread = self._sum_of_squares(self.y_true - mean)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(error == 0.0, 0.0, np.sqrt(error / spread))
        return np.where(np.isnan(self._count), np.nan, 100.0 * (1.0 - ratio))

    @property
    def coverage(self):
        if self.y_std is None:
            return None
        error = np.where(self.scored, np.abs(self.y_true - self.y_pred), np.inf)
        return (error <= self.n_sigmas * self.y_std).sum(axis=0) / self._count

    @property
    def n_missing(self):
        return np.isnan(self.y_pred).sum(axis=0)
