"""More than one core for a large product: its columns are shared out.

Which thread does a column changes none of its sums, so the number of threads changes no
result. The number is that of the innermost `using`; threads of another pool (joblib's,
say) start with one.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar

# Additions for each thread that are worth waking it (measured: with half as many, as in
# batches of 100 rows with 500 units, a fit is slower).
_MIN_WORK = 20_000_000

_number = ContextVar("number of threads", default=1)
_pools = {}
# a child process has no threads but the one that made it; Windows cannot fork
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)


@contextmanager
def using(n_threads):
    """Let large products inside take so many threads."""
    token = _number.set(n_threads)
    try:
        yield
    finally:
        _number.reset(token)


def share_out(call, n, work):
    """``call(first, last)`` for the parts of range(n), one a thread.

    ``work`` is the number of additions in all: what is small stays on one thread.
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
