"""The simulated drives: their layout, their equations and their noise."""

import re

import numpy as np
import pytest
from record_layout import assert_are_frames, assert_is_dataset
from scipy.integrate import solve_ivp
from scipy.signal import TransferFunction

from skbayesnn.datasets import _simulated_drives as drives
from skbayesnn.datasets import make_coupled_drives


@pytest.mark.parametrize("n_samples", [2, 17, 400, 1001])
def test_layout(n_samples):
    dataset = make_coupled_drives(n_samples, random_state=0)
    assert_is_dataset(dataset, n_samples, {"test": n_samples}, n_initialization=10)
    assert dataset.sampling_time == 0.02
    assert "pulse counter" in dataset.DESCR


def test_pair_and_frame():
    pytest.importorskip("pandas")
    dataset = make_coupled_drives(60, random_state=3)
    X, y = make_coupled_drives(60, return_X_y=True, random_state=3)
    np.testing.assert_array_equal(X, dataset.data)
    np.testing.assert_array_equal(y, dataset.target)
    framed = make_coupled_drives(60, as_frame=True, random_state=3)
    assert_are_frames(framed)
    np.testing.assert_array_equal(framed.tests.test.target, dataset.tests.test.target)


def test_records_follow_random_state():
    first = make_coupled_drives(80, random_state=0)
    again = make_coupled_drives(80, random_state=np.random.RandomState(0))
    other = make_coupled_drives(80, random_state=1)
    np.testing.assert_array_equal(first.target, again.target)
    np.testing.assert_array_equal(first.tests.test.target, again.tests.test.target)
    assert np.abs(first.target - other.target).max() > 0.1
    assert np.abs(first.data - first.tests.test.data).max() > 0.1


def test_published_constants_are_those_of_the_published_transfer_function():
    gain, pole, frequency, damping = drives.CONSTANTS
    oscillator = [1.0, 2.0 * damping * frequency, frequency**2]
    denominator = np.polymul([1.0, pole], oscillator)
    np.testing.assert_allclose(denominator, [1.0, 19.93, 509.8, 2835.0], rtol=1e-3)
    assert gain * pole * frequency**2 == pytest.approx(5163.0, rel=1e-3)


def test_speed_solves_the_equations():
    """Against an integration with tight tolerances, voltage after voltage."""
    gain, pole, frequency, damping = drives.CONSTANTS
    u = np.random.default_rng(0).uniform(-1.5, 1.5, 60)

    def rates(t, state, voltage):
        v, speed, acceleration = state
        pull = frequency**2 * (v - speed) - 2.0 * damping * frequency * acceleration
        return [pole * (gain * voltage - v), acceleration, pull]

    state, expected = np.zeros(3), []
    for voltage in u:
        expected.append(state[1])
        solution = solve_ivp(
            rates, (0.0, 0.02), state, args=(voltage,), rtol=1e-10, atol=1e-12
        )
        state = solution.y[:, -1]
    speed = drives.simulate_speed(drives.CONSTANTS, u)
    np.testing.assert_allclose(speed, expected, atol=1e-8)


def test_speed_settles_at_the_gain():
    speed = drives.simulate_speed(drives.CONSTANTS, np.full(200, -1.0))
    assert speed[-1] == pytest.approx(-drives.CONSTANTS.gain, rel=1e-6)
    # lightly damped: it overshoots the speed of the motors
    _, response = TransferFunction([5163.0], [1.0, 19.93, 509.8, 2835.0]).step(
        T=0.02 * np.arange(200)
    )
    np.testing.assert_allclose(-speed, response, atol=2e-3)


def test_output_is_the_magnitude_of_the_speed():
    quiet = make_coupled_drives(measurement_noise=0.0, random_state=0)
    for record in (quiet, quiet.tests.test):
        assert record.target.min() >= 0.0
        # without the sign the speed turns around at 0 again and again
        assert np.count_nonzero(np.diff(np.sign(np.diff(record.target))) > 0) > 10
        assert np.abs(record.data).max() <= 1.5
        # held for five samples, whatever the first one is
        changes = np.flatnonzero(np.diff(record.data[:, 0]))
        assert set(np.diff(changes)) == {5}


def test_noise_has_its_standard_deviation():
    quiet = make_coupled_drives(4000, measurement_noise=0.0, random_state=0)
    noisy = make_coupled_drives(4000, measurement_noise=0.05, random_state=0)
    noise = noisy.target - quiet.target
    # five standard errors
    assert noise.std() == pytest.approx(0.05, rel=5.0 / np.sqrt(2 * 4000))
    np.testing.assert_array_equal(noisy.data, quiet.data)


def test_variation_makes_other_systems():
    """Without it all random states are one system: equal steady gains."""

    def gain(seed, variation):
        dataset = make_coupled_drives(
            3000, measurement_noise=0.0, variation=variation, random_state=seed
        )
        return dataset.target.std() / dataset.data.std()

    same = [gain(seed, 0.0) for seed in range(4)]
    other = [gain(seed, 0.5) for seed in range(4)]
    assert np.std(same) < 0.1 * np.mean(same)
    assert np.std(other) > 2.0 * np.std(same)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_samples": 1}, ValueError, "n_samples == 1, must be >= 2"),
        ({"n_samples": 10.5}, TypeError, "n_samples must be an instance of"),
        ({"input_amplitude": -1.0}, ValueError, "input_amplitude == -1.0, must be"),
        ({"measurement_noise": np.inf}, ValueError, "measurement_noise == inf, must"),
        ({"variation": 1.0}, ValueError, "variation == 1.0, must be >= 0 and < 1"),
        ({"variation": np.nan}, ValueError, "variation == nan, must be >= 0 and < 1"),
        ({"variation": "much"}, TypeError, "variation must be an instance of"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=re.escape(message)):
        make_coupled_drives(**parameters)
