"""Data sets for nonlinear system identification and for models of binary images.

:func:`make_cascaded_tanks` simulates the default data set of this package and needs
neither a file nor a network. The fetchers load benchmarks: two measured systems,
:func:`fetch_cascaded_tanks` and :func:`fetch_silverbox`, and two sets of images,
:func:`fetch_mnist` and :func:`fetch_caltech101_silhouettes`.
"""

from ._image_sets import fetch_caltech101_silhouettes, fetch_mnist
from ._measured_systems import fetch_cascaded_tanks, fetch_silverbox
from ._simulated_tanks import make_cascaded_tanks

__all__ = [
    "fetch_caltech101_silhouettes",
    "fetch_cascaded_tanks",
    "fetch_mnist",
    "fetch_silverbox",
    "make_cascaded_tanks",
]
