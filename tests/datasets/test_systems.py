"""The simulated tanks, and the fetchers of the measured systems."""

import hashlib
import io
import os
import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from loopback import closed_address, run_server
from scipy.integrate import solve_ivp
from scipy.io import loadmat, savemat
from sklearn.utils import check_random_state

from skbayesnn.datasets import (
    _fetch,
    _tanks,
    fetch_cascaded_tanks,
    fetch_silverbox,
    make_cascaded_tanks,
)
from skbayesnn.datasets._tank_kernels import simulate_tanks

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


def assert_is_dataset(dataset, n_samples, n_test_samples):
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
    assert dataset.n_initialization == 50
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


# The simulation


@pytest.mark.parametrize("n_samples", [2, 17, 100, 1024, 1500])
def test_simulation_layout(n_samples):
    dataset = make_cascaded_tanks(n_samples, random_state=0)
    assert_is_dataset(dataset, n_samples, {"test": n_samples})
    assert dataset.sampling_time == 4.0
    assert "default data set" in dataset.DESCR


def test_simulation_as_pair_and_as_frame():
    pytest.importorskip("pandas")
    dataset = make_cascaded_tanks(60, random_state=3)
    X, y = make_cascaded_tanks(60, return_X_y=True, random_state=3)
    np.testing.assert_array_equal(X, dataset.data)
    np.testing.assert_array_equal(y, dataset.target)

    framed = make_cascaded_tanks(60, as_frame=True, random_state=3)
    assert_are_frames(framed)
    np.testing.assert_array_equal(framed.data, X)
    np.testing.assert_array_equal(framed.tests.test.target, dataset.tests.test.target)


def test_simulation_follows_random_state():
    first = make_cascaded_tanks(80, random_state=0)
    again = make_cascaded_tanks(80, random_state=np.random.RandomState(0))
    other = make_cascaded_tanks(80, random_state=1)
    np.testing.assert_array_equal(first.data, again.data)
    np.testing.assert_array_equal(first.target, again.target)
    np.testing.assert_array_equal(first.tests.test.target, again.tests.test.target)
    assert np.abs(first.target - other.target).max() > 0.1
    assert np.abs(first.data - first.tests.test.data).max() > 0.1


def test_simulation_leaves_global_random_state():
    # the singleton behind np.random.*, as scikit-learn hands it out
    singleton = check_random_state(None)
    before = singleton.get_state()[1].copy()
    make_cascaded_tanks(20, random_state=0)
    np.testing.assert_array_equal(singleton.get_state()[1], before)


@pytest.mark.parametrize("seed", range(5))
def test_simulated_input_is_the_multisine_of_the_benchmark(seed):
    # far from 0 V, where it would be clipped
    u = make_cascaded_tanks(input_mean=8.0, random_state=seed).data[:, 0]
    assert u.mean() == pytest.approx(8.0)
    assert u.std() == pytest.approx(1.0)
    amplitudes = np.abs(np.fft.rfft(u - 8.0))
    np.testing.assert_allclose(amplitudes[1:20], amplitudes[1])
    np.testing.assert_allclose(amplitudes[20:60], 0.1 * amplitudes[1])
    assert amplitudes[60:].max() < 1e-9 * amplitudes[1]


def test_both_records_start_at_the_same_levels():
    dataset = make_cascaded_tanks(measurement_noise=0.0, random_state=0)
    assert dataset.target[0] == dataset.tests.test.target[0]


def test_simulated_output_resembles_the_benchmark():
    # the ranges hold the two measured records with room for the random phases
    spread, n_saturated = [], []
    for seed in range(20):
        dataset = make_cascaded_tanks(random_state=seed)
        for record in (dataset, dataset.tests.test):
            assert record.data.min() >= 0.0
            assert record.data.max() < 8.0
            assert record.target.min() >= 0.0
            assert record.target.max() <= 10.0
            spread.append(record.target.std())
            n_saturated.append(np.sum(record.target > 9.9))
    assert 1.9 < np.mean(spread) < 2.4
    assert np.mean(np.array(n_saturated) > 0) > 0.8
    assert 30 < np.mean(n_saturated) < 80


def simulate_levels(u, x_init, constants=_tanks.CONSTANTS, w=None):
    w = np.zeros((len(u), 2)) if w is None else w
    return simulate_tanks(
        constants, u, w, np.array(x_init), _tanks.SAMPLING_TIME, _tanks.N_SUBSTEPS
    )


def test_both_tanks_overflow_and_the_sensor_saturates():
    tanks = _tanks.CONSTANTS
    u = make_cascaded_tanks(random_state=0).data[:, 0]
    levels = simulate_levels(u, [5.0, 5.0])
    assert levels[:, 0].max() == tanks.height_upper
    assert levels[:, 1].max() == tanks.height_lower
    assert np.sum(levels[:, 0] == tanks.height_upper) > 20

    y = make_cascaded_tanks(random_state=0).target
    stretches = np.sum(np.diff((y == 10.0).astype(int)) == 1)
    assert stretches >= 2


