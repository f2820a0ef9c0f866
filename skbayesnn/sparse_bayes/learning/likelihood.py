r"""Likelihoods: how improbable an error of a given size is.

A cycle knows a likelihood by the methods of `Gaussian` alone. Another one must be a
scale mixture of Gaussians, so that it can be fitted by reweighting (EM): with the
weights :math:`w_t` of single observations held fixed, the weighted squared error
:math:`\sum_t w_t r_t^2 / \sigma^2` rises by at least as much as the misfit,
:math:`-2 \log p(y | r, \sigma^2)`. The weights are computed anew in every cycle.

`StudentT` is such a mixture: an error is Gaussian with the variance
:math:`\sigma^2 / g_t`, and :math:`g_t` is drawn from a gamma distribution with mean 1
and variance :math:`2 / \nu`. Given the error, the mean of :math:`g_t` is

.. math:: w_t = \frac{\nu + 1}{\nu + r_t^2 / \sigma^2},

so a gross error counts little, and the update of :math:`\sigma^2` is that of weighted
errors. The degrees of freedom :math:`\nu` have no such update: they minimise the misfit
itself, in which the :math:`g_t` are integrated out, by a search in one dimension. Every
step lowers the objective, or is not taken.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from ..._saved_state import saved_as

INITIAL_NOISE = 0.1
MIN_NOISE = 1e-10
# Of a given noise variance, in scaled units: between these, quotients are numbers.
VARIANCE_BOUNDS = (1e-100, 1e100)
# Relative change of the factors of residuals below which they stay: others ask for the
# derivatives of all errors anew.
_SAME_WEIGHTS = 0.05
# Few enough that a gross error does not steer the first cycles, and so many that what
# a network has not learned yet is not taken for one.
INITIAL_FREEDOM = 10.0
# Below 2 the variance is infinite, and no standard deviation could be reported. Beyond
# the largest number the distribution is Gaussian for all that some thousand errors say.
FREEDOM_BOUNDS = (2.5, 200.0)


@saved_as("Gaussian")
class Gaussian(NamedTuple):
    """Independent Gaussian errors.

    noise_variance : "auto" to learn it; or the noise variance of each output in the
        user's units, of which `scaled` makes the factor that they have in common
    output_weights : (n_outputs,) factors of the residuals of each output, as far as a
        fit has learned them; None for those of the data
    """

    noise_variance: object = "auto"
    output_weights: np.ndarray | None = None

    def scaled(self, y_scale):
        """The likelihood of scaled outputs, and the factors of their residuals.

        The factors (n_outputs,) are inverse noise standard deviations up to a common
        factor, whose inverse square is the noise variance in all that follows.
        """
        if isinstance(self.noise_variance, str):
            return self, np.ones(len(y_scale))
        with np.errstate(over="ignore", divide="ignore"):
            relative = self.noise_variance / y_scale**2
        low, high = VARIANCE_BOUNDS
        if not ((relative >= low) & (relative <= high)).all():
            raise ValueError(
                f"noise_variance must be between {low:.0e} and {high:.0e} times the "
                f"variance of y; found {relative.min():.3g} to {relative.max():.3g}."
            )
        common = float(relative.mean())
        return self._replace(noise_variance=common), np.sqrt(common / relative)

    def initial_noise(self, previous=None):
        """The noise at the start of a fit; if learned, that of the ``previous`` fit."""
        if self.noise_variance != "auto":
            return self.noise_variance
        return INITIAL_NOISE if previous is None else previous

    def observation_weights(self, residuals, noise):
        """Weights of the squared residuals in the shape of these; None if all are 1.

        ``residuals`` is a function that computes them, in units in which their
        variance is ``noise``, NaN where nothing was measured.
        """
        return None

    def misfit(
        self,
        residuals,
        squared_error,
        counts,
        output_weights,
        noise,
        sample_weight=None,
    ):
        """Minus twice the log-likelihood, with its constant.

        Parameters
        ----------
        residuals : callable
            As in `observation_weights`; this likelihood does not need it.
        squared_error : float
            Sum of the weighted squares of the residuals.
        counts, output_weights : (n_outputs,) arrays
            Observations of each output, and the factors of its residuals.
        sample_weight : array, or None
            See `records.residuals.FitData`; this likelihood does not need it.
        """
        log_weights = 2.0 * float(counts @ np.log(output_weights))
        constant = counts.sum() * np.log(2.0 * np.pi * noise) - log_weights
        return squared_error / noise + constant

    def update_noise(self, squared_error, n_free, noise):
        r"""Fixed point of the noise variance, ``|r|^2 / (n - sum lambda gamma)``.

        ``n_free`` is the number of observations less that of the parameters which
        they determine. A factor of 10 down or 2 up is the most that one cycle changes.
        """
        if self.noise_variance != "auto":
            return noise
        fixed_point = squared_error / n_free if n_free > 0.0 else np.inf
        return max(float(np.clip(fixed_point, 0.1 * noise, 2.0 * noise)), MIN_NOISE)

    def with_noises(self, squared_errors, counts, n_free, noise, output_weights):
        """The likelihood and the noise, that of each output by `update_noise`.

        Both as they are if the ratios hardly change, or the noise is given. The
        parameters count for each output in proportion to its observations. Of the noise
        variances, their mean is the ``noise``, and their ratios are in the
        ``output_weights`` of the likelihood. ``squared_errors`` is a function that
        computes those (n_outputs,) without ``output_weights``.
        """
        if self.noise_variance != "auto":
            return self, noise
        shares = np.maximum(counts, 1) * n_free / counts.sum()
        terms = squared_errors(), shares, noise / output_weights**2
        variances = np.array([*map(self.update_noise, *terms)])
        common = float(variances.mean())
        learned = np.sqrt(common / variances)
        if np.allclose(learned, output_weights, rtol=_SAME_WEIGHTS, atol=0.0):
            return self, noise
        return self._replace(output_weights=learned), common

    def noise_std(self, noise, output_weights):
        """Standard deviation of the errors of each output, in scaled units."""
        return np.sqrt(noise) / output_weights

    def refined(self, residuals, noise, sample_weight=None):
        """The likelihood with parameters that lower the misfit; here it has none."""
        return self

    @property
    def degrees_of_freedom(self):
        """Of the errors' distribution, infinite for a Gaussian one."""
        return np.inf


