"""Training data of an RBM: stored as given, converted to 0 and 1 block by block."""

import hashlib
import math

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning

from ..._random import Stream, generator
from ..._validation import check_sample_weight, check_sparse, validate_data
from ..._warnings import warn_caller
from ..model import BLOCK_ROWS
from ..states import sum_states
from ..visible import BINARY

# Rows that count, of which an index is kept in memory.
MAX_ROWS = 10**8
# Mean weight of the rows that have one, below which to leave out so many of them is
# rather a mistake.
_LEAST_WEIGHT = 0.5
# Between these lies the largest value of images of bytes.
_DARK, _WHITE = 127, 255


class Rows:
    """Rows of a data set as states of visible units, computed on request.

    A float32 copy of the whole would take four times the memory of images in bytes.
    """

    # the kind of visible units that takes these states
    units = BINARY

    def __init__(self, X, threshold, index=None, together=False):
        self.X = X
        self.threshold = threshold
        # which of the rows these are; None for all
        self.index = index
        # whether copies of a row are one observation, which is held out as a whole
        self.together = together
        self.n_features = X.shape[1]
        self._mean = self._shares = None

    def __len__(self):
        return self.X.shape[0] if self.index is None else len(self.index)

    def take(self, index, dtype=np.float32):
        """The rows of an index array or a slice, dense (n_rows, n_features)."""
        rows = self._dense(index)
        if self.threshold is not None:
            rows = _above(rows, self.threshold)
        return np.ascontiguousarray(rows, dtype=dtype)

    def _dense(self, index):
        rows = self.X[index if self.index is None else self.index[index]]
        return rows.toarray() if sp.issparse(rows) else rows

    def states(self, index, dtype=np.float32):
        """The rows as uint8, 0 or 1; of another type if any value is between."""
        if self.threshold is not None:
            return self.take(index, np.uint8)
        rows = self._dense(index)
        states = rows == 1
        if (states == rows).all():
            return np.ascontiguousarray(states).view(np.uint8)
        return np.ascontiguousarray(rows, dtype=dtype)

    def spread(self, n_rows):
        """At most so many states, evenly spaced: in canonical order, a sample."""
        n_rows = min(n_rows, len(self))
        return self.states(np.arange(n_rows) * len(self) // max(n_rows, 1))

    def blocks(self, dtype=np.float32):
        """All rows, block after block, as ``states`` has them."""
        for start in range(0, len(self), BLOCK_ROWS):
            yield self.states(slice(start, start + BLOCK_ROWS), dtype)

    @property
    def are_states(self):
        """Whether all values are 0 or 1, rather than probabilities of a 1."""
        return self.threshold is not None

    def hold_grey_values(self):
        """Whether some value is a probability between 0 and 1."""
        if self.are_states:
            return False
        return any(states.dtype != np.uint8 for states in self.blocks())

    def subset(self, index):
        """The rows of an index array, without a copy of them."""
        index = index if self.index is None else self.index[index]
        return Rows(self.X, self.threshold, index, self.together)

    def repeated(self, times, together):
        """The rows, each so many times (n_rows,), without copies of them."""
        index = np.repeat(np.arange(len(self)), times)
        return Rows(self.X, self.threshold, self.subset(index).index, together)

    def observations(self):
        """Numbers (n_rows,) of what may be held out, from 0 in the order of the rows.

        Each row has its own, unless copies of a row stay together.
        """
        if not self.together:
            return np.arange(len(self))
        _, first, of_rows = np.unique(
            self.index, return_index=True, return_inverse=True
        )
        return np.argsort(np.argsort(first))[of_rows]

    def in_canonical_order(self):
        """The rows in an order that their contents alone decide.

        By a hash of each: a training on the rows in any other order, or on copies of
        rows in place of weights, is then the same to the last bit; and the first rows
        of a sorted data set stand for all.
        """
        # of one type: states, and probabilities that are 0 and 1, are the same rows
        hashes = [
            hashlib.blake2b(row, digest_size=8).digest()
            for start in range(0, len(self), BLOCK_ROWS)
            for row in self.take(slice(start, start + BLOCK_ROWS), np.float32)
        ]
        order = np.argsort(np.frombuffer(b"".join(hashes), np.uint64), kind="stable")
        return self.subset(order)

    def without(self, states):
        """The rows that are none of the states (n_states, n_features)."""
        return self.subset(np.flatnonzero(~self.are_among(states)))

    def are_among(self, states):
        """Which rows are one of the states, as a mask."""
        found = [
            np.any([(V == state).all(axis=1) for state in states], axis=0)
            for V in self.blocks()
        ]
        return np.concatenate(found)

    def mean(self):
        """Mean of each feature, float64; computed once."""
        if self._mean is None:
            total = np.zeros(self.n_features)
            for block in self.blocks():
                total += sum_states(block)
            self._mean = total / len(self)
        return self._mean

    def shares(self):
        """(2**n_features,) fraction of the rows in each state; computed once.

        In the order of `states.all_states`; for few features, of 0 and 1.
        """
        if self._shares is None:
            places, counts = 2 ** np.arange(self.n_features), 0
            for block in self.blocks():
                numbers = block.astype(np.int64) @ places
                counts += np.bincount(numbers, minlength=2**self.n_features)
            self._shares = counts / len(self)
        return self._shares


def _above(rows, threshold):
    """Which values are above; without floats where there are none."""
    if rows.dtype == bool and 0 <= threshold < 1:
        return rows
    if rows.dtype.kind in "iu":
        return rows > math.floor(threshold)
    # a threshold beyond the range of the rows is an infinity among them
    with np.errstate(over="ignore"):
        return rows > threshold


# What is to be done about missing values, by what the rows are for.
_LEARNS = (
    "An RBM learns from complete rows: leave out those with a missing value, "
    "X[~np.isnan(X).any(axis=1)]; the fitted model then fills in the others by "
    "impute(X). Or fill them in before, by an imputer of scikit-learn in a pipeline."
)
_KNOWS = (
    "This method takes complete rows: fill in missing values by impute(X) of the "
    "fitted model, or leave out these rows, X[~np.isnan(X).any(axis=1)]."
)


def check_rows(estimator, X, *, reset, allow_nan=False, name="X"):
    """Validate ``X``, of any dtype and dense or CSR, and wrap it as `Rows`.

    ``reset`` in a fit; messages give the data the ``name``.
    """
    if sp.issparse(X):
        X = check_sparse(X)
    elif isinstance(X, list | tuple):
        X = _from_lists(X)
    try:
        X = validate_data(
            estimator,
            X,
            accept_sparse="csr",
            dtype="numeric",
            ensure_all_finite="allow-nan" if allow_nan else True,
            reset=reset,
        )
    except ValueError as error:
        text = str(error)
        # of scikit-learn; a mask is refused by another message
        if text.startswith("Input X contains NaN"):
            remedy = _KNOWS if name == "X" and not reset else _LEARNS
            text = f"Input X contains NaN. {remedy}"
        if name != "X" and "0 sample(s)" in text:
            text = f"{name} must hold at least one row; got none."
        elif name != "X":
            text = text.replace("X has", f"{name} has").replace("Input X", name)
        if text == str(error):
            raise
        raise ValueError(text) from error
    check_range(X, estimator.binarize, name)
    # a row to be transformed may be empty
    if reset and (estimator.binarize or 0.0) > 0.0:
        _warn_of_emptied_rows(X, estimator.binarize)
    return Rows(X, estimator.binarize)


def _from_lists(X):
    """An array from rows as lists.

    scikit-learn converts objects of arrays to numbers, but not those of lists.
    """
    try:
        return np.asarray(X)
    except ValueError as error:
        raise ValueError(
            "The rows of X, or of X_val, differ in their numbers of values: expected a "
            "matrix of shape (n_samples, n_features), without targets beside it."
        ) from error


def check_weights(sample_weight, rows):
    """How many times each row counts (n_rows,) float64, or None."""
    weights = check_sample_weight(sample_weight, rows.X)
    if weights is None:
        return None
    total = float(weights.sum())
    if not 1.0 <= total <= MAX_ROWS:
        raise ValueError(
            "sample_weight says how many times each row counts, and must sum to 1 to "
            f"{MAX_ROWS:.0e}; found {total:.3g}. Multiply it by a factor: the number "
            "of rows for weights that sum to 1."
        )
    n_weighed = np.count_nonzero(weights)
    if total < _LEAST_WEIGHT * n_weighed:
        warn_caller(
            "sample_weight says how many times each row counts, and sums to "
            f"{total:.3g} for {n_weighed} rows: training sees {total:.0f} of them, "
            f"drawn at random. Multiply it by {n_weighed / total:.3g} to see each once "
            "on average.",
            DataConversionWarning,
        )
    return weights


def counted_rows(rows, weights, seed):
    """The rows, each as many times as its weight says.

    Weights between integers are rounded up or down at random, right on average and so
    that their sum is, by systematic sampling. They say how much an observation matters,
    whose copies stay together; integers count observations that are equal.
    """
    if weights is None:
        return rows
    offset = generator(seed, Stream.SAMPLE_WEIGHTS).uniform()
    # what is an integer stays one in the sums
    whole = np.floor(weights)
    edges = np.floor(np.cumsum(weights - whole) + offset)
    times = (whole + np.diff(edges, prepend=0.0)).astype(np.int64)
    return rows.repeated(times, together=bool((weights != whole).any()))


def result_dtype(X):
    """Type of the parameters of a model of ``X``: float64 only for float64."""
    return np.dtype(np.float64 if X.dtype == np.float64 else np.float32)


def check_range(X, threshold, name="X"):
    """Refuse values that are not probabilities, or warn of them."""
    values = X.data if sp.issparse(X) else X
    if values.dtype == bool or not values.size:
        return
    # a minimum that leaves NaN out, without a warning where there is nothing else
    low, high = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
    if sp.issparse(X) and X.nnz < X.shape[0] * X.shape[1]:
        # what a sparse matrix does not hold is 0
        low, high = min(low, 0), max(high, 0)
    if not (low < 0 or high > 1):
        return
    if threshold is None:
        raise ValueError(
            f"With binarize=None, {name} holds probabilities: expected values in "
            f"[0, 1], found {low:.4g} to {high:.4g}. Scale X, or set binarize to the "
            "threshold above which a value is 1."
        )
    # any other threshold has been chosen for such data
    if 0 < threshold < 1:
        # halves, whose sum does not overflow
        middle = f"{0.5 * float(low) + 0.5 * float(high):.4g}"
        fitting = f"between {low:.4g} and {high:.4g}, or encode categories one by one"
        # those of a sparse matrix, and 0, which it may not hold
        others = low == 0 if sp.issparse(X) else True
        if low == high:
            fitting = f"less than {low:.4g} if that means 1"
        elif others and ((values == low) | (values == high)).all():
            fitting = f"{middle} for {low:.4g} and {high:.4g}"
        elif low >= 0 and _DARK < high <= _WHITE:
            fitting = "127 for images with values of 0 to 255"
        taken = "that is all of them" if low > threshold else "all others as 0"
        warn_caller(
            f"{name} has values outside [0, 1] ({low:.4g} to {high:.4g}): those above "
            f"binarize={threshold} were taken as 1, {taken}. Pass the "
            f"threshold that fits your data, {fitting}; "
            "what is missing is NaN, not a number such as -1.",
            DataConversionWarning,
        )


def _warn_of_emptied_rows(X, threshold):
    """Warn if most rows that hold anything hold nothing above the threshold.

    As weights of words do, whose squares sum to one in each row; or if none does.
    """
    if sp.issparse(X):
        largest = np.asarray(X.max(axis=1).todense()).ravel()
    else:
        largest = np.fmax.reduce(X, axis=1)
    largest = np.asarray(largest, dtype=np.float64)
    filled = largest > 0
    emptied = filled & (largest <= threshold)
    if threshold >= 1 and emptied.any() and (emptied == filled).all():
        warn_caller(
            f"No value of X is above binarize={threshold}, the largest is "
            f"{largest.max():.4g}: all were taken as 0. Pass a threshold below it.",
            DataConversionWarning,
        )
    elif threshold < 1 and 2 * emptied.sum() > filled.sum():
        warn_caller(
            f"{np.count_nonzero(emptied)} of {len(largest)} rows hold values above 0, "
            f"but none above binarize={threshold}, and were taken as all 0. Pass "
            "binarize=0.0 to tell what is there from what is not, as for counts and "
            "weights of words.",
            DataConversionWarning,
        )
