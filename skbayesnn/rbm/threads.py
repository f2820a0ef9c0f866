"""Threads that share a product, and what follows it, by columns.

No sum depends on the thread that computes it, so the number of threads does not change
any result. The number is that of the innermost `using`; threads of another pool, such
as joblib's, start with one.

An update of a mini-batch takes a millisecond or two, in four parts. To wake a thread
takes some ten microseconds, on a virtual machine fifty: between the parts, threads wait
in a loop, and sleep only if nothing comes.
"""

import os
import time
from contextlib import contextmanager
from contextvars import ContextVar
from queue import SimpleQueue
from threading import Lock, Thread

import numpy as np

from .kernels.signals import announce_and_await, await_number

# Least number of additions that justify another thread (measured): handing a part over
# takes 15 microseconds, and what follows is faster where a thread has its own part.
_MIN_WORK = 400_000
# Turns of a loop that waits, of some ten nanoseconds, before a thread sleeps: what lies
# between two products of an update is shorter. The second number lets the thread that
# hands over leave Python before the other one enters it: it would sleep for the lock.
_TURNS = 20_000
_MORE_TURNS = 800
# Seconds from one look to the next at a part that takes longer.
_SLEEP = 1e-4
# Places of the numbers of the parts handed over and done: a cache line each.
_GIVEN, _DONE = 0, 8

_number = ContextVar("number of threads", default=1)
_idle = []
# a child process has no threads but the one that made it; Windows cannot fork
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)


@contextmanager
def using(n_threads):
    """Let large products inside this context use ``n_threads`` threads."""
    token = _number.set(n_threads)
    try:
        yield
    finally:
        _number.reset(token)


def share_out(call, n, work, grain=1):
    """``call(first, last)`` for the parts of range(n), one per thread.

    ``work`` is the total number of additions: small products stay on one thread. Parts
    begin at multiples of ``grain``.
    """
    n_grains = -(-n // grain)
    n_threads = min(_number.get(), n_grains, 1 + work // _MIN_WORK)
    if n_threads < 2:
        call(0, n)
        return
    edges = [grain * (n_grains * k // n_threads) for k in range(n_threads)] + [n]
    helpers = [_helper() for _ in range(1, n_threads)]
    for helper, first, last in zip(helpers, edges[1:-1], edges[2:], strict=True):
        helper.begin(call, first, last)
    try:
        call(edges[0], edges[1])
    finally:
        # no thread still writes when an interrupt leaves this function
        errors = [helper.end() for helper in helpers]
        _idle.extend(helpers)
    for error in errors:
        if error is not None:
            raise error


def _helper():
    try:
        return _idle.pop()
    except IndexError:
        return _Helper()


class _Helper:
    """A thread that computes a part at a time; belongs to one caller between them."""

    def __init__(self):
        self._numbers = np.zeros(16, dtype=np.int64)
        self._part = self._error = None
        self._lock, self._sleeps, self._wake = Lock(), False, SimpleQueue()
        Thread(target=self._run, name="skbayesnn", daemon=True).start()

    def begin(self, *part):
        """Hand over a part: the function, and its two arguments."""
        self._part = part
        with self._lock:
            self._numbers[_GIVEN] += 1
            sleeps, self._sleeps = self._sleeps, False
        if sleeps:
            self._wake.put(None)

    def end(self):
        """Wait for the part; its error, or None."""
        given, interrupt = self._numbers[_GIVEN], None
        # bound: the time of the part, which the helper computes whatever happens
        while True:
            try:
                if await_number(self._numbers, _DONE, given, _TURNS):
                    break
                time.sleep(_SLEEP)
            except KeyboardInterrupt as error:
                interrupt = error
        error, self._error = self._error, None
        return interrupt or error

    def _run(self):
        numbers, done = self._numbers, 0
        # bound: the time of the process, which ends with its other threads
        while True:
            if not announce_and_await(
                numbers, _DONE, done, _GIVEN, _TURNS, _MORE_TURNS
            ):
                self._sleep_until(done + 1)
            function, first, last = self._part
            try:
                function(first, last)
            except BaseException as error:
                self._error = error
            # what was computed may be freed while this thread waits
            del function
            self._part = None
            done += 1

    def _sleep_until(self, given):
        with self._lock:
            self._sleeps = self._numbers[_GIVEN] != given
            sleeps = self._sleeps
        if sleeps:
            self._wake.get()
