"""Simulated cascaded tanks, the default data set of the package."""

import math
from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_random_state, check_scalar

from ._layouts import build_bunch
from ._tank_kernels import TankConstants, simulate_tanks

# Chosen so that the range, the spread and the saturated stretches of the output
# resemble those of the measured benchmark. The rim of the lower tank lies above the
# range of the sensor, so that a full tank reads 10 V in spite of the noise.
CONSTANTS = TankConstants(
    k1=0.084,
    k2=0.0555,
    k3=0.0525,
    k4=0.0675,
    height_upper=10.0,
    height_lower=10.3,
    overflow_fraction=0.8,
)
SENSOR_RANGE = 10.0  # V
SAMPLING_TIME = 4.0  # s
# steps of 0.4 s against time constants of about a minute
N_SUBSTEPS = 10

# The benchmark's multisine: a flat amplitude up to the first frequency, 20 dB less up
# to the second, zero beyond.
FLAT_BAND = 0.0047  # Hz
EXCITED_BAND = 0.01445  # Hz
WEAK_AMPLITUDE = 0.1


def make_cascaded_tanks(
    n_samples=1024,
    *,
    input_mean=2.8,
    input_std=1.0,
    process_noise=0.002,
    measurement_noise=0.015,
    return_X_y=False,
    as_frame=False,
    random_state=None,
):
    r"""Simulate two cascaded water tanks with overflow.

    This is the default data set of the package. It resembles the measured benchmark
    that :func:`fetch_cascaded_tanks` loads, but needs neither a file nor a network. A
    pump fills the upper tank, which drains into the lower one, whose level is
    measured. In volts of the level sensor [1]_, eq. (16),

    .. math::

        \dot x_1 &= -k_1 \sqrt{x_1} + k_4 u + w_1, \\
        \dot x_2 &= k_2 \sqrt{x_1} - k_3 \sqrt{x_2} + w_2, \\
        y &= x_2 + e.

    The square roots are a soft nonlinearity. As in the real system there are hard
    ones, too: both tanks overflow, part of the water spilled by the upper tank falls
    into the lower one, and the sensor saturates at 10 V.

    Parameters
    ----------
    n_samples : int, default=1024
        Number of samples of the estimation record and of the test record, at least 2.

    input_mean : float, default=2.8
        Mean of the pump voltage, in V, not negative.

    input_std : float, default=1.0
        Standard deviation of the pump voltage, in V, not negative. The voltage is a
        random-phase multisine, clipped at 0 V; about 1 V above the default mean, the
        upper tank overflows.

    process_noise : float, default=0.002
        Standard deviation of w1 and w2, in V / s: white Gaussian sequences that are
        constant over each sampling interval.

    measurement_noise : float, default=0.015
        Standard deviation of the white Gaussian noise e, in V. It is added before the
        sensor saturates.

    return_X_y : bool, default=False
        If True, return only ``(data, target)`` of the estimation record.

    as_frame : bool, default=False
        If True, return the records as pandas objects.

    random_state : int, RandomState instance or None, default=None
        Determines the phases of the multisines, the initial levels and the noise. Pass
        an int for the same records at every call.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        data : ndarray of shape (n_samples, 1), dtype float64
            Pump voltage of the estimation record, in V.
        target : ndarray of shape (n_samples,), dtype float64
            Measured level of the lower tank, in V, from 0 to 10.
        frame : DataFrame of shape (n_samples, 2) or None
            Data and target in one frame if ``as_frame`` is True.
        tests : :class:`~sklearn.utils.Bunch`
            The test record ``test``, a Bunch of data, target and frame. Its input and
            noise are different; it starts from the same unknown levels.
        feature_names, target_names : list of str
            Names of the columns.
        sampling_time : float
            4.0 s.
        n_initialization : int
            50, the number of samples at the start of a record that errors leave out.
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
    fetch_cascaded_tanks : The measured benchmark.

    References
    ----------
    .. [1] H. Zhou, C. Ibrahim, W. Pan, "A sparse Bayesian deep learning approach for
       identification of cascaded tanks benchmark", preprint, 2019.

    Examples
    --------
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> tanks = make_cascaded_tanks(random_state=0)
    >>> tanks.data.shape, tanks.target.shape
    ((1024, 1), (1024,))
    >>> tanks.tests.test.target.shape
    (1024,)
    >>> X, y = make_cascaded_tanks(200, return_X_y=True, random_state=0)
    >>> X.shape, y.shape
    ((200, 1), (200,))
    """
    check_scalar(n_samples, "n_samples", Integral, min_val=2)
    _check_not_negative(input_mean, "input_mean")
    _check_not_negative(input_std, "input_std")
    _check_not_negative(process_noise, "process_noise")
    _check_not_negative(measurement_noise, "measurement_noise")

    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    rng = np.random.default_rng(seed)
    # both records start with half-filled tanks
    x_init = rng.uniform(4.0, 6.0, size=2)

    def simulate_record():
        u = input_mean + input_std * _random_phase_multisine(n_samples, rng)
        u = np.maximum(u, 0.0)
        w = process_noise * rng.standard_normal((n_samples, 2))
        levels = simulate_tanks(CONSTANTS, u, w, x_init, SAMPLING_TIME, N_SUBSTEPS)
        e = measurement_noise * rng.standard_normal(n_samples)
        return u, np.clip(levels[:, 1] + e, 0.0, SENSOR_RANGE)

    estimation = simulate_record()
    dataset = build_bunch(
        estimation,
        {"test": simulate_record()},
        feature_name="pump_voltage",
        target_name="level",
        sampling_time=SAMPLING_TIME,
        descr="simulated_tanks.rst",
        as_frame=as_frame,
    )
    return (dataset.data, dataset.target) if return_X_y else dataset


def _check_not_negative(value, name):
    check_scalar(value, name, Real, min_val=0.0)
    if not math.isfinite(value):
        raise ValueError(f"{name} == {value}, must be finite.")


def _random_phase_multisine(n_samples, rng):
    """One period of a multisine of mean 0 and standard deviation 1."""
    fundamental = 1.0 / (n_samples * SAMPLING_TIME)
    # a record too short for the band has at least its slowest sine
    n_lines = max(1, math.floor(EXCITED_BAND / fundamental))
    lines = np.arange(1, n_lines + 1)
    amplitudes = np.where(lines * fundamental <= FLAT_BAND, 1.0, WEAK_AMPLITUDE)
    amplitudes *= math.sqrt(2.0) / np.linalg.norm(amplitudes)
    phases = rng.uniform(0.0, 2.0 * np.pi, size=n_lines)

    spectrum = np.zeros(n_samples // 2 + 1, dtype=np.complex128)
    spectrum[lines] = 0.5 * n_samples * amplitudes * np.exp(1j * phases)
    return np.fft.irfft(spectrum, n_samples)
