"""What a fit says about lags that it was not given."""

import numpy as np
import pytest
from free_run_cases import fit, missing, output_error

STATIC = dict(focus="prediction", reg_lambda=1.0)


def delayed(n_rows=500, delay=8, seed=0):
    """The first input acts after a delay, the second at once."""
    rng = np.random.default_rng(seed)
    U, y = rng.standard_normal((n_rows, 2)), np.zeros(n_rows)
    for t in range(delay, n_rows):
        y[t] = 0.5 * y[t - 1] + U[t - delay, 0] + 0.5 * U[t, 1]
        y[t] += 0.2 * rng.standard_normal()
    return U, y


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("output", ["level", "difference"])
def test_a_dead_time_is_seen(seed, output):
    U, y = delayed(seed=seed)
    model = fit(U, y, 4, 2, output=output, hidden_layer_sizes=2, **STATIC)
    assert list(model.longer_lags_) == ["x0", "x1", "y"]
    # all but the noise of variance .04 beside 1
    assert model.longer_lags_["x0"] > 0.8
    assert model.longer_lags_["x1"] < 0.1


@pytest.mark.parametrize("delay", [9, 14, 20])
def test_a_dead_time_far_behind_the_lags_is_seen(delay):
    U, y = delayed(delay=delay)
    model = fit(U, y, 3, 3, hidden_layer_sizes=(), **STATIC)
    assert model.longer_lags_["x0"] > 0.8


@pytest.mark.parametrize("seed", range(3))
def test_lags_that_reach_far_enough_leave_nothing(seed):
    U, y = delayed(seed=seed)
    lags = {"x0": [7, 8, 9], "x1": 1}
    model = fit(U, y, lags, 1, hidden_layer_sizes=2, **STATIC)
    assert max(model.longer_lags_.values()) < 0.08


def test_against_the_formula():
    U, y = delayed(60)
    model = fit(U, y, 1, 1, hidden_layer_sizes=(), **STATIC)
    rows = np.arange(6, 60)
    residual = (y - model.predict(U, y))[rows]
    Z = [np.ones(54)]
    Z += [U[rows - lag, k] for k in (0, 1) for lag in (0, 1)] + [y[rows - 1]]
    more = [U[rows - lag, 0] for lag in range(2, 7)]
    squares = []
    for columns in (Z, Z + more):
        X = np.column_stack(columns)
        left = residual - X @ np.linalg.lstsq(X, residual)[0]
        squares.append(left @ left / (54 - len(columns)))
    expected = 1.0 - squares[1] / squares[0]
    assert expected > 0.0
    assert model.longer_lags_["x0"] == pytest.approx(expected, rel=1e-8)


def test_gaps_sessions_and_few_rows():
    U, y = delayed(200)
    model = fit(
        missing(U, 50),
        missing(y, 90),
        4,
        2,
        sessions=np.repeat([0, 1], 100),
        **STATIC,
    )
    assert model.longer_lags_["x0"] > 0.5
    few = fit(U[:14], y[:14], 1, 1, hidden_layer_sizes=(), **STATIC)
    assert np.isnan(few.longer_lags_["x0"])


def test_it_is_said_where_it_matters(capsys):
    U, y = delayed()
    fit(U, y, 4, 2, verbose=True, hidden_layer_sizes=(), **STATIC)
    assert "longer lags of x0 explain" in capsys.readouterr().out
    u, y, _ = output_error(100)
    assert not hasattr(fit(u, y), "longer_lags_")
