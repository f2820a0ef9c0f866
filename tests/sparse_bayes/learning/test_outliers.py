"""Wrong outputs of a record, found before anything is fitted to it."""

import numpy as np
import pytest
from grids import first_by_default
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn import SparseBayesNARXRegressorCV
from skbayesnn.datasets import make_cascaded_tanks
from skbayesnn.sparse_bayes.learning import outliers as module
from skbayesnn.sparse_bayes.learning.outliers import screen_outputs
from skbayesnn.sparse_bayes.learning.robust_arx import scale_of

N_ROWS = 600


def record(seed, n_rows=N_ROWS, draw=None, limit=np.inf):
    """A resonant system with a smooth nonlinearity and process noise."""
    rng = np.random.default_rng(seed)
    u = np.repeat(rng.uniform(-1.0, 1.0, n_rows // 5 + 1), 5)[:n_rows]
    noise = 0.02 * (rng.standard_normal(n_rows) if draw is None else draw(rng, n_rows))
    y = np.zeros(n_rows)
    for t in range(2, n_rows):
        y[t] = 1.6 * y[t - 1] - 0.7 * y[t - 2] + 0.2 * np.tanh(u[t - 1]) + noise[t]
        y[t] = np.clip(y[t], -limit, limit)
    return u[:, None], y, rng


def screen(u, y, starts=None):
    Y = y.reshape(len(y), -1)
    starts = np.array([0, len(y)]) if starts is None else np.asarray(starts)
    screened = screen_outputs(u, Y, starts)
    assert not (screened.doubtful & ~screened.outliers).any()
    return screened.certain.reshape(y.shape), screened.outliers.reshape(y.shape)


def with_gross_errors(y, rng, n_wrong=12):
    rows = rng.choice(np.arange(30, len(y) - 5), n_wrong, replace=False)
    wrong = y.copy()
    wrong[rows] += rng.choice([-1, 1], n_wrong) * rng.uniform(2, 5, n_wrong) * y.std()
    return wrong


def moving(y, n_stuck, rng):
    """The first row of a stretch in which the output moves by its deviation."""
    swing = np.array([np.ptp(y[k : k + n_stuck + 1]) for k in range(len(y) - n_stuck)])
    return int(rng.choice(np.flatnonzero(swing[30:] > 1.5 * y.std()))) + 30


@pytest.mark.parametrize("seed", first_by_default(range(5)))
def test_gross_errors_are_found_and_replaced(seed):
    u, y, rng = record(seed)
    wrong = with_gross_errors(y, rng)
    replaced, outliers = screen(u, wrong)
    assert outliers[wrong != y].all()
    assert np.count_nonzero(outliers[wrong == y]) <= 2
    # neighbours tell a value better than the rows before it do
    single = outliers & np.isfinite(replaced)
    assert np.count_nonzero(single) >= 8
    assert np.sqrt(np.mean((replaced - y)[single] ** 2)) < 0.02
    assert_array_equal(replaced[~outliers], wrong[~outliers])


@pytest.mark.parametrize(
    "n_outputs, fraction, n_seeds",
    [
        (1, 0.05, 2),
        *[
            pytest.param(*case, 5, marks=pytest.mark.slow)
            for case in [(1, 0.05), (1, 0.2), (2, 0.05)]
        ],
    ],
)
def test_gross_errors_between_missing_outputs_are_found(n_outputs, fraction, n_seeds):
    """They pass over incomplete windows: with a fifth missing, none was complete."""
    n_found, n_false = 0, 0
    for seed in range(n_seeds):
        u, y, rng = record(seed)
        wrong = with_gross_errors(y, rng)
        is_wrong = wrong != y
        gone = ~is_wrong & (rng.random(N_ROWS) < fraction)
        # the second output is the first one, measured a second time
        other = y + 0.02 * rng.standard_normal(N_ROWS)
        other[rng.random(N_ROWS) < fraction] = np.nan
        Y = np.column_stack([np.where(gone, np.nan, wrong), other])[:, :n_outputs]
        replaced, outliers = screen(u, Y)
        assert np.isnan(replaced[gone, 0]).all()
        n_found += np.count_nonzero(outliers[is_wrong, 0])
        n_false += np.count_nonzero(outliers) - np.count_nonzero(outliers[is_wrong, 0])
    # of 12 in each record
    assert n_found >= 10 * n_seeds and n_false <= 0.6 * n_seeds


@pytest.mark.parametrize("seed", first_by_default(range(5)))
@pytest.mark.parametrize("row", [7, 9, 306, 405])
def test_gross_errors_where_no_row_predicts_are_found(seed, row):
    """By their traces: at the start of a session, and behind missing values."""
    u, y, _ = record(seed)
    y[398:402] = np.nan
    wrong = y.copy()
    wrong[row] += 4.0 * np.nanstd(y)
    replaced, outliers = screen(u, wrong, [0, 300, N_ROWS])
    assert np.flatnonzero(outliers).tolist() == [row]
    # no row before it tells its value
    assert np.isnan(replaced[row]) or abs(replaced[row] - y[row]) < 0.1
    assert not screen(u, y, [0, 300, N_ROWS])[1].any()


@pytest.mark.parametrize("seed", first_by_default(range(5), 2))
def test_a_sensor_that_sticks_is_found(seed):
    u, y, rng = record(seed)
    first = moving(y, 12, rng)
    stuck = y.copy()
    stuck[first : first + 12] = y[first - 1]
    replaced, outliers = screen(u, stuck)
    assert outliers[first : first + 12].all()
    assert np.count_nonzero(outliers) <= 14
    assert np.isnan(replaced[first : first + 12]).all()


def test_a_sensor_that_reads_far_off_is_found():
    u, y, rng = record(3)
    off = y.copy()
    off[200:212] = y.min() - 2.0 * y.std()
    assert_array_equal(np.flatnonzero(screen(u, off)[1]), np.arange(200, 212))


@pytest.mark.parametrize("code", [-999.0, 1e5])
@pytest.mark.parametrize("rows", [[300], [40, 41, 42, 120], [0, N_ROWS - 1]])
def test_codes_of_missing_values_are_found_and_replaced(rows, code):
    """Also of outputs that mostly repeat the value before, and are not searched."""
    for seed, step in ((0, 0.0), (1, 0.0), (2, 0.5)):
        u, y, _ = record(seed)
        y = step * np.round(y / step) if step else y
        wrong = y.copy()
        wrong[rows] = code
        assert (np.mean(np.diff(y) == 0.0) > 0.5) == (step > 0.0)
        replaced, outliers = screen(u, wrong)
        assert np.flatnonzero(outliers).tolist() == rows
        # nothing is measured behind the last row
        assert np.isnan(replaced[rows[-1]]) == (rows[-1] == N_ROWS - 1)
        error = np.abs(replaced[rows] - y[rows])
        assert np.nanmax(error, initial=0.0) < max(0.08, 2.0 * step)


@pytest.mark.parametrize("seed", first_by_default(range(4)))
@pytest.mark.parametrize("size", [pytest.param(100.0, marks=pytest.mark.slow), -3e3])
def test_codes_beside_rare_inputs_are_found(size, seed):
    """There no row is judged, and fits that saw the code forgot the past."""
    rng = np.random.default_rng(seed)
    u, y = pulses(rng, N_ROWS), np.zeros(N_ROWS)
    for t in range(2, N_ROWS):
        drive = 0.3 * np.tanh(2.0 * u[t - 1]) + 0.05 * u[t - 1] ** 2
        y[t] = 1.2 * y[t - 1] - 0.4 * y[t - 2] + drive
    y += 0.02 * y.std() * rng.standard_normal(N_ROWS)
    for row in 30 + np.flatnonzero(np.diff(u[30:-5]) > 0.0)[:6]:
        wrong = y.copy()
        wrong[row] += size * y.std()
        assert np.flatnonzero(screen(u[:, None], wrong)[1]).tolist() == [row]


@pytest.mark.parametrize(
    "draw",
    [None, lambda rng, n: rng.standard_t(3.0, n), lambda rng, n: rng.laplace(size=n)],
    ids=["gaussian", "student_t", "laplace"],
)
def test_right_records_are_left_alone(draw):
    n_found = [screen(*record(seed, draw=draw)[:2])[1].sum() for seed in range(8)]
    # a tail of noise may look like one
    assert sum(n_found) <= 4


def pulses(rng, n_rows):
    """An input that is mostly at rest."""
    return (np.convolve(rng.random(n_rows) < 0.02, np.ones(5))[:n_rows] > 0) * 1.0


RARE = {
    "a pulse": lambda rng, n: (np.arange(n) >= n // 2) & (np.arange(n) < n // 2 + 6),
    "three pulses": lambda rng, n: np.arange(n) % 200 // 3 == 33,
    "pulses": pulses,
    "a large step": lambda rng, n: np.repeat(
        np.where(np.arange(n // 10) == 30, 1.0, 0.1 * rng.uniform(-1, 1, n // 10)), 10
    ),
}


@pytest.mark.parametrize("kind", RARE)
def test_responses_to_rare_inputs_are_left_alone(kind):
    """Of a system with a quadratic input, to which a linear model has no answer."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        u, y = RARE[kind](rng, 600).astype(float), np.zeros(600)
        for t in range(2, 600):
            drive = 0.3 * np.tanh(2.0 * u[t - 1]) + 0.05 * u[t - 1] ** 2
            y[t] = 1.2 * y[t - 1] - 0.4 * y[t - 2] + drive
        y += 0.02 * y.std() * rng.standard_normal(600)
        assert not screen(u[:, None], y)[1].any()


def test_gross_errors_at_rest_are_found():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        u, y = pulses(rng, 600)[:, None], np.zeros(600)
        noise = 0.02 * rng.standard_normal(600)
        for t in range(2, 600):
            y[t] = 1.2 * y[t - 1] - 0.4 * y[t - 2] + 0.3 * u[t - 1, 0] + noise[t]
        wrong = with_gross_errors(y, rng, 8)
        outliers = screen(u, wrong)[1]
        assert np.count_nonzero(outliers[wrong != y]) >= 5
        assert np.count_nonzero(outliers[wrong == y]) <= 1


def test_disturbances_of_the_system_are_no_wrong_rows():
    def draw(rng, n_rows):
        noise = rng.standard_normal(n_rows)
        noise[rng.choice(np.arange(30, n_rows), 8, replace=False)] += 40.0
        return noise

    for seed in range(4):
        u, y, _ = record(seed, draw=draw)
        assert not screen(u, y)[1].any()


def heated_room(seed, wrong=()):
    """Valve, weather and temperature: a controller with a set point of days and nights.

    It does not see the errors of 2 degrees in the ``wrong`` rows.
    """
    rng = np.random.default_rng(seed)
    rows = np.arange(N_ROWS)
    day = (rows % 96 > 30) & (rows % 96 < 72)
    levels = np.repeat(rng.uniform(20.0, 23.0, N_ROWS // 24), 24)
    set_point = np.where(day, levels, 17.0)
    weather = (
        5.0 + 4.0 * np.sin(rows / 15.0) + 0.05 * rng.standard_normal(N_ROWS).cumsum()
    )
    u, y = np.zeros(N_ROWS), np.zeros(N_ROWS)
    room, walls, integral = 18.0, 17.0, 0.0
    for t in rows:
        y[t] = room + 0.05 * rng.standard_normal()
        error = set_point[t] - y[t]
        u[t] = np.clip(25.0 * error + integral, 0.0, 100.0)
        integral += 1.5 * error * (0.0 < u[t] < 100.0)
        heat = 0.02 * u[t] * (1.0 - 0.003 * u[t])
        heat += 0.15 * day[t] - 0.05 * (room - weather[t])
        room += heat - 0.15 * (room - walls)
        walls += 0.03 * (room - walls - 0.2 * (walls - weather[t]))
    y[list(wrong)] += 2.0
    return np.column_stack([u, weather, day]), y


@pytest.mark.parametrize("seed", [0, 3, 6, 11, 13, 18])
def test_steps_of_a_set_point_are_no_wrong_rows(seed):
    assert not screen(*heated_room(seed))[1].any()


@pytest.mark.parametrize("seed", first_by_default(range(4)))
def test_gross_errors_in_closed_loop_are_found(seed):
    wrong = [60, 150, 151, 333, 480]
    found = np.flatnonzero(screen(*heated_room(seed, wrong))[1])
    assert set(found) == set(wrong)


@pytest.mark.parametrize("seed", first_by_default(range(5), 2))
def test_a_sensor_may_stick_for_long(seed):
    u, y, _ = record(seed)
    # not at an end of its range, where an output may saturate
    first = 101 + int(np.argmin(np.abs(y[100:400])))
    stuck = y.copy()
    stuck[first : first + 100] = y[first - 1]
    outliers = screen(u, stuck)[1]
    assert outliers[first : first + 100].all()
    assert np.count_nonzero(outliers) <= 102


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_levels", [8, 30])
def test_rounded_outputs_are_left_alone(n_levels, seed):
    rng = np.random.default_rng(seed)
    u, y = np.repeat(rng.uniform(0.4, 1.8, N_ROWS // 15), 15), np.ones((N_ROWS, 2))
    for t in range(1, N_ROWS):
        out = np.sqrt(y[t - 1])
        y[t] = y[t - 1] + 0.1 * (np.append(u[t - 1], out[:1]) - out)
    y = y[:, 1] + 0.02 * rng.standard_normal(N_ROWS)
    step = np.ptp(y) / n_levels
    assert not screen(u[:, None], step * np.round(y / step))[1].any()


def rounded_floods(seed):
    """Fast rises and slow falls, rounded so that a quarter of the values repeats."""
    rng = np.random.default_rng(seed)
    rain = np.where(rng.random(N_ROWS) < 0.1, rng.lognormal(0.0, 1.0, N_ROWS), 0.0)
    u, y = rain[:, None], np.zeros(N_ROWS)
    for t in range(1, N_ROWS):
        y[t] = 0.9 * y[t - 1] + 0.1 * rain[t] ** 2 * rng.lognormal(0.0, 0.3)
    return u, np.round(y + 0.1 * rng.standard_normal(N_ROWS), 1), rng


@pytest.mark.parametrize(
    "fraction",
    [
        pytest.param(0.0, marks=pytest.mark.slow),
        0.02,
        pytest.param(0.05, marks=pytest.mark.slow),
    ],
)
def test_nothing_is_wrong_beside_missing_inputs(fraction):
    """One residual behind them, by a tiny weight, told of an error of any size."""
    for seed in range(8):
        u, y, rng = rounded_floods(seed)
        assert 0.2 < np.mean(np.diff(y) == 0.0) < 0.3
        u[rng.choice(N_ROWS, int(fraction * N_ROWS), replace=False)] = np.nan
        assert not screen(u, y)[1].any()


def test_a_short_run_of_rounded_values_is_no_sensor_that_sticks():
    for seed in range(8):
        u, y, _ = record(seed)
        assert not screen(u, 0.05 * np.round(y / 0.05))[1].any()


def test_outputs_most_of_which_are_fitted_exactly():
    """Rounded to zero between steps: the scale had shrunk until its square was 0."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        u = np.repeat(rng.uniform(-1.0, 1.0, N_ROWS // 10), 10)
        y = np.diff(u, prepend=0.0) + 1e-3 * rng.standard_normal(N_ROWS)
        u[rng.choice(N_ROWS, 18, replace=False)] = np.nan
        step = 0.1 * y.std()
        assert not screen(u[:, None], step * np.round(y / step))[1].any()


def test_noise_below_the_rounding_makes_no_row_wrong():
    """Rows whose rounding repeats had seemed to be without errors."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        u, y = np.repeat(rng.choice([-1.0, 1.0], N_ROWS // 4), 4), np.zeros(N_ROWS)
        for t in range(1, N_ROWS):
            y[t] = 0.5 * y[t - 1] + np.exp(u[t - 1])
        y += 0.003 * y.std() * rng.standard_normal(N_ROWS)
        step = 0.1 * y.std()
        assert not screen(u[:, None], step * np.round(y / step))[1].any()


def test_outputs_that_are_held_between_samples_are_left_alone():
    u, y, _ = record(0)
    assert not screen(u, np.repeat(y[::10], 10))[1].any()


def test_saturation_is_no_sticking():
    u, y, _ = record(2, limit=0.25)
    assert np.mean(np.diff(y) == 0.0) > 0.2
    assert screen(u, y)[1].mean() < 0.01


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_record_may_end_while_its_output_is_saturated(sign):
    """It had come to the end of its range in steps larger than its noise, and once."""
    tanks = make_cascaded_tanks(random_state=0)
    y = sign * tanks.target[:250]
    assert np.flatnonzero(np.abs(y) == 10.0).tolist() == list(range(207, 250))
    assert not screen(tanks.data[:250], y)[1].any()


def test_units_do_not_matter():
    u, y, rng = record(1)
    wrong = with_gross_errors(y, rng)
    replaced, outliers = screen(u, wrong)
    scaled, again = screen(1e-4 * u, 1e5 * wrong - 3e6)
    assert_array_equal(again, outliers)
    assert_allclose((scaled + 3e6) / 1e5, replaced, atol=1e-6)


@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.SamplingWarning")
@pytest.mark.parametrize("factor", [1e-170, 1e-155])
def test_outputs_whose_squares_underflow_are_left_to_the_fit(factor):
    """It refuses them in words."""
    u, y, _ = record(0)
    screen(u, factor * y)
    errors = np.random.default_rng(0).standard_t(3.0, 200)
    assert_allclose(scale_of(factor * errors), factor * scale_of(errors), rtol=1e-12)
    with pytest.raises(ValueError, match="y varies too little"):
        SparseBayesNARXRegressorCV((1,), random_state=0).fit(u, factor * y)


def test_outputs_sessions_and_missing_values():
    u, y, rng = record(0)
    _, z, _ = record(1)
    wrong = with_gross_errors(y, rng, 6)
    pair = np.column_stack([wrong, z])
    pair[100:104, 0] = np.nan
    expected = np.column_stack([wrong != y, np.zeros(len(y), dtype=bool)])
    expected[100:104] = False
    replaced, outliers = screen(u, pair, [0, 300, N_ROWS])
    assert outliers[expected].all()
    assert np.count_nonzero(outliers & ~expected) <= 3
    assert np.isnan(replaced[100:104, 0]).all()
    assert_array_equal(replaced[~outliers], pair[~outliers])


@pytest.mark.parametrize(
    "y", [np.ones(60), np.arange(4.0), np.tile([0.0, 1.0], 40)], ids=str
)
def test_records_that_tell_nothing(y):
    u = np.random.default_rng(0).normal(size=(len(y), 1))
    replaced, outliers = screen(u, y)
    assert not outliers.any()
    assert_array_equal(replaced, y)


def test_where_all_seems_wrong_nothing_is():
    u, y, rng = record(4)
    wrong = with_gross_errors(y, rng, 250)
    replaced, outliers = screen(u, wrong)
    assert not outliers.any()
    assert_array_equal(replaced, wrong)


@pytest.mark.parametrize("n_rows", [1, 3, 30])
def test_normal_equations(n_rows):
    rng = np.random.default_rng(n_rows)
    trace = np.append(1.0, rng.normal(size=5))
    weights = rng.uniform(size=n_rows + 5)
    T = np.array([np.convolve(row, trace) for row in np.eye(n_rows)]).T
    expected = T.T @ (weights[:, None] * T)
    wrong = np.ones(n_rows, dtype=bool)
    bands = module._normal_matrix(weights, trace, wrong)
    for band, row in enumerate(bands):
        assert_allclose(row[: n_rows - band], np.diag(expected, -band), atol=1e-7)


def test_errors_of_right_rows_are_none():
    rng = np.random.default_rng(0)
    residuals, known = rng.normal(size=13), np.ones(13, dtype=bool)
    residuals[4] += 50.0
    wrong = np.zeros(10, dtype=bool)
    wrong[[0, 4, 9]] = True
    sizes, std, _ = module._sizes(residuals, known, wrong, np.array([0.5, 0.2, 0.1]))
    assert_allclose(sizes[~wrong], 0.0, atol=1e-9)
    assert_allclose(std[~wrong], 0.0, atol=1e-5)
    assert 35.0 < sizes[4] < 55.0


@pytest.mark.parametrize("seed", first_by_default(range(30), 10))
def test_no_record_is_too_odd(seed):
    """Short ones, steps, constants, gaps, other scales: only values are replaced."""
    rng = np.random.default_rng(seed)
    n_rows, n_inputs = int(rng.choice([3, 8, 30, 90])), seed % 3
    U = rng.normal(size=(n_rows, n_inputs))
    y = rng.normal(size=n_rows).cumsum()
    y = [y, np.round(y), np.ones(n_rows), np.sin(np.arange(n_rows))][seed % 4]
    Y = np.column_stack([y, rng.permutation(y)]) * 10.0 ** rng.integers(-90, 90)
    Y[rng.integers(n_rows, size=2)] *= 1e3
    Y[rng.uniform(size=Y.shape) < rng.choice([0.0, 0.05, 0.5])] = np.nan
    Y[0] = 1.0
    screened = screen_outputs(U, Y, np.array([0, n_rows // 3, n_rows]))
    missing = np.isnan(Y)
    assert_array_equal(np.isnan(screened.Y), missing)
    assert not (screened.outliers & missing).any()
    right = ~screened.outliers
    assert_array_equal(screened.Y[right], Y[right])
