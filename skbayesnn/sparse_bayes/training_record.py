"""The data of a fit of a lagged model, checked, and the names of their signals."""

import functools
from typing import NamedTuple

import numpy as np

from .. import _validation as checks
from .._frames import column_names
from .._time_axis import check_time, split_record, split_sessions
from .._warnings import warn_caller
from ..exceptions import OutlierWarning, SamplingWarning
from .records.far_values import far_inputs, far_outputs
from .records.feedback import inputs_computed_from_outputs, inputs_of_controllers
from .records.memory import has_memory

# Attributes that the data alone set, before the fit.
OF_INPUTS = (
    "n_features_in_",
    "feature_names_in_",
    "output_names_",
    "sampling_time_",
    "_time_zone",
    "_calendar",
)


# Rows that a warning names.
MOST_NAMED = 5


class TrainingRecord(NamedTuple):
    """The checked data of a fit.

    U, Y : (n_rows, n_inputs) and (n_rows, n_outputs)
    starts : (n_sessions + 1,) first row of every session, and n_rows
    single_output : whether y has one dimension
    attributes : dict of what an estimator says of these data, see `OF_INPUTS`
    end_time : of the last row, as its stamp; None where it is not known
    """

    U: np.ndarray
    Y: np.ndarray
    starts: np.ndarray
    single_output: bool
    attributes: dict
    end_time: object = None


def no_sample_weight(fit):
    """Refuse a ``sample_weight`` of the `fit` of a dynamic model, and say what to do.

    It is no argument of the signature: searches, bags and scikit-learn's checks ask
    that whether rows may have weights, and would take weights for copies of rows.
    """

    @functools.wraps(fit)
    def wrapper(self, *args, sample_weight=None, **kwargs):
        if sample_weight is not None:
            raise TypeError(
                f"{type(self).__name__}.fit takes no sample_weight: each row is also "
                "the past of the next rows, so it cannot be copied or left out. Set "
                "outputs that shall not count to NaN; to let a whole record count k "
                "times, append it k times, each with an id of its own in sessions."
            )
        if len(args) > 2:
            # of others, and of score, the third argument is sample_weight
            raise TypeError(
                f"{type(self).__name__}.fit takes two arguments without a name, X and "
                f"y; got {len(args)}. Pass the ids of records by name, as sessions=..."
            )
        return fit(self, *args, **kwargs)

    return wrapper


def check_training_record(estimator, X, y, sessions):
    """The `TrainingRecord` of the arguments of `fit`.

    Sets the attributes of the inputs of the estimator.
    """
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but "
            "the target y is None."
        )
    _refuse_lists_of_records(X, y)
    X, y, axis = split_record(X, y)
    names = column_names(y)
    y = checks.check_outputs(y)
    for name in OF_INPUTS:
        estimator.__dict__.pop(name, None)
    if names is not None:
        estimator.output_names_ = np.array(names, dtype=object)
    U, Y = _check_signals(estimator, X, y, axis)
    starts = split_sessions(sessions, axis, len(Y))
    sampling_time, end_time = check_time(axis, starts), None
    _warn_of_signals(estimator, U, Y, starts)
    if sampling_time is not None:
        estimator.sampling_time_, end_time = sampling_time, axis.stamps[-1]
        estimator._time_zone, estimator._calendar = axis.zone, axis.calendar
    attributes = {k: v for k, v in vars(estimator).items() if k in OF_INPUTS}
    return TrainingRecord(U, Y, starts, y.ndim == 1, attributes, end_time)


def _check_signals(estimator, X, y, axis):
    """Inputs and outputs, (n_rows, n_inputs) and (n_rows, n_outputs), as own arrays.

    Sets the number of inputs of the estimator, and their names.
    """
    Y = checks.own(y.reshape(len(y), -1))
    if X is None or (axis is not None and np.shape(X)[1:] == (0,)):
        U = np.empty((len(Y), 0))
        estimator.n_features_in_ = 0
    else:
        U = _check_inputs(estimator, X)
    U = checks.own(U)
    checks.check_lengths(U, Y, "X", "y")
    of_inputs = getattr(estimator, "feature_names_in_", None)
    of_outputs = getattr(estimator, "output_names_", None)
    for array, name, columns in ((U, "X", of_inputs), (Y, "y", of_outputs)):
        checks.check_magnitude(array, name)
        checks.check_any_value(array, name, columns)
    _refuse_common_names(estimator, Y.shape[1])
    return U, Y


