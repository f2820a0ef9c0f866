"""Checks of data that do not depend on a model."""

from contextlib import contextmanager
from numbers import Integral

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import validation

from ._sklearn import validate_sample_weight

__all__ = [
    "as_columns",
    "check_any_value",
    "check_array",
    "check_container",
    "check_count",
    "check_initialization",
    "check_lengths",
    "check_magnitude",
    "check_n_outputs",
    "check_names_differ",
    "check_outputs",
    "check_row",
    "check_sample_weight",
    "check_sessions",
    "check_sparse",
    "check_spread",
    "columns_of_times",
    "own",
    "session_starts",
    "validate_data",
]

# The squares of larger numbers, summed over a long record, may overflow.
MAX_MAGNITUDE = 1e100
# The squares of smaller standard deviations underflow.
MIN_SPREAD = 1e-150


def validate_data(estimator, X, *y, **options):
    """As scikit-learn's, but masked values are refused: it takes what lies below.

    The sum by which it looks for infinities warns of those of both signs.
    """
    named = list(zip((X, *y), ("X", "y"), strict=False))
    for array, name in named:
        check_container(array, name)
        _check_times(array, name)
        check_names_differ(array, name)
    _check_is_table(X)
    X = _with_counted_booleans(X)
    with np.errstate(invalid="ignore"), _places_named(named):
        checked = validation.validate_data(estimator, X, *y, **options)
    if getattr(getattr(checked, "dtype", None), "kind", "") == "O":
        # categories of pandas pass as what they name
        raise ValueError(
            _describe_text(X, "X")
            or "X must hold numbers, not objects. If all of them are numbers, as "
            "categories of pandas may be, pass X.astype(float)."
        )
    return checked


def check_array(array, **options):
    """As scikit-learn's, without a warning before it refuses infinities."""
    named = [(array, options.get("input_name") or "The array")]
    with np.errstate(invalid="ignore"), _places_named(named):
        return validation.check_array(array, **options)


@contextmanager
def _places_named(named):
    """Say where there is text, infinity or NaN; scikit-learn only says that it is.

    ``named`` holds data and their names, in the order in which they are checked.
    """
    try:
        yield
    except ValueError as error:
        text = str(error)
        for array, name in named:
            if text.startswith(f"Input {name} contains"):
                is_bad = np.isnan if "contains NaN" in text else np.isinf
                raise ValueError(text + _first_not_finite(array, is_bad)) from error
        of_text = "convert string to float", "arrays of bytes/str", "Cannot cast"
        if not any(part in text for part in of_text):
            raise
        for array, name in named:
            message = _describe_text(array, name)
            if message is not None:
                raise ValueError(message) from error
        raise
    except TypeError as error:
        if "NAType" not in str(error):
            raise
        name = next((name for array, name in named if _holds_na(array)), "The array")
        raise ValueError(
            f"{name} holds pandas.NA among objects, which is no number. Pass "
            f"{name}.astype('Float64') for a frame or a Series, or NaN in its place."
        ) from error


def _holds_na(array):
    """Whether one of its objects is what pandas has for a missing value."""
    values = np.asarray(array, dtype=object).ravel()
    return any(type(value).__name__ == "NAType" for value in values)


def _first_not_finite(array, is_bad):
    """Where the first value is that is not finite, as a sentence; or nothing."""
    if issparse(array):
        return ""
    try:
        found = np.argwhere(is_bad(np.asarray(array, dtype=np.float64)))
    except (TypeError, ValueError):
        return ""
    if not len(found) or found.shape[1] > 2:
        return ""
    row, *column = found[0].tolist()
    where = f", column {_column(array, *column)}" if column else ""
    return f"\nThe first one is in row {row}{where}."


