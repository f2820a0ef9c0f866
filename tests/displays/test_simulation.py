"""SimulationDisplay: the numbers it holds, and what it draws."""

import warnings

import numpy as np
import pandas as pd
import pytest
from display_models import SESSIONS, Diverging, N, U, Y, legend_texts
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skbayesnn import SparseBayesMLPRegressor, SparseBayesNARXRegressor
from skbayesnn.displays import SimulationDisplay
from skbayesnn.metrics import simulation_rmse


def test_simulation_runs_freely_from_the_first_rows(single):
    y = Y[:, 0]
    display = SimulationDisplay.from_estimator(single, U, y)
    mean, std = single.predict(U, y_init=y[:2], return_std=True)
    np.testing.assert_allclose(display.y_pred[:, 0], mean)
    np.testing.assert_allclose(display.y_std[:, 0], std)
    np.testing.assert_array_equal(display.is_initial, np.arange(N) < 2)
    error = (y - mean)[2:]
    assert display.rmse == pytest.approx(np.sqrt(np.mean(error**2)))
    assert display.coverage == pytest.approx(np.mean(np.abs(error) <= 2 * std[2:]))
    assert display.n_missing == 0
    assert display.axes_.shape == (2, 1) and display.ax_ is display.axes_[0, 0]
    assert display.ax_.figure is display.figure_
    measured, predicted = display.ax_.get_lines()[:2]
    np.testing.assert_array_equal(measured.get_ydata(), y)
    np.testing.assert_allclose(predicted.get_ydata(), mean)
    residual = display.axes_[1, 0].get_lines()[1]
    np.testing.assert_allclose(residual.get_ydata(), y - mean)
    assert display.axes_[1, 0].get_xlabel() == "Row"


def test_simulation_can_start_elsewhere_and_look_ahead(single):
    y = Y[:, 0]
    later = SimulationDisplay.from_estimator(single, U, y, n_init=20)
    given = SimulationDisplay.from_estimator(single, U, y, y_init=y[:20])
    np.testing.assert_allclose(later.y_pred[:, 0], single.predict(U, y_init=y[:20]))
    np.testing.assert_array_equal(later.y_pred, given.y_pred)
    assert later.is_initial.sum() == given.is_initial.sum() == 20
    ahead = SimulationDisplay.from_estimator(single, U, y, horizon=3)
    np.testing.assert_allclose(ahead.y_pred[:, 0], single.predict(U, y, horizon=3))
    assert ahead.name == "3 steps ahead" and later.name == "free run"


def test_simulation_of_sessions_breaks_its_lines(single):
    y = Y[:, 0]
    display = SimulationDisplay.from_estimator(
        single, U, y, sessions=SESSIONS, n_sigmas=0
    )
    expected = single.predict(U, y, horizon=None, sessions=SESSIONS)
    np.testing.assert_allclose(display.y_pred[:, 0], expected)
    assert display.y_std is None and display.coverage is None
    np.testing.assert_array_equal(np.flatnonzero(display.is_initial), [0, 1, 70, 71])
    drawn = display.ax_.get_lines()[0].get_ydata()
    assert len(drawn) == N + 1 and np.isnan(drawn[70])


def test_simulation_of_several_outputs(double):
    display = SimulationDisplay.from_estimator(double, U, Y, sampling_time=0.5)
    assert display.axes_.shape == (4, 1)
    assert [ax.get_ylabel() for ax in display.axes_[::2, 0]] == ["y0", "y1"]
    assert display.rmse.shape == display.coverage.shape == (2,)
    assert display.axes_[-1, 0].get_xlabel() == "Time (s)"
    assert display.axes_[-1, 0].get_xlim()[1] == pytest.approx(0.5 * (N - 1))
    one = display.plot(output=1, y_label=["Level (V)", "Flow (l/s)"])
    assert one is display and display.axes_.shape == (2, 1)
    np.testing.assert_array_equal(display.ax_.get_lines()[0].get_ydata(), Y[:, 1])
    assert display.ax_.get_ylabel() == "Flow (l/s)"
    with pytest.raises(ValueError, match="output must be None.*0 to 1; got 2"):
        display.plot(output=2)


def test_simulation_of_a_static_model_and_of_a_pipeline(single):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        static = SparseBayesMLPRegressor((), max_cycles=5).fit(U, Y[:, 0])
    display = SimulationDisplay.from_estimator(static, U, Y[:, 0])
    np.testing.assert_allclose(display.y_pred[:, 0], static.predict(U))
    assert not display.is_initial.any() and display.name == "prediction"
    with pytest.raises(ValueError, match="this estimator is static"):
        SimulationDisplay.from_estimator(static, U, Y[:, 0], n_init=3)

    pipeline = make_pipeline(FunctionTransformer().fit(U), single)
    through = SimulationDisplay.from_estimator(pipeline, U, Y[:, 0])
    np.testing.assert_allclose(
        through.y_pred[:, 0], single.predict(U, Y[:, 0], horizon=None)
    )


