"""Inputs that were not measured: held, or interpolated."""

import numpy as np

WAYS = ("hold", "interpolate")


def check_way(fill_inputs):
    """Refuse a way of filling that is not known."""
    if fill_inputs is not None and fill_inputs not in WAYS:
        raise ValueError(
            "fill_inputs must be None, which leaves missing inputs as they are, "
            f"'hold' or 'interpolate'; got {fill_inputs!r}."
        )


def fill_missing(U, starts, way):
    """Inputs (n_rows, n_inputs) without NaN, each session by itself.

    "hold" takes the last value before, "interpolate" a straight line between the values
    around. Before the first value both take this one; "interpolate" holds the last one.
    An input without any value in a session stays as it is.
    """
    if way is None or not np.isnan(U).any():
        return U
    U = U.copy()
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        for column in U[start:stop].T:
            known = np.flatnonzero(~np.isnan(column))
            if not 0 < len(known) < len(column):
                continue
            rows = np.arange(len(column))
            if way == "interpolate":
                column[:] = np.interp(rows, known, column[known])
            else:
                last = np.searchsorted(known, rows, side="right") - 1
                column[:] = column[known[np.maximum(last, 0)]]
    return U
