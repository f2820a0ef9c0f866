"""Lags: which past values predict the present, and the matrix of them.

Signals are numbered inputs first, then outputs. The regressors are ordered like the
vector z(t) of equation (1): for each input its current value and its lags, then for
each output its lags.
"""

from collections.abc import Mapping
from numbers import Integral
from typing import NamedTuple

import numpy as np

from ..._saved_state import saved_as

# Farther back no lag reaches: lists of lags are made before data are looked at.
MAX_LAG = 100_000
# Fraction of all rows that may lie in sessions whose lengths do not count.
FEW = 0.1


@saved_as("Lags")
class Lags(NamedTuple):
    """The signal and the lag of each regressor.

    signal : (n_regressors,) int64, number of the signal
    lag : (n_regressors,) int64, how many rows back
    n_inputs, n_outputs : int, how many signals there are
    difference : whether the model predicts y(t) - y(t-1); the regressors of the outputs
        are then the differences y(t-l) - y(t-l-1)
    """

    signal: np.ndarray
    lag: np.ndarray
    n_inputs: int
    n_outputs: int
    difference: bool = False

    @property
    def max_lag(self):
        """Rows that must precede the one to predict."""
        if self.difference:
            far = self.lag + (self.signal >= self.n_inputs)
            return int(far.max(initial=1))
        return int(self.lag.max(initial=0))

    @property
    def output_reach(self):
        """Rows before the one to predict whose outputs are read."""
        of_outputs = self.lag[self.signal >= self.n_inputs]
        if self.difference:
            return int(of_outputs.max(initial=0)) + 1
        return int(of_outputs.max(initial=0))

    def by_name(self, input_names, output_names):
        """Two dicts, of inputs and of outputs: lists of lags by name."""
        lags = [
            self.lag[self.signal == k].tolist()
            for k in range(self.n_inputs + self.n_outputs)
        ]
        return (
            dict(zip(input_names, lags[: self.n_inputs], strict=True)),
            dict(zip(output_names, lags[self.n_inputs :], strict=True)),
        )


def expand_lags(lags, name):
    """The sorted list of lags that a number or an explicit list stands for."""
    if isinstance(lags, Integral) and not isinstance(lags, bool):
        if not 0 <= lags <= MAX_LAG:
            raise ValueError(
                f"{name} must not be negative, and at most {MAX_LAG}; got {lags!r}."
            )
        return list(range(1, int(lags) + 1))
    values = np.asarray(lags)
    integral = values.size == 0 or np.issubdtype(values.dtype, np.integer)
    smallest = 0 if name == "input_lags" else 1
    if (
        values.ndim != 1
        or not integral
        or (values < smallest).any()
        or (values > MAX_LAG).any()
        or len(np.unique(values)) < len(values)
    ):
        raise ValueError(
            f"{name} must be a number n, for the lags 1 to n, or a list of distinct "
            f"integers up to {MAX_LAG} and of at least {smallest}; got {lags!r}."
        )
    return sorted(int(lag) for lag in values)


def lags_behind(dead_times, n_lags, include_current_input, names):
    """Lags of inputs, by name: as many as usual, each input behind its dead time."""
    first = 0 if include_current_input else 1
    return {
        name: list(range(time + first, time + n_lags + 1))
        for name, time in zip(names, dead_times, strict=True)
    }


def lags_by_signal(lags, names, parameter):
    """For each signal its lags as the user gave them: the same for all, or by name."""
    if not isinstance(lags, Mapping):
        return [lags] * len(names)
    listed = ", ".join(map(repr, names)) or "none"
    unknown = [name for name in lags if name not in list(names)]
    if unknown:
        raise ValueError(
            f"{parameter} names signals that are not there: "
            f"{', '.join(map(repr, unknown))}. The names are {listed}."
        )
    missing = [name for name in names if name not in lags]
    if missing:
        raise ValueError(
            f"{parameter} must give the lags of every signal; missing: "
            f"{', '.join(map(repr, missing))}. The names are {listed}; [] leaves a "
            "signal out."
        )
    return [lags[name] for name in names]


