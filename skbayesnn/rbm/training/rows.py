"""Training data of an RBM: stored as given, converted to 0 and 1 block by block."""

import hashlib
import math

import numpy as np
import scipy.sparse as sp

from ..model import BLOCK_ROWS
from ..states import sum_states
from ..visible import BINARY


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
        self._mean = self._fractions = None

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

    def fractions_of_states(self):
        """(2**n_features,) fraction of the rows in each state; computed once.

        In the order of `states.all_states`; for few features, of 0 and 1.
        """
        if self._fractions is None:
            places, counts = 2 ** np.arange(self.n_features), 0
            for block in self.blocks():
                numbers = block.astype(np.int64) @ places
                counts += np.bincount(numbers, minlength=2**self.n_features)
            self._fractions = counts / len(self)
        return self._fractions


def _above(rows, threshold):
    """Which values are above; without floats where there are none."""
    if rows.dtype == bool and 0 <= threshold < 1:
        return rows
    if rows.dtype.kind in "iu":
        return rows > math.floor(threshold)
    # a threshold beyond the range of the rows is an infinity among them
    with np.errstate(over="ignore"):
        return rows > threshold
