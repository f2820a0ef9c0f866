"""ConvergenceDisplay: the history of a fit, and what it draws."""

import numpy as np
import pytest
from display_models import Ensemble, Network, legend_texts

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn.displays import ConvergenceDisplay


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


def test_convergence_of_an_ensemble(single):
    ensemble = Ensemble([single, single], np.array([0.5, 0.5]))
    display = ConvergenceDisplay.from_estimator(ensemble)
    assert len(display.objective) == 2
    assert len(display.axes_[0, 0].get_lines()) == 2


def test_convergence_of_one_cycle_is_a_point():
    display = ConvergenceDisplay([np.ones(1)], [np.zeros((1, 1))], [np.zeros(1)]).plot()
    assert display.axes_[0, 0].get_lines()[0].get_marker() == "o"
    assert display.axes_[1, 0].get_yscale() == "linear"


def test_an_estimator_without_this_history_is_named():
    rbm = ContrastiveDivergenceRBM(2, max_iter=1, random_state=0)
    rbm.fit(np.eye(4))
    message = "ContrastiveDivergenceRBM does not record objective, rmse, n_active"
    with pytest.raises(ValueError, match=message):
        ConvergenceDisplay.from_estimator(rbm)
    with pytest.raises(ValueError, match="Network does not record objective"):
        ConvergenceDisplay.from_estimator(Network([np.ones((2, 1), dtype=bool)]))
