"""Measured and simulated outputs over time, with their difference."""

import numpy as np

from ._estimators import describe_horizon, output_names
from ._figure import (
    BLUE,
    INK,
    MUTED,
    VERMILION,
    check_matplotlib,
    choose_outputs,
    make_panels,
    tidy,
)
from ._predicted_record import given_record, predicted_record
from ._shared_texts import document


@document
class SimulationDisplay:
    """Measured and predicted outputs with an uncertainty band, and the residuals.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create it.

    Parameters
    ----------
    y_true : ndarray of shape (n_samples, n_outputs)
        Measured outputs, NaN where missing.
    y_pred : ndarray of shape (n_samples, n_outputs)
        Predicted outputs, NaN where there is none, for example after a divergence.
    y_std : ndarray of shape (n_samples, n_outputs), default=None
        Standard deviations of the predictions; None draws no band.
    n_sigmas : float, default=2.0
        Half width of the band in standard deviations.
    is_initial : ndarray of bool of shape (n_samples,), default=None
        Rows that the prediction was given. They are shaded, and not scored. None means
        no row.
    session_starts : ndarray of shape (n_sessions + 1,), default=None
        First row of every session, and the number of rows. None means one session.
    name : str, default=None
        Name of the prediction in the legend.

    Attributes
    ----------
    rmse : ndarray of shape (n_outputs,)
        Root mean squared error over the scored rows: those that are both measured and
        predicted, and not initial. NaN without such a row.
    coverage : ndarray of shape (n_outputs,) or None
        Fraction of the scored rows inside the band.
    n_missing : ndarray of shape (n_outputs,)
        Number of rows without a prediction.
    {{figure}}
    axes_ : ndarray of matplotlib Axes, shape (2 * n_drawn_outputs, 1)
        For each output the panel of the record and that of the residuals.

    See Also
    --------
    ResidualAnalysisDisplay : Tests of the residuals.

    Examples
    --------
    >>> from skbayesnn import SparseBayesNARXRegressor
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> from skbayesnn.displays import SimulationDisplay
    >>> u, y = make_cascaded_tanks(200, return_X_y=True, random_state=0)
    >>> model = SparseBayesNARXRegressor(hidden_layer_sizes=(), random_state=0)
    >>> display = SimulationDisplay.from_estimator(model.fit(u, y), u, y)
    >>> display.axes_.shape
    (2, 1)
    """

    def __init__(
        self,
        y_true,
        y_pred,
        y_std=None,
        *,
        n_sigmas=2.0,
        is_initial=None,
        session_starts=None,
        name=None,
    ):
        self.y_true = y_true
        self.y_pred = y_pred
        self.y_std = y_std
        self.n_sigmas = n_sigmas
        self.is_initial = is_initial
        self.session_starts = session_starts
        self.name = name

    @classmethod
    @document
    def from_estimator(
        cls,
        estimator,
        X,
        y,
        *,
        y_init=None,
        n_init=None,
        horizon=None,
        sessions=None,
        n_sigmas=2.0,
        name=None,
        ax=None,
        **kwargs,
    ):
        """Predict a record with a fitted estimator, and plot the result.

        Parameters
        ----------
        estimator : fitted regressor, or Pipeline that ends in one
            A lagged or static regressor of this package, or an ensemble of them.
        {{X}}
        {{y}}
        y_init : array-like of shape (n_init,) or (n_init, n_outputs), default=None
            Outputs of the first rows, from which the free run starts.
        n_init : int, default=None
            Number of rows of ``y`` that the free run starts from. None starts each
            session from its first ``max_lag_`` rows.
        horizon : int or None, default=None
            Number of steps ahead, None for a free run. A static regressor ignores it.
        {{sessions}}
        n_sigmas : float, default=2.0
            Half width of the band in standard deviations; 0 draws no band, which is
            faster.
        name : str, default=None
            Name of the prediction in the legend; None describes the horizon.
        {{draw}}

        Returns
        -------
        display : SimulationDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            For contradictory arguments; see also ``predict``.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        record = predicted_record(
            estimator,
            X,
            y,
            horizon=horizon,
            sessions=sessions,
            return_std=n_sigmas > 0,
            y_init=y_init,
            n_init=n_init,
        )
        name = describe_horizon(estimator, horizon) if name is None else name
        return cls._from_record(record, n_sigmas, name).plot(ax, **kwargs)

    @classmethod
    @document
    def from_predictions(
        cls,
        y_true,
        y_pred,
        y_std=None,
        *,
        n_initialization=0,
        sessions=None,
        n_sigmas=2.0,
        name=None,
        ax=None,
        **kwargs,
    ):
        """Plot given predictions.

        Parameters
        ----------
        {{y_true}}
        {{y_pred}}
        y_std : array-like shaped like y_true, default=None
            Standard deviations of the predictions, for the band.
        n_initialization : int, default=0
            Number of rows at the start of each session that the prediction was given.
        {{sessions}}
        n_sigmas : float, default=2.0
            Half width of the band in standard deviations.
        name : str, default=None
            Name of the prediction in the legend; None means "predicted".
        {{draw}}

        Returns
        -------
        display : SimulationDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the shapes differ.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{cls.__name__}.from_predictions")
        record = given_record(y_true, y_pred, y_std, n_initialization, sessions)
        return cls._from_record(record, n_sigmas, name).plot(ax, **kwargs)

    @classmethod
    def _from_record(cls, record, n_sigmas, name):
        return cls(
            record.y_true,
            record.y_pred,
            record.y_std,
            n_sigmas=n_sigmas,
            is_initial=record.is_initial,
            session_starts=record.starts,
            name=name,
        )

    def _scored(self):
        scored = np.isfinite(self.y_true) & np.isfinite(self.y_pred)
        return scored if self.is_initial is None else scored & ~self.is_initial[:, None]

    @property
    def rmse(self):
        """Root mean squared error of each output over the scored rows."""
        scored = self._scored()
        error = np.where(scored, self.y_true - self.y_pred, 0.0)
        count = np.where(scored.any(axis=0), scored.sum(axis=0), np.nan)
        return np.sqrt(np.sum(error**2, axis=0) / count)

    @property
    def coverage(self):
        """Fraction of the scored rows whose measured value lies inside the band."""
        if self.y_std is None:
            return None
        scored = self._scored()
        error = np.where(scored, np.abs(self.y_true - self.y_pred), np.inf)
        inside = error <= self.n_sigmas * self.y_std
        count = np.where(scored.any(axis=0), scored.sum(axis=0), np.nan)
        return inside.sum(axis=0) / count

    @property
    def n_missing(self):
        """Number of rows of each output without a prediction."""
        return np.isnan(self.y_pred).sum(axis=0)

    @document
    def plot(
        self,
        ax=None,
        *,
        output=None,
        sampling_time=None,
        time_unit="s",
        y_label=None,
    ):
        """Draw each output above its residuals.

        Parameters
        ----------
        {{ax}}
        {{output}}
        sampling_time : float, default=None
            Time between two rows; None draws over the row number.
        time_unit : str, default="s"
            Unit of ``sampling_time``.
        y_label : str or list of str, default=None
            Label of the output, or a list of one label per output, such as "Level (V)".

        Returns
        -------
        self : SimulationDisplay
            The display.

        Raises
        ------
        ValueError
            If the output does not exist, or the number of axes is wrong.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{type(self).__name__}.plot")
        n_outputs = self.y_true.shape[1]
        outputs = choose_outputs(output, n_outputs)
        labels = output_names(n_outputs) if y_label is None else y_label
        labels = [labels] * n_outputs if isinstance(labels, str) else labels
        self.figure_, self.axes_ = make_panels(
            ax,
            2 * len(outputs),
            1,
            (9.0, 1.2 + 3.6 * len(outputs)),
            sharex=True,
            height_ratios=[2.2, 1.0] * len(outputs),
        )
        self.ax_ = self.axes_[0, 0]
        time = np.arange(len(self.y_true)) * (sampling_time or 1)
        for k, row in zip(outputs, self.axes_.reshape(-1, 2), strict=True):
            self._draw_record(row[0], time, k)
            self._draw_residuals(row[1], time, k)
            row[0].set_ylabel(labels[k])
            row[1].set_ylabel("measured −\npredicted", fontsize=9)
            for panel in row:
                self._mark_rows(panel, time, k)
            # above the panel, where it covers no data
            row[0].legend(
                loc="lower left",
                bbox_to_anchor=(0.0, 1.0),
                ncols=3,
                fontsize=9,
                frameon=False,
                borderaxespad=0.2,
            )
        self.axes_[-1, 0].set_xlabel(
            "Row" if sampling_time is None else f"Time ({time_unit})"
        )
        self.axes_[-1, 0].set_xlim(time[0], time[-1] if len(time) > 1 else None)
        tidy(self.axes_)
        return self

    def _lines(self, *columns):
        """Columns with a gap where a session starts, so that no line connects two."""
        starts = [] if self.session_starts is None else self.session_starts[1:-1]
        return [np.insert(np.asarray(c, float), starts, np.nan) for c in columns]

    def _draw_record(self, panel, time, k):
        measured, predicted = self.y_true[:, k], self.y_pred[:, k]
        label = self.name or "predicted"
        if np.isfinite(self.rmse[k]):
            label += f" (RMSE {self.rmse[k]:.3g})"
        panel.plot(
            *self._lines(time, measured), color=INK, linewidth=1.9, label="measured"
        )
        panel.plot(
            *self._lines(time, predicted), color=VERMILION, linewidth=1.2, label=label
        )
        if self._has_band():
            band = self.n_sigmas * self.y_std[:, k]
            fraction = self.coverage[k]
            inside = f" (holds {fraction:.0%})" * bool(np.isfinite(fraction))
            panel.fill_between(
                *self._lines(time, predicted - band, predicted + band),
                color=VERMILION,
                alpha=0.25,
                linewidth=0,
                label=f"±{self.n_sigmas:g}σ{inside}",
            )

    def _draw_residuals(self, panel, time, k):
        residual = self.y_true[:, k] - self.y_pred[:, k]
        if self._has_band():
            predicted = np.isfinite(self.y_pred[:, k])
            band = np.where(predicted, self.n_sigmas * self.y_std[:, k], np.nan)
            panel.fill_between(
                *self._lines(time, -band, band),
                color=VERMILION,
                alpha=0.25,
                linewidth=0,
            )
        panel.axhline(0.0, color=MUTED, linewidth=0.8)
        panel.plot(*self._lines(time, residual), color=INK, linewidth=0.9)

    def _has_band(self):
        return self.y_std is not None and self.n_sigmas > 0

    def _mark_rows(self, panel, time, k):
        """Mark given rows, missing predictions and the starts of sessions."""
        step = time[1] - time[0] if len(time) > 1 else 1.0
        initial = np.zeros(len(time), bool)
        if self.is_initial is not None:
            initial = self.is_initial
        missing = np.isnan(self.y_pred[:, k]) & ~initial
        for rows, style in (
            (initial, {"color": MUTED, "alpha": 0.3, "label": "given"}),
            (
                missing,
                {
                    "facecolor": "none",
                    "edgecolor": BLUE,
                    "hatch": "////",
                    "label": f"no prediction ({missing.sum()} rows)",
                },
            ),
        ):
            if rows.any():
                panel.broken_barh(
                    _spans(rows, step),
                    (0.0, 1.0),
                    transform=panel.get_xaxis_transform(),
                    linewidth=0,
                    zorder=0,
                    **style,
                )
        if self.session_starts is not None:
            for start in self.session_starts[1:-1]:
                panel.axvline(
                    (start - 0.5) * step, color=MUTED, linewidth=0.9, linestyle=":"
                )


def _spans(rows, step):
    """Start and width of every run of True."""
    edges = np.flatnonzero(np.diff(rows, prepend=False, append=False)).reshape(-1, 2)
    return [((first - 0.5) * step, (end - first) * step) for first, end in edges]
