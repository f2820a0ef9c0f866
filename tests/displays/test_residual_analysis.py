"""ResidualAnalysisDisplay: correlations against the metric, and what it draws."""

import numpy as np
import pytest
from display_models import SESSIONS, N, U, Y
from grids import each_value_once

from skbayesnn.displays import ResidualAnalysisDisplay
from skbayesnn.metrics import residual_analysis

plt = pytest.importorskip("matplotlib.pyplot")


def same_analysis(found, expected):
    for name in ["autocorrelation", "cross_correlation", "squared_both", "product"]:
        for one, other in zip(found[name], expected[name], strict=True):
            np.testing.assert_allclose(one, other)
    np.testing.assert_allclose(found.ljung_box_pvalue, expected.ljung_box_pvalue)


@pytest.mark.parametrize(
    "horizon",
    [
        pytest.param(1, marks=pytest.mark.slow),
        4,
        pytest.param(None, marks=pytest.mark.slow),
    ],
)
def test_residual_analysis_leaves_the_initialisation_out(double, horizon):
    display = ResidualAnalysisDisplay.from_estimator(
        double, U, Y, horizon=horizon, max_lag=8, sessions=SESSIONS
    )
    residuals = Y - double.predict(U, Y, horizon=horizon, sessions=SESSIONS)
    residuals[[0, 1, 70, 71]] = np.nan
    expected = residual_analysis(residuals, U, max_lag=8, sessions=SESSIONS)
    same_analysis(display.analysis, expected)
    assert display.axes_.shape == (2, 3)
    assert display.axes_[1, 2].get_title().startswith("y1: e(t) and x1(t−k)")


def test_residual_analysis_draws_what_is_outside():
    rng = np.random.default_rng(0)
    residual = rng.normal(size=N) + np.roll(U[:, 1], 4)
    display = ResidualAnalysisDisplay.from_predictions(
        residual, np.zeros(N), U, max_lag=8, n_initialization=4
    )
    panel = display.axes_[0, 2]
    inside, beyond = panel.get_lines()[2:4]
    correlation = display.analysis.cross_correlation
    values, bound = correlation.values[0, 1], correlation.bound[0, 1]
    outside = np.abs(values) > bound
    assert 4 in beyond.get_xdata()
    np.testing.assert_array_equal(beyond.get_xdata(), correlation.lags[outside])
    np.testing.assert_allclose(inside.get_ydata(), values[~outside])
    assert f"{outside.mean():.0%} outside" in panel.get_title()


def test_residual_analysis_without_inputs_and_with_all_tests():
    rng = np.random.default_rng(0)
    residuals = rng.normal(size=(N, 2))
    alone = ResidualAnalysisDisplay.from_predictions(residuals, np.zeros((N, 2)))
    assert alone.axes_.shape == (2, 1)
    inputs = U.copy()
    inputs[:, 1] = 1.0
    every = ResidualAnalysisDisplay.from_predictions(
        residuals, np.zeros((N, 2)), inputs, output=1, nonlinear=True
    )
    # autocorrelation, and four tests for each of two inputs
    assert every.axes_.shape == (3, 4)
    assert sum(panel is not None for panel in every.axes_.flat) == 9
    assert every.axes_[0, 2].get_title().endswith("not defined")
    every.figure_.draw_without_rendering()


def test_residual_analysis_takes_names_from_a_frame(single):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(U, columns=["pump", "valve"])
    display = ResidualAnalysisDisplay.from_predictions(Y[:, 0], 0.5 * Y[:, 0], frame)
    assert display.input_names == ["pump", "valve"]
    assert "pump(t−k)" in display.axes_[0, 1].get_title()


@pytest.mark.parametrize(
    *each_value_once(nonlinear=[False, True], layout=[None, "constrained"])
)
def test_residual_analysis_inside_one_axes_has_legible_titles(layout, nonlinear):
    """As many columns as fit: no title covers another or leaves the figure."""
    figure, (_, ax) = plt.subplots(1, 2, figsize=(13, 6), layout=layout)
    display = ResidualAnalysisDisplay.from_predictions(
        Y[:, 0], 0.5 * Y[:, 0], U[:, :1], ax=ax, nonlinear=nonlinear
    )
    figure.draw_without_rendering()
    panels = list(filter(None, display.axes_.flat))
    assert len(panels) == (5 if nonlinear else 2)
    boxes = [panel.title.get_window_extent() for panel in panels]
    for k, box in enumerate(boxes):
        assert box.x0 >= figure.bbox.x0 - 1 and box.x1 <= figure.bbox.x1 + 1
        assert not any(box.overlaps(other) for other in boxes[k + 1 :])
        assert not any(box.overlaps(panel.bbox) for panel in panels)
