"""Measured and simulated outputs over time, with their difference."""

from collections.abc import Mapping

import numpy as np

from ._drawn_time import drawn_time
from ._estimators import describe_horizon, output_names
from ._figure import (
    BLUE,
    CYCLE,
    INK,
    MUTED,
    SMALL,
    VERMILION,
    check_matplotlib,
    choose_outputs,
    make_panels,
    tidy,
)
from ._predicted_record import given_record, predicted_record
from ._record_scores import RecordScores
from ._shared_texts import document


@document
class SimulationDisplay:
    """Measured and predicted outputs with an uncertainty band, and the residuals.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create it.

    Parameters
    ----------
    y_true : ndarray of shape (n_samples, n_outputs)
        Measured outputs, NaN where missing.
    y_pred : ndarray of shape (n_samples, n_outputs), or dict of str to ndarray
        Predicted outputs, NaN where there is none, for example after a divergence. A
        dict compares several models by their names.
    y_std : ndarray of shape (n_samples, n_outputs), or dict of these, default=None
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
    output_names : list of str of length n_outputs, default=None
        Names of the outputs; None means y, or y0, y1, ...
    time : ndarray of shape (n_samples,), default=None
        Time of each row: dates, durations or numbers. None draws over the row number.

    Attributes
    ----------
    rmse : ndarray of shape (n_outputs,)
        Root mean squared error over the scored rows: those that are both measured and
        predicted, and not initial. NaN without such a row. Of several models this and
        the next ones are dicts of their names.
    fit : ndarray of shape (n_outputs,)
        Fit index over these rows in percent, see :func:`skbayesnn.metrics.fit_index`.
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
        output_names=None,
        time=None,
    ):
        self.y_true = y_true
        self.y_pred = y_pred
        self.y_std = y_std
        self.n_sigmas = n_sigmas
        self.is_initial = is_initial
        self.session_starts = session_starts
        self.name = name
        self.output_names = output_names
        self.time = time

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
            A dynamic or static regressor of this package, or an ensemble of them.
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
        y_pred : array-like shaped like y_true, or dict of str to array-like
            Predictions, NaN where there is none. A dict compares several models by
            their names, with the fit of each in the legend.
        y_std : array-like shaped like y_true, or dict of these, default=None
            Standard deviations of the predictions, for the band. In a dict, models may
            be missing.
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
        if not isinstance(y_pred, Mapping):
            record = given_record(y_true, y_pred, y_std, n_initialization, sessions)
            return cls._from_record(record, n_sigmas, name).plot(ax, **kwargs)
        std = {} if y_std is None else y_std
        _check_names(y_pred, std, name)
        records = {
            of: given_record(y_true, mean, std.get(of), n_initialization, sessions)
            for of, mean in y_pred.items()
        }
        common = next(iter(records.values()))._replace(
            y_pred={of: record.y_pred for of, record in records.items()},
            y_std={
                of: record.y_std
                for of, record in records.items()
                if record.y_std is not None
            },
        )
        return cls._from_record(common, n_sigmas, None).plot(ax, **kwargs)

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
            output_names=record.names,
            time=None if record.time is None else record.time.stamps,
        )

    @property
    def _scores(self):
        """`RecordScores` of each model by its name."""
        if isinstance(self.y_pred, Mapping):
            pairs = {
                name: (mean, (self.y_std or {}).get(name))
                for name, mean in self.y_pred.items()
            }
        else:
            pairs = {self.name or "predicted": (self.y_pred, self.y_std)}
        return {
            name: RecordScores(self.y_true, mean, std, self.n_sigmas, self.is_initial)
            for name, (mean, std) in pairs.items()
        }

    def _each(self, score):
        """A score of the one model, or of each."""
        values = {name: getattr(one, score) for name, one in self._scores.items()}
        if isinstance(self.y_pred, Mapping):
            return values
        return next(iter(values.values()))

    @property
    def rmse(self):
        """Root mean squared error of each output over the scored rows."""
        return self._each("rmse")

    @property
    def fit(self):
        """Fit index of each output over the scored rows, in percent."""
        return self._each("fit")

    @property
    def coverage(self):
        """Fraction of the scored rows whose measured value lies inside the band."""
        return self._each("coverage")

    @property
    def n_missing(self):
        """Number of rows of each output without a prediction."""
        return self._each("n_missing")

    @document
    def plot(
        self,
        ax=None,
        *,
        output=None,
        sampling_time=None,
        time_unit="s",
        y_label=None,
        y_range=None,
    ):
        """Draw each output above its residuals.

        Parameters
        ----------
        {{ax}}
        {{output}}
        sampling_time : float, default=None
            Time between two rows. None draws over the times of the record, if it has
            some that rise from row to row, else over the row number.
        time_unit : str, default="s"
            Unit of ``sampling_time``.
        y_label : str or list of str, default=None
            Label of the output, or a list of one label per output, such as "Level (V)".
        y_range : tuple of two float, default=None
            Least and largest value that the outputs can have, such as the range of a
            sensor or the height of a tank. Bands, which know of none, are cut there.

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
        labels = self.output_names or output_names(None, n_outputs)
        labels = labels if y_label is None else y_label
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
        scale = drawn_time(self.time, len(self.y_true), sampling_time, time_unit)
        for k, row in zip(outputs, self.axes_.reshape(-1, 2), strict=True):
            self._draw_output(row, scale.values, k, y_range)
            row[0].set_ylabel(labels[k])
            row[1].set_ylabel("measured −\npredicted", fontsize=SMALL)
        for panel in self.axes_[:, 0]:
            # panels that were given share no axis
            scale.prepare(panel)
        self.axes_[-1, 0].set_xlabel(scale.text)
        tidy(self.axes_)
        return self

    def _draw_output(self, row, time, k, y_range):
        """The record and its predictions, and below these the residuals."""
        scores = self._scores
        single = len(scores) == 1
        row[0].plot(
            *self._lines(time, self.y_true[:, k]),
            color=INK,
            linewidth=1.9,
            label="measured",
        )
        row[1].axhline(0.0, color=MUTED, linewidth=0.8)
        for number, (name, score) in enumerate(scores.items()):
            color = VERMILION if single else CYCLE[number % len(CYCLE)]
            self._draw_prediction(row[0], time, k, (name, score, color), y_range)
            self._draw_residuals(
                row[1], time, k, score, color, INK if single else color
            )
        for panel in row:
            self._mark_rows(panel, time, k)
        # above the panel, where it covers no data
        row[0].legend(
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=3,
            borderaxespad=0.2,
        )

    def _lines(self, *columns):
        """Columns with a gap where a session starts, so that no line connects two."""
        starts = [] if self.session_starts is None else self.session_starts[1:-1]
        return [np.insert(np.asarray(c, float), starts, np.nan) for c in columns]

    def _draw_prediction(self, panel, time, k, model, y_range):
        name, score, color = model
        rmse, fit = score.rmse[k], score.fit[k]
        label = name
        if np.isfinite(rmse):
            of_many = isinstance(self.y_pred, Mapping)
            label += f" (fit {fit:.1f} %)" if of_many else f" (RMSE {rmse:.3g})"
        predicted = score.y_pred[:, k]
        panel.plot(
            *self._lines(time, predicted), color=color, linewidth=1.2, label=label
        )
        if not score.has_band:
            return
        band = self.n_sigmas * score.y_std[:, k]
        fraction = score.coverage[k]
        inside = f" (holds {fraction:.0%})" * bool(np.isfinite(fraction))
        low, high = predicted - band, predicted + band
        if y_range is not None:
            low, high = np.clip(low, *y_range), np.clip(high, *y_range)
        panel.fill_between(
            *self._lines(time, low, high),
            color=color,
            alpha=0.25,
            linewidth=0,
            label=f"±{self.n_sigmas:g}σ{inside}",
        )

    def _draw_residuals(self, panel, time, k, score, of_band, color):
        if score.has_band:
            predicted = np.isfinite(score.y_pred[:, k])
            band = np.where(predicted, self.n_sigmas * score.y_std[:, k], np.nan)
            panel.fill_between(
                *self._lines(time, -band, band), color=of_band, alpha=0.25, linewidth=0
            )
        residual = self.y_true[:, k] - score.y_pred[:, k]
        panel.plot(*self._lines(time, residual), color=color, linewidth=0.9)

    def _mark_rows(self, panel, time, k):
        """Mark given rows, missing predictions and the starts of sessions."""
        step = np.median(np.diff(time)) if len(time) > 1 else 1.0
        initial = np.zeros(len(time), bool)
        if self.is_initial is not None:
            initial = self.is_initial
        missing = [np.isnan(score.y_pred[:, k]) for score in self._scores.values()]
        missing = np.any(missing, axis=0) & ~initial
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
                    _spans(rows, time, step),
                    (0.0, 1.0),
                    transform=panel.get_xaxis_transform(),
                    linewidth=0,
                    zorder=0,
                    **style,
                )
        if self.session_starts is not None:
            for start in self.session_starts[1:-1]:
                place = time[start] - 0.5 * step
                panel.axvline(place, color=MUTED, linewidth=0.9, linestyle=":")


def _check_names(y_pred, y_std, name):
    if not isinstance(y_std, Mapping):
        raise ValueError(
            "y_std must be a dict as y_pred is, with the name of each model; got "
            f"{type(y_std).__name__}."
        )
    unknown = [of for of in y_std if of not in y_pred]
    if not y_pred or unknown or name is not None:
        raise ValueError(
            "y_pred must hold at least one model, y_std no other ones, and the names "
            f"of several models are those of y_pred: got y_pred of {list(y_pred)}, "
            f"y_std of {list(y_std)} and name={name!r}."
        )


def _spans(rows, time, step):
    """Start and width of every run of True."""
    edges = np.flatnonzero(np.diff(rows, prepend=False, append=False)).reshape(-1, 2)
    return [
        (time[first] - 0.5 * step, time[end - 1] - time[first] + step)
        for first, end in edges
    ]
