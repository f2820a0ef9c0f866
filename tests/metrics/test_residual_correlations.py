"""Residual analysis: slow references, false alarms at their stated rate, and power."""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import chi2, norm

from skbayesnn.metrics import residual_analysis

CROSS = ["cross_correlation", "squared_input", "squared_both", "product"]


def standardised(x):
    x = x - np.nanmean(x)
    return x / np.sqrt(np.nanmean(x**2))


def naive_correlation(a, b, lags, sessions):
    """Mean of a(t) b(t-k) over the pairs measured in one session, pair by pair."""
    a, b = standardised(a), standardised(b)
    values, counts = [], []
    for k in lags:
        products = [
            a[t] * b[t - k]
            for t in range(len(a))
            if 0 <= t - k < len(a)
            and sessions[t] == sessions[t - k]
            and np.isfinite(a[t] * b[t - k])
        ]
        values.append(np.mean(products) if products else 0.0)
        counts.append(len(products))
    return np.array(values), np.array(counts)


def naive_variance(a, b, sessions):
    """Sum of R_a R_b times the fraction of rows whose neighbour is measured, too."""
    n = len(a)
    longest = max(np.sum(sessions == s) for s in np.unique(sessions))
    reach = min(n // 5, longest - 1)
    lags = np.arange(-reach, reach + 1)
    of_a, _ = naive_correlation(a, a, lags, sessions)
    of_b, _ = naive_correlation(b, b, lags, sessions)
    both = np.isfinite(a * b)
    total = 0.0
    for k, r_a, r_b in zip(lags, of_a, of_b, strict=True):
        neighbours = sum(
            both[t] and both[t - k] and sessions[t] == sessions[t - k]
            for t in range(n)
            if 0 <= t - k < n
        )
        # Parzen's window
        x = abs(k) / (reach + 0.5)
        window = 1 - 6 * x**2 + 6 * x**3 if x <= 0.5 else 2 * (1 - x) ** 3
        total += window * neighbours / both.sum() * r_a * r_b
    return total


def partners(name, e, u):
    """The two signals that a test correlates, and by how much more it lags."""
    e, u = standardised(e), standardised(u)
    return {
        "cross_correlation": (e, u, 0),
        "squared_input": (e, u**2, 0),
        "squared_both": (e**2, u**2, 0),
        "product": (e, e * u, 1),
    }[name]


def gappy_record(n=90, seed=0):
    """Two outputs, three inputs, three sessions and a few missing values."""
    rng = np.random.default_rng(seed)
    E, U = rng.normal(size=(n, 2)), rng.normal(size=(n, 3)) + 5.0
    E[rng.random(E.shape) < 0.1] = np.nan
    U[rng.random(U.shape) < 0.1] = np.nan
    return 3.0 * E, U, np.repeat([0, 1, 2], [20, 40, n - 60])


def autoregressive(rng, coefficient, n):
    return lfilter([1.0], [1.0, -coefficient], rng.normal(size=n + 200))[200:]


@pytest.mark.parametrize("with_sessions", [False, True])
def test_correlations_agree_with_double_loops(with_sessions):
    E, U, sessions = gappy_record()
    if not with_sessions:
        sessions = np.zeros(len(E))
    analysis = residual_analysis(
        E, U, max_lag=6, confidence_level=0.9, sessions=sessions
    )
    z = norm.ppf(0.95)
    auto = analysis.autocorrelation
    for k, e in enumerate(E.T):
        values, counts = naive_correlation(e, e, range(7), sessions)
        np.testing.assert_allclose(auto.values[k], values, atol=1e-12)
        np.testing.assert_array_equal(auto.n_pairs[k], counts)
        np.testing.assert_allclose(auto.bound[k], z / np.sqrt(counts))
        outside = np.abs(values) > z / np.sqrt(counts)
        assert auto.fraction_outside[k] == pytest.approx(outside[1:].mean())
        for name in CROSS:
            test = analysis[name]
            for i, u in enumerate(U.T):
                a, b, shift = partners(name, e, u)
                values, counts = naive_correlation(a, b, test.lags + shift, sessions)
                np.testing.assert_allclose(test.values[k, i], values, atol=1e-12)
                np.testing.assert_array_equal(test.n_pairs[k, i], counts)


@pytest.mark.parametrize("name", CROSS)
def test_coloured_bounds_agree_with_a_double_loop(name):
    E, U, sessions = gappy_record()
    e, u = E[:, 0], U[:, 1]
    analysis = residual_analysis(e, u[:, None], max_lag=4, sessions=sessions)
    a, b, _ = partners(name, e, u)
    expected = naive_variance(standardised(a), standardised(b), sessions)
    test = analysis[name]
    bound = norm.ppf(0.995) * np.sqrt(expected / test.n_pairs)
    np.testing.assert_allclose(test.bound, bound, rtol=1e-9)


def test_ljung_box():
    """The textbook statistic, from the correlations that divide by n."""
    e = np.random.default_rng(0).normal(size=60)
    e -= e.mean()
    n, rho = len(e), [np.sum(e[k:] * e[: 60 - k]) / np.sum(e * e) for k in range(9)]
    statistic = n * (n + 2) * sum(rho[k] ** 2 / (n - k) for k in range(1, 9))
    analysis = residual_analysis(e, max_lag=8)
    np.testing.assert_allclose(analysis.ljung_box_statistic, [statistic])
    np.testing.assert_allclose(analysis.ljung_box_pvalue, [chi2.sf(statistic, 8)])


def test_shapes_with_and_without_inputs():
    E, U, _ = gappy_record()
    analysis = residual_analysis(E, U, max_lag=5)
    assert analysis.autocorrelation.values.shape == (2, 6)
    for name, n_lags in zip(CROSS, [11, 11, 11, 6], strict=True):
        test = analysis[name]
        assert test.lags.shape == (n_lags,)
        assert test.values.shape == test.bound.shape == (2, 3, n_lags)
        assert test.fraction_outside.shape == (2, 3)
    for nothing in (None, np.empty((len(E), 0))):
        alone = residual_analysis(E, nothing, max_lag=5)
        assert alone.cross_correlation.values.shape == (2, 0, 11)
        np.testing.assert_array_equal(alone.ljung_box_pvalue, analysis.ljung_box_pvalue)


def test_units_and_offsets_do_not_matter():
    E, U, sessions = gappy_record()
    one = residual_analysis(E, U, max_lag=5, sessions=sessions)
    other = residual_analysis(1e6 * E + 3.0, 2e-3 * U, max_lag=5, sessions=sessions)
    for name in ["autocorrelation", *CROSS]:
        np.testing.assert_allclose(one[name].values, other[name].values, atol=1e-9)
        np.testing.assert_allclose(one[name].bound, other[name].bound, atol=1e-9)


def test_sessions_are_analysed_like_records_joined_by_gaps():
    rng = np.random.default_rng(0)
    e, u, gap = rng.normal(size=80), rng.normal(size=80), np.full(10, np.nan)
    sessions = np.repeat(["b", "a"], 40)
    joined = residual_analysis(
        np.concatenate([e[:40], gap, e[40:]]),
        np.concatenate([u[:40], gap, u[40:]])[:, None],
        max_lag=9,
    )
    apart = residual_analysis(e, u[:, None], max_lag=9, sessions=sessions)
    for name in ["autocorrelation", *CROSS]:
        np.testing.assert_allclose(joined[name].values, apart[name].values, atol=1e-12)
        np.testing.assert_array_equal(joined[name].n_pairs, apart[name].n_pairs)


def false_alarms(of_residuals, of_input, names, n_seeds=150, n=500, missing=0.0):
    """Rate of values outside the 99 % bounds, and its standard error, by name."""
    rates = {name: [] for name in names}
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        e = autoregressive(rng, of_residuals, n)
        u = autoregressive(rng, of_input, n)
        e[rng.random(n) < missing] = np.nan
        analysis = residual_analysis(e, u[:, None])
        for name in names:
            rates[name].append(analysis[name].fraction_outside.item())
    return {
        name: (np.mean(rate), np.std(rate) / np.sqrt(n_seeds))
        for name, rate in rates.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of_residuals", "of_input", "missing", "names"),
    [
        (0.0, 0.0, 0.0, ["autocorrelation", "cross_correlation", "product"]),
        pytest.param(
            *(0.0, 0.9, 0.0, ["autocorrelation", "cross_correlation", "squared_input"]),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(0.0, 0.9, 0.2, ["autocorrelation", "cross_correlation"]),
            marks=pytest.mark.slow,
        ),
        # a simulation leaves coloured residuals: the bounds have to be wider
        pytest.param(
            *(0.8, 0.8, 0.0, ["cross_correlation", "squared_input"]),
            marks=pytest.mark.slow,
        ),
        pytest.param(0.8, 0.8, 0.2, ["cross_correlation"], marks=pytest.mark.slow),
        pytest.param(-0.8, 0.8, 0.0, ["cross_correlation"], marks=pytest.mark.slow),
    ],
)
def test_false_alarms_at_the_stated_rate(of_residuals, of_input, missing, names):
    found = false_alarms(of_residuals, of_input, names, missing=missing)
    for name, (rate, error) in found.items():
        assert abs(rate - 0.01) < 3 * error, (name, rate, error)


def test_ljung_box_rejects_white_residuals_at_the_stated_rate():
    rng = np.random.default_rng(0)
    E = rng.normal(size=(1000, 400))
    p = residual_analysis(E, max_lag=10).ljung_box_pvalue
    for level in (0.05, 0.5):
        error = np.sqrt(level * (1 - level) / len(p))
        assert abs(np.mean(p < level) - level) < 3 * error


def test_plain_bounds_would_not_do():
    """The reason for the coloured bounds: those of white noise are far too narrow."""
    outside = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        e, u = autoregressive(rng, 0.9, 500), autoregressive(rng, 0.9, 500)
        values = residual_analysis(e, u[:, None]).cross_correlation.values
        outside.append(np.mean(np.abs(values) > norm.ppf(0.995) / np.sqrt(500)))
    assert np.mean(outside) > 0.2


def outside(correlation, lag):
    at = correlation.lags == lag
    return (np.abs(correlation.values) > correlation.bound)[..., at].item()


@pytest.mark.parametrize("seed", range(5))
def test_what_is_missing_is_found_where_it_is(seed):
    rng = np.random.default_rng(seed)
    n = 1000
    u = autoregressive(rng, 0.5, n)
    noise = rng.normal(size=n)
    delayed = np.roll(u, 3)

    dynamics = residual_analysis(noise + 0.5 * delayed, u[:, None])
    assert outside(dynamics.cross_correlation, 3)
    even = residual_analysis(noise + 0.5 * delayed**2, u[:, None])
    assert outside(even.squared_input, 3)
    scedastic = residual_analysis(noise * np.abs(delayed), u[:, None])
    assert outside(scedastic.squared_both, 3)
    bilinear = noise.copy()
    for t in range(4, n):
        bilinear[t] += 0.4 * bilinear[t - 2] * u[t - 2]
    assert outside(residual_analysis(bilinear, u[:, None]).product, 1)
    coloured = residual_analysis(autoregressive(rng, 0.3, n))
    assert outside(coloured.autocorrelation, 1)
    assert coloured.ljung_box_pvalue < 0.01


def test_an_input_of_a_few_lines_is_not_beyond_suspicion():
    """Bounds that summed all lags would grow with the correlation and hide it."""
    rng = np.random.default_rng(0)
    t = np.arange(1000)
    u = np.sin(0.2 * t) + np.sin(0.31 * t + 1.0) + np.sin(0.47 * t + 2.0)
    analysis = residual_analysis(
        np.roll(u, 2) + 0.1 * rng.normal(size=1000), u[:, None]
    )
    assert outside(analysis.cross_correlation, 2)


def test_binary_and_constant_inputs():
    rng = np.random.default_rng(0)
    U = np.ones((200, 2))
    U[::2, 0] = -1.0
    rng.shuffle(U[:, 0])
    analysis = residual_analysis(rng.normal(size=200), U, max_lag=5)
    cross, squared = analysis.cross_correlation, analysis.squared_input
    assert np.isfinite(cross.values[0, 0]).all()
    # the square of the first, and the second itself, do not vary
    assert np.isnan(squared.values[0, 0]).all()
    assert np.isnan(cross.values[0, 1]).all()
    np.testing.assert_array_equal(np.isnan(cross.fraction_outside), [[False, True]])


E, U, _ = gappy_record()


@pytest.mark.parametrize(
    ("residuals", "X", "arguments", "message"),
    [
        (np.full(50, np.nan), None, {}, "residuals must hold at least one value"),
        (np.c_[E[:, 0], np.full(90, 2.0)], None, {}, "column 1 is constant"),
        (np.zeros(90), None, {}, "column 0 is constant"),
        (E, np.c_[U, np.full(90, np.nan)], {}, r"X must hold.*columns \[3\]"),
        (E, U[1:], {}, "residuals and X must have as many rows.*90 and 89"),
        (E, U[:, 0], {}, "Expected 2D array"),
        (E, U, {"max_lag": 90}, "max_lag is too large: 0 pairs"),
        (E, U, {"max_lag": 88}, "max_lag is too large"),
        (E, U, {"sessions": np.repeat(range(9), 10), "max_lag": 10}, "one session"),
        (E, U, {"max_lag": 0}, "max_lag == 0, must be >= 1"),
        (E, U, {"confidence_level": 0.0}, "confidence_level == 0.0, must be > 0"),
        (E, U, {"confidence_level": 1.0}, "confidence_level == 1.0, must be < 1"),
        (E, U, {"sessions": np.zeros(3)}, "sessions must hold one id per row"),
        (np.where(np.isnan(E), np.inf, E), U, {}, "residuals contains infinity"),
    ],
)
def test_errors(residuals, X, arguments, message):
    with pytest.raises(ValueError, match=message):
        residual_analysis(residuals, X, **arguments)


def test_a_lag_is_a_whole_number():
    with pytest.raises(TypeError, match="max_lag must be an instance of int"):
        residual_analysis(E, max_lag=2.5)
