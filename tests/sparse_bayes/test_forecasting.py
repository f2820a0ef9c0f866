"""Forecasts: what follows on the training record, or on another one."""

import numpy as np
import pandas as pd
import pytest
from free_run_cases import oscillator
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn import (
    SparseBayesNARXRegressor,
    SparseBayesNARXRegressorCV,
    SparseBayesStateSpaceRegressor,
)
from skbayesnn.exceptions import MissingInputWarning, SamplingWarning
from skbayesnn.sparse_bayes.records.missing_inputs import fill_missing

N, PAST = 150, 120
TIMES = pd.date_range("2024-05-01", periods=N, freq="h")


def system(n_outputs=1):
    rng = np.random.default_rng(0)
    u, x = np.cumsum(rng.uniform(-1, 1, size=(N, 1)), axis=0), np.zeros((N, n_outputs))
    gains = np.arange(1.0, n_outputs + 1)
    for t in range(1, N):
        x[t] = 0.8 * x[t - 1] + gains * np.tanh(u[t - 1])
        x[t] += 0.02 * rng.standard_normal(n_outputs)
    return u, x[:, 0] if n_outputs == 1 else x


U, Y = system()
BEFORE, BEHIND = dict(X_init=U[:PAST], y_init=Y[:PAST]), U[PAST:]
EASY = dict(hidden_layer_sizes=(), reg_lambda=0.5)


@pytest.fixture(scope="module")
def model():
    return SparseBayesNARXRegressor(2, 2, **EASY).fit(U[:PAST], Y[:PAST])


def test_a_forecast_is_the_free_run_behind_the_record(model):
    ahead = model.forecast(X_future=BEHIND)
    mean, std = model.predict(BEHIND, **BEFORE, return_std=True)
    assert_allclose(ahead.y_pred, mean, rtol=1e-12)
    assert_allclose(ahead.y_std, std, rtol=1e-12)
    assert ahead.time is None and ahead.paths.shape == (N - PAST, 0)
    assert_allclose(ahead.upper - mean, 1.959964 * std, rtol=1e-6)
    assert_allclose(mean - ahead.lower, 1.959964 * std, rtol=1e-6)
    assert np.mean((ahead.lower <= Y[PAST:]) & (Y[PAST:] <= ahead.upper)) > 0.8
    narrow = model.forecast(X_future=BEHIND, coverage=0.6827)
    assert_allclose(narrow.upper - narrow.y_pred, std, rtol=1e-4)


def test_paths_are_draws(model):
    ahead = model.forecast(N - PAST, BEHIND, n_paths=400, random_state=3)
    window = dict(X_init=U[PAST - 2 : PAST], y_init=Y[PAST - 2 : PAST])
    draws = model.sample_y(BEHIND, **window, n_samples=400, random_state=3)
    assert_allclose(ahead.paths, draws, rtol=1e-12)
    # their spread is that of the band: a relative error of 1 / sqrt(2 * 400), 4 times
    assert_allclose(ahead.paths.std(axis=1), ahead.y_std, rtol=4 / np.sqrt(800))


def test_another_record_is_followed(model):
    early = model.forecast(X_future=U[60:], X_past=U[:60], y_past=Y[:60])
    expected = model.predict(U[60:], X_init=U[:60], y_init=Y[:60])
    assert_allclose(early.y_pred, expected, rtol=1e-12)
    # the window is enough
    again = model.forecast(X_future=U[60:], X_past=U[58:60], y_past=Y[58:60])
    assert_array_equal(again.y_pred, early.y_pred)


def test_outputs_that_no_lag_reads_may_be_missing():
    """At the end of the record, where inputs act later than outputs."""
    model = SparseBayesNARXRegressor(6, 2, **EASY).fit(U[:PAST], Y[:PAST])
    holes = Y[:PAST].copy()
    holes[[-6, -4]] = np.nan
    ahead = model.forecast(X_future=BEHIND, X_past=U[:PAST], y_past=holes)
    assert_array_equal(ahead.y_pred, model.forecast(X_future=BEHIND).y_pred)
    # from a record that was fitted, too
    holey = SparseBayesNARXRegressor(6, 2, **EASY).fit(U[:PAST], holes)
    window = dict(X_init=U[PAST - 6 : PAST], y_init=holes[-6:])
    expected = holey.predict(BEHIND, **window)
    assert_array_equal(holey.forecast(X_future=BEHIND).y_pred, expected)


