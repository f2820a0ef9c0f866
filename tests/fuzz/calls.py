"""What a fitted estimator is asked for, and what it must answer."""

import pickle

import numpy as np
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils import check_array

COUNTS = [1, 2, 5, 0, -1, 2.5, None, "many"]
HORIZONS = [1, 2, 5, None, 10**30, 0, -1, 2.0, "far"]
SEEDS = [0, None, 7, "seed", -1]


class Wrong(AssertionError):
    """An answer that is not what the documentation says."""


def check(condition, text):
    if not condition:
        raise Wrong(text)


def numbers(array, shape, dtype="float64", name="result", missing=False):
    """Finite numbers of a shape and type; NaN where the caller says so."""
    check(isinstance(array, np.ndarray), f"{name} is a {type(array).__name__}")
    check(array.shape == shape, f"{name} has shape {array.shape}, not {shape}")
    check(array.dtype == dtype, f"{name} has dtype {array.dtype}, not {dtype}")
    bad = ~np.isfinite(array)
    bad &= ~(np.isnan(array) if missing else np.zeros_like(bad))
    check(not bad.any(), f"{name} holds {array[bad][:3]}")


def n_rows_of(X):
    return X.shape[0] if hasattr(X, "shape") else len(X)


def with_std(pair, shape, missing):
    mean, std = pair
    numbers(mean, shape, name="mean", missing=missing)
    numbers(std, shape, name="std", missing=missing)
    check((std[np.isfinite(std)] >= 0).all(), "a standard deviation is negative")
    check(np.isfinite(std[np.isfinite(mean)]).all(), "a mean without a std")


def fitted_numbers(model):
    """What a fit has set is finite."""
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_"):
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, float | np.ndarray):
                    part = np.asarray(part)
                    if part.dtype.kind == "f":
                        check(np.isfinite(part).all(), f"{name} holds {part}")


# Calls of regressors and RBMs: of the model, the arguments of its fit, data with a NaN
# that is allowed, and values that hypothesis has drawn.


def predict(model, X, y, missing, values):
    shape = (n_rows_of(X), *np.shape(y)[1:])
    numbers(model.predict(X), shape, missing=missing)
    with_std(model.predict(X, return_std=True), shape, missing)


def draws(model, X, y, missing, values):
    n_samples = values["count"]
    found = model.sample_y(X, n_samples=n_samples, random_state=values["seed"])
    shape = (n_rows_of(X), *np.shape(y)[1:], n_samples)
    numbers(found, shape, missing=missing)


def as_mlp(model, X, y, missing, values):
    regressor = model.to_mlp_regressor()
    prediction = regressor.predict(check_array(X, dtype=float))
    mean = model.predict(X).reshape(prediction.shape)
    scale = np.abs(mean).max(initial=0.0)
    off = np.abs(prediction - mean).max(initial=0.0)
    check(off <= 1e-6 * scale + 1e-300, f"the MLPRegressor is {off} off")


def score(model, X, y, missing, values):
    value = model.score(X, y)
    n_scored = n_rows_of(X) - getattr(model, "max_lag_", 0)
    check(isinstance(value, float) and not value > 1.0, f"the score is {value!r}")
    # R2 is no number for one row; it is minus infinity for a model that diverged
    check(
        n_scored < 2 or (missing and value < 0) or np.isfinite(value), f"it is {value}"
    )


def saved(model, X, y, missing, values):
    again = pickle.loads(pickle.dumps(model))
    method = "transform" if hasattr(model, "transform") else "predict"
    first, second = getattr(again, method)(X), getattr(model, method)(X)
    check(np.array_equal(first, second, equal_nan=True), "a pickle gives other results")
    clone(model)


def ahead(model, X, y, missing, values):
    shape = (n_rows_of(X), *np.shape(y)[1:])
    arguments = {"horizon": values["horizon"]}
    numbers(model.predict(X, y, **arguments), shape, missing=missing)
    with_std(model.predict(X, y, **arguments, return_std=True), shape, missing)


def free_run(model, X, y, missing, values):
    shape = (n_rows_of(X), *np.shape(y)[1:])
    start = check_array(y, dtype=float, ensure_2d=False, ensure_all_finite=False)
    start = start[: max(1, model.max_lag_)]
    numbers(model.predict(X, y_init=start), shape, missing=missing)
    with_std(model.predict(X, y_init=start, return_std=True), shape, missing)


def row_by_row(model, X, y, missing, values):
    stream = model.stream()
    U = check_array(X, dtype=float, ensure_all_finite=False, ensure_min_samples=0)
    for row in U[:3]:
        stream.step(row)
    once, state = model.predict(U, return_state=True)
    numbers(once, (len(U), *np.shape(y)[1:]), missing=missing)
    model.predict(U, state=state)


