"""Data sets, of nonlinear system identification and of images.

:func:`make_cascaded_tanks` simulates the embedded default data set of this package
and needs no file and no network. The fetchers load benchmarks: two measured systems,
:func:`fetch_cascaded_tanks` and :func:`fetch_silverbox`, and two sets of images,
:func:`fetch_mnist` and :func:`fetch_caltech101_silhouettes`.
"""

from ._fetch import fetch_cascaded_tanks, fetch_silverbox
from ._images import fetch_caltech101_silhouettes, fetch_mnist
from ._tanks import make_cascaded_tanks

__all__ = [
    "fetch_caltech101_silhouettes",
    "fetch_cascaded_tanks",
    "fetch_mnist",
    "fetch_silverbox",
    "make_cascaded_tanks",
]