def test_spilled_water_falls_into_the_lower_tank():
    u = np.full(40, 5.0)
    dry = _tanks.CONSTANTS._replace(overflow_share=0.0, height_lower=100.0)
    wet = dry._replace(overflow_share=0.5)
    dry_levels = simulate_levels(u, [10.0, 3.0], dry)
    wet_levels = simulate_levels(u, [10.0, 3.0], wet)
    np.testing.assert_array_equal(wet_levels[:, 0], 10.0)

    # a full upper tank spills what it cannot hold: a constant extra inflow
    spill = dry.k4 * 5.0 - dry.k1 * np.sqrt(10.0)
    w = np.zeros((40, 2))
    w[:, 1] = 0.5 * spill
    expected = simulate_levels(u, [10.0, 3.0], dry, w)
    # spilling after each substep of 0.4 s instead of all the time
    np.testing.assert_allclose(wet_levels, expected, rtol=1e-3)
    assert (wet_levels[1:, 1] > dry_levels[1:, 1]).all()


def solve_tanks(tanks, u, w, x_init):
    """Integrate equation (16) to a high accuracy, one sampling interval at a time."""

    def rates(t, x, voltage, noise):
        root1, root2 = np.sqrt(x)
        return [
            -tanks.k1 * root1 + tanks.k4 * voltage + noise[0],
            tanks.k2 * root1 - tanks.k3 * root2 + noise[1],
        ]

    levels = [np.array(x_init)]
    for voltage, noise in zip(u[:-1], w[:-1], strict=True):
        solution = solve_ivp(
            rates,
            (0.0, _tanks.SAMPLING_TIME),
            levels[-1],
            args=(voltage, noise),
            method="DOP853",
            rtol=1e-11,
            atol=1e-12,
        )
        levels.append(solution.y[:, -1])
    return np.array(levels)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_kernel_agrees_with_an_accurate_integration(noise):
    rng = np.random.default_rng(0)
    u = 2.5 + 0.5 * np.sin(0.05 * np.arange(150))
    w = noise * rng.standard_normal((150, 2))
    expected = solve_tanks(_tanks.CONSTANTS, u, w, [4.0, 6.0])
    # only then is the reference right
    assert expected[:, 0].max() < _tanks.CONSTANTS.height_upper
    assert expected[:, 1].max() < _tanks.CONSTANTS.height_lower
    levels = simulate_levels(u, [4.0, 6.0], w=w)
    np.testing.assert_allclose(levels, expected, rtol=1e-8)


def test_noise_free_record_agrees_with_an_accurate_integration():
    dataset = make_cascaded_tanks(
        150,
        input_mean=2.2,
        input_std=0.3,
        process_noise=0.0,
        measurement_noise=0.0,
        random_state=0,
    )
    u, y = dataset.data[:, 0], dataset.target

    # recover the initial level of the upper tank, which the record does not show, from
    # the first outputs; everything after them is a prediction
    def solve(level, n):
        return solve_tanks(_tanks.CONSTANTS, u[:n], np.zeros((n, 2)), [level, y[0]])

    low, high = 4.0, 6.0
    while high - low > 1e-10:
        middle = 0.5 * (low + high)
        is_low = solve(middle, 4)[-1, 1] < y[3]
        low, high = (middle, high) if is_low else (low, middle)
    np.testing.assert_allclose(y, solve(low, 150)[:, 1], rtol=1e-6)


def test_noise_has_the_requested_size():
    quiet = make_cascaded_tanks(measurement_noise=0.0, random_state=0)
    noisy = make_cascaded_tanks(measurement_noise=0.05, random_state=0)
    np.testing.assert_array_equal(quiet.data, noisy.data)
    unsaturated = quiet.target < 9.5
    e = (noisy.target - quiet.target)[unsaturated]
    # five standard errors of a standard deviation
    assert e.std() == pytest.approx(0.05, rel=5 / np.sqrt(2 * len(e)))


def test_empty_tanks_stay_empty():
    u = np.zeros(200)
    levels = simulate_levels(u, [0.5, 0.5])
    assert (levels >= 0.0).all()
    np.testing.assert_allclose(levels[-1], 0.0, atol=1e-3)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"n_samples": 1}, ValueError, "n_samples == 1, must be >= 2"),
        ({"n_samples": 10.0}, TypeError, "n_samples must be an instance of int"),
        ({"input_mean": -1.0}, ValueError, "input_mean == -1.0, must be >= 0"),
        ({"input_std": -0.1}, ValueError, "input_std == -0.1, must be >= 0"),
        ({"process_noise": -1}, ValueError, "process_noise == -1, must be >= 0"),
        ({"measurement_noise": np.nan}, ValueError, "measurement_noise == nan"),
        ({"input_std": np.inf}, ValueError, "input_std == inf, must be finite"),
        ({"random_state": "seed"}, ValueError, "cannot be used to seed"),
    ],
)
def test_simulation_rejects_wrong_parameters(params, error, message):
    with pytest.raises(error, match=re.escape(message)):
        make_cascaded_tanks(**params)


