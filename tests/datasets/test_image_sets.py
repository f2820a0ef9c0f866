"""The fetchers of images, and the downloads that are not zip archives."""

import gzip
import hashlib
import io
import re
import struct
import sys

import numpy as np
import pytest
from grids import first_by_default
from loopback import closed_address
from scipy.io import loadmat, savemat

from skbayesnn.datasets import _image_sets, fetch_caltech101_silhouettes, fetch_mnist

SILHOUETTES_NAME = "caltech101_silhouettes_28_split1.mat"
MNIST_NAMES = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
]


def assert_are_images(split, n_samples):
    assert set(split) >= {"data", "target"}
    assert split.data.shape == (n_samples, 784)
    assert split.data.dtype == np.uint8
    assert split.target.shape == (n_samples,)
    assert split.target.dtype == np.int64
    for array in (split.data, split.target):
        assert array.flags.c_contiguous
        assert array.flags.writeable


# The real files


@pytest.fixture
def mnist_folder(data_home):
    folder = data_home / "mnist"
    for name in MNIST_NAMES:
        if not ((folder / name).exists() or (folder / f"{name}.gz").exists()):
            pytest.skip(f"{folder} does not contain {name}")
    return folder


@pytest.fixture
def silhouettes_mat(data_home):
    path = data_home / "caltech101_silhouettes" / SILHOUETTES_NAME
    if not path.exists():
        pytest.skip(f"{path} does not exist")
    return loadmat(path)


def test_mnist(mnist_folder):
    mnist = fetch_mnist(download_if_missing=False)
    assert set(mnist) == {"data", "target", "test", "image_shape", "DESCR"}
    assert mnist.image_shape == (28, 28)
    assert "**Data Set Characteristics:**" in mnist.DESCR
    assert_are_images(mnist, 60000)
    assert_are_images(mnist.test, 10000)
    for split, counts in [
        (mnist, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]),
        (mnist.test, [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]),
    ]:
        np.testing.assert_array_equal(np.bincount(split.target), counts)
        assert split.data.min() == 0
        assert split.data.max() == 255
        assert 0.12 < np.mean(split.data > 127) < 0.14


def test_mnist_stands_upright(mnist_folder):
    data, target = fetch_mnist(return_X_y=True)
    one = data[target == 1].mean(axis=0).reshape(28, 28)
    seven = data[target == 7].mean(axis=0).reshape(28, 28)
    # a 1 is higher than it is wide; the bar of a 7 is at its top
    assert np.sum(one.max(axis=1) > 64) > 1.5 * np.sum(one.max(axis=0) > 64)
    assert np.ptp(np.flatnonzero(seven[9] > 64)) > np.ptp(
        np.flatnonzero(seven[20] > 64)
    )


def test_silhouettes(silhouettes_mat):
    silhouettes = fetch_caltech101_silhouettes(download_if_missing=False)
    assert set(silhouettes) == {
        "data",
        "target",
        "validation",
        "test",
        "image_shape",
        "target_names",
        "DESCR",
    }
    assert silhouettes.image_shape == (28, 28)
    assert "**Data Set Characteristics:**" in silhouettes.DESCR
    for split, prefix, n_samples, fewest, most in [
        (silhouettes, "train", 4100, 19, 100),
        (silhouettes.validation, "val", 2264, 6, 349),
        (silhouettes.test, "test", 2307, 6, 349),
    ]:
        assert_are_images(split, n_samples)
        np.testing.assert_array_equal(np.unique(split.data), [0, 1])
        classes, counts = np.unique(split.target, return_counts=True)
        np.testing.assert_array_equal(classes, np.arange(1, 102))
        assert (counts.min(), counts.max()) == (fewest, most)
        labels = silhouettes_mat[f"{prefix}_labels"][:, 0]
        np.testing.assert_array_equal(split.target, labels)


