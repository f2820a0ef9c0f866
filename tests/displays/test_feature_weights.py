"""FeatureWeightsDisplay: which weights it shows, in which order, with which names."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from rbm_estimators import bernoulli_rbm
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn.displays import FeatureWeightsDisplay

plt = pytest.importorskip("matplotlib.pyplot")

# four units of five features; unit 2 is idle
WEIGHTS = np.array(
    [
        [0.1, -3.0, 0.0, 0.2, 0.0],
        [2.0, 0.0, 0.3, -4.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.5, 1.5, 0.0, 0.1],
    ]
)


@pytest.fixture
def rbm():
    model = bernoulli_rbm(n_units=4, n_features=5)
    model.components_ = WEIGHTS.copy()
    return model


def rows_of(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def test_features_stand_by_their_units(rbm):
    display = FeatureWeightsDisplay.from_estimator(rbm)
    assert rows_of(display) == ["x1", "x3", "x0", "x2", "x4"]
    assert_array_equal(display.units, [0, 1, 2, 3])
    assert_array_equal(display.weights, WEIGHTS.T[[1, 3, 0, 2, 4]])
    (drawn,) = display.ax_.get_images()
    assert_array_equal(drawn.get_array(), display.weights)
    assert drawn.get_clim() == (-4.0, 4.0)
    assert display.ax_.get_xlabel() == "hidden unit"


def test_the_strongest_are_shown(rbm):
    display = FeatureWeightsDisplay.from_estimator(rbm, n=2, n_features=3)
    assert_array_equal(display.units, [0, 1])
    # x2 and x4 belong to unit 3, which is not shown
    assert rows_of(display) == ["x1", "x3", "x0"]
    columns = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert columns == ["0", "1"]
    last = FeatureWeightsDisplay.from_estimator(rbm, n=3)
    assert_array_equal(last.units, [0, 1, 3])


def test_names(rbm):
    names = ["a", "b", "c", "d", "e"]
    given = FeatureWeightsDisplay.from_estimator(rbm, feature_names=np.array(names))
    assert rows_of(given) == ["b", "d", "a", "c", "e"]
    frame = pd.DataFrame(np.eye(4)[:, [0, 1, 2]], columns=["tea", "milk", "sugar"])
    fitted = ContrastiveDivergenceRBM(2, max_iter=1, random_state=0).fit(frame)
    of_frame = FeatureWeightsDisplay.from_estimator(fitted)
    assert set(rows_of(of_frame)) == {"tea", "milk", "sugar"}
    with pytest.raises(ValueError, match="each of the 5 features; got 2"):
        FeatureWeightsDisplay.from_estimator(rbm, feature_names=["a", "b"])


def test_many_features_have_some_names():
    weights = np.ones((200, 3))
    names = [f"word{k}" for k in range(200)]
    display = FeatureWeightsDisplay(weights, names, np.arange(3)).plot()
    assert rows_of(display) == names[::3]
    assert_array_equal(display.ax_.get_yticks(), np.arange(0, 200, 3))


def test_idle_units(rbm):
    rbm.components_[:] = 0.0
    (drawn,) = FeatureWeightsDisplay.from_estimator(rbm).ax_.get_images()
    assert drawn.get_clim() == (-1.0, 1.0)


def test_pipelines_and_other_estimators(rbm):
    pipeline = make_pipeline(FunctionTransformer(), rbm)
    assert FeatureWeightsDisplay.from_estimator(pipeline, n=1).weights.shape == (5, 1)
    linear = LinearRegression().fit(np.eye(4), np.arange(4.0))
    with pytest.raises(ValueError, match="LinearRegression has no components_"):
        FeatureWeightsDisplay.from_estimator(linear)


@pytest.mark.parametrize("number", ["n", "n_features"])
@pytest.mark.parametrize("value", [0, -1, 2.0, None])
def test_numbers_are_checked(rbm, number, value):
    with pytest.raises(ValueError, match=f"{number} must be an integer of at least 1"):
        FeatureWeightsDisplay.from_estimator(rbm, **{number: value})
