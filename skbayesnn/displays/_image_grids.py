"""Weights and samples of a restricted Boltzmann machine as images."""

from math import isqrt, prod
from numbers import Integral

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._validation import check_count
from ._estimators import components_of, final_model
from ._figure import add_color_bar, check_matplotlib, make_panels
from ._shared_texts import document

# Side of the drawn images, in inches.
SIDE = 5.2
# Pixels of the longer side of all images together, at least.
LEAST_SIDE = 240
FRAME = "#B4B4B4"


@document
class ComponentsDisplay:
    """Weights of hidden units as images: positive red, negative blue.

    Use :meth:`from_estimator` to create it.

    Parameters
    ----------
    images : ndarray of shape (n_images, height, width)
        Weights of the units that are shown.
    n_components : int
        Number of units of the model.

    Attributes
    ----------
    {{figure}}
    axes_ : ndarray of matplotlib Axes, shape (1, 1)
        The one panel, which holds all images.

    See Also
    --------
    FeatureWeightsDisplay : Weights of named features as a table of colours.
    SamplesDisplay : Samples of a model as images.
    GrowthDisplay : Likelihoods and gains over the number of units.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skbayesnn import ContrastiveDivergenceRBM
    >>> from skbayesnn.displays import ComponentsDisplay
    >>> X = load_digits().data > 7
    >>> rbm = ContrastiveDivergenceRBM(12, max_iter=5, random_state=0).fit(X)
    >>> ComponentsDisplay.from_estimator(rbm).images.shape
    (12, 8, 8)
    """

    def __init__(self, images, n_components):
        self.images = images
        self.n_components = n_components

    @classmethod
    @document
    def from_estimator(cls, estimator, *, image_shape=None, n=64, ax=None, **kwargs):
        """Plot the weights of the first hidden units of a fitted model.

        Parameters
        ----------
        estimator : fitted estimator with components_, or Pipeline that ends in one
            A restricted Boltzmann machine. `FrankWolfeRBM` keeps its units in the
            order in which they were added.
        {{image_shape}}
        n : int, default=64
            Number of units to show; all of them if there are fewer.
        {{draw}}

        Returns
        -------
        display : ComponentsDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator has no ``components_``, the features do not make an image
            of this shape, or ``n`` is not a positive integer.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        _, weights = components_of(estimator, cls.__name__)
        shape = _check_image_shape(image_shape, weights.shape[1])
        images = weights[: check_count(n, "n", 1)].reshape(-1, *shape)
        return cls(images, len(weights)).plot(ax, **kwargs)

    @document
    def plot(self, ax=None, *, scale="each"):
        """Draw the images side by side, row by row.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        scale : {"each", "shared"}, default="each"
            Whether the colours of each image are relative to the largest magnitude in
            it, which shows the patterns of units with small weights, too, or all have
            the same scale, which shows which units have large weights.

        Returns
        -------
        self : ComponentsDisplay
            The display.

        Raises
        ------
        ValueError
            If ``scale`` is unknown, or the number of axes is wrong.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{type(self).__name__}.plot")
        if scale not in ("each", "shared"):
            raise ValueError(f"scale must be 'each' or 'shared'; got {scale!r}.")
        images, largest = self.images, np.abs(self.images).max(initial=0.0)
        label = "weight"
        if scale == "each":
            magnitude = np.abs(images).max(axis=(1, 2), keepdims=True)
            # an idle unit has zero weights
            images = images / np.where(magnitude > 0.0, magnitude, 1.0)
            largest, label = 1.0, "weight / largest magnitude of the unit"
        limit = largest if largest > 0.0 else 1.0
        self.figure_, self.axes_, drawn = _draw_images(ax, images, "RdBu_r", limit)
        self.ax_ = self.axes_[0, 0]
        add_color_bar(drawn, self.ax_, label)
        self.ax_.set_title(self._title(), fontsize=11)
        return self

    def _title(self):
        shown, total = len(self.images), self.n_components
        if shown < total:
            return f"Weights of the first {shown} of {total} hidden units"
        return f"Weights of {total} hidden unit{'s'[: total != 1]}"