@pytest.mark.parametrize("y", [Y, Y[:, 0]])
def test_predictions_may_be_frames_with_times(y):
    time = pd.date_range("2024-05-01", periods=N, freq="2s")
    framed = pd.DataFrame({"time": time, "a": U[:, 0], "b": U[:, 1]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SparseBayesNARXRegressor(
            2, 2, hidden_layer_sizes=(), max_cycles=5, random_state=0
        ).fit(framed, y)
    expected = SimulationDisplay.from_estimator(model, framed, y)
    model.set_output(predict="pandas")
    display = SimulationDisplay.from_estimator(model, framed, y)
    np.testing.assert_array_equal(display.y_pred, expected.y_pred)
    np.testing.assert_array_equal(display.y_std, expected.y_std)
    mean, std = model.predict(framed, y, horizon=None, return_std=True)
    measured = mean.copy()
    measured[mean.columns[1:]] = y.reshape(N, -1)
    given = SimulationDisplay.from_predictions(measured, mean, std, n_initialization=2)
    np.testing.assert_allclose(given.rmse, expected.rmse)
    rmse = simulation_rmse(measured, mean, n_initialization=2)
    np.testing.assert_allclose(rmse, expected.rmse)


def test_divergence_and_missing_values_are_drawn_not_raised():
    y = Y[:, 0].copy()
    y[10:15] = np.nan
    display = SimulationDisplay.from_estimator(Diverging(), U, y)
    assert display.n_missing == N - 40
    scored = np.r_[y[2:10], y[15:40]]
    assert display.rmse == pytest.approx(np.sqrt(np.mean(scored**2)))
    assert display.coverage == pytest.approx(np.mean(np.abs(scored) <= 2.0))
    assert legend_texts(display.ax_)[-1] == f"no prediction ({N - 40} rows)"
    assert "free run (RMSE" in legend_texts(display.ax_)[1]
    spans = [c for c in display.ax_.collections if c.get_hatch()]
    x = spans[0].get_paths()[0].vertices[:, 0]
    assert x.min() == 39.5 and x.max() == N - 0.5

    nothing = SimulationDisplay.from_predictions(y, np.full(N, np.nan), np.full(N, 1.0))
    assert np.isnan(nothing.rmse).all() and np.isnan(nothing.coverage).all()
    nothing.figure_.draw_without_rendering()


def test_simulation_from_predictions():
    display = SimulationDisplay.from_predictions(
        Y,
        0.9 * Y,
        np.full(Y.shape, 0.05),
        n_initialization=5,
        sessions=SESSIONS,
        n_sigmas=1.0,
        name="ours",
    )
    kept = np.delete(np.arange(N), np.r_[0:5, 70:75])
    np.testing.assert_allclose(
        display.rmse, np.sqrt(np.mean((0.1 * Y[kept]) ** 2, axis=0))
    )
    np.testing.assert_allclose(
        display.coverage, np.mean(np.abs(0.1 * Y[kept]) <= 0.05, axis=0)
    )
    texts = legend_texts(display.ax_)
    assert texts[1].startswith("ours (RMSE") and texts[2].startswith("±1σ (holds")
    bare = SimulationDisplay.from_predictions(Y[:, 0], Y[:, 0])
    assert bare.rmse == 0.0 and bare.coverage is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_init": 5, "horizon": 2}, "horizon=None; got horizon=2"),
        ({"n_init": 5, "y_init": Y[:5, 0]}, "not both"),
        ({"n_init": 5, "sessions": SESSIONS}, "start one session.*names 2"),
        ({"n_init": N + 1}, "n_init must be an integer from 1.*160; got 161"),
        ({"n_init": 0}, "n_init must be an integer from 1"),
        ({"horizon": 0}, "horizon must be a positive integer"),
        ({"ax": np.empty(3, dtype=object)}, "hold 2 of them.*got 3"),
    ],
)
def test_simulation_errors(single, arguments, message):
    with pytest.raises(ValueError, match=message):
        SimulationDisplay.from_estimator(single, U, Y[:, 0], **arguments)


@pytest.mark.parametrize(
    ("y_pred", "arguments", "message"),
    [
        (Y[1:], {}, "y_true and y_pred must have as many rows.*160 and 159"),
        (Y[:, 0], {}, "y_true and y_pred must have as many outputs; got 2 and 1"),
        (Y, {"y_std": Y[1:]}, "y_true and y_std must have as many rows"),
        (Y, {"n_initialization": N}, "n_initialization must be at least 0"),
    ],
)
def test_predictions_must_fit_the_record(y_pred, arguments, message):
    with pytest.raises(ValueError, match=message):
        SimulationDisplay.from_predictions(Y, y_pred, **arguments)