def test_silhouettes_stand_upright(silhouettes_mat):
    silhouettes = fetch_caltech101_silhouettes()
    for split, prefix in [
        (silhouettes, "train"),
        (silhouettes.validation, "val"),
        (silhouettes.test, "test"),
    ]:
        for row, raw in zip(split.data, silhouettes_mat[f"{prefix}_data"], strict=True):
            np.testing.assert_array_equal(
                row.reshape(28, 28), raw.reshape(28, 28).T, strict=True
            )

    # a pyramid grows from its top, where the background, 1, is, down to its base
    k = silhouettes.target_names.index("pyramid") + 1
    widths = np.mean(silhouettes.data[silhouettes.target == k] == 0, axis=0)
    widths = widths.reshape(28, 28).mean(axis=1)
    assert (np.diff(widths[5:22]) > 0.0).all()
    assert widths[5] < 0.3
    assert widths[21] > 0.6


def test_names_of_the_silhouettes(silhouettes_mat):
    names = fetch_caltech101_silhouettes().target_names
    assert all(type(name) is str for name in names)
    assert len(names) == len(set(names)) == 101
    assert names[:2] == ["Airplanes Side 2", "Faces 2"]
    assert names[-1] == "yin yang"


@pytest.mark.parametrize(
    "fetch", first_by_default([fetch_caltech101_silhouettes, fetch_mnist])
)
def test_fetched_as_pair(fetch, mnist_folder, silhouettes_mat):
    dataset = fetch()
    X, y = fetch(return_X_y=True)
    np.testing.assert_array_equal(X, dataset.data, strict=True)
    np.testing.assert_array_equal(y, dataset.target, strict=True)


# Small files in place of the real ones


def build_idx(array):
    header = struct.pack(f">{1 + array.ndim}i", 0x0800 + array.ndim, *array.shape)
    return header + array.tobytes()


@pytest.fixture(scope="module")
def small_idx():
    """The four files of a small MNIST."""
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(256, size=shape, dtype=np.uint8)
        for shape in [(5, 28, 28), (5,), (3, 28, 28), (3,)]
    ]
    return dict(zip(MNIST_NAMES, map(build_idx, arrays), strict=True))


@pytest.fixture(scope="module")
def small_mat():
    rng = np.random.default_rng(0)
    file = io.BytesIO()
    variables = {"classnames": np.array(["ant", "yin yang"], dtype=object)}
    for prefix, n in [("train", 5), ("val", 2), ("test", 3)]:
        variables[f"{prefix}_data"] = rng.integers(2, size=(n, 784), dtype=np.uint8)
        variables[f"{prefix}_labels"] = rng.integers(1, 3, (n, 1), dtype=np.uint8)
    savemat(file, variables)
    return file.getvalue()


@pytest.fixture
def small_mnist(monkeypatch, small_idx, no_home):
    """A function: make the small files the right ones, at these addresses."""

    def set_addresses(*addresses):
        def change(remote):
            return remote._replace(
                sha256=hashlib.sha256(small_idx[remote.filename]).hexdigest(),
                urls=tuple(f"{address}/{remote.packed}" for address in addresses),
            )

        changed = {
            name: tuple(map(change, remotes)) for name, remotes in original.items()
        }
        monkeypatch.setattr(_image_sets, "MNIST", changed)

    original = _image_sets.MNIST
    set_addresses(closed_address())
    return set_addresses


@pytest.fixture
def small_silhouettes(monkeypatch, small_mat, no_home):
    """A function: make the small file the right one, at this address."""
    original = _image_sets.CALTECH101_SILHOUETTES

    def set_address(address):
        changed = original._replace(
            sha256=hashlib.sha256(small_mat).hexdigest(),
            urls=(f"{address}/silhouettes",),
        )
        monkeypatch.setattr(_image_sets, "CALTECH101_SILHOUETTES", changed)

    set_address(closed_address())
    return set_address


def put(home, name, content):
    folder = home / ("caltech101_silhouettes" if name.endswith(".mat") else "mnist")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def files_below(home):
    return {path.name for path in home.rglob("*") if path.is_file()}


def everything_below(home):
    return {path.name for path in home.rglob("*")}


def serve_mnist(server, files, mirror=""):
    for name, content in files.items():
        server.serve(f"{mirror}/{name}.gz", gzip.compress(content))


