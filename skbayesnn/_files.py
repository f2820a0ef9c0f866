"""A file that one fit at a time writes, whole or not at all."""

import contextlib
import os
import secrets

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None
    import msvcrt

_UNFINISHED = ".unfinished"
_LOCK = ".lock"
# Owners that give the right back just while it is taken: more are not by chance.
_ATTEMPTS = 1000


class Lock:
    """The right to write a file, until `release` or the end of the process.

    The operating system holds it: a process that is killed leaves no right behind, at
    most an empty file beside the one that it is about.

    Parameters
    ----------
    path : Path
        The file that is to be written.

    Raises
    ------
    BlockingIOError
        If another fit, of this process or another one, holds it.
    OSError
        If its folder cannot be written to.
    """

    def __init__(self, path):
        self._path = path.with_name(path.name + _LOCK)
        self._file = None
        for _ in range(_ATTEMPTS):
            self._file = self._take()
            if self._file is not None:
                return
        raise BlockingIOError(f"{self._path} is taken again and again")

    def _take(self):
        """The descriptor of the lock; None if its last owner has just removed it."""
        # no link is followed: what it leads to is not ours
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        file = os.open(self._path, flags, 0o666)
        try:
            _lock(file)
            there = os.stat(self._path, follow_symlinks=False)
            if os.path.samestat(os.fstat(file), there):
                return file
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        return None

    def release(self):
        """Give the right back; may be called again."""
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        os.close(self._file)
        self._file = None


def _lock(file):
    """Lock an open file, or raise `BlockingIOError`."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    try:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    except OSError as error:
        raise BlockingIOError(*error.args) from error


def replace(path, write):
    """Write a file anew; before and after, and if it fails, there is a whole one.

    Parameters
    ----------
    path : Path
    write : callable
        ``write(file)`` is given an open binary file.
    """
    # a name that nobody has: neither a user's file nor a link that was put there
    name = f".{path.name}.{secrets.token_hex(8)}{_UNFINISHED}"
    unfinished = path.with_name(name)
    try:
        with open(unfinished, "xb") as file:
            write(file)
            file.flush()
            # or a crash of the machine could leave the new name without content
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def remove_unfinished(path):
    """Remove what killed processes have left of a file.

    For those alone who hold its lock: others may be writing.
    """
    prefix = f".{path.name}."
    for other in path.parent.iterdir():
        if other.name.startswith(prefix) and other.name.endswith(_UNFINISHED):
            other.unlink(missing_ok=True)
