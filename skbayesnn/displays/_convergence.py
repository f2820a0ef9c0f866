"""The course of a fit, cycle by cycle."""

import numpy as np

from ._estimators import members
from ._figure import BLUE, CYCLE, check_matplotlib, make_panels, tidy
from ._shared_texts import document

# Entries of ``history_`` that are drawn.
DRAWN = ("objective", "rmse", "n_active_weights")


@document
class ConvergenceDisplay:
    """Objective, training error and number of weights over the cycles of a fit.

    Use :meth:`from_estimator` to create it.

    Parameters
    ----------
    objective : list of ndarray of shape (n_cycles,)
        Objective after the updates of each cycle. All lists hold one array per network.
    rmse : list of ndarray of shape (n_cycles, n_outputs)
        Root mean squared error on the training record, in units of y.
    n_active_weights : list of ndarray of shape (n_cycles,)
        Number of weights that are not pruned.

    Attributes
    ----------
    {{figure}}
    axes_ : ndarray of matplotlib Axes, shape (3, 1)
        Panels of objective, error and weights.

    See Also
    --------
    SparsityDisplay : Weights and units that the fit kept.

    Examples
    --------
    >>> from skbayesnn import SparseBayesNARXRegressor
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> from skbayesnn.displays import ConvergenceDisplay
    >>> u, y = make_cascaded_tanks(200, return_X_y=True, random_state=0)
    >>> model = SparseBayesNARXRegressor(hidden_layer_sizes=(), random_state=0)
    >>> display = ConvergenceDisplay.from_estimator(model.fit(u, y))
    >>> len(display.objective[0]) == model.n_cycles_
    True
    """

    def __init__(self, objective, rmse, n_active_weights):
        self.objective = objective
        self.rmse = rmse
        self.n_active_weights = n_active_weights

    @classmethod
    @document
    def from_estimator(cls, estimator, *, ax=None, **kwargs):
        """Plot the history of a fitted estimator.

        Parameters
        ----------
        estimator : fitted regressor, or Pipeline that ends in one
            A sparse Bayesian regressor of this package, or an ensemble: one curve per
            network.
        {{draw}}

        Returns
        -------
        display : ConvergenceDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator does not record these numbers.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        histories = [_history(network) for network in members(estimator)[0]]
        return cls(
            [history["objective"] for history in histories],
            [
                history["rmse"].reshape(len(history["rmse"]), -1)
                for history in histories
            ],
            [history["n_active_weights"] for history in histories],
        ).plot(ax, **kwargs)

    @document
    def plot(self, ax=None):
        """Draw the three curves, one below the other.

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
        self.figure_, self.axes_ = make_panels(ax, 3, 1, (7.0, 6.0), sharex=True)
        self.ax_ = self.axes_[0, 0]
        objective, error, weights = self.axes_[:, 0]
        single = len(self.objective) == 1
        style = {"linewidth": 1.6} if single else {"linewidth": 1.0, "alpha": 0.7}
        for curves in zip(
            self.objective, self.rmse, self.n_active_weights, strict=True
        ):
            cycles = np.arange(1, len(curves[0]) + 1)
            # a single point has no line
            style["marker"] = "o" if len(cycles) == 1 else None
            objective.plot(cycles, curves[0], color=BLUE, **style)
            for k, rmse in enumerate(curves[1].T):
                error.plot(cycles, rmse, color=CYCLE[k % len(CYCLE)], **style)
            weights.step(cycles, curves[2], where="mid", color=BLUE, **style)
        self._label(objective, error, weights)
        tidy(self.axes_)
        return self

    def _label(self, objective, error, weights):
        objective.set_ylabel("objective")
        error.set_ylabel("training RMSE\n(units of y)")
        weights.set_ylabel("active weights")
        weights.set_ylim(bottom=0.0)
        weights.set_xlabel("cycle")
        weights.xaxis.get_major_locator().set_params(integer=True)
        errors = np.concatenate(self.rmse)
        if errors.min() > 0 and errors.max() > 10 * errors.min():
            error.set_yscale("log")
        n_outputs = self.rmse[0].shape[1]
        if n_outputs > 1:
            lines = error.get_lines()[:n_outputs]
            names = [f"y{k}" for k in range(n_outputs)]
            error.legend(
                lines,
                names,
                loc="center left",
                bbox_to_anchor=(1.0, 0.5),
                fontsize=9,
                frameon=False,
            )


def _history(network):
    history = getattr(network, "history_", {})
    missing = [name for name in DRAWN if name not in history]
    if missing:
        raise ValueError(
            f"{type(network).__name__} does not record {', '.join(missing)} in its "
            "history_: ConvergenceDisplay draws fits of the sparse Bayesian regressors."
        )
    return history
