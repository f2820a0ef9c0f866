"""Visible units: everything that depends on which values they take.

An RBM has the log probability

    log p(v) = sum_i c_i softplus(w_i . v + b_i) + b . v + log m(v) - log Z,

with m the base measure of the visible units, a product over features. Given the hidden
units, the visible ones are independent, each an exponential family with the natural
parameter y = b + h . W. An `RBM` carries the object that knows this family. Another
family is another class with the same methods; `tests/rbm/test_visible.py` has one.

Inputs ``x`` of units are without their biases, and float32. A ``place`` is (seed, step,
first row), from which alone the random numbers follow.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from .._saved_state import saved_as
from . import states
from .kernels import units as kernels


@saved_as("BinaryUnits")
class BinaryUnits(NamedTuple):
    """Units that are 0 or 1, as uint8; a clamp or data may hold probabilities.

    A NamedTuple without fields: a checkpoint stores it by its name.
    """

    enumerable = True
    """whether the states can be enumerated, as rows of 0 and 1"""

    def natural_parameters(self, means, n_samples):
        """Biases of independent units with the means of data, float64.

        The rates are smoothed by half a 1 and half a 0, which makes those of constant
        features finite.
        """
        means = np.asarray(means, dtype=np.float64)
        smoothed = (means * n_samples + 0.5) / (n_samples + 1)
        return np.log(smoothed) - np.log1p(-smoothed)

    def log_partitions(self, y):
        """Log of the integral of m(v) exp(y v) of each unit, in the type of ``y``."""
        return -log_expit(-y)

    def sum_log_partitions(self, low, high):
        """Sums over units of the same by y = low_i + high_k, [k, i]; all float64."""
        return states.sum_softplus(low, high, np.ones(low.shape[1]))

    def means(self, y):
        """E[v] by the natural parameters; may overwrite ``y``, any float type."""
        return expit(y, out=y)

    def variances(self, means):
        """Var[v] by the means, (n_features,)."""
        return means * (1.0 - means)

    def add_means(self, x, bias, total):
        """Add E[v] to ``total``; compiled, overwrites ``x``."""
        kernels.mean_units(x, bias, 0, x.shape[1])
        total += x

    def draw(self, x, bias, place):
        """States of the units."""
        return states.draw(x, bias, place)

    def draw_from(self, h, weights, bias, place):
        """The same with the inputs ``h @ weights``."""
        return states.draw_from(h, weights, bias, place)

    def log_factor(self, v, bias):
        """b . v + log m(v), (n_rows,) float64."""
        return v @ bias.astype(np.float64)

    def fast_log_factor(self, v, bias):
        """The same with products in float32, for a whole data set during a fit."""
        return states.weigh(v, bias)

    def draw_annealed(self, x, base, bias, beta, place):
        """States at ``beta``, and by how much the log weight grows with beta.

        The natural parameters are (1 - beta) base + beta (bias + x).
        """
        v, slope = np.empty(x.shape, dtype=np.uint8), np.empty(len(x))
        kernels.anneal_visible(x, base, bias, beta, *place, slope, v)
        return v, slope

    def slope(self, v, base, bias):
        """That growth for given states: (bias - base) . v, float64."""
        return v.astype(np.float64) @ (bias - base)

    def flip(self, v):
        """What turns the states (n_rows,) of one unit into the other value."""
        return 1.0 - 2.0 * v

    def hold(self, v, clamp):
        """The states with the clamped values: float32 if some are probabilities."""
        return np.where(clamp.mask, clamp.values, v)

    def check_states(self, values, name):
        """Refuse values that no state of a unit has."""
        if np.any((values != 0.0) & (values != 1.0)):
            raise ValueError(
                f"{name} must be 0, 1 or NaN where binarize is None; found other "
                "values."
            )

    def public(self, v):
        """States in the form that users get."""
        return v > 0.5


BINARY = BinaryUnits()
