"""The one decorator of every compiled kernel, and its floating-point policy.

All kernels are compiled lazily (an explicit signature would reject read-only and
Fortran-ordered arrays), release the GIL so that joblib threads can run them side by
side, and are cached on disk so that only the very first call ever pays for the
compilation.
"""

import functools

import numba

# Re-association and contraction let LLVM vectorise sums; NaN and infinity keep their
# meaning, because a diverged simulation is recognised by them.
FASTMATH = {"nsz", "arcp", "contract", "afn", "reassoc"}
# For code whose order of operations is the algorithm (rounding by a magic number).
STRICT = {"contract"}


def kernel(function=None, *, fastmath=frozenset(FASTMATH), inline="never"):
    """Compile ``function`` with the policy of this package.

    ``inline="always"`` is for a helper with one caller in a first fit: it is compiled
    as a part of that caller. With several callers this takes longer.

    Numba refuses to cache where it finds no writable folder (a read-only
    installation under a user without a home); such a kernel is compiled anew in each
    process instead of failing at import.
    """
    if function is None:
        return functools.partial(kernel, fastmath=fastmath, inline=inline)
    options = {"nogil": True, "fastmath": set(fastmath), "error_model": "numpy"}
    options["inline"] = inline
    try:
        return numba.njit(function, cache=True, **options)
    except RuntimeError:
        return numba.njit(function, **options)
