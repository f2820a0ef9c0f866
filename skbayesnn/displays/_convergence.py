"""How a fit went, cycle by cycle."""

import numpy as np

from ._figure import BLUE, CYCLE, check_matplotlib, make_panels, tidy
from ._predictions import members


class ConvergenceDisplay:
    """Objective, training error and weights left, by cycle of the fit.

    Use :meth:`from_estimator` to make one.

    Parameters
    ----------
    objective : list of ndarray of shape (n_cycles,)
        Objective after the updates of each cycle; one array a network, as below.
    rmse : list of ndarray of shape (n_cycles, n_outputs)
        Root mean squared error on the training record, in units of y.
    n_active_weights : list of ndarray of shape (n_cycles,)
        Weights that are left.

    Attributes
    ----------
    figure_ : matplotlib Figure
        Figure with the picture, set by ``plot``.
    axes_ : ndarray of matplotlib Axes, shape (3, 1)
        Panels of objective, error and weights.
    ax_ : matplotlib Axes
        The first of them.

    See Also
    --------
    SparsityDisplay : What the fit left.

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
    def from_estimator(cls, estimator, *, ax=None, **kwargs):
        """Take the history of a fitted estimator, and plot it.

        Parameters
        ----------
        estimator : fitted regressor, or Pipeline that ends in one
            A regressor of this package, or a committee, of which every network is
            drawn.
        ax : matplotlib Axes or array of Axes, default=None
            Where to draw, see :meth:`plot`.
        **kwargs : dict
            Passed on to :meth:`plot`.

        Returns
        -------
        display : ConvergenceDisplay
            With the numbers and the picture.

        Raises
        ------
        ImportError
            Without matplotlib.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        histories = [network.history_ for network in members(estimator)[0]]
        return cls(
            [history["objective"] for history in histories],
            [
                history["rmse"].reshape(len(history["rmse"]), -1)
                for history in histories
            ],
            [history["n_active_weights"] for history in histories],
        ).plot(ax, **kwargs)

    def plot(self, ax=None):
        """Draw the three curves over each other.

        Parameters
        ----------
        ax : matplotlib Axes or array of Axes, default=None
            One Axes is divided, an array of three is drawn into, None makes a new
            figure.

        Returns
        -------
        self : ConvergenceDisplay
            The display.

        Raises
        ------
        ValueError
            For arrays of axes of another size.
        ImportError
            Without matplotlib.
        """
        check_matplotlib(f"{type(self).__name__}.plot")
        self.figure_, self.axes_ = make_panels(ax, 3, 1, (7.0, 6.0), share="x")
        self.ax_ = self.axes_[0, 0]
        objective, error, weights = self.axes_[:, 0]
        single = len(self.objective) == 1
        style = {"linewidth": 1.6} if single else {"linewidth": 1.0, "alpha": 0.7}
        for curves in zip(
            self.objective, self.rmse, self.n_active_weights, strict=True
        ):
            cycles = np.arange(1, len(curves[0]) + 1)
            # a fit of one cycle is a point
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
        weights.set_ylabel("weights left")
        weights.set_ylim(bottom=0.0)
        weights.set_xlabel("cycle")
        weights.xaxis.get_major_locator().set_params(integer=True)
        if all((rmse > 0).all() for rmse in self.rmse):
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
