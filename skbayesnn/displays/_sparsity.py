"""Weights and units that are left after pruning, layer by layer."""

import numpy as np

from ._estimators import members
from ._figure import BLUE, EMPTY, GREEN, INK, check_matplotlib, make_panels, tidy
from ._shared_texts import document

MAX_TICKS = 12


@document
class SparsityDisplay:
    """Weights and units that are left after pruning, by layer.

    Use :meth:`from_estimator` to create it.

    Parameters
    ----------
    weight_names : list of str
        Names of the layers of weights: "inputs → hidden 1" and so on; "skip" marks the
        linear path from the inputs to the outputs.
    weights_kept : ndarray of shape (n_weight_layers,)
        Number of weights that are not pruned; for an ensemble the weighted mean over
        its networks.
    weights_total : ndarray of shape (n_weight_layers,)
        Number of weights before pruning; for an ensemble the weighted mean.
    unit_names : list of str
        Names of the layers of units: "inputs" (the regressors of a lagged model),
        "hidden 1" and so on.
    units_kept : ndarray of shape (n_unit_layers,)
        Number of units with at least one outgoing weight that is not pruned.
    units_total : ndarray of shape (n_unit_layers,)
        Number of units before pruning.
    magnitudes : list of ndarray of shape (n_units_in, n_units_out)
        Magnitude of the weights of each layer for scaled variables, zero where pruned;
        for an ensemble the weighted mean.
    n_estimators : int, default=1
        Number of networks in the ensemble.

    Attributes
    ----------
    {{figure}}
    axes_ : ndarray of matplotlib Axes, shape (1, n_panels)
        One panel for weights and one for units, or one per layer of weights.

    See Also
    --------
    LagRelevanceDisplay : Lags that are left, and their relevance.

    Examples
    --------
    >>> from skbayesnn import SparseBayesNARXRegressor
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> from skbayesnn.displays import SparsityDisplay
    >>> u, y = make_cascaded_tanks(200, return_X_y=True, random_state=0)
    >>> model = SparseBayesNARXRegressor(2, 2, hidden_layer_sizes=(), random_state=0)
    >>> display = SparsityDisplay.from_estimator(model.fit(u, y))
    >>> display.weight_names, display.weights_total
    (['inputs → outputs'], array([5.]))
    """

    def __init__(
        self,
        weight_names,
        weights_kept,
        weights_total,
        unit_names,
        units_kept,
        units_total,
        magnitudes,
        n_estimators=1,
    ):
        self.weight_names = weight_names
        self.weights_kept = weights_kept
        self.weights_total = weights_total
        self.unit_names = unit_names
        self.units_kept = units_kept
        self.units_total = units_total
        self.magnitudes = magnitudes
        self.n_estimators = n_estimators

    @classmethod
    @document
    def from_estimator(cls, estimator, *, ax=None, **kwargs):
        """Count the weights and units of a fitted estimator, and plot the result.

        Parameters
        ----------
        estimator : fitted regressor, or Pipeline that ends in one
            A sparse Bayesian regressor of this package, or an ensemble, which is
            averaged with the weights of its networks.
        {{draw}}

        Returns
        -------
        display : SparsityDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the networks of an ensemble have different layers, or the estimator has
            no ``masks_``.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        networks, weights = members(estimator)
        for network in networks:
            _check_masks(network)
        names = _layer_names(networks[0])
        if any(_layer_names(network) != names for network in networks):
            raise ValueError(
                "The networks of the ensemble must have the same layers to be shown "
                "together; pass one of its estimators_ instead."
            )
        counts = [_count(network) for network in networks]
        weights_kept, weights_total, units_kept, units_total = (
            np.tensordot(weights, np.array(column, dtype=np.float64), axes=1)
            for column in zip(*counts, strict=True)
        )
        return cls(
            *(names[0], weights_kept, weights_total),
            *(names[1], units_kept, units_total),
            magnitudes=_mean_magnitudes(networks, weights),
            n_estimators=len(networks),
        ).plot(ax, **kwargs)

    @document
    def plot(self, ax=None, *, kind="fraction"):
        """Draw the fractions that are left, or the weights themselves.

        Parameters
        ----------
        {{ax}}
        kind : {"fraction", "weights"}, default="fraction"
            "fraction" draws bars in two panels, one for weights and one for units;
            "weights" draws a map of magnitudes per layer, grey where pruned.

        Returns
        -------
        self : SparsityDisplay
            The display.

        Raises
        ------
        ValueError
            If ``kind`` is unknown, or the number of axes is wrong.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{type(self).__name__}.plot")
        if kind == "fraction":
            self._plot_fractions(ax)
        elif kind == "weights":
            self._plot_weights(ax)
        else:
            raise ValueError(f"kind must be 'fraction' or 'weights'; got {kind!r}.")
        self.ax_ = self.axes_[0, 0]
        return self

    def _plot_fractions(self, ax):
        n_layers = max(len(self.weight_names), len(self.unit_names))
        size = (9.5, 1.4 + 0.55 * n_layers)
        self.figure_, self.axes_ = make_panels(ax, 1, 2, size)
        weights, units = self.axes_[0]
        several = self.n_estimators > 1
        of_networks = f"\n(mean of {self.n_estimators} networks)" * several
        kept, total = self.weights_kept, self.weights_total
        _draw_bars(weights, self.weight_names, kept, total, BLUE)
        weights.set_title(f"Weights left{of_networks}", fontsize=11)
        _draw_bars(units, self.unit_names, self.units_kept, self.units_total, GREEN)
        units.set_title(f"Units left{of_networks}", fontsize=11)
        tidy(self.axes_)

    def _plot_weights(self, ax):
        from matplotlib.colors import LogNorm

        n_layers = len(self.magnitudes)
        size = (1.0 + 3.4 * n_layers, 3.8)
        self.figure_, self.axes_ = make_panels(ax, 1, n_layers, size)
        kept = np.concatenate([m[m > 0] for m in self.magnitudes] + [[]])
        low, high = (kept.min(), kept.max()) if len(kept) else (0.1, 1.0)
        norm = LogNorm(low, high if high > low else 10 * low)
        for k, panel in enumerate(self.axes_[0]):
            values = np.where(self.magnitudes[k] > 0, self.magnitudes[k], np.nan)
            panel.set_facecolor(EMPTY)
            image = panel.imshow(
                values, cmap="viridis_r", norm=norm, aspect="auto", interpolation="none"
            )
            name, _, skip = self.weight_names[k].partition(" (")
            source, target = name.split(" → ")
            kept = f"{_number(self.weights_kept[k])} of {self.weights_total[k]:.0f}"
            what = "(skip path)" if skip else "weights"
            panel.set_title(f"{kept}\n{what}", fontsize=9)
            panel.set_ylabel(source)
            panel.set_xlabel(target)
            for axis, n_units in zip(
                (panel.yaxis, panel.xaxis), values.shape, strict=True
            ):
                axis.set_ticks(range(0, n_units, -(-n_units // MAX_TICKS)))
            panel.tick_params(labelsize=9)
        self.figure_.colorbar(
            image,
            ax=list(self.axes_[0]),
            label="magnitude (scaled variables); grey: pruned",
        )


def _check_masks(network):
    if not hasattr(network, "masks_"):
        raise ValueError(
            f"{type(network).__name__} has no masks_: SparsityDisplay draws the sparse "
            "Bayesian regressors."
        )


def _layer_names(network):
    """Names of the layers of weights and of those of units."""
    hidden = [f"hidden {k + 1}" for k in range(len(network.masks_) - 1)]
    units = ["inputs", *hidden]
    ends = [*hidden, "outputs"]
    weights = [f"{a} → {b}" for a, b in zip(units, ends, strict=True)]
    if getattr(network, "skip_mask_", None) is not None:
        weights.append("inputs → outputs (skip)")
    return weights, units


def _layers(network):
    """Masks and magnitudes of all layers of weights, the skip path last."""
    masks, coefs = list(network.masks_), list(network.coefs_)
    skip = getattr(network, "skip_mask_", None)
    if skip is not None:
        masks.append(skip)
        coefs.append(network.skip_coef_)
    return masks, [
        np.where(m, np.abs(c), 0.0) for m, c in zip(masks, coefs, strict=True)
    ]


def _count(network):
    """Weights kept and in total, units kept and in total, by layer."""
    masks, _ = _layers(network)
    alive = [mask.any(axis=1) for mask in network.masks_]
    if len(masks) > len(network.masks_):
        alive[0] = alive[0] | masks[-1].any(axis=1)
    return (
        [mask.sum() for mask in masks],
        [mask.size for mask in masks],
        [units.sum() for units in alive],
        [len(units) for units in alive],
    )


def _mean_magnitudes(networks, weights):
    """Mean magnitude of each weight, by layer."""
    layers = [_layers(network)[1] for network in networks]
    shapes = {tuple(m.shape for m in magnitudes) for magnitudes in layers}
    if len(shapes) > 1:
        raise ValueError(
            "The networks of the ensemble must have layers of the same sizes to be "
            "shown together; pass one of its estimators_ instead."
        )
    return [
        sum(w * m for w, m in zip(weights, layer, strict=True))
        for layer in zip(*layers, strict=True)
    ]


def _draw_bars(panel, names, kept, total, color):
    """Horizontal bars, coloured up to the percentage kept, with the counts beside."""
    percentage = 100.0 * kept / np.maximum(total, 1)
    rows = np.arange(len(names))
    panel.barh(rows, 100.0, color=EMPTY, height=0.62)
    panel.barh(rows, percentage, color=color, height=0.62)
    for row in rows:
        panel.text(
            102.0,
            row,
            f"{_number(kept[row])} of {_number(total[row])}",
            va="center",
            fontsize=9,
            color=INK,
        )
    panel.set_yticks(rows, names)
    panel.set_ylim(len(names) - 0.4, -0.6)
    panel.set_xlim(0.0, 135.0)
    panel.set_xticks([0, 50, 100])
    panel.spines["bottom"].set_bounds(0.0, 100.0)
    panel.set_xlabel("fraction kept (%)")


def _number(value):
    return f"{value:.0f}" if value == round(value) else f"{value:.1f}"
