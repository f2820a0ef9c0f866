"""Correlations of the residuals with their past and with the inputs."""

import numpy as np

from ..metrics._residual_correlations import residual_analysis
from ._figure import (
    BLUE,
    INK,
    MUTED,
    VERMILION,
    check_matplotlib,
    choose_outputs,
    make_wrapped_panels,
    tidy,
)
from ._predictions import final_model, given_record, output_names, predicted_record

# Attribute of the analysis and the two signals that it correlates.
NONLINEAR = (
    ("squared_input", "e(t)", "({u}²)′(t−k)"),
    ("squared_both", "(e²)′(t)", "({u}²)′(t−k)"),
    ("product", "e(t)", "(e·{u})(t−1−k)"),
)


class ResidualAnalysisDisplay:
    """Autocorrelation of the residuals, and their correlations with the inputs.

    Use :meth:`from_estimator` or :meth:`from_predictions` to make one.

    Parameters
    ----------
    analysis : :class:`~sklearn.utils.Bunch`
        What :func:`skbayesnn.metrics.residual_analysis` returns.
    input_names : list of str of length n_inputs
        Names of the inputs.
    output_names : list of str of length n_outputs
        Names of the outputs.

    Attributes
    ----------
    figure_ : matplotlib Figure
        Figure with the picture, set by ``plot``.
    axes_ : ndarray of matplotlib Axes, shape (n_rows, n_columns)
        For each output the panel of the autocorrelation and those of the inputs, in a
        row of its own, or in several if there are more than four; None where a row is
        not full.
    ax_ : matplotlib Axes
        The first of them.

    See Also
    --------
    skbayesnn.metrics.residual_analysis : The numbers, and what they mean.

    Examples
    --------
    >>> from skbayesnn import SparseBayesNARXRegressor
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> from skbayesnn.displays import ResidualAnalysisDisplay
    >>> u, y = make_cascaded_tanks(200, return_X_y=True, random_state=0)
    >>> model = SparseBayesNARXRegressor(hidden_layer_sizes=(), random_state=0)
    >>> display = ResidualAnalysisDisplay.from_estimator(model.fit(u, y), u, y)
    >>> display.axes_.shape
    (1, 2)
    """

    def __init__(self, analysis, input_names, output_names):
        self.analysis = analysis
        self.input_names = input_names
        self.output_names = output_names

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        y,
        *,
        horizon=1,
        max_lag=25,
        confidence_level=0.99,
        sessions=None,
        ax=None,
        **kwargs,
    ):
        """Predict a record with a fitted estimator, and plot what is left.

        Parameters
        ----------
        estimator : fitted regressor, or Pipeline that ends in one
            A lagged or static regressor, or a committee, of this package.
        X : array-like of shape (n_samples, n_inputs) or None
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Measured outputs, NaN where missing.
        horizon : int or None, default=1
            Steps ahead; None is free run. Only one step ahead should the residuals of
            a good model be white. A static regressor does not use it.
        max_lag : int, default=25
            Largest lag.
        confidence_level : float, default=0.99
            Of the bounds.
        sessions : array-like of shape (n_samples,), default=None
            The record each row belongs to.
        ax : matplotlib Axes or array of Axes, default=None
            Where to draw, see :meth:`plot`.
        **kwargs : dict
            Passed on to :meth:`plot`.

        Returns
        -------
        display : ResidualAnalysisDisplay
            With the computed numbers and the picture.

        Raises
        ------
        ValueError
            As ``predict`` and :func:`skbayesnn.metrics.residual_analysis`.
        ImportError
            Without matplotlib.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        record = predicted_record(
            estimator, X, y, horizon=horizon, sessions=sessions, return_std=False
        )
        names = getattr(final_model(estimator), "feature_names_in_", None)
        display = cls._from_record(
            record, X, names, max_lag, confidence_level, sessions
        )
        return display.plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true,
        y_pred,
        X=None,
        *,
        n_initialization=0,
        max_lag=25,
        confidence_level=0.99,
        sessions=None,
        ax=None,
        **kwargs,
    ):
        """Analyse predictions that are already there.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Measured outputs, NaN where missing.
        y_pred : array-like shaped like y_true
            Predictions, NaN where there is none.
        X : array-like of shape (n_samples, n_inputs), default=None
            Inputs. None draws the autocorrelation alone.
        n_initialization : int, default=0
            Rows at the start of each session that the prediction was given, and that
            are left out.
        max_lag : int, default=25
            Largest lag.
        confidence_level : float, default=0.99
            Of the bounds.
        sessions : array-like of shape (n_samples,), default=None
            The record each row belongs to.
        ax : matplotlib Axes or array of Axes, default=None
            Where to draw, see :meth:`plot`.
        **kwargs : dict
            Passed on to :meth:`plot`.

        Returns
        -------
        display : ResidualAnalysisDisplay
            With the computed numbers and the picture.

        Raises
        ------
        ValueError
            As :func:`skbayesnn.metrics.residual_analysis`.
        ImportError
            Without matplotlib.
        """
        check_matplotlib(f"{cls.__name__}.from_predictions")
        record = given_record(y_true, y_pred, None, n_initialization, sessions)
        display = cls._from_record(record, X, None, max_lag, confidence_level, sessions)
        return display.plot(ax, **kwargs)

    @classmethod
    def _from_record(cls, record, X, names, max_lag, confidence_level, sessions):
        residuals = np.where(
            record.is_initial[:, None], np.nan, record.y_true - record.y_pred
        )
        analysis = residual_analysis(
            residuals,
            X,
            max_lag=max_lag,
            confidence_level=confidence_level,
            sessions=sessions,
        )
        n_outputs, n_inputs, _ = analysis.cross_correlation.values.shape
        if names is None:
            names = getattr(X, "columns", [f"x{k}" for k in range(n_inputs)])
        return cls(analysis, [str(name) for name in names], output_names(n_outputs))

    def plot(self, ax=None, *, output=None, nonlinear=False):
        """Draw the correlations over the lag, with the bounds of chance.

        Parameters
        ----------
        ax : matplotlib Axes or array of Axes, default=None
            One Axes is divided, an array with as many as there are panels is drawn
            into, None makes a new figure.
        output : int, default=None
            The one output to draw; all of them by default.
        nonlinear : bool, default=False
            Draw the three nonlinear correlations with each input as well.

        Returns
        -------
        self : ResidualAnalysisDisplay
            The display.

        Raises
        ------
        ValueError
            For an output that does not exist, and arrays of axes of another size.
        ImportError
            Without matplotlib.
        """
        check_matplotlib(f"{type(self).__name__}.plot")
        outputs = choose_outputs(output, len(self.output_names))
        panels = [self._panels(k, nonlinear) for k in outputs]
        self.figure_, self.axes_, groups = make_wrapped_panels(
            ax, len(outputs), len(panels[0]), (3.6, 2.9)
        )
        self.ax_ = self.axes_[0, 0]
        for row, correlations in zip(groups, panels, strict=True):
            for panel, drawn in zip(row, correlations, strict=True):
                _draw_correlation(panel, *drawn)
        for panel in self.axes_[:, 0]:
            panel.set_ylabel("correlation")
        tidy(groups)
        return self

    def _panels(self, k, nonlinear):
        """Title, correlation and index into it of each panel of an output."""
        analysis = self.analysis
        of_output = f"{self.output_names[k]}: " * (len(self.output_names) > 1)
        p = analysis.ljung_box_pvalue[k]
        p = f"Ljung-Box p = {p:.2g}" if p >= 1e-4 else "Ljung-Box p < 0.0001"
        panels = [(f"{of_output}e(t) and e(t−k), {p}", analysis.autocorrelation, (k,))]
        tests = [("cross_correlation", "e(t)", "{u}(t−k)")]
        for name, first, second in [*tests, *(NONLINEAR if nonlinear else ())]:
            for i, u in enumerate(self.input_names):
                title = f"{of_output}{first} and {second.format(u=u)}"
                panels.append((title, analysis[name], (k, i)))
        return panels


def _draw_correlation(panel, title, correlation, index):
    lags, values = correlation.lags, correlation.values[index]
    bound = correlation.bound[index]
    outside = np.abs(values) > bound
    panel.fill_between(
        lags, -bound, bound, step="mid", color=MUTED, alpha=0.3, linewidth=0
    )
    panel.axhline(0.0, color=MUTED, linewidth=0.8)
    # lag 0 of an autocorrelation is 1 whatever the residuals are
    certain = (lags == 0) & (len(index) == 1)
    for rows, color, marker in (
        (certain, INK, "o"),
        (~certain & ~outside, BLUE, "o"),
        (~certain & outside, VERMILION, "D"),
    ):
        panel.vlines(lags[rows], 0.0, values[rows], color=color, linewidth=1.4)
        panel.plot(lags[rows], values[rows], marker, color=color, markersize=3.5)
    panel.set_xlabel("lag k (rows)")
    share = correlation.fraction_outside[index]
    note = "not defined" if np.isnan(share) else f"{share:.0%} outside"
    panel.set_title(f"{title}\n{note}", fontsize=9.5)
