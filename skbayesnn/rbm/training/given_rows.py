"""Rows as a user gives them: checked, and each counted as its weight says."""

import re

import numpy as np
import scipy.sparse as sp
from scipy.stats import spearmanr
from sklearn.exceptions import DataConversionWarning

from ..._random import Stream, generator
from ..._validation import check_sample_weight, check_sparse, validate_data
from ..._warnings import warn_caller
from .row_probabilities import log_probabilities
from .rows import Rows
from .start import independent_model

# Rows that count, of which an index is kept in memory.
_MAX_ROWS = 10**8
# Mean weight of the rows that have one, below which to leave out so many of them is
# rather a mistake.
_LEAST_WEIGHT = 0.5
# Copies of a row, on average, from which on a model can follow those in training.
_MANY_COPIES = 1.5
# Mean to which weights that are no counts are best brought: with 1, many rows of small
# weights get no copy at all.
_FINE_MEAN = 10
# Standard errors of a correlation that is no chance.
_SURELY = 2.0
# Between these lies the largest value of images of bytes.
_DARK, _WHITE = 127, 255
# What is to be done about missing values, by what the rows are for.
_LEARNS = (
    "An RBM learns from complete rows: leave out those with a missing value, "
    "X[~np.isnan(X).any(axis=1)]; the fitted model then fills in the others by "
    "impute(X). Or fill them in before, by an imputer of scikit-learn in a pipeline."
)
_KNOWS = (
    "This method takes complete rows: fill in missing values by impute(X) of the "
    "fitted model, or leave out these rows, X[~np.isnan(X).any(axis=1)]."
)


def check_rows(estimator, X, *, reset, allow_nan=False, name="X"):
    """Validate ``X``, of any dtype and dense or CSR, and wrap it as `Rows`.

    ``reset`` in a fit; messages give the data the ``name``.
    """
    if sp.issparse(X):
        X = check_sparse(X)
    elif isinstance(X, list | tuple):
        X = _from_lists(X)
    try:
        X = validate_data(
            estimator,
            X,
            accept_sparse="csr",
            dtype="numeric",
            ensure_all_finite="allow-nan" if allow_nan else True,
            reset=reset,
        )
    except (TypeError, ValueError) as error:
        text = _refusal(str(error), reset, name)
        if text == str(error):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(text) from error
    check_range(X, estimator.binarize, name)
    # a row to be transformed may be empty
    if reset and (estimator.binarize or 0.0) > 0.0:
        _warn_of_emptied_rows(X, estimator.binarize)
    return Rows(X, estimator.binarize)


def _refusal(text, reset, name):
    """The message of an error about X: what is to be done, and which rows it is of."""
    # of scikit-learn; a mask is refused by another message
    if text.startswith("Input X contains NaN"):
        remedy = _KNOWS if name == "X" and not reset else _LEARNS
        text = f"Input X contains NaN. {remedy}"
    if name == "X":
        return text
    if "0 sample(s)" in text:
        return f"{name} must hold at least one row; got none."
    text = re.sub(r"\bX\b", name, text.replace("Input X", "X"))
    return text if name in text else f"{name}: {text}"


def _from_lists(X):
    """An array from rows as lists.

    scikit-learn converts objects of arrays to numbers, but not those of lists.
    """
    try:
        return np.asarray(X)
    except ValueError as error:
        raise ValueError(
            "The rows of X, or of X_val, differ in their numbers of values: expected a "
            "matrix of shape (n_samples, n_features), without targets beside it."
        ) from error


def check_weights(sample_weight, rows):
    """How many times each row counts (n_rows,) float64, or None."""
    weights = check_sample_weight(sample_weight, rows.X)
    if weights is None:
        return None
    total, n_weighed = float(weights.sum()), np.count_nonzero(weights)
    if not 1.0 <= total <= _MAX_ROWS:
        raise ValueError(
            "sample_weight says how many times each row counts, and must sum to 1 to "
            f"{_MAX_ROWS:.0e}; found {total:.3g}. Multiply it by "
            + (_factor(n_weighed, total) if total < 1.0 else _at_most(total))
        )
    if total < _LEAST_WEIGHT * n_weighed:
        warn_caller(
            "sample_weight says how many times each row counts, and sums to "
            f"{total:.3g} for {n_weighed} rows: training sees {total:.0f} of them, "
            f"drawn at random. Multiply it by {_factor(n_weighed, total)}",
            DataConversionWarning,
        )
    return weights


def _factor(n_weighed, total):
    """What brings weights, which are no counts, to a mean that is fine enough."""
    mean = min(_FINE_MEAN, _MAX_ROWS / n_weighed)
    return (
        f"{mean * n_weighed / total:.3g}, for a mean of {mean:.3g}. A row gets a whole "
        "number of copies, rounded at random: with a mean of 1, many rows of small "
        "weights would get none."
    )


def _at_most(total):
    """What brings weights to as many rows as an index can have."""
    return f"a factor of at most {_MAX_ROWS / total:.3g}."


def counted_rows(rows, weights, seed):
    """The rows, each as many times as its weight says.

    Weights between integers are rounded up or down at random, right on average and so
    that their sum is, by systematic sampling. They say how much an observation matters,
    whose copies stay together; integers count observations that are equal.
    """
    if weights is None:
        return rows
    offset = generator(seed, Stream.SAMPLE_WEIGHTS).uniform()
    # what is an integer stays one in the sums
    whole = np.floor(weights)
    edges = np.floor(np.cumsum(weights - whole) + offset)
    times = (whole + np.diff(edges, prepend=0.0)).astype(np.int64)
    return rows.repeated(times, together=bool((weights != whole).any()))


