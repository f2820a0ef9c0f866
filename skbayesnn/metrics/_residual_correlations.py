"""Residual analysis: tests of whiteness and of independence of the inputs."""

from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from scipy.signal import correlate
from scipy.signal.windows import parzen
from scipy.stats import chi2, norm
from sklearn.utils import Bunch, check_scalar

from .. import _validation as checks
from .._validation import check_array, session_starts

# A signal whose standard deviation is below this fraction of its size is constant up
# to rounding.
CONSTANT = 1e-10
# The fraction of the record over which the bounds sum correlations: long enough for
# slow signals. Over the whole record the bounds would grow with the correlation that
# they are to reveal: by Parseval's theorem, the sum over all lags of R_e(j) R_u(j) is
# that of the squared cross-correlations.
WINDOW_FRACTION = 0.2


class Correlation(NamedTuple):
    """A correlation as a function of the lag, with its confidence bounds.

    The leading axes are the outputs and, except for the autocorrelation, the inputs.

    lags : (n_lags,) int64
    values : (..., n_lags)
    bound : (..., n_lags), half width of the confidence interval around zero
    n_pairs : (..., n_lags) int64, pairs of rows behind each value
    fraction_outside : (...), fraction of the lags whose value exceeds its bound
    """

    lags: np.ndarray
    values: np.ndarray
    bound: np.ndarray
    n_pairs: np.ndarray
    fraction_outside: np.ndarray


class _Signal(NamedTuple):
    """A standardised signal; zero where it is not measured, and if it is constant."""

    values: np.ndarray
    measured: np.ndarray

    @property
    def is_constant(self):
        return not self.values.any()


