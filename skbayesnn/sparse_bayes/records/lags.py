"""Lags: which past values predict the present, and the matrix of them.

Signals are numbered inputs first, then outputs. The regressors are ordered like the
vector z(t) of equation (1): for each input its current value and its lags, then for
each output its lags.
"""

from typing import NamedTuple

import numpy as np


class Lags(NamedTuple):
    """One regressor a position.

    signal : (n_regressors,) int64, number of the signal
    lag : (n_regressors,) int64, how many rows back
    n_inputs, n_outputs : int, how many signals there are
    """

    signal: np.ndarray
    lag: np.ndarray
    n_inputs: int
    n_outputs: int

    @property
    def max_lag(self):
        return int(self.lag.max(initial=0))


def expand_lags(lags, name):
    """The sorted list of lags that a number or an explicit list stands for."""
    if np.ndim(lags) == 0:
        if lags < 0:
            raise ValueError(f"{name} must not be negative; got {lags!r}.")
        return list(range(1, int(lags) + 1))
    values = np.asarray(lags)
    integral = values.size == 0 or np.issubdtype(values.dtype, np.integer)
    smallest = 0 if name == "input_lags" else 1
    if (
        values.ndim != 1
        or not integral
        or (values < smallest).any()
        or len(np.unique(values)) < len(values)
    ):
        raise ValueError(
            f"{name} must be a number n, for the lags 1 to n, or a list of distinct "
            f"integers of at least {smallest}; got {lags!r}."
        )
    return sorted(int(lag) for lag in values)


def make_lags(n_inputs, n_outputs, input_lags, output_lags, include_current_input):
    """The regressors for this many inputs and outputs."""
    of_inputs = expand_lags(input_lags, "input_lags")
    if include_current_input and 0 not in of_inputs:
        of_inputs = [0, *of_inputs]
    of_outputs = expand_lags(output_lags, "output_lags")
    pairs = [(k, lag) for k in range(n_inputs) for lag in of_inputs]
    pairs += [(n_inputs + k, lag) for k in range(n_outputs) for lag in of_outputs]
    if not pairs:
        raise ValueError(
            "There is no regressor: set input_lags, output_lags or "
            f"include_current_input; got input_lags={input_lags!r}, "
            f"output_lags={output_lags!r} for {n_inputs} inputs."
        )
    signal, lag = np.array(pairs, dtype=np.int64).T.copy()
    return Lags(signal, lag, n_inputs, n_outputs)


def union_of_lags(all_lags):
    """Every regressor that is in any of several `Lags` with the same signals."""
    pairs = {
        pair
        for lags in all_lags
        for pair in zip(lags.signal.tolist(), lags.lag.tolist(), strict=True)
    }
    signal, lag = np.array(sorted(pairs), dtype=np.int64).T.copy()
    return all_lags[0]._replace(signal=signal, lag=lag)


def lagged_names(lags, input_names, output_names):
    """Names of the regressors, such as "u(t)", "u(t-1)", "y(t-1)"."""
    names = [*input_names, *output_names]
    return [
        f"{names[signal]}(t-{lag})" if lag else f"{names[signal]}(t)"
        for signal, lag in zip(lags.signal, lags.lag, strict=True)
    ]


def complete_rows(U, Y, lags, starts):
    """Rows whose outputs and regressors lie in their session and hold no NaN."""
    n_rows = len(Y)
    rows = np.arange(n_rows)
    first = np.repeat(starts[:-1], np.diff(starts))
    rows = rows[rows - first >= lags.max_lag]
    rows = rows[np.isfinite(Y[rows]).all(axis=1)]
    finite = np.isfinite(np.concatenate([U, Y], axis=1))
    for signal, lag in zip(lags.signal, lags.lag, strict=True):
        rows = rows[finite[rows - lag, signal]]
    return rows


def build_lag_matrix(U, Y, lags, rows):
    """Regressors of the given rows, shape (len(rows), n_regressors)."""
    signals = [*U.T, *Y.T]
    Z = np.empty((len(rows), len(lags.lag)))
    for column, (signal, lag) in enumerate(zip(lags.signal, lags.lag, strict=True)):
        Z[:, column] = signals[signal][rows - lag]
    return Z
