"""Calls side by side, on any backend of joblib."""

import sys
from contextlib import nullcontext
from uuid import uuid4

import numpy as np
from joblib import Parallel, effective_n_jobs, parallel, parallel_config

# Backends of this machine; others are registered by name when they are imported.
_NAMES = "loky", "multiprocessing", "sequential", "threading"
_LOCAL = {parallel.BACKENDS[name] for name in _NAMES if name in parallel.BACKENDS}


def in_order(calls, n_jobs=None, prefer=None):
    """An iterator of the results of ``joblib.delayed`` calls, in their order.

    They come one by one as soon as they are there, so that what is finished is not
    lost when a later one is interrupted. Backends without generators, such as
    "multiprocessing", give them all at the end.
    """
    options = {"n_jobs": n_jobs, "prefer": prefer}
    try:
        side_by_side = Parallel(**options, return_as="generator")
    except ValueError:
        # the same again, should the backend not be the reason
        side_by_side = Parallel(**options)
    return iter(side_by_side(calls))


def at_hand(*shared):
    """A context of calls in which every worker of a Dask cluster has these arguments.

    By itself joblib gives them to one worker, from which the others fetch them. They
    are lost, and with them all calls, if it is killed before.
    """
    backend, n_jobs = parallel.get_active_backend()
    client = getattr(backend, "client", None)
    # within a call to a worker, joblib does it, see `Shared`
    if client is None or _in_worker():
        return nullcontext()
    options = backend.submit_kwargs | {
        "wait_for_workers_timeout": backend.wait_for_workers_timeout
    }
    return parallel_config(
        "dask",
        n_jobs=n_jobs,
        client=client,
        scatter=list(dict.fromkeys(shared)),
        **options,
    )


def _in_worker():
    """Whether this is a call to a worker of a Dask cluster.

    The nesting level of joblib's backend does not tell: it may be 0 there.
    """
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return False
    return True


class Shared:
    """An argument that many calls have in common, for `with_shared`.

    A cluster sends it once, rather than with every call. Calls from a worker rely on
    joblib for that: it asks for an object that weak references may point to, and that
    is large by its ``__sizeof__``. Tuples of arrays are neither.
    """

    def __init__(self, value):
        self.value = value

    def __sizeof__(self):
        return _size(self.value)

    def __dask_tokenize__(self):
        """Another name each time that a cluster is sent this.

        By default equal values have one name. A cluster that is told to forget it,
        once nobody needs what was sent first, loses what was just sent again.
        """
        return uuid4().hex


def _size(value):
    """Bytes of nested arrays, about."""
    if isinstance(value, tuple | list):
        return sum(map(_size, value))
    return value.nbytes if isinstance(value, np.ndarray) else sys.getsizeof(value)


def with_shared(function, *arguments):
    """The function of arguments, of which some are `Shared`."""
    return function(*(a.value if isinstance(a, Shared) else a for a in arguments))


def n_threads(n_jobs):
    """The number of threads of this process that ``n_jobs`` stands for.

    The workers of a cluster are none of them: a process has one thread there, unless
    ``n_jobs`` asks for more.
    """
    backend, _ = parallel.get_active_backend()
    if type(backend) in _LOCAL:
        return effective_n_jobs(n_jobs)
    with parallel_config("threading", n_jobs=1):
        return effective_n_jobs(n_jobs)
