"""What holds for every display: given axes, one figure, fitted estimators."""

import builtins

import pytest
from display_models import U, Y
from sklearn.exceptions import NotFittedError

from skbayesnn import FrankWolfeRBM, SparseBayesNARXRegressor
from skbayesnn.displays import (
    ComponentsDisplay,
    ConvergenceDisplay,
    FeatureWeightsDisplay,
    GrowthDisplay,
    LagRelevanceDisplay,
    ResidualAnalysisDisplay,
    SamplesDisplay,
    SimulationDisplay,
    SparsityDisplay,
)

plt = pytest.importorskip("matplotlib.pyplot")

OF_REGRESSORS = {
    "simulation": lambda m, ax: SimulationDisplay.from_estimator(m, U, Y, ax=ax),
    "sparsity": lambda m, ax: SparsityDisplay.from_estimator(m, ax=ax),
    "lags": lambda m, ax: LagRelevanceDisplay.from_estimator(m, ax=ax),
    "residuals": lambda m, ax: ResidualAnalysisDisplay.from_estimator(m, U, Y, ax=ax),
    "convergence": lambda m, ax: ConvergenceDisplay.from_estimator(m, ax=ax),
}
OF_RBMS = {
    "rbm convergence": lambda m, ax: ConvergenceDisplay.from_estimator(m, ax=ax),
    "growth": lambda m, ax: GrowthDisplay.from_estimator(m, ax=ax),
    "components": lambda m, ax: ComponentsDisplay.from_estimator(m, ax=ax),
    "feature weights": lambda m, ax: FeatureWeightsDisplay.from_estimator(m, ax=ax),
    "samples": lambda m, ax: SamplesDisplay.from_estimator(m, n=4, n_steps=2, ax=ax),
}
MAKERS = {**OF_REGRESSORS, **OF_RBMS}
every_display = pytest.mark.parametrize("name", MAKERS)


@pytest.fixture
def make(name):
    return MAKERS[name]


@pytest.fixture
def model(request, name):
    """A fitted estimator that the display draws."""
    return request.getfixturevalue("grown" if name in OF_RBMS else "double")


@every_display
def test_one_figure_a_display_and_given_axes(model, make):
    alone = make(model, None)
    # it makes one figure, which can be laid out
    assert plt.get_fignums() == [alone.figure_.number]
    alone.figure_.draw_without_rendering()
    n_panels = alone.axes_.size
    figure, axes = plt.subplots(1, 2, figsize=(14, 8))
    inside = make(model, axes[1])
    assert inside.figure_ is figure and inside.ax_ is inside.axes_.flat[0]
    assert all(panel.figure is figure for panel in filter(None, inside.axes_.flat))
    assert axes[0].axison
    # the signals of the lags stand side by side in it; other displays of several
    # panels divide it
    divided = n_panels > 1 and not isinstance(inside, LagRelevanceDisplay)
    assert axes[1].axison != divided
    figure, axes = plt.subplots(n_panels, 1, squeeze=False)
    into = make(model, axes)
    assert into.figure_ is figure
    assert list(into.axes_.flat) == list(axes.flat)
    figure.draw_without_rendering()
    wrong = plt.figure().subplots(n_panels + 1, 1)
    with pytest.raises(ValueError, match=f"hold {n_panels} of them"):
        make(model, wrong)
    alone = plt.figure().add_axes((0.1, 0.1, 0.8, 0.8))
    if divided:
        with pytest.raises(ValueError, match="ax must be part of a grid"):
            make(model, alone)
    else:
        assert make(model, alone).ax_ is alone


@every_display
def test_an_estimator_has_to_be_fitted(name, make):
    with pytest.raises(NotFittedError):
        make(FrankWolfeRBM() if name in OF_RBMS else SparseBayesNARXRegressor(), None)


@every_display
def test_missing_matplotlib_is_named(model, make, monkeypatch):
    actual = builtins.__import__

    def without(name, *arguments, **keywords):
        if name.split(".")[0] == "matplotlib":
            raise ImportError("No module named 'matplotlib'")
        return actual(name, *arguments, **keywords)

    display = make(model, None)
    monkeypatch.setattr(builtins, "__import__", without)
    name = type(display).__name__
    message = r" requires matplotlib: pip install matplotlib"
    with pytest.raises(ImportError, match=f"{name}.from_estimator{message}"):
        make(model, None)
    with pytest.raises(ImportError, match=f"{name}.plot{message}"):
        display.plot()
