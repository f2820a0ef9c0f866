"""Data sets for nonlinear system identification and for models of binary data.

:func:`make_cascaded_tanks` simulates the default data set of this package and needs
neither a file nor a network; :func:`make_coupled_drives` simulates a system that hides
a part of its state. The fetchers load benchmarks: two measured systems,
:func:`fetch_cascaded_tanks` and :func:`fetch_silverbox`, two sets of images,
:func:`fetch_mnist` and :func:`fetch_caltech101_silhouettes`, and, by name, the binary
sets of the literature on density estimation, :func:`fetch_binary_benchmark`.
"""

from ._binary_sets import fetch_binary_benchmark
from ._image_sets import fetch_caltech101_silhouettes, fetch_mnist
from ._measured_systems import fetch_cascaded_tanks, fetch_silverbox
from ._simulated_drives import make_coupled_drives
from ._simulated_tanks import make_cascaded_tanks

__all__ = [
    "fetch_binary_benchmark",
    "fetch_caltech101_silhouettes",
    "fetch_cascaded_tanks",
    "fetch_mnist",
    "fetch_silverbox",
    "make_cascaded_tanks",
    "make_coupled_drives",
]
