"""The growth of a restricted Boltzmann machine, unit by unit."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._estimators import final_model
from ._figure import GREEN, INK, check_matplotlib, make_panels, tidy, use_log_scale
from ._likelihood_curves import (
    draw_likelihoods,
    is_rbm,
    mark_other_starts,
    of_comparison,
    tracked_likelihoods,
)
from ._shared_texts import document

# Columns of ``history_`` that only a model that grows has.
OF_GROWTH = ("n_components", "gain")


@document
class GrowthDisplay:
    """Likelihoods and gains over the number of units of an RBM that chose its size.

    Above, the mean log-likelihood of training and validation rows that each size had
    when sizes were compared, and those of other starts as diamonds; below, what it
    gained over the best size before, or what each unit was found to gain when it was
    added. A vertical line marks the size of the fitted model, which was trained
    further.

    Use :meth:`from_estimator` to create it.

    Parameters
    ----------
    n_components : ndarray of shape (n_steps,)
        Number of units of each start that was compared, or after each step.
    curves : dict of str to ndarray of shape (n_steps,)
        ``log_likelihood`` and ``validation_log_likelihood``, or one of them, in nats
        per sample; NaN after steps at which it was not estimated.
    gain : ndarray of shape (n_steps,)
        Gain of the units that each step added, in nats per sample; NaN if it added
        none.
    chosen : int
        Number of units of the fitted model.
    others : ndarray of shape (n_steps,), dtype bool, default=None
        Starts from other than small weights, which no line joins; None for no such.

    Attributes
    ----------
    {{figure}}
    axes_ : ndarray of matplotlib Axes, shape (2, 1)
        Panels of likelihoods and gains.

    See Also
    --------
    ConvergenceDisplay : The same likelihoods over the updates.
    ComponentsDisplay : The weights of the units as images.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
    >>> from skbayesnn.displays import GrowthDisplay
    >>> X = load_digits().data[:100, :32] > 7  # upper halves
    >>> trainer = ContrastiveDivergenceRBM(max_updates=20)
    >>> rbm = FrankWolfeRBM(fine_tune=trainer, random_state=0).fit(X)
    >>> display = GrowthDisplay.from_estimator(rbm)
    >>> display.chosen == rbm.n_components_
    True
    """

    def __init__(self, n_components, curves, gain, chosen, others=None):
        self.n_components = n_components
        self.curves = curves
        self.gain = gain
        self.chosen = chosen
        self.others = others

    @classmethod
    @document
    def from_estimator(cls, estimator, *, ax=None, **kwargs):
        """Plot the growth of a fitted estimator.

        Parameters
        ----------
        estimator : fitted FrankWolfeRBM, or Pipeline that ends in one
            A model that tracked its likelihood.
        {{draw}}

        Returns
        -------
        display : GrowthDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator has no sizes in its history, or did not track its
            likelihood, as a growth with a given number of units does not.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        model = final_model(estimator)
        history = getattr(model, "history_", {})
        missing = [name for name in OF_GROWTH if name not in history]
        # an empty history tells nothing of what a model can record
        if missing and (history or not is_rbm(model)):
            raise ValueError(
                f"{type(model).__name__} does not record {', '.join(missing)} in its "
                "history_: GrowthDisplay draws fits of FrankWolfeRBM. For another RBM "
                "use ConvergenceDisplay."
            )
        curves = tracked_likelihoods(model)
        sizes = np.asarray(history["n_components"], dtype=np.float64)
        compared = of_comparison(history)
        if compared.any():
            order = np.argsort(sizes, kind="stable")[: compared.sum()]
            history = {name: values[order] for name, values in history.items()}
            curves = {name: values[order] for name, values in curves.items()}
            sizes = sizes[order]
        added = np.diff(sizes, prepend=0.0) > 0
        if "change" in history:  # known even at the first step of a given model
            added = history["change"] > 0
        gain = np.where(added, history["gain"], np.nan)
        others = None
        if "from_small_weights" in history:
            others = history["from_small_weights"] == 0.0
        display = cls(sizes, curves, gain, int(model.n_components_), others)
        return display.plot(ax, **kwargs)

    @document
    def plot(self, ax=None):
        """Draw the likelihoods and, below, the gains.

        Parameters
        ----------
        {{ax}}

        Returns
        -------
        self : GrowthDisplay
            The display.

        Raises
        ------
        ValueError
            If the number of axes is wrong.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{type(self).__name__}.plot")
        self.figure_, self.axes_ = make_panels(
            ax, 2, 1, (7.0, 5.6), sharex=True, height_ratios=(1.6, 1.0)
        )
        self.ax_, gains = self.axes_[:, 0]
        others = self.others
        if others is None:
            others = np.zeros(len(self.n_components), dtype=bool)
        sizes = self.n_components[~others]
        of_sizes = {name: values[~others] for name, values in self.curves.items()}
        draw_likelihoods(self.ax_, sizes, of_sizes)
        if others.any():
            of_others = {name: values[others] for name, values in self.curves.items()}
            mark_other_starts(self.ax_, self.n_components[others], of_others)
        known = np.isfinite(self.gain)
        found = self.gain[known]
        gains.plot(self.n_components[known], found, "o", color=GREEN, markersize=4)
        if found.size and found.min() > 0 and found.max() > 10 * found.min():
            use_log_scale(gains)
        for panel in self.axes_[:, 0]:
            panel.axvline(
                self.chosen,
                color=INK,
                linewidth=1.0,
                linestyle=":",
                zorder=1,
                label=f"fitted model: {self.chosen} unit{'s'[: self.chosen != 1]}",
            )
        self._label(gains)
        tidy(self.axes_)
        return self

    def _label(self, gains):
        self.ax_.set_title("Likelihood by number of units", fontsize=11)
        self.ax_.set_ylabel("log-likelihood\n(nats per sample)")
        self.ax_.legend(fontsize=9, frameon=False)
        gains.set_ylabel("gain of the new units\n(nats per sample)")
        gains.set_xlabel("hidden units")
        gains.set_xlim(left=0.0)
        gains.xaxis.get_major_locator().set_params(integer=True)