def assert_is_small_mnist(mnist, files):
    for split, images, labels in [
        (mnist, MNIST_NAMES[0], MNIST_NAMES[1]),
        (mnist.test, MNIST_NAMES[2], MNIST_NAMES[3]),
    ]:
        assert_are_images(split, len(split.target))
        assert split.data.tobytes() == files[images][16:]
        np.testing.assert_array_equal(split.target, list(files[labels][8:]))


@pytest.mark.parametrize("compressed", [range(4), range(2), ()])
def test_mnist_files_may_be_compressed_or_not(
    tmp_path, small_mnist, small_idx, compressed
):
    for i, (name, content) in enumerate(small_idx.items()):
        if i in compressed:
            put(tmp_path, f"{name}.gz", gzip.compress(content))
        else:
            put(tmp_path, name, content)
    before = everything_below(tmp_path)
    assert_is_small_mnist(fetch_mnist(data_home=tmp_path), small_idx)
    assert everything_below(tmp_path) == before


def test_gzip_file_that_was_unpacked_on_the_way(tmp_path, small_mnist, small_idx):
    for name, content in small_idx.items():
        put(tmp_path, f"{name}.gz", content)
    assert_is_small_mnist(fetch_mnist(data_home=tmp_path), small_idx)


def test_data_home_of_the_environment(tmp_path, monkeypatch, small_silhouettes):
    monkeypatch.setenv("SKBAYESNN_DATA", str(tmp_path))
    path = tmp_path / "caltech101_silhouettes" / SILHOUETTES_NAME
    with pytest.raises(OSError, match=re.escape(f"{path} does not exist")):
        fetch_caltech101_silhouettes(download_if_missing=False)


def test_mnist_is_not_downloaded_unasked(tmp_path, small_mnist):
    missing = f"neither {tmp_path / 'mnist' / MNIST_NAMES[0]} nor"
    with pytest.raises(OSError, match=re.escape(missing)) as info:
        fetch_mnist(data_home=tmp_path, download_if_missing=False)
    assert "download_if_missing is False" in str(info.value)
    assert everything_below(tmp_path) == set()


@pytest.mark.parametrize(
    ("array", "cut"),
    [
        (np.zeros((5, 28, 27), dtype=np.uint8), 0),  # not the shape of an image
        (np.zeros((5, 784), dtype=np.uint8), 0),  # another number of dimensions
        (np.zeros((5, 28, 28), dtype=np.uint8), 1),  # fewer values than announced
    ],
)
def test_header_of_an_idx_file_is_checked(
    tmp_path, monkeypatch, small_mnist, small_idx, array, cut
):
    content = build_idx(array)
    changed = {**small_idx, MNIST_NAMES[0]: content[: len(content) - cut]}
    for name, content in changed.items():
        put(tmp_path, name, content)
        monkeypatch.setitem(small_idx, name, content)
    small_mnist(closed_address())
    with pytest.raises(ValueError, match=f"{MNIST_NAMES[0]} is not an idx file"):
        fetch_mnist(data_home=tmp_path)


# Downloads


def test_mnist_is_downloaded_once(
    tmp_path, small_mnist, small_idx, server, downloader, capsys
):
    small_mnist(server.address)
    serve_mnist(server, small_idx)
    assert_is_small_mnist(fetch_mnist(data_home=tmp_path), small_idx)
    assert "100%" in capsys.readouterr().err
    assert server.requested == [f"/{name}.gz" for name in MNIST_NAMES]
    assert everything_below(tmp_path) == {"mnist", *MNIST_NAMES}
    for name, content in small_idx.items():
        assert (tmp_path / "mnist" / name).read_bytes() == content

    assert_is_small_mnist(fetch_mnist(data_home=tmp_path), small_idx)
    assert len(server.requested) == 4


def test_silhouettes_are_downloaded_once(
    tmp_path, small_silhouettes, small_mat, server, downloader
):
    small_silhouettes(server.address)
    server.serve("/silhouettes", small_mat)
    silhouettes = fetch_caltech101_silhouettes(data_home=tmp_path)
    assert_are_images(silhouettes, 5)
    assert_are_images(silhouettes.validation, 2)
    assert_are_images(silhouettes.test, 3)
    assert silhouettes.target_names == ["ant", "yin yang"]
    assert files_below(tmp_path) == {SILHOUETTES_NAME}
    path = tmp_path / "caltech101_silhouettes" / SILHOUETTES_NAME
    assert path.read_bytes() == small_mat

    fetch_caltech101_silhouettes(data_home=tmp_path)
    assert server.requested == ["/silhouettes"]


