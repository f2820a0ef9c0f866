"""Checks of data: what passes unchanged, and the messages about what does not."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from skbayesnn import (
    ContrastiveDivergenceRBM,
    SparseBayesMLPRegressor,
    SparseBayesNARXRegressor,
)
from skbayesnn import _validation as checks
from skbayesnn.metrics import simulation_rmse


def test_columns():
    y = [1.0, np.nan, 3.0]
    assert checks.as_columns(y, "y").shape == (3, 1)
    assert checks.as_columns(np.ones((3, 2)), "y").shape == (3, 2)
    with pytest.raises(ValueError, match="my_y contains infinity"):
        checks.as_columns([1.0, np.inf], "my_y")
    assert checks.as_columns([1.0, np.inf], "y", allow_inf=True)[1, 0] == np.inf


TEXT = [[0.5, "1.5", 1.0], [1.0, "2.5", "on"]]


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (list, "in column 2"),
        (lambda rows: np.array(rows, dtype=object), "in column 2"),
        (np.array, "in column 2"),
        (lambda rows: pd.DataFrame(rows, columns=["a", "b", "c"]), "in column 'c'"),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, "numeric"])
def test_text_is_named(make, place, dtype):
    estimator, X = SparseBayesMLPRegressor(), make(TEXT)
    message = f"^X must hold numbers; found the text 'on' {place}[.] Turn text into"
    with pytest.raises(ValueError, match=message) as caught:
        checks.validate_data(estimator, X, dtype=dtype)
    assert "string" in str(caught.value.__cause__)


def test_text_in_outputs_is_named():
    message = "^y must hold numbers; found the text 'a'[.]"
    with pytest.raises(ValueError, match=message):
        SparseBayesMLPRegressor().fit(np.ones((2, 1)), ["1", "a"])
    with pytest.raises(ValueError, match="^y_true must hold .* 'a' in column 1[.]"):
        checks.check_array(np.array([["1", "a"]]), dtype=float, input_name="y_true")


def test_categories_and_times_are_named():
    """Which scikit-learn lets through, or mixes up with numbers."""
    X = pd.DataFrame({"a": [0, 1], "b": pd.Categorical(["yes", "no"])})
    for estimator in (SparseBayesMLPRegressor(), ContrastiveDivergenceRBM(2)):
        with pytest.raises(ValueError, match="^X must .* text 'yes' in column 'b'[.]"):
            estimator.fit(X, [0.0, 1.0])
        times = X.assign(b=pd.date_range("2026-01-01", periods=2))
        for one in (times, times[["b"]]):
            with pytest.raises(ValueError, match="^X must .* times in column 'b'[.]"):
                estimator.fit(one, [0.0, 1.0])
        with pytest.raises(ValueError, match="^X must hold numbers; found times[.]"):
            estimator.fit(times[["b"]].to_numpy(), [0.0, 1.0])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_first_value_that_is_not_finite_has_a_place(value):
    X = np.ones((6, 3))
    X[4, 1] = X[5, 0] = value
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    estimator = SparseBayesMLPRegressor()
    for given, column in ((X, "1"), (frame, "'b'"), (X.tolist(), "1")):
        message = rf"(?s)^Input X contains.*first one is in row 4, column {column}[.]$"
        with pytest.raises(ValueError, match=message):
            estimator.fit(given, np.ones(6))
    with pytest.raises(ValueError, match=r"(?s)Input y contains .*row 4[.]$"):
        checks.check_array(X[:, 1], ensure_2d=False, input_name="y")
    with pytest.raises(ValueError, match="Input X contains") as caught:
        checks.validate_data(estimator, sparse.csr_array(X), accept_sparse=True)
    assert "first one" not in str(caught.value)


def test_categories_that_are_numbers_say_how_to_convert_them():
    X = pd.DataFrame({"a": [0, 1, 1, 0], "b": [1, 0, 1, 0]}).astype("category")
    model = ContrastiveDivergenceRBM(2, max_iter=1, random_state=0)
    with pytest.raises(
        ValueError, match=r"not objects[.].*categories.*X.astype\(float"
    ):
        model.fit(X)
    assert model.fit(X.astype(float)).n_features_in_ == 2


def test_times_of_polars_are_named():
    polars = pytest.importorskip("polars")
    X = pd.DataFrame({"a": [0, 1], "b": pd.date_range("2026-01-01", periods=2)})
    X = polars.DataFrame({name: X[name].to_numpy() for name in X})
    with pytest.raises(ValueError, match="^X must .* times in column 'b'[.]"):
        SparseBayesMLPRegressor().fit(X, [0.0, 1.0])


def test_no_outputs():
    with pytest.raises(ValueError, match="^y_init must hold at least one row"):
        checks.check_outputs([], "y_init")


def test_another_error_stays_as_it_is():
    X = np.array([[1.0, {}]], dtype=object)
    with pytest.raises(TypeError, match="must be a string or a real number"):
        checks.validate_data(SparseBayesMLPRegressor(), X, dtype=float)
    # all text is of numbers: the kind of the array is the fault
    with pytest.raises(ValueError, match="not compatible with arrays of bytes/str"):
        checks.check_array(np.array([["1", "2"]]), dtype="numeric")


@pytest.mark.parametrize("n_initialization", [-1, 5, 6])
def test_an_initialization_leaves_rows(n_initialization):
    checks.check_initialization(0, 5)
    checks.check_initialization(4, 5)
    with pytest.raises(ValueError, match=f"number of rows, 5; got {n_initialization}"):
        checks.check_initialization(n_initialization, 5)


def test_numbers_of_rows_and_of_outputs():
    checks.check_lengths(np.ones(3), np.ones(3), "a", "b")
    checks.check_n_outputs(np.ones((3, 2)), np.ones((4, 2)), "a", "b")
    with pytest.raises(ValueError, match="a and b must have as many rows.*3 and 4"):
        checks.check_lengths(np.ones(3), np.ones(4), "a", "b")
    with pytest.raises(ValueError, match="a and b must have as many outputs.*2 and 1"):
        checks.check_n_outputs(np.ones((3, 2)), np.ones((3, 1)), "a", "b")


def test_magnitudes_and_spreads_can_be_squared():
    checks.check_magnitude(np.array([np.nan, -checks.MAX_MAGNITUDE]), "X")
    with pytest.raises(ValueError, match="X contains a value too large.*1e\\+101"):
        checks.check_magnitude(np.array([np.nan, -1e101]), "X")
    checks.check_spread(np.array([1.0, checks.MIN_SPREAD]), "y")
    with pytest.raises(ValueError, match="y varies too little.*column 1"):
        checks.check_spread(np.array([1.0, 1e-151]), "y")


def test_every_column_has_a_value():
    array = np.array([[1.0, np.nan], [np.nan, np.nan]])
    checks.check_any_value(array[:, :1], "X")
    with pytest.raises(ValueError, match=r"columns \[1\] are all NaN"):
        checks.check_any_value(array, "X")


def test_sessions():
    assert checks.check_sessions(None, 3) is None
    ids = checks.check_sessions(["a", "b", "b"], 3)
    np.testing.assert_array_equal(ids, ["a", "b", "b"])
    for wrong in (["a"], [["a", "b", "c"]]):
        with pytest.raises(ValueError, match=r"sessions must hold.*\(3,\)"):
            checks.check_sessions(wrong, 3)
    for missing in (["a", np.nan, "b"], ("a", None, "b"), [1.0, np.nan, 2.0]):
        with pytest.raises(ValueError, match="missing in 1 rows.* row 1"):
            checks.check_sessions(missing, 3)


@pytest.mark.parametrize(
    ("sessions", "starts"),
    [
        (None, [0, 5]),
        ([0, 0, 0, 0, 0], [0, 5]),
        ([0, 0, 1, 1, 1], [0, 2, 5]),
        # an id that comes back starts another session
        ([0, 1, 0, 0, 1], [0, 1, 2, 4, 5]),
    ],
)
def test_session_starts(sessions, starts):
    ids = None if sessions is None else np.array(sessions)
    np.testing.assert_array_equal(checks.session_starts(ids, 5), starts)


@pytest.mark.parametrize("value", [0, -1, 1.0, "2", None])
def test_counts(value):
    assert checks.check_count(np.int64(3), "n", 1) == 3
    with pytest.raises(ValueError, match=f"n must be an integer.*1; got {value!r}"):
        checks.check_count(value, "n", 1)


def test_an_owned_array_is_copied_only_if_necessary():
    array = np.ones((3, 2))
    assert checks.own(array) is array
    array.flags.writeable = False
    for given in (array, np.asfortranarray(np.ones((3, 2)))):
        owned = checks.own(given)
        assert not np.shares_memory(owned, given)
        assert owned.flags.c_contiguous and owned.flags.writeable


def test_a_sparse_matrix_holds_each_place_once():
    twice = sparse.csr_array((np.ones(2), np.array([1, 1]), np.array([0, 2])), (1, 3))
    X = checks.check_sparse(twice)
    np.testing.assert_array_equal(X.toarray(), [[0.0, 2.0, 0.0]])
    assert X.nnz == 1 and twice.nnz == 2


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.coo_array])
def test_a_sparse_matrix_with_an_index_outside_is_refused(kind):
    X = kind(np.eye(3))
    checks.check_sparse(X)
    if X.format == "coo":
        X.coords[0][1] = 7
    else:
        X.indices[1] = 7
    with pytest.raises(ValueError, match="X must be a valid sparse matrix"):
        checks.check_sparse(X)


def test_names_of_columns_differ():
    X = pd.DataFrame(np.eye(4), columns=["a", "b", "c", "a"])
    with pytest.raises(ValueError, match="X has two columns named 'a'. Rename"):
        SparseBayesMLPRegressor().fit(X, np.arange(4.0))


@pytest.mark.parametrize(
    "model", [SparseBayesMLPRegressor(), SparseBayesNARXRegressor(1, 1)]
)
def test_names_of_outputs_differ(model):
    y = pd.DataFrame(np.eye(4)[:, :3], columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="y has two columns named 'a'. Rename"):
        model.fit(np.eye(4), y)
    with pytest.raises(ValueError, match="y_true has two columns named 'a'."):
        simulation_rmse(y, y)


def test_there_is_one_column_of_times():
    X = pd.DataFrame(np.eye(4)[:, :3], columns=["time", "u", "time"])
    with pytest.raises(ValueError, match="X has two columns named 'time'."):
        SparseBayesNARXRegressor(1, 1).fit(X, np.arange(4.0))


@pytest.mark.parametrize("text", ["1,5", "-0,25e3"])
def test_decimal_commas_are_told_from_text(text):
    X = np.array([["1", "2"], ["3", text]], dtype=object)
    with pytest.raises(ValueError, match=f"text '{text}' in column 1. Read decimal"):
        SparseBayesMLPRegressor().fit(X, [0.0, 1.0])


@pytest.mark.parametrize("text", ["1,5,0", "a,b", ","])
def test_other_commas(text):
    X = np.array([["1", "2"], ["3", text]], dtype=object)
    with pytest.raises(ValueError, match="Turn text into numbers"):
        SparseBayesMLPRegressor().fit(X, [0.0, 1.0])


def test_what_sessions_may_be():
    with pytest.raises(ValueError, match=r"or be 'infer' .*; got 'daily'"):
        checks.check_sessions("daily", 3)
    with pytest.raises(ValueError, match=r"shape \(3,\), or be .*; got shape \(2,\)"):
        checks.check_sessions([0, 1], 3)


def test_one_dimension_is_refused_without_printing_the_array():
    X = np.arange(5000.0)
    for estimator in (SparseBayesNARXRegressor(), ContrastiveDivergenceRBM(2)):
        with pytest.raises(
            ValueError, match="Expected 2D array.*[(]5000,[)]"
        ) as caught:
            estimator.fit(X, X)
        assert "X.reshape(-1, 1)" in str(caught.value)
        assert len(str(caught.value)) < 300


def test_an_empty_column_is_named():
    X = pd.DataFrame({"flow": np.arange(9.0), "heat": np.nan})
    with pytest.raises(ValueError, match=r"^X must .* columns \['heat'\] are all NaN"):
        SparseBayesNARXRegressor().fit(X, np.ones(9))
    with pytest.raises(ValueError, match=r"^X must .* columns \[1\] are all NaN"):
        SparseBayesNARXRegressor().fit(X.to_numpy(), np.ones(9))


def test_inputs_in_a_row_are_told_to_be_columns():
    X = np.ones((1, 50))
    with pytest.raises(ValueError, match="1 sample.*pass X.T"):
        SparseBayesNARXRegressor().fit(X, np.ones(50))


def test_lists_of_records_are_told_of_sessions():
    Xs, ys = [np.ones((9, 1)), np.ones((5, 1))], [np.ones(9), np.ones(5)]
    message = "X is a list of 2 records.*sessions = "
    with pytest.raises(ValueError, match=message):
        SparseBayesNARXRegressor().fit(Xs, ys)
    with pytest.raises(ValueError, match="y is a list of 2 records"):
        SparseBayesNARXRegressor().fit(np.ones((14, 1)), Xs)


def test_a_list_of_rows_is_a_table():
    X = np.random.default_rng(0).normal(size=(60, 1))
    y = 0.1 * np.cumsum(X, axis=0)
    one, other = (
        SparseBayesNARXRegressor(2, 2, hidden_layer_sizes=1, random_state=0).fit(U, Y)
        for U, Y in ((X, y), (list(X), list(y)))
    )
    np.testing.assert_array_equal(one.predict(X, y), other.predict(X, y))


def test_booleans_of_polars_with_nulls_are_missing_values():
    polars = pytest.importorskip("polars")
    X = np.random.default_rng(0).random((60, 4)) < 0.4
    frame = polars.DataFrame({f"v{k}": X[:, k] for k in range(4)})
    model = ContrastiveDivergenceRBM(3, max_iter=3, random_state=0).fit(frame)
    values = [None, *X[1:, 0].tolist()]
    holed = frame.with_columns(polars.Series("v0", values))
    expected = np.where(np.arange(60)[:, None] + np.arange(4), X, np.nan)
    given = polars.DataFrame(expected, schema=frame.columns)
    np.testing.assert_array_equal(
        model.impute(holed, random_state=0), model.impute(given, random_state=0)
    )
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.fit(holed)


def test_missing_values_of_pandas_among_objects_are_named():
    """A row of a frame with columns of several nullable types is of objects."""
    X = pd.DataFrame({"a": [1, pd.NA], "b": [True, False]}, dtype=object)
    remedy = r"holds pandas\.NA among objects.* Pass {}\.astype\('Float64'\)"
    with pytest.raises(ValueError, match="^X " + remedy.format("X")):
        checks.validate_data(SparseBayesMLPRegressor(), X)
    with pytest.raises(ValueError, match="^y " + remedy.format("y")):
        checks.check_outputs(X["a"])
    assert np.isnan(checks.check_outputs(X["a"].astype("Float64"))[1])
    with pytest.raises(TypeError, match="real number, not 'dict'"):
        checks.check_outputs([1.0, {}])


def test_rows_and_counts_that_are_something_else():
    with pytest.raises(ValueError, match="^u must hold 2 inputs, numbers,.*got 'a'"):
        checks.check_row("a", 2, "u", "inputs")
    with pytest.raises(ValueError, match="^u must hold 2 inputs,.*shape [(]3,[)]"):
        checks.check_row([1, 2, 3], 2, "u", "inputs")
    np.testing.assert_array_equal(checks.check_row(1, 1, "u", "inputs"), 1.0)
    with pytest.raises(ValueError, match="n must be .* 1; got a DataFrame"):
        checks.check_count(pd.DataFrame({"a": [1.0]}), "n", 1)
    with pytest.raises(ValueError, match="n must be an integer.*got 'a'"):
        checks.check_count("a", "n", 1)
