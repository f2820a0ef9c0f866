"""Calls side by side, on any backend of joblib."""

from joblib import Parallel


def in_order(calls, n_jobs=None):
    """The results of ``joblib.delayed`` calls, in their order.

    They come one by one as soon as they are there, so that what is finished is not
    lost when a later one is interrupted. Backends without generators, such as
    "multiprocessing", give them all at the end.
    """
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    except ValueError:
        # the same again, should the backend not be the reason
        parallel = Parallel(n_jobs=n_jobs)
    return parallel(calls)
