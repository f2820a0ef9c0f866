"""Annealing of a small model in one call, against the kernels it is made of.

Also run with bounds checks and without the compiler.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rbm_models import random_model

from skbayesnn.rbm.kernels import units
from skbayesnn.rbm.kernels.annealed_path import anneal_small
from skbayesnn.rbm.states import by_feature, product

BETAS = np.array([0.0, 0.3, 0.45, 0.9, 1.0])
SEED, STEP, FIRST_ROW = np.uint64(9), 5, 2


@pytest.fixture(autouse=True)
def _wrap_around():
    """Without the compiler: scalars that wrap around."""
    with np.errstate(over="ignore"):
        yield


@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 5, 3), (12, 19, 33)])
@pytest.mark.parametrize("betas", [BETAS, np.ascontiguousarray(BETAS[::-1])])
def test_it_is_its_kernels_one_by_one(shape, betas):
    n_rows, n_units, n_features = shape
    rbm, _ = random_model(n_units, n_features)
    rng = np.random.default_rng(n_rows)
    base = rng.normal(size=n_features).astype(np.float32)
    states = (rng.random((n_rows, n_features)) < 0.5).astype(np.uint8)
    slope = rng.normal(size=n_rows)
    transposed = by_feature(rbm.weights)

    v, expected_slope = states.copy(), slope.copy()
    expected, h = np.zeros(n_rows), np.empty((n_rows, n_units), np.uint8)
    for k, (before, beta) in enumerate(zip(betas[:-1], betas[1:], strict=True)):
        expected += (beta - before) * expected_slope
        x, at = product(v, transposed), 2 * (STEP + k)
        units.anneal_hidden(
            x, rbm.hidden, before, beta, SEED, at, FIRST_ROW, expected, h
        )
        y, at = product(h, rbm.weights), at + 1
        units.anneal_visible(
            y, base, rbm.visible, beta, SEED, at, FIRST_ROW, expected_slope, v
        )

    log_weights = np.zeros(n_rows)
    anneal_small(
        betas,
        transposed.panels,
        rbm.weights,
        rbm.hidden,
        base,
        rbm.visible,
        (SEED, STEP, FIRST_ROW),
        slope,
        log_weights,
        states,
    )
    assert_array_equal(states, v)
    assert_array_equal(slope, expected_slope)
    assert_allclose(log_weights, expected, rtol=1e-12, atol=1e-12)


def test_one_temperature_is_no_move():
    rbm, _ = random_model(2, 3)
    states, slope = np.ones((4, 3), np.uint8), np.ones(4)
    log_weights = np.zeros(4)
    anneal_small(
        np.array([0.5]),
        by_feature(rbm.weights).panels,
        rbm.weights,
        rbm.hidden,
        np.zeros(3, np.float32),
        rbm.visible,
        (SEED, STEP, FIRST_ROW),
        slope,
        log_weights,
        states,
    )
    assert states.all()
    assert_array_equal(slope, 1.0)
    assert_array_equal(log_weights, 0.0)
