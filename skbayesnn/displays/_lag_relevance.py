"""The relevance of each lag of each signal to a lagged model."""

import re
import textwrap

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._estimators import final_model
from ._figure import CYCLE, INK, MUTED, check_matplotlib, make_wrapped_panels, tidy
from ._shared_texts import document

NAME = re.compile(r"(?P<signal>.*)\(t(?:-(?P<lag>\d+))?\)", re.DOTALL)
# Characters of a title that fit above one panel of a new figure.
TITLE_WIDTH = 32
# Width of all bars at one lag.
BAR_WIDTH = 0.8


@document
class LagRelevanceDisplay:
    """Relevance of the lagged regressors, with one panel or colour per signal.

    Use :meth:`from_estimator` to create it.

    Parameters
    ----------
    signals : list of str of length n_regressors
        Name of the signal of each regressor, such as "y".
    lags : ndarray of shape (n_regressors,)
        Lag of each regressor, in rows.
    relevance : ndarray of shape (n_regressors,)
        Root mean squared derivative of the scaled output, 0 if pruned.

    Attributes
    ----------
    signal_names : list of str
        Names of the signals, in the order of the regressors.
    pruned : ndarray of bool of shape (n_regressors,)
        Mask of the regressors without any influence.
    {{figure}}
    axes_ : ndarray of matplotlib Axes, shape (n_rows, n_columns)
        One panel per signal, row by row; None in unused places. If ``plot`` is given
        one Axes, shape (1, 1).

    See Also
    --------
    SparsityDisplay : Weights and units that are not pruned, by layer.

    Examples
    --------
    >>> from skbayesnn import SparseBayesNARXRegressor
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> from skbayesnn.displays import LagRelevanceDisplay
    >>> u, y = make_cascaded_tanks(200, return_X_y=True, random_state=0)
    >>> model = SparseBayesNARXRegressor(2, 2, hidden_layer_sizes=(), random_state=0)
    >>> display = LagRelevanceDisplay.from_estimator(model.fit(u, y))
    >>> display.signals, display.lags
    (['x0', 'x0', 'x0', 'y', 'y'], array([0, 1, 2, 1, 2]))
    """

    def __init__(self, signals, lags, relevance):
        self.signals = signals
        self.lags = lags
        self.relevance = relevance

    @classmethod
    @document
    def from_estimator(cls, estimator, *, ax=None, **kwargs):
        """Plot the relevance of the lags of a fitted estimator.

        Parameters
        ----------
        estimator : fitted lagged regressor, or Pipeline that ends in one
            A model, or ensemble, with ``lag_relevance_``.
        {{draw}}

        Returns
        -------
        display : LagRelevanceDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            For a model without lags.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        model = final_model(estimator)
        relevance = getattr(model, "lag_relevance_", None)
        if relevance is None:
            members = getattr(model, "estimators_", [])
            have = any(hasattr(member, "lag_relevance_") for member in members)
            remedy = " Pass one of its estimators_ that has." if have else ""
            raise ValueError(
                f"{type(model).__name__} has no lag_relevance_: only models do whose "
                f"members all have lags.{remedy}"
            )
        found = [NAME.fullmatch(name) for name in relevance]
        return cls(
            [match["signal"] for match in found],
            np.array([int(match["lag"] or 0) for match in found]),
            np.array(list(relevance.values()), dtype=np.float64),
        ).plot(ax, **kwargs)

    @property
    def signal_names(self):
        """Names of the signals, in the order of the regressors."""
        return list(dict.fromkeys(self.signals))

    @property
    def pruned(self):
        """Mask of the regressors without any influence."""
        return self.relevance == 0.0

    @document
    def plot(self, ax=None):
        """Draw bars for each signal; a cross marks a pruned lag.

        Parameters
        ----------
        ax : matplotlib Axes or array of Axes, default=None
            None makes a new figure with one panel per signal; an array provides one
            Axes per signal. In a single Axes, the bars of the signals stand side by
            side at each lag, in different colours.

        Returns
        -------
        self : LagRelevanceDisplay
            The display.

        Raises
        ------
        ValueError
            If the number of axes is wrong.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{type(self).__name__}.plot")
        if ax is not None and np.ndim(ax) == 0:
            self.figure_, self.axes_ = ax.figure, np.array([[ax]], dtype=object)
            self._draw_together(ax)
        else:
            self._draw_panels(ax)
        self.ax_ = self.axes_[0, 0]
        return self

    def _draw_panels(self, ax):
        names = self.signal_names
        self.figure_, self.axes_, (panels,) = make_wrapped_panels(
            ax, 1, len(names), (2.7, 2.6)
        )
        for k, (panel, name) in enumerate(zip(panels, names, strict=True)):
            self._draw_signal(panel, name, CYCLE[k % len(CYCLE)])
            title = textwrap.fill(name, TITLE_WIDTH)
            pruned = self._count_pruned(name)
            panel.set_title(f"{title}\n{pruned}" if pruned else title, fontsize=10)
            self._label(panel)
            if k % self.axes_.shape[1]:
                panel.set_ylabel("")

    def _draw_together(self, panel):
        """All signals in one panel, which may be too small to be divided."""
        names = self.signal_names
        width = BAR_WIDTH / len(names)
        for k, name in enumerate(names):
            place = (k - 0.5 * (len(names) - 1)) * width
            self._draw_signal(panel, name, CYCLE[k % len(CYCLE)], place, width)
            bars = panel.containers[-1]
            pruned = self._count_pruned(name)
            bars.set_label(f"{name} ({pruned})" if pruned else name)
        panel.legend(handles=panel.containers, fontsize=8, frameon=False)
        self._label(panel)

    def _draw_signal(self, panel, name, color, place=0.0, width=BAR_WIDTH):
        of_signal = self._is_of(name)
        kept, pruned = of_signal & ~self.pruned, of_signal & self.pruned
        panel.bar(self.lags[kept] + place, self.relevance[kept], width, color=color)
        panel.plot(
            self.lags[pruned] + place,
            np.zeros(pruned.sum()),
            "x",
            color=INK if width == BAR_WIDTH else color,
            markersize=7 if width == BAR_WIDTH else 5,
            markeredgewidth=1.6,
            clip_on=False,
            zorder=3,
        )

    def _is_of(self, name):
        return np.array([signal == name for signal in self.signals])

    def _count_pruned(self, name):
        """What the crosses mean; nothing where there are none."""
        of_signal = self._is_of(name)
        n_pruned = (of_signal & self.pruned).sum()
        return f"{n_pruned} of {of_signal.sum()} pruned: ×" if n_pruned else ""

    def _label(self, panel):
        panel.axhline(0.0, color=MUTED, linewidth=0.8)
        # the same scale everywhere: panels are to be compared
        largest = np.nanmax(self.relevance, initial=0.0)
        panel.set_ylim(0.0, 1.08 * largest if largest > 0 else 1.0)
        panel.set_xlim(self.lags.min() - 0.7, self.lags.max() + 0.7)
        panel.xaxis.get_major_locator().set_params(integer=True)
        panel.set_xlabel("lag (rows)")
        panel.set_ylabel("relevance")
        tidy(panel)
