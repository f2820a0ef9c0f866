"""The simulated tanks: their layout, their equations and their noise."""

import re
import sys

import numpy as np
import pytest
from record_layout import assert_are_frames, assert_is_dataset
from scipy.integrate import solve_ivp
from sklearn.utils import check_random_state

from skbayesnn.datasets import _simulated_tanks, make_cascaded_tanks
from skbayesnn.datasets._tank_kernels import simulate_tanks


@pytest.mark.parametrize("n_samples", [2, 17, 100, 1024, 1500])
def test_simulation_layout(n_samples):
    dataset = make_cascaded_tanks(n_samples, random_state=0)
    assert_is_dataset(dataset, n_samples, {"test": n_samples})
    assert dataset.sampling_time == 4.0
    assert "default data set" in dataset.DESCR


def test_simulation_as_pair_and_as_frame():
    pytest.importorskip("pandas")
    dataset = make_cascaded_tanks(60, random_state=3)
    X, y = make_cascaded_tanks(60, return_X_y=True, random_state=3)
    np.testing.assert_array_equal(X, dataset.data)
    np.testing.assert_array_equal(y, dataset.target)

    framed = make_cascaded_tanks(60, as_frame=True, random_state=3)
    assert_are_frames(framed)
    np.testing.assert_array_equal(framed.data, X)
    np.testing.assert_array_equal(framed.tests.test.target, dataset.tests.test.target)


def test_simulation_follows_random_state():
    first = make_cascaded_tanks(80, random_state=0)
    again = make_cascaded_tanks(80, random_state=np.random.RandomState(0))
    other = make_cascaded_tanks(80, random_state=1)
    np.testing.assert_array_equal(first.data, again.data)
    np.testing.assert_array_equal(first.target, again.target)
    np.testing.assert_array_equal(first.tests.test.target, again.tests.test.target)
    assert np.abs(first.target - other.target).max() > 0.1
    assert np.abs(first.data - first.tests.test.data).max() > 0.1


def test_simulation_leaves_global_random_state():
    # the singleton behind np.random.*, as scikit-learn hands it out
    singleton = check_random_state(None)
    before = singleton.get_state()[1].copy()
    make_cascaded_tanks(20, random_state=0)
    np.testing.assert_array_equal(singleton.get_state()[1], before)


@pytest.mark.parametrize("seed", range(5))
def test_simulated_input_is_the_multisine_of_the_benchmark(seed):
    # far from 0 V, where it would be clipped
    u = make_cascaded_tanks(input_mean=8.0, random_state=seed).data[:, 0]
    assert u.mean() == pytest.approx(8.0)
    assert u.std() == pytest.approx(1.0)
    amplitudes = np.abs(np.fft.rfft(u - 8.0))
    np.testing.assert_allclose(amplitudes[1:20], amplitudes[1])
    np.testing.assert_allclose(amplitudes[20:60], 0.1 * amplitudes[1])
    assert amplitudes[60:].max() < 1e-9 * amplitudes[1]


def test_both_records_start_at_the_same_levels():
    dataset = make_cascaded_tanks(measurement_noise=0.0, random_state=0)
    assert dataset.target[0] == dataset.tests.test.target[0]


def test_simulated_output_resembles_the_benchmark():
    # the ranges hold the two measured records with room for the random phases
    spread, n_saturated = [], []
    for seed in range(20):
        dataset = make_cascaded_tanks(random_state=seed)
        for record in (dataset, dataset.tests.test):
            assert record.data.min() >= 0.0
            assert record.data.max() < 8.0
            assert record.target.min() >= 0.0
            assert record.target.max() <= 10.0
            spread.append(record.target.std())
            n_saturated.append(np.sum(record.target > 9.9))
    assert 1.9 < np.mean(spread) < 2.4
    assert np.mean(np.array(n_saturated) > 0) > 0.8
    assert 30 < np.mean(n_saturated) < 80


def simulate_levels(u, x_init, constants=_simulated_tanks.CONSTANTS, w=None):
    w = np.zeros((len(u), 2)) if w is None else w
    return simulate_tanks(
        constants,
        u,
        w,
        np.array(x_init),
        _simulated_tanks.SAMPLING_TIME,
        _simulated_tanks.N_SUBSTEPS,
    )


def test_both_tanks_overflow_and_the_sensor_saturates():
    tanks = _simulated_tanks.CONSTANTS
    u = make_cascaded_tanks(random_state=0).data[:, 0]
    levels = simulate_levels(u, [5.0, 5.0])
    assert levels[:, 0].max() == tanks.height_upper
    assert levels[:, 1].max() == tanks.height_lower
    assert np.sum(levels[:, 0] == tanks.height_upper) > 20

    y = make_cascaded_tanks(random_state=0).target
    stretches = np.sum(np.diff((y == 10.0).astype(int)) == 1)
    assert stretches >= 2