def warn_if_no_counts(rows):
    """Warn of integer weights that tell nothing of how likely the rows are.

    Of equal observations there are the more, the more likely they are. Else, as where
    the weights are those of a survey, the held-out rows would be copies of rows that
    training sees.
    """
    if rows.together or rows.index is None:
        return
    distinct, times = np.unique(rows.index, return_counts=True)
    n_rows = len(distinct)
    has_most_states = np.log2(2 * n_rows) >= rows.n_features
    if times.sum() < _MANY_COPIES * n_rows or has_most_states:
        return
    once = Rows(rows.X, rows.threshold, distinct)
    values = log_probabilities(independent_model(once), once)
    correlation = 0.0
    if np.ptp(times) and np.ptp(values):
        correlation = spearmanr(times, values).statistic
    if correlation * np.sqrt(n_rows - 1) > _SURELY:
        return
    warn_caller(
        "sample_weight holds integers, which count equal observations, so that copies "
        "of a row may be in training as well as held out. But rows with larger weights "
        "are not more probable by the features. If these are weights of another kind, "
        f"the model follows the training rows too far: {_as_fractions(times)}.",
        DataConversionWarning,
    )


def _as_fractions(times):
    """What makes integers weights of another kind, with a mean that is fine enough."""
    if not np.ptp(times):
        return "leave them out, as all are equal"
    divisor = np.gcd.reduce(times)
    scale = _FINE_MEAN * divisor / times.mean()
    # by the smallest integers in the same proportions, of which one is odd
    scale = np.floor(scale) + 0.5 if scale >= 1.0 else min(scale, 0.9)
    factor = scale / divisor
    return (
        f"multiply them by {factor:.4g}. Not all are integers then, and copies of a "
        f"row are held out together. Their mean is {factor * times.mean():.3g}: a row "
        "gets a whole number of copies, and with a mean of 1, many rows of small "
        "weights would get none"
    )


def result_dtype(X):
    """Type of the parameters of a model of ``X``: float64 only for float64."""
    return np.dtype(np.float64 if X.dtype == np.float64 else np.float32)


def check_range(X, threshold, name="X"):
    """Refuse values that are not probabilities, or warn of them."""
    values = X.data if sp.issparse(X) else X
    if values.dtype == bool or not values.size:
        return
    # a minimum that leaves NaN out, without a warning where there is nothing else
    low, high = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
    if sp.issparse(X) and X.nnz < X.shape[0] * X.shape[1]:
        # what a sparse matrix does not hold is 0
        low, high = min(low, 0), max(high, 0)
    if not (low < 0 or high > 1):
        return
    if threshold is None:
        raise ValueError(
            f"With binarize=None, {name} holds probabilities: expected values in "
            f"[0, 1], found {low:.4g} to {high:.4g}. Scale X, or set binarize to the "
            "threshold above which a value is 1."
        )
    # any other threshold has been chosen for such data
    if 0 < threshold < 1:
        # halves, whose sum does not overflow
        middle = f"{0.5 * float(low) + 0.5 * float(high):.4g}"
        fitting = f"between {low:.4g} and {high:.4g}, or encode categories one by one"
        # those of a sparse matrix, and 0, which it may not hold
        others = low == 0 if sp.issparse(X) else True
        if low == high:
            fitting = f"less than {low:.4g} if that means 1"
        elif others and ((values == low) | (values == high)).all():
            fitting = f"{middle} for {low:.4g} and {high:.4g}"
        elif low >= 0 and _DARK < high <= _WHITE:
            fitting = "127 for images with values of 0 to 255"
        taken = "that is all of them" if low > threshold else "all others as 0"
        warn_caller(
            f"{name} has values outside [0, 1] ({low:.4g} to {high:.4g}): those above "
            f"binarize={threshold} were taken as 1, {taken}. Pass the "
            f"threshold that fits your data, {fitting}; "
            "what is missing is NaN, not a number such as -1.",
            DataConversionWarning,
        )


def _warn_of_emptied_rows(X, threshold):
    """Warn if most rows that hold anything hold nothing above the threshold.

    As weights of words do, whose squares sum to one in each row; or if none does.
    """
    if sp.issparse(X):
        largest = np.asarray(X.max(axis=1).todense()).ravel()
    else:
        largest = np.fmax.reduce(X, axis=1)
    largest = np.asarray(largest, dtype=np.float64)
    filled = largest > 0
    emptied = filled & (largest <= threshold)
    if threshold >= 1 and emptied.any() and (emptied == filled).all():
        warn_caller(
            f"No value of X is above binarize={threshold}, the largest is "
            f"{largest.max():.4g}: all were taken as 0. Pass a threshold below it.",
            DataConversionWarning,
        )
    elif threshold < 1 and 2 * emptied.sum() > filled.sum():
        warn_caller(
            f"{np.count_nonzero(emptied)} of {len(largest)} rows hold values above 0, "
            f"but none above binarize={threshold}, and were taken as all 0. Pass "
            "binarize=0.0 to tell what is there from what is not, as for counts and "
            "weights of words.",
            DataConversionWarning,
        )
