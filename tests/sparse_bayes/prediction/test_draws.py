"""Draws of free runs against a slow reference.

Also run with bounds checks and without the compiler: sizes stay small.
"""

import lagged as narx
import naive
import numpy as np
import pytest
from grids import each_value_once
from numpy.testing import assert_allclose, assert_array_equal
from random_networks import CODES, SYSTEMS, System

N_DRAWS = 3


class Draws:
    """A random system with deviations of its weights and noise for every row."""

    def __init__(self, linear=False, spread=0.1, **options):
        self.system = System(**options)
        rng = np.random.default_rng(5)
        keep = self.system.case.keep
        self.deviations = spread * rng.standard_normal((N_DRAWS, len(keep))) * keep
        self.noise = 0.3 * rng.standard_normal((N_DRAWS, *self.system.Y.shape))
        self.linear = linear
        if linear:
            # the errors of free runs are those of the measurement
            self.noise[:] = 0.0

    def simulate(self, start=None):
        system = self.system
        start = system.start if start is None else start
        paths = self.noise.copy()
        paths[:, :start] = system.Y[:start]
        found = narx.simulate_draws(
            system.arguments,
            self.deviations,
            self.linear,
            system.U,
            paths,
            start,
            system.stop,
        )
        return paths, found

    def expected(self, start=None):
        system = self.system
        start = system.start if start is None else start
        runs = [
            naive.drawn_run(
                system.model, d, system.U, system.Y, e, start, system.stop, self.linear
            )
            for d, e in zip(self.deviations, self.noise, strict=True)
        ]
        return np.array([run[0] for run in runs]), [run[1] for run in runs]

    def ahead(self, horizon):
        system = self.system
        paths = self.noise.copy()
        found = narx.predict_ahead_draws(
            system.arguments,
            self.deviations,
            self.linear,
            system.U,
            system.Y,
            horizon,
            paths,
        )
        return paths, found

    def expected_ahead(self, horizon):
        system, first = self.system, self.system.start
        ends, diverged = self.noise.copy(), np.zeros(N_DRAWS, dtype=bool)
        for d in range(N_DRAWS):
            for t in range(first, system.stop):
                path, lost = naive.drawn_run(
                    system.model,
                    self.deviations[d],
                    system.U,
                    system.Y,
                    self.noise[d],
                    max(t - horizon + 1, first),
                    t + 1,
                    self.linear,
                )
                ends[d, t] = path[t]
                diverged[d] |= lost
        return ends, diverged


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("options", SYSTEMS, ids=str)
def test_simulate_draws(options, linear):
    case = Draws(linear, **options)
    paths, diverged = case.simulate()
    expected, lost = case.expected()
    assert_array_equal(diverged, lost)
    assert_allclose(paths, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("activation", CODES)
def test_activations(activation, linear):
    case = Draws(linear, activation=activation, n_outputs=2, hidden=(3, 2))
    assert_allclose(case.simulate(7)[0], case.expected(7)[0], rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize(
    *each_value_once(options=SYSTEMS[:6], horizon=[1, 2, 4, 50], linear=[False, True])
)
def test_predict_ahead_draws(options, horizon, linear):
    case = Draws(linear, **options)
    paths, diverged = case.ahead(horizon)
    expected, lost = case.expected_ahead(horizon)
    assert_array_equal(diverged, lost)
    assert_allclose(paths, expected, rtol=1e-10, atol=1e-11)


def test_without_deviation_and_noise_it_is_the_simulation():
    case = Draws(spread=0.0, n_outputs=2)
    case.noise[:] = 0.0
    system = case.system
    Y = system.Y.copy()
    narx.simulate(*system.arguments, system.U, Y, system.start, system.stop)
    for path in case.simulate()[0]:
        assert_allclose(path, Y, rtol=1e-14)


@pytest.mark.parametrize("linear", [False, True])
def test_missing_values_are_not_divergence(linear):
    case = Draws(linear)
    case.system.U[6] = np.nan
    for paths, diverged in (case.simulate(), case.ahead(2)):
        assert not diverged.any()
        assert np.isnan(paths).any()
    assert_allclose(case.simulate()[0], case.expected()[0], rtol=1e-10, atol=1e-11)
    assert_allclose(case.ahead(2)[0], case.expected_ahead(2)[0], rtol=1e-10)


@pytest.mark.parametrize("linear", [False, True])
def test_a_diverging_draw_is_alone(linear):
    case = Draws(linear, hidden=())
    case.deviations[1] *= 1e3
    paths, diverged = case.simulate()
    expected, lost = case.expected()
    assert_array_equal(diverged, lost)
    assert_array_equal(diverged, [False, True, False])
    assert_allclose(paths, expected, rtol=1e-10, atol=1e-11)
    # NaN to the end
    missing = np.isnan(paths[1, :, 0])
    assert missing.any() and (np.diff(missing.astype(int)) >= 0).all()


@pytest.mark.parametrize("linear", [False, True])
def test_no_draw(linear):
    case = Draws(linear)
    case.deviations, case.noise = case.deviations[:0], case.noise[:0]
    assert case.simulate()[1].shape == case.ahead(2)[1].shape == (0,)


# by default, tests/test_inputs_stay.py has draws of models with read-only arrays
@pytest.mark.slow
@pytest.mark.parametrize("linear", [False, True])
def test_read_only_arrays(linear):
    case = Draws(linear)
    expected, _ = case.simulate()
    for array in (case.system.U, case.system.Y, case.deviations):
        array.flags.writeable = False
    assert_array_equal(case.simulate()[0], expected)
    case.ahead(2)
