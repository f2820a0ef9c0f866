"""Values of constructor parameters: usual, rare, extreme and wrong ones."""

import contextlib

import numpy as np
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from skbayesnn import (
    ContrastiveDivergenceRBM,
    DynamicSystemRegressor,
    FrankWolfeRBM,
    SparseBayesMLPRegressor,
    SparseBayesNARXRegressor,
    SparseBayesNARXRegressorCV,
    SparseBayesStateSpaceRegressor,
)

FLOATS = [0.0, 1e-3, 0.5, 1.0, 3.0, 1e4, 1e-12, 1e-90, 1e90, 1e-320, 1e308]
WRONG_FLOATS = [-1.0, np.nan, np.inf, -np.inf, "many", None, 1j]
REALS = [*FLOATS, np.float32(0.5), np.int64(2), True, *WRONG_FLOATS]
FRACTIONS = [0.0, 0.1, 0.5, 0.99, 1.0, 1e-300, *WRONG_FLOATS]
COUNTS = [1, 2, 3, np.int64(2), 0, -1, 2.0, "many", None, True, np.nan]
HUGE = 10**30
BOOLEANS = [True, False, np.True_, 1, "yes", None]
JOBS = [None, 1, np.int64(1), 1.5, "all"]
SEEDS = [None, 0, np.uint8(7), "state", 1.5, -1, 2**40, "seed"]
VERBOSE = [False, 0, None]
INITIAL = [("arrays", 2), ("arrays", 5), ([], []), "random", "ones", None, "fitted"]

