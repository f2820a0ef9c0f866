"""The number of lags of a model that was given none."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.sparse_bayes.learning.lag_choice import (
    CANDIDATES,
    EQUAL,
    N_STRETCHES,
    choose_lag,
)
from skbayesnn.sparse_bayes.learning.lagged_problem import windows
from skbayesnn.sparse_bayes.learning.session_parts import stretches
from skbayesnn.sparse_bayes.records.lags import (
    complete_rows,
    lags_behind,
    make_lags,
)
from skbayesnn.sparse_bayes.records.layout import Record


def autoregression(order, n_rows, seed=0, noise=0.1):
    """y(t) depends on u(t-1) and on y(t-1), y(t-order)."""
    rng = np.random.default_rng(seed)
    u = rng.standard_normal((n_rows, 1))
    y = np.zeros((n_rows, 1))
    for t in range(order, n_rows):
        y[t] = 0.5 * y[t - 1] - 0.4 * y[t - order] + u[t - 1]
        y[t] += noise * rng.standard_normal()
    return u, y


def records_of(U, Y, starts=None, difference=False):
    starts = np.array([0, len(Y)]) if starts is None else starts

    names = [f"x{k}" for k in range(U.shape[1])], [f"y{k}" for k in range(Y.shape[1])]

    def make_record(n, times=()):
        inputs = lags_behind(times, n, True, names[0]) if times else n
        signals = U.shape[1], Y.shape[1]
        lags = make_lags(*signals, inputs, n, True, names, difference)
        return Record(U, Y, lags, starts)

    return make_record


@pytest.mark.parametrize("order", [2, 5, 14])
def test_order_of_an_autoregression(order):
    assert choose_lag(records_of(*autoregression(order, 1000)))[0] == order


def test_scales_and_offsets_do_not_matter():
    u, y = autoregression(3, 300)
    assert choose_lag(records_of(1e6 * u + 1e9, 1e-6 * y - 3.0))[0] == 3


def test_errors_are_those_of_fits_without_a_stretch():
    # against plain least squares, stretch by stretch, on the same rows
    u, y = autoregression(7, 200, noise=1.0)
    starts = np.array([0, 120, 200])
    make_record = records_of(u, y, starts)
    candidates = [n for n in CANDIDATES if 2 * (n + 1) + 1 <= 50 and 2 * n < 80]
    rows = complete_rows(*make_record(candidates[-1]))
    stretch = stretches(starts, N_STRETCHES)
    errors = []
    for n in candidates:
        Z, target = windows(make_record(n))
        Z = np.column_stack([np.ones(len(Z)), Z])
        common = np.isin(complete_rows(*make_record(n)), rows)
        Z, target = Z[common], target[common]
        folds = []
        for k in range(N_STRETCHES):
            out = stretch[rows] == k
            weights = np.linalg.lstsq(Z[~out], target[~out])[0]
            folds.append(np.sqrt(np.mean((target[out] - Z[out] @ weights) ** 2)))
        errors.append(np.exp(np.mean(np.log(folds))))
    expected = next(
        n
        for n, error in zip(candidates, errors, strict=True)
        if error <= EQUAL * min(errors)
    )
    assert choose_lag(make_record) == (expected, ())


def test_missing_values_and_short_sessions():
    u, y = autoregression(5, 400)
    y[::40] = np.nan
    assert choose_lag(records_of(u, y))[0] == 5
    # sessions of 16 rows do not hold two windows of more than 7 lags
    starts = np.arange(0, 401, 16)
    assert choose_lag(records_of(u, y, starts))[0] == 5
    assert choose_lag(records_of(u[:9], y[:9]))[0] == 1
    assert choose_lag(records_of(u, np.full_like(y, 2.0)))[0] == 1


def test_noise_free_line_needs_no_more_lags_than_it_has():
    u, y = autoregression(3, 300, noise=0.0)
    assert choose_lag(records_of(u, y))[0] == 3


def test_dead_times_are_taken_where_they_err_less():
    u, y = autoregression(2, 440)
    # behind a wrong dead time, the first lags are missing
    assert choose_lag(records_of(u, y), (10,)) == (2, ())
    # y(t) depends on the input at t - 41
    late = records_of(u[40:], y[:-40])
    assert choose_lag(late, (40,)) == (2, (40,))
    assert choose_lag(late)[1] == ()


def learn(u, y, *lags, **options):
    options = {"hidden_layer_sizes": (), "random_state": 0, **options}
    return SparseBayesNARXRegressor(*lags, **options).fit(u, y[:, 0])


def test_estimator_has_the_lags_of_the_choice():
    u, y = autoregression(5, 400)
    model = learn(u, y)
    assert model.input_lags_ == {"x0": [0, 1, 2, 3, 4, 5]}
    assert model.output_lags_ == {"y": [1, 2, 3, 4, 5]}
    assert model.max_lag_ == 5 and model.input_lags == "auto"
    again = learn(u, y, model.input_lags_, model.output_lags_)
    assert_array_equal(again.predict(u, y[:, 0]), model.predict(u, y[:, 0]))


@pytest.mark.parametrize("at_once", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_lags_begin_behind_a_dead_time(at_once):
    u, y = autoregression(2, 440)
    other = np.random.default_rng(1).standard_normal((400, 1))
    u, y = np.hstack([u[40:], other]), y[:-40] + np.roll(other, 1, axis=0)
    model = learn(u, y, include_current_input=at_once)
    late, soon = model.input_lags_.values()
    n_lags = len(model.output_lags_["y"])
    assert late == list(range(late[0], late[0] + n_lags + at_once))
    assert 40 - n_lags < late[0] <= 41 <= late[-1]
    assert soon == list(range(not at_once, n_lags + 1))
    # what is held out does not tell
    options = dict(selection="validation", validation_fraction=0.5)
    half = np.where(np.arange(400)[:, None] < 200, np.roll(u, -40, axis=0), u)
    assert learn(half, y, **options).max_lag_ < 30
    assert learn(u, y, [1, 2]).input_lags_["x0"] == [0, 1, 2]


@pytest.mark.parametrize("n_between", [7, 8, None])
def test_lags_of_inputs_reach_over_missing_outputs(n_between):
    """What ten rows before does had not been seen, without a word."""
    rng = np.random.default_rng(0)
    u, y = rng.standard_normal((600, 1)), np.zeros((600, 1))
    for t in range(10, 600):
        y[t] = 0.7 * y[t - 1] + u[t - 10] + 0.05 * rng.standard_normal()
    gone = rng.random(600) < 0.2
    if n_between:
        gone = np.arange(600) % n_between == 0
    model = learn(u, np.where(gone[:, None], np.nan, y))
    assert 10 in model.input_lags_["x0"]
    assert len(model.output_lags_["y"]) < 7
    free = model.predict(u, y_init=y[: model.max_lag_, 0])
    # the noise alone makes 0.07
    assert np.sqrt(np.mean((free - y[:, 0]) ** 2)) < 0.12


def test_one_of_both_is_chosen():
    u, y = autoregression(5, 400)
    model = learn(u, y, "auto", [1, 5])
    assert model.output_lags_ == {"y": [1, 5]}
    assert model.input_lags_ == {"x0": [0, 1]}
    assert learn(u, y, [1]).output_lags_ == {"y": [1, 2, 3, 4, 5]}
    assert learn(None, y).output_lags_ == {"y": [1, 2, 3, 4, 5]}


def test_lags_are_not_chosen_on_what_is_held_out():
    u, y = autoregression(2, 400)
    longer = autoregression(10, 400)
    u, y = (
        np.where(np.arange(400)[:, None] < 200, *both)
        for both in zip((u, y), longer, strict=True)
    )
    options = dict(selection="validation", validation_fraction=0.5)
    assert learn(u, y, **options).max_lag_ == 2
    assert learn(u, y).max_lag_ > 2


def test_warm_start_keeps_the_lags():
    u, y = autoregression(5, 400)
    model = learn(u, y, warm_start=True)
    short = autoregression(2, 400)
    assert learn(*short).max_lag_ == 2
    assert model.fit(short[0], short[1][:, 0]).max_lag_ == 5
    with pytest.raises(ValueError, match="warm_start=True resumes"):
        model.fit(np.hstack([u, u]), y[:, 0])
    assert model.max_lag_ == 5


def test_differences_and_several_signals():
    u, y = autoregression(3, 400)
    model = learn(u, np.cumsum(y, axis=0), output="difference")
    assert model.output_lags_ == {"y": [1, 2, 3]} and model.max_lag_ == 4
    rng = np.random.default_rng(1)
    two = np.hstack([y, rng.standard_normal((400, 1))])
    both = SparseBayesNARXRegressor(hidden_layer_sizes=()).fit(u, two)
    assert both.output_lags_ == {"y0": [1, 2, 3], "y1": [1, 2, 3]}


@pytest.mark.parametrize("measured", [slice(0, 190), slice(400, 590)])
def test_outputs_that_were_measured_for_a_short_time(measured):
    """They all are in one of the stretches that are left out in turn."""
    u, y = autoregression(5, 1000)
    short = np.full_like(y, np.nan)
    short[measured] = y[measured]
    assert choose_lag(records_of(u, short))[0] == 5
    short_inputs = np.full_like(u, np.nan)
    short_inputs[measured] = u[measured]
    assert choose_lag(records_of(short_inputs, y))[0] == 5
    assert learn(u, short).max_lag_ == 5