@document
class SamplesDisplay:
    """Samples of a model as images: 1 is black, 0 is white.

    Use :meth:`from_estimator` to create it.

    Parameters
    ----------
    images : ndarray of shape (n_images, height, width)
        The samples, of values between 0 and 1.

    Attributes
    ----------
    {{figure}}
    axes_ : ndarray of matplotlib Axes, shape (1, 1)
        The one panel, which holds all images.

    See Also
    --------
    ComponentsDisplay : Weights of a model as images.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skbayesnn import ContrastiveDivergenceRBM
    >>> from skbayesnn.displays import SamplesDisplay
    >>> X = load_digits().data > 7
    >>> rbm = ContrastiveDivergenceRBM(12, max_iter=5, random_state=0).fit(X)
    >>> SamplesDisplay.from_estimator(rbm, n=10, random_state=0).images.shape
    (10, 8, 8)
    """

    def __init__(self, images):
        self.images = images

    @classmethod
    @document
    def from_estimator(
        cls,
        estimator,
        *,
        image_shape=None,
        n=25,
        n_steps=1000,
        random_state=None,
        ax=None,
        **kwargs,
    ):
        """Draw samples from a fitted model, and plot them.

        Parameters
        ----------
        estimator : fitted RBM of this package, or Pipeline that ends in one
            A model with the method ``sample``.
        {{image_shape}}
        n : int, default=25
            Number of samples.
        n_steps : int, default=1000
            Steps of the Markov chain of each sample.
        random_state : int, RandomState instance or None, default=None
            Source of random numbers.
        {{draw}}

        Returns
        -------
        display : SamplesDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator has no method ``sample``, the features do not make an
            image of this shape, or ``n`` or ``n_steps`` is not a positive integer.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        model = final_model(estimator)
        if not hasattr(model, "sample"):
            raise ValueError(
                f"{type(model).__name__} has no method sample: SamplesDisplay draws "
                "samples of the restricted Boltzmann machines of this package."
            )
        shape = _check_image_shape(image_shape, model.n_features_in_)
        n = check_count(n, "n", 1)
        samples = model.sample(n, n_steps=n_steps, random_state=random_state)
        return cls(np.reshape(samples, (n, *shape))).plot(ax, **kwargs)

    @document
    def plot(self, ax=None):
        """Draw the images side by side, row by row.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        self : SamplesDisplay
            The display.

        Raises
        ------
        ValueError
            If the number of axes is wrong.
        {{no_matplotlib}}
        """
        check_matplotlib(f"{type(self).__name__}.plot")
        self.figure_, self.axes_, _ = _draw_images(ax, self.images, "gray_r", None)
        self.ax_ = self.axes_[0, 0]
        n = len(self.images)
        title = f"{n} sample{'s'[: n != 1]} of the model (black: 1, white: 0)"
        self.ax_.set_title(title, fontsize=11)
        return self


def _check_image_shape(image_shape, n_features):
    """Height and width of an image of so many features."""
    if image_shape is None:
        side = isqrt(n_features)
        if side * side == n_features:
            return side, side
        raise ValueError(
            f"{n_features} features do not make a square image: pass "
            f"image_shape=(height, width) with height * width = {n_features}. Features "
            "that are no pixels are drawn by FeatureWeightsDisplay."
        )
    shape = tuple(image_shape) if np.iterable(image_shape) else (image_shape,)
    is_pair = len(shape) == 2 and all(isinstance(k, Integral) and k > 0 for k in shape)
    if not is_pair or prod(shape) != n_features:
        raise ValueError(
            "image_shape must be None or (height, width) with height * width = "
            f"{n_features}, the number of features; got {image_shape!r}."
        )
    return shape


def _draw_images(ax, images, colors, limit):
    """Draw images in one panel, from 0 to 1 or, given a limit, from -limit to limit.

    Returns the figure, its axes and what was drawn.
    """
    from matplotlib import colormaps

    highest = 1.0 if limit is None else limit
    canvas = _tile(np.asarray(images, dtype=np.float64), 2.0 * highest)
    height, width = canvas.shape
    size = (SIDE * min(1.0, width / height) + 0.6, SIDE * min(1.0, height / width))
    figure, axes = make_panels(ax, 1, 1, (max(size[0], 3.4), size[1] + 0.5))
    panel = axes[0, 0]
    drawn = panel.imshow(
        canvas,
        cmap=colormaps[colors].with_extremes(over=FRAME, bad="none"),
        vmin=0.0 if limit is None else -limit,
        vmax=highest,
        interpolation="auto",
        interpolation_stage="rgba",  # no colour that is between frame and pixels
    )
    panel.set_xticks([])
    panel.set_yticks([])
    panel.spines[:].set_visible(False)
    return figure, axes, drawn


def _tile(images, frame):
    """Images side by side in rows about as long as their number.

    The value ``frame`` surrounds each image; places without one are NaN. Few
    pixels are enlarged, so that the frame, one pixel wide, is thin.
    """
    n, height, width = images.shape
    n_columns = min(n, max(1, round(np.sqrt(n * height / width))))
    n_rows = -(-n // n_columns)
    zoom = -(-LEAST_SIDE // max(n_rows * height, n_columns * width))
    images = images.repeat(zoom, axis=1).repeat(zoom, axis=2)
    height, width = images.shape[1:]
    down, right = height + 1, width + 1
    canvas = np.full((n_rows * down + 1, n_columns * right + 1), np.nan)
    for k, image in enumerate(images):
        row, column = divmod(k, n_columns)
        top, left = row * down, column * right
        canvas[top : top + down + 1, left : left + right + 1] = frame
        canvas[top + 1 : top + down, left + 1 : left + right] = image
    return canvas
