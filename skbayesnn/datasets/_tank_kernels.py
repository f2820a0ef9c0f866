"""Compiled simulation of two cascaded water tanks that can overflow.

While no tank overflows, the levels follow equation (16) of H. Zhou, C. Ibrahim and
W. Pan, "A sparse Bayesian deep learning approach for identification of cascaded tanks
benchmark"::

    dx1/dt = -k1 sqrt(x1) + k4 u + w1
    dx2/dt =  k2 sqrt(x1) - k3 sqrt(x2) + w2

All levels are in volts, as the level sensor reports them, and all times in seconds.
"""

import math
from typing import NamedTuple

import numpy as np

from .._numba import kernel


class TankConstants(NamedTuple):
    """Physical constants of the two tanks.

    Parameters
    ----------
    k1, k2, k3 : float
        Coefficients of the outflow of the upper tank, of the inflow of the lower tank
        and of its outflow, in V^(1/2) / s.

    k4 : float
        Gain of the pump, in V / s per volt of pump voltage.

    height_upper, height_lower : float
        Levels at which the tanks overflow, in V.

    overflow_fraction : float
        Fraction of the water spilled by the upper tank that falls into the lower one,
        between 0 and 1.
    """

    k1: float
    k2: float
    k3: float
    k4: float
    height_upper: float
    height_lower: float
    overflow_fraction: float


@kernel(helper=True)
def _rates(tanks, x1, x2, u, w1, w2):
    """Right-hand side of the differential equations."""
    # a Runge-Kutta stage may compute a negative level for an almost empty tank
    root1 = math.sqrt(max(x1, 0.0))
    root2 = math.sqrt(max(x2, 0.0))
    dx1 = -tanks.k1 * root1 + tanks.k4 * u + w1
    dx2 = tanks.k2 * root1 - tanks.k3 * root2 + w2
    return dx1, dx2


@kernel(helper=True)
def _runge_kutta_step(tanks, x1, x2, u, w1, w2, dt):
    """Advance both levels by ``dt`` with the classical fourth-order rule."""
    half = 0.5 * dt
    a1, a2 = _rates(tanks, x1, x2, u, w1, w2)
    b1, b2 = _rates(tanks, x1 + half * a1, x2 + half * a2, u, w1, w2)
    c1, c2 = _rates(tanks, x1 + half * b1, x2 + half * b2, u, w1, w2)
    d1, d2 = _rates(tanks, x1 + dt * c1, x2 + dt * c2, u, w1, w2)
    x1 += dt / 6.0 * (a1 + 2.0 * b1 + 2.0 * c1 + d1)
    x2 += dt / 6.0 * (a2 + 2.0 * b2 + 2.0 * c2 + d2)
    return x1, x2


@kernel(helper=True)
def _overflow(tanks, x1, x2):
    """Return the levels after the water above the rims has been spilled."""
    spilled = max(x1 - tanks.height_upper, 0.0)
    x1 = max(x1 - spilled, 0.0)
    x2 = max(x2 + tanks.overflow_fraction * spilled, 0.0)
    return x1, min(x2, tanks.height_lower)


@kernel(allocates=True)
def simulate_tanks(tanks, u, w, x_init, sampling_time, n_substeps):
    """Simulate the levels at the sampling instants.

    Pump voltage and process noise are constant over each sampling interval, so that the
    levels at instant ``k`` depend on ``u[:k]`` only.

    Parameters
    ----------
    tanks : TankConstants
        Physical constants.

    u : ndarray of shape (n_samples,), dtype float64
        Pump voltage in V.

    w : ndarray of shape (n_samples, 2), dtype float64
        Process noise on the two rates, in V / s.

    x_init : ndarray of shape (2,), dtype float64
        Levels at the first instant, in V.

    sampling_time : float
        Time between two instants, in s.

    n_substeps : int
        Integration steps per sampling interval.

    Returns
    -------
    levels : ndarray of shape (n_samples, 2), dtype float64
        Levels of the upper and of the lower tank, in V.
    """
    n_samples = len(u)
    levels = np.empty((n_samples, 2))
    dt = sampling_time / n_substeps
    x1, x2 = x_init[0], x_init[1]
    for k in range(n_samples):
        levels[k, 0] = x1
        levels[k, 1] = x2
        for _ in range(n_substeps):
            x1, x2 = _runge_kutta_step(tanks, x1, x2, u[k], w[k, 0], w[k, 1], dt)
            x1, x2 = _overflow(tanks, x1, x2)
    return levels
