"""Models that predict differences and sum them up."""

import pickle
import warnings

import numpy as np
import pytest
from fitted_models import fitted_network
from free_run_cases import fit, missing, rms, two_by_two
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.exceptions import DivergenceWarning
from skbayesnn.sparse_bayes.prediction import posterior

NOISE = 0.01
CLOSE = dict(rtol=1e-8, atol=1e-9)


def cart(n_rows=400, seed=0, noise=0.0, friction=0.3):
    """A mass on a rail, pushed to and fro; its position far from zero."""
    rng = np.random.default_rng(seed)
    u = np.repeat(rng.uniform(-1, 1, size=n_rows // 5), 5)[:, None]
    y, v = np.full(n_rows, 1000.0), 0.0
    for t in range(1, n_rows):
        v = 0.9 * v + 0.5 * u[t - 1, 0] - friction * np.tanh(2.0 * v)
        y[t] = y[t - 1] + v
    return u, y + noise * rng.standard_normal(n_rows)


def model_of(focus="prediction", **options):
    u, y = cart(noise=NOISE)
    options = dict(focus=focus, output="difference", reg_lambda=1.0) | options
    return fit(u, y, 2, 2, **options), u, y


@pytest.mark.parametrize("focus", ["prediction", "simulation"])
def test_a_free_run_is_the_sum_of_its_steps(focus):
    model, u, y = model_of(focus)
    path = model.predict(u, y_init=y[:3])
    assert_array_equal(path[:3], y[:3])
    # each row follows from those before it
    assert_allclose(model.predict(u, path), path, rtol=1e-12)
    assert_allclose(model.predict(u, path, horizon=4), path, rtol=1e-12)


@pytest.mark.parametrize("focus", ["prediction", "simulation"])
def test_every_way_to_simulate_gives_the_same(focus):
    model, u, y = model_of(focus, n_estimators=2)
    path = model.predict(u, y_init=y[:3])
    head, state = model.predict(u[:100], y_init=y[:3], return_state=True)
    tail = model.predict(u[100:], state=state)
    assert_allclose(np.concatenate([head, tail]), path, **CLOSE)
    stream = model.stream(u[:3], y[:3])
    assert_allclose(stream.run(u[3:50]), path[3:50], **CLOSE)
    copied = pickle.loads(pickle.dumps(stream))
    assert_allclose([copied.step(row) for row in u[50:90]], path[50:90], **CLOSE)
    # behind a measured output, one step ahead
    one_step = model.predict(u, y)
    stream = model.stream(u[:3], y[:3])
    for t in range(3, 20):
        assert_allclose(stream.step(u[t]), one_step[t], **CLOSE)
        stream.update(y[t])
    restored = pickle.loads(pickle.dumps(model))
    assert_array_equal(restored.predict(u, y_init=y[:3]), path)


def test_a_linear_model_against_its_formula():
    u, y = cart(friction=0.0)
    model = fit(
        u, y, 2, [1, 3], output="difference", focus="prediction", hidden_layer_sizes=()
    )
    names = ["x0(t)", "x0(t-1)", "x0(t-2)", "diff(y)(t-1)", "diff(y)(t-3)"]
    assert list(model.lag_relevance_) == names
    assert model.max_lag_ == 4
    (coefs,), (constant,) = posterior.unscaled_layers(fitted_network(model))
    path = y.copy()
    for t in range(4, len(y)):
        past = [*u[t - 2 : t + 1, 0][::-1], path[t - 1] - path[t - 2]]
        past.append(path[t - 3] - path[t - 4])
        path[t] = path[t - 1] + constant[0] + past @ coefs[:, 0]
    assert_allclose(model.predict(u, y_init=y[:4]), path, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_an_integrating_system_is_simulated_anywhere(seed):
    """Only differences matter: a record that starts elsewhere moves with its start."""
    model, _, _ = model_of(max_cycles=100)
    u, y = cart(seed=seed + 10)
    path = model.predict(u, y_init=y[:3])
    assert rms(path - y) < 0.15 * y.std()
    assert_allclose(model.predict(u, y_init=y[:3] - 1e4), path - 1e4, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.ExtrapolationWarning")
def test_how_far_it_goes_is_no_divergence():
    model, _, y = model_of(hidden_layer_sizes=())
    push = np.full((40_000, 1), 0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = model.predict(push, y_init=y[:3])
    assert path[-1] - path[0] > 200.0 * y.std()
    # steps far beyond those of the record are
    with pytest.warns(DivergenceWarning):
        path = model.predict(1e4 * push, y_init=y[:3])
    assert np.isnan(path[-1])


@pytest.mark.parametrize(
    "focus", [pytest.param("prediction", marks=pytest.mark.slow), "simulation"]
)
def test_draws_have_the_spread_of_the_bands(focus):
    model, u, y = model_of(focus, hidden_layer_sizes=())
    for arguments in (dict(y_init=y[:3]), dict(y=y), dict(y=y, horizon=5)):
        mean, std = model.predict(u, **arguments, return_std=True)
        drawn = model.sample_y(u, **arguments, n_samples=1000)
        assert_allclose(drawn.std(axis=1)[3:], std[3:], rtol=0.15)
        error = np.abs(drawn.mean(axis=1) - mean)[3:]
        assert (error < 5.0 * std[3:] / np.sqrt(1000)).all()


def test_errors_add_up_in_the_bands():
    """With noise in every step the spread grows like that of a random walk."""
    model, u, y = model_of()
    _, std = model.predict(u, y_init=y[:3], return_std=True)
    assert (np.diff(std[3:]) > 0.0).all()
    assert std[-1] > 10.0 * std[3]


@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.MissingInputWarning")
def test_a_missing_input_ends_a_free_run_and_a_missing_output_its_windows():
    model, u, y = model_of()
    path = model.predict(missing(u, 50), y_init=y[:3])
    assert np.isfinite(path[:50]).all()
    assert np.isnan(path[50:]).all()
    one_step = model.predict(u, missing(y, 50))
    assert_array_equal(np.flatnonzero(np.isnan(one_step)), [51, 52, 53])
    stream = model.stream(u[:3], y[:3])
    assert np.isfinite(stream.step(u[3]))
    assert np.isnan(stream.step([np.nan]))
    assert np.isnan(stream.step(u[5]))


@pytest.mark.parametrize(
    "initial_conditions",
    ["measured", pytest.param("estimated", marks=pytest.mark.slow)],
)
def test_two_outputs_in_sessions(initial_conditions):
    U, Y = two_by_two()
    sessions = np.repeat([0, 1], 100)
    model = fit(
        U,
        Y,
        1,
        {"y0": 2, "y1": [2]},
        sessions=sessions,
        output="difference",
        initial_conditions=initial_conditions,
        n_restarts=2,
        selection="validation",
    )
    assert model.max_lag_ == 3
    path, std = model.predict(U, Y, horizon=None, sessions=sessions, return_std=True)
    assert np.isfinite(path).all()
    assert np.isfinite(std).all()
    assert_allclose(
        model.predict(U, path, sessions=sessions, horizon=2), path, rtol=1e-9
    )
    # from fewer outputs than the lags need
    assert np.isfinite(model.predict(U, y_init=Y[:1])).all()


def test_constant_steps_are_a_constant_drift():
    y = 5.0 * np.arange(60.0)
    with pytest.warns(UserWarning, match="y is constant"):
        model = SparseBayesNARXRegressor(output="difference").fit(None, y)
    assert_allclose(model.predict(np.empty((60, 0)), y_init=y[:3]), y, rtol=1e-6)


def test_a_warm_start_stays_with_what_it_predicts():
    u, y = cart(noise=NOISE)
    model, _, _ = model_of(warm_start=True)
    with pytest.raises(ValueError, match="Keep .*output"):
        model.set_params(output="level").fit(u, y)