NETWORK = {
    "hidden_layer_sizes": [
        *[1, 3, (), (2, 2), np.array([2, 1]), np.int64(2), (1,) * 5, 0, -1],
        *["many", (0,), (2.5,), None, ((2,),), np.nan, (-1,), 2.0, ("a",)],
    ],
    "activation": ["tanh", "relu", "logistic", "sine", None, 3],
    "groups": [
        *["element", "row", "column", "layer", ("row", "column"), ["layer"], (), "all"],
        *[("row", "row"), ("row", "all"), None, (3,)],
    ],
    "reg_lambda": [*REALS, [1.0], [1.0, 2.0], (1.0, 2.0, 3.0), [np.nan], ["a"], [[1]]],
    "kappa_variance": REALS,
    "kappa_weight": REALS,
    "reweight": BOOLEANS,
    "noise": ["gaussian", "student_t", "cauchy", None],
    "noise_variance": ["auto", *REALS, [1.0], [1.0, 2.0], [-1.0], [np.nan], ["a"]],
    "curvature": ["auto", "full", "diag", "none", None],
    "solver": ["lm", "lbfgs", "adam", "sgd", None],
    "max_cycles": [count for count in COUNTS if count is not True],
    "max_iter": ["auto", *COUNTS],
    "tol": REALS,
    "normalize": BOOLEANS,
    "n_restarts": [*COUNTS, HUGE],
    "warm_start": BOOLEANS,
    "n_jobs": JOBS,
    "random_state": SEEDS,
    "verbose": VERBOSE,
}
LAGS = [
    *["auto", (1, 2), {"x0": np.array([1])}],
    *[0, 1, 3, np.int64(2), [1], [1, 3], (2,), np.array([1, 2]), {"x0": 1}, {"y": 2}],
    *[10, 1000, HUGE, -1, [0], [], [-1], [1, 1], [2.5], {"a": 1}, "many", None],
    *[{"x0": [1, 2], "x1": 0}, {}, [[1]], np.nan, 2.0, {"y": [0]}, {"x0": None}],
]
LAGGED = {
    **NETWORK,
    "input_lags": LAGS,
    "output_lags": LAGS,
    "include_current_input": [*BOOLEANS, "auto"],
    "output": ["level", "difference", "slope", None],
    "focus": ["prediction", "simulation", "both", None],
    "horizon_schedule": [
        *["auto", [1, None], [None], [1, 2], (2, 5, None), [], [0], [None, 1], "all"],
        *[3, [1.5], ["a"], [HUGE, None]],
    ],
    "initial_conditions": ["measured", "estimated", "zero", None],
    "skip_connection": BOOLEANS,
    "n_estimators": [*COUNTS, HUGE],
    "selection": ["auto", "evidence", "simulation", "validation", "best", None],
    "weighting": ["uniform", "evidence", "validation", "best", None],
    "validation_fraction": FRACTIONS,
}
SEARCH = {
    name: LAGGED[name]
    for name in (
        *["activation", "focus", "groups", "hidden_layer_sizes", "horizon_schedule"],
        *["include_current_input", "initial_conditions", "kappa_variance"],
        *["kappa_weight", "n_jobs", "noise"],
        *["n_restarts", "random_state", "skip_connection", "verbose"],
    )
} | {
    "n_estimators": ["auto", *LAGGED["n_estimators"]],
    "lags": [
        *[(1,), (1, 2), [2], (3,), (1, 3), [2, 3], (2, 1)],
        *[(0,), (), (-1,), "all", None, (HUGE,), (100,), (1.5,), (2, 2), [[2], [3]]],
    ],
    "reg_lambdas": [
        (3.0,),
        (0.0, 1.0),
        (6.0,),
        [20.0],
        (0.5, 0.1),
        (1e99,),
        (),
        (-1.0,),
        (np.nan,),
        (1e308,),
        "all",
        ("a",),
    ],
    "checkpoint": [None, 3, "nowhere/at/all"],
    "cv": [2, 3, 5, 0, 1, -1, HUGE, 2.0, None, "all"],
    "max_time": [None, 1e-6, 100.0, 0.0, -1.0, np.nan, np.inf, "long"],
    "output": ["auto", *LAGGED["output"]],
    "outliers": ["replace", "keep", "drop"],
}
STATES = {
    name: LAGGED[name]
    for name in (
        *["groups", "hidden_layer_sizes", "kappa_variance"],
        *["kappa_weight", "max_cycles", "n_estimators", "n_jobs", "n_restarts"],
        *["noise", "noise_variance", "random_state", "reg_lambda", "tol", "verbose"],
        "output",
    )
} | {
    "activation": ["auto", *LAGGED["activation"]],
    "n_states": [count for count in COUNTS if count is not True],
    "linear_lags": [count for count in COUNTS if count is not True] + [100, HUGE],
}
DYNAMIC = {
    name: SEARCH[name]
    for name in (
        *["lags", "reg_lambdas", "checkpoint", "cv", "max_time", "focus", "noise"],
        *["hidden_layer_sizes", "n_estimators", "n_jobs", "random_state", "verbose"],
        *["outliers", "output"],
    )
} | {
    "kinds": [
        *["auto", "linear", "states", ("linear",), ["network"], ("states", "linear")],
        *["network", ("network", "states"), ["linear", "network"], ("states",)],
        *["narx", (), ("states", "narx"), None, 3],
    ],
    "n_states": ["auto", (1,), [1, 2], (0,), (), (2.5,), (HUGE,), ("a",), None, "many"],
    "max_cycles": NETWORK["max_cycles"],
}
RBM = {
    "n_components": [*COUNTS, 20, "auto"],
    "binarize": [0.5, 0.0, 1.0, None, 1e300, *WRONG_FLOATS],
    "batch_size": [*COUNTS, 10, HUGE],
    "learning_rate": ["auto", *REALS],
    "averaging": FRACTIONS,
    "early_stopping": BOOLEANS,
    "validation_fraction": FRACTIONS,
    "max_gap": REALS,
    "checkpoint": [None, 3, "nowhere/at/all"],
    "max_time": SEARCH["max_time"],
    "warm_start": BOOLEANS,
    "n_jobs": JOBS,
    "random_state": SEEDS,
    "verbose": VERBOSE,
    "init": INITIAL,
}
CONTRASTIVE = {
    **RBM,
    "schedule": ["linear", "constant", "inverse", "other", None],
    "max_iter": ["auto", *COUNTS],
    "n_gibbs_steps": ["auto", *COUNTS],
    "max_updates": COUNTS,
    "refit": BOOLEANS,
    "persistent": BOOLEANS,
    "momentum": FRACTIONS,
    "weight_decay": ["auto", *REALS],
    "centered": BOOLEANS,
}
GROWTH = {
    **RBM,
    "objective": ["likelihood", "linearized", "other", None],
    "unit_penalty": ["auto", *REALS],
    "radius": REALS,
    "alpha": ["count", "learn", *FLOATS[:5], 1e-320, 1e308, *WRONG_FLOATS],
    "away_steps": BOOLEANS,
    "units_per_step": COUNTS,
    "n_chains": [4, 8, 10, *COUNTS],
    "n_gibbs_steps": COUNTS,
    "n_search_rows": [*COUNTS, 10, HUGE],
    "max_search_iter": COUNTS,
    "n_bias_steps": COUNTS,
    "n_corrective_steps": COUNTS,
    "fine_tune": [None, "epochs", "rounds", 3, "auto"],
    "fine_tune_norm": REALS,
    "tol": REALS,
    "n_iter_no_change": COUNTS,
}
# Small and short fits; a case changes some of these, too.
TINY = {
    "mlp": (
        SparseBayesMLPRegressor,
        NETWORK,
        {"hidden_layer_sizes": 2, "max_cycles": 2, "random_state": 0},
    ),
    "narx": (
        SparseBayesNARXRegressor,
        LAGGED,
        {
            **{"hidden_layer_sizes": 2, "max_cycles": 2, "random_state": 0},
            **{"input_lags": 1, "output_lags": 1},
        },
    ),
    "search": (
        SparseBayesNARXRegressorCV,
        SEARCH,
        {
            **{"lags": (1,), "reg_lambdas": (3.0,), "cv": 2, "n_estimators": 1},
            **{"hidden_layer_sizes": 2, "max_cycles": 1, "random_state": 0},
        },
    ),
    "system": (
        DynamicSystemRegressor,
        DYNAMIC,
        {
            **{"lags": (1,), "n_states": (1,), "reg_lambdas": (3.0,), "cv": 2},
            **{"n_estimators": 1, "hidden_layer_sizes": 2, "max_cycles": 1},
            **{"random_state": 0},
        },
    ),
    "states": (
        SparseBayesStateSpaceRegressor,
        STATES,
        {
            **{"n_states": 1, "hidden_layer_sizes": 2, "max_cycles": 2},
            **{"n_restarts": 2, "random_state": 0},
        },
    ),
    "cd": (
        ContrastiveDivergenceRBM,
        CONTRASTIVE,
        {"n_components": 3, "max_iter": 1, "max_updates": 10, "random_state": 0},
    ),
    "fw": (
        FrankWolfeRBM,
        GROWTH,
        {
            **{"n_components": 2, "n_chains": 8, "n_corrective_steps": 2},
            **{"max_search_iter": 2, "n_search_rows": 20, "random_state": 0},
        },
    ),
}
SHORT = ContrastiveDivergenceRBM(2, max_iter=1, random_state=0)
MADE = {
    ("random_state", "state"): lambda: np.random.RandomState(3),
    ("init", "fitted"): lambda: SHORT,
    ("fine_tune", "epochs"): lambda: SHORT,
    ("fine_tune", "rounds"): lambda: ContrastiveDivergenceRBM(max_updates=10),
    ("fine_tune", 3): lambda: LinearRegression(),
}


def made(name, value):
    """A parameter of the value that a table has for it: of objects it has names."""
    if isinstance(value, tuple) and value[:1] == ("arrays",):
        n_features = value[1]
        return np.ones((2, n_features)), np.zeros(2), np.zeros(n_features)
    if isinstance(value, str | int) and (name, value) in MADE:
        return MADE[name, value]()
    return value


def accepted(kind):
    """The values that are not refused before a fit sees data, by parameter."""
    estimator, table, tiny = TINY[kind]
    found = {}
    for name, values in table.items():
        found[name] = []
        for value in values:
            model = estimator(**tiny | {name: made(name, value)})
            with contextlib.suppress(ValueError):
                model._validate_params()
                found[name].append(value)
    return found


ACCEPTED = {kind: accepted(kind) for kind in TINY}


@st.composite
def parameters(draw, kind):
    """Parameters of an estimator that are not those of `TINY`: up to three."""
    _, table, _ = TINY[kind]
    names = st.lists(st.sampled_from(sorted(table)), max_size=3, unique=True)
    # mostly what gets as far as a fit
    tables = [ACCEPTED[kind]] * 9 + [table]
    return {
        name: draw(st.sampled_from(draw(st.sampled_from(tables))[name]))
        for name in draw(names)
    }
