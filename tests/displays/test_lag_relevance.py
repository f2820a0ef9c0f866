"""LagRelevanceDisplay: the relevance of an estimator, and what it draws."""

import numpy as np
import pytest
from display_models import Network
from free_run_cases import fit, output_error
from grids import each_value_once

from skbayesnn.displays import LagRelevanceDisplay

plt = pytest.importorskip("matplotlib.pyplot")


def test_lag_relevance(double):
    display = LagRelevanceDisplay.from_estimator(double)
    names = [
        f"{signal}(t-{lag})" if lag else f"{signal}(t)"
        for signal, lag in zip(display.signals, display.lags, strict=True)
    ]
    assert names == list(double.get_lagged_feature_names_out())
    np.testing.assert_array_equal(display.relevance, double.feature_relevance_)
    np.testing.assert_array_equal(display.pruned, double.feature_relevance_ == 0)
    assert display.signal_names == ["x0", "x1", "y0", "y1"]
    assert display.axes_.shape == (1, 4)
    for panel, name in zip(display.axes_[0], display.signal_names, strict=True):
        of_signal = np.array([signal == name for signal in display.signals])
        kept = of_signal & ~display.pruned
        heights = [bar.get_height() for bar in panel.patches]
        np.testing.assert_allclose(heights, display.relevance[kept])
        crosses = panel.get_lines()[0].get_xdata()
        np.testing.assert_array_equal(crosses, display.lags[of_signal & display.pruned])


def test_lags_of_single_signals_and_of_differences():
    u, y, _ = output_error(100)
    model = fit(u, y, {"x0": [3, 5]}, 2, output="difference", focus="prediction")
    display = LagRelevanceDisplay.from_estimator(model)
    assert display.signal_names == ["x0", "diff(y)"]
    np.testing.assert_array_equal(display.lags, [3, 5, 1, 2])


def test_lag_relevance_wraps_and_handles_full_pruning():
    model = Network([])
    model.lag_relevance_ = {f"a(t-{k})(t-{2 * k})": 0.0 for k in range(1, 7)}
    model.lag_relevance_["u(t)"] = 0.0
    display = LagRelevanceDisplay.from_estimator(model)
    assert display.signals[0] == "a(t-1)" and display.signals[-1] == "u"
    np.testing.assert_array_equal(display.lags, [2, 4, 6, 8, 10, 12, 0])
    assert display.pruned.all()
    assert display.axes_.shape == (2, 4)
    assert display.axes_[1, 3] is None and display.axes_[1, 2] is not None
    display.figure_.draw_without_rendering()


@pytest.mark.parametrize(
    *each_value_once(n_signals=[3, 9, 4], given=["nothing", "one of two axes"])
)
def test_lag_relevance_has_room_for_many_signals(n_signals, given):
    """No layout warning, which is an error here, and no title outside the figure."""
    model = Network([])
    names = [f"position of valve number {k}, in percent" for k in range(n_signals)]
    model.lag_relevance_ = {
        f"{name}(t-{lag})": float(lag % 2) for name in names for lag in range(1, 11)
    }
    ax = None
    if given != "nothing":
        _, (_, ax) = plt.subplots(1, 2, layout="constrained")
    display = LagRelevanceDisplay.from_estimator(model, ax=ax)
    display.figure_.draw_without_rendering()
    whole = display.figure_.bbox
    for panel in filter(None, display.axes_.flat):
        assert panel.bbox.width > 100 and panel.bbox.height > 100
        for text in [panel.title, panel.xaxis.label, panel.yaxis.label]:
            box = text.get_window_extent()
            assert box.x0 >= whole.x0 - 1 and box.x1 <= whole.x1 + 1
    if ax is not None:
        assert [bars.get_label() for bars in ax.containers] == [
            f"{name} (5 of 10 pruned: ×)" for name in names
        ]


def test_a_static_model_has_no_lags():
    with pytest.raises(ValueError, match="Network has no lag_relevance_"):
        LagRelevanceDisplay.from_estimator(Network([np.ones((2, 1), dtype=bool)]))


@pytest.mark.parametrize("given", [False, True])
def test_pruned_lags_are_counted_only_where_there_are_some(given):
    model = Network([])
    model.lag_relevance_ = {"u(t)": 1.0, "u(t-1)": 0.0, "y(t-1)": 2.0}
    ax = plt.figure().add_subplot() if given else None
    display = LagRelevanceDisplay.from_estimator(model, ax=ax)
    if given:
        labels = [bars.get_label() for bars in ax.containers]
        assert labels == ["u (1 of 2 pruned: ×)", "y"]
    else:
        titles = [panel.get_title() for panel in display.axes_.flat]
        assert titles == ["u\n1 of 2 pruned: ×", "y"]
