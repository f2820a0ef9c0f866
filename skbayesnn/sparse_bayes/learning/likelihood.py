r"""Likelihoods: how improbable an error of a given size is.

A cycle knows a likelihood by the methods of `Gaussian` alone. Another one must be a
scale mixture of Gaussians, so that it can be fitted by reweighting (EM): with the
weights :math:`w_t` of single observations held fixed, the weighted squared error
:math:`\sum_t w_t r_t^2 / \sigma^2` rises by at least as much as the misfit,
:math:`-2 \log p(y | r, \sigma^2)`. The weights are computed anew in every cycle.
"""

from typing import NamedTuple

import numpy as np

INITIAL_NOISE = 0.1
MIN_NOISE = 1e-10


class Gaussian(NamedTuple):
    """Independent Gaussian errors.

    noise_variance : "auto" to learn it; or the noise variance of each output in the
        user's units, of which `scaled` makes the factor that they have in common
    """

    noise_variance: object = "auto"

    def scaled(self, y_scale):
        """The likelihood of scaled outputs, and the factors of their residuals.

        The factors (n_outputs,) are inverse noise standard deviations up to a common
        factor, whose inverse square is the noise variance in all that follows.
        """
        if isinstance(self.noise_variance, str):
            return self, np.ones(len(y_scale))
        relative = self.noise_variance / y_scale**2
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

    def misfit(self, residuals, squared_error, counts, output_weights, noise):
        """Minus twice the log-likelihood, with its constant.

        Parameters
        ----------
        residuals : callable
            As in `observation_weights`; this likelihood does not need it.
        squared_error : float
            Sum of the weighted squares of the residuals.
        counts, output_weights : (n_outputs,) arrays
            Observations of each output, and the factors of its residuals.
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

    def noise_std(self, noise, output_weights):
        """Standard deviation of the errors of each output, in scaled units."""
        return np.sqrt(noise) / output_weights
