"""Rows of training data: what they are, and that they stay as they came."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from grids import each_value_once
from numpy.testing import assert_array_equal
from sklearn.exceptions import DataConversionWarning

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.rbm.model import BLOCK_ROWS
from skbayesnn.rbm.training.given_rows import check_rows
from skbayesnn.rbm.training.rows import Rows

VALUES = np.random.default_rng(0).integers(0, 256, (50, 7))


def matrices():
    yield "bool", VALUES > 100, 0.5
    yield "bool above 0", VALUES > 100, 0
    yield "uint8", VALUES.astype(np.uint8), 127
    yield "uint8, between", VALUES.astype(np.uint8), 127.5
    yield "uint8, all", VALUES.astype(np.uint8), -0.5
    yield "uint8, none", VALUES.astype(np.uint8), 1000.5
    yield "int8, negative", (VALUES - 128).astype(np.int8), -3.5
    yield "int64", VALUES, 99
    yield "float32", (VALUES / 255).astype(np.float32), 0.5
    yield "float64", VALUES / 255, 0.25
    yield "CSR", sp.csr_array(VALUES * (VALUES > 150)), 127
    yield "CSR matrix, float32", sp.csr_matrix(VALUES * 1.0, dtype=np.float32), 3.5


@pytest.mark.parametrize(
    "X, threshold", [case[1:] for case in matrices()], ids=[c[0] for c in matrices()]
)
def test_states(X, threshold):
    dense = X.toarray() if sp.issparse(X) else X
    expected = dense.astype(float) > threshold
    rows, before = Rows(X, threshold), X.copy()
    index = np.array([3, 3, 49, 0])
    for part in (slice(None), slice(5, 9), index):
        for result, dtype in [
            (rows.states(part), np.uint8),
            (rows.take(part), np.float32),
            (rows.take(part, np.float64), np.float64),
        ]:
            assert result.dtype == dtype and result.flags.c_contiguous
            assert_array_equal(result, expected[part])
            # what a caller writes does not reach the data
            result[:] = 1
    same = X.toarray() if sp.issparse(X) else X
    assert_array_equal(same, before.toarray() if sp.issparse(before) else before)
    assert_array_equal(rows.mean(), expected.mean(axis=0))


def test_probabilities():
    X = np.array([[0.0, 1.0], [0.25, 1.0], [1.0, 1.0]])
    rows = Rows(X, None)
    assert rows.states(slice(None)).dtype == np.float32
    assert rows.states(slice(None), np.float64).dtype == np.float64
    # 0 and 1 are states, wherever they are
    assert rows.states(np.array([0, 2])).dtype == np.uint8
    assert_array_equal(rows.states(np.array([0, 2])), X[[0, 2]])
    np.testing.assert_allclose(rows.mean(), X.mean(axis=0))


@pytest.mark.parametrize(
    "X, message",
    [
        ([[1, 2], [2, 1]], "as 1, that is all of them.*1.5 for 1 and 2"),
        ([[2**63 - 1, 2**63 - 9]], "fits your data, 9.223e.18 for 9.223e.18 and"),
        (np.full((2, 2), 2**63 - 1), "data, less than 9.223e.18 if that means 1"),
        ([[1, 2], [2, 3]], "as 1, that is all of them.*between 1 and 3, or encode"),
        ([[-1, 1], [1, -1]], "all others as 0.*fits your data, 0 for -1 and 1"),
        ([[0, 1], [2, 1]], "all others as 0.*between 0 and 2, or encode"),
        ([[0, 9], [200, 3]], "0 to 200.*all others as 0.*127 for images"),
        # what it does not hold is 0
        (sp.csr_array([[0, 2], [2, 2]]), r"\(0 to 2\).*as 0.*data, 1 for 0 and 2"),
        (sp.csr_array([[0, 2], [1, 2]]), r"\(0 to 2\).*as 0.*between 0 and 2, or"),
        (sp.csr_array([[3, 2], [2, 2]]), r"\(2 to 3\).*all of them.*2 and 3"),
    ],
)
def test_values_that_the_threshold_was_not_made_for(X, message):
    with pytest.warns(DataConversionWarning, match=message):
        check_rows(ContrastiveDivergenceRBM(), X, reset=True)


@pytest.mark.parametrize("threshold", [1, 2.5])
def test_a_threshold_that_no_value_exceeds(threshold):
    """All features would be constant, whose likelihood is superb."""
    X = np.eye(3, dtype=int) + np.eye(3, dtype=int)[::-1]
    estimator = ContrastiveDivergenceRBM(binarize=threshold)
    for rows in (X > 0, X.clip(0, 1), sp.csr_array(X.clip(0, 1))):
        message = f"No value of X is above binarize={threshold}, the largest is 1:"
        with pytest.warns(DataConversionWarning, match=re.escape(message)):
            check_rows(estimator, rows, reset=True)
        # rows to be transformed may be so
        check_rows(estimator, rows, reset=False)
    check_rows(estimator, 2 * X, reset=True)
    check_rows(estimator, 0 * X, reset=True)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda frame: frame[["d", "c", "b", "a"]],
            ValueError,
            "(?s)^X_val: The feature names should match.* same order",
        ),
        (
            lambda frame: frame.map({0.0: "no", 1.0: "yes"}.get),
            ValueError,
            "^X_val must hold numbers; found the text",
        ),
        (
            lambda frame: np.ma.masked_array(frame, frame),
            ValueError,
            "^X_val is a masked array.* as X_val.astype",
        ),
        (
            lambda frame: pytest.importorskip("polars").LazyFrame(frame.to_numpy()),
            TypeError,
            "^X_val is a LazyFrame.* Pass X_val.collect",
        ),
    ],
)
def test_messages_about_validation_rows_are_not_about_x(make, error, message):
    frame = pd.DataFrame(np.eye(4), columns=list("abcd"))
    model = ContrastiveDivergenceRBM(2, max_updates=1, random_state=0)
    with pytest.raises(error, match=message):
        model.fit(frame, X_val=make(frame))


def test_messages_name_the_rows_and_what_they_are_for():
    X, holes = np.eye(4), np.full((2, 4), np.nan)
    model = ContrastiveDivergenceRBM(2, max_updates=1, random_state=0)
    with pytest.raises(ValueError, match="X_val contains NaN. An RBM learns from"):
        model.fit(X, X_val=holes)
    with pytest.raises(ValueError, match="X_val has 3 features"):
        model.fit(X, X_val=X[:, :3])
    with pytest.raises(ValueError, match="Input X contains NaN. An RBM learns from"):
        model.fit(holes)
    model = ContrastiveDivergenceRBM(2, max_iter=1, random_state=0).fit(X)
    with pytest.raises(ValueError, match="Input X contains NaN. This method takes"):
        model.score(holes)


def test_rows_with_targets_beside_them():
    X = np.eye(4)
    with pytest.raises(ValueError, match="without targets beside it"):
        ContrastiveDivergenceRBM(2).fit(X, X_val=(X, np.arange(4)))
    with pytest.raises(ValueError, match="differ in their numbers of values"):
        ContrastiveDivergenceRBM(2).fit([[0, 1], [1]])


def test_a_missing_value_is_no_state():
    rows = Rows(np.array([[0.0, np.nan]]), None)
    assert rows.states(slice(None)).dtype == np.float32
    assert_array_equal(Rows(rows.X, 0.5).states(slice(None)), [[0, 0]])


@pytest.mark.parametrize("X", [VALUES, sp.csr_array(VALUES)], ids=["dense", "CSR"])
def test_subsets(X):
    expected = VALUES > 127
    rows = Rows(X, 127)
    part = rows.subset(np.array([4, 8, 15, 16, 23, 42]))
    again = part.subset(np.array([5, 0]))
    assert len(part) == 6 and len(again) == 2
    assert part.X is X and again.X is X
    assert_array_equal(part.states(slice(1, 3)), expected[[8, 15]])
    assert_array_equal(again.states(slice(None)), expected[[42, 4]])
    assert_array_equal(part.mean(), expected[[4, 8, 15, 16, 23, 42]].mean(axis=0))


def test_blocks():
    X = np.random.default_rng(0).random((2 * BLOCK_ROWS + 5, 3)) < 0.5
    blocks = list(Rows(X, 0.5).blocks())
    assert [len(block) for block in blocks] == [BLOCK_ROWS, BLOCK_ROWS, 5]
    assert_array_equal(np.concatenate(blocks), X)
    assert_array_equal(Rows(X, 0.5).mean(), X.mean(axis=0))


def out_of_range(kind):
    """A matrix with an index outside of it, as a faulty file may have."""
    X = sp.csr_matrix(np.eye(6))
    X.indices[2] = 10**6
    if kind == "CSC":
        X = sp.csc_matrix(np.eye(6))
        X.indices[2] = 10**6
    elif kind == "COO":
        X = sp.coo_matrix(np.eye(6))
        X.row[2] = 10**6
    elif kind == "negative":
        X.indices[2] = -7
    elif kind == "too long":
        X.indices[2] = 2
        X.indptr[-1] = 1000
    return X


@pytest.mark.parametrize("kind", ["CSR", "CSC", "COO", "negative", "too long"])
def test_sparse_matrices_are_checked(kind):
    with pytest.raises(ValueError, match="X must be a valid sparse matrix"):
        ContrastiveDivergenceRBM(2, max_iter=1).fit(out_of_range(kind))


def test_duplicates_are_summed_on_a_copy():
    indices, indptr = np.array([1, 1, 0, 2]), np.array([0, 2, 4])
    X = sp.csr_array((np.array([0.4, 0.4, 1.0, 0.0]), indices, indptr), shape=(2, 3))
    rows = check_rows(ContrastiveDivergenceRBM(), X, reset=True)
    assert_array_equal(rows.states(slice(None)), [[0, 1, 0], [1, 0, 0]])
    assert_array_equal(X.indices, indices)
    assert_array_equal(X.data, [0.4, 0.4, 1.0, 0.0])


@pytest.mark.parametrize(
    *each_value_once(
        kind=[ContrastiveDivergenceRBM, FrankWolfeRBM],
        make=[np.asarray, sp.csr_array, pd.DataFrame],
    )
)
def test_validation_rows_in_the_place_of_y_are_refused(kind, make):
    X = VALUES > 100
    model = kind(2, max_iter=1) if kind is ContrastiveDivergenceRBM else kind(2)
    message = r"y has 20 rows, and X has 50[.] .* fit\(X, X_val=[.]{3}\)"
    with pytest.raises(ValueError, match=message):
        model.fit(X, make(X[:20]))
    # a target is ignored, as scikit-learn's transformers do
    for y in (None, np.arange(50), [["a"]] * 50, pd.Series(range(50))):
        assert model.fit(X, y).n_features_in_ == 7
