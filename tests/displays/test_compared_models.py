"""SimulationDisplay of several models, of named outputs, and over real time."""

import numpy as np
import pandas as pd
import pytest
from display_models import N, U, Y, fit, legend_texts
from matplotlib.dates import date2num
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn.displays import (
    ConvergenceDisplay,
    ResidualAnalysisDisplay,
    SimulationDisplay,
)
from skbayesnn.metrics import fit_index

TIMES = pd.date_range("2024-05-01", periods=N, freq="4s")
FRAME = pd.DataFrame(Y, columns=["level", "flow"], index=TIMES)


@pytest.fixture(scope="module")
def named():
    """A model of outputs with names, at times."""
    model = fit((), FRAME)
    assert model.sampling_time_ == 4.0
    return model


def predictions():
    rng = np.random.default_rng(3)
    return {"one": Y + 0.1, "two": Y + rng.standard_normal(Y.shape)}


def test_models_are_compared_by_their_fit():
    std = {"two": np.ones_like(Y)}
    display = SimulationDisplay.from_predictions(
        FRAME, predictions(), std, n_initialization=10
    )
    for name, predicted in predictions().items():
        expected = fit_index(Y, predicted, n_initialization=10)
        assert_allclose(display.fit[name], expected)
        assert_allclose(display.n_missing[name], 0)
    assert display.coverage["one"] is None
    assert_allclose(display.coverage["two"], 0.95, atol=0.06)
    assert display.axes_.shape == (4, 1)
    labels = legend_texts(display.ax_)
    fits = [f"{name} (fit {display.fit[name][0]:.1f} %)" for name in ("one", "two")]
    assert labels[:3] == ["measured", *fits] and labels[3].startswith("±2σ (holds 9")
    measured, first, second = display.ax_.get_lines()[:3]
    assert_allclose(first.get_ydata(), Y[:, 0] + 0.1)
    assert len({line.get_color() for line in (measured, first, second)}) == 3
    residuals = display.axes_[1, 0].get_lines()[1:3]
    assert_allclose(residuals[0].get_ydata(), -0.1)
    assert display.ax_.get_ylabel() == "level"


def test_a_comparison_needs_names():
    models = predictions()
    with pytest.raises(ValueError, match="y_std must be a dict"):
        SimulationDisplay.from_predictions(Y, models, np.ones_like(Y))
    for arguments in (
        dict(y_pred=models, y_std={"three": np.ones_like(Y)}),
        dict(y_pred=models, name="three"),
        dict(y_pred={}),
    ):
        with pytest.raises(ValueError, match="y_pred must hold at least one model"):
            SimulationDisplay.from_predictions(Y, **arguments)


def test_rows_that_a_model_lacks_are_marked():
    models = predictions()
    models["one"][-20:] = np.nan
    display = SimulationDisplay.from_predictions(
        Y[:, 0], {k: v[:, 0] for k, v in models.items()}
    )
    assert_array_equal(display.n_missing["one"], [20])
    assert "no prediction (20 rows)" in legend_texts(display.ax_)


def test_record_is_drawn_over_its_times(named):
    display = SimulationDisplay.from_estimator(named, U, FRAME, n_init=20)
    assert_array_equal(display.time, TIMES)
    line = display.ax_.get_lines()[0]
    assert_allclose(line.get_xdata(), date2num(TIMES), rtol=1e-12)
    assert display.axes_[-1, 0].get_xlabel() == "Time"
    assert [ax.get_ylabel() for ax in display.axes_[::2, 0]] == ["level", "flow"]
    display.figure_.draw_without_rendering()
    ticks = [t.get_text() for t in display.axes_[-1, 0].get_xticklabels()]
    assert "00:02" in ticks
    display.plot(sampling_time=2.0)
    assert display.axes_[-1, 0].get_xlim()[1] == pytest.approx(2.0 * (N - 1))


