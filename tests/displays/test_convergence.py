"""ConvergenceDisplay: the history of a fit, and what it draws."""

import numpy as np
import pytest
from display_models import (
    Ensemble,
    Network,
    legend_texts,
    tracked,
    untracked,
    with_history,
)
from numpy.testing import assert_array_equal
from rbm_estimators import bernoulli_rbm
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.displays import ConvergenceDisplay, GrowthDisplay


def test_convergence(single, double):
    for model, n_outputs in [(single, 1), (double, 2)]:
        display = ConvergenceDisplay.from_estimator(model)
        history = model.history_
        assert display.axes_.shape == (3, 1)
        (objective,) = display.axes_[0, 0].get_lines()
        assert_array_equal(objective.get_ydata(), history["objective"])
        cycles = np.arange(1, model.n_cycles_ + 1)
        assert_array_equal(objective.get_xdata(), cycles)
        errors = [line.get_ydata() for line in display.axes_[1, 0].get_lines()]
        assert len(errors) == n_outputs
        assert_array_equal(
            np.column_stack(errors), history["rmse"].reshape(-1, n_outputs)
        )
        for name in ("objective", "rmse", "n_active_weights"):
            assert_array_equal(display.curves[name][0], history[name])
    assert legend_texts(display.axes_[1, 0]) == ["y0", "y1"]


def test_convergence_of_an_ensemble(single):
    ensemble = Ensemble([single, single], np.array([0.5, 0.5]))
    display = ConvergenceDisplay.from_estimator(ensemble)
    assert [len(curves) for curves in display.curves.values()] == [2, 2, 2]
    assert len(display.axes_[0, 0].get_lines()) == 2


def test_convergence_of_one_cycle_is_a_point():
    zero = [np.zeros(1)]
    curves = {"objective": [np.ones(1)], "rmse": zero, "n_active_weights": zero}
    display = ConvergenceDisplay([np.ones(1)], curves).plot()
    assert display.axes_[0, 0].get_lines()[0].get_marker() == "o"
    assert display.axes_[1, 0].get_yscale() == "linear"


def curves_of(display):
    """Label, horizontal and vertical positions of the lines of the one panel."""
    assert display.axes_.shape == (1, 1)
    return {line.get_label(): line.get_data() for line in display.ax_.get_lines()}


@pytest.mark.parametrize("kind", ["trained", "grown"])
def test_convergence_of_an_rbm(request, kind):
    rbm = request.getfixturevalue(kind)
    display = ConvergenceDisplay.from_estimator(rbm)
    lines, history = curves_of(display), rbm.history_
    assert list(lines) == legend_texts(display.ax_) == ["training", "validation"]
    for label, name in [
        ("training", "log_likelihood"),
        ("validation", "validation_log_likelihood"),
    ]:
        # the entries without an estimate are left out, so that lines join the others
        x, y = lines[label]
        assert_array_equal(x, history["n_updates"][::2])
        assert_array_equal(y, history[name][::2])
    assert display.ax_.get_xlabel() == "parameter updates"
    assert "nats" in display.ax_.get_ylabel()


def test_no_line_joins_a_model_and_the_one_after_a_return(trained):
    values = -np.arange(len(trained.history_["seconds"]), dtype=float)
    updates = np.arange(100.0, 100.0 * (len(values) + 1), 100.0)
    updates[3:] -= 200.0
    rbm = with_history(
        trained, n_updates=updates, log_likelihood=values,
        validation_log_likelihood=values,
    )  # fmt: skip
    lines = curves_of(ConvergenceDisplay.from_estimator(rbm))
    for label in ("training", "validation"):
        x, y = lines[label]
        assert_array_equal(x, np.insert(updates, 3, np.nan))
        assert_array_equal(y, np.insert(values, 3, np.nan))


def test_rbm_that_tracked_one_likelihood(trained):
    nothing = np.full(len(trained.history_["seconds"]), np.nan)
    for rbm in (
        with_history(trained, log_likelihood=None),
        with_history(trained, log_likelihood=nothing),
    ):
        display = ConvergenceDisplay.from_estimator(rbm)
        assert list(curves_of(display)) == ["validation"]
        assert set(display.curves) == {"validation_log_likelihood"}


def test_rbm_that_did_not_count_updates(trained, grown):
    display = ConvergenceDisplay.from_estimator(with_history(grown, n_updates=None))
    assert_array_equal(display.x[0], grown.history_["n_components"])
    assert display.ax_.get_xlabel() == "hidden units"
    n = len(trained.history_["seconds"])
    for sizes in (None, np.full(n, 4.0)):
        rbm = with_history(trained, n_updates=None, n_components=sizes)
        display = ConvergenceDisplay.from_estimator(rbm)
        assert_array_equal(display.x[0], np.arange(1, n + 1))
        assert display.ax_.get_xlabel() == "epoch"


def test_sizes_that_raced_are_no_rounds_of_the_winner(trained):
    """Their updates were counted anew for each, so that lines would go to and fro."""
    n = len(trained.history_["seconds"])
    sizes = np.full(n, np.nan)
    sizes[:2] = 16, 32
    rbm = with_history(trained, n_components=sizes)
    display = ConvergenceDisplay.from_estimator(rbm)
    assert_array_equal(display.x[0], rbm.history_["n_updates"][2:])
    for name, (values,) in display.curves.items():
        assert_array_equal(values, rbm.history_[name][2:])
    # a comparison that was interrupted has no rounds
    rbm = with_history(trained, n_components=np.arange(1.0, n + 1.0))
    display = ConvergenceDisplay.from_estimator(rbm)
    assert_array_equal(display.x[0], rbm.history_["n_updates"])


def test_rbm_at_the_end_of_a_pipeline(trained):
    pipeline = make_pipeline(FunctionTransformer(), trained)
    display = ConvergenceDisplay.from_estimator(pipeline)
    assert_array_equal(display.x[0], trained.history_["n_updates"])


def test_rbm_that_tracked_nothing_says_how_to(trained, grown):
    for rbm, name in [
        (trained, "ContrastiveDivergenceRBM"),
        (grown, "FrankWolfeRBM"),
    ]:
        nothing = np.full(len(rbm.history_["seconds"]), np.nan)
        for model in (
            untracked(rbm),
            tracked(rbm, log_likelihood=nothing, validation_log_likelihood=nothing),
        ):
            message = rf"{name} has not tracked its likelihood: .* fit\(X, X_val"
            with pytest.raises(ValueError, match=message):
                ConvergenceDisplay.from_estimator(model)


def test_an_rbm_without_a_history_says_how_to_get_one():
    """Blocks of rows leave no history, and no model that was copied has one."""
    rows = np.eye(6)
    copied = FrankWolfeRBM.from_bernoulli_rbm(bernoulli_rbm(), rows)
    for rbm, display in [
        (ContrastiveDivergenceRBM(2).partial_fit(rows), ConvergenceDisplay),
        (copied, ConvergenceDisplay),
        (copied, GrowthDisplay),
    ]:
        assert not rbm.history_
        message = rf"{type(rbm).__name__} has not tracked its likelihood: "
        with pytest.raises(ValueError, match=message):
            display.from_estimator(rbm)


def test_an_estimator_without_this_history_is_named():
    with pytest.raises(ValueError, match="Network does not record objective, rmse, n_"):
        ConvergenceDisplay.from_estimator(Network([np.ones((2, 1), dtype=bool)]))
    with pytest.raises(ValueError, match="BernoulliRBM does not record objective"):
        ConvergenceDisplay.from_estimator(bernoulli_rbm())
