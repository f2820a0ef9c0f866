"""Log-likelihoods that an RBM tracked during its fit, and their curves."""

import numpy as np

from ._figure import BLUE, ORANGE

# Label and style of each column of ``history_``. Validation is dashed and drawn over
# training: where both agree, both are seen.
LIKELIHOODS = {
    "log_likelihood": ("training", {"color": BLUE, "linewidth": 1.8}),
    "validation_log_likelihood": (
        "validation",
        {"color": ORANGE, "linewidth": 1.8, "linestyle": (0, (4, 2)), "zorder": 3},
    ),
}
# Up to so many points of a curve, each one is marked.
MANY_POINTS = 40


def is_rbm(model):
    """Whether a model is an RBM with a history of its fit."""
    return hasattr(model, "intercept_hidden_") and hasattr(model, "history_")


def of_comparison(history):
    """Which entries of an RBM's history are sizes and starts that were compared.

    The rounds of the winner follow them.

    A bool array of shape (n_entries,), all False where none was.
    """
    n_entries = max(map(len, history.values()))
    sizes = np.asarray(history.get("n_components", np.zeros(n_entries)), np.float64)
    # a round has no size of its own
    compared = np.isfinite(sizes)
    return compared & ~compared.all()


def tracked_likelihoods(rbm):
    """The log-likelihoods in the history of an RBM: columns with any estimate.

    Raises a ValueError that says how to get them if there is none.
    """
    columns = {
        name: np.asarray(rbm.history_[name], dtype=np.float64)
        for name in LIKELIHOODS
        if name in rbm.history_
    }
    tracked = {name: y for name, y in columns.items() if np.isfinite(y).any()}
    if not tracked:
        raise ValueError(
            f"{type(rbm).__name__} has not tracked its likelihood: history_ has no "
            "estimate of log_likelihood or validation_log_likelihood. Automatic "
            "training tracks it: max_iter='auto' of ContrastiveDivergenceRBM, "
            "n_components='auto' of FrankWolfeRBM, on rows that are held out or on "
            "those of fit(X, X_val=...)."
        )
    return tracked


def draw_likelihoods(axes, x, curves, returns=False):
    """Draw the estimates at the entries that have one, joined by lines.

    Parameters
    ----------
    axes : matplotlib Axes
        Where to draw.

    x : ndarray of shape (n_entries,)
        Horizontal positions.

    curves : dict of str to ndarray of shape (n_entries,)
        Columns of ``history_``, NaN where there is no estimate.

    returns : bool, default=False
        Whether an entry to the left of the one before is about a model that follows
        from an earlier one. No line joins the two.
    """
    for name, values in curves.items():
        label, style = LIKELIHOODS[name]
        known = np.isfinite(values) & np.isfinite(x)
        marker = "o" if known.sum() <= MANY_POINTS else None
        line = x[known], values[known]
        if returns:
            gaps = np.flatnonzero(np.diff(line[0]) < 0.0) + 1
            line = (np.insert(column, gaps, np.nan) for column in line)
        axes.plot(*line, label=label, marker=marker, markersize=4, **style)


def mark_other_starts(axes, x, curves):
    """Mark estimates that belong to no line, as `draw_likelihoods` takes them."""
    for number, (name, values) in enumerate(curves.items()):
        color = LIKELIHOODS[name][1]["color"]
        label = "_" if number else "other starts"
        axes.plot(x, values, "D", color=color, mfc="none", markersize=6, label=label)
