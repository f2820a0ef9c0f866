"""The linear start: systems that are known are found again."""

import numpy as np
import pytest
import state_space_cases as cases

from skbayesnn.sparse_bayes.learning.realization import (
    LARGEST_MODULUS,
    _damped,
    realize,
)


def responses(A, B, C, D, n):
    powers = [np.linalg.matrix_power(A, k) for k in range(n)]
    return np.array([D, *(C @ power @ B for power in powers)])


def test_the_responses_of_a_linear_system_are_found():
    U, y, _, _ = cases.records((400,))
    found = realize(U, y[:, None], np.array([0, 400]), 2, 10)
    expected = responses(cases.A, cases.B, cases.C, cases.D, 20)
    np.testing.assert_allclose(responses(*found, 20), expected, atol=1e-3)
    eigenvalues = np.linalg.eigvals(found.A)
    np.testing.assert_allclose(
        np.sort_complex(eigenvalues),
        np.sort_complex(np.linalg.eigvals(cases.A)),
        atol=1e-3,
    )


def test_states_have_variance_one():
    U, y, _, _ = cases.records((400,))
    A, B, _, _ = realize(U, y[:, None], np.array([0, 400]), 2, 10)
    x, states = np.zeros(2), []
    for u in U:
        states.append(x)
        x = A @ x + B @ u
    np.testing.assert_allclose(np.std(states, axis=0), 1.0, rtol=1e-9)


def test_windows_do_not_reach_across_sessions_or_missing_outputs():
    U, y, sessions, _ = cases.records((200, 200))
    y[50] = np.nan
    starts = np.array([0, 200, 400])
    found = realize(U, y[:, None], starts, 2, 8)
    expected = responses(cases.A, cases.B, cases.C, cases.D, 20)
    np.testing.assert_allclose(responses(*found, 20), expected, atol=2e-3)
    # across the border there is another system
    wrong = realize(U, y[:, None], np.array([0, 400]), 2, 8)
    assert np.abs(responses(*wrong, 20) - expected).max() > 1e-2


@pytest.mark.parametrize("n_rows", [2, 5, 12])
def test_a_record_without_a_complete_window_has_no_states(n_rows):
    U, y, _, _ = cases.records((n_rows,))
    y[1:] = np.nan
    found = realize(U, y[:, None], np.array([0, n_rows]), 3, 4)
    assert found.A.shape == (0, 0)
    assert found.C.shape == (1, 0)
    np.testing.assert_array_equal(found.D, 0.0)


def test_an_unstable_model_is_damped():
    rng = np.random.default_rng(0)
    U = rng.standard_normal((200, 1))
    # integrates twice: the poles are 1
    y = np.cumsum(np.cumsum(U, axis=0), axis=0)
    found = realize(U, y / y.std(), np.array([0, 200]), 2, 6)
    assert np.abs(np.linalg.eigvals(found.A)).max() <= 0.98 + 1e-9


def test_what_is_damped_may_be_singular():
    A = _damped(np.array([[0.0, 0.0, 0.0], [0.0, -2.0, 0.0], [0.0, 0.0, 0.5]]))
    np.testing.assert_allclose(A, np.diag([0.0, -LARGEST_MODULUS, 0.5]), atol=1e-12)
