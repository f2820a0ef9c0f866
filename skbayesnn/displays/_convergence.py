"""The course of a fit: of a network cycle by cycle, or of an RBM."""

from typing import NamedTuple

import numpy as np

from ._estimators import members
from ._figure import BLUE, CYCLE, check_matplotlib, make_panels, tidy
from ._likelihood_curves import (
    LIKELIHOODS,
    draw_likelihoods,
    is_rbm,
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
# Columns of a regressor, all of which it has.
OF_NETWORKS = ("objective", "rmse", "n_active_weights")


@document
class ConvergenceDisplay:
    """The course of a fit, as the estimator recorded it.

    For a sparse Bayesian regressor: objective, training error and number of weights
    over the cycles. For a restricted Boltzmann machine: mean log-likelihood of
    training and validation rows over the updates.

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

    def __init__(self, x, curves, x_label="cycle"):
        self.x = x
        self.curves = curves
        self.x_label = x_label

    @classmethod
    @document
    def from_estimator(cls, estimator, *, ax=None, **kwargs):
        """Plot the history of a fitted estimator.

        The horizontal axis of an RBM is the number of updates; or, if that was not
        recorded, the number of hidden units of a model that grows, else the epoch.

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
        x, x_label = _progress(rbm.history_)
        likelihoods = tracked_likelihoods(rbm)
        return cls([x], {name: [y] for name, y in likelihoods.items()}, x_label)

    @classmethod
    def _of_networks(cls, networks):
        histories = [_history(network) for network in networks]
        curves = {name: [one[name] for one in histories] for name in OF_NETWORKS}
        return cls([_count(len(one["objective"])) for one in histories], curves)

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
                self._draw(axes, x, {name: self.curves[name][k] for name in names})
            axes.set_ylabel(panel.label)
            if "rmse" in names:
                self._finish_errors(axes)
            elif "n_active_weights" in names:
                axes.set_ylim(bottom=0.0)
        axes.set_xlabel(self.x_label)
        axes.xaxis.get_major_locator().set_params(integer=True)
        tidy(self.axes_)
        return self

    def _draw(self, axes, x, curves):
        """Draw the curves of one network in one panel."""
        if LIKELIHOODS.keys() & curves.keys():
            draw_likelihoods(axes, x, curves)
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
            for k, column in enumerate(values.reshape(len(x), -1).T):
                axes.plot(x, column, color=CYCLE[k % len(CYCLE)], **style)

    def _finish_errors(self, axes):
        rmse = [values.reshape(len(values), -1) for values in self.curves["rmse"]]
        errors = np.concatenate(rmse)
        if errors.min() > 0 and errors.max() > 10 * errors.min():
            axes.set_yscale("log")
        n_outputs = errors.shape[1]
        if n_outputs > 1:
            axes.legend(
                axes.get_lines()[:n_outputs],
                [f"y{k}" for k in range(n_outputs)],
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


def _count(n_entries):
    return np.arange(1.0, n_entries + 1.0)


def _progress(history):
    """Where the entries of an RBM's history lie on the horizontal axis, and its label.

    Where the updates were not counted, units or entries stand in their place.
    """
    if "n_updates" in history:
        return np.asarray(history["n_updates"], dtype=np.float64), "parameter updates"
    sizes = np.asarray(history.get("n_components", ()), dtype=np.float64)
    if len(np.unique(sizes)) > 1:
        return sizes, "hidden units"
    return _count(max(map(len, history.values()))), "epoch"
