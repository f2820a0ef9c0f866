"""Weights between named features and hidden units, the strongest first."""

import numpy as np

from .._validation import check_count
from ._estimators import components_of
from ._figure import SMALL, add_color_bar, check_matplotlib, make_panels
from ._shared_texts import document

# Size of a cell in a new figure, in inches, and its largest side.
CELL = (0.42, 0.22)
LARGEST = (12.0, 16.0)
# More names beside the cells are not legible.
MOST_NAMES = 70


@document
class FeatureWeightsDisplay:
    """Weights of named features to hidden units, as a table of colours.

    For features that are no pixels, such as words, questions or products. Each column
    is a unit, each row a feature; those with the largest weights are shown, and stand
    together by the unit to which they belong most. Use :meth:`from_estimator` to create
    it.

    Parameters
    ----------
    weights : ndarray of shape (n_features, n_units)
        Weights of the features that are shown to the units that are shown.
    feature_names : list of str of length n_features
        Names of the features.
    units : ndarray of int of shape (n_units,)
        Numbers of the units.

    Attributes
    ----------
    {{figure}}
    axes_ : ndarray of matplotlib Axes, shape (1, 1)
        The one panel.

    See Also
    --------
    ComponentsDisplay : Weights of units as images.

    Examples
    --------
    >>> import pandas as pd
    >>> from skbayesnn import ContrastiveDivergenceRBM
    >>> from skbayesnn.displays import FeatureWeightsDisplay
    >>> answers = pd.DataFrame({"tea": [1, 0, 1, 0] * 9, "coffee": [0, 1, 0, 1] * 9})
    >>> rbm = ContrastiveDivergenceRBM(2, max_iter=5, random_state=0).fit(answers)
    >>> display = FeatureWeightsDisplay.from_estimator(rbm)
    >>> sorted(display.feature_names)
    ['coffee', 'tea']
    """

    def __init__(self, weights, feature_names, units):
        self.weights = weights
        self.feature_names = feature_names
        self.units = units

    @classmethod
    @document
    def from_estimator(
        cls,
        estimator,
        *,
        n=12,
        n_features=30,
        feature_names=None,
        ax=None,
        **kwargs,
    ):
        """Plot the largest weights of the strongest hidden units of a fitted model.

        Parameters
        ----------
        estimator : fitted estimator with components_, or Pipeline that ends in one
            A restricted Boltzmann machine.
        n : int, default=12
            Number of units to show: those whose weights have the largest norm, in the
            order of the model.
        n_features : int, default=30
            Number of features to show: those with the largest magnitude of a weight to
            one of these units.
        feature_names : array-like of str of shape (n_features_in_,), default=None
            Names of all features of the model. None: ``feature_names_in_`` of the
            model, or x0, x1 and so on.
        {{draw}}

        Returns
        -------
        display : FeatureWeightsDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator has no ``components_``, the number of names is not that of
            the features, or ``n`` or ``n_features`` is not a positive integer.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        model, components = components_of(estimator, cls.__name__)
        names = _check_names(feature_names, model, components.shape[1])
        strength = np.linalg.norm(components, axis=1)
        units = np.sort(_largest(strength, check_count(n, "n", 1)))
        weights = components[units].T
        peak = np.abs(weights).max(axis=1, initial=0.0)
        shown = _largest(peak, check_count(n_features, "n_features", 1))
        belongs_to = np.abs(weights[shown]).argmax(axis=1)
        shown = shown[np.lexsort((shown, -peak[shown], belongs_to))]
        return cls(weights[shown], [names[k] for k in shown], units).plot(ax, **kwargs)

    @document
    def plot(self, ax=None):
        """Draw the table: positive weights red, negative ones blue.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        self : FeatureWeightsDisplay
            The display.

        Raises
        ------
        ValueError
            If the number of axes is wrong.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{type(self).__name__}.plot")
        n_rows, n_columns = self.weights.shape
        size = (
            min(CELL[0] * n_columns + 2.8, LARGEST[0]),
            min(CELL[1] * n_rows + 1.2, LARGEST[1]),
        )
        self.figure_, self.axes_ = make_panels(ax, 1, 1, size)
        self.ax_ = panel = self.axes_[0, 0]
        limit = np.abs(self.weights).max(initial=0.0) or 1.0
        drawn = panel.imshow(
            self.weights,
            cmap="RdBu_r",
            vmin=-limit,
            vmax=limit,
            aspect="auto",
            interpolation="none",
        )
        panel.spines[:].set_visible(False)
        panel.tick_params(length=0, labelsize=SMALL)
        _name_ticks(panel.yaxis, self.feature_names)
        _name_ticks(panel.xaxis, [str(unit) for unit in self.units])
        panel.set_xlabel("hidden unit", fontsize=10)
        add_color_bar(drawn, panel, "weight")
        return self


def _check_names(feature_names, model, n_features):
    """Names of all features: the given ones, the model's, or x0, x1, ..."""
    if feature_names is None:
        default = [f"x{k}" for k in range(n_features)]
        feature_names = getattr(model, "feature_names_in_", default)
    names = [str(name) for name in feature_names]
    if len(names) != n_features:
        raise ValueError(
            f"feature_names must have a name for each of the {n_features} features; "
            f"got {len(names)}."
        )
    return names


def _largest(values, n):
    """Indices of the n largest values, the largest first."""
    return np.argsort(-values, kind="stable")[:n]


def _name_ticks(axis, names):
    """A name at every place, or at as many as can be read."""
    step = -(-len(names) // MOST_NAMES)
    axis.set_ticks(np.arange(0, len(names), step), labels=names[::step])
