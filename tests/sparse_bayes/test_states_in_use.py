"""What a state-space regressor can do: steps ahead, streams, forecasts, frames."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import state_space_cases as cases
from fitted_models import ensemble_of, set_ensemble
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import SparseBayesNARXRegressor, SparseBayesStateSpaceRegressor
from skbayesnn.displays import ResidualAnalysisDisplay, SimulationDisplay
from skbayesnn.exceptions import (
    MissingInputWarning,
    SamplingWarning,
    ScoringWarning,
)
from skbayesnn.metrics import one_step_scorer, simulation_scorer
from skbayesnn.sparse_bayes.prediction.ensemble import Ensemble

PROCESS, MEASUREMENT = 0.3, 0.1


def linear(**options):
    options = {"hidden_layer_sizes": (), "n_restarts": 1, "reg_lambda": 1.0, **options}
    return SparseBayesStateSpaceRegressor(2, random_state=0, **options)


def noisy_record(n_rows=400, seed=0):
    """The linear system with noise in its states, too, and in its outputs."""
    rng = np.random.default_rng(seed)
    U, y, x = rng.uniform(-2.0, 2.0, (n_rows, 1)), np.empty(n_rows), np.zeros(2)
    for t, u in enumerate(U):
        noise = MEASUREMENT * rng.standard_normal()
        y[t] = (cases.C @ x + cases.D @ u)[0] + noise
        x = cases.A @ x + cases.B @ u + PROCESS * rng.standard_normal(2)
    return U, y


def best_error(n_rows=20_000):
    """Of the Kalman filter that knows system and noise."""
    U, y = noisy_record(n_rows, seed=9)
    x, P, errors = np.zeros(2), np.eye(2), []
    for u, value in zip(U, y, strict=True):
        error = value - (cases.C @ x + cases.D @ u)[0]
        gain = P @ cases.C.T / (cases.C @ P @ cases.C.T + MEASUREMENT**2)
        errors.append(error)
        x = cases.A @ (x + gain[:, 0] * error) + cases.B @ u
        P = cases.A @ (P - gain @ cases.C @ P) @ cases.A.T + PROCESS**2 * np.eye(2)
    return np.std(errors[100:])


@pytest.fixture(scope="module")
def model():
    return linear().fit(*noisy_record())


@pytest.fixture(scope="module")
def test_record():
    return noisy_record(300, seed=1)


def rms(values):
    return np.sqrt(np.mean(values**2))


@pytest.mark.slow
def test_one_step_ahead_is_nearly_as_good_as_with_the_true_system(model):
    U, y = noisy_record(2000, seed=1)
    mean, std = model.predict(U, y, return_std=True)
    error = (y - mean)[8:]
    assert rms(error) < 1.05 * best_error()
    assert rms(error) < 0.8 * rms((y - model.predict(U, y, horizon=None))[8:])
    assert 0.93 < np.mean(np.abs(error) < 1.96 * std[8:]) < 0.97
    np.testing.assert_array_equal(mean[:8], y[:8])
    # white: what a filter leaves cannot be predicted
    correlation = np.corrcoef(error[1:], error[:-1])[0, 1]
    assert abs(correlation) < 3.0 / np.sqrt(len(error))


def test_bands_grow_with_the_horizon_up_to_those_of_a_free_run(model, test_record):
    U, y = test_record
    widths = [
        model.predict(U, y, horizon=horizon, return_std=True)[1][50:].mean()
        for horizon in (1, 2, 4, 60, None)
    ]
    assert (np.diff(widths) > -1e-12).all()
    assert widths[3] == pytest.approx(widths[4], rel=0.15)


def test_without_noise_in_the_states_a_filter_is_a_free_run():
    U, y, number, _ = cases.records((300,), noise=0.1)
    model = linear().fit(U, y)
    U, y, _, _ = cases.records((100,), noise=0.1, seed=7)
    one, free = (model.predict(U, y, horizon=h)[8:] for h in (1, None))
    assert rms(one - free) < 0.05


@pytest.mark.filterwarnings("ignore:.*still falling")
@pytest.mark.parametrize("noise", ["gaussian", "student_t"])
def test_bands_of_an_output_that_does_not_change(noise):
    """Its errors are exactly 0."""
    with pytest.warns(UserWarning, match="y is constant"):
        model = linear(max_cycles=2, noise=noise).fit(None, np.ones(40))
    for arguments in (dict(y=np.ones(40)), dict(y=np.ones(40), horizon=3)):
        mean, std = model.predict(None, return_std=True, **arguments)
        np.testing.assert_allclose(mean, 1.0)
        assert np.isfinite(std).all() and (std < 0.01).all()


def test_scores(model, test_record):
    U, y = test_record
    free = model.predict(U, y_init=y[:8])
    assert model.score(U, y) == pytest.approx(r2_score(y[8:], free[8:]))
    one = r2_score(y[8:], model.predict(U, y)[8:])
    assert model.score(U, y, horizon=1) == pytest.approx(one)
    assert one_step_scorer(model, U, y) == pytest.approx(one)
    assert simulation_scorer(model, U, y) == pytest.approx(-rms((y - free)[8:]))
    with pytest.warns(ScoringWarning, match="asks for a prediction of X alone"):
        cross_val_score(linear(), U, y, scoring="r2", cv=TimeSeriesSplit(2))


def test_a_stream_gives_what_predict_gives(model, test_record):
    U, y = test_record
    one, free = model.predict(U, y), model.predict(U, y_init=y[:20])
    stream = model.stream(U[:20], y[:20])
    saved = stream.state
    np.testing.assert_allclose(stream.run(U[20:]), free[20:])
    stream.state = saved
    for row in range(20, 60):
        assert stream.step(U[row]) == pytest.approx(one[row], rel=1e-12)
        # between a step and the output that is measured then, too
        stream = (
            copy.deepcopy(stream) if row % 2 else pickle.loads(pickle.dumps(stream))
        )
        stream.update(y[row])
    again = model.stream(state=stream.state)
    assert again.step(float(U[60, 0])) == pytest.approx(one[60], rel=1e-12)


def test_a_stream_passes_over_what_is_missing(model, test_record):
    U, y = test_record
    gaps = y.copy()
    gaps[[25, 26, 30]] = np.nan
    expected = model.predict(U, gaps)
    stream = model.stream(U[:20], y[:20])
    for row in range(20, 40):
        assert stream.step(U[row]) == pytest.approx(expected[row], rel=1e-12)
        stream.update(gaps[row])
    assert np.isnan(stream.step(np.nan))
    assert np.isnan(stream.step(U[41]))
    stream.update(np.nan)
    assert np.isnan(stream.step(U[42]))
    stream.update(y[42])
    found = [stream.step(u) for u in U[43:100] if stream.update(0.0) is None]
    assert np.isfinite(found).all()


def test_a_stream_forgets_a_gap(model, test_record):
    U, y = test_record
    stream, found = model.stream(), []
    for row, value in enumerate(y):
        found.append(stream.step(U[row] if row != 100 else np.nan))
        stream.update(value)
    assert np.isnan(found[100])
    np.testing.assert_allclose(found[160:], model.predict(U, y)[160:], atol=1e-6)


def test_an_update_needs_a_step(model):
    with pytest.raises(ValueError, match="call step first"):
        model.stream().update(1.0)


def test_states_are_saved_and_restored(model, test_record):
    U, y = test_record
    free = model.predict(U, y_init=y[:20])
    first, state = model.predict(U[:100], y_init=y[:20], return_state=True)
    state = pickle.loads(pickle.dumps(state))
    middle, state = model.predict(U[100:150], state=state, return_state=True)
    last = model.predict(U[150:], state=state)
    np.testing.assert_allclose(np.concatenate([first, middle, last]), free)
    assert state.means.shape == (1, 2) and not state.diverged.any()
    with pytest.raises(ValueError, match="covariances must have shape"):
        model.stream(state=state._replace(covariances=np.zeros((1, 2, 3))))
    lags = SparseBayesNARXRegressor(1, 1, hidden_layer_sizes=()).fit(U, y)
    with pytest.raises(TypeError, match="must be of type SimulationState"):
        lags.predict(U, state=state)
    with pytest.raises(TypeError, match="must be of type StateEstimate"):
        model.predict(U, state=lags.stream().state)


def test_missing_outputs_at_the_start_are_predicted(model, test_record):
    """With the state behind the run as without it."""
    U, y = test_record
    gaps = y.copy()
    gaps[[0, 3]] = np.nan
    for arguments in (dict(y=gaps, horizon=None), dict(y_init=gaps[:20])):
        free = model.predict(U, **arguments)
        assert np.isfinite(free).all()
        found, _ = model.predict(U, **arguments, return_state=True)
        np.testing.assert_allclose(found, free, rtol=1e-12)


def test_an_ensemble_streams_its_median():
    U, y = noisy_record(120)
    model = linear(n_estimators=2).fit(U, y)
    one = model.predict(U, y)
    stream = model.stream(U[:30], y[:30])
    found = []
    for row in range(30, 60):
        found.append(stream.step(U[row]))
        stream.update(y[row])
    np.testing.assert_allclose(found, one[30:60])


@pytest.mark.parametrize("horizon", [1, 4, None])
def test_draws_are_as_wide_as_the_bands(model, test_record, horizon):
    U, y = test_record
    draws = model.sample_y(U, y, horizon=horizon, n_samples=1000, random_state=1)
    mean, std = model.predict(U, y, horizon=horizon, return_std=True)
    np.testing.assert_allclose(draws[8:].std(axis=1), std[8:], rtol=0.15)
    assert (draws[:8] == y[:8, None]).all()
    assert np.abs(draws[8:].mean(axis=1) - mean[8:]).max() < 5.0 * std.max() / 30.0


def test_a_forecast_goes_on_from_the_filtered_state():
    U, y = noisy_record(420, seed=3)
    model = linear().fit(U[:400], y[:400])
    one = model.predict(U[:401], y[:401])[-1]
    forecast = model.forecast(20, U[400:], n_paths=3)
    assert forecast.y_pred[0] == pytest.approx(one, abs=1e-3)
    assert forecast.paths.shape == (20, 3)
    past = model.forecast(20, U[400:], X_past=U[200:400], y_past=y[200:400])
    np.testing.assert_allclose(past.y_pred, forecast.y_pred, atol=0.02)
    with pytest.raises(ValueError, match="X_future must have n_steps=3 rows"):
        model.forecast(3, U[:4])


def test_frames_names_and_times():
    U, y = noisy_record(120)
    times = pd.date_range("2026-01-01", periods=120, freq="s")
    X = pd.DataFrame(U, columns=["force"], index=times)
    target = pd.Series(y, name="speed", index=times)
    model = linear().fit(X, target)
    assert list(model.output_names_) == ["speed"]
    assert model.sampling_time_ == 1.0
    frame = model.set_output(predict="pandas").predict(X, target)
    assert list(frame.columns) == ["speed"] and frame.index.equals(times)
    future = pd.date_range(times[-1], periods=4, freq="s")[1:]
    ahead = model.forecast(3, X[:3].set_axis(future))
    assert ahead.time[0] == np.datetime64("2026-01-01T00:02:00")
    holes = times.delete(range(50, 60))
    with pytest.warns(SamplingWarning):
        linear().fit(X.loc[holes], target.loc[holes])
    cut = linear()
    cut.fit(X.loc[holes], target.loc[holes], sessions="infer")
    # an indicator of each session follows the states and the input
    assert cut.coefs_[-1].shape[0] == 2 + 1 + 2
    with pytest.raises(ValueError, match="speed"):
        model.predict(X, target.rename("other"))


def test_rows_without_an_input_are_left_out():
    U, y = noisy_record(200)
    gaps = U.copy()
    gaps[[60, 61, 63]] = np.nan
    model = linear().fit(gaps, y)
    rows = np.delete(np.arange(200), [60, 61, 62, 63])
    number = np.repeat([0, 1], [60, 136])
    other = linear().fit(U[rows], y[rows], sessions=number)
    np.testing.assert_array_equal(model.state_matrix_, other.state_matrix_)
    with pytest.warns(MissingInputWarning, match="Input x0 is missing in row 60"):
        free = model.predict(gaps, y_init=y[:8])
    assert np.isfinite(free[:60]).all() and np.isnan(free[60:]).all()
    held = U.copy()
    held[[60, 61]], held[63] = U[59], U[62]
    np.testing.assert_array_equal(
        model.predict(gaps, y_init=y[:8], fill_inputs="hold"),
        model.predict(held, y_init=y[:8]),
    )
    one = model.predict(gaps, y)
    assert np.isnan(one[60:72]).all() and np.isfinite(one[72:]).all()


def test_a_system_without_inputs():
    """A swing that dies out, with noise."""
    rng = np.random.default_rng(0)
    y, x = np.empty(200), np.array([3.0, 0.0])
    for t in range(200):
        y[t] = x[0] + 0.02 * rng.standard_normal()
        x = 0.99 * np.array([[0.9, 0.43], [-0.43, 0.9]]) @ x
    model = linear(n_restarts=2).fit(None, y[:150])
    assert model.n_features_in_ == 0
    ahead = model.forecast(50)
    assert rms(ahead.y_pred - y[150:]) < 0.1
    free = model.predict(np.empty((50, 0)), y_init=y[150:158])
    assert rms(free - y[150:]) < 0.1


def test_displays_take_it(model, test_record):
    U, y = test_record
    display = SimulationDisplay.from_estimator(model, U, y)
    assert display.is_initial.sum() == 8
    assert display.rmse[0] == pytest.approx(
        rms((y - model.predict(U, y_init=y[:8]))[8:])
    )
    one = SimulationDisplay.from_estimator(model, U, y, horizon=1)
    assert one.rmse[0] < display.rmse[0]
    residuals = ResidualAnalysisDisplay.from_estimator(model, U, y)
    assert residuals is not None


@pytest.fixture(scope="module")
def mixed(model):
    """Lags and hidden states in one ensemble; lags count more."""
    U, y = noisy_record()
    lags = SparseBayesNARXRegressor(2, 2, hidden_layer_sizes=()).fit(U, y)
    together = copy.copy(lags)
    members = ensemble_of(lags).members + ensemble_of(model).members
    set_ensemble(together, Ensemble(members, np.array([0.6, 0.4])))
    together.max_lag_ = 8
    return together, lags


@pytest.mark.parametrize("horizon", [1, 3, None])
def test_both_kinds_predict_together(mixed, model, test_record, horizon):
    (together, lags), (U, y) = mixed, test_record
    mean, std = together.predict(U, y, horizon=horizon, return_std=True)
    alone = [
        one.predict(U, y_init=y[:8], return_std=True)
        if horizon is None
        else one.predict(U, y, horizon=horizon, return_std=True)
        for one in (lags, model)
    ]
    # the weighted median of two is the one with more weight
    np.testing.assert_allclose(mean[8:], alone[0][0][8:])
    square = 0.6 * alone[0][1] ** 2 + 0.4 * alone[1][1] ** 2
    square += 0.4 * (alone[1][0] - mean) ** 2
    np.testing.assert_allclose(std[8:] ** 2, square[8:])
    draws = together.sample_y(U, y, horizon=horizon, n_samples=500)
    assert np.isfinite(draws).all()
    assert together.score(U, y, horizon=horizon) > 0.5


def test_both_kinds_stream_together(mixed, test_record):
    (together, _), (U, y) = mixed, test_record
    one, free = together.predict(U, y), together.predict(U, y_init=y[:20])
    stream = together.stream(U[:20], y[:20])
    saved = pickle.loads(pickle.dumps(stream.state))
    np.testing.assert_allclose(stream.run(U[20:]), free[20:])
    stream.state = saved
    for row in range(20, 60):
        assert stream.step(U[row]) == pytest.approx(one[row])
        stream.update(y[row])
    np.testing.assert_allclose(together.predict(U[20:], state=saved), free[20:])
    first, state = together.predict(U[:50], y_init=y[:20], return_state=True)
    rest = together.predict(U[50:], state=state)
    np.testing.assert_allclose(np.concatenate([first, rest]), free)
    with pytest.raises(ValueError, match="parts must hold 2 states"):
        together.predict(U, state=state._replace(parts=state.parts[:1]))
    with pytest.raises(TypeError, match="must be of type EnsembleState"):
        together.stream(state=state.parts[0])
    forecast = together.forecast(5, U[:5], X_past=U, y_past=y, n_paths=4)
    assert np.isfinite(forecast.y_std).all() and forecast.paths.shape == (5, 4)


def test_a_gap_behind_a_state_is_held(model, test_record):
    U, y = test_record
    _, state = model.predict(U[:100], y_init=y[:20], return_state=True)
    np.testing.assert_array_equal(state.inputs, U[99:100])
    gaps, held = U[100:110].copy(), U[100:110].copy()
    gaps[:2], held[:2] = np.nan, U[99]
    np.testing.assert_array_equal(
        model.predict(gaps, state=state, fill_inputs="hold"),
        model.predict(held, state=state),
    )
    with pytest.warns(MissingInputWarning):
        assert np.isnan(model.predict(gaps, state=state)).all()


@pytest.mark.slow
def test_in_a_pipeline_and_in_a_search(test_record):
    U, y = test_record
    pipeline = make_pipeline(StandardScaler(), linear()).fit(U, y)
    assert simulation_scorer(pipeline, U, y) > -y.std()
    assert SimulationDisplay.from_estimator(pipeline, U, y, horizon=1).fit[0] > 50.0
    strengths = {"reg_lambda": [0.5, 2.0]}
    search = GridSearchCV(linear(), strengths, cv=TimeSeriesSplit(2)).fit(U, y)
    assert search.best_score_ > 0.3
    scores = cross_val_score(
        linear(), U, y, cv=TimeSeriesSplit(2), scoring=one_step_scorer
    )
    assert (scores > search.best_score_).all()
