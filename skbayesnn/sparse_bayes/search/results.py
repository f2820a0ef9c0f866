"""What a search tells: ``cv_results_``, one line, and other public attributes."""

import numpy as np

from .candidates import Candidate, geometric_mean
from .one_step_errors import LAGS

# Columns of ``cv_results_`` that describe a candidate.
COLUMNS = (
    *("model", "fitted_to", "lag", "reg_lambda", "include_current_input"),
    *("output", "dead_time"),
)

# Ratio of the errors on single stretches, from which on it is worth a word.
UNEVEN = 5.0
# Name of the column of a stretch, as scikit-learn's searches have them.
_OF_STRETCH = "split{}_test_error"
# Fraction of the squared one-step errors that lags explain, from which on it is worth a
# word: without it, the errors would be smaller by 30 %.
POOR_ONE_STEP = 0.5


def search_attributes(found, others):
    """Public attributes of a search, with those of one estimator alone."""
    ensemble = found.model.ensemble
    return {
        "cv_results_": found.results,
        "summary_": summary(found.results, found.cut_short)
        + _of_outliers(others)
        + _of_one_step(found.explained_one_step),
        "estimators_": found.members.models,
        "estimator_weights_": ensemble.weights,
        **others,
        "band_factor_": found.model.bands.factor,
        "max_lag_": ensemble.max_lag,
        "n_outputs_": ensemble.n_outputs,
        "n_iter_": found.members.models[0].n_iter_,
    }


def _of_outliers(attributes):
    """How many outputs are held to be wrong, if any are."""
    n_wrong = int(np.count_nonzero(attributes.get("outliers_", ())))
    return f"; {n_wrong} outputs held to be wrong" if n_wrong else ""


def _of_one_step(explained):
    """That a simulator is no good predictor one step ahead, if it is none."""
    if not explained >= POOR_ONE_STEP:
        return ""
    return (
        f"; a linear model of {LAGS} lags explains {explained:.0%} of its squared "
        "errors one step ahead: for forecasts, use focus='prediction'"
    )


def summarize(table, kept, references, names=COLUMNS):
    """``cv_results_``: the references, then the candidates, the chosen ones first."""
    candidates = [*kept, *(c for c in table.errors if c not in kept)]
    rows = [Candidate(name, "", 0, np.nan, False, output="") for name in references]
    rows += candidates
    errors = np.array([*references.values(), *(table.errors[c] for c in candidates)])
    # all are compared on the same stretches
    errors[:, np.isnan(errors[2:]).all(axis=0)] = np.nan
    columns = dict(zip(Candidate._fields, zip(*rows, strict=True), strict=True))
    columns["include_current_input"] = columns["current_input"]
    columns["dead_time"] = [row.dead_time for row in rows]
    results = {name: np.array(columns[name]) for name in names}
    tried = np.isfinite(errors)
    for k, of_stretch in enumerate(errors.T):
        results[_OF_STRETCH.format(k)] = of_stretch
    results["mean_test_error"] = np.array(
        [
            geometric_mean(row[row_tried])
            for row, row_tried in zip(errors, tried, strict=True)
        ]
    )
    results["drift"] = np.array([table.drifts.get(row, np.nan) for row in rows])
    results["n_folds"] = tried.sum(axis=1)
    results["kept"] = np.array([row in kept for row in rows])
    return results


def summary(results, cut_short=False):
    """One line: what was chosen, and its errors beside those of the references."""
    chosen = int(results["kept"].argmax())
    n_folds = sum(name.startswith("split") for name in results)
    names = [_OF_STRETCH.format(k) for k in range(n_folds)]
    errors = np.column_stack([results[name] for name in names])
    # of all on the stretches of what was chosen
    folds = np.isfinite(errors[chosen])
    tried = np.isfinite(errors) & folds
    error = np.array(
        [geometric_mean(row[of]) for row, of in zip(errors, tried, strict=True)]
    )
    linear = (results["reg_lambda"] == 0.0) & (results["model"] == "linear")
    linear &= (tried == folds).all(axis=1)
    parts = [
        f"mean {error[0]:.3g}",
        f"last value {error[1]:.3g}",
    ]
    if linear.any():
        parts.append(f"linear ARX {error[linear].min():.3g}")
    kind = {"prediction": "one-step", "simulation": "free-run"}
    return (
        f"{_describe(results, chosen)}, reg_lambda {results['reg_lambda'][chosen]:g}, "
        f"fitted to {kind[results['fitted_to'][chosen]]} errors"
        f"{_of_other_kinds(results, chosen)}: held-out error {error[chosen]:.3g} "
        f"standard deviations of y ({', '.join(parts)})"
        f"{_of_stretches(folds.sum()) if cut_short else ''}"
        f"{_of_spread(errors[chosen][folds])}"
        f"{_of_drift(results['drift'][chosen], error[chosen])}"
    )


def _of_spread(errors):
    """That the error depends on the stretch by much: its mean promises too much."""
    low, high = errors.min(), errors.max()
    if not high > UNEVEN * low:
        return ""
    return f"; from {low:.2g} to {high:.2g} on single stretches"


def _of_drift(drift, error):
    """That the error promises too much: known rows hold runs, new records do not."""
    # NaN where it was not measured
    if not drift > error:
        return ""
    return f"; expect more in a new record, where fits drift apart by {drift:.2g}"


def _of_stretches(n):
    """On how many stretches candidates were compared, where the time was over."""
    stretches = "1 stretch" if n == 1 else f"{n} stretches"
    return f"; by {stretches}, as the time for the search was over"


def _describe(results, row):
    said = " for differences" if results["output"][row] == "difference" else ""
    if results["model"][row] == "states":
        return f"network of {results['n_states'][row]} hidden states{said}"
    first = "0" if results["include_current_input"][row] else "1"
    if results["dead_time"][row]:
        said = f" behind a dead time of {results['dead_time'][row]} rows{said}"
    return f"{results['model'][row]} of lags {first} to {results['lag'][row]}{said}"


def _of_other_kinds(results, chosen):
    """That the ensemble holds networks of another kind than the best."""
    kinds, best = results["model"][results["kept"]], results["model"][chosen]
    if (kinds == best).all():
        return ""
    other = {"states": "lags", "network": "hidden states"}[str(best)]
    return f", mixed with networks of {other}"
