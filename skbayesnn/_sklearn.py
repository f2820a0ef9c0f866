"""Every private name of scikit-learn, and what differs between its releases.

A new release then breaks one file.
"""

from sklearn.base import _fit_context as fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.parallel import _get_threadpool_controller

__all__ = [
    "CallbackSupportMixin",
    "HasMethods",
    "Interval",
    "StrOptions",
    "fit_context",
    "one_blas_thread",
    "with_callbacks",
]


def one_blas_thread():
    """A context with one BLAS thread.

    The matrices of a fit are small, where a second thread costs more than it brings
    (measured: four times slower with two). One thread also makes the rounding, and so
    the result, independent of ``n_jobs``.
    """
    return _get_threadpool_controller().limit(limits=1, user_api="blas")
