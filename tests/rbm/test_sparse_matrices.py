"""Sparse matrices of every kind, sound and damaged.

Many are tried in a process of their own, which may crash.
"""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import sparse_fuzz

from skbayesnn import ContrastiveDivergenceRBM

FUZZ = sparse_fuzz.__file__


def fuzz(seed, n_cases):
    """In a process of its own."""
    command = [sys.executable, FUZZ, str(seed), str(n_cases)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{n_cases} tried" in done.stdout and "0 wrong" in done.stdout


@pytest.mark.filterwarnings("ignore")
def test_a_few(capsys):
    assert not sparse_fuzz.tried(0, 50)["wrong"], capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_many(seed):
    fuzz(seed, 4000)


@pytest.mark.parametrize("last", [0, -68])
def test_pointers_that_end_at_nothing(last):
    # SciPy sees no entries then, and looks at no other pointer
    X = sp.csr_array(np.eye(6))
    X.indptr[-1] = last
    with pytest.raises(ValueError, match="X must be a valid sparse matrix.*pointers"):
        ContrastiveDivergenceRBM(2, max_iter=1).fit(X)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64])
def test_the_arrays_of_a_matrix_are_not_replaced(dtype):
    X = sp.csr_array(np.eye(6))
    # spare entries behind the last one, which SciPy's check removes
    X.indices = np.append(X.indices, 3).astype(dtype)
    X.data, X.indptr = np.append(X.data, 7.0), X.indptr.astype(dtype)
    before = X.data, X.indices, X.indptr
    ContrastiveDivergenceRBM(2, max_iter=1).fit(X)
    after = X.data, X.indices, X.indptr
    assert all(a is b for a, b in zip(after, before, strict=True))


def test_an_index_in_a_list_is_checked():
    X = sp.lil_array(np.eye(6))
    X.rows[2] = [10**6]
    with pytest.raises(ValueError, match="X must be a valid sparse matrix"):
        ContrastiveDivergenceRBM(2, max_iter=1).fit(X)
