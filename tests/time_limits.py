"""Time limits: what takes longer fails, and what hangs in compiled code ends."""

import contextlib
import faulthandler
import signal
import sys
import time

import pytest

# Seconds for a test, with the compilation of all kernels on a busy machine, and for a
# slow one: every fit ends.
LIMIT, SLOW_LIMIT = 300.0, 1800.0


class TookTooLong(BaseException):
    """No Exception: nothing on the way up takes it for an error of a fit."""


@contextlib.contextmanager
def time_limit(seconds):
    """Raise `TookTooLong` behind a block, or in it, that takes longer.

    For the main thread. Limits may be nested. A signal reaches Python code alone; what
    is compiled is let end, see `hard_limit`.
    """
    begin = time.monotonic()
    if not hasattr(signal, "setitimer"):  # Windows
        yield
        if time.monotonic() - begin > seconds:
            raise TookTooLong(f"took over {seconds} s")
        return

    def stop(*_):
        raise TookTooLong(f"took over {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        if left:
            passed = time.monotonic() - begin
            signal.setitimer(signal.ITIMER_REAL, max(left - passed, 1e-3))


@contextlib.contextmanager
def hard_limit(seconds):
    """End the process, with a traceback of all threads, if a block takes longer.

    Also while it is in compiled code, which no signal handler of Python interrupts.
    """
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def limited(item):
    """A test that takes too long fails; one that hangs in compiled code ends all."""
    seconds = SLOW_LIMIT if item.get_closest_marker("slow") else LIMIT
    with time_limit(seconds), hard_limit(2.0 * seconds):
        return (yield)
