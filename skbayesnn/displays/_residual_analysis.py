"""Correlations of the residuals with their own past and with the inputs."""

import numpy as np

from .._time_axis import split_time
from ..metrics import residual_analysis
from ._estimators import final_model
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
from ._predicted_record import given_record, predicted_record
from ._shared_texts import document

# Attribute of the analysis, and the two signals that it correlates.
NONLINEAR = (
    ("squared_input", "e(t)", "({u}²)′(t−k)"),
    ("squared_both", "(e²)′(t)", "({u}²)′(t−k)"),
    ("product", "e(t)", "(e·{u})(t−1−k)"),
)


@document
class ResidualAnalysisDisplay:
    """Autocorrelation of the residuals, and their correlation with each input.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create it.

    Parameters
    ----------
    analysis : :class:`~sklearn.utils.Bunch`
        Result of :func:`skbayesnn.metrics.residual_analysis`.
    input_names : list of str of length n_inputs
        Names of the inputs.
    output_names : list of str of length n_outputs
        Names of the outputs.

    Attributes
    ----------
    {{figure}}
    axes_ : ndarray of matplotlib Axes, shape (n_rows, n_columns)
        For each output the panel of the autocorrelation and those of the inputs, in
        rows of at most four panels; None in unused places.

    See Also
    --------
    skbayesnn.metrics.residual_analysis : The correlations and their meaning.

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
    @document
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
        """Analyse the residuals of a fitted estimator on a record, and plot the result.

        Parameters
        ----------
        estimator : fitted regressor, or Pipeline that ends in one
            A lagged or static regressor of this package, or an ensemble of them.
        {{X}}
        {{y}}
        horizon : int or None, default=1
            Number of steps ahead, None for a free run. The residuals of a good model
            are white only one step ahead. A static regressor ignores it.
        max_lag : int, default=25
            Largest lag.
        confidence_level : float, default=0.99
            Confidence level of the bounds.
        {{sessions}}
        {{draw}}

        Returns
        -------
        display : ResidualAnalysisDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            See ``predict`` and :func:`skbayesnn.metrics.residual_analysis`.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        record = predicted_record(
            estimator, X, y, horizon=horizon, sessions=sessions, return_std=False
        )
        names = getattr(final_model(estimator), "feature_names_in_", None)
        display = cls._from_record(record, X, names, max_lag, confidence_level)
        return display.plot(ax, **kwargs)

    @classmethod
    @document
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
        """Analyse the residuals of given predictions, and plot the result.

        Parameters
        ----------
        {{y_true}}
        {{y_pred}}
        X : array-like of shape (n_samples, n_inputs), default=None
            Inputs. None draws the autocorrelation only.
        n_initialization : int, default=0
            Number of rows at the start of each session that the prediction was given.
            They are left out.
        max_lag : int, default=25
            Largest lag.
        confidence_level : float, default=0.99
            Confidence level of the bounds.
        {{sessions}}
        {{draw}}

        Returns
        -------
        display : ResidualAnalysisDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            See :func:`skbayesnn.metrics.residual_analysis`.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{cls.__name__}.from_predictions")
        record = given_record(y_true, y_pred, None, n_initialization, sessions)
        display = cls._from_record(record, X, None, max_lag, confidence_level)
        return display.plot(ax, **kwargs)

    @classmethod
    def _from_record(cls, record, X, names, max_lag, confidence_level):
        X, _ = split_time(X, "X")
        starts = record.starts
        residuals = np.where(
            record.is_initial[:, None], np.nan, record.y_true - record.y_pred
        )
        analysis = residual_analysis(
            residuals,
            X,
            max_lag=max_lag,
            confidence_level=confidence_level,
            sessions=np.repeat(np.arange(len(starts) - 1), np.diff(starts)),
        )
        n_inputs = analysis.cross_correlation.values.shape[1]
        if names is None:
            names = getattr(X, "columns", [f"x{k}" for k in range(n_inputs)])
        return cls(analysis, [str(name) for name in names], record.names)

    @document
    def plot(self, ax=None, *, output=None, nonlinear=False):
        """Draw the correlations over the lag, with their confidence bounds.

        Parameters
        ----------
        {{ax}}
        {{output}}
        nonlinear : bool, default=False
            Also draw the three nonlinear correlations with each input. Several outputs
            and inputs then need a figure of their own.

        Returns
        -------
        self : ResidualAnalysisDisplay
            The display.

        Raises
        ------
        ValueError
            If the output does not exist, or the number of axes is wrong.
        {{no_matplotlib}}
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
        """Start of the title, correlation and index into it, for each panel."""
        analysis = self.analysis
        of_output = f"{self.output_names[k]}: " * (len(self.output_names) > 1)
        p = analysis.ljung_box_pvalue[k]
        p = f"Ljung-Box p = {p:.2g}" if p >= 1e-4 else "Ljung-Box p < 0.0001"
        title = f"{of_output}e(t) and e(t−k)\n{p}, "
        panels = [(title, analysis.autocorrelation, (k,))]
        tests = [("cross_correlation", "e(t)", "{u}(t−k)")]
        for name, first, second in [*tests, *(NONLINEAR if nonlinear else ())]:
            for i, u in enumerate(self.input_names):
                title = f"{of_output}{first} and {second.format(u=u)}\n"
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
    # lag 0 of an autocorrelation is always 1
    certain = (lags == 0) & (len(index) == 1)
    for rows, color, marker in (
        (certain, INK, "o"),
        (~certain & ~outside, BLUE, "o"),
        (~certain & outside, VERMILION, "D"),
    ):
        panel.vlines(lags[rows], 0.0, values[rows], color=color, linewidth=1.4)
        panel.plot(lags[rows], values[rows], marker, color=color, markersize=3.5)
    panel.set_xlabel("lag k (rows)")
    fraction = correlation.fraction_outside[index]
    note = "not defined" if np.isnan(fraction) else f"{fraction:.0%} outside"
    panel.set_title(f"{title}{note}", fontsize=9.5)
