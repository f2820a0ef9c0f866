"""Checks of parameters and data, and every private import from scikit-learn."""

import functools
import os
import sys
import warnings
from numbers import Integral, Real

import joblib
import numpy as np
import sklearn
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.parallel import _get_threadpool_controller
from sklearn.utils.validation import check_array, validate_data

from .solvers.evidence import GROUPS
from .solvers.network import ACTIVATIONS

__all__ = [
    "GROUPS",
    "FitInterrupted",
    "HasMethods",
    "Integral",
    "Interval",
    "Real",
    "StrOptions",
    "check_any_value",
    "check_groups",
    "check_hidden_layer_sizes",
    "check_lengths",
    "check_magnitude",
    "check_noise_variance",
    "check_outputs",
    "check_reg_lambda",
    "check_session_lengths",
    "check_sessions",
    "check_spread",
    "fit_context",
    "one_blas_thread",
    "own",
    "restore_on_failure",
    "validate_data",
    "warn_caller",
]

fit_context = _fit_context

# A warning is about the line that called into one of these folders.
_NOT_THE_CALLER = tuple(
    os.path.dirname(os.path.abspath(file)) + os.sep
    for file in (__file__, sklearn.__file__, joblib.__file__)
)

# The squares of larger numbers, summed over a long record, leave double precision.
MAX_MAGNITUDE = 1e100
# The squares of smaller standard deviations underflow.
MIN_SPREAD = 1e-150

MODEL_CONSTRAINTS = {
    "hidden_layer_sizes": [Interval(Integral, 1, None, closed="left"), "array-like"],
    "activation": [StrOptions(set(ACTIVATIONS))],
    "groups": [StrOptions(set(GROUPS)), list, tuple],
    "reg_lambda": [Interval(Real, 0, None, closed="left"), "array-like"],
    "kappa_variance": [Interval(Real, 0, None, closed="left")],
    "kappa_weight": [Interval(Real, 0, None, closed="left")],
    "reweight": ["boolean"],
    "noise_variance": [
        StrOptions({"auto"}),
        Interval(Real, 0, None, closed="neither"),
        "array-like",
    ],
    "curvature": [StrOptions({"auto", "full", "diag"})],
    "solver": [StrOptions({"lm", "lbfgs", "adam"})],
    "max_cycles": [Interval(Integral, 1, None, closed="left")],
    "max_iter": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "normalize": ["boolean"],
    "n_restarts": [Interval(Integral, 1, None, closed="left")],
    "n_jobs": [Integral, None],
    "warm_start": ["boolean"],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


class FitInterrupted(KeyboardInterrupt):
    """Ctrl-C after a usable model has been stored (``warm_start=True``)."""


def restore_on_failure(fit):
    """Leave the estimator as it was when its refit fails or is interrupted."""

    @functools.wraps(fit)
    def wrapper(self, *args, **kwargs):
        before = dict(self.__dict__)
        try:
            return fit(self, *args, **kwargs)
        except FitInterrupted:
            raise
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return wrapper


def one_blas_thread():
    """A context with one BLAS thread.

    The matrices of a fit are small, where a second thread costs more than it brings
    (measured: four times slower with two), and one thread makes the rounding, so the
    result, independent of ``n_jobs``.
    """
    return _get_threadpool_controller().limit(limits=1, user_api="blas")


def warn_caller(message, category):
    """Warn of a line of the user's, however deep in this package the cause is.

    Methods are wrapped, by scikit-learn as well, and not all equally often: no number
    of levels is right for all of them.
    """
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_CALLER):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def check_hidden_layer_sizes(hidden_layer_sizes):
    """A tuple of widths."""
    sizes = np.atleast_1d(np.asarray(hidden_layer_sizes))
    integral = sizes.size == 0 or np.issubdtype(sizes.dtype, np.integer)
    if sizes.ndim != 1 or not integral or (sizes.size and sizes.min() < 1):
        raise ValueError(
            "hidden_layer_sizes must be a positive integer or a sequence of positive "
            f"integers, one a hidden layer; got {hidden_layer_sizes!r}."
        )
    return tuple(int(size) for size in sizes)


