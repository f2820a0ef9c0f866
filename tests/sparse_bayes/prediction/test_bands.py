"""Bands of free runs: their factor, and what lies outside the training record."""

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter

from skbayesnn import DynamicSystemRegressor, SparseBayesNARXRegressor
from skbayesnn.exceptions import ExtrapolationWarning
from skbayesnn.sparse_bayes.prediction.bands import (
    bands_of,
    excess,
    gaps_of,
    widen,
)
from skbayesnn.sparse_bayes.prediction.bands import with_factor as std_with_factor
from skbayesnn.sparse_bayes.prediction.forecast import Forecast
from skbayesnn.sparse_bayes.records.layout import Record


def record(n=200, seed=0):
    """Two inputs in [-1, 1], and a stable output."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(-1.0, 1.0, (n, 2))
    u[:2] = [[-1.0, -1.0], [1.0, 1.0]]
    y = np.zeros(n)
    for t in range(1, n):
        y[t] = 0.6 * y[t - 1] + u[t - 1, 0] - 0.3 * u[t - 1, 1] ** 2
    return u, y + 0.05 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def fitted():
    u, y = record()
    model = SparseBayesNARXRegressor(2, 2, hidden_layer_sizes=(3,), random_state=0)
    return model.set_params(focus="simulation", max_cycles=200).fit(u, y)


def with_factor(model, factor):
    """A copy whose bands have a factor."""
    lagged = model._model
    bands = lagged.bands._replace(factor=np.array([factor]))
    copy = SparseBayesNARXRegressor(**model.get_params())
    vars(copy).update(vars(model))
    copy._model = lagged._replace(bands=bands)
    return copy


def test_a_factor_narrows_to_what_noise_and_start_ask_for():
    bands = bands_of(np.zeros((1, 0)), np.zeros((1, 2)))
    bands = bands._replace(factor=np.array([0.5, 2.0]))
    std = np.array([[5.0, 5.0], [3.0, 3.0], [0.0, 0.0]])
    least = np.array([[4.0, 4.0], [1.0, 1.0], [0.0, 0.0]])
    run = Forecast(np.zeros((3, 2)), std, 0, least)
    data = Record(np.zeros((3, 0)), None, None, np.array([0, 3]))
    found = std_with_factor(bands, run, data)
    assert_array_equal(found, [[4.0, 10.0], [1.5, 6.0], [0.0, 0.0]])


def test_no_factor_narrows_a_run_that_was_out_of_range():
    """In this row and all later ones of its session, if by more than a tenth."""
    bands = bands_of(np.array([[-1.0], [1.0]]), np.array([[0.0, 0.0], [10.0, 10.0]]))
    bands = bands._replace(factor=np.array([0.5, 2.0]))
    U, mean, std = np.zeros((14, 1)), np.full((14, 2), 5.0), np.ones((14, 2))
    U[[0, 3, 5, 8], 0] = 2.0, 1.15, -1.3, 1.1
    # what was measured in the first row says where the run begins
    std[0] = 0.0
    data = Record(U, None, None, np.array([0, 7, 14]))
    found = std_with_factor(bands, Forecast(mean, std, 0, 0.0 * std), data)
    expected = np.full(14, 0.5)
    expected[0], expected[5:7] = 0.0, 1.0
    assert_array_equal(found[:, 0], expected)
    # a factor that widens does so everywhere
    assert_array_equal(found[:, 1], 2.0 * std[:, 1])


def test_excess_is_relative_to_the_range():
    values = np.array([[0.0, 5.0], [2.0, 5.0], [2.2, 5.0], [3.0, 6.0], [-1.0, np.nan]])
    found = excess(values, np.array([0.0, 5.0]), np.array([2.0, 5.0]))
    assert_allclose(found, [[0, 0], [0, 0], [0, 0], [0.4, 1.0], [0.4, 0]], atol=1e-12)


def test_rounding_is_no_range():
    """A signal that was constant but for rounding is one that was constant."""
    values = np.array([[5.0], [5.0 + 1e-7], [5.0 - 1e-7], [5.001], [70.0]])
    expected = np.array([[0.0], [0.0], [0.0], [1.0], [1.0]])
    for width in (0.0, 1e-9):
        found = excess(values, np.array([5.0 - width]), np.array([5.0 + width]))
        assert_allclose(found, expected, atol=1e-12)
    # whatever its sign
    found = excess(-values, np.array([-5.0]), np.array([-5.0]))
    assert_allclose(found, expected, atol=1e-12)


def test_bands_widen_where_the_window_leaves_the_range():
    U = np.zeros((12, 1))
    U[3] = 2.0
    bands = bands_of(np.array([[-1.0], [1.0]]), np.array([[0.0], [10.0]]))
    mean, std = np.full((12, 1), 5.0), np.ones((12, 1))
    std[0] = 0.0
    mean[10] = 13.0
    data = Record(U, None, None, np.array([0, 6, 12]))
    for is_free_run in (True, False):
        wide = widen(
            bands, Forecast(mean, std, 0, std), data, 4, is_free_run, np.array([2.0])
        )[:, 0]
        # 0.4 of the range beyond the tolerance, in its row and the next ones
        by_input = np.sqrt(1.0 + (0.4 * 2.0) ** 2)
        assert_allclose(wide[3:6], by_input)
        assert_array_equal(wide[:3], [0.0, 1.0, 1.0])
        # not beyond the session
        assert_array_equal(wide[6:10], 1.0)
        # a run that was out of range is uncertain afterwards
        assert_allclose(wide[10:], np.sqrt(1.0 + 2.0**2) if is_free_run else 1.0)


def test_near_the_range_the_curvature_is_unknown():
    bands = bands_of(np.array([[-1.0], [1.0]]), np.array([[0.0], [10.0]]))
    data = Record(np.zeros((8, 1)), None, None, np.array([0, 8]))
    mean = np.array([5.0, 10.0, 10.1, 10.5, 11.0, 11.2, 12.0, 20.0])[:, None]
    run = Forecast(mean, np.ones((8, 1)), 0, np.ones((8, 1)))
    wide = widen(bands, run, data, 0, True, np.array([2.0]))[:, 0]
    added = np.sqrt(wide**2 - 1.0)
    # squares of the distance over the range of 10, from 1.13 on the distance beyond 1
    expected = [0.0, 0.0, 0.1**2 / 10, 0.5**2 / 10, 0.1, 0.2, 1.0, 10.0]
    assert_allclose(added, expected, atol=1e-7)
    U = np.array([-1.0, 1.0, 1.02, 1.1, 1.2, 1.4, 3.0, 5.0])[:, None]
    inside = np.full((8, 1), 5.0)
    data = Record(U, None, None, np.array([0, 8]))
    ahead = Forecast(inside, np.ones((8, 1)), 0)
    wide = widen(bands, ahead, data, 0, False, np.array([2.0]))[:, 0]
    added = np.sqrt(wide**2 - 1.0)
    expected = [0.0, 0.0, 0.01**2, 0.05**2, 0.01, 0.1, 1.0, 4.0]
    assert_allclose(added, 2.0 * np.array(expected), atol=1e-7)


def test_gaps_are_wider_than_half_of_the_range():
    two, three = np.tile([0.0, 1.0], 20), np.tile([0.0, 0.5, 1.0, 1.0], 10)
    nearly = np.tile([0.0, 0.01, 0.4, 0.95, np.nan], 8)
    constant, rounded = np.full(40, 1013.25), 1013.25 + 1e-6 * two
    U = np.column_stack([two, three, nearly, constant, rounded])
    nothing = [np.nan, np.nan]
    expected = [[0.0, 1.0], nothing, [0.4, 0.95], nothing, nothing]
    assert_array_equal(gaps_of(U), expected)


def test_bands_widen_within_a_gap():
    """By the product of the distances from its ends, and twice the deviation of y."""
    seen = np.array([[2.0], [3.0], [6.0]])
    bands = bands_of(seen, np.array([[0.0], [10.0]]))
    bands = bands._replace(factor=np.array([0.5]), gaps=gaps_of(seen))
    U = np.array([2.5, 3.0, 3.3, 4.5, 6.0, 7.0])[:, None]
    run = Forecast(np.full((6, 1), 5.0), np.ones((6, 1)), 0, np.zeros((6, 1)))
    data = Record(U, None, None, np.array([0, 6]))
    wide = widen(bands, run, data, 0, False, np.array([2.0]))[:, 0]
    expected = np.zeros(6)
    expected[2:4] = 4.0 * (0.3 / 4) * (2.7 / 4), 4.0 * (1.5 / 4) ** 2
    expected[5] = 2.0 * 0.15
    assert_allclose(np.sqrt(wide**2 - 1.0), expected, atol=1e-7)
    # no factor narrows them any more, once an input is a tenth of the range from both
    assert_array_equal(
        std_with_factor(bands, run, data)[:, 0], [0.5, 0.5, 0.5, 1.0, 1.0, 1.0]
    )
    # files of earlier versions have none
    wide = widen(bands._replace(gaps=None), run, data, 0, False, np.array([2.0]))
    assert_array_equal(wide[:5], np.ones((5, 1)))


def switched(levels, n=400):
    """A tank that fills by the square of its input, which holds one of some levels."""
    rng = np.random.default_rng(1)
    held = np.repeat(rng.choice(levels, n // 10), 10)
    y = lfilter([0.0, 0.2], [1.0, -0.8], held**2)
    return held[:, None], y + 0.01 * rng.standard_normal(n)


def test_levels_between_those_of_the_record_are_named():
    u, y = switched([0.0, 1.0])
    between, measured = switched([0.2, 0.5, 0.8], 200)
    message = (
        "Input x0 is between 0 and 1 in 200 rows, the first of them row 0. The "
        "training record has no value between these two"
    )
    network = SparseBayesNARXRegressor(1, 1, hidden_layer_sizes=(3,), random_state=0)
    network.fit(u, y)
    network.predict(u)
    with pytest.warns(ExtrapolationWarning, match=re.escape(message)):
        mean, std = network.predict(between, y_init=measured[:5], return_std=True)
    wrong = np.abs(mean - measured)[5:]
    assert np.median(wrong) > 0.1
    assert (wrong < 1.96 * std[5:]).mean() > 0.9
    # who asks for a linear model says that there is nothing between
    network.set_params(hidden_layer_sizes=()).fit(u, y).predict(between)


@pytest.mark.parametrize(
    "kinds", [pytest.param(("linear", "network"), marks=pytest.mark.slow), ("linear",)]
)
def test_a_search_that_chooses_a_linear_model_by_two_levels_says_so(kinds):
    u, y = switched([0.0, 1.0])
    between, _ = switched([0.2, 0.5, 0.8], 200)
    model = DynamicSystemRegressor(
        kinds=kinds,
        hidden_layer_sizes=(2,),
        reg_lambdas=(500,),
        lags=(1,),
        max_cycles=5,
    )
    model.set_params(random_state=0, n_estimators=1).fit(u, y)
    assert model.kinds_ == ["linear"]
    if len(kinds) == 1:
        model.predict(between)
        return
    with pytest.warns(ExtrapolationWarning, match="Input x0 is between 0 and 1"):
        model.predict(between)


def test_inputs_out_of_range_are_named(fitted):
    u, _ = record(50, seed=1)
    fitted.predict(u)
    u[[7, 9], 1] = 1.5, -3.0
    message = (
        "Input x1 is outside the range of the training record, -1 to 1, in 2 rows, the "
        "first of them row 7: found -3 to 1.5."
    )
    with pytest.warns(ExtrapolationWarning, match=re.escape(message)) as warned:
        inside, wide = fitted.predict(u, return_std=True)
    assert warned[0].filename == __file__
    assert np.isfinite(inside).all()
    with pytest.warns(ExtrapolationWarning, match="Input x1"):
        fitted.sample_y(u, n_samples=2)
    calm = u.clip(-1.0, 1.0)
    narrow = fitted.predict(calm, return_std=True)[1]
    assert (wide[7:12] > 1.05 * narrow[7:12]).all()
    assert_array_equal(wide[:7], narrow[:7])


def test_an_input_that_is_no_regressor_is_nowhere_out_of_range():
    u, y = record()
    lags = {"x0": 2, "x1": []}
    model = SparseBayesNARXRegressor(lags, 2, hidden_layer_sizes=(), random_state=0)
    model.fit(u, y)
    expected = model.predict(u, return_std=True)
    drawn = model.sample_y(u, n_samples=2, random_state=0)
    u[:, 1] *= 50.0
    assert_array_equal(model.predict(u, return_std=True), expected)
    assert_array_equal(model.sample_y(u, n_samples=2, random_state=0), drawn)


def test_a_message_has_the_digits_that_tell_values_apart():
    u, y = record()
    u[:, 1] = 1013.25
    model = SparseBayesNARXRegressor(1, 1, hidden_layer_sizes=(), random_state=0)
    with pytest.warns(UserWarning, match="Input x1 is constant"):
        model.fit(u, y)
    u[:, 1] += 0.001
    with pytest.warns(ExtrapolationWarning, match="1013.25 to 1013.25.*1013.251 to"):
        model.predict(u)


def test_runs_out_of_range_are_named():
    # inputs that change their sign in each row, and then no longer do
    rng = np.random.default_rng(0)
    u = rng.uniform(0.5, 1.0, 300) * (-1.0) ** np.arange(300)
    y = lfilter([0.0, 1.0], [1.0, -0.6], u) + 0.02 * rng.standard_normal(300)
    fitted = SparseBayesNARXRegressor(1, 1, hidden_layer_sizes=())
    fitted.fit(u[:, None], y)
    steady = np.full((20, 1), 0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        run = fitted.predict(steady)
    # as far as the mean errs: 0.1 of the range is what is still known of the slope
    out = run > y.max() + 0.1 * np.ptp(y) + y.std()
    assert 5 < out.sum() < 19
    message = (
        "The run of output y is far outside the range of the training record, "
        f"{y.min():.4g} to {y.max():.4g}, in {out.sum()} rows, the first of them row "
        f"{out.argmax()}: found {run.min():.4g} to {run.max():.4g}."
    )
    for arguments in {}, {"return_std": True}, {"return_state": True}:
        with pytest.warns(ExtrapolationWarning, match=re.escape(message)):
            fitted.predict(steady, **arguments)
    # a little further is nothing to be told of
    fitted.predict(steady[: out.argmax()])
    # steps ahead begin at measured outputs, and single draws scatter
    fitted.predict(steady, run, horizon=3)
    fitted.sample_y(steady, n_samples=1)
    steady[5] = 3.0
    with pytest.warns(ExtrapolationWarning, match="Input x0"):
        fitted.predict(steady)


def test_rows_that_were_given_are_not_judged(fitted):
    u, y = record(50, seed=1)
    before = u[:10] * 3.0
    fitted.predict(u, X_init=before, y_init=y[:10])


@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.MissingInputWarning")
def test_missing_inputs_are_not_out_of_range(fitted):
    u, _ = record(30, seed=1)
    u[20] = np.nan
    assert np.isnan(fitted.predict(u)[20:]).all()


def test_the_factor_is_that_of_free_runs(fitted):
    # smaller inputs, with which the run stays in the range of the training record
    u, y = record(80, seed=2)
    u = 0.5 * u
    wide = with_factor(fitted, 3.0)
    mean, std = fitted.predict(u, y_init=y[:2], return_std=True)
    same, three = wide.predict(u, y_init=y[:2], return_std=True)
    assert_array_equal(same, mean)
    assert_allclose(three, 3.0 * std)
    assert_array_equal(
        wide.predict(u, y, return_std=True)[1], fitted.predict(u, y, return_std=True)[1]
    )


def test_samples_are_as_wide_as_the_bands(fitted):
    u, y = record(40, seed=2)
    wide = with_factor(fitted, 3.0)
    drawn = fitted.sample_y(u, y_init=y[:2], n_samples=50)
    mean = fitted.predict(u, y_init=y[:2])[:, None]
    expected = mean + 3.0 * (drawn - mean)
    assert_allclose(wide.sample_y(u, y_init=y[:2], n_samples=50), expected, rtol=1e-12)


def test_a_run_that_leaves_the_range_is_uncertain(fitted):
    u, y = record(40, seed=2)
    far = 40.0 * np.ones(2)
    with pytest.warns(ExtrapolationWarning, match="The run of output y"):
        mean, std = fitted.predict(u, y_init=far, return_std=True)
    low, high = fitted._model.bands.low_outputs, fitted._model.bands.high_outputs
    distance = mean - high - 0.1 * (high - low)
    outside = np.flatnonzero(distance[2:] > 0) + 2
    assert len(outside)
    assert (std[outside] >= distance[outside]).all()


def test_without_inputs():
    _, y = record()
    model = SparseBayesNARXRegressor(output_lags=2, hidden_layer_sizes=()).fit(None, y)
    mean, std = model.predict(np.empty((20, 0)), y_init=y[:2], return_std=True)
    assert np.isfinite(mean).all()
    assert (std[2:] > 0).all()
