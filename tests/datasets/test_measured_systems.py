"""The fetchers of the measured systems, with the real files where they are present."""

import os
from pathlib import Path

import numpy as np
import pytest
from record_layout import assert_are_frames, assert_is_dataset
from scipy.io import loadmat

from skbayesnn.datasets import fetch_cascaded_tanks, fetch_silverbox


@pytest.fixture(scope="module")
def real_home():
    home = os.environ.get("SKBAYESNN_DATA")
    if not home:
        pytest.skip("SKBAYESNN_DATA is not set: no benchmark files to test with")
    return Path(home)


def require(path):
    if not path.exists():
        pytest.skip(f"{path} does not exist")
    return path


@pytest.fixture
def tanks_mat(real_home):
    return require(real_home / "cascaded_tanks" / "dataBenchmark.mat")


@pytest.fixture
def silverbox_mat(real_home):
    return require(real_home / "silverbox" / "SNLS80mV.mat")


def test_cascaded_tanks(tanks_mat):
    dataset = fetch_cascaded_tanks(download_if_missing=False)
    assert_is_dataset(dataset, 1024, {"test": 1024})
    assert dataset.sampling_time == 4.0
    mat = loadmat(tanks_mat)
    np.testing.assert_array_equal(dataset.data, mat["uEst"])
    np.testing.assert_array_equal(dataset.target, mat["yEst"][:, 0])
    np.testing.assert_array_equal(dataset.tests.test.data, mat["uVal"])
    np.testing.assert_array_equal(dataset.tests.test.target, mat["yVal"][:, 0])


def test_silverbox(silverbox_mat):
    dataset = fetch_silverbox(download_if_missing=False)
    n_test_samples = {"multisine": 21688, "arrow": 40475, "no_extrapolation": 32000}
    assert_is_dataset(dataset, 65062, n_test_samples)
    assert dataset.sampling_time == 1 / 610.35
    mat = loadmat(silverbox_mat)
    for record, start, stop in [
        (dataset, 40650, 105712),
        (dataset.tests.multisine, 105712, 127400),
        (dataset.tests.arrow, 100, 40575),
        (dataset.tests.no_extrapolation, 100, 32100),
    ]:
        np.testing.assert_array_equal(record.data[:, 0], mat["V1"][0, start:stop])
        np.testing.assert_array_equal(record.target, mat["V2"][0, start:stop])


def test_overlapping_silverbox_records_share_no_memory(silverbox_mat):
    tests = fetch_silverbox().tests
    assert not np.shares_memory(tests.arrow.target, tests.no_extrapolation.target)


@pytest.mark.parametrize("fetch", [fetch_cascaded_tanks, fetch_silverbox])
def test_fetched_as_pair_and_as_frame(fetch, tanks_mat, silverbox_mat):
    pytest.importorskip("pandas")
    dataset = fetch()
    X, y = fetch(return_X_y=True)
    np.testing.assert_array_equal(X, dataset.data)
    np.testing.assert_array_equal(y, dataset.target)
    framed = fetch(as_frame=True)
    assert_are_frames(framed)
    np.testing.assert_array_equal(framed.data, X)
    X, y = fetch(as_frame=True, return_X_y=True)
    assert X.equals(framed.data)
    assert y.equals(framed.target)


def test_missing_silverbox_is_explained(tmp_path):
    with pytest.raises(OSError, match="Google Drive") as info:
        fetch_silverbox(data_home=tmp_path)
    assert str(tmp_path / "silverbox" / "SilverboxFiles.zip") in str(info.value)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    with pytest.raises(OSError, match="download_if_missing is False"):
        fetch_silverbox(data_home=tmp_path, download_if_missing=False)


@pytest.mark.parametrize("fetch", [fetch_cascaded_tanks, fetch_silverbox])
@pytest.mark.parametrize("params", [{"n_retries": -1}, {"delay": -1.0}])
def test_fetchers_reject_wrong_parameters(tmp_path, fetch, params):
    with pytest.raises(ValueError, match="must be >= 0"):
        fetch(data_home=tmp_path, **params)
