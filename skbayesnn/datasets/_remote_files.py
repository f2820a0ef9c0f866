"""Find, check and download a file of a benchmark.

A file is read as a whole and its checksum is verified before anything else uses it, so
that a damaged or partial file is never taken for data. Files that the user provides are
only read, never changed.
"""

import gzip
import hashlib
import io
import os
import time
import zipfile
import zlib
from numbers import Integral, Real
from pathlib import Path
from typing import NamedTuple

from sklearn.datasets import get_data_home
from sklearn.utils import check_scalar

from .. import _files

ENVIRONMENT_VARIABLE = "SKBAYESNN_DATA"
GZIP_MAGIC = b"\x1f\x8b"
# Bytes of a file, packed or not: the largest data set has 47 million.
MAX_BYTES = 2**28


class RemoteFile(NamedTuple):
    """A data file and how it is distributed.

    Parameters
    ----------
    title : str
        Name of the data set in messages.

    folder : str
        Folder below the data home.

    filename : str
        Name of the data file, in that folder and in a zip archive.

    sha256 : str
        SHA-256 of the data file, in hexadecimal digits. The archive has no known one:
        the same file can be packed in many ways.

    packed : str
        Name of the file that is distributed: a zip archive (``.zip``), a gzip file
        (``.gz``) or, if it is ``filename``, the data file as it is.

    urls : tuple of str
        Addresses of that file, in the order in which they are tried. Empty if the file
        can only be downloaded with a browser.

    page : str
        Web page on which a person finds it.
    """

    title: str
    folder: str
    filename: str
    sha256: str
    packed: str
    urls: tuple
    page: str


def load_file(remote, *, data_home, download_if_missing, n_retries, delay):
    """Return the checked content of a data file.

    Parameters
    ----------
    remote : RemoteFile
        The file.

    data_home : str, path-like or None
        Folder of the data sets. None stands for the environment variable
        ``SKBAYESNN_DATA`` or, if that is not set, for the folder ``skbayesnn`` in
        scikit-learn's data home.

    download_if_missing : bool
        Whether to download a missing file.

    n_retries : int
        Number of retries after a failed attempt, not negative. Each attempt tries all
        addresses.

    delay : float
        Time between two attempts, in s, not negative.

    Returns
    -------
    content : bytes
        The content, whose SHA-256 has been verified.

    Raises
    ------
    OSError
        If the file is missing and cannot or may not be downloaded.

    ValueError
        If a file is not the expected one, or a parameter is out of range.

    ImportError
        If a download needs a package that is not installed.
    """
    check_scalar(n_retries, "n_retries", Integral, min_val=0)
    check_scalar(delay, "delay", Real, min_val=0.0)
    folder = _resolve_data_home(data_home) / remote.folder
    path, packed = folder / remote.filename, folder / remote.packed
    remedy = "Remove or replace it, then try again."
    if path.exists():
        return _check_content(path.read_bytes(), remote, path, remedy)
    if packed.exists():
        return _unpack(packed.read_bytes(), remote, packed, remedy)

    missing = f"neither {path} nor {packed} exists"
    if packed == path:
        missing = f"{path} does not exist"
    if not download_if_missing:
        raise OSError(f"{remote.title}: {missing}, and download_if_missing is False.")
    if not remote.urls:
        raise OSError(
            f"{remote.title}: {missing}, and the data cannot be downloaded by a "
            f"program: {remote.packed} lies behind a page of Google Drive. "
            f"{_advise(packed, remote)}"
        )
    return _download(remote, path, n_retries, delay)


def _resolve_data_home(data_home):
    data_home = data_home or os.environ.get(ENVIRONMENT_VARIABLE)
    if data_home:
        return Path(data_home).expanduser()
    return Path(get_data_home()) / "skbayesnn"


def _advise(packed, remote):
    return (
        f"Get {remote.packed} with a browser from {remote.page} and put it, as it is, "
        f"at {packed}."
    )


def _check_content(content, remote, source, remedy):
    """Return ``content`` if its SHA-256 is the expected one."""
    found = hashlib.sha256(content).hexdigest()
    if found != remote.sha256:
        raise ValueError(
            f"{remote.title}: {source} is not the expected {remote.filename}. Its "
            f"SHA-256 is {found} ({len(content)} bytes), expected {remote.sha256}. It "
            f"may be truncated or another version. {remedy}"
        )
    return content


