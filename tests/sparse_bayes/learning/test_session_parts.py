"""Parts of the sessions of a record."""

import numpy as np
import pytest

from skbayesnn.sparse_bayes.learning.session_parts import stretches


@pytest.mark.parametrize("lengths", [[7], [4, 9, 6], [3, 3]])
@pytest.mark.parametrize("n_stretches", [2, 3])
def test_stretches(lengths, n_stretches):
    starts = np.concatenate([[0], np.cumsum(lengths)])
    found = np.split(stretches(starts, n_stretches), starts[1:-1])
    for number, length in zip(found, lengths, strict=True):
        assert len(number) == length
        assert (np.diff(number) >= 0).all()
        counts = np.bincount(number, minlength=n_stretches)
        assert len(counts) == n_stretches and np.ptp(counts) <= 1
