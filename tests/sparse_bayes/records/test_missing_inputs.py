"""Inputs that are missing in a free run: told, held, or interpolated."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.exceptions import MissingInputWarning
from skbayesnn.sparse_bayes.records.missing_inputs import fill_missing

N = 120


def system():
    rng = np.random.default_rng(0)
    U, y = np.cumsum(rng.uniform(-1, 1, size=(N, 2)), axis=0), np.zeros(N)
    for t in range(1, N):
        y[t] = 0.8 * y[t - 1] + U[t - 1] @ [1.0, -0.5]
    return U, y + 0.01 * rng.standard_normal(N)


U, Y = system()
GAPS = U.copy()
GAPS[50:53, 1] = np.nan
HELD, LINE = GAPS.copy(), GAPS.copy()
HELD[50:53, 1] = U[49, 1]
LINE[50:53, 1] = U[49, 1] + np.arange(1, 4) / 4.0 * (U[53, 1] - U[49, 1])


@pytest.fixture(scope="module")
def model():
    model = SparseBayesNARXRegressor(1, 1, hidden_layer_sizes=(), reg_lambda=0.0)
    return model.fit(U, Y)


def test_filling_by_sessions():
    nan = np.nan
    U = np.array([[nan, 1.0, nan, nan, 4.0], [nan, nan, nan, 6.0, nan]]).T
    assert fill_missing(U, np.array([0, 5]), None) is U
    before, starts = U.copy(), np.array([0, 3, 5])
    assert_array_equal(
        fill_missing(U, starts, "hold").T,
        [[1.0, 1.0, 1.0, 4.0, 4.0], [nan, nan, nan, 6.0, 6.0]],
    )
    assert_array_equal(
        fill_missing(U, np.array([0, 5]), "interpolate").T,
        [[1.0, 1.0, 2.0, 3.0, 4.0], [6.0] * 5],
    )
    assert_array_equal(
        fill_missing(U, np.array([0, 5]), "hold").T,
        [[1.0, 1.0, 1.0, 1.0, 4.0], [6.0] * 5],
    )
    assert_array_equal(U, before)


def test_a_free_run_tells_where_it_ends(model):
    told = "Input x1 is missing in row 50, and 3 rows lack an input.* 70 rows are NaN.*"
    told += "first of them row 50.* fill_inputs='hold' or 'interpolate'"
    for arguments in (dict(y_init=Y[:5]), dict(y=Y, horizon=None), {}):
        with pytest.warns(MissingInputWarning, match=told):
            run = model.predict(GAPS, **arguments)
        assert_array_equal(np.isnan(run), np.arange(N) >= 50)
        with pytest.warns(MissingInputWarning, match=told):
            model.sample_y(GAPS, **arguments, n_samples=2)
    # ahead of measured outputs a run goes on: nothing is to be told
    assert np.isnan(model.predict(GAPS, Y)).sum() == 4


@pytest.mark.parametrize("way, expected", [("hold", HELD), ("interpolate", LINE)])
def test_missing_inputs_are_filled(model, way, expected):
    fill, start = {"fill_inputs": way}, {"y_init": Y[:5]}
    assert_array_equal(
        model.predict(GAPS, **start, **fill), model.predict(expected, **start)
    )
    assert_array_equal(
        model.sample_y(GAPS, **start, n_samples=2, **fill),
        model.sample_y(expected, **start, n_samples=2),
    )
    for horizon in (1, 4, None):
        assert_array_equal(
            model.predict(GAPS, Y, horizon=horizon, **fill),
            model.predict(expected, Y, horizon=horizon),
        )
        assert model.score(GAPS, Y, horizon=horizon, **fill) == model.score(
            expected, Y, horizon=horizon
        )


def test_the_last_input_before_the_record_is_held(model):
    """Of X_init, or of a state."""
    expected = model.predict(HELD, y_init=Y[:5])[50:]
    first, state = model.predict(GAPS[:50], y_init=Y[:5], return_state=True)
    after = model.predict(GAPS[50:], state=state, fill_inputs="hold")
    assert_allclose(after, expected, rtol=1e-10)
    behind = dict(X_init=GAPS[:50], y_init=first)
    after = model.predict(GAPS[50:], **behind, fill_inputs="hold")
    assert_allclose(after, expected, rtol=1e-10)


def test_an_unknown_way_is_refused(model):
    with pytest.raises(ValueError, match="'hold' or 'interpolate'; got 'mean'"):
        model.predict(GAPS, y_init=Y[:5], fill_inputs="mean")
