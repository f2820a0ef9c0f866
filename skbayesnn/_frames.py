"""Data frames: names of their columns, and frames for what a model returns.

No library of frames is imported unless a frame of it is asked for.
"""

__all__ = [
    "check_library",
    "check_names",
    "check_row_names",
    "column_names",
    "make_frame",
    "stamps_in_zone",
]

LIBRARIES = ("pandas", "polars")


def column_names(data):
    """Names of the columns of a data frame, or of a series; None without.

    As scikit-learn does for inputs, a frame has names if all of them are strings.
    """
    columns = getattr(data, "columns", None)
    if columns is None:
        # an array has no name, and one of scikit-learn's Bunch is no series
        name = getattr(data, "name", None) if hasattr(data, "dtype") else None
        return [name] if isinstance(name, str) and name else None
    columns = list(columns)
    named = columns and all(isinstance(name, str) for name in columns)
    return columns if named else None


def check_names(data, expected, name, of="y"):
    """Refuse signals whose names are not those that ``of``, X or y, had in fit.

    Data without names are taken as they are, as is everything where ``expected`` is
    None.
    """
    _compare(column_names(data), expected, name, of)


def check_row_names(row, expected, name, of):
    """As `check_names` for one row of a frame, whose labels are those of its columns.

    Labels of which none is expected are no names of signals.
    """
    labels = getattr(row, "index", None)
    # a list has a method of this name
    if expected is None or labels is None or callable(labels):
        return
    labels = list(labels)
    if set(labels) & set(expected):
        _compare(labels, expected, name, of)


def _compare(found, expected, name, of):
    if found is None or expected is None or found == list(expected):
        return
    expected, what = list(expected), {"X": "inputs", "y": "outputs"}[of]
    if sorted(map(str, found)) == sorted(expected):
        problem = f"has the {what} in another order than {of} had in fit"
        remedy = f"Select them in order, as {name}[{expected}] does."
    else:
        problem = f"has other {what} than {of} had in fit"
        remedy = "Pass these, or an array, whose columns are taken by their order."
    raise ValueError(f"{name} {problem}: expected {expected}, got {found}. {remedy}")


def check_library(library):
    """Refuse a library of frames that is not known or not installed."""
    if library not in LIBRARIES:
        raise ValueError(
            f"Frames are made by {' or '.join(map(repr, LIBRARIES))}, or 'default' "
            f"leaves arrays as they are; got {library!r}."
        )
    try:
        return __import__(library)
    except ImportError as error:
        raise ImportError(
            f"Predictions as frames of {library} require it: pip install {library}"
        ) from error


def stamps_in_zone(library, stamps, zone):
    """Times of universal time as those of a zone: a pandas index, a polars series."""
    module = check_library(library)
    if library == "polars":
        times = module.Series(stamps).dt
        return times.replace_time_zone("UTC").dt.convert_time_zone(zone)
    return module.Index(stamps).tz_localize("UTC").tz_convert(zone)


def make_frame(library, values, names, stamps=None, index=None):
    """A frame of some columns.

    Parameters
    ----------
    library : {"pandas", "polars"}
    values : ndarray of shape (n_rows, n_columns)
    names : list of str
    stamps : ndarray of shape (n_rows,), default=None
        A first column named "time".
    index : pandas index, default=None
        Of the rows; polars has none.
    """
    module = check_library(library)
    columns = dict(zip(names, values.T, strict=True))
    if stamps is not None:
        columns = {"time": stamps, **columns}
    if library == "polars":
        return module.DataFrame(columns)
    return module.DataFrame(columns, index=index)