DAMAGES = ["empty", "truncated", "flipped", "appended", "page", "other"]


def damage_gzip(content):
    whole = gzip.compress(content)
    flipped = bytearray(whole)
    flipped[-8] ^= 1  # in the checksum
    return {
        "empty": (b"", "SHA-256"),
        "truncated": (whole[:-20], "not a whole gzip file"),
        "flipped": (bytes(flipped), "not a whole gzip file"),
        "appended": (whole + b"more", "not a whole gzip file"),
        "page": (b"<html>Sign in</html>", "SHA-256"),
        "other": (gzip.compress(b"other"), "SHA-256"),
    }


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_gzip_file_of_the_user_is_named_and_kept(
    tmp_path, small_mnist, small_idx, damage
):
    content, message = damage_gzip(small_idx[MNIST_NAMES[0]])[damage]
    path = put(tmp_path, f"{MNIST_NAMES[0]}.gz", content)
    with pytest.raises(ValueError, match=message) as info:
        fetch_mnist(data_home=tmp_path)
    assert str(path) in str(info.value)
    assert "replace it" in str(info.value)
    assert path.read_bytes() == content


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_gzip_download_leaves_nothing(
    tmp_path, small_mnist, small_idx, server, downloader, damage
):
    small_mnist(server.address)
    serve_mnist(server, small_idx)
    content, message = damage_gzip(small_idx[MNIST_NAMES[0]])[damage]
    server.serve(f"/{MNIST_NAMES[0]}.gz", content)
    with pytest.raises(ValueError, match=message) as info:
        fetch_mnist(data_home=tmp_path)
    assert f"{server.address}/{MNIST_NAMES[0]}.gz" in str(info.value)
    assert len(server.requested) == 1
    assert everything_below(tmp_path) == set()

    # and the way is free for another attempt
    serve_mnist(server, small_idx)
    assert_is_small_mnist(fetch_mnist(data_home=tmp_path), small_idx)


@pytest.mark.parametrize("damage", ["truncated", "other"])
def test_damaged_plain_download_leaves_nothing(
    tmp_path, small_silhouettes, small_mat, server, downloader, damage
):
    small_silhouettes(server.address)
    body = small_mat[:-5] if damage == "truncated" else b"other"
    server.serve("/silhouettes", body)
    with pytest.raises(ValueError, match="not the expected") as info:
        fetch_caltech101_silhouettes(data_home=tmp_path)
    path = tmp_path / "caltech101_silhouettes" / SILHOUETTES_NAME
    for part in (
        "nothing was kept",
        str(path),
        _image_sets.CALTECH101_SILHOUETTES.page,
    ):
        assert part in str(info.value)
    assert everything_below(tmp_path) == set()


def test_truncated_transfer_leaves_nothing(
    tmp_path, small_silhouettes, small_mat, server, downloader
):
    small_silhouettes(server.address)
    server.serve("/silhouettes", small_mat[:-20], claimed_length=len(small_mat))
    with pytest.raises(OSError, match="2 attempts"):
        fetch_caltech101_silhouettes(data_home=tmp_path, n_retries=1, delay=0.0)
    assert len(server.requested) == 2
    assert everything_below(tmp_path) == set()


def test_earlier_files_are_kept_when_a_later_one_fails(
    tmp_path, small_mnist, small_idx, server, downloader
):
    small_mnist(server.address)
    serve_mnist(server, small_idx)
    del server.bodies[f"/{MNIST_NAMES[2]}.gz"]
    with pytest.raises(OSError, match="404"):
        fetch_mnist(data_home=tmp_path, n_retries=0)
    assert files_below(tmp_path) == set(MNIST_NAMES[:2])

    serve_mnist(server, small_idx)
    assert_is_small_mnist(fetch_mnist(data_home=tmp_path), small_idx)
    assert len(server.requested) == 5


