"""Docstring texts that several displays share."""

from .._docstrings import shared_parameters

TEXTS = {
    "figure": """
figure_ : matplotlib Figure
    Figure that contains the plot, set by ``plot``.
ax_ : matplotlib Axes
    The first of the axes.
""",
    "X": """
X : array-like of shape (n_samples, n_inputs) or None
    Inputs.
""",
    "y": """
y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    Measured outputs, NaN where missing.
""",
    "y_true": """
y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
    Measured outputs, NaN where missing.
""",
    "y_pred": """
y_pred : array-like shaped like y_true
    Predictions, NaN where there is none.
""",
    "sessions": """
sessions : array-like of shape (n_samples,), default=None
    Id of the record that each row belongs to.
""",
    "draw": """
ax : matplotlib Axes or array of Axes, default=None
    Where to draw, see :meth:`plot`.
**kwargs : dict
    Passed to :meth:`plot`.
""",
    "ax": """
ax : matplotlib Axes or array of Axes, default=None
    One Axes is divided into panels; an array provides one Axes per panel; None makes
    a new figure.
""",
    "output": """
output : int, default=None
    Number of the output to draw; None draws all outputs.
""",
    "image_shape": """
image_shape : tuple of two int, default=None
    Height and width of an image, whose pixels are the features, row by row. None: as
    many features as a square image has.
""",
    "no_matplotlib": """
ImportError
    If matplotlib is not installed.
""",
}

document = shared_parameters(TEXTS)
