"""The fetcher of binary sets for density estimation, by name."""

import hashlib
import re

import numpy as np
import pytest
from loopback import closed_address

from skbayesnn.datasets import _binary_sets, fetch_binary_benchmark

PARTS = ["train", "valid", "test"]

# features, rows of the training, validation and test set, as published
SIZES = {
    "accidents": (111, 12758, 1700, 2551),
    "baudio": (100, 15000, 2000, 3000),
    "bbc": (1058, 1670, 225, 330),
    "bnetflix": (100, 15000, 2000, 3000),
    "dna": (180, 1600, 400, 1186),
    "jester": (100, 9000, 1000, 4116),
    "moviereview": (1001, 1600, 150, 250),
    "mushrooms": (112, 2000, 500, 5624),
    "nips": (500, 400, 100, 1240),
    "nltcs": (16, 16181, 2157, 3236),
    "plants": (69, 17412, 2321, 3482),
    "pumsb_star": (163, 12262, 1635, 2452),
    "voting": (1359, 1214, 200, 350),
}


def assert_are_rows(data, shape):
    assert data.shape == shape
    assert data.dtype == np.uint8
    assert data.flags.c_contiguous
    assert data.flags.writeable
    np.testing.assert_array_equal(np.unique(data), [0, 1])


# The real files


@pytest.mark.parametrize("name", SIZES)
def test_real_set(data_home, name):
    files = [data_home / "binary" / f"{name}.{part}.data" for part in PARTS]
    for file in files:
        if not file.exists():
            pytest.skip(f"{file} does not exist")
    dataset = fetch_binary_benchmark(name, download_if_missing=False)
    assert set(dataset) == {"data", "validation", "test", "DESCR"}
    assert f":{name}: " in dataset.DESCR
    n_features, *n_rows = SIZES[name]
    splits = (dataset, dataset.validation, dataset.test)
    for split, n, file in zip(splits, n_rows, files, strict=True):
        assert_are_rows(split.data, (n, n_features))
        expected = np.loadtxt(file, dtype=np.uint8, delimiter=",", max_rows=50)
        np.testing.assert_array_equal(split.data[:50], expected)
    arrays = fetch_binary_benchmark(name, return_splits=True)
    for rows, split in zip(arrays, splits, strict=True):
        np.testing.assert_array_equal(rows, split.data, strict=True)


def test_documented_sets():
    documented = dict(
        re.findall(r"^ *``(\w+)`` +(.*)$", fetch_binary_benchmark.__doc__, re.MULTILINE)
    )
    assert {
        name: tuple(map(int, sizes.split())) for name, sizes in documented.items()
    } == SIZES
    assert set(_binary_sets.CHECKSUMS) == set(SIZES)
    checksums = [
        sha256 for files in _binary_sets.CHECKSUMS.values() for sha256 in files
    ]
    assert len(set(checksums)) == 3 * len(SIZES)
    assert all(re.fullmatch("[0-9a-f]{64}", one) for one in checksums)


@pytest.mark.parametrize("name", ["kdd", "DNA", "", None, ["dna"]])
def test_unknown_name_lists_the_known_ones(name):
    message = f"name must be one of {', '.join(map(repr, SIZES))}; got {name!r}."
    with pytest.raises(ValueError, match=re.escape(message)):
        fetch_binary_benchmark(name)


# Small files in place of the real ones


ROWS = {
    part: np.random.default_rng(0).integers(2, size=(n, 5), dtype=np.uint8)
    for part, n in zip(PARTS, [7, 3, 4], strict=True)
}


def to_bytes(rows):
    return "".join(",".join(map(str, row)) + "\n" for row in rows).encode()


@pytest.fixture
def small(monkeypatch, no_home):
    """A function: make these files those of the set "dna", at these addresses."""

    def set_files(files, *addresses):
        checksums = tuple(hashlib.sha256(files[part]).hexdigest() for part in PARTS)
        monkeypatch.setitem(_binary_sets.CHECKSUMS, "dna", checksums)
        addresses = addresses or (closed_address(),)
        folders = tuple(f"{address}/" for address in addresses)
        monkeypatch.setattr(_binary_sets, "ADDRESSES", folders)
        return files

    return set_files