def make_lags(
    n_inputs,
    n_outputs,
    input_lags,
    output_lags,
    include_current_input,
    names=None,
    difference=False,
):
    """The regressors for this many inputs and outputs.

    ``names`` are those of inputs and outputs, two lists; needed for lags by name.
    """
    input_names, output_names = names or (range(n_inputs), range(n_outputs))
    pairs = []
    for k, given in enumerate(lags_by_signal(input_lags, input_names, "input_lags")):
        of_input = expand_lags(given, "input_lags")
        # a list that belongs to one input is complete
        as_given = isinstance(input_lags, Mapping) and np.ndim(given) > 0
        if include_current_input and not as_given and 0 not in of_input:
            of_input = [0, *of_input]
        pairs += [(k, lag) for lag in of_input]
    of_outputs = lags_by_signal(output_lags, output_names, "output_lags")
    for k, given in enumerate(of_outputs):
        pairs += [(n_inputs + k, lag) for lag in expand_lags(given, "output_lags")]
    if not pairs:
        raise ValueError(
            "There is no regressor: set input_lags, output_lags or "
            f"include_current_input; got input_lags={input_lags!r}, "
            f"output_lags={output_lags!r} for {n_inputs} inputs."
        )
    signal, lag = np.array(pairs, dtype=np.int64).T.copy()
    return Lags(signal, lag, n_inputs, n_outputs, difference)


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
    """Names of the regressors, such as "u(t)", "u(t-1)", "y(t-1)".

    A difference y(t-1) - y(t-2) is "diff(y)(t-1)".
    """
    if lags.difference:
        output_names = [f"diff({name})" for name in output_names]
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
        if lags.difference and signal >= lags.n_inputs:
            rows = rows[finite[rows - lag - 1, signal]]
    if lags.difference:
        rows = rows[finite[rows - 1, lags.n_inputs :].all(axis=1)]
    return rows


def usual_length(starts):
    """Rows of the shortest session, but for short ones with a tenth of all rows.

    A fragment between two holes of a record must not limit what is learned elsewhere.
    """
    lengths = np.sort(np.diff(starts))
    return int(lengths[np.cumsum(lengths) > FEW * starts[-1]][0])


def is_complete(U, Y):
    """Which rows hold no NaN, (n_rows,) bool."""
    return np.isfinite(np.hstack([U, Y])).all(axis=1)


def n_complete_before(U, Y, starts):
    """Number of rows directly before each, in its session, that hold no NaN."""
    rows = np.arange(len(Y))
    incomplete = ~is_complete(U, Y)
    behind_gap = np.zeros(len(Y), dtype=np.int64)
    behind_gap[1:] = np.maximum.accumulate(np.where(incomplete, rows + 1, 0))[:-1]
    return rows - np.maximum(behind_gap, np.repeat(starts[:-1], np.diff(starts)))


def can_begin(U, Y, starts, n_rows, reach):
    """Rows in which a run can begin, (n_rows,) bool.

    Behind ``n_rows`` of their session without a missing input, and behind ``reach``
    without a missing output.
    """
    inputs = n_complete_before(U, Y[:, :0], starts) >= n_rows
    return inputs & (n_complete_before(U[:, :0], Y, starts) >= reach)


def build_lag_matrix(U, Y, lags, rows):
    """Regressors of the given rows, shape (len(rows), n_regressors)."""
    signals = [*U.T, *Y.T]
    Z = np.empty((len(rows), len(lags.lag)))
    for column, (signal, lag) in enumerate(zip(lags.signal, lags.lag, strict=True)):
        Z[:, column] = signals[signal][rows - lag]
        if lags.difference and signal >= lags.n_inputs:
            Z[:, column] -= signals[signal][rows - lag - 1]
    return Z


def added_outputs(Y, lags, rows):
    """What is added to the predictions of a network: the last outputs, or nothing."""
    return Y[rows - 1] if lags.difference else np.zeros((len(rows), Y.shape[1]))
