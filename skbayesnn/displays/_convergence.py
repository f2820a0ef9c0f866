"""The course of a fit: of a network cycle by cycle, or of an RBM."""

import itertools
from typing import NamedTuple

import numpy as np

from ._estimators import members, output_names
from ._figure import (
    BLUE,
    CYCLE,
    LABEL,
    MUTED,
    SMALL,
    check_matplotlib,
    make_panels,
    tidy,
    use_log_scale,
)
from ._likelihood_curves import (
    LIKELIHOODS,
    draw_likelihoods,
    is_rbm,
    of_comparison,
    tracked_likelihoods,
)
from ._shared_texts import document


class Panel(NamedTuple):
    """What one panel shows.

    Parameters
    ----------
    names : tuple of str
        Columns of ``history_``.

    label : str
        Label of the vertical axis.

    height : float
        Height in a new figure, in inches.
    """

    names: tuple
    label: str
    height: float


PANELS = (
    Panel(("objective",), "objective", 2.0),
    Panel(("rmse",), "training RMSE\n(units of y)", 2.0),
    Panel(("n_active_weights",), "active weights", 2.0),
    Panel(tuple(LIKELIHOODS), "log-likelihood\n(nats per sample)", 4.0),
)
# Label of the horizontal axis of an RBM whose updates were counted. Training may return
# to a model after fewer of them.
UPDATES = "parameter updates"
# Columns of a regressor, all of which it has.
OF_NETWORKS = ("objective", "rmse", "n_active_weights")


