"""Files of a benchmark: found, damaged, packed or downloaded.

The fetcher of the Cascaded Tanks runs with a small file in place of the real one.
"""

import gzip
import hashlib
import io
import os
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from loopback import closed_address
from scipy.io import savemat

from skbayesnn import _files
from skbayesnn.datasets import _measured_systems, _remote_files, fetch_cascaded_tanks


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
def small_tanks(monkeypatch, small_mat, no_home):
    """Make the small file the right one; its address is a closed port."""
    return set_remote(
        monkeypatch,
        sha256=hashlib.sha256(small_mat).hexdigest(),
        urls=(f"{closed_address()}/tanks",),
    )


@pytest.fixture
def served_tanks(monkeypatch, small_tanks, server, downloader):
    """Let the local server be the address of the small file."""
    return set_remote(monkeypatch, urls=(f"{server.address}/tanks",))


def set_remote(monkeypatch, **fields):
    remote = _measured_systems.CASCADED_TANKS._replace(**fields)
    monkeypatch.setattr(_measured_systems, "CASCADED_TANKS", remote)
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
    with pytest.raises(ImportError, match=re.escape("pip install pooch tqdm")):
        fetch_cascaded_tanks(data_home=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def limit(monkeypatch, small_mat):
    """As many bytes as the small file and its archive have, and a few more."""
    n_bytes = 1000 + len(small_mat)
    monkeypatch.setattr(_remote_files, "MAX_BYTES", n_bytes)
    return n_bytes


def test_a_download_has_a_limit(tmp_path, served_tanks, server, small_mat, limit):
    server.serve("/tanks", bytes(limit + 1))
    with pytest.raises(ValueError, match=f"{server.address}.* more than {limit}"):
        fetch_cascaded_tanks(data_home=tmp_path)
    assert list(tmp_path.iterdir()) == []
    server.serve("/tanks", zip_member(small_mat))
    assert is_small(fetch_cascaded_tanks(data_home=tmp_path))


@pytest.mark.parametrize("by", ["download", "user"])
@pytest.mark.parametrize("packing", ["zip", "gzip"])
def test_decompression_has_a_limit(
    tmp_path, monkeypatch, served_tanks, server, limit, packing, by
):
    bomb = bytes(100 * limit)
    content, name = zip_member(bomb), "CascadedTanksFiles.zip"
    if packing == "gzip":
        content, name = gzip.compress(bomb), "dataBenchmark.mat.gz"
        set_remote(monkeypatch, packed=name)
    assert len(content) < limit
    server.serve("/tanks", content)
    if by == "user":
        put(tmp_path, name, content)
    with pytest.raises(ValueError, match=f"more than {limit} bytes, and was not unp"):
        fetch_cascaded_tanks(data_home=tmp_path)


DOWNLOAD = """
import sys
from skbayesnn.datasets import _measured_systems, fetch_cascaded_tanks
remote = _measured_systems.CASCADED_TANKS._replace(urls=(sys.argv[1],))
_measured_systems.CASCADED_TANKS = remote
fetch_cascaded_tanks(data_home=sys.argv[2])
"""


@pytest.mark.slow
def test_a_download_that_is_killed_leaves_nothing(
    tmp_path, no_home, server, downloader, small_mat
):
    server.serve("/tanks", zip_member(small_mat))
    server.stall()
    home = tmp_path / "home"
    command = [sys.executable, "-c", DOWNLOAD, f"{server.address}/tanks", str(home)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            assert server.half_sent.wait(60.0)
        finally:
            process.kill()
            server.go_on.set()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_has_left_is_removed(
    tmp_path, served_tanks, server, small_mat
):
    server.serve("/tanks", zip_member(small_mat))
    put(tmp_path, ".dataBenchmark.mat.0123456789abcdef.unfinished", b"half")
    put(tmp_path, "dataBenchmark.mat.lock", b"")
    put(tmp_path, ".mine.unfinished", b"a file of the user")
    assert is_small(fetch_cascaded_tanks(data_home=tmp_path))
    assert files_below(tmp_path) == {"dataBenchmark.mat", ".mine.unfinished"}


def test_a_download_beside_another_one(tmp_path, served_tanks, server, small_mat):
    server.serve("/tanks", zip_member(small_mat))
    path = put(tmp_path, "other", b"").with_name("dataBenchmark.mat")
    lock = _files.Lock(path)
    try:
        # the other one writes the file
        assert is_small(fetch_cascaded_tanks(data_home=tmp_path))
        assert not path.exists()
    finally:
        lock.release()
    assert is_small(fetch_cascaded_tanks(data_home=tmp_path))
    assert path.exists()
