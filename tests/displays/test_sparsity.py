"""SparsityDisplay: counts of masks, and what it draws."""

import numpy as np
import pytest
from display_models import Ensemble, Network

from skbayesnn.displays import SparsityDisplay


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


def test_sparsity_of_an_ensemble():
    full, empty = np.ones((2, 3), dtype=bool), np.zeros((2, 3), dtype=bool)
    out = np.ones((3, 1), dtype=bool)
    networks = [Network([full, out]), Network([empty, out])]
    ensemble = Ensemble(networks, np.array([0.75, 0.25]))
    display = SparsityDisplay.from_estimator(ensemble)
    np.testing.assert_allclose(display.weights_kept, [0.75 * 6, 3])
    np.testing.assert_allclose(display.weights_total, [6, 3])
    np.testing.assert_allclose(display.units_kept, [0.75 * 2, 3])
    np.testing.assert_allclose(display.magnitudes[0], np.full((2, 3), 1.5))
    assert "mean of 2 networks" in display.axes_[0, 0].get_title()
    assert display.axes_[0, 0].texts[0].get_text() == "4.5 of 6"

    networks[1] = Network([full, np.ones((3, 3), dtype=bool), out])
    with pytest.raises(ValueError, match="must have the same layers"):
        SparsityDisplay.from_estimator(ensemble)
    networks[1] = Network([full[:, :2], out[:2]])
    with pytest.raises(ValueError, match="layers of the same sizes"):
        SparsityDisplay.from_estimator(ensemble)


@pytest.mark.parametrize("kind", ["fraction", "weights"])
def test_sparsity_when_everything_is_pruned(kind):
    masks = [np.zeros((5, 2), dtype=bool), np.zeros((2, 1), dtype=bool)]
    display = SparsityDisplay.from_estimator(Network(masks), kind=kind)
    assert not display.weights_kept.any() and not display.units_kept.any()
    display.figure_.draw_without_rendering()


def test_sparsity_kinds(single):
    with pytest.raises(
        ValueError, match="kind must be 'fraction' or 'weights'; got 'x'"
    ):
        SparsityDisplay.from_estimator(single, kind="x")


def test_an_estimator_without_masks_is_named():
    other = Network([])
    del other.masks_
    with pytest.raises(ValueError, match="Network has no masks_: SparsityDisplay"):
        SparsityDisplay.from_estimator(other)
