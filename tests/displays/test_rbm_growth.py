"""GrowthDisplay: what it reads from a history, and what it draws."""

import numpy as np
import pytest
from display_models import legend_texts, tracked, untracked, with_history
from numpy.testing import assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skbayesnn.displays import GrowthDisplay


def lines_of(panel):
    return {line.get_label(): line.get_data() for line in panel.get_lines()}


def test_growth(grown):
    display = GrowthDisplay.from_estimator(grown)
    likelihoods, gains = display.axes_[:, 0]
    history = grown.history_
    lines = lines_of(likelihoods)
    for label, name in [
        ("training", "log_likelihood"),
        ("validation", "validation_log_likelihood"),
    ]:
        x, y = lines[label]
        assert_array_equal(x, history["n_components"][::2])
        assert_array_equal(y, history[name][::2])
    x, y = gains.get_lines()[0].get_data()
    assert_array_equal(x, [1, 2, 3, 4, 5, 6])
    assert_array_equal(y, history["gain"])
    for panel in (likelihoods, gains):
        (chosen, _), _ = lines_of(panel)["fitted model: 6 units"]
        assert chosen == grown.n_components_ == 6
    assert legend_texts(likelihoods) == [
        "training",
        "validation",
        "fitted model: 6 units",
    ]
    for panel in (likelihoods, gains):
        assert "nats per sample" in panel.get_ylabel()
    assert gains.get_xlabel() == "hidden units"


def test_other_starts_are_marks_that_no_line_joins(grown):
    random = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    rbm = with_history(
        grown,
        n_components=np.array([1, 2, 4, 8, 3, 4]),
        from_small_weights=random,
        validation_log_likelihood=-np.arange(6.0),
    )
    likelihoods = GrowthDisplay.from_estimator(rbm).axes_[0, 0]
    lines = lines_of(likelihoods)
    x, y = lines["validation"]
    assert_array_equal(x, [1, 2, 4, 8])
    assert_array_equal(y, [0, -1, -2, -3])
    marks = [line for line in likelihoods.get_lines() if line.get_marker() == "D"]
    assert len(marks) == 2 and {line.get_linestyle() for line in marks} == {"None"}
    for line in marks:
        assert_array_equal(line.get_xdata(), [3, 4])
    assert_array_equal(marks[-1].get_ydata(), [-4, -5])
    assert legend_texts(likelihoods).count("other starts") == 1


def test_chosen_size_may_be_smaller_than_the_last(grown):
    fewer = tracked(grown.truncate(1), **grown.history_)
    display = GrowthDisplay.from_estimator(fewer)
    assert display.chosen == 1
    assert "fitted model: 1 unit" in lines_of(display.ax_)
    assert display.n_components[-1] == 6


@pytest.mark.parametrize("with_change", [True, False])
def test_steps_that_added_no_unit_have_no_gain(grown, with_change):
    changed = with_history(
        grown,
        n_components=np.array([1, 1, 2, 4, 3, 4]),
        change=np.array([1, 0, 1, 2, -1, 1]) if with_change else None,
    )
    display = GrowthDisplay.from_estimator(changed)
    added = np.array([True, False, True, True, False, True])
    expected = np.where(added, grown.history_["gain"], np.nan)
    assert_array_equal(display.gain, expected)
    x, y = display.axes_[1, 0].get_lines()[0].get_data()
    assert_array_equal(x, [1, 2, 4, 4])
    assert_array_equal(y, expected[added])


def test_first_step_of_a_given_model(grown):
    """Its units were there before: only ``change`` tells that none was added."""
    start = with_history(
        grown, n_components=np.arange(10, 16), change=np.array([0, 1, 1, 1, 1, 1])
    )
    gain = GrowthDisplay.from_estimator(start).gain
    assert_array_equal(np.isnan(gain), [True] + 5 * [False])


def test_gains_of_several_magnitudes_have_a_logarithmic_axis(grown):
    for gain, scale in [
        ([3.0, 1.0, 0.3, 0.1, 0.03, 0.01], "log"),
        ([3.0, 2.0, 1.0, 1.0, 1.0, 1.0], "linear"),
        ([3.0, 1.0, 0.3, 0.1, 0.03, -0.01], "linear"),
    ]:
        rbm = with_history(grown, gain=np.array(gain))
        assert GrowthDisplay.from_estimator(rbm).axes_[1, 0].get_yscale() == scale


def test_growth_that_found_no_unit_is_drawn(grown):
    nothing = np.zeros(6, dtype=np.int64)
    idle = with_history(grown.truncate(1), n_components=nothing, change=nothing)
    idle = tracked(idle)
    display = GrowthDisplay.from_estimator(idle)
    assert np.isnan(display.gain).all()
    assert not len(display.axes_[1, 0].get_lines()[0].get_xdata())
    assert "fitted model: 1 unit" in lines_of(display.ax_)
    display.figure_.draw_without_rendering()


def test_growth_of_a_pipeline(grown):
    pipeline = make_pipeline(FunctionTransformer(), grown)
    assert GrowthDisplay.from_estimator(pipeline).chosen == 6


def test_growth_that_tracked_one_likelihood(grown):
    rbm = with_history(grown, log_likelihood=None)
    display = GrowthDisplay.from_estimator(rbm)
    assert legend_texts(display.ax_) == ["validation", "fitted model: 6 units"]


def test_growth_that_tracked_nothing_says_how_to(grown):
    message = r"FrankWolfeRBM has not tracked its likelihood: .* fit\(X, X_val"
    with pytest.raises(ValueError, match=message):
        GrowthDisplay.from_estimator(untracked(grown))


def test_a_model_that_did_not_grow_is_named(trained):
    message = "ContrastiveDivergenceRBM does not record .*gain.*use ConvergenceDisplay"
    with pytest.raises(ValueError, match=message):
        GrowthDisplay.from_estimator(trained)