def _describe_text(array, name):
    """What is wrong with the first text that is no number; None without."""
    values = np.asarray(array, dtype=object)
    for k, column in enumerate(values.reshape(len(values), -1).T):
        for value in column:
            if isinstance(value, str | bytes) and not _is_number(value):
                place = f" in column {_column(array, k)}" if values.ndim > 1 else ""
                return (
                    f"{name} must hold numbers; found the text {value!r}{place}. "
                    f"{_remedy_for(value)}"
                )
    return None


def _remedy_for(text):
    """What is to be done about a text that is no number."""
    comma = b"," if isinstance(text, bytes) else ","
    if text.count(comma) == 1 and _is_number(text.replace(comma, comma[:0])):
        return "Read decimal commas as such, as pandas.read_csv(decimal=',') does."
    return (
        "Turn text into numbers, as scikit-learn's OneHotEncoder does, or leave such "
        "columns out."
    )


def _column(array, k):
    """The name of a column of a frame, or its number, as a message gives it."""
    columns = getattr(array, "columns", None)
    name = k if columns is None else list(columns)[k]
    return repr(name if isinstance(name, str | int) else k)


def _check_times(array, name):
    """Refuse columns of times, which scikit-learn mixes up with numbers or lets in."""
    columns = columns_of_times(array)
    if columns or _is_temporal(getattr(array, "dtype", None)):
        place = f" in column {columns[0]!r}" if columns else ""
        raise ValueError(
            f"{name} must hold numbers; found times{place}. Leave them out, or turn "
            "them into numbers, such as hours since the first."
        )


def check_names_differ(array, name):
    """Refuse a frame in which two columns have the same name."""
    columns = getattr(array, "columns", None)
    seen = set()
    for column in [] if columns is None else list(columns):
        if column in seen:
            raise ValueError(
                f"{name} has two columns named {column!r}. Rename or leave out one."
            )
        seen.add(column)


def columns_of_times(data):
    """Names of the columns of a frame that hold times."""
    if not (hasattr(data, "columns") and hasattr(data, "dtypes")):
        return []
    of_columns = zip(data.columns, data.dtypes, strict=True)
    return [column for column, dtype in of_columns if _is_temporal(dtype)]


def _is_temporal(dtype):
    """Whether a type of NumPy, pandas or polars holds times."""
    if hasattr(dtype, "is_temporal"):
        return dtype.is_temporal()
    return getattr(dtype, "kind", "O") in "mM"


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def _with_counted_booleans(X):
    """A frame of polars whose columns of booleans with nulls hold 0, 1 and null.

    As they are, they become objects, and so would all others.
    """
    if not (type(X).__module__.startswith("polars") and hasattr(X, "schema")):
        return X
    booleans = [name for name, dtype in X.schema.items() if str(dtype) == "Boolean"]
    nulls = [name for name in booleans if X[name].null_count()]
    return X.cast(dict.fromkeys(nulls, int)) if nulls else X


def _check_is_table(X):
    """Refuse one-dimensional arrays; scikit-learn's message prints all of X."""
    if not isinstance(X, np.ndarray) or X.ndim != 1:
        return
    raise ValueError(
        f"Expected 2D array, got 1D array instead: X has shape {X.shape}. Reshape your "
        "data: X.reshape(-1, 1) has a row for each value of a single feature, "
        "X.reshape(1, -1) is a single sample."
    )


def check_container(array, name):
    """Refuse what hides its values: masked arrays, and frames not yet computed."""
    if hasattr(array, "collect") and hasattr(array, "lazy"):
        raise TypeError(
            f"{name} is a {type(array).__name__}, whose values are not computed yet. "
            f"Pass {name}.collect()."
        )
    # columns of pandas have masks, too, which scikit-learn heeds
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise ValueError(
            f"{name} is a masked array, in which {np.ma.count_masked(array)} values "
            "are masked. Mark missing values by NaN, as "
            f"{name}.astype(float).filled(np.nan) does, or leave their rows out."
        )