def put(home, files):
    folder = home / "binary"
    folder.mkdir()
    for part, content in files.items():
        (folder / f"dna.{part}.data").write_bytes(content)


def small_files():
    return {part: to_bytes(rows) for part, rows in ROWS.items()}


def test_files_in_a_folder(tmp_path, small):
    put(tmp_path, small(small_files()))
    dataset = fetch_binary_benchmark("dna", data_home=tmp_path)
    for split, part in [
        (dataset, "train"),
        (dataset.validation, "valid"),
        (dataset.test, "test"),
    ]:
        np.testing.assert_array_equal(split.data, ROWS[part], strict=True)
        assert split.data.flags.writeable


def test_sets_are_downloaded_once(tmp_path, small, server, downloader):
    files = small(small_files(), closed_address(), server.address)
    for part, content in files.items():
        server.serve(f"/dna/dna.{part}.data", content)
    fetch = {"data_home": tmp_path, "return_splits": True, "n_retries": 0}
    for _ in range(2):
        for rows, part in zip(
            fetch_binary_benchmark("dna", **fetch), PARTS, strict=True
        ):
            np.testing.assert_array_equal(rows, ROWS[part], strict=True)
    assert server.requested == [f"/dna/dna.{part}.data" for part in PARTS]
    for part, content in files.items():
        path = tmp_path / "binary" / f"dna.{part}.data"
        assert path.read_bytes() == content


def test_sets_are_not_downloaded_unasked(tmp_path, small):
    files = small(small_files())
    put(tmp_path, {"train": files["train"]})
    missing = f"{tmp_path / 'binary' / 'dna.valid.data'} does not exist"
    with pytest.raises(OSError, match=re.escape(missing)):
        fetch_binary_benchmark("dna", data_home=tmp_path, download_if_missing=False)


def test_another_file_is_named(tmp_path, small):
    files = small(small_files())
    put(tmp_path, {**files, "test": files["valid"]})
    with pytest.raises(ValueError, match="not the expected dna.test.data") as info:
        fetch_binary_benchmark("dna", data_home=tmp_path)
    assert _binary_sets.PAGE not in str(info.value)  # the file is there: no download
    assert str(tmp_path / "binary" / "dna.test.data") in str(info.value)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"0,1,0",  # no line ends
        b"0,1,0\n1,0\n",
        b"0,1,0\n1,0,2\n",
        b"0,1,0\n1,0,/\n",
        b"0,1,0\n1;0,1\n",
        b"0,1,0\n1,0,1,",
        b"0,1,0,\n1,0,1,\n",
        b"0 1 0\n1 0 1\n",
    ],
)
def test_format_is_checked(tmp_path, small, content):
    put(tmp_path, small({**small_files(), "valid": content}))
    with pytest.raises(ValueError, match="dna.valid.data is not a table of 0 and 1"):
        fetch_binary_benchmark("dna", data_home=tmp_path)


def test_numbers_of_features_are_compared(tmp_path, small):
    narrow = to_bytes(ROWS["test"][:, :3])
    put(tmp_path, small({**small_files(), "test": narrow}))
    with pytest.raises(ValueError, match="different numbers of features: 3, 5"):
        fetch_binary_benchmark("dna", data_home=tmp_path)


def test_one_feature(tmp_path, small):
    column = {part: rows[:, :1] for part, rows in ROWS.items()}
    put(tmp_path, small({part: to_bytes(rows) for part, rows in column.items()}))
    for rows, part in zip(
        fetch_binary_benchmark("dna", data_home=tmp_path, return_splits=True),
        PARTS,
        strict=True,
    ):
        np.testing.assert_array_equal(rows, column[part], strict=True)