def residual_analysis(
    residuals, X=None, *, max_lag=25, confidence_level=0.99, sessions=None
):
    r"""Test the residuals for whiteness and for independence of the inputs.

    The residuals of an adequate model cannot be predicted from the inputs nor, one
    step ahead, from their own past. Five correlations [1]_ [2]_ of the residuals
    :math:`e` and each input :math:`u` show what a model misses; :math:`(u^2)'` is the
    square of the centred input minus its mean.

    Parameters
    ----------
    residuals : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Measured minus predicted outputs, in the order of time. NaN where a value was
        not measured or not predicted, or belongs to the initialisation.
    X : array-like of shape (n_samples, n_inputs), default=None
        Inputs, NaN where missing. None tests for whiteness only.
    max_lag : int, default=25
        Largest lag. The statistics are asymptotic: keep it below a quarter of the
        number of rows of a session.
    confidence_level : float, default=0.99
        Probability that the correlation at one lag stays within its bound if the
        residuals are white and independent of the inputs.
    sessions : array-like of shape (n_samples,), default=None
        Id of the record that each row belongs to; a record is a run of rows with the
        same id. No pair of rows spans two records.

    Returns
    -------
    analysis : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes. The correlations are
        named tuples of ``lags``, ``values``, ``bound`` (half width of the confidence
        interval around zero), ``n_pairs`` (pairs of rows) and ``fraction_outside``;
        n_lags is ``max_lag + 1``, or ``2 * max_lag + 1`` with negative lags.

        autocorrelation : named tuple, values of shape (n_outputs, n_lags)
            Of :math:`e(t)` and :math:`e(t-k)`, k = 0 to ``max_lag``. Values outside
            the bounds mean that the residuals are not white, which they should be one
            step ahead. Lag 0, which is 1, does not count in ``fraction_outside``.
        cross_correlation : named tuple, values of shape (n_outputs, n_inputs, n_lags)
            Of :math:`e(t)` and :math:`u(t-k)`, k = ``-max_lag`` to ``max_lag``.
            Values outside the bounds mean missing dynamics at lags of 0 and above,
            feedback at negative lags.
        squared_input : named tuple, values of shape (n_outputs, n_inputs, n_lags)
            Of :math:`e(t)` and :math:`(u^2)'(t-k)`, same lags. It reveals a
            missing even nonlinearity.
        squared_both : named tuple, values of shape (n_outputs, n_inputs, n_lags)
            Of :math:`(e^2)'(t)` and :math:`(u^2)'(t-k)`, same lags. It reveals
            a missing nonlinearity of any kind, or noise that depends on the input.
        product : named tuple, values of shape (n_outputs, n_inputs, n_lags)
            Of :math:`e(t)` and :math:`(e u)(t-1-k)`, k = 0 to ``max_lag``. It reveals
            a missing product of input and noise.
        ljung_box_statistic : ndarray of shape (n_outputs,)
            Ljung-Box statistic of the autocorrelation at lags 1 to ``max_lag``.
        ljung_box_pvalue : ndarray of shape (n_outputs,)
            Its p-value, chi-squared with ``max_lag`` degrees of freedom.
        confidence_level : float
            As given.

        Without inputs, n_inputs is 0. Values are NaN for an input, or a squared
        input, that is constant.

    Raises
    ------
    ValueError
        For residuals that are constant or all NaN, inputs that are all NaN, a lag with
        fewer than two pairs of rows, different lengths, and parameters out of range.

    See Also
    --------
    skbayesnn.displays.ResidualAnalysisDisplay : Plot of the correlations.

    Notes
    -----
    The bounds of the autocorrelation are those of white noise, :math:`z / \sqrt{N_k}`
    with :math:`N_k` pairs of rows. The bounds of the other correlations allow for
    coloured signals: :math:`z \sqrt{\sum_j R_e(j) R_u(j) / N_k}` with the
    autocorrelations of both, weighted by a Parzen window over a fifth of the record.
    The coloured residuals of a simulation can therefore be tested for independence of
    the inputs, too; only ``product`` needs white residuals.

    The p-value holds for residuals on data that the model was not fitted to. Residuals
    on the training data are whiter than the noise.

    References
    ----------
    .. [1] L. Ljung, "System Identification: Theory for the User", 2nd edition, 1999,
       section 16.6.
    .. [2] S. A. Billings, W. S. F. Voon, "Correlation based model validity tests for
       non-linear models", International Journal of Control 44, 1986.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.metrics import residual_analysis
    >>> rng = np.random.default_rng(0)
    >>> u = rng.normal(size=(1000, 1))
    >>> noise = rng.normal(size=1000)
    >>> missing = residual_analysis(noise + np.roll(u[:, 0], 3), u, max_lag=5)
    >>> correlation = missing.cross_correlation
    >>> correlation.lags[np.abs(correlation.values[0, 0]) > correlation.bound[0, 0]]
    array([3])
    """
    E, U, starts = _check(residuals, X, max_lag, confidence_level, sessions)
    errors = [_standardise(e) for e in E.T]
    inputs = [_standardise(u) for u in U.T]
    every_input = [inputs] * len(errors)
    every_square = [[_square(u) for u in inputs]] * len(errors)
    products = [[_product(e, u) for u in inputs] for e in errors]
    past = np.arange(max_lag + 1)
    both_sides = np.arange(-max_lag, max_lag + 1)
    z = norm.isf((1.0 - confidence_level) / 2.0)
    autocorrelation = _autocorrelation(errors, starts, past, z)
    statistic = _ljung_box(autocorrelation, errors)
    return Bunch(
        autocorrelation=autocorrelation,
        cross_correlation=_cross(errors, every_input, starts, both_sides, z),
        squared_input=_cross(errors, every_square, starts, both_sides, z),
        squared_both=_cross(
            [_square(e) for e in errors], every_square, starts, both_sides, z
        ),
        product=_cross(errors, products, starts, past, z, shift=1),
        ljung_box_statistic=statistic,
        ljung_box_pvalue=chi2.sf(statistic, max_lag),
        confidence_level=confidence_level,
    )


def _check(residuals, X, max_lag, confidence_level, sessions):
    """Residuals (n, n_outputs), inputs (n, n_inputs) and the starts of sessions."""
    check_scalar(max_lag, "max_lag", Integral, min_val=1)
    check_scalar(
        confidence_level,
        "confidence_level",
        Real,
        min_val=0.0,
        max_val=1.0,
        include_boundaries="neither",
    )
    E = checks.as_columns(residuals, "residuals")
    U = np.empty((len(E), 0)) if X is None else _check_inputs(X)
    checks.check_lengths(E, U, "residuals", "X")
    for array, name in ((E, "residuals"), (U, "X")):
        checks.check_magnitude(array, name)
        checks.check_any_value(array, name)
    starts = session_starts(checks.check_sessions(sessions, len(E)), len(E))
    for column, e in enumerate(E.T):
        if _standardise(e).is_constant:
            raise ValueError(
                f"residuals must vary; column {column} is constant. The correlations "
                "of a constant are not defined."
            )
    return E, U, starts


def _check_inputs(X):
    checks.check_container(X, "X")
    return check_array(
        X,
        dtype=np.float64,
        ensure_all_finite="allow-nan",
        ensure_min_features=0,
        input_name="X",
    )


def _standardise(x):
    return _from_measured(np.nan_to_num(x), np.isfinite(x))


def _square(signal):
    return _from_measured(signal.values**2, signal.measured)


def _product(a, b):
    return _from_measured(a.values * b.values, a.measured & b.measured)