@document
class ConvergenceDisplay:
    """The course of a fit, as the estimator recorded it.

    For a sparse Bayesian regressor: objective, training error and number of weights
    over the cycles. For a restricted Boltzmann machine: mean log-likelihood of
    training and validation rows over the updates. Where training returned to an earlier
    model, a new line begins.

    Use :meth:`from_estimator` to create it.

    Parameters
    ----------
    x : list of ndarray of shape (n_entries,)
        Positions of the entries on the horizontal axis, one array per network.
    curves : dict of str to list of ndarray of shape (n_entries,) or \
(n_entries, n_outputs)
        Columns of ``history_``, each with one array per network: ``objective``,
        ``rmse`` (units of y) and ``n_active_weights`` of a regressor;
        ``log_likelihood`` and ``validation_log_likelihood`` (nats per sample) of an
        RBM, NaN at entries at which they were not estimated.
    x_label : str, default="cycle"
        Label of the horizontal axis.
    output_names : list of str, default=None
        Names of the outputs; None means y, or y0, y1, ...
    horizons : list of ndarray of shape (n_entries,), default=None
        For each network the rows of a free run in each cycle, infinite for whole
        records, NaN for errors one step ahead. Where they change, a stage begins: what
        is squared is another thing, and no line connects it with the one before.

    Attributes
    ----------
    {{figure}}
    axes_ : ndarray of matplotlib Axes, shape (n_panels, 1)
        Panels of objective, error and weights, or one of the likelihoods.

    See Also
    --------
    GrowthDisplay : Likelihoods and gains of an RBM over its number of units.
    SparsityDisplay : Weights and units that the fit kept.

    Examples
    --------
    >>> from skbayesnn import SparseBayesNARXRegressor
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> from skbayesnn.displays import ConvergenceDisplay
    >>> u, y = make_cascaded_tanks(200, return_X_y=True, random_state=0)
    >>> model = SparseBayesNARXRegressor(hidden_layer_sizes=(), random_state=0)
    >>> display = ConvergenceDisplay.from_estimator(model.fit(u, y))
    >>> len(display.curves["objective"][0]) == model.n_cycles_
    True
    """

    def __init__(self, x, curves, x_label="cycle", output_names=None, horizons=None):
        self.x = x
        self.curves = curves
        self.x_label = x_label
        self.output_names = output_names
        self.horizons = horizons

    @classmethod
    @document
    def from_estimator(cls, estimator, *, ax=None, **kwargs):
        """Plot the history of a fitted estimator.

        The horizontal axis of an RBM is the number of updates; or, if that was not
        recorded, the number of hidden units of a model that grows, else the epoch. If
        sizes were compared, the rounds of the winner are drawn; `GrowthDisplay` draws
        the sizes.

        Parameters
        ----------
        estimator : fitted estimator, or Pipeline that ends in one
            A sparse Bayesian regressor of this package, or an ensemble: one curve per
            network. Or a restricted Boltzmann machine that tracked its likelihood.
        {{draw}}

        Returns
        -------
        display : ConvergenceDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator did not record these numbers.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        models = members(estimator)[0]
        if is_rbm(models[0]):
            display = cls._of_rbm(models[0])
        else:
            display = cls._of_networks(models)
        return display.plot(ax, **kwargs)

    @classmethod
    def _of_rbm(cls, rbm):
        # first, because the history of blocks of rows or of a copied model is empty
        likelihoods = tracked_likelihoods(rbm)
        x, x_label = _progress(rbm.history_)
        rounds = ~of_comparison(rbm.history_)
        curves = {name: [y[rounds]] for name, y in likelihoods.items()}
        return cls([x[rounds]], curves, x_label)

    @classmethod
    def _of_networks(cls, networks):
        histories = [_history(network) for network in networks]
        curves = {name: [one[name] for one in histories] for name in OF_NETWORKS}
        x = [_count(len(one["objective"])) for one in histories]
        n_outputs = np.reshape(curves["rmse"][0], (len(x[0]), -1)).shape[1]
        names = output_names(networks[0], n_outputs)
        horizons = None
        if all("horizon" in one for one in histories):
            horizons = [np.asarray(one["horizon"], float) for one in histories]
        return cls(x, curves, output_names=names, horizons=horizons)

    @document
    def plot(self, ax=None):
        """Draw the curves, in panels one below the other.

        Parameters
        ----------
        {{ax}}

        Returns
        -------
        self : ConvergenceDisplay
            The display.

        Raises
        ------
        ValueError
            If the number of axes is wrong.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{type(self).__name__}.plot")
        shown = [p for p in PANELS if any(name in self.curves for name in p.names)]
        size = (7.0, sum(panel.height for panel in shown))
        self.figure_, self.axes_ = make_panels(ax, len(shown), 1, size, sharex=True)
        self.ax_ = self.axes_[0, 0]
        for axes, panel in zip(self.axes_[:, 0], shown, strict=True):
            names = [name for name in panel.names if name in self.curves]
            for k, x in enumerate(self.x):
                curves = {name: self.curves[name][k] for name in names}
                self._draw(axes, x, curves, k)
            axes.set_ylabel(panel.label)
            self._mark_stages(axes, first=axes is self.ax_)
            if "rmse" in names:
                self._finish_errors(axes)
            elif "n_active_weights" in names:
                axes.set_ylim(bottom=0.0)
        axes.set_xlabel(self.x_label)
        axes.xaxis.get_major_locator().set_params(integer=True)
        tidy(self.axes_)
        return self

    def _draw(self, axes, x, curves, number):
        """Draw the curves of the network of this number in one panel."""
        if LIKELIHOODS.keys() & curves.keys():
            draw_likelihoods(axes, x, curves, returns=self.x_label == UPDATES)
            axes.legend(fontsize=9, frameon=False)
            axes.set_title("Likelihood during the fit", fontsize=11)
            return
        single = len(self.x) == 1
        style = {"linewidth": 1.6} if single else {"linewidth": 1.0, "alpha": 0.7}
        # a single point has no line
        style["marker"] = "o" if len(x) == 1 else None
        for name, values in curves.items():
            if name == "n_active_weights":
                axes.step(x, values, where="mid", color=BLUE, **style)
                continue
            gaps = np.flatnonzero(self._begins_stage(number))
            for k, column in enumerate(values.reshape(len(x), -1).T):
                line = np.insert(x, gaps, np.nan), np.insert(column, gaps, np.nan)
                axes.plot(*line, color=CYCLE[k % len(CYCLE)], **style)

    def _begins_stage(self, number):
        """(n_entries,) bool, cycles of a network in which another stage begins."""
        if self.horizons is None:
            return np.zeros(len(self.x[number]), dtype=bool)
        # steps ahead, of which a single one is told by NaN
        horizons = np.nan_to_num(self.horizons[number], nan=0.0, posinf=np.inf)
        return np.append(False, horizons[1:] != horizons[:-1])

    def _mark_stages(self, axes, first):
        """Mark where a stage begins; for several networks this differs."""
        if len(self.x) > 1 or self.horizons is None:
            return
        begins = np.flatnonzero(self._begins_stage(0))
        for place in begins:
            x = self.x[0][place] - 0.5
            axes.axvline(x, color=MUTED, linewidth=0.9, linestyle=":")
        if first and len(begins):
            for start, stop in itertools.pairwise([0, *begins, len(self.x[0])]):
                axes.annotate(
                    _describe(self.horizons[0][start]),
                    (0.5 * (self.x[0][start] + self.x[0][stop - 1]), 1.02),
                    xycoords=("data", "axes fraction"),
                    ha="center",
                    fontsize=SMALL,
                    color=MUTED,
                )
            axes.set_title("rows of a free run in each stage", fontsize=LABEL, pad=20)

    def _finish_errors(self, axes):
        rmse = [values.reshape(len(values), -1) for values in self.curves["rmse"]]
        errors = np.concatenate(rmse)
        if errors.min() > 0 and errors.max() > 10 * errors.min():
            use_log_scale(axes)
        n_outputs = errors.shape[1]
        if n_outputs > 1:
            axes.legend(
                axes.get_lines()[:n_outputs],
                self.output_names or output_names(None, n_outputs),
                loc="center left",
                bbox_to_anchor=(1.0, 0.5),
                fontsize=9,
                frameon=False,
            )


def _history(network):
    history = getattr(network, "history_", {})
    missing = [name for name in OF_NETWORKS if name not in history]
    if missing:
        raise ValueError(
            f"{type(network).__name__} does not record {', '.join(missing)} in its "
            "history_: ConvergenceDisplay draws fits of the sparse Bayesian regressors "
            "and of the restricted Boltzmann machines of this package."
        )
    return history


def _describe(horizon):
    """The rows of a free run, for a reader."""
    if np.isnan(horizon) or horizon == 1:
        return "1"
    return "all" if np.isinf(horizon) else f"{horizon:.0f}"


def _count(n_entries):
    return np.arange(1.0, n_entries + 1.0)


def _progress(history):
    """Where the entries of an RBM's history lie on the horizontal axis, and its label.

    Where the updates were not counted, units or entries stand in their place.
    """
    if "n_updates" in history:
        return np.asarray(history["n_updates"], dtype=np.float64), UPDATES
    sizes = np.asarray(history.get("n_components", ()), dtype=np.float64)
    if len(np.unique(sizes)) > 1:
        return sizes, "hidden units"
    return _count(max(map(len, history.values()))), "epoch"
