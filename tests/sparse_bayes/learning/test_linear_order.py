"""The number of states that a linear model needs, as the first of a search."""

import numpy as np
import pytest
from search_cases import quietly

from skbayesnn import DynamicSystemRegressor
from skbayesnn.sparse_bayes.learning.linear_order import least_states

NUMBERS = range(4, 11, 2)


def structure(n_modes, n_rows=600, seed=0):
    """Force, and the acceleration of lightly damped modes with a clearance at one."""
    rng = np.random.default_rng(seed)
    u, y = rng.standard_normal(n_rows), np.zeros(n_rows)
    angles = np.linspace(0.35, 1.6, n_modes)
    position, speed = np.zeros(n_modes), np.zeros(n_modes)
    step = 0.02
    for t in range(n_rows):
        for _ in range(int(1 / step)):
            force = 0.2 * np.clip(position[0], -2.0, 2.0)
            pull = angles**2 * position + 0.02 * angles * speed
            acceleration = u[t] - pull - force
            speed = speed + step * acceleration
            position = position + step * speed
        y[t] = np.sum(acceleration * (-1.0) ** np.arange(n_modes))
    return u[:, None], (y + 0.02 * y.std() * rng.standard_normal(n_rows))[:, None]


def whole(y):
    return np.array([0, len(y)])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n_modes", "least"), [(1, 4), (2, 4), (3, 6), (4, 8)])
def test_every_mode_has_two_states(n_modes, least, seed):
    u, y = structure(n_modes, seed=seed)
    assert least_states(u, y, whole(y), NUMBERS) >= least


@pytest.mark.parametrize("noise", [0.0, 0.05, 1.0])
def test_few_states_are_enough_for_a_system_of_second_order(noise):
    rng = np.random.default_rng(0)
    u, y = rng.standard_normal((500, 1)), np.zeros(502)
    for t in range(500):
        y[t + 2] = 1.6 * y[t + 1] - 0.7 * y[t] + 0.1 * np.tanh(u[t, 0])
    y = y[:500, None] + noise * rng.standard_normal((500, 1))
    assert least_states(u, y, whole(y), NUMBERS) == 4


def test_missing_values_and_sessions_change_nothing():
    (u, y), (u_next, y_next) = structure(4), structure(4, seed=1)
    y[[50, 51, 300]] = np.nan
    u[10] = np.nan
    starts = np.array([0, len(u), len(u) + len(u_next)])
    u, y = np.vstack([u, u_next]), np.vstack([y, y_next])
    assert least_states(u, y, starts, NUMBERS) >= 8


def test_how_a_record_begins_needs_no_states():
    rng = np.random.default_rng(0)
    u, y = rng.standard_normal((400, 1)), 20.0 * 0.9 ** np.arange(400.0)
    y += 0.1 * rng.standard_normal(400)
    assert least_states(u, y[:, None], whole(y), NUMBERS) == 4


@pytest.mark.parametrize(
    ("u", "y"),
    [
        (np.zeros((50, 0)), np.sin(np.arange(50.0))[:, None]),
        (np.ones((50, 1)), np.sin(np.arange(50.0))[:, None]),
        (np.sin(np.arange(50.0))[:, None], np.ones((50, 1))),
        (np.sin(np.arange(50.0))[:, None], np.full((50, 1), np.nan)),
        (np.full((50, 1), np.nan), np.sin(np.arange(50.0))[:, None]),
        (np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]])),
    ],
)
def test_where_nothing_is_told_the_first_number_is_tried(u, y):
    assert least_states(u, y, whole(y), NUMBERS) == 4


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_rows", [20, 60])
def test_few_rows_of_noise_need_no_states(n_rows, seed):
    rng = np.random.default_rng(seed)
    u, y = rng.standard_normal((n_rows, 1)), rng.standard_normal((n_rows, 1))
    assert least_states(u, y, whole(y), NUMBERS) == 4


def test_outputs_that_grow_without_bound_are_no_error():
    u = np.random.default_rng(0).standard_normal((120, 1))
    y = np.exp(0.9 * np.arange(120.0))[:, None] + 0.0 * u
    least = least_states(u, y, whole(y), NUMBERS)
    assert least in NUMBERS


def test_a_search_begins_with_as_many_states_as_a_linear_model_needs():
    u, y = structure(4)
    options = {"max_cycles": 1, "n_estimators": 1, "output": "level", "cv": 3}
    model = DynamicSystemRegressor(("linear", "states"), random_state=0, **options)
    tried = quietly(model, u, y[:, 0]).cv_results_["n_states"]
    assert min(tried[tried > 0]) >= 8
