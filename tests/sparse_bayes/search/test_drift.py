"""How far the fits of a candidate drift apart on inputs in another order."""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn.sparse_bayes.learning.session_parts import stretches
from skbayesnn.sparse_bayes.search import drift as drift_module
from skbayesnn.sparse_bayes.search.candidates import WORST_ERROR
from skbayesnn.sparse_bayes.search.cut_record import CutRecord
from skbayesnn.sparse_bayes.search.drift import drift
from skbayesnn.sparse_bayes.training_record import TrainingRecord


class Path(NamedTuple):
    mean: np.ndarray


class Says(NamedTuple):
    """What predicts a constant, and remembers of which inputs."""

    value: float
    seen: list
    max_lag: int = 3

    def forecast(self, record, n_known, horizon, return_std):
        assert np.isfinite(record.U[:n_known]).all()
        assert np.isfinite(record.Y[:n_known]).all()
        assert horizon == np.inf and list(record.starts) == [0, len(record.U)]
        self.seen.append(record.U[:, 0])
        return Path(np.full(record.Y.shape, self.value))


def networks(*values):
    seen = []
    return [Says(value, seen) for value in values], seen


def data_of(n_rows=80, starts=None, missing=(), cv=8):
    """Inputs are the numbers of the rows; outputs have a standard deviation of 2."""
    U, Y = np.arange(float(n_rows))[:, None], np.tile([[-2.0], [2.0]], (n_rows // 2, 1))
    starts = np.array([0, n_rows] if starts is None else starts)
    for array, row in missing:
        (U if array == "u" else Y)[row] = np.nan
    given = TrainingRecord(U, Y, starts, True, {})
    return CutRecord(given, stretches(starts, cv))


def test_scatter_of_runs():
    """Two runs have a sample standard deviation of their difference over root two."""
    data = data_of()
    assert drift(networks(1.0, 1.0)[0], data) < 1e-11
    assert_allclose(drift(networks(1.0, 2.0)[0], data), 0.5 / np.sqrt(2.0))
    assert_allclose(drift(networks(0.0, 0.0, 2.0)[0], data), np.sqrt(0.5))


def test_a_run_that_diverged_counts_as_the_worst_error():
    two = drift(networks(1.0, 1.0, np.nan)[0], data_of())
    assert_allclose(two, WORST_ERROR / np.sqrt(2.0))
    assert_allclose(drift(networks(1.0, 1.0, 1e300)[0], data_of()), two)
    none = drift(networks(np.nan, np.nan)[0], data_of())
    assert_allclose(none, WORST_ERROR * np.sqrt(2.0))


def test_one_network_has_nothing_to_differ_from():
    assert np.isnan(drift(networks(1.0)[0], data_of()))
    assert np.isnan(drift([], data_of()))


@pytest.mark.parametrize("starts", [None, [0, 32, 80]], ids=["one", "sessions"])
def test_inputs_come_in_another_order(starts):
    data = data_of(starts=starts)
    two, seen = networks(0.0, 1.0)
    drift(two, data)
    orders = seen[::2]
    assert len(orders) == 3
    ends = np.flatnonzero(np.diff(data.folds) != 0)
    for inputs in orders:
        assert_array_equal(np.sort(inputs), np.arange(80.0))
        joints = np.flatnonzero(np.diff(inputs) != 1.0)
        # only stretches are moved, and nearly all of them
        assert len(ends) - 2 <= len(joints) <= len(ends)
    assert len({tuple(inputs) for inputs in orders}) == 3


def test_rows_without_an_input_are_left_out_and_runs_begin_behind_known_outputs():
    missing = [("u", 35), ("y", 71), ("y", 72), ("y", 12)]
    two, seen = networks(0.0, 1.0)
    assert drift(two, data_of(missing=missing)) > 0.0
    backwards = seen[0]
    assert 35.0 not in backwards
    assert_array_equal(backwards[:3], [73.0, 74.0, 75.0])
    unknown = [("y", row) for row in range(80)][:-2]
    assert drift(networks(0.0, 1.0)[0], data_of(missing=unknown)) == 0.0


def test_runs_begin_before_a_stretch_that_is_too_short_to_tell_the_states():
    two, seen = networks(0.0, 1.0)
    two = [one._replace(max_lag=12) for one in two]
    assert drift(two, data_of(56)) > 0.0
    backwards, odd, even = seen[::2]
    # stretches of seven rows: the last one, the second one and the last but one
    assert_array_equal(backwards[:19], np.arange(37.0, 56.0))
    assert_array_equal(odd[:14], np.arange(14.0))
    assert_array_equal(even[:19], np.arange(30.0, 49.0))


def test_no_run_begins_in_a_stretch_without_inputs():
    two, seen = networks(0.0, 1.0)
    missing = [("u", row) for row in range(70, 80)]
    assert drift(two, data_of(missing=missing)) > 0.0
    assert len(seen[::2]) == 2
    assert all(inputs.max() == 69.0 for inputs in seen)


def test_long_records_are_cut(monkeypatch):
    two, seen = networks(0.0, 1.0)
    monkeypatch.setattr(drift_module, "ROWS", 400)
    drift(two, data_of(4000))
    assert {len(inputs) for inputs in seen} == {400}
    assert_array_equal(seen[0][:2], [3500.0, 3501.0])