def test_spilled_water_falls_into_the_lower_tank():
    u = np.full(40, 5.0)
    dry = _simulated_tanks.CONSTANTS._replace(overflow_fraction=0.0, height_lower=100.0)
    wet = dry._replace(overflow_fraction=0.5)
    dry_levels = simulate_levels(u, [10.0, 3.0], dry)
    wet_levels = simulate_levels(u, [10.0, 3.0], wet)
    np.testing.assert_array_equal(wet_levels[:, 0], 10.0)

    # a full upper tank spills what it cannot hold: a constant extra inflow
    spill = dry.k4 * 5.0 - dry.k1 * np.sqrt(10.0)
    w = np.zeros((40, 2))
    w[:, 1] = 0.5 * spill
    expected = simulate_levels(u, [10.0, 3.0], dry, w)
    # spilling after each substep of 0.4 s instead of all the time
    np.testing.assert_allclose(wet_levels, expected, rtol=1e-3)
    assert (wet_levels[1:, 1] > dry_levels[1:, 1]).all()


def solve_tanks(tanks, u, w, x_init):
    """Integrate equation (16) to a high accuracy, one sampling interval at a time."""

    def rates(t, x, voltage, noise):
        root1, root2 = np.sqrt(x)
        return [
            -tanks.k1 * root1 + tanks.k4 * voltage + noise[0],
            tanks.k2 * root1 - tanks.k3 * root2 + noise[1],
        ]

    levels = [np.array(x_init)]
    for voltage, noise in zip(u[:-1], w[:-1], strict=True):
        solution = solve_ivp(
            rates,
            (0.0, _simulated_tanks.SAMPLING_TIME),
            levels[-1],
            args=(voltage, noise),
            method="DOP853",
            rtol=1e-11,
            atol=1e-12,
        )
        levels.append(solution.y[:, -1])
    return np.array(levels)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_kernel_agrees_with_an_accurate_integration(noise):
    rng = np.random.default_rng(0)
    u = 2.5 + 0.5 * np.sin(0.05 * np.arange(150))
    w = noise * rng.standard_normal((150, 2))
    expected = solve_tanks(_simulated_tanks.CONSTANTS, u, w, [4.0, 6.0])
    # only then is the reference right
    assert expected[:, 0].max() < _simulated_tanks.CONSTANTS.height_upper
    assert expected[:, 1].max() < _simulated_tanks.CONSTANTS.height_lower
    levels = simulate_levels(u, [4.0, 6.0], w=w)
    np.testing.assert_allclose(levels, expected, rtol=1e-8)


def test_noise_free_record_agrees_with_an_accurate_integration():
    dataset = make_cascaded_tanks(
        150,
        input_mean=2.2,
        input_std=0.3,
        process_noise=0.0,
        measurement_noise=0.0,
        random_state=0,
    )
    u, y = dataset.data[:, 0], dataset.target

    # recover the initial level of the upper tank, which the record does not show, from
    # the first outputs; everything after them is a prediction
    def solve(level, n):
        return solve_tanks(
            _simulated_tanks.CONSTANTS, u[:n], np.zeros((n, 2)), [level, y[0]]
        )

    low, high = 4.0, 6.0
    while high - low > 1e-10:
        middle = 0.5 * (low + high)
        is_low = solve(middle, 4)[-1, 1] < y[3]
        low, high = (middle, high) if is_low else (low, middle)
    np.testing.assert_allclose(y, solve(low, 150)[:, 1], rtol=1e-6)


def test_noise_has_the_requested_size():
    quiet = make_cascaded_tanks(measurement_noise=0.0, random_state=0)
    noisy = make_cascaded_tanks(measurement_noise=0.05, random_state=0)
    np.testing.assert_array_equal(quiet.data, noisy.data)
    unsaturated = quiet.target < 9.5
    e = (noisy.target - quiet.target)[unsaturated]
    # five standard errors of a standard deviation
    assert e.std() == pytest.approx(0.05, rel=5 / np.sqrt(2 * len(e)))


def test_empty_tanks_stay_empty():
    u = np.zeros(200)
    levels = simulate_levels(u, [0.5, 0.5])
    assert (levels >= 0.0).all()
    np.testing.assert_allclose(levels[-1], 0.0, atol=1e-3)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"n_samples": 1}, ValueError, "n_samples == 1, must be >= 2"),
        ({"n_samples": 10.0}, TypeError, "n_samples must be an instance of int"),
        ({"input_mean": -1.0}, ValueError, "input_mean == -1.0, must be >= 0"),
        ({"input_std": -0.1}, ValueError, "input_std == -0.1, must be >= 0"),
        ({"process_noise": -1}, ValueError, "process_noise == -1, must be >= 0"),
        ({"measurement_noise": np.nan}, ValueError, "measurement_noise == nan"),
        ({"input_std": np.inf}, ValueError, "input_std == inf, must be finite"),
        ({"random_state": "seed"}, ValueError, "cannot be used to seed"),
    ],
)
def test_simulation_rejects_wrong_parameters(params, error, message):
    with pytest.raises(error, match=re.escape(message)):
        make_cascaded_tanks(**params)


def test_missing_pandas_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="requires pandas"):
        make_cascaded_tanks(10, as_frame=True)