def test_a_gap_at_the_end_of_the_record_is_bridged(model):
    y = Y.copy()
    y[PAST - 3 : PAST] = np.nan
    gap = SparseBayesNARXRegressor(2, 2, **EASY).fit(U[:PAST], y[:PAST])
    ahead = gap.forecast(X_future=BEHIND)
    run = gap.predict(U[PAST - 3 :], X_init=U[: PAST - 3], y_init=Y[: PAST - 3])
    assert_allclose(ahead.y_pred, run[3:], rtol=1e-12)
    given = gap.forecast(X_future=BEHIND, X_past=U[:PAST], y_past=y[:PAST])
    assert_array_equal(given.y_pred, ahead.y_pred)
    # a missing input ends it, or is filled
    u = U[:PAST].copy()
    u[PAST - 2] = np.nan
    with pytest.warns(MissingInputWarning, match="x0 is missing before the first row"):
        lost = gap.forecast(X_future=BEHIND, X_past=u, y_past=y[:PAST])
    assert np.isnan(lost.y_pred).all()
    held = gap.forecast(
        X_future=BEHIND, X_past=u, y_past=y[:PAST], fill_inputs="interpolate"
    )
    assert np.isfinite(held.y_pred).all()


@pytest.fixture(scope="module")
def of_states():
    settings = dict(n_restarts=1, max_cycles=20, random_state=0)
    model = SparseBayesStateSpaceRegressor(1, hidden_layer_sizes=(), **settings)
    return model.fit(U[:PAST], Y[:PAST])


@pytest.mark.parametrize(
    "noise, disturbance",
    [
        pytest.param(0.1, 0.0, marks=pytest.mark.slow),
        pytest.param(0.0, 0.05, marks=pytest.mark.slow),
        (0.1, 0.05),
    ],
)
@pytest.mark.parametrize("kind", ["lags", "states"])
def test_bands_are_those_of_as_many_steps_ahead(kind, noise, disturbance):
    """The last rows of the record tell much of the next ones, and have errors."""
    (u, y), known = oscillator(1000, noise, disturbance), 900
    settings = dict(hidden_layer_sizes=(), random_state=0)
    model = SparseBayesNARXRegressor(2, 2, focus="simulation", **settings)
    if kind == "states":
        model = SparseBayesStateSpaceRegressor(2, n_restarts=1, **settings)
    model.fit(u[:600], y[:600])
    future, past = u[known : known + 20], dict(X_past=u[:known], y_past=y[:known])
    ahead = model.forecast(X_future=future, n_paths=2000, **past)
    for steps in (1, 2, 3, 5, 20):
        row = known + steps - 1
        mean, std = model.predict(u, y, horizon=steps, return_std=True)
        assert_allclose(ahead.y_pred[steps - 1], mean[row], rtol=1e-9)
        assert_allclose(ahead.y_std[steps - 1], std[row], rtol=1e-6)
    # no factor of bands makes them narrower than noise, where that is nearly all
    bands = model._model.bands
    model._model = model._model._replace(bands=bands._replace(factor=np.full(1, 0.5)))
    narrow = model.forecast(X_future=future, **past)
    assert_allclose(narrow.y_std, ahead.y_std, rtol=0.2)
    # five standard errors
    assert_allclose(ahead.paths.std(axis=1), ahead.y_std, rtol=5 / np.sqrt(4000))


