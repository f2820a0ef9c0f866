"""The layout that all data sets of system identification share."""

import numpy as np

KEYS = {
    "data",
    "target",
    "frame",
    "tests",
    "feature_names",
    "target_names",
    "sampling_time",
    "n_initialization",
    "DESCR",
}


def assert_is_dataset(dataset, n_samples, n_test_samples, n_initialization=50):
    """Check the layout that all the data sets share, for arrays."""
    assert set(dataset) == KEYS
    assert {name: len(test.target) for name, test in dataset.tests.items()} == (
        n_test_samples
    )
    for record, n in [
        (dataset, n_samples),
        *((test, n_test_samples[name]) for name, test in dataset.tests.items()),
    ]:
        assert record.data.shape == (n, 1)
        assert record.target.shape == (n,)
        assert record.frame is None
        for array in (record.data, record.target):
            assert array.dtype == np.float64
            assert array.flags.c_contiguous
            assert array.flags.writeable
            assert np.isfinite(array).all()
    assert len(dataset.feature_names) == len(dataset.target_names) == 1
    assert dataset.n_initialization == n_initialization
    assert "**Data Set Characteristics:**" in dataset.DESCR


def assert_are_frames(dataset):
    """Check the layout that all the data sets share, for pandas objects."""
    names = dataset.feature_names + dataset.target_names
    for record in (dataset, *dataset.tests.values()):
        assert list(record.frame.columns) == names
        assert list(record.data.columns) == dataset.feature_names
        assert record.target.name == dataset.target_names[0]
        np.testing.assert_array_equal(record.frame[names[0]], record.data[names[0]])
        np.testing.assert_array_equal(record.frame[names[1]], record.target)
