"""Data of every size, type, container and scale, sound and faulty."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from hypothesis import strategies as st

USUAL = ["none"] * 8
SCALES = [1.0] * 8 + [
    *[1e-6, 1e6, 1e-40, 1e40, 1e-90, 1e99, 1e-140, 1e-170, 1e-310, 1e120, 1e200, 0.0]
]
DTYPES = ["float64"] * 6 + [
    *["float32", "float16", "int64", "int8", "uint8", "bool", "object", "longdouble"],
    *["complex128", "str", "datetime64[s]"],
]
CONTAINERS = ["array"] * 6 + [
    *["Fortran", "list", "pandas", "read-only", "strided", "masked", "csr", "csc"],
    *["matrix of 3-D", "one row less", "flat"],
]
FAULTS = [*USUAL, "nan", "inf", "None", "text", "constant", "all nan", "equal columns"]
LONGER = [60] * 6 + [40, 40, 20, 5, 1]
SIZES = [40] * 4 + [20, 20, 8, 5, 3, 2, 1, 0]


class Table(NamedTuple):
    """How to make a table of data."""

    n_rows: int
    n_columns: int | None
    scale: float
    offset: float
    dtype: str
    container: str
    fault: str
    seed: int


@st.composite
def tables(draw, n_rows, n_columns, sound=False):
    """A `Table`; a sound one has no fault, and a usual type."""
    pick = st.sampled_from
    return Table(
        n_rows,
        n_columns,
        1.0 if sound else draw(pick(SCALES)),
        0.0 if sound else draw(pick([0.0] * 6 + [1.0, -1e3, 1e9])),
        "float64" if sound else draw(pick(DTYPES)),
        "array" if sound else draw(pick(CONTAINERS)),
        "none" if sound else draw(pick(FAULTS)),
        draw(st.integers(0, 9)),
    )


def is_usual(table):
    """Whether nothing about a table is a reason to refuse it."""
    return (table.scale, table.dtype, table.container, table.fault) == (
        *(1.0, "float64", "array"),
        "none",
    )


def make(table, values):
    """The data of a table, from sound values (n_rows,) or (n_rows, n_columns)."""
    values = table.scale * (np.array(values, dtype=float) + table.offset)
    place = values.shape[0] // 2, *(0 for _ in values.shape[1:])
    if values.size:
        if table.fault in ("nan", "inf"):
            values[place] = float(table.fault)
        elif table.fault == "constant":
            values[:] = values[place]
        elif table.fault == "all nan":
            values[..., -1:] = np.nan
        elif table.fault == "equal columns":
            values[..., -1:] = values[..., :1]
    with np.errstate(all="ignore"):
        values = values.astype(table.dtype)
    if values.size and table.fault in ("None", "text"):
        values = values.astype(object)
        values[place] = {"None": None, "text": "many"}[table.fault]
    return _contained(values, table.container)


def _contained(values, container):
    if container == "Fortran":
        return np.asfortranarray(values)
    if container == "list":
        return values.tolist()
    if container == "pandas":
        if values.dtype.kind == "g":  # of another precision, which pandas lacks
            values = values.astype(float)
        return pd.DataFrame(values) if values.ndim == 2 else pd.Series(values)
    if container == "read-only":
        values.flags.writeable = False
    elif container == "strided":
        return np.repeat(values, 2, axis=0)[::2]
    elif container == "masked":
        return np.ma.masked_array(values)
    elif (
        container in ("csr", "csc") and values.ndim == 2 and values.dtype.kind in "fiu"
    ):
        if values.dtype != np.float16:
            return sp.csr_array(values).asformat(container)
    elif container == "matrix of 3-D":
        return values[..., np.newaxis, np.newaxis]
    elif container == "one row less":
        return values[:-1]
    elif container == "flat":
        return values.ravel()
    return values
