"""Bands that hold a whole record, not each row alone."""

import math
from numbers import Real

import numpy as np
from sklearn.utils import check_scalar

from .. import _validation as checks

# Draws at least: all but one have a standard deviation.
_FEWEST = 3
# Of a variance, beside that of all draws, below which it is that of rounding.
_ROUNDING = 1e-12


def simultaneous_band(y_draws, coverage=0.95):
    r"""Compute a band that holds whole records with a given probability.

    A band of 95 % of every row holds 95 % of the rows, but few records from beginning
    to end. This one is wider by a common factor c,

    .. math:: \bar x_t \pm c \, s_t, \qquad
        c = \text{quantile of } \max_t \frac{|x_t - \bar x_t|}{s_t},

    over the draws x, whose means and standard deviations are :math:`\bar x_t` and
    :math:`s_t`; in c, those of all draws but x. A draw is nearer to a mean of which it
    is a part than a new record is.

    Parameters
    ----------
    y_draws : array-like of shape (n_samples, n_draws) or \
            (n_samples, n_outputs, n_draws)
        Independent draws of the record, as ``sample_y`` returns them. Values that are
        NaN in all draws are missing ones. A draw with another NaN, as after a
        divergence, counts as infinitely far away.
    coverage : float, default=0.95
        Probability that a record lies inside, between 0 and 1. It takes at least
        ``coverage / (1 - coverage)`` draws, and 3; some hundred give a steady band.

    Returns
    -------
    lower : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Lower ends, in units of y, NaN where all draws are. All outputs lie inside
        together. If too many draws have diverged, the ends are infinite.
    upper : ndarray shaped like lower
        Upper ends.

    Raises
    ------
    ValueError
        For draws of another shape, too few of them, infinite values, and a coverage
        out of range.

    See Also
    --------
    interval_coverage : Fraction of the rows that a band holds.

    Notes
    -----
    The band is as good as the draws are: it holds new records of the model. For the
    band of every row alone, take quantiles over the draws.

    References
    ----------
    .. [1] J. L. Montiel Olea, M. Plagborg-Moller, "Simultaneous confidence bands:
       theory, implementation, and an application to SVARs", Journal of Applied
       Econometrics 34 (2019): the sup-t band.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.metrics import simultaneous_band
    >>> draws = np.random.default_rng(0).normal(size=(50, 1000))
    >>> lower, upper = simultaneous_band(draws)
    >>> bool(upper.min() > 2.8)  # 1.96 hold one row
    True
    """
    limits = dict(min_val=0.0, max_val=1.0, include_boundaries="neither")
    check_scalar(coverage, "coverage", Real, **limits)
    draws = _check_draws(y_draws)
    rank = _rank(coverage, draws.shape[-1])
    missing = np.isnan(draws).all(axis=-1)
    finite = np.isfinite(draws[~missing]).all(axis=0)
    if finite.sum() < max(rank, _FEWEST):
        infinite = np.where(missing, np.nan, np.inf)
        return -infinite, infinite
    # rows that were given are the same in all draws, and so stay without rounding
    first = draws[..., finite][..., :1]
    kept = draws[..., finite] - first
    mean, std = kept.mean(axis=-1), kept.std(axis=-1, ddof=1)
    distance = np.abs(kept - mean[..., None])
    relative = distance / np.where(std > 0.0, std, np.inf)[..., None]
    farthest = np.sort(relative[~missing].max(axis=0, initial=0.0))
    far = _without_itself(farthest[rank - 1], len(farthest))
    half = np.where(std > 0.0, far, 0.0) * std
    mean = mean + first[..., 0]
    return mean - half, mean + half


def _without_itself(distance, n_draws):
    """The distance of a draw from the mean of the others, in their standard deviations.

    ``distance`` is that from the mean of all, in the standard deviations of all.
    """
    share = n_draws / (n_draws - 1.0)
    squares = n_draws - 1.0 - share * distance**2
    if squares <= _ROUNDING * n_draws:
        # all others are alike
        return np.inf
    return share * distance / np.sqrt(squares / (n_draws - 2.0))


def _rank(coverage, n_draws):
    """Which of the sorted draws a new one exceeds with the other probability."""
    # a product such as 0.7 * 10 may be an ulp above an integer
    rank = math.ceil(round(coverage * (n_draws + 1), 9))
    if max(rank, _FEWEST) > n_draws:
        least = max(math.ceil(round(coverage / (1.0 - coverage), 9)), _FEWEST)
        raise ValueError(
            f"coverage={coverage} needs at least {least} draws; y_draws has {n_draws}."
        )
    return rank


def _check_draws(y_draws):
    """Draws as floats, in two or three dimensions."""
    checks.check_container(y_draws, "y_draws")
    draws = np.asarray(y_draws)
    if draws.ndim not in (2, 3) or 0 in draws.shape:
        raise ValueError(
            "y_draws must have shape (n_samples, n_draws) or (n_samples, n_outputs, "
            f"n_draws), as sample_y returns it; got shape {draws.shape}."
        )
    columns = checks.as_columns(draws.reshape(len(draws), -1), "y_draws")
    return columns.reshape(draws.shape)