# The measured benchmarks


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


# Files, found, damaged or downloaded; with a small file in place of the real one


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with run_server() as server:
        yield server


@pytest.fixture(scope="module")
def small_mat():
    rng = np.random.default_rng(0)
    file = io.BytesIO()
    savemat(
        file, {name: rng.random((8, 1)) for name in ("uEst", "yEst", "uVal", "yVal")}
    )
    return file.getvalue()


def zip_member(content, name="CascadedTanksFiles/dataBenchmark.mat"):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as members:
        members.writestr("CascadedTanksFiles/readme.txt", "not the data")
        members.writestr(name, content)
    return file.getvalue()


@pytest.fixture
def small_tanks(monkeypatch, small_mat):
    """Make the small file the right one; its address is a closed port."""
    monkeypatch.delenv("SKBAYESNN_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return set_remote(
        monkeypatch,
        sha256=hashlib.sha256(small_mat).hexdigest(),
        urls=(f"{closed_address()}/tanks",),
    )


@pytest.fixture
def served_tanks(monkeypatch, small_tanks, server):
    """Let the local server be the address of the small file."""
    pytest.importorskip("pooch")
    pytest.importorskip("tqdm")
    return set_remote(monkeypatch, urls=(f"{server.address}/tanks",))


def set_remote(monkeypatch, **fields):
    remote = _fetch.CASCADED_TANKS._replace(**fields)
    monkeypatch.setattr(_fetch, "CASCADED_TANKS", remote)
    return remote


def put(home, name, content):
    path = home / "cascaded_tanks" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def files_below(home):
    return {path.name for path in home.rglob("*") if path.is_file()}


def is_small(dataset):
    return dataset.target.shape == (8,)


def test_data_home_then_environment_then_default(
    tmp_path, monkeypatch, small_tanks, small_mat
):
    homes = [tmp_path / "sklearn" / "skbayesnn", tmp_path / "b", tmp_path / "c"]
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "sklearn"))

    def assert_is_looked_up_in(home, **params):
        with pytest.raises(OSError, match=re.escape(f"neither {home}{os.sep}")):
            fetch_cascaded_tanks(download_if_missing=False, **params)
        put(home, "dataBenchmark.mat", small_mat)
        assert is_small(fetch_cascaded_tanks(**params))

    assert_is_looked_up_in(homes[0])
    monkeypatch.setenv("SKBAYESNN_DATA", str(homes[1]))
    assert_is_looked_up_in(homes[1])
    assert_is_looked_up_in(homes[2], data_home=str(homes[2]))


def test_archive_of_the_user_is_read_in_place(tmp_path, small_tanks, small_mat):
    archive = put(tmp_path, "CascadedTanksFiles.zip", zip_member(small_mat))
    archive.chmod(0o444)
    archive.parent.chmod(0o555)
    try:
        assert is_small(fetch_cascaded_tanks(data_home=tmp_path))
        assert files_below(tmp_path) == {"CascadedTanksFiles.zip"}
    finally:
        archive.parent.chmod(0o755)


@pytest.mark.parametrize("damage", ["truncated", "other"])
def test_damaged_file_of_the_user_is_named_and_kept(
    tmp_path, small_tanks, small_mat, damage
):
    content = small_mat[:-5] if damage == "truncated" else b"another file"
    path = put(tmp_path, "dataBenchmark.mat", content)
    with pytest.raises(ValueError, match="not the expected") as info:
        fetch_cascaded_tanks(data_home=tmp_path)
    for part in (
        str(path),
        small_tanks.sha256,
        hashlib.sha256(content).hexdigest(),
        "replace it",
    ):
        assert part in str(info.value)
    assert path.read_bytes() == content