def _warn_of_signals(estimator, U, Y, starts):
    """Warn of inputs that tell nothing, codes of both, and rows out of order."""
    _warn_of_constant_inputs(estimator, U)
    far = far_outputs(U, Y, starts)
    # searches look for wrong outputs themselves, if they are asked to
    if not hasattr(estimator, "outliers"):
        _warn_of_far_outputs(estimator, Y, far)
    # a single value far off hides whatever the others have in common
    right = np.where(far, np.nan, Y)
    _warn_of_codes(estimator, U, far_inputs(U, right, starts))
    computed = inputs_computed_from_outputs(U, right, starts)
    _warn_of_computed_inputs(estimator, computed)
    _warn_of_controllers(estimator, inputs_of_controllers(U, right, starts))
    if not has_memory(U, right, starts):
        warn_caller(
            "No row of y is correlated with those before it: were the rows shuffled, "
            "or drawn with replacement as a bagging estimator does? Lags need them in "
            "the order of time; cross-validate by TimeSeriesSplit. If they are in "
            "order, the system has no memory that could be seen: it may be sampled too "
            "slowly, or SparseBayesMLPRegressor be the model.",
            SamplingWarning,
        )


def _names_of(estimator, flags):
    """Names of the inputs with a flag, (n_inputs,) bool."""
    return np.asarray(input_names(estimator), dtype=object)[flags].tolist()


def _warn_of_constant_inputs(estimator, U):
    """Warn of inputs that hold one value, as those of a sensor that was not connected.

    Every column has a value.
    """
    constant = np.nanmin(U, axis=0) == np.nanmax(U, axis=0)
    names = _names_of(estimator, constant)
    if names:
        which, verb = ("Input", "is") if len(names) == 1 else ("Inputs", "are")
        warn_caller(
            f"{which} {', '.join(names)} {verb} constant in X: no effect of such an "
            "input can be learned. Leave it out, or fit records in which it changes.",
            UserWarning,
        )


def _refuse_lists_of_records(X, y):
    """Say how several records are passed: lists of arrays have no shape of a table."""
    for records, name in ((X, "X"), (y, "y")):
        # a list of rows is a table, too
        is_list = isinstance(records, list | tuple) and len(records)
        if is_list and getattr(records[0], "ndim", 0) > 1:
            raise ValueError(
                f"{name} is a list of {len(records)} records; expected one table. Join "
                "them below one another, X = np.concatenate(Xs) and "
                "y = np.concatenate(ys), and say by sessions = "
                "np.repeat(np.arange(len(Xs)), [len(X) for X in Xs]) where a new one "
                "begins."
            )


def _check_inputs(estimator, X):
    """Inputs as an array (n_rows, n_inputs), NaN where missing."""
    try:
        return checks.validate_data(
            estimator,
            X,
            dtype=np.float64,
            order="C",
            ensure_all_finite="allow-nan",
            ensure_min_samples=2,
        )
    except ValueError as error:
        if "1 sample(s)" not in str(error):
            raise
        raise ValueError(
            f"{error} Rows of X are samples, in the order of time, and columns are "
            "inputs: pass X.T if it is the other way round."
        ) from error


def _warn_of_codes(estimator, U, far):
    """Warn of inputs that are ``far`` off (n_rows, n_inputs) without an effect."""
    for k in np.flatnonzero(far.any(axis=0)):
        rows = np.flatnonzero(far[:, k])
        name, value = input_names(estimator)[k], U[rows[0], k]
        warn_caller(
            f"Input {name!r} is {value:g} in row {first_rows(rows)}: far beyond all "
            "its other values, and without an effect on the outputs. If this is a code "
            "of missing values, set it to NaN.",
            OutlierWarning,
        )


