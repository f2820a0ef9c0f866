"""What pruning left: weights and units, layer by layer."""

import numpy as np

from ._figure import BLUE, EMPTY, GREEN, INK, check_matplotlib, make_panels, tidy
from ._predictions import members

MAX_TICKS = 12


class SparsityDisplay:
    """Weights and units that survived pruning, by layer.

    Use :meth:`from_estimator` to make one.

    Parameters
    ----------
    weight_names : list of str
        A layer of weights each: "inputs → hidden 1" and so on; "skip" in it is the
        linear path from the inputs to the outputs.
    weights_kept : ndarray of shape (n_weight_layers,)
        Weights that survived; for a committee the weighted mean over its networks.
    weights_total : ndarray of shape (n_weight_layers,)
        Weights before pruning, for a committee likewise.
    unit_names : list of str
        A layer of units each: "inputs" (of a lagged model its regressors), "hidden 1"
        and so on.
    units_kept : ndarray of shape (n_unit_layers,)
        Units that survived: inputs with a weight to somewhere, hidden units that lead
        to the next layer.
    units_total : ndarray of shape (n_unit_layers,)
        Units before pruning.
    magnitudes : list of ndarray of shape (n_units_in, n_units_out)
        Magnitude of the weights of each layer, zero where pruned; for a committee the
        weighted mean. In units of the scaled variables.
    n_networks : int, default=1
        Networks of the committee.

    Attributes
    ----------
    figure_ : matplotlib Figure
        Figure with the picture, set by ``plot``.
    axes_ : ndarray of matplotlib Axes, shape (1, n_panels)
        Panels of weights and of units, or one a layer of weights.
    ax_ : matplotlib Axes
        The first of them.

    See Also
    --------
    LagRelevanceDisplay : Which lags survived, and how much they matter.

    Examples
    --------
    >>> from skbayesnn import SparseBayesNARXRegressor
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> from skbayesnn.displays import SparsityDisplay
    >>> u, y = make_cascaded_tanks(200, return_X_y=True, random_state=0)
    >>> model = SparseBayesNARXRegressor(hidden_layer_sizes=(), random_state=0)
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
        n_networks=1,
    ):
        self.weight_names = weight_names
        self.weights_kept = weights_kept
        self.weights_total = weights_total
        self.unit_names = unit_names
        self.units_kept = units_kept
        self.units_total = units_total
        self.magnitudes = magnitudes
        self.n_networks = n_networks

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, **kwargs):
        """Count what survived in a fitted estimator, and plot it.

        Parameters
        ----------
        estimator : fitted regressor, or Pipeline that ends in one
            A regressor of this package, or a committee, whose networks then count
            with their weights.
        ax : matplotlib Axes or array of Axes, default=None
            Where to draw, see :meth:`plot`.
        **kwargs : dict
            Passed on to :meth:`plot`.

        Returns
        -------
        display : SparsityDisplay
            With the computed numbers and the picture.

        Raises
        ------
        ValueError
            For a committee whose networks differ in their number of layers.
        ImportError
            Without matplotlib.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        networks, shares = members(estimator)
        names = _layer_names(networks[0])
        if any(_layer_names(network) != names for network in networks):
            raise ValueError(
                "The networks of the committee must have the same layers to be shown "
                "together; pass one of its estimators_ instead."
            )
        counts = [_count(network) for network in networks]
        weights_kept, weights_total, units_kept, units_total = (
            np.tensordot(shares, np.array(column, dtype=np.float64), axes=1)
            for column in zip(*counts, strict=True)
        )
        return cls(
            *(names[0], weights_kept, weights_total),
            *(names[1], units_kept, units_total),
            magnitudes=_mean_magnitudes(networks, shares),
            n_networks=len(networks),
        ).plot(ax, **kwargs)

    def plot(self, ax=None, *, kind="share"):
        """Draw the shares that survived, or the weights themselves.

        Parameters
        ----------
        ax : matplotlib Axes or array of Axes, default=None
            One Axes is divided, an array of as many as there are panels is drawn into,
            None makes a new figure.
        kind : {"share", "weights"}, default="share"
            "share" draws two panels of bars, of weights and of units; "weights" a map
            of magnitudes for each layer, blank where pruned.

        Returns
        -------
        self : SparsityDisplay
            The display.

        Raises
        ------
        ValueError
            For another ``kind``, and arrays of axes of another size.
        ImportError
            Without matplotlib.
        """
        check_matplotlib(f"{type(self).__name__}.plot")
        if kind == "share":
            self._plot_shares(ax)
        elif kind == "weights":
            self._plot_weights(ax)
        else:
            raise ValueError(f"kind must be 'share' or 'weights'; got {kind!r}.")
        self.ax_ = self.axes_[0, 0]
        return self

    def _plot_shares(self, ax):
        n_layers = max(len(self.weight_names), len(self.unit_names))
        size = (9.5, 1.4 + 0.55 * n_layers)
        self.figure_, self.axes_ = make_panels(ax, 1, 2, size)
        weights, units = self.axes_[0]
        of_networks = f" (mean of {self.n_networks} networks)" * (self.n_networks > 1)
        kept, total = self.weights_kept, self.weights_total
        _draw_bars(weights, self.weight_names, kept, total, BLUE)
        weights.set_title(f"Weights that survived{of_networks}", fontsize=11)
        _draw_bars(units, self.unit_names, self.units_kept, self.units_total, GREEN)
        units.set_title(f"Units that survived{of_networks}", fontsize=11)
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
            source, target = self.weight_names[k].split(" (")[0].split(" → ")
            share = f"{_number(self.weights_kept[k])} of {self.weights_total[k]:.0f}"
            panel.set_title(f"{self.weight_names[k]}\n{share} weights", fontsize=10)
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
    """Weights kept and in all, units kept and in all, by layer."""
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


def _mean_magnitudes(networks, shares):
    layers = [_layers(network)[1] for network in networks]
    shapes = {tuple(m.shape for m in magnitudes) for magnitudes in layers}
    if len(shapes) > 1:
        raise ValueError(
            "The networks of the committee must have layers of the same sizes to be "
            "shown together; pass one of its estimators_ instead."
        )
    return [
        sum(w * m for w, m in zip(shares, layer, strict=True))
        for layer in zip(*layers, strict=True)
    ]


def _draw_bars(panel, names, kept, total, color):
    """Horizontal bars of 100 %, coloured as far as kept, and the counts in words."""
    share = 100.0 * kept / np.maximum(total, 1)
    rows = np.arange(len(names))
    panel.barh(rows, 100.0, color=EMPTY, height=0.62)
    panel.barh(rows, share, color=color, height=0.62)
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
    panel.set_xticks([0, 25, 50, 75, 100])
    panel.spines["bottom"].set_bounds(0.0, 100.0)
    panel.set_xlabel("share kept (%)")


def _number(value):
    return f"{value:.0f}" if value == round(value) else f"{value:.1f}"
