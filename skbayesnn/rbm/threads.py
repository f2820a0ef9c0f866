"""Threads for large products: each computes some of the columns.

No sum depends on the thread that computes it, so the number of threads does not change
any result. The number is that of the innermost `using`; threads of another pool, such
as joblib's, start with one.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar

# Least number of additions that justify another thread (measured: with half as many, as
# in batches of 100 rows with 500 units, a fit is slower).
_MIN_WORK = 20_000_000

_number = ContextVar("number of threads", default=1)
_pools = {}
# a child process has no threads but the one that made it; Windows cannot fork
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)


@contextmanager
def using(n_threads):
    """Let large products inside this context use ``n_threads`` threads."""
    token = _number.set(n_threads)
    try:
        yield
    finally:
        _number.reset(token)


def share_out(call, n, work):
    """``call(first, last)`` for the parts of range(n), one per thread.

    ``work`` is the total number of additions: small products stay on one thread.
    """
    n_threads = min(_number.get(), n, 1 + work // _MIN_WORK)
    if n_threads < 2:
        call(0, n)
        return
    edges = [n * k // n_threads for k in range(n_threads + 1)]
    futures = [
        _pool(n_threads).submit(call, first, last)
        for first, last in zip(edges[1:-1], edges[2:], strict=True)
    ]
    try:
        call(edges[0], edges[1])
    finally:
        # no thread still writes when an interrupt leaves this function
        for future in futures:
            future.result()


def _pool(n_threads):
    if n_threads not in _pools:
        _pools[n_threads] = ThreadPoolExecutor(n_threads - 1, "skbayesnn")
    return _pools[n_threads]