def damage_archives(content):
    whole = zip_member(content)
    middle = whole.index(b"dataBenchmark.mat") + 40
    flipped = bytearray(whole)
    flipped[middle : middle + 8] = bytes(8)
    return {
        "empty": (b"", "not a whole zip"),
        "truncated": (whole[: len(whole) // 2], "not a whole zip"),
        "flipped": (bytes(flipped), "not a whole zip"),
        "page": (b"<html>Sign in</html>", "not a whole zip"),
        "no member": (zip_member(content, "other.mat"), "contains no dataBench"),
        "wrong member": (zip_member(b"other"), "SHA-256"),
    }


DAMAGES = ["empty", "truncated", "flipped", "page", "no member", "wrong member"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_archive_of_the_user_is_named_and_kept(
    tmp_path, small_tanks, small_mat, damage
):
    content, message = damage_archives(small_mat)[damage]
    archive = put(tmp_path, "CascadedTanksFiles.zip", content)
    with pytest.raises(ValueError, match=message) as info:
        fetch_cascaded_tanks(data_home=tmp_path)
    assert str(archive) in str(info.value)
    assert archive.read_bytes() == content


def test_download_happens_once(tmp_path, served_tanks, server, small_mat, capsys):
    server.serve("/tanks", zip_member(small_mat))
    home = tmp_path / "new" / "home"
    assert is_small(fetch_cascaded_tanks(data_home=home))
    assert "100%" in capsys.readouterr().err
    assert len(server.requested) == 1
    assert files_below(home) == {"dataBenchmark.mat"}
    assert (home / "cascaded_tanks" / "dataBenchmark.mat").read_bytes() == small_mat

    assert is_small(fetch_cascaded_tanks(data_home=home))
    assert len(server.requested) == 1


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_download_leaves_nothing(
    tmp_path, served_tanks, server, small_mat, damage
):
    content, message = damage_archives(small_mat)[damage]
    server.serve("/tanks", content)
    with pytest.raises(ValueError, match=message) as info:
        fetch_cascaded_tanks(data_home=tmp_path)
    assert served_tanks.urls[0] in str(info.value)
    assert files_below(tmp_path) == set()

    # and the way is free for another attempt
    server.serve("/tanks", zip_member(small_mat))
    assert is_small(fetch_cascaded_tanks(data_home=tmp_path))


def test_truncated_transfer_leaves_nothing(tmp_path, served_tanks, server, small_mat):
    body = zip_member(small_mat)
    server.serve("/tanks", body[:-20], claimed_length=len(body))
    with pytest.raises(OSError, match="2 attempts") as info:
        fetch_cascaded_tanks(data_home=tmp_path, n_retries=1, delay=0.0)
    assert served_tanks.urls[0] in str(info.value)
    assert str(tmp_path / "cascaded_tanks" / "CascadedTanksFiles.zip") in str(
        info.value
    )
    assert len(server.requested) == 2
    assert files_below(tmp_path) == set()


def test_server_error_is_reported(tmp_path, served_tanks, server):
    server.status = 503
    server.serve("/tanks", b"busy")
    with pytest.raises(OSError, match="503"):
        fetch_cascaded_tanks(data_home=tmp_path, n_retries=0)
    assert len(server.requested) == 1
    assert files_below(tmp_path) == set()


def test_retry_can_succeed(tmp_path, served_tanks, server, small_mat, monkeypatch):
    server.status = 503
    server.serve("/tanks", zip_member(small_mat))
    delays = []

    def recover(delay):
        delays.append(delay)
        server.status = 200

    monkeypatch.setattr("time.sleep", recover)
    assert is_small(fetch_cascaded_tanks(data_home=tmp_path, delay=0.25))
    assert delays == [0.25]
    assert len(server.requested) == 2


def test_no_network_is_reported(tmp_path, small_tanks):
    pytest.importorskip("pooch")
    pytest.importorskip("tqdm")
    with pytest.raises(OSError, match="Check the network") as info:
        fetch_cascaded_tanks(data_home=tmp_path, n_retries=0)
    assert small_tanks.urls[0] in str(info.value)
    assert files_below(tmp_path) == set()


@pytest.mark.parametrize("package", ["pooch", "tqdm"])
def test_missing_extra_is_named(tmp_path, small_tanks, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=re.escape("pip install skbayesnn[data]")):
        fetch_cascaded_tanks(data_home=tmp_path)
    assert not list(tmp_path.iterdir())


def test_missing_pandas_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="requires pandas"):
        make_cascaded_tanks(10, as_frame=True)


def test_missing_silverbox_is_explained(tmp_path):
    with pytest.raises(OSError, match="Google Drive") as info:
        fetch_silverbox(data_home=tmp_path)
    assert str(tmp_path / "silverbox" / "SilverboxFiles.zip") in str(info.value)
    assert files_below(tmp_path) == set()
    with pytest.raises(OSError, match="download_if_missing is False"):
        fetch_silverbox(data_home=tmp_path, download_if_missing=False)


@pytest.mark.parametrize("fetch", [fetch_cascaded_tanks, fetch_silverbox])
@pytest.mark.parametrize("params", [{"n_retries": -1}, {"delay": -1.0}])
def test_fetchers_reject_wrong_parameters(tmp_path, fetch, params):
    with pytest.raises(ValueError, match="must be >= 0"):
        fetch(data_home=tmp_path, **params)