def _warn_of_computed_inputs(estimator, is_computed):
    """Warn of inputs off which a model would read the output that it shall predict."""
    names = _names_of(estimator, is_computed)
    if names:
        which, verb = ("Input", "is") if len(names) == 1 else ("Inputs", "are")
        warn_caller(
            f"{which} {', '.join(names)} {verb} a linear function of the outputs in "
            "the same row, as an output in another unit is. A model reads the output "
            "off such an input, and seems to be perfect, but knows nothing of the "
            "system. Leave it out of X. If it is a cause of the output, the system has "
            "no memory: SparseBayesMLPRegressor is the model.",
            UserWarning,
        )


def _warn_of_controllers(estimator, is_controlled):
    """Warn of inputs that are chosen from the outputs by an exact equation."""
    names = _names_of(estimator, is_controlled)
    if names:
        which = "input" if len(names) == 1 else "inputs"
        warn_caller(
            f"The changes of {which} {', '.join(names)} from row to row are a linear "
            "function of the outputs in the same rows and a few before, and of other "
            "inputs if there are some. This is the equation of a controller (or of a "
            "sum of outputs). A fit may learn it in place of the system: its errors "
            "are then small in this record, held-out rows included, and large where "
            "inputs are chosen otherwise. Leave set points and what is computed from "
            "outputs out of X, and fit a record in which the set point moves in steps.",
            UserWarning,
        )


def _warn_of_far_outputs(estimator, Y, far):
    """Warn of outputs that are ``far`` off (n_rows, n_outputs) without a cause."""
    for k in np.flatnonzero(far.any(axis=0)):
        rows = np.flatnonzero(far[:, k])
        name, value = output_names(estimator, Y.shape[1])[k], Y[rows[0], k]
        warn_caller(
            f"Output {name!r} is {value:g} in row {rows[0]}, and {len(rows)} of its "
            "values are far beyond all others without a cause among the inputs, in row "
            f"{first_rows(rows)}. The fit takes them as measured, and as the past of "
            "the next rows: set codes of missing values, and errors, to NaN. "
            "DynamicSystemRegressor and SparseBayesNARXRegressorCV replace them.",
            OutlierWarning,
        )


def first_rows(rows):
    """The first of some rows, as a text."""
    return ", ".join(map(str, rows[:MOST_NAMED])) + ", ..." * (len(rows) > MOST_NAMED)


def _refuse_common_names(estimator, n_outputs):
    """Refuse a name that two signals have: regressors are told apart by their names."""
    inputs = list(input_names(estimator))
    outputs = list(output_names(estimator, n_outputs))
    both = [name for name in inputs if name in outputs]
    if not both:
        return
    if not hasattr(estimator, "output_names_"):
        raise ValueError(
            f"X has a column {both[0]!r}, which is also what an output is called that "
            f"has no name. If it is the output, leave it out of X, as "
            f"X.drop(columns={both}) does: past outputs are regressors anyway. If it "
            "is another signal, name the outputs: pass y as a series or a data frame "
            "whose names are not in X."
        )
    if not hasattr(estimator, "feature_names_in_"):
        raise ValueError(
            f"y has a column {both[0]!r}, which is also what an input is called that "
            "has no name: rename it, or pass X as a data frame with other names."
        )
    raise ValueError(
        f"X and y both have a column {both[0]!r}. Past outputs are regressors "
        "anyway, and the present one is not known: leave it out of X, as "
        f"X.drop(columns={both}) does, or rename it."
    )


def input_names(estimator):
    """Names of the inputs: ``feature_names_in_``, or x0, x1, ..."""
    default = [f"x{k}" for k in range(estimator.n_features_in_)]
    return getattr(estimator, "feature_names_in_", default)


def output_names(estimator, n_outputs):
    """Names of the outputs: ``output_names_``, or y, or y0, y1, ..."""
    default = ["y"] if n_outputs == 1 else [f"y{k}" for k in range(n_outputs)]
    return getattr(estimator, "output_names_", default)
