"""Whether the past of a record tells anything of its next rows."""

import numpy as np
import pytest
from scipy.signal import lfilter

from skbayesnn.sparse_bayes.records.memory import has_memory


def record(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    u = rng.standard_normal((n_rows, 1))
    y = lfilter([1.0], [1.0, -0.9], rng.standard_normal(n_rows))
    return u, y[:, None], np.array([0, n_rows])


@pytest.mark.parametrize("interval", [1, 2, 10])
def test_rarely_measured_outputs_are_compared_with_those_before_them(interval):
    u, y, starts = record(4000)
    rare = np.where(np.arange(4000)[:, None] % interval == 0, y, np.nan)
    assert has_memory(u, rare, starts)
    shuffled = np.full_like(y, np.nan)
    rows = np.arange(0, 4000, interval)
    shuffled[rows] = np.random.default_rng(1).permutation(y[rows])
    # of 400 pairs a tenth of the correlation of all would not have shown
    assert not has_memory(u, shuffled, starts)


def test_few_measured_outputs_do_not_tell():
    u, y, starts = record(1000)
    few = np.full_like(y, np.nan)
    few[::5] = np.random.default_rng(1).permutation(y[::5])
    assert has_memory(u, few, starts)