@pytest.mark.parametrize("fill_inputs", ["hold", "interpolate"])
@pytest.mark.parametrize(
    "n_behind",
    [
        pytest.param(1, marks=pytest.mark.slow),
        2,
        pytest.param(5, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", ["model", "of_states"])
def test_inputs_of_the_past_are_filled(name, n_behind, fill_inputs, request):
    """So many rows before the end: all outputs count, as in predict."""
    model, u = request.getfixturevalue(name), U[:PAST].copy()
    u[PAST - n_behind] = np.nan
    known = dict(fill_inputs=fill_inputs)
    ahead = model.forecast(X_future=BEHIND, X_past=u, y_past=Y[:PAST], **known)
    known |= dict(X_init=u, y_init=Y[:PAST], return_std=True)
    mean, std = model.predict(BEHIND, **known)
    assert_allclose(ahead.y_pred, mean, rtol=1e-12)
    whole = fill_missing(np.concatenate([u, BEHIND]), np.array([0, N]), fill_inputs)
    filled = model.forecast(X_future=BEHIND, X_past=whole[:PAST], y_past=Y[:PAST])
    assert_allclose(ahead.y_std, filled.y_std, rtol=1e-12)
    # and where the training record has the hole
    again = model.__class__(**model.get_params()).fit(u, Y[:PAST])
    ahead = again.forecast(X_future=BEHIND, fill_inputs=fill_inputs)
    mean, std = again.predict(BEHIND, **known)
    assert_allclose(ahead.y_pred, mean, rtol=1e-12)


def test_inputs_that_were_never_complete_can_be_filled(model):
    """No window is complete before: the inputs are measured in turns."""
    u = np.column_stack([U[:, 0], U[:, 0]])
    both = SparseBayesNARXRegressor(2, 2, **EASY).fit(u, Y)
    u[::2, 0], u[1::2, 1] = np.nan, np.nan
    past, known = dict(X_past=u[:PAST], y_past=Y[:PAST]), dict(fill_inputs="hold")
    future = np.column_stack([BEHIND, BEHIND])
    ahead = both.forecast(X_future=future, **past, **known)
    rows = dict(X_init=u[:PAST], y_init=Y[:PAST])
    assert_allclose(ahead.y_pred, both.predict(future, **rows, **known), rtol=1e-12)
    with pytest.raises(ValueError, match="or fill_inputs if only inputs are missing"):
        both.forecast(X_future=future, **past)


def test_a_missing_input_before_the_run_makes_hidden_states_forget(of_states):
    u, y = U.copy(), Y[:PAST]
    u[PAST - 3] = np.nan
    past = dict(X_init=u[:PAST], y_init=y)
    calls = {
        "predict": lambda: of_states.predict(u, y_init=y),
        "before": lambda: of_states.predict(BEHIND, **past),
        "sample_y": lambda: of_states.sample_y(BEHIND, **past, n_samples=2),
        "stream": lambda: of_states.stream(**past),
        "forecast": lambda: of_states.forecast(
            X_future=BEHIND, X_past=u[:PAST], y_past=y
        ),
    }
    for call in calls.values():
        with pytest.warns(MissingInputWarning, match="row 117 of the 120 rows") as told:
            call()
        assert "2 rows tell them, and max_lag_=4 should" in str(told[0].message)
    # enough rows tell them
    u[PAST - 3], u[PAST - 5] = U[PAST - 3], np.nan
    for call in calls.values():
        call()


def test_the_last_session_is_followed():
    sessions = np.repeat([0, 1], [80, PAST - 80])
    model = SparseBayesNARXRegressor(2, 2, **EASY)
    model.fit(U[:PAST], Y[:PAST], sessions=sessions)
    expected = model.predict(BEHIND, **BEFORE)
    assert_allclose(model.forecast(X_future=BEHIND).y_pred, expected, rtol=1e-12)


def test_an_autoregression_needs_a_number():
    y = np.sin(0.3 * np.arange(80.0))
    model = SparseBayesNARXRegressor(0, 2, **EASY).fit(None, y)
    ahead = model.forecast(20, n_paths=3)
    assert ahead.paths.shape == (20, 3)
    assert_allclose(ahead.y_pred, np.sin(0.3 * np.arange(80, 100)), atol=0.05)
    with pytest.raises(ValueError, match="Pass n_steps, or X_future"):
        model.forecast()
    with pytest.raises(ValueError, match="n_steps must be an integer of at least 1"):
        model.forecast(0)


def test_a_searched_ensemble_forecasts():
    model = SparseBayesNARXRegressorCV(
        (1, 2), (3.0,), cv=2, n_estimators=2, hidden_layer_sizes=2, max_cycles=5
    ).fit(U[:PAST], Y[:PAST])
    assert len(model.estimators_) == 2
    ahead = model.forecast(X_future=BEHIND, n_paths=5)
    assert_allclose(ahead.y_pred, model.predict(BEHIND, **BEFORE), rtol=1e-12)
    assert ahead.paths.shape == (N - PAST, 5)


def test_several_outputs_as_frames_over_time():
    u, y = system(2)
    X = pd.DataFrame(u, columns=["pump"], index=TIMES)
    levels = pd.DataFrame(y, columns=["a", "b"], index=TIMES)
    model = SparseBayesNARXRegressor(1, 1, **EASY).fit(X[:PAST], levels[:PAST])
    told = model.forecast(X_future=X[PAST:], n_paths=2)
    assert told.y_pred.shape == (N - PAST, 2)
    assert told.paths.shape == (N - PAST, 2, 2)
    assert_array_equal(told.time, TIMES[PAST:])
    frames = model.set_output(predict="pandas").forecast(X_future=X[PAST:])
    for name in ("y_pred", "y_std", "lower", "upper"):
        assert frames[name].index.equals(TIMES[PAST:])
        assert list(frames[name].columns) == ["a", "b"]
    # times go on where the future has none
    later = model.forecast(X_future=X[PAST:].reset_index(drop=True))
    assert later.y_pred.index.equals(TIMES[PAST:])
    polars = model.set_output(predict="polars").forecast(X_future=X[PAST:])
    assert_array_equal(polars.lower["time"].to_numpy(), TIMES[PAST:])


def test_times_must_follow_on_the_record():
    X = pd.DataFrame(U, columns=["pump"], index=TIMES)
    model = SparseBayesNARXRegressor(1, 1, **EASY).fit(X[:PAST], Y[:PAST])
    with pytest.raises(ValueError, match="must follow on the record, which ends at"):
        model.forecast(X_future=X[PAST - 1 :])
    with pytest.warns(SamplingWarning, match="begin 36000 s later.*without a gap"):
        model.forecast(X_future=X[PAST + 9 :])
    with pytest.warns(SamplingWarning) as told:
        model.forecast(X_future=X[PAST + 1 :: 2])
    assert "7200 s apart" in str(told[0].message)
    assert "7200 s later" in str(told[1].message)


def test_what_a_forecast_needs(model):
    for arguments, problem in (
        (dict(n_steps=3), "X_future must hold the 1 inputs"),
        (dict(n_steps=3, X_future=BEHIND), "n_steps=3 rows; got 30"),
        (dict(X_future=BEHIND, X_past=U), "X_past needs y_past"),
        (dict(X_future=BEHIND, y_past=Y), "X_past must hold the 1 inputs"),
        (
            dict(X_future=BEHIND, X_past=U[:1], y_past=Y[:1]),
            "no max_lag_=2 rows in turn with all",
        ),
        (dict(X_future=BEHIND, X_past=U, y_past=Y[:-1]), "inconsistent numbers"),
        (dict(X_future=BEHIND, coverage=1.0), "coverage must be a number between 0"),
        (dict(X_future=BEHIND, coverage="a"), "coverage must be .* got 'a'"),
        (dict(X_future=BEHIND, n_paths=-1), "n_paths must be an integer of at least 0"),
        (dict(X_future=BEHIND, fill_inputs="mean"), "fill_inputs must be None"),
    ):
        with pytest.raises(ValueError, match=problem):
            model.forecast(**arguments)