def check_magnitude(array, name):
    """Refuse values whose squares overflow."""
    largest = np.max(np.abs(array), initial=0.0, where=~np.isnan(array))
    if largest > MAX_MAGNITUDE:
        raise ValueError(
            f"{name} contains a value too large for a least-squares fit: found "
            f"{largest:.3g}, expected magnitudes up to {MAX_MAGNITUDE:.0e}. Rescale "
            f"{name}, or mark such values as missing."
        )


def check_spread(spread, name):
    """Refuse columns whose standard deviation (n_columns,) cannot be squared."""
    small = np.flatnonzero(spread < MIN_SPREAD)
    if len(small):
        raise ValueError(
            f"{name} varies too little for a least-squares fit: found a standard "
            f"deviation below {MIN_SPREAD:.0e}, whose square is no longer a number, in "
            f"column {small[0]}. Rescale {name}."
        )


def check_outputs(y, name="y", *, allow_nan=True):
    """Measured outputs (n,) or (n, n_outputs) as float64, NaN for missing values."""
    check_container(y, name)
    if np.isscalar(y):
        raise ValueError(
            f"{name} must hold outputs row by row; got {y!r}. Pass [{y!r}] for a "
            "single row."
        )
    check_names_differ(y, name)
    try:
        return check_array(
            y,
            dtype=np.float64,
            ensure_2d=False,
            ensure_all_finite="allow-nan" if allow_nan else True,
            input_name=name,
        )
    except ValueError as error:
        if "0 sample(s)" not in str(error):
            raise
        raise ValueError(
            f"{name} must hold at least one row of outputs; got none."
        ) from error


def as_columns(y, name, *, allow_inf=False):
    """Outputs as a float64 array (n, n_outputs); NaN is allowed, infinity on demand."""
    check_container(y, name)
    if allow_inf:
        y = check_array(
            y,
            dtype=np.float64,
            ensure_2d=False,
            ensure_all_finite=False,
            input_name=name,
        )
    else:
        y = check_outputs(y, name)
    return y.reshape(len(y), -1)


def own(array):
    """The array, copied unless it is C-ordered and writeable.

    A compiled kernel is specialised for layout and writeability; one kind of array
    means one compilation.
    """
    return np.require(array, requirements=["C", "W"])


def check_lengths(first, second, first_name, second_name):
    if len(first) != len(second):
        lies = first.ndim == 2 and first.shape[1] == len(second)
        advice = f" {first_name} has as many columns: pass {first_name}.T." * lies
        raise ValueError(
            f"{first_name} and {second_name} must have as many rows; got "
            f"inconsistent numbers of samples: {len(first)} and {len(second)}.{advice}"
        )


def check_n_outputs(first, second, first_name, second_name):
    """Refuse two-dimensional records with different numbers of columns."""
    if first.shape[1] != second.shape[1]:
        raise ValueError(
            f"{first_name} and {second_name} must have as many outputs; got "
            f"{first.shape[1]} and {second.shape[1]}."
        )


def check_initialization(n_initialization, n_rows):
    """Refuse an initialisation that leaves no row of the record."""
    if not 0 <= n_initialization < n_rows:
        raise ValueError(
            "n_initialization must be at least 0 and less than the number of rows, "
            f"{n_rows}; got {n_initialization}."
        )


def check_any_value(array, name, columns=None):
    """Refuse columns that hold nothing but missing values; they may have names."""
    empty = np.flatnonzero(np.isnan(array).all(axis=0)).tolist()
    if empty:
        if columns is not None:
            empty = [str(columns[k]) for k in empty]
        raise ValueError(
            f"{name} must hold at least one value in every column; columns "
            f"{empty} are all NaN. Leave them out."
        )