def check_groups(groups):
    """A tuple of distinct group kinds."""
    kinds = (groups,) if isinstance(groups, str) else tuple(groups)
    unknown = [kind for kind in kinds if kind not in GROUPS]
    if unknown or not kinds or len(set(kinds)) < len(kinds):
        raise ValueError(
            f"groups must be one of {GROUPS} or a sequence of distinct ones; "
            f"got {groups!r}."
        )
    return kinds


def check_reg_lambda(reg_lambda, n_layers, skip=False):
    """Strengths as an array, one a weight layer and one for the skip connection."""
    n_layers = n_layers + skip
    strengths = np.asarray(reg_lambda, dtype=np.float64)
    if strengths.ndim > 1 or (strengths.ndim == 1 and len(strengths) != n_layers):
        raise ValueError(
            f"reg_lambda must be a number or one number a weight layer ({n_layers} "
            f"here: the hidden layers, the output{', the skip' if skip else ''}); got "
            f"{reg_lambda!r}."
        )
    if not np.isfinite(strengths).all() or (strengths < 0).any():
        raise ValueError(
            f"reg_lambda must be finite and not negative; got {reg_lambda!r}."
        )
    return np.broadcast_to(strengths, (n_layers,)).copy()


def check_noise_variance(noise_variance, n_outputs):
    """Noise variances (n_outputs,) in squared units of y, or "auto"."""
    if isinstance(noise_variance, str):
        return noise_variance
    noise = np.asarray(noise_variance, dtype=np.float64)
    if noise.ndim > 1 or (noise.ndim == 1 and len(noise) != n_outputs):
        raise ValueError(
            "noise_variance must be 'auto', a number, or one number an output "
            f"({n_outputs} here); got {noise_variance!r}."
        )
    if not np.isfinite(noise).all() or (noise <= 0).any():
        raise ValueError(
            f"noise_variance must be finite and positive; got {noise_variance!r}."
        )
    return np.broadcast_to(noise, (n_outputs,)).copy()


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
            f"deviation of {spread[small[0]]:.3g} in column {small[0]}, expected at "
            f"least {MIN_SPREAD:.0e}. Rescale {name}."
        )


def check_outputs(y, name="y", *, allow_nan=True):
    """Measured outputs (n,) or (n, n_outputs) as float64, NaN for missing values."""
    return check_array(
        y,
        dtype=np.float64,
        ensure_2d=False,
        ensure_all_finite="allow-nan" if allow_nan else True,
        input_name=name,
    )


def own(array):
    """The array, copied unless it is C-ordered and writeable.

    A compiled kernel is specialised for layout and writeability; one kind of array
    means one compilation.
    """
    return np.require(array, requirements=["C", "W"])


def check_lengths(first, second, first_name, second_name):
    if len(first) != len(second):
        raise ValueError(
            f"{first_name} and {second_name} must have as many rows; got "
            f"inconsistent numbers of samples: {len(first)} and {len(second)}."
        )


def check_any_value(array, name):
    """Refuse columns that hold nothing but missing values."""
    empty = np.flatnonzero(np.isnan(array).all(axis=0))
    if len(empty):
        raise ValueError(
            f"{name} must hold at least one value in every column; columns "
            f"{empty.tolist()} are all NaN. Leave them out."
        )


def check_sessions(sessions, n_rows):
    """Session ids (n_rows,), or None."""
    if sessions is None:
        return None
    sessions = np.asarray(sessions)
    if sessions.shape != (n_rows,):
        raise ValueError(
            f"sessions must hold one id a row, shape ({n_rows},); got shape "
            f"{sessions.shape}."
        )
    return sessions


def check_session_lengths(starts, max_lag):
    """Refuse sessions in which not even one row can be predicted."""
    lengths = np.diff(starts)
    shortest = int(lengths.min())
    if shortest > max_lag:
        return
    if len(lengths) == 1:
        raise ValueError(
            f"X and y must have more rows than the longest lag, {max_lag}; found "
            f"n_samples={shortest}. Shorten input_lags and output_lags."
        )
    raise ValueError(
        f"sessions must be longer than the longest lag, {max_lag}; session number "
        f"{int(lengths.argmin())} has {shortest} rows. Leave it out, or shorten "
        "input_lags and output_lags."
    )
