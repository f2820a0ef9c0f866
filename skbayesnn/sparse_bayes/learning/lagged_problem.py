"""The problem of a lagged model: its windows, its stages, and what ranks its starts."""

import numpy as np

from ... import _validation as checks
from ..records.lags import added_outputs, build_lag_matrix, complete_rows
from ..records.layout import simulation_stages, typical_step
from .runs_to_score import free_runs_through, steps_through
from .session_parts import held_out_rows


def part_to_fit(record, selection, fraction):
    """The record, for "validation" without the outputs at the end of each session."""
    if selection != "validation":
        return record
    Y = record.Y.copy()
    Y[held_out_rows(record.starts, fraction)] = np.nan
    checks.check_any_value(Y, "y without its validation stretch")
    return record._replace(Y=Y)


def windows(record):
    """Regressors and targets of all rows with a complete window."""
    U, Y, lags, starts = record
    rows = complete_rows(U, Y, lags, starts)
    if len(rows) < 2:
        raise ValueError(
            f"X and y hold {len(rows)} complete windows of {lags.max_lag + 1} rows "
            "without a missing value; at least 2 are needed. Shorten input_lags "
            "and output_lags, fill the gaps, or take SparseBayesStateSpaceRegressor, "
            "which passes over missing outputs."
        )
    return build_lag_matrix(U, Y, lags, rows), Y[rows] - added_outputs(Y, lags, rows)


def for_free_runs(problem, record, seen, horizons, estimate_initial):
    """The problem with the errors of free runs through the rows that are ``seen``.

    ``estimate_initial`` tells whether the outputs before each session are estimated.
    """
    scaling, step_variance = problem.scaling, None
    if estimate_initial:
        step_variance = typical_step(seen.Y, seen.starts) / scaling.y_scale**2
    arguments = seen, problem.data, scaling, horizons, step_variance
    return problem._replace(
        stages=simulation_stages(*arguments),
        one_step=steps_through(record, scaling, record.Y),
    )


def with_ranking(problem, selection, record, seen):
    """The problem with the free runs that rank its starts, unless by "evidence"."""
    if selection == "evidence":
        return problem
    target = record.Y
    if selection == "validation":
        # only what the fit did not see
        target = np.where(np.isfinite(seen.Y), np.nan, target)
    return problem._replace(ranking=free_runs_through(record, problem.scaling, target))