def _unpack(packed, remote, source, remedy):
    """Return the checked data file from the bytes of the file that is distributed.

    Error messages contain ``source``, where those come from, and ``remedy``, what the
    user can do.
    """
    if remote.packed == remote.filename:
        return _check_content(packed, remote, source, remedy)
    is_gzip = remote.packed.endswith(".gz")
    try:
        if is_gzip:
            content = _decompress(packed)
        else:
            content = _read_member(packed, remote.filename)
    # damage inside a zip member can surface as any of the last three
    except (
        gzip.BadGzipFile,
        zipfile.BadZipFile,
        EOFError,
        RuntimeError,
        zlib.error,
    ) as error:
        raise ValueError(
            f"{remote.title}: {source} is not a whole "
            f"{'gzip file' if is_gzip else 'zip archive'} ({error}). {remedy}"
        ) from error
    if content is None:
        raise ValueError(
            f"{remote.title}: {source} contains no {remote.filename}. {remedy}"
        )
    if len(content) > MAX_BYTES:
        raise ValueError(
            f"{remote.title}: {remote.filename} in {source} has more than "
            f"{MAX_BYTES} bytes, and was not unpacked any further. {remedy}"
        )
    return _check_content(content, remote, f"{remote.filename} in {source}", remedy)


def _decompress(packed):
    """Return the content of a gzip file, at most one byte more than is allowed."""
    # browsers decompress it, as do servers that announce gzip as an encoding
    if not packed.startswith(GZIP_MAGIC):
        return packed
    with gzip.open(io.BytesIO(packed)) as file:
        return file.read(MAX_BYTES + 1)


def _read_member(archive, filename):
    """Return the content of a file in a zip archive, or None if it is not there."""
    with zipfile.ZipFile(io.BytesIO(archive)) as members:
        for name in members.namelist():
            if name.rpartition("/")[2] == filename:
                with members.open(name) as file:
                    return file.read(MAX_BYTES + 1)
    return None


def _download(remote, path, n_retries, delay):
    """Download the data file, put it at ``path`` and return its content.

    It is checked in memory: a download that is killed leaves nothing behind.
    """
    remedy = f"Try again later. Or: {_advise(path.parent / remote.packed, remote)}"
    content = _retrieve(remote, n_retries, delay, remedy)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        lock = _files.Lock(path)
    except BlockingIOError:
        # another process writes the same content
        return content
    try:
        _files.replace(path, lambda file: file.write(content))
        # of a process that was killed in between
        _files.remove_unfinished(path)
    finally:
        lock.release()
    return content


class _LimitedFile(io.BytesIO):
    """A file in memory that refuses to grow beyond what any data set needs."""

    def __init__(self, source):
        super().__init__()
        self._source = source

    def write(self, part):
        if self.tell() + len(part) > MAX_BYTES:
            raise ValueError(
                f"{self._source} has more than {MAX_BYTES} bytes, and was ended."
            )
        return super().write(part)


def _retrieve(remote, n_retries, delay, remedy):
    """Return the checked data file from the first address that delivers it.

    An address that cannot be reached is tried again after the others. One that sent
    damaged content, or too much of it, is not: it would send the same again.
    """
    pooch, requests = _import_downloader()
    download = pooch.HTTPDownloader(progressbar=True)
    # as text: keeping the exception would keep its connection open
    urls, failures = list(remote.urls), {}
    for attempt in range(n_retries + 1):
        if attempt:
            time.sleep(delay)
        for url in urls.copy():
            source = f"the download from {url}, of which nothing was kept,"
            packed = _LimitedFile(source)
            try:
                download(url, packed, None)
                return _unpack(packed.getvalue(), remote, source, remedy)
            except requests.RequestException as error:
                failures[url] = repr(error)
            except ValueError as error:
                urls.remove(url)
                if not urls:
                    raise
                failures[url] = repr(error)
    raise OSError(
        f"{remote.title}: {n_retries + 1} attempts to download {remote.packed} from "
        f"{' and '.join(remote.urls)} failed, lastly with "
        f"{' and '.join(failures[url] for url in remote.urls)}. Check the network. "
        f"{remedy}"
    )


def _import_downloader():
    """Return pooch, and requests, on which it depends."""
    try:
        import pooch
        import requests
        import tqdm  # noqa: F401 (pooch draws its progress bar with it)
    except ImportError as error:
        raise ImportError(
            "Downloading a data set requires pooch and tqdm: pip install pooch tqdm"
        ) from error
    return pooch, requests
