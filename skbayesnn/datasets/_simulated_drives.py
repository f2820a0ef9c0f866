"""Simulated coupled electric drives, whose speed is measured without its sign."""

import math
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from scipy.linalg import expm
from sklearn.utils import check_random_state, check_scalar

from ._layouts import build_bunch

SAMPLING_TIME = 0.02  # s
# Samples for which the voltage is constant.
HOLD = 5
# Samples before each record, in which it forgets that the drives stood still.
RUN_IN = 100
# As of the benchmark.
N_INITIALIZATION = 10


class DriveConstants(NamedTuple):
    """Physical constants of two equal motors, a belt and a pulley on a spring.

    gain : speed per volt at rest, in the units of the speed sensor
    motor_pole : inverse time constant of the motors, in 1 / s
    frequency : of the pulley on its spring, in rad / s
    damping : of its oscillation, a ratio
    """

    gain: float
    motor_pole: float
    frequency: float
    damping: float


# The transfer function 5163 / (s^3 + 19.93 s^2 + 509.8 s + 2835) of Wigren and
# Schoukens (2017), table 2, in these constants.
CONSTANTS = DriveConstants(
    gain=1.8212, motor_pole=6.7351, frequency=20.517, damping=0.32157
)


def make_coupled_drives(
    n_samples=400,
    *,
    input_amplitude=1.5,
    measurement_noise=0.03,
    variation=0.2,
    return_X_y=False,
    as_frame=False,
    random_state=None,
):
    r"""Simulate two electric drives that are coupled by a belt.

    A short record of a system whose output hides a part of its state. Two equal motors
    drive a belt over a pulley, which is held by a spring; the same voltage feeds both.
    A pulse counter measures the speed of the pulley, and does not see its sign. The
    equations are those of the reference model of the measured benchmark [1]_,

    .. math::

        \dot v &= \alpha (k u - v), \\
        \ddot \omega &= \omega_0^2 (v - \omega) - 2 \xi \omega_0 \dot \omega, \\
        y &= |\omega| + e,

    with the speed v of the motors and the speed :math:`\omega` of the pulley.

    Parameters
    ----------
    n_samples : int, default=400
        Number of samples of the estimation record and of the test record, at least 2.

    input_amplitude : float, default=1.5
        Largest voltage of the motors, in V, not negative. The voltage is drawn from a
        uniform distribution, symmetric around zero, and held for 5 samples.

    measurement_noise : float, default=0.03
        Standard deviation of the white Gaussian noise e. The published models of the
        benchmark have errors of about twice this size.

    variation : float, default=0.2
        The four constants are drawn from uniform distributions around the published
        ones, by at most this fraction, from 0 to less than 1: another random state is
        another system. With 0 the constants are the published ones.

    return_X_y : bool, default=False
        If True, return only ``(data, target)`` of the estimation record.

    as_frame : bool, default=False
        If True, return the records as pandas objects.

    random_state : int, RandomState instance or None, default=None
        Determines the constants, the voltages and the noise. Pass an int for the same
        records at every call.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        data : ndarray of shape (n_samples, 1), dtype float64
            Voltage of the motors in the estimation record, in V.
        target : ndarray of shape (n_samples,), dtype float64
            Measured magnitude of the pulley's speed.
        frame : DataFrame of shape (n_samples, 2) or None
            Data and target in one frame if ``as_frame`` is True.
        tests : :class:`~sklearn.utils.Bunch`
            The test record ``test`` of the same system, a Bunch of data, target and
            frame. Its voltage, its noise and its state at the start are different.
        feature_names, target_names : list of str
            Names of the columns.
        sampling_time : float
            0.02 s.
        n_initialization : int
            10, the number of samples at the start of a record that errors leave out.
        DESCR : str
            Description of the data set.

    (data, target) : tuple if ``return_X_y`` is True
        As above.

    Raises
    ------
    TypeError
        If a parameter is of the wrong type.

    ValueError
        If a parameter is out of range.

    See Also
    --------
    make_cascaded_tanks : Two simulated tanks, whose level is measured.

    References
    ----------
    .. [1] T. Wigren, M. Schoukens, "Coupled electric drives data set and reference
       models", technical report 2017-024, Department of Information Technology,
       Uppsala University, 2017.

    Examples
    --------
    >>> from skbayesnn.datasets import make_coupled_drives
    >>> drives = make_coupled_drives(random_state=0)
    >>> drives.data.shape, drives.target.shape
    ((400, 1), (400,))
    >>> drives.tests.test.target.shape
    (400,)
    >>> X, y = make_coupled_drives(200, return_X_y=True, random_state=0)
    >>> X.shape, y.shape
    ((200, 1), (200,))
    """
    check_scalar(n_samples, "n_samples", Integral, min_val=2)
    for value, name in [
        (input_amplitude, "input_amplitude"),
        (measurement_noise, "measurement_noise"),
    ]:
        check_scalar(value, name, Real, min_val=0.0)
        if not math.isfinite(value):
            raise ValueError(f"{name} == {value}, must be finite.")
    # a NaN passes no comparison
    check_scalar(variation, "variation", Real)
    if not 0.0 <= variation < 1.0:
        raise ValueError(f"variation == {variation}, must be >= 0 and < 1.")

    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    rng = np.random.default_rng(seed)
    factors = 1.0 + variation * rng.uniform(-1.0, 1.0, size=len(CONSTANTS))
    drives = DriveConstants(*(np.array(CONSTANTS) * factors))

    def simulate_record():
        n_steps = -(-(RUN_IN + n_samples) // HOLD)
        steps = input_amplitude * rng.uniform(-1.0, 1.0, size=n_steps)
        u = np.repeat(steps, HOLD)[: RUN_IN + n_samples]
        speed = simulate_speed(drives, u)[RUN_IN:]
        e = measurement_noise * rng.standard_normal(n_samples)
        return u[RUN_IN:], np.abs(speed) + e

    estimation = simulate_record()
    dataset = build_bunch(
        estimation,
        {"test": simulate_record()},
        feature_name="motor_voltage",
        target_name="speed",
        sampling_time=SAMPLING_TIME,
        descr="simulated_drives.rst",
        n_initialization=N_INITIALIZATION,
        as_frame=as_frame,
    )
    return (dataset.data, dataset.target) if return_X_y else dataset


def simulate_speed(drives, u):
    """Speed of the pulley (n,), with its sign, at the sampling instants.

    Each voltage of ``u`` (n,) is held for one sampling time, for which the solution is
    exact. The drives stand still at first.
    """
    gain, pole, frequency, damping = drives
    stiffness, friction = frequency**2, 2.0 * damping * frequency
    # rows and columns: speed of the motors, of the pulley, its acceleration; voltage
    rates = np.zeros((4, 4))
    rates[0] = -pole, 0.0, 0.0, pole * gain
    rates[1] = 0.0, 0.0, 1.0, 0.0
    rates[2] = stiffness, -stiffness, -friction, 0.0
    advance = expm(rates * SAMPLING_TIME)
    A, b = advance[:3, :3], advance[:3, 3]
    state, speed = np.zeros(3), np.empty(len(u))
    for t, voltage in enumerate(u):
        speed[t] = state[1]
        state = A @ state + b * voltage
    return speed
