"""ComponentsDisplay and SamplesDisplay: what they take, and what they draw."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rbm_estimators import bernoulli_rbm, toy_data
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn.displays import ComponentsDisplay, SamplesDisplay

DISPLAYS = [ComponentsDisplay, SamplesDisplay]


@pytest.fixture(scope="module")
def six_features():
    return ContrastiveDivergenceRBM(3, max_iter=1, random_state=0).fit(toy_data())


def shown(display):
    """Pixels of the one picture, and which of them belong to no image."""
    (drawn,) = display.ax_.get_images()
    canvas = np.ma.filled(np.ma.asarray(drawn.get_array(), dtype=np.float64), np.nan)
    return canvas, np.isnan(canvas) | (canvas > drawn.norm.vmax)


def image_at(display, row, column, shape, n_columns):
    """One image as it is drawn, at its size in pixels of the model."""
    canvas, _ = shown(display)
    zoom = (canvas.shape[1] - 1 - n_columns) // (n_columns * shape[1])
    down, right = zoom * shape[0] + 1, zoom * shape[1] + 1
    whole = canvas[row * down + 1 :, column * right + 1 :][: down - 1, : right - 1]
    return whole[::zoom, ::zoom]


def test_components(grown):
    display = ComponentsDisplay.from_estimator(grown)
    weights = grown.components_.reshape(6, 8, 8)
    assert_array_equal(display.images, weights)
    # six images in three rows of two
    for k, weight in enumerate(weights):
        drawn = image_at(display, *divmod(k, 2), (8, 8), 2)
        assert_allclose(drawn, weight / np.abs(weight).max(), rtol=1e-6)
    assert display.ax_.get_title() == "Weights of 6 hidden units"
    bar = display.figure_.axes[1]
    assert bar.get_ylabel() == "weight / largest magnitude of the unit"
    assert bar.get_ylim() == (-1.0, 1.0)


def test_components_on_one_scale(grown):
    display = ComponentsDisplay.from_estimator(grown, scale="shared")
    largest = np.abs(grown.components_).max()
    for k, weight in enumerate(grown.components_.reshape(6, 8, 8)):
        drawn = image_at(display, *divmod(k, 2), (8, 8), 2)
        assert_allclose(drawn, weight, rtol=1e-6)
    bar = display.figure_.axes[1]
    assert bar.get_ylabel() == "weight"
    assert_allclose(bar.get_ylim(), (-largest, largest))
    with pytest.raises(ValueError, match="scale must be 'each' or 'shared'; got 'own'"):
        display.plot(scale="own")


def test_some_of_the_components(grown):
    display = ComponentsDisplay.from_estimator(grown, n=3)
    assert_array_equal(display.images, grown.components_[:3].reshape(3, 8, 8))
    assert display.ax_.get_title() == "Weights of the first 3 of 6 hidden units"
    # the fourth place, of two rows of two, is empty
    canvas, outside = shown(display)
    half = canvas.shape[0] // 2
    assert outside[half + 1 :, half + 1 :].all()
    assert np.isnan(canvas[half + 1 :, half + 1 :]).all()
    assert not outside[half + 1 : -1, 1:half].any()


@pytest.mark.parametrize("scale", ["each", "shared"])
def test_idle_unit_is_drawn(grown, scale):
    display = ComponentsDisplay(np.zeros((1, 8, 8)), 1).plot(scale=scale)
    canvas, outside = shown(display)
    assert_array_equal(canvas[~outside], 0.0)
    assert display.ax_.get_title() == "Weights of 1 hidden unit"


def test_samples(grown):
    display = SamplesDisplay.from_estimator(grown, n=6, n_steps=20, random_state=3)
    samples = grown.sample(6, n_steps=20, random_state=3).reshape(6, 8, 8)
    assert_array_equal(display.images, samples, strict=True)
    for k, sample in enumerate(samples):
        assert_array_equal(image_at(display, *divmod(k, 2), (8, 8), 2), sample)
    assert display.ax_.get_title() == "6 samples of the model (black: 1, white: 0)"
    other = SamplesDisplay.from_estimator(grown, n=6, n_steps=20, random_state=4)
    assert (other.images != samples).any()


@pytest.mark.parametrize("display", DISPLAYS)
def test_image_shape(six_features, display):
    for shape in [(2, 3), (np.int64(3), 2), [1, 6]]:
        drawn = display.from_estimator(six_features, image_shape=shape, n=2)
        assert drawn.images.shape == (2, *shape)
    message = r"6 features do not make a square.*image_shape=\(height, width\)"
    with pytest.raises(ValueError, match=message):
        display.from_estimator(six_features)
    for shape in [(2, 2), (6,), 6, (-2, -3), (2.0, 3.0), (1, 2, 3), "23"]:
        message = r"image_shape must be None or \(height, width\) .* = 6"
        with pytest.raises(ValueError, match=message):
            display.from_estimator(six_features, image_shape=shape)


@pytest.mark.parametrize("display", DISPLAYS)
def test_wide_images_stand_in_fewer_columns(display):
    images = np.ones((8, 2, 16))
    arguments = (images, 8) if display is ComponentsDisplay else (images,)
    canvas, outside = shown(display(*arguments).plot())
    height, width = canvas.shape
    # one column, as 8 x 2 is as high as 16 is wide
    assert height == (8 * 2) * ((width - 1) // 16) + 9
    assert np.count_nonzero(~outside[:, 1]) == height - 9


@pytest.mark.parametrize("display", DISPLAYS)
@pytest.mark.parametrize("n", [0, -1, 2.0, None])
def test_number_of_images_is_checked(grown, display, n):
    with pytest.raises(ValueError, match="n must be an integer of at least 1"):
        display.from_estimator(grown, n=n)


@pytest.mark.parametrize("display", DISPLAYS)
def test_images_of_a_pipeline(grown, display):
    pipeline = make_pipeline(FunctionTransformer(), grown)
    assert display.from_estimator(pipeline, n=2).images.shape == (2, 8, 8)


def test_other_estimators():
    rbm = bernoulli_rbm(n_units=4, n_features=9)
    display = ComponentsDisplay.from_estimator(rbm)
    assert_array_equal(display.images, rbm.components_.reshape(4, 3, 3))
    with pytest.raises(ValueError, match="BernoulliRBM has no method sample"):
        SamplesDisplay.from_estimator(rbm)
    linear = LinearRegression().fit(np.eye(4), np.arange(4.0))
    with pytest.raises(ValueError, match="LinearRegression has no components_"):
        ComponentsDisplay.from_estimator(linear)
