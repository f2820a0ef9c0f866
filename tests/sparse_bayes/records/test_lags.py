"""The lag matrix, its rows and its names."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skbayesnn._validation import session_starts
from skbayesnn.sparse_bayes.records.lags import (
    build_lag_matrix,
    complete_rows,
    expand_lags,
    lagged_names,
    make_lags,
)


def record(n_rows=12, n_inputs=2, n_outputs=1):
    """Every value tells its signal and its row."""
    rows = np.arange(n_rows)[:, None]
    U = 100.0 * (1 + np.arange(n_inputs)) + rows
    Y = -100.0 * (1 + np.arange(n_outputs)) - rows
    return U, Y


def compare_with_naive(U, Y, lags, sessions=None):
    starts = session_starts(sessions, len(Y))
    rows = complete_rows(U, Y, lags, starts)
    Z = build_lag_matrix(U, Y, lags, rows)
    regressors = list(zip(lags.signal.tolist(), lags.lag.tolist(), strict=True))
    ids = np.zeros(len(Y)) if sessions is None else sessions
    rows_expected, Z_expected = naive.lag_matrix(U, Y, regressors, ids)
    assert_array_equal(rows, rows_expected)
    assert_array_equal(Z, Z_expected)
    assert Z.shape == (len(rows), len(regressors))
    return rows, Z


def test_known_matrix():
    U, Y = record(4, 1)
    lags = make_lags(1, 1, 1, 2, True)
    rows, Z = compare_with_naive(U, Y, lags)
    assert_array_equal(rows, [2, 3])
    # u(t), u(t-1), y(t-1), y(t-2)
    assert_array_equal(Z, [[102, 101, -101, -100], [103, 102, -102, -101]])
    assert lags.max_lag == 2


@pytest.mark.parametrize("include_current_input", [False, True])
@pytest.mark.parametrize("output_lags", [0, 1, 3, [2], [5, 1]])
@pytest.mark.parametrize("input_lags", [0, 1, 4, [3], [0, 2]])
def test_against_loops(input_lags, output_lags, include_current_input):
    U, Y = record(n_outputs=2)
    if input_lags == 0 and output_lags == 0 and not include_current_input:
        with pytest.raises(ValueError, match="There is no regressor"):
            make_lags(2, 2, input_lags, output_lags, include_current_input)
        return
    lags = make_lags(2, 2, input_lags, output_lags, include_current_input)
    rows, _ = compare_with_naive(U, Y, lags)
    assert_array_equal(rows, np.arange(lags.max_lag, len(Y)))
    assert len(set(zip(lags.signal, lags.lag, strict=True))) == len(lags.lag)


def test_autoregression_has_no_inputs():
    U, Y = record(n_inputs=0)
    lags = make_lags(0, 1, 2, 3, True)
    assert_array_equal(lags.signal, [0, 0, 0])
    assert_array_equal(lags.lag, [1, 2, 3])
    compare_with_naive(U, Y, lags)


@pytest.mark.parametrize(
    "sessions",
    [
        np.repeat([0, 1, 2], [5, 4, 3]),
        np.repeat(["b", "a"], [2, 10]),
        # an id that comes back starts another session
        np.repeat([7, 1, 7], [6, 1, 5]),
        np.arange(12),
    ],
    ids=["three", "short", "again", "single"],
)
@pytest.mark.parametrize("output_lags", [1, [3]])
def test_lags_stay_within_their_session(sessions, output_lags):
    U, Y = record()
    lags = make_lags(2, 1, 2, output_lags, True)
    rows, _ = compare_with_naive(U, Y, lags, sessions)
    for row in rows:
        assert len(set(sessions[row - lags.max_lag : row + 1])) == 1


def test_session_starts():
    assert_array_equal(session_starts(None, 5), [0, 5])
    ids = np.array([3, 3, 1, 1, 1, 3])
    assert_array_equal(session_starts(ids, 6), [0, 2, 5, 6])
    assert_array_equal(session_starts(np.array(["a"]), 1), [0, 1])


@pytest.mark.parametrize("seed", range(5))
def test_missing_values_cost_the_windows_they_touch(seed):
    rng = np.random.default_rng(seed)
    U, Y = record(40, 2, 2)
    U[rng.uniform(size=U.shape) < 0.05] = np.nan
    Y[rng.uniform(size=Y.shape) < 0.05] = np.nan
    U[rng.integers(40), 0] = np.inf
    sessions = np.repeat([0, 1], [23, 17])
    lags = make_lags(2, 2, [0, 2], [1, 3], False)
    rows, Z = compare_with_naive(U, Y, lags, sessions)
    assert np.isfinite(Z).all() and np.isfinite(Y[rows]).all()
    assert 0 < len(rows) < 40 - 6


def test_a_gap_that_no_regressor_reads_costs_nothing():
    U, Y = record()
    U[:, 1] = np.nan
    U[6, 0] = np.nan
    # of the first input alone, two rows back; the present one is not read
    lags = make_lags(1, 1, [2], [1], False)
    rows, _ = compare_with_naive(U[:, :1], Y, lags)
    assert_array_equal(rows, [2, 3, 4, 5, 6, 7, 9, 10, 11])


def test_no_complete_row():
    U, Y = record(3)
    rows, Z = compare_with_naive(U, Y, make_lags(2, 1, 2, 3, True))
    assert len(rows) == 0 and Z.shape == (0, 9)


def test_data_are_copied_not_changed():
    U, Y = record()
    U.flags.writeable = Y.flags.writeable = False
    lags = make_lags(2, 1, 1, 1, True)
    _, Z = compare_with_naive(np.asfortranarray(U), Y, lags)
    Z[:] = 0.0
    assert U[0, 0] == 100.0


def test_names():
    lags = make_lags(2, 2, [2, 1], 1, True)
    names = lagged_names(lags, ["u", "valve"], ["y0", "y1"])
    assert names == [
        "u(t)",
        "u(t-1)",
        "u(t-2)",
        "valve(t)",
        "valve(t-1)",
        "valve(t-2)",
        "y0(t-1)",
        "y1(t-1)",
    ]


def test_names_describe_their_columns():
    U, Y = record(30, 2, 2)
    lags = make_lags(2, 2, [0, 4], [7, 2], False)
    rows = complete_rows(U, Y, lags, session_starts(None, 30))
    Z = build_lag_matrix(U, Y, lags, rows)
    columns = {"a": U[:, 0], "b": U[:, 1], "y0": Y[:, 0], "y1": Y[:, 1]}
    names = lagged_names(lags, ["a", "b"], ["y0", "y1"])
    for name, column in zip(names, Z.T, strict=True):
        signal, past = name[:-1].split("(t")
        assert_array_equal(column, columns[signal][rows + int(past or 0)])


@pytest.mark.parametrize(
    "lags, expected",
    [
        (0, []),
        (3, [1, 2, 3]),
        (np.int64(2), [1, 2]),
        ([], []),
        ([4, 1], [1, 4]),
        ((2,), [2]),
        (np.array([3, 2]), [2, 3]),
        (range(2, 5), [2, 3, 4]),
    ],
)
def test_expand_lags(lags, expected):
    for name in ("input_lags", "output_lags"):
        found = expand_lags(lags, name)
        assert found == expected
        assert all(type(lag) is int for lag in found)


def test_zero_is_a_lag_of_inputs_only():
    assert expand_lags([0, 1], "input_lags") == [0, 1]
    with pytest.raises(ValueError, match=r"output_lags .* at least 1; got \[0, 1\]"):
        expand_lags([0, 1], "output_lags")


@pytest.mark.parametrize("name", ["input_lags", "output_lags"])
@pytest.mark.parametrize(
    "lags", [-1, [-1], [1, 1], [1.5], [[1, 2]], ["a"], [1, np.nan], [True, False]]
)
def test_bad_lags(lags, name):
    with pytest.raises(ValueError, match=f"^{name} must"):
        expand_lags(lags, name)


def test_the_current_input_is_there_once():
    for current in (False, True):
        lags = make_lags(1, 1, [0, 1], 1, current)
        assert lags.lag.tolist() == [0, 1, 1]
    assert make_lags(1, 1, [1], 1, False).lag.tolist() == [1, 1]
    assert make_lags(1, 1, [], [], True).max_lag == 0


NAMES = ["valve", "pump"], ["y"]


def pairs_of(lags):
    return list(zip(lags.signal.tolist(), lags.lag.tolist(), strict=True))


def test_every_signal_has_its_own_lags():
    by_name = {"pump": 2, "valve": (4, 3)}
    lags = make_lags(2, 1, by_name, {"y": [2]}, True, NAMES)
    # a list is complete; a number gets the current value with include_current_input
    assert pairs_of(lags) == [(0, 3), (0, 4), (1, 0), (1, 1), (1, 2), (2, 2)]
    lags = make_lags(2, 1, by_name, {"y": 1}, False, NAMES)
    assert pairs_of(lags) == [(0, 3), (0, 4), (1, 1), (1, 2), (2, 1)]
    assert lags.max_lag == 4
    compare_with_naive(*record(), lags)


@pytest.mark.parametrize("current", [False, True])
def test_a_list_in_a_dict_says_whether_the_current_input_is_there(current):
    by_name = {"valve": [0, 5], "pump": []}
    lags = make_lags(2, 1, by_name, 0, current, NAMES)
    assert pairs_of(lags) == [(0, 0), (0, 5)]
    assert lagged_names(lags, *NAMES) == ["valve(t)", "valve(t-5)"]


@pytest.mark.parametrize("current", [False, True])
def test_a_dict_of_numbers_is_the_number(current):
    same = make_lags(2, 1, {"valve": 3, "pump": 3}, {"y": 2}, current, NAMES)
    plain = make_lags(2, 1, 3, 2, current)
    assert pairs_of(same) == pairs_of(plain)


@pytest.mark.parametrize(
    "lags, message",
    [
        ({"valve": 1, "pmup": 1}, "not there: 'pmup'. The names are 'valve', 'pump'"),
        ({"valve": 1, 0: 1}, "not there: 0"),
        ({"valve": 1}, "missing: 'pump'"),
        ({}, "missing: 'valve', 'pump'"),
        ({"valve": 1, "pump": -1}, "^input_lags must not be negative"),
        ({"valve": 1, "pump": [1, 1]}, "^input_lags must be a number n"),
        ({"valve": 1, "pump": "2"}, "^input_lags must be a number n"),
    ],
)
def test_bad_lags_by_name(lags, message):
    with pytest.raises(ValueError, match=message):
        make_lags(2, 1, lags, 1, True, NAMES)


def test_a_record_without_inputs_takes_no_names_of_inputs():
    lags = make_lags(0, 1, {}, {"y": 2}, True, ([], ["y"]))
    assert pairs_of(lags) == [(0, 1), (0, 2)]
    with pytest.raises(ValueError, match="not there: 'u'. The names are none"):
        make_lags(0, 1, {"u": 1}, 1, True, ([], ["y"]))