def exported(model, X, y, missing, values):
    """The state space runs as the model does, unless one of its networks diverges."""
    U = check_array(X, dtype=float, ensure_all_finite=False, ensure_min_samples=0)[:10]
    networks = getattr(model, "estimators_", [model])
    if not all(np.isfinite(one.predict(U)).all() for one in networks):
        return
    expected = model.predict(U).reshape(len(U), -1)
    off = np.abs(model.to_state_space().simulate(U) - expected).max(initial=0.0)
    scale = np.abs(expected).max(initial=0.0)
    check(off <= 1e-6 * scale + 1e-300, f"the state space is {off} off")


def sessions(model, X, y, missing, values):
    kinds = {"count": np.zeros, "seed": np.arange}
    ids = kinds["count" if values["seed"] is None else "seed"](n_rows_of(X))
    shape = (n_rows_of(X), *np.shape(y)[1:])
    numbers(model.predict(X, y, sessions=ids), shape, missing=missing)


def lagged_draws(model, X, y, missing, values):
    n_samples = values["count"]
    found = model.sample_y(
        X, y, horizon=values["horizon"], n_samples=n_samples, random_state=0
    )
    numbers(found, (n_rows_of(X), *np.shape(y)[1:], n_samples), missing=missing)


def features(model, X, y, missing, values):
    hidden = model.transform(X)
    numbers(hidden, (n_rows_of(X), model.n_components_), hidden.dtype)
    check(hidden.dtype in (np.float32, np.float64), f"features are {hidden.dtype}")
    visible = model.inverse_transform(hidden)
    numbers(visible, (n_rows_of(X), model.n_features_in_), visible.dtype)


def likelihoods(model, X, y, missing, values):
    for name in ("score_samples", "free_energy", "pseudo_likelihood"):
        value = getattr(model, name)(X)
        numbers(value, (n_rows_of(X),), value.dtype, name)
    check(np.isfinite(model.score(X)), "the score is not finite")
    check(np.isfinite(model.log_partition_), "log_partition_ is not finite")


def partition(model, X, y, missing, values):
    method = {1: "exact", 2: "reverse_ais", 5: "both"}.get(values["count"], "ais")
    found = model.log_partition(
        method, betas=20, n_chains=values["count"], random_state=values["seed"]
    )
    check(np.isfinite(found.log_partition), f"{method} is not finite")


def chains(model, X, y, missing, values):
    found = model.gibbs(X, values["count"], random_state=values["seed"])
    states(found, (n_rows_of(X), model.n_features_in_))


def samples(model, X, y, missing, values):
    n_samples = values["count"]
    found = model.sample(n_samples, n_steps=4, random_state=values["seed"])
    states(found, (n_samples, model.n_features_in_))


def states(found, shape):
    numbers(found, shape, found.dtype)
    check(np.isin(found, (0, 1)).all(), "states are 0 or 1")


def imputed(model, X, y, missing, values):
    rows = np.full((3, model.n_features_in_), np.nan)
    found = model.impute(rows, n_steps=values["count"], random_state=0)
    numbers(found, rows.shape, found.dtype)
    check(((found >= 0) & (found <= 1)).all(), "an imputed value is no probability")


def truncated(model, X, y, missing, values):
    fewer = model.truncate(values["count"])
    check(fewer.n_components_ == values["count"], "truncate keeps other units")
    features(fewer, X, y, missing, values)


def more_rows(model, X, y, missing, values):
    again = clone(model).partial_fit(X).partial_fit(X)
    numbers(again.components_, again.components_.shape, again.components_.dtype)


STATIC = [predict, draws, as_mlp, score, saved]
LAGGED = [predict, ahead, free_run, row_by_row, exported, sessions, lagged_draws]
LAGGED += [score, saved]
BINARY = [features, likelihoods, partition, chains, samples, imputed, truncated]
CALLS = {
    "mlp": STATIC,
    "narx": LAGGED,
    "search": LAGGED,
    "system": LAGGED,
    "states": LAGGED,
    "cd": [*BINARY, more_rows, saved],
    "fw": [*BINARY, more_rows, saved],
}


@st.composite
def values(draw):
    """Arguments of calls."""
    return {
        "count": draw(st.sampled_from([2, 2, 2, *COUNTS])),
        "horizon": draw(st.sampled_from([1, 1, 2, None, *HORIZONS])),
        "seed": draw(st.sampled_from([0, 0, *SEEDS])),
    }
