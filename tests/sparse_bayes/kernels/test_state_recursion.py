"""Runs of a state-space network: against references, with exact sensitivities."""

import naive
import numpy as np
import pytest
from random_networks import Case

from skbayesnn.sparse_bayes.kernels.state_recursion import (
    StateRun,
    run_state_sensitivities,
    run_states,
    states_by_parameters,
)

LIMITS = (1e3, 1e2)


class System:
    """A random network (x, u) -> (next x, y), records, and states to begin with.

    Of each step the states go a part; they hold the rest, and the first one all.
    """

    def __init__(
        self, n_states=2, n_inputs=1, n_outputs=1, hidden=(3,), part=1.0, **options
    ):
        sizes = (n_states + n_inputs, *hidden, n_states + n_outputs)
        self.case = Case(sizes, **{"skip": bool(hidden), "seed": 1, **options})
        self.case.theta *= 0.4
        rng = np.random.default_rng(2)
        self.n_states, self.n_outputs, self.sizes = n_states, n_outputs, sizes
        self.held, self.part = np.full(n_states, 1.0 - part), part
        if part < 1.0:
            self.held[0] = 1.0
        self.U = [rng.standard_normal((n, n_inputs)) for n in (9, 1, 14)]
        self.initial = [rng.standard_normal(n_states) for _ in self.U]

    @property
    def run(self):
        U = np.concatenate(self.U)
        first = np.cumsum([0, *(len(part) for part in self.U[:-1])])
        begin = np.zeros(len(U), dtype=bool)
        initial = np.full((len(U), self.n_states), np.nan)
        begin[first], initial[first] = True, self.initial
        X = np.hstack([np.full((len(U), self.n_states), np.nan), U])
        state = np.full(X.shape[1], -1, dtype=np.int64)
        state[: self.n_states] = np.arange(self.n_states)
        return StateRun(X, state, begin, initial, LIMITS, self.held, self.part)

    @property
    def layers(self):
        return self.case.network[0]

    def reference(self, function):
        parts = zip(self.U, self.initial, strict=True)
        return np.concatenate([function(U, initial) for U, initial in parts])


SYSTEMS = [
    dict(),
    dict(n_states=1),
    dict(n_states=3, n_inputs=2, n_outputs=2),
    dict(n_states=6, n_outputs=3),  # more than go back side by side
    dict(n_states=3, part=0.3),
    dict(hidden=()),
    dict(hidden=(3, 2), n_outputs=2),
    dict(n_inputs=0),
    dict(pruned=0.4),
    dict(activation="logistic"),
    dict(activation="relu"),
]


@pytest.mark.parametrize("options", SYSTEMS)
def test_runs_and_sensitivities(options):
    system = System(**options)
    case, n_outputs = system.case, system.n_outputs
    expected = system.reference(
        lambda U, x: naive.state_space_run(
            *case.reference, U, x, n_outputs, system.held, system.part
        )
    )
    derivatives = system.reference(
        lambda U, x: naive.state_space_derivatives(
            case.theta, system.sizes, case.activation, U, x, system.held, system.part
        )
    )
    states, outputs = run_states(system.layers, system.run, n_outputs)
    np.testing.assert_allclose(outputs, expected, rtol=1e-12, atol=1e-13)
    arguments = system.layers, system.run, n_outputs, case.kept
    again, same, S = run_state_sensitivities(*arguments, by_initial=True)
    np.testing.assert_array_equal(again, states)
    np.testing.assert_array_equal(same, outputs)
    columns = [*case.kept, *(len(case.theta) + np.arange(system.n_states))]
    np.testing.assert_allclose(S, derivatives[:, columns], rtol=1e-10, atol=1e-12)
    _, _, of_weights = run_state_sensitivities(*arguments)
    np.testing.assert_array_equal(of_weights, S[:, : len(case.kept)])


@pytest.mark.parametrize("options", SYSTEMS)
def test_states_by_parameters(options):
    system = System(**options)
    case = system.case
    rows = np.array([1, 2, 7, 8, 11, 23])

    def states(theta):
        moved = system.layers._replace(theta=theta)
        return run_states(moved, system.run, system.n_outputs)[0][rows]

    steps = 1e-6 * np.eye(len(case.theta))[case.kept]
    expected = [
        (states(case.theta + step) - states(case.theta - step)) / 2e-6 for step in steps
    ]
    arguments = system.layers, system.run, system.n_outputs, case.kept, rows
    found = states_by_parameters(*arguments)
    np.testing.assert_allclose(
        found, np.moveaxis(expected, 0, -1), rtol=1e-6, atol=1e-8
    )


def test_a_record_that_diverges_leaves_the_others():
    system = System(hidden=(), n_states=1)
    # x doubles in every row of the first record; the others begin at 0 and stay there
    system.case.theta[:] = np.array([2.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    system.initial = [np.ones(1), np.zeros(1), np.zeros(1)]
    states, outputs = run_states(system.layers, system.run, 1)
    np.testing.assert_array_equal(outputs[:7, 0], 2.0 ** np.arange(7))
    assert np.isnan(outputs[7:9]).all()
    np.testing.assert_array_equal(outputs[9:], 0.0)
    _, _, S = run_state_sensitivities(system.layers, system.run, 1, system.case.kept)
    assert (S[7:9] == 0.0).all()


def test_a_nan_is_a_divergence():
    system = System()
    system.U[0][3] = np.nan
    _, outputs = run_states(system.layers, system.run, 1)
    assert np.isfinite(outputs[:3]).all()
    assert np.isnan(outputs[3:9]).all()
    assert np.isfinite(outputs[9:]).all()
