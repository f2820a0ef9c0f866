"""Find, check and download the one file that holds a benchmark.

A file is read as a whole and its bytes are checked before anything else sees them, so
that a damaged or a partial file never counts as data. What the user put somewhere is
only read, never changed.
"""

import hashlib
import os
import tempfile
import time
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

from sklearn.datasets import get_data_home

ENVIRONMENT_VARIABLE = "SKBAYESNN_DATA"


class RemoteFile(NamedTuple):
    """A data file and the archive in which it is distributed.

    Parameters
    ----------
    title : str
        Name of the data set in messages.

    folder : str
        Folder below the data home.

    filename : str
        Name of the data file, in that folder and in the archive.

    sha256 : str
        SHA-256 of the data file, in hexadecimal digits. The archive has no known one.

    archive : str
        Name of the zip archive.

    url : str or None
        Address of the archive. None if a program cannot download it.

    page : str
        Where a person finds the archive.
    """

    title: str
    folder: str
    filename: str
    sha256: str
    archive: str
    url: str | None
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
        Number of further attempts after a failed one.

    delay : float
        Time between two attempts, in s.

    Returns
    -------
    content : bytes
        The content, whose SHA-256 is right.

    Raises
    ------
    OSError
        If the file is missing and cannot or may not be downloaded.

    ValueError
        If a file is not the expected one.

    ImportError
        If a download needs a package that is not installed.
    """
    folder = _resolve_data_home(data_home) / remote.folder
    path, archive = folder / remote.filename, folder / remote.archive
    remedy = "Remove or replace it, then try again."
    if path.exists():
        return _check_content(path.read_bytes(), remote, path, remedy)
    if archive.exists():
        return _read_member(archive, remote, archive, remedy)
    if not download_if_missing:
        raise OSError(
            f"{remote.title}: neither {path} nor {archive} exists, and "
            "download_if_missing is False."
        )
    if remote.url is None:
        raise OSError(
            f"{remote.title}: neither {path} nor {archive} exists, and the data cannot "
            f"be downloaded by a program: {remote.archive} lies behind a page of "
            f"Google Drive. {_advise(archive, remote)}"
        )
    return _download(remote, path, n_retries, delay)


def _resolve_data_home(data_home):
    data_home = data_home or os.environ.get(ENVIRONMENT_VARIABLE)
    if data_home:
        return Path(data_home).expanduser()
    return Path(get_data_home()) / "skbayesnn"


def _advise(archive, remote):
    return (
        f"Get {remote.archive} with a browser from {remote.page} and put it, as it is, "
        f"at {archive}."
    )


def _check_content(content, remote, source, remedy):
    """Return ``content`` if its SHA-256 is right."""
    found = hashlib.sha256(content).hexdigest()
    if found != remote.sha256:
        raise ValueError(
            f"{remote.title}: {source} is not the expected {remote.filename}. Its "
            f"SHA-256 is {found} ({len(content)} bytes), expected {remote.sha256}. It "
            f"may be truncated or another version. {remedy}"
        )
    return content


def _read_member(archive, remote, source, remedy):
    """Return the checked data file out of a zip archive.

    In an error, ``source`` says where the archive comes from and ``remedy`` what to do.
    """
    try:
        with zipfile.ZipFile(archive) as members:
            names = [
                name
                for name in members.namelist()
                if name.rpartition("/")[2] == remote.filename
            ]
            content = members.read(names[0]) if names else None
    # damage inside a member can surface as any of the last three
    except (zipfile.BadZipFile, EOFError, RuntimeError, zlib.error) as error:
        raise ValueError(
            f"{remote.title}: {source} is not a whole zip archive ({error}). {remedy}"
        ) from error
    if content is None:
        raise ValueError(
            f"{remote.title}: {source} contains no {remote.filename}. {remedy}"
        )
    return _check_content(content, remote, f"{remote.filename} in {source}", remedy)


def _download(remote, path, n_retries, delay):
    """Download the archive, put the data file at ``path`` and return its content."""
    _import_downloader()  # or fail before a folder is made
    path.parent.mkdir(parents=True, exist_ok=True)
    remedy = f"Try again later. Or: {_advise(path.parent / remote.archive, remote)}"
    # a folder beside the final name: os.replace is atomic within a file system only
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="download-") as temporary:
        archive = Path(temporary) / remote.archive
        _retrieve(remote, archive, n_retries, delay, remedy)
        source = f"the download from {remote.url}, of which nothing was kept,"
        content = _read_member(archive, remote, source, remedy)
        extracted = Path(temporary) / remote.filename
        extracted.write_bytes(content)
        os.replace(extracted, path)
    return content


def _retrieve(remote, archive, n_retries, delay, remedy):
    """Download the archive with a progress bar, if need be in several attempts."""
    pooch, requests = _import_downloader()
    download = pooch.HTTPDownloader(progressbar=True)
    for attempt in range(n_retries + 1):
        try:
            return download(remote.url, str(archive), None)
        except requests.RequestException as error:
            if attempt == n_retries:
                raise OSError(
                    f"{remote.title}: {attempt + 1} attempts to download "
                    f"{remote.archive} from {remote.url} failed, lastly with "
                    f"{error!r}. Check the network. {remedy}"
                ) from error
            time.sleep(delay)


def _import_downloader():
    """Return pooch and requests, which comes with it."""
    try:
        import pooch
        import requests
        import tqdm  # noqa: F401 (pooch draws its progress bar with it)
    except ImportError as error:
        raise ImportError(
            "Downloading a data set requires pooch and tqdm: "
            "pip install skbayesnn[data]"
        ) from error
    return pooch, requests