# Two addresses


@pytest.fixture
def delays(monkeypatch):
    """The delays between the attempts, which are not waited for."""
    delays = []
    monkeypatch.setattr("time.sleep", delays.append)
    return delays


def test_second_address_follows_a_refused_one_at_once(
    tmp_path, small_mnist, small_idx, server, downloader, delays
):
    small_mnist(closed_address(), server.address)
    serve_mnist(server, small_idx)
    assert_is_small_mnist(fetch_mnist(data_home=tmp_path), small_idx)
    assert len(server.requested) == 4
    assert delays == []


@pytest.mark.parametrize("damage", DAMAGES)
def test_second_address_follows_a_damaged_download(
    tmp_path, small_mnist, small_idx, server, downloader, damage
):
    small_mnist(f"{server.address}/first", f"{server.address}/second")
    serve_mnist(server, small_idx, "/first")
    serve_mnist(server, small_idx, "/second")
    path = f"/first/{MNIST_NAMES[0]}.gz"
    server.serve(path, damage_gzip(small_idx[MNIST_NAMES[0]])[damage][0])
    assert_is_small_mnist(fetch_mnist(data_home=tmp_path), small_idx)
    assert server.requested == [
        path,
        f"/second/{MNIST_NAMES[0]}.gz",
        *(f"/first/{name}.gz" for name in MNIST_NAMES[1:]),
    ]
    assert files_below(tmp_path) == set(MNIST_NAMES)


def test_no_address_answers(tmp_path, small_mnist, server, downloader, delays):
    closed = closed_address()
    small_mnist(closed, server.address)
    with pytest.raises(OSError, match="3 attempts") as info:
        fetch_mnist(data_home=tmp_path, n_retries=2, delay=0.25)
    for part in (
        f"{closed}/{MNIST_NAMES[0]}.gz",
        f"{server.address}/{MNIST_NAMES[0]}.gz",
        "ConnectionError",
        "404",
        "Check the network",
        str(tmp_path / "mnist" / f"{MNIST_NAMES[0]}.gz"),
    ):
        assert part in str(info.value)
    assert delays == [0.25, 0.25]
    assert len(server.requested) == 3
    assert everything_below(tmp_path) == set()


def test_damaged_download_is_not_repeated(
    tmp_path, small_mnist, small_idx, server, downloader, delays
):
    small_mnist(server.address, closed_address())
    server.serve(f"/{MNIST_NAMES[0]}.gz", gzip.compress(b"other"))
    with pytest.raises(OSError, match="3 attempts") as info:
        fetch_mnist(data_home=tmp_path, n_retries=2)
    assert "SHA-256" in str(info.value)
    assert len(server.requested) == 1
    assert everything_below(tmp_path) == set()


def test_all_addresses_send_damaged_files(
    tmp_path, small_mnist, server, downloader, delays
):
    small_mnist(f"{server.address}/first", f"{server.address}/second")
    for mirror in ("first", "second"):
        server.serve(f"/{mirror}/{MNIST_NAMES[0]}.gz", gzip.compress(b"other"))
    with pytest.raises(ValueError, match="SHA-256"):
        fetch_mnist(data_home=tmp_path)
    assert len(server.requested) == 2
    assert delays == []
    assert everything_below(tmp_path) == set()


# Requirements


@pytest.mark.parametrize("package", ["pooch", "tqdm"])
@pytest.mark.parametrize("fetch", [fetch_mnist, fetch_caltech101_silhouettes])
def test_missing_extra_is_named(
    tmp_path, small_mnist, small_silhouettes, monkeypatch, fetch, package
):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=re.escape("pip install pooch tqdm")):
        fetch(data_home=tmp_path)
    assert everything_below(tmp_path) == set()


@pytest.mark.parametrize("fetch", [fetch_mnist, fetch_caltech101_silhouettes])
@pytest.mark.parametrize("params", [{"n_retries": -1}, {"delay": -1.0}])
def test_fetchers_reject_wrong_parameters(tmp_path, fetch, params):
    with pytest.raises(ValueError, match="must be >= 0"):
        fetch(data_home=tmp_path, **params)