def check_sessions(sessions, n_rows):
    """Session ids (n_rows,), or None."""
    if sessions is None:
        return None
    check_container(sessions, "sessions")
    # NumPy makes NaN among the texts of a list the text "nan"
    given = sessions if hasattr(sessions, "dtype") else np.asarray(sessions, object)
    sessions = np.asarray(sessions)
    if sessions.shape != (n_rows,):
        found = f"shape {sessions.shape}" if sessions.ndim else repr(sessions.item())
        raise ValueError(
            f"sessions must hold one id per row, shape ({n_rows},), or be 'infer' to "
            f"begin a new record where time has a hole; got {found}."
        )
    missing = np.flatnonzero(_is_missing(np.asarray(given)))
    if len(missing):
        raise ValueError(
            f"sessions must name the record of every row; missing in {len(missing)} "
            f"rows, the first of them row {missing[0]}."
        )
    return sessions


def _is_missing(ids):
    """Which ids are NaN, NaT, None or what pandas has for a missing value."""
    if ids.dtype.kind in "fcmM":
        return np.isnan(ids) if ids.dtype.kind in "fc" else np.isnat(ids)
    if ids.dtype.kind != "O":
        return np.zeros(ids.shape, dtype=bool)
    return np.array([one is None or not _equals_itself(one) for one in ids], dtype=bool)


def _equals_itself(value):
    try:
        return bool(value == value)
    except TypeError:
        # pandas.NA does not say
        return False


def session_starts(sessions, n_rows):
    """First row of every session, and the end: shape (n_sessions + 1,).

    A session is a run of rows with the same id.
    """
    if sessions is None:
        return np.array([0, n_rows])
    changes = np.flatnonzero(sessions[1:] != sessions[:-1]) + 1
    return np.concatenate([[0], changes, [n_rows]])


def check_count(value, name, least):
    """An integer argument of at least ``least``."""
    if not isinstance(value, Integral) or value < least:
        raise ValueError(
            f"{name} must be an integer of at least {least}; got {_shown(value)}."
        )
    return int(value)


def _shown(value):
    """A value in an error: what it is, where it has rows."""
    if hasattr(value, "__len__") and not isinstance(value, str):
        return f"a {type(value).__name__}"
    return repr(value)


def check_row(values, n_values, name, what):
    """The values of one row (n_values,) float64; a number, where it is one alone."""
    try:
        row = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must hold {n_values} {what}, numbers, those of one row; got "
            f"{_shown(values)}."
        ) from error
    if row.size != n_values or row.ndim > 1:
        raise ValueError(
            f"{name} must hold {n_values} {what}, those of one row; got shape "
            f"{row.shape}."
        )
    return row


def check_sample_weight(sample_weight, X):
    """How many times each row counts (n_rows,) float64, or None.

    Refused if a weight is negative or not finite, or if none is positive.
    """
    if sample_weight is None:
        return None
    check_container(sample_weight, "sample_weight")
    weights = validate_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    if not weights.any():
        raise ValueError(
            "Sample weights must not all be zero: no row would count. sample_weight "
            "says how many times each row counts."
        )
    return weights


def check_sparse(X):
    """The matrix without duplicate entries; refused if an index is out of range.

    SciPy checks no index when it converts, slices or adds: an index out of range reads
    or writes foreign memory. Its own check replaces arrays of the matrix: it is made
    of another one with the same arrays.
    """
    try:
        if X.format == "coo":
            # its constructor checks
            X = type(X)((X.data, X.coords), shape=X.shape)
        else:
            if X.format not in ("csr", "csc", "bsr"):
                X = X.tocsr()
            _check_pointers(X.indptr)
            X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
            X.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(
            f"X must be a valid sparse matrix; SciPy found: {error}. Build it anew, "
            "from scipy.sparse.coo_matrix for example."
        ) from error
    if not getattr(X, "has_canonical_format", True):
        X = X.copy()
        X.sum_duplicates()
    return X


def _check_pointers(pointers):
    """Refuse what SciPy lets through: it asks nothing where the last one is 0."""
    if pointers.dtype.kind not in "iu":
        raise ValueError(f"index pointers of type {pointers.dtype}")
    # comparisons: differences of unsigned numbers are never negative
    if (pointers < 0).any() or (pointers[1:] < pointers[:-1]).any():
        raise ValueError("index pointers must be a non-decreasing sequence from 0")