@saved_as("StudentT")
class StudentT(NamedTuple):
    """Independent errors with heavy tails: Student's t distribution.

    The noise is the square of its scale.

    noise_variance, output_weights : as of `Gaussian`, but of the scale
    degrees_of_freedom : the same for all outputs
    bounds : between which they are learned
    """

    noise_variance: object = "auto"
    degrees_of_freedom: float = INITIAL_FREEDOM
    bounds: tuple = FREEDOM_BOUNDS
    output_weights: np.ndarray | None = None

    def scaled(self, y_scale):
        """As `Gaussian.scaled`."""
        gaussian, output_weights = Gaussian(self.noise_variance).scaled(y_scale)
        return self._replace(noise_variance=gaussian.noise_variance), output_weights

    def initial_noise(self, previous=None):
        """As `Gaussian.initial_noise`."""
        return Gaussian(self.noise_variance).initial_noise(previous)

    def observation_weights(self, residuals, noise):
        """The means of :math:`g_t` given the residuals; 1 where there is none."""
        nu = self.degrees_of_freedom
        weights = (nu + 1.0) / (nu + residuals() ** 2 / noise)
        return np.where(np.isfinite(weights), weights, 1.0)

    def misfit(
        self,
        residuals,
        squared_error,
        counts,
        output_weights,
        noise,
        sample_weight=None,
    ):
        """Minus twice the log-likelihood, with its constant, from ``residuals``."""
        log_weights = 2.0 * float(counts @ np.log(output_weights))
        return self._misfit(*_measured(residuals, sample_weight), noise) - log_weights

    def _misfit(self, errors, times, noise):
        """Of errors that count so many ``times``."""
        nu = self.degrees_of_freedom
        constant = 2.0 * (gammaln(0.5 * nu) - gammaln(0.5 * (nu + 1.0)))
        constant += np.log(nu * np.pi * noise)
        tails = (nu + 1.0) * (times * np.log1p(errors**2 / (nu * noise))).sum()
        return float(tails + times.sum() * constant)

    def update_noise(self, squared_error, n_free, noise):
        """As `Gaussian.update_noise`, from the weighted squared error."""
        return Gaussian(self.noise_variance).update_noise(squared_error, n_free, noise)

    def with_noises(self, squared_errors, counts, n_free, noise, output_weights):
        """As `Gaussian.with_noises`, from the weighted squared errors."""
        before = Gaussian(self.noise_variance)
        after, noise = before.with_noises(
            squared_errors, counts, n_free, noise, output_weights
        )
        if after is before:
            return self, noise
        return self._replace(output_weights=after.output_weights), noise

    def noise_std(self, noise, output_weights):
        """Standard deviation of the errors, not their scale."""
        nu = self.degrees_of_freedom
        return np.sqrt(noise * nu / (nu - 2.0)) / output_weights

    def refined(self, residuals, noise, sample_weight=None):
        """With degrees of freedom that lower the misfit, at most halved or doubled."""
        lowest, highest = self.bounds
        nu, errors = self.degrees_of_freedom, _measured(residuals, sample_weight)
        interval = max(lowest, 0.5 * nu), min(highest, 2.0 * nu)
        if interval[0] >= interval[1] or not np.isfinite(errors[0]).all():
            return self

        def misfit(log_freedom):
            return self._replace(degrees_of_freedom=np.exp(log_freedom))._misfit(
                *errors, noise
            )

        found = minimize_scalar(
            misfit, bounds=np.log(interval), method="bounded", options={"xatol": 1e-3}
        )
        better = self._replace(degrees_of_freedom=float(np.exp(found.x)))
        lower = better._misfit(*errors, noise) < self._misfit(*errors, noise)
        return better if lower else self


# By the name of the parameter ``noise``.
LIKELIHOODS = {"gaussian": Gaussian, "student_t": StudentT}


def _measured(residuals, sample_weight):
    """Errors, and how many times each of them counts."""
    errors = residuals()
    measured = ~np.isnan(errors)
    times = np.broadcast_to(
        1.0 if sample_weight is None else sample_weight, errors.shape
    )
    return errors[measured], times[measured]