def _from_measured(x, measured):
    if not measured.any():
        return _Signal(np.zeros_like(x), measured)
    size = np.sqrt(np.mean(x[measured] ** 2))
    centred = np.where(measured, x - x[measured].mean(), 0.0)
    spread = np.sqrt(np.mean(centred[measured] ** 2))
    if spread <= CONSTANT * size:
        return _Signal(np.zeros_like(x), measured)
    return _Signal(centred / spread, measured)


def _lagged_sums(a, b, starts, reach):
    """Sums of a(t) b(t-k) within the sessions, k = -reach to reach."""
    total = np.zeros(2 * reach + 1)
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        sums = correlate(a[start:stop], b[start:stop], method="fft")
        last = min(reach, stop - start - 1)
        middle = stop - start - 1
        total[reach - last : reach + last + 1] += sums[
            middle - last : middle + last + 1
        ]
    return total


def _lagged_means(a, b, starts, reach):
    """Correlations of two standardised signals, and the pairs of rows behind each."""
    n_pairs = _lagged_sums(
        a.measured.astype(np.float64), b.measured.astype(np.float64), starts, reach
    )
    n_pairs = np.rint(n_pairs).astype(np.int64)
    sums = _lagged_sums(a.values, b.values, starts, reach)
    return np.where(n_pairs > 0, sums / np.maximum(n_pairs, 1), 0.0), n_pairs


def _correlate(a, b, starts, lags):
    """Correlations of a(t) and b(t-k) at the given lags, and their pairs of rows."""
    reach = int(np.abs(lags).max())
    values, n_pairs = _lagged_means(a, b, starts, reach)
    values, n_pairs = values[lags + reach], n_pairs[lags + reach]
    fewest = n_pairs.argmin()
    if n_pairs[fewest] < 2:
        raise ValueError(
            f"max_lag is too large: {n_pairs[fewest]} pairs of rows that are "
            f"{abs(lags[fewest])} apart lie in one session with both values measured; "
            "at least 2 are needed. Lower max_lag."
        )
    if a.is_constant or b.is_constant:
        values = np.full(len(lags), np.nan)
    return values, n_pairs


def _coloured_variance(a, b, starts):
    """Variance of the correlation of independent signals, times the number of pairs.

    It is 1 for white signals, and the sum of R_a(j) R_b(j) over j in general.
    """
    longest = int(np.diff(starts).max())
    reach = min(int(WINDOW_FRACTION * len(a.values)), longest - 1)
    both = (a.measured & b.measured).astype(np.float64)
    # both signals are measured in this fraction of the rows and again j rows later
    fraction = _lagged_sums(both, both, starts, reach) / both.sum()
    of_a, _ = _lagged_means(a, a, starts, reach)
    of_b, _ = _lagged_means(b, b, starts, reach)
    variance = np.sum(parzen(2 * reach + 1) * fraction * of_a * of_b)
    # rounding could make it negative where the spectra hardly overlap
    return np.maximum(variance, 1.0 / both.sum())


def _autocorrelation(errors, starts, lags, z):
    pairs = [_correlate(e, e, starts, lags) for e in errors]
    values, n_pairs = (np.array(column) for column in zip(*pairs, strict=True))
    bound = z / np.sqrt(n_pairs)
    outside = np.mean(np.abs(values[:, 1:]) > bound[:, 1:], axis=-1)
    return Correlation(lags, values, bound, n_pairs, outside)


def _ljung_box(autocorrelation, errors):
    """The Ljung-Box statistic, with the number of pairs of each lag for n - k."""
    n = np.array([e.measured.sum() for e in errors])
    values, n_pairs = autocorrelation.values[:, 1:], autocorrelation.n_pairs[:, 1:]
    return (n + 2) / n * np.sum(n_pairs * values**2, axis=-1)


def _cross(errors, partners, starts, lags, z, shift=0):
    """Correlations of e(t) and p(t - shift - k) for the partners p of each output."""
    shape = (len(errors), len(partners[0]), len(lags))
    values, bound = np.empty(shape), np.empty(shape)
    n_pairs = np.empty(shape, dtype=np.int64)
    for k, (e, row) in enumerate(zip(errors, partners, strict=True)):
        for i, partner in enumerate(row):
            values[k, i], n_pairs[k, i] = _correlate(e, partner, starts, lags + shift)
            variance = _coloured_variance(e, partner, starts)
            bound[k, i] = z * np.sqrt(variance / n_pairs[k, i])
    outside = np.mean(np.abs(values) > bound, axis=-1)
    undefined = np.isnan(values)
    bound[undefined] = np.nan
    outside[undefined.any(axis=-1)] = np.nan
    return Correlation(lags, values, bound, n_pairs, outside)
