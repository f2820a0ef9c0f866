"""Damaged and unusual sparse matrices for every method of an RBM.

Run by `test_sparse_matrices.py`, many of them in a process of their own: what reads or
writes foreign memory ends a process, or shows in its results only.

    python sparse_fuzz.py SEED N_CASES

prints how many were tried, refused, and wrong; with a line for each wrong one.
"""

import sys
import warnings

import numpy as np
import scipy.sparse as sp

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM

N_FEATURES = 7
FORMATS = ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]
INDEX_TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
VALUE_TYPES = [bool, np.uint8, np.int8, np.int64, np.float32, np.float64]
HARMLESS = ["as it is", "unsorted", "duplicates", "explicit zeros", "index type"]
DAMAGES = ["too large", "far too large", "negative", "short", "long pointer", "falling"]


def sound_matrix(rng, n_rows):
    """A matrix, and what it is."""
    kind, dtype = rng.choice(FORMATS), VALUE_TYPES[rng.integers(len(VALUE_TYPES))]
    density = rng.choice([0.0, 0.2, 0.5, 1.0])
    dense = (rng.random((n_rows, N_FEATURES)) < density).astype(dtype)
    make = getattr(sp, f"{kind}_{rng.choice(['array', 'matrix'])}")
    return make(dense), f"{make.__name__} {dense.dtype} density {density}"


def arrays_of_indices(X):
    """Names of the arrays of indices of a matrix."""
    if X.format in ("csr", "csc", "bsr"):
        return ["indices", "indptr"]
    return ["row", "col"] if X.format == "coo" else []


def change_harmlessly(rng, X, change):
    """The matrix in another form, with the same values."""
    names = arrays_of_indices(X)
    if change == "index type" and names:
        dtype = rng.choice(INDEX_TYPES)
        for name in names:
            setattr(X, name, getattr(X, name).astype(dtype))
    elif change == "unsorted" and X.format in ("csr", "csc"):
        for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
            X.indices[start:stop] = X.indices[start:stop][::-1].copy()
            X.data[start:stop] = X.data[start:stop][::-1].copy()
        X.has_sorted_indices = False
    elif change == "duplicates" and X.format == "coo":
        # sums of values and zeros
        order = rng.permutation(2 * X.nnz)
        row, column = np.tile(X.row, 2)[order], np.tile(X.col, 2)[order]
        values = np.append(X.data, np.zeros_like(X.data))[order]
        X = type(X)((values, (row, column)), shape=X.shape)
    elif change == "explicit zeros" and X.format in ("csr", "csc", "coo"):
        X.data[rng.random(X.nnz) < 0.3] = 0
    return X


def damage(rng, X, kind):
    """Damage the indices in place; whether there was anything to damage."""
    names = arrays_of_indices(X)
    if not names or not X.nnz:
        return False
    indices = getattr(X, names[0] if X.format != "coo" else rng.choice(names))
    place = rng.integers(len(indices))
    if kind == "too large":
        indices[place] = max(X.shape)
    elif kind == "far too large":
        indices[place] = 10**8
    elif kind == "negative":
        indices[place] = -rng.choice([1, 3, 10**8])
    elif X.format == "coo":
        return False
    elif kind == "short":
        X.indices = X.indices[:-1].copy()
    elif kind == "long pointer":
        X.indptr[-1] += rng.choice([1, 10**6])
    elif len(X.indptr) > 2:
        X.indptr[rng.integers(1, len(X.indptr) - 1)] = X.indptr[-1] + 5
    else:
        return False
    return True


def methods(fitted, X):
    """Calls of all methods that take rows."""
    yield "fit", lambda: type(fitted)(**fitted.get_params()).fit(X).components_
    yield "partial_fit", lambda: small(type(fitted)).partial_fit(X).components_
    for name in ("transform", "free_energy", "pseudo_likelihood", "score_samples"):
        yield name, lambda name=name: getattr(fitted, name)(X)
    yield "gibbs", lambda: fitted.gibbs(X, 1, random_state=0)
    yield "X_val", lambda: small(type(fitted)).fit(sound_rows(9), X_val=X).components_


def small(cls):
    if cls is ContrastiveDivergenceRBM:
        return cls(2, max_iter=1, random_state=0)
    return cls(2, n_chains=8, n_corrective_steps=1, max_search_iter=1, random_state=0)


def sound_rows(n_rows):
    return np.random.default_rng(1).random((n_rows, N_FEATURES)) < 0.5


def run(rng, fitted):
    """One case: "right", "refused" or "wrong", and what it was."""
    X, text = sound_matrix(rng, int(rng.choice([1, 2, 9, 100])))
    dense, kind = sp.csr_array(X).toarray(), rng.choice(DAMAGES)
    damaged = rng.random() < 0.5 and damage(rng, X, kind)
    if not damaged:
        kind = rng.choice(HARMLESS)
        X = change_harmlessly(rng, X, kind)
        if kind == "explicit zeros":
            dense = sp.csr_array(X).toarray()
    calls = list(methods(fitted, X))
    name, call = calls[rng.integers(len(calls))]
    text += f", {kind}: {type(fitted).__name__}.{name}"
    try:
        found = call()
    except (ValueError, TypeError) as error:
        # SciPy itself refuses some types of indices
        if damaged or kind == "index type":
            return "refused", text
        return _compare_errors(fitted, dense, name, error, text)
    if damaged:
        return "wrong", f"{text}: not refused"
    if not np.isfinite(found).all():
        return "wrong", f"{text}: not finite"
    same = dict(methods(fitted, dense))[name]()
    if not np.allclose(found, same, rtol=1e-5, atol=1e-6):
        return "wrong", f"{text}: other than for a dense array"
    return "right", text


def _compare_errors(fitted, dense, name, error, text):
    """Whether the dense array is refused as well."""
    try:
        dict(methods(fitted, dense))[name]()
    except (ValueError, TypeError):
        return "refused", text
    return "wrong", f"{text}: {error}"


def tried(seed, n_cases):
    """How the cases ended, of which wrong ones are printed."""
    rng = np.random.default_rng(seed)
    machines = [
        small(cls).fit(sound_rows(40))
        for cls in (ContrastiveDivergenceRBM, FrankWolfeRBM)
    ]
    counts = {"right": 0, "refused": 0, "wrong": 0}
    for number in range(n_cases):
        outcome, text = run(rng, machines[number % 2])
        counts[outcome] += 1
        if outcome == "wrong":
            print(text)
    return counts


def main(seed, n_cases):
    warnings.simplefilter("ignore")
    counts = tried(seed, n_cases)
    print(f"{n_cases} tried, {counts['refused']} refused, {counts['wrong']} wrong")
    sys.exit(counts["wrong"] > 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
