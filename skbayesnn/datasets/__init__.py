"""Data sets of nonlinear system identification.

:func:`make_cascaded_tanks` simulates the embedded default data set of this package
and needs no file and no network. The fetchers load the two measured benchmarks.
"""

from ._fetch import fetch_cascaded_tanks, fetch_silverbox
from ._tanks import make_cascaded_tanks

__all__ = ["fetch_cascaded_tanks", "fetch_silverbox", "make_cascaded_tanks"]
