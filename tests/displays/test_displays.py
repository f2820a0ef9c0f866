"""Displays: the numbers they hold against independent ones, and what they draw."""

import builtins
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skbayesnn import SparseBayesMLPRegressor, SparseBayesNARXRegressor
from skbayesnn.displays import (
    ConvergenceDisplay,
    LagRelevanceDisplay,
    ResidualAnalysisDisplay,
    SimulationDisplay,
    SparsityDisplay,
)
from skbayesnn.metrics import residual_analysis

plt = pytest.importorskip("matplotlib.pyplot")

N = 160
SESSIONS = np.repeat([0, 1], [70, 90])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def simulated_system(seed=0):
    rng = np.random.default_rng(seed)
    U, Y = rng.normal(size=(N, 2)), np.zeros((N, 2))
    for t in range(1, N):
        Y[t, 0] = 0.5 * Y[t - 1, 0] + np.tanh(U[t - 1, 0])
        Y[t, 1] = 0.3 * Y[t - 1, 1] + U[t - 1, 1]
        Y[t] += 0.05 * rng.normal(size=2)
    return U, Y


U, Y = simulated_system()


def fit(hidden, y, **parameters):
    model = SparseBayesNARXRegressor(
        2, 2, hidden_layer_sizes=hidden, max_cycles=15, random_state=0, **parameters
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(U, y)


@pytest.fixture(scope="module")
def single():
    """One output, one hidden layer."""
    return fit((4,), Y[:, 0])


@pytest.fixture(scope="module")
def double():
    """Two outputs, two hidden layers."""
    return fit((4, 3), Y)


class Committee(RegressorMixin, BaseEstimator):
    """What a display may ask of a committee."""

    def __init__(self, estimators, weights):
        self.estimators_ = estimators
        self.estimator_weights_ = weights

    def fit(self, X, y):
        return self


class Network(RegressorMixin, BaseEstimator):
    """A fitted network of given masks; all its weights are 2."""

    def __init__(self, masks, skip=None):
        self.masks_ = masks
        self.coefs_ = [np.full(mask.shape, 2.0) for mask in masks]
        self.skip_mask_ = skip
        self.skip_coef_ = None if skip is None else np.full(skip.shape, -3.0)

    def fit(self, X, y):
        return self


class Diverging(RegressorMixin, BaseEstimator):
    """A lagged model whose every prediction ends in NaN."""

    def __init__(self, n_predicted=40):
        self.n_predicted = n_predicted
        self.max_lag_ = 2

    def fit(self, X, y):
        return self

    def predict(self, X, y=None, *, horizon=1, sessions=None, return_std=False):
        y_pred = np.zeros(len(X))
        y_pred[self.n_predicted :] = np.nan
        warnings.warn("3 predicted rows diverged", RuntimeWarning, stacklevel=2)
        return (y_pred, np.ones(len(X))) if return_std else y_pred


def legend_texts(panel):
    return [text.get_text() for text in panel.get_legend().get_texts()]


# -- simulation ----------------------------------------------------------------------


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
    nothing.figure_.canvas.draw()


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


# -- sparsity ------------------------------------------------------------------------


def test_sparsity_of_a_fit(double):
    display = SparsityDisplay.from_estimator(double)
    masks = [*double.masks_, double.skip_mask_]
    assert display.weight_names == [
        "inputs → hidden 1",
        "hidden 1 → hidden 2",
        "hidden 2 → outputs",
        "inputs → outputs (skip)",
    ]
    np.testing.assert_array_equal(display.weights_kept, [np.sum(m) for m in masks])
    np.testing.assert_array_equal(display.weights_total, [10 * 4, 4 * 3, 3 * 2, 10 * 2])
    assert display.unit_names == ["inputs", "hidden 1", "hidden 2"]
    np.testing.assert_array_equal(display.units_total, [10, 4, 3])
    assert display.units_kept[0] == np.count_nonzero(double.feature_relevance_)
    assert display.units_kept[1:].sum() == double.history_["n_active_units"][-1]
    coefs = [*double.coefs_, double.skip_coef_]
    for magnitude, coef in zip(display.magnitudes, coefs, strict=True):
        np.testing.assert_array_equal(magnitude, np.abs(coef))
    lengths = [bar.get_width() for bar in display.axes_[0, 0].patches]
    expected = 100 * display.weights_kept / display.weights_total
    np.testing.assert_allclose(lengths, [100.0] * 4 + list(expected))


def test_sparsity_of_a_skip_path():
    masks = [np.eye(3, 4, dtype=bool), np.zeros((4, 1), dtype=bool)]
    masks[0][1] = False
    skip = np.array([[False], [True], [False]])
    display = SparsityDisplay.from_estimator(Network(masks, skip))
    assert display.weight_names[-1] == "inputs → outputs (skip)"
    np.testing.assert_array_equal(display.weights_kept, [2, 0, 1])
    # the skip path alone keeps the second input
    np.testing.assert_array_equal(display.units_kept, [3, 0])
    np.testing.assert_array_equal(display.magnitudes[-1], 3.0 * skip)
    assert display.plot(kind="weights").axes_.shape == (1, 3)


def test_sparsity_of_a_committee():
    full, empty = np.ones((2, 3), dtype=bool), np.zeros((2, 3), dtype=bool)
    out = np.ones((3, 1), dtype=bool)
    networks = [Network([full, out]), Network([empty, out])]
    committee = Committee(networks, np.array([0.75, 0.25]))
    display = SparsityDisplay.from_estimator(committee)
    np.testing.assert_allclose(display.weights_kept, [0.75 * 6, 3])
    np.testing.assert_allclose(display.weights_total, [6, 3])
    np.testing.assert_allclose(display.units_kept, [0.75 * 2, 3])
    np.testing.assert_allclose(display.magnitudes[0], np.full((2, 3), 1.5))
    assert "mean of 2 networks" in display.axes_[0, 0].get_title()
    assert display.axes_[0, 0].texts[0].get_text() == "4.5 of 6"

    networks[1] = Network([full, np.ones((3, 3), dtype=bool), out])
    with pytest.raises(ValueError, match="must have the same layers"):
        SparsityDisplay.from_estimator(committee)
    networks[1] = Network([full[:, :2], out[:2]])
    with pytest.raises(ValueError, match="layers of the same sizes"):
        SparsityDisplay.from_estimator(committee)


@pytest.mark.parametrize("kind", ["share", "weights"])
def test_sparsity_when_everything_is_pruned(kind):
    masks = [np.zeros((5, 2), dtype=bool), np.zeros((2, 1), dtype=bool)]
    display = SparsityDisplay.from_estimator(Network(masks), kind=kind)
    assert not display.weights_kept.any() and not display.units_kept.any()
    display.figure_.canvas.draw()


def test_sparsity_kinds(single):
    with pytest.raises(ValueError, match="kind must be 'share' or 'weights'; got 'x'"):
        SparsityDisplay.from_estimator(single, kind="x")


# -- relevance of lags ---------------------------------------------------------------


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


def test_lag_relevance_wraps_and_survives_full_pruning():
    model = Network([])
    model.lag_relevance_ = {f"a(t-{k})(t-{2 * k})": 0.0 for k in range(1, 7)}
    model.lag_relevance_["u(t)"] = 0.0
    display = LagRelevanceDisplay.from_estimator(model)
    assert display.signals[0] == "a(t-1)" and display.signals[-1] == "u"
    np.testing.assert_array_equal(display.lags, [2, 4, 6, 8, 10, 12, 0])
    assert display.pruned.all()
    assert display.axes_.shape == (2, 4)
    assert display.axes_[1, 3] is None and display.axes_[1, 2] is not None
    display.figure_.canvas.draw()


@pytest.mark.parametrize("n_signals", [3, 4, 9])
@pytest.mark.parametrize("given", ["nothing", "one of two axes"])
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
    display.figure_.canvas.draw()
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


# -- residual analysis ---------------------------------------------------------------


def same_analysis(found, expected):
    for name in ["autocorrelation", "cross_correlation", "squared_both", "product"]:
        for one, other in zip(found[name], expected[name], strict=True):
            np.testing.assert_allclose(one, other)
    np.testing.assert_allclose(found.ljung_box_pvalue, expected.ljung_box_pvalue)


@pytest.mark.parametrize("horizon", [1, 4, None])
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
    every.figure_.canvas.draw()


def test_residual_analysis_takes_names_from_a_frame(single):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(U, columns=["pump", "valve"])
    display = ResidualAnalysisDisplay.from_predictions(Y[:, 0], 0.5 * Y[:, 0], frame)
    assert display.input_names == ["pump", "valve"]
    assert "pump(t−k)" in display.axes_[0, 1].get_title()


# -- convergence ---------------------------------------------------------------------


def test_convergence(single, double):
    for model, n_outputs in [(single, 1), (double, 2)]:
        display = ConvergenceDisplay.from_estimator(model)
        history = model.history_
        assert display.axes_.shape == (3, 1)
        (objective,) = display.axes_[0, 0].get_lines()
        np.testing.assert_array_equal(objective.get_ydata(), history["objective"])
        cycles = np.arange(1, model.n_cycles_ + 1)
        np.testing.assert_array_equal(objective.get_xdata(), cycles)
        errors = [line.get_ydata() for line in display.axes_[1, 0].get_lines()]
        assert len(errors) == n_outputs
        np.testing.assert_array_equal(
            np.column_stack(errors), history["rmse"].reshape(-1, n_outputs)
        )
        np.testing.assert_array_equal(
            display.n_active_weights[0], history["n_active_weights"]
        )
    assert legend_texts(display.axes_[1, 0]) == ["y0", "y1"]


def test_convergence_of_a_committee(single):
    committee = Committee([single, single], np.array([0.5, 0.5]))
    display = ConvergenceDisplay.from_estimator(committee)
    assert len(display.objective) == 2
    assert len(display.axes_[0, 0].get_lines()) == 2


def test_convergence_of_one_cycle_is_a_point():
    display = ConvergenceDisplay([np.ones(1)], [np.zeros((1, 1))], [np.zeros(1)]).plot()
    assert display.axes_[0, 0].get_lines()[0].get_marker() == "o"
    assert display.axes_[1, 0].get_yscale() == "linear"


# -- all of them ---------------------------------------------------------------------

MAKERS = {
    "simulation": lambda m, ax: SimulationDisplay.from_estimator(m, U, Y, ax=ax),
    "sparsity": lambda m, ax: SparsityDisplay.from_estimator(m, ax=ax),
    "lags": lambda m, ax: LagRelevanceDisplay.from_estimator(m, ax=ax),
    "residuals": lambda m, ax: ResidualAnalysisDisplay.from_estimator(m, U, Y, ax=ax),
    "convergence": lambda m, ax: ConvergenceDisplay.from_estimator(m, ax=ax),
}
every_display = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


@every_display
def test_given_axes(double, make):
    n_panels = make(double, None).axes_.size
    figure, axes = plt.subplots(1, 2, figsize=(14, 8))
    inside = make(double, axes[1])
    assert inside.figure_ is figure and inside.ax_ is inside.axes_.flat[0]
    assert all(panel.figure is figure for panel in inside.axes_.flat)
    assert axes[0].axison
    # the signals of the lags stand side by side in it, the other displays divide it
    divided = not isinstance(inside, LagRelevanceDisplay)
    assert axes[1].axison != divided
    figure, axes = plt.subplots(n_panels, 1)
    into = make(double, axes)
    assert into.figure_ is figure
    assert list(into.axes_.flat) == list(axes)
    figure.canvas.draw()
    wrong = plt.figure().subplots(n_panels + 1, 1)
    with pytest.raises(ValueError, match=f"hold {n_panels} of them"):
        make(double, wrong)
    alone = plt.figure().add_axes((0.1, 0.1, 0.8, 0.8))
    if divided:
        with pytest.raises(ValueError, match="ax must be part of a grid"):
            make(double, alone)
    else:
        assert make(double, alone).ax_ is alone


@every_display
def test_one_figure_a_display(double, make):
    display = make(double, None)
    assert plt.get_fignums() == [display.figure_.number]
    display.figure_.canvas.draw()


@every_display
def test_an_estimator_has_to_be_fitted(make):
    with pytest.raises(NotFittedError):
        make(SparseBayesNARXRegressor(), None)


@every_display
def test_missing_matplotlib_is_named(double, make, monkeypatch):
    actual = builtins.__import__

    def without(name, *arguments, **keywords):
        if name.split(".")[0] == "matplotlib":
            raise ImportError("No module named 'matplotlib'")
        return actual(name, *arguments, **keywords)

    display = make(double, None)
    monkeypatch.setattr(builtins, "__import__", without)
    name = type(display).__name__
    message = r" requires matplotlib: pip install skbayesnn\[plot\]"
    with pytest.raises(ImportError, match=f"{name}.from_estimator{message}"):
        make(double, None)
    with pytest.raises(ImportError, match=f"{name}.plot{message}"):
        display.plot()