@pytest.mark.parametrize(
    "stamps, label, last",
    [
        (TIMES - TIMES[0], "Time (s)", 4.0 * (N - 1)),
        (np.arange(N) * 0.5, "Time", 0.5 * (N - 1)),
    ],
)
def test_record_with_other_times(stamps, label, last):
    y = pd.DataFrame({"time": stamps, "level": Y[:, 0]})
    display = SimulationDisplay.from_predictions(y, Y[:, 0])
    assert display.axes_[-1, 0].get_xlabel() == label
    assert display.axes_[-1, 0].get_xlim()[1] == pytest.approx(last)
    assert display.ax_.get_ylabel() == "level"


def test_clocks_that_begin_anew_are_not_drawn():
    again = np.append(TIMES[:70], TIMES[: N - 70])
    sessions = np.repeat([0, 1], [70, N - 70])
    y = FRAME[["level"]].set_axis(again)
    display = SimulationDisplay.from_predictions(y, Y[:, :1], sessions=sessions)
    assert display.axes_[-1, 0].get_xlabel() == "Row"


def test_predictions_in_another_order_are_refused(named):
    swapped = FRAME[["flow", "level"]]
    for call in (
        lambda: SimulationDisplay.from_predictions(FRAME, swapped),
        lambda: SimulationDisplay.from_estimator(named, U, swapped, n_init=20),
        lambda: SimulationDisplay.from_estimator(named, U, swapped),
        lambda: ResidualAnalysisDisplay.from_estimator(named, U, swapped),
    ):
        with pytest.raises(ValueError, match="in another order"):
            call()


def test_other_displays_have_the_names(named):
    display = ResidualAnalysisDisplay.from_estimator(named, U, FRAME)
    assert display.output_names == ["level", "flow"]
    frame = pd.DataFrame(U, columns=["a", "b"], index=TIMES)
    inferred = ResidualAnalysisDisplay.from_predictions(
        FRAME.drop(TIMES[70:75]),
        np.delete(predictions()["two"], np.s_[70:75], axis=0),
        frame.drop(TIMES[70:75]).reset_index(names="time"),
        sessions="infer",
    )
    assert inferred.input_names == ["a", "b"]
    display = ConvergenceDisplay.from_estimator(named)
    assert legend_texts(display.axes_[1, 0]) == ["level", "flow"]


def test_a_band_is_cut_at_the_range_of_the_output():
    std = np.full_like(Y, 50.0)
    display = SimulationDisplay.from_predictions(Y, Y, std, y_range=(-2.0, 3.0))
    (band,) = [c for c in display.ax_.collections if "σ" in c.get_label()]
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() == -2.0 and heights.max() == 3.0


def test_stages_of_a_horizon_schedule_are_marked():
    model = fit((2,), Y[:, 0], focus="simulation", horizon_schedule=(1, 8, None))
    display = ConvergenceDisplay.from_estimator(model)
    horizon = model.history_["horizon"]
    begins = np.flatnonzero(np.diff(np.nan_to_num(horizon))) + 1
    assert len(begins) == 2
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == ["1", "8", "all"]
    objective, *marks = display.ax_.get_lines()
    places = [mark.get_xdata()[0] for mark in marks]
    assert_array_equal(places, display.x[0][begins] - 0.5)
    # no line from one stage to the next
    assert np.isnan(objective.get_ydata()).sum() == 2
    one = fit((2,), Y[:, 0])
    assert not ConvergenceDisplay.from_estimator(one).ax_.texts


def test_ticks_are_plain_numbers():
    errors = [np.geomspace(8.65, 0.05, 30)]
    curves = {"objective": errors, "rmse": errors, "n_active_weights": errors}
    display = ConvergenceDisplay([np.arange(1.0, 31.0)], curves).plot()
    display.figure_.draw_without_rendering()
    shown = [t.get_text() for t in display.axes_[1, 0].get_yticklabels(which="both")]
    assert {"0.1", "0.2", "0.5", "1", "2", "5"} <= set(shown)
    assert not any("times" in text or "10^" in text for text in shown)
