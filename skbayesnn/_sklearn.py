"""Every private name of scikit-learn, and what differs between supported releases.

Nothing else in the package imports a private name, or asks for the release.
"""

import functools
import os
from contextlib import nullcontext
from importlib import metadata

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import _param_validation
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.parallel import _get_threadpool_controller
from sklearn.utils.validation import _check_sample_weight

__all__ = [
    "CallbackSupportMixin",
    "DocumentationLinkMixin",
    "HasMethods",
    "Interval",
    "OUTPUT_CONFIG",
    "StrOptions",
    "fit_context",
    "on_one_blas_thread",
    "one_blas_thread",
    "validate_sample_weight",
    "with_callbacks",
]

fit_context = _fit_context
validate_sample_weight = _check_sample_weight
# Attribute in which an estimator keeps the form of its output, and which ``clone``
# copies.
OUTPUT_CONFIG = "_sklearn_output_config"


class Interval(_param_validation.Interval):
    """As scikit-learn's, but True is no number, and numbers have any precision."""

    def is_satisfied_by(self, val):
        if isinstance(val, bool):
            return False
        # or a bound may be beyond the range of a number of few digits, with a warning
        return super().is_satisfied_by(
            float(val) if isinstance(val, np.floating) else val
        )


class DocumentationLinkMixin:
    """A link to the documentation in the HTML of an estimator.

    The address is in the environment variable ``SKBAYESNN_DOC_URL``, for a site that a
    user has built and serves, or ``Documentation`` in the metadata of the package.
    Without either there is no link.
    """

    _doc_link_module = __package__

    def _get_doc_link(self):
        urls = metadata.metadata(__package__).get_all("Project-URL") or ()
        pairs = [tuple(map(str.strip, url.split(",", 1))) for url in urls]
        published = dict(pairs).get("Documentation")
        address = os.environ.get("SKBAYESNN_DOC_URL") or published
        if address is None or not type(self).__module__.startswith(__package__):
            return ""
        page = f"{type(self).__module__}.{type(self).__name__}.html"
        return f"{address.rstrip('/')}/generated/api/{page}"


def one_blas_thread():
    """A context with one BLAS thread.

    The matrices of a fit are small, where a second thread costs more than it brings
    (measured: four times slower with two). One thread also makes the rounding, and so
    the result, independent of ``n_jobs``.
    """
    return _get_threadpool_controller().limit(limits=1, user_api="blas")


def on_one_blas_thread(method):
    """A function or method whose results do not depend on the number of threads."""

    @functools.wraps(method)
    def wrapper(*args, **kwargs):
        with one_blas_thread():
            return method(*args, **kwargs)

    return wrapper


try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ModuleNotFoundError:
    # before scikit-learn 1.9: a fit makes the same calls, which do nothing

    class _NoCallbacks:
        """The context of a fit, or of a part of it, that has no callbacks."""

        def subcontext(self, *args, **kwargs):
            return self

        def call_on_fit_task_begin(self, **kwargs):
            return self

        def call_on_fit_task_end(self, **kwargs):
            return False  # no request to stop

        def propagate_callback_context(self, sub_estimator):
            return nullcontext()

    class CallbackSupportMixin:
        """Fits run, and ``set_callbacks`` says what it needs."""

        @property
        def set_callbacks(self):
            """Callbacks, which need scikit-learn 1.9 or later."""
            # an AttributeError: to ``hasattr`` the method is not there
            raise AttributeError(
                f"{type(self).__name__} has no set_callbacks: callbacks need "
                "scikit-learn 1.9 or later."
            )

        def _init_callback_context(self, *args, **kwargs):
            return _NoCallbacks()

    def with_callbacks(method):
        return method
