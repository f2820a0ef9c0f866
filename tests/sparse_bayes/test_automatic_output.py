"""Levels or differences, chosen by the search."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from search_cases import dynamic, estimator, quietly, record

from skbayesnn.sparse_bayes.learning.integration import may_integrate


def tank(n_rows=240, seed=0):
    """A tank without outflow, filled and drained by a pump that saturates."""
    rng = np.random.default_rng(seed)
    u = np.repeat(rng.uniform(-1.0, 1.0, n_rows // 6), 6)
    level = 3.0 + np.append(0.0, np.cumsum(0.1 * np.tanh(2.0 * u))[:-1])
    return u[:, None], level + 0.01 * rng.standard_normal(n_rows)


@pytest.fixture(scope="module")
def fitted():
    return quietly(estimator((2,), (3.0,), max_cycles=10, cv=4), *tank())


@pytest.mark.slow
def test_a_tank_without_outflow_is_simulated_beyond_its_levels(fitted):
    assert fitted.output == "auto"
    results = fitted.cv_results_
    assert set(results["output"][results["kept"]]) == {"difference"}
    assert all(m.output == "difference" for m in fitted.estimators_)
    assert "for differences" in fitted.summary_
    for seed in range(1, 6):
        u, y = tank(seed=seed)
        path = fitted.predict(u, y_init=y[:3])
        assert np.sqrt(np.mean((path - y) ** 2)) < 0.2 * y.std()
        assert_allclose(fitted.predict(u, y_init=y[:3] + 50.0), path + 50.0)


def test_levels_of_a_system_that_forgets():
    model = quietly(estimator((2,), (3.0,), max_cycles=4), *record())
    assert set(model.cv_results_["output"][2:]) == {"level"}
    asked = quietly(estimator((2,), (3.0,), output="level", max_cycles=4), *record())
    u, y = record(seed=1)
    assert_array_equal(model.predict(u, y_init=y[:2]), asked.predict(u, y_init=y[:2]))


def roll(seed, n_rows=800):
    """Torque and angle of a vehicle that a controller keeps near steps of its angle."""
    rng = np.random.default_rng(seed)
    reference = np.repeat(rng.uniform(-0.5, 0.5, n_rows // 40), 40)
    u, y, rate, torque = np.zeros(n_rows), np.zeros(n_rows), 0.0, 0.0
    angle = 0.0
    for t in range(n_rows):
        u[t] = 6.0 * (reference[t] - angle) - 1.5 * rate + 0.3 * rng.standard_normal()
        y[t] = angle
        torque += 0.33 * (u[t] - torque)
        rate += 0.02 * (8.0 * torque - 0.3 * rate)
        angle += 0.02 * rate
    return u[:, None], y[:, None] + 0.003 * rng.standard_normal((n_rows, 1))


@pytest.mark.parametrize("seed", range(5))
def test_two_integrators_are_seen_in_spite_of_noise(seed):
    u, y = roll(seed)
    assert may_integrate(u, y, np.array([0, len(y)]), len(y) / 4)


def test_one_step_ahead_there_is_no_drift():
    model = quietly(estimator((2,), (3.0,), focus="prediction", max_cycles=4), *tank())
    assert set(model.cv_results_["output"][2:]) == {"level"}


def test_what_was_chosen_is_used_in_every_way(fitted):
    u, y = tank(seed=9)
    path, std = fitted.predict(u, y_init=y[:3], return_std=True)
    assert (std[3:] > 0.0).all() and np.mean(np.abs(path - y) < 2.0 * std) > 0.5
    stream = fitted.stream(u[:3], y[:3])
    assert_allclose(stream.run(u[3:60]), path[3:60], rtol=1e-8)
    drawn = fitted.sample_y(u, y_init=y[:3], n_samples=200)
    assert_allclose(np.median(drawn, axis=1), path, atol=3.0 * std.max())
    restored = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(restored.predict(u, y_init=y[:3]), path)
    space = fitted.to_state_space()
    state = space.initial_state(u[:3], y[:3])
    assert_allclose(space.simulate(u[3:60], state)[:, 0], path[3:60], rtol=1e-8)


@pytest.mark.slow
def test_hidden_states_of_differences():
    model = dynamic(
        kinds="states", hidden_layer_sizes=3, cv=3, n_estimators=1, max_cycles=8
    )
    u, y = tank()
    model = quietly(model, u, y)
    assert [m.output for m in model.estimators_] == ["difference"]
    u, y = tank(seed=3)
    path = model.predict(u, y_init=y[:10])
    assert np.sqrt(np.mean((path - y) ** 2)) < 0.2 * y.std()
    moved = model.predict(u, y_init=y[:10] + 2.0)
    assert_allclose(moved[10:] - 2.0, path[10:], atol=0.05)
