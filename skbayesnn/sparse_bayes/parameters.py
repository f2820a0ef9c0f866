"""Parameters of the regressors: their ranges, and what learning makes of them."""

import os
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np

from .._sklearn import Interval, StrOptions
from .._warnings import warn_caller
from ..exceptions import SamplingWarning
from .kernels.activations import ACTIVATIONS
from .learning.likelihood import LIKELIHOODS
from .learning.prior import GROUPS
from .learning.problem import Options
from .learning.weights import SOLVERS
from .records.lags import MAX_LAG

# Between these, quotients of strengths, variances and squared errors are numbers.
SMALLEST, LARGEST = 1e-100, 1e100
# Restarts and networks: each is a whole fit, listed before the first begins.
MAX_FITS = 100_000
# Their sensitivities are carried through every row.
MAX_STATES = 1000
# Short sessions that a warning names.
_NAMED_SESSIONS = 5

MODEL_CONSTRAINTS = {
    "hidden_layer_sizes": [Interval(Integral, 1, None, closed="left"), "array-like"],
    "activation": [StrOptions(set(ACTIVATIONS))],
    "groups": [StrOptions(set(GROUPS)), list, tuple],
    "reg_lambda": [Interval(Real, 0, LARGEST, closed="both"), "array-like"],
    "kappa_variance": [Interval(Real, 0, None, closed="left")],
    "kappa_weight": [Interval(Real, 0, None, closed="left")],
    "reweight": ["boolean"],
    "noise": [StrOptions(set(LIKELIHOODS))],
    "noise_variance": [
        StrOptions({"auto"}),
        # in squared units of y, see also `Gaussian.scaled`
        Interval(Real, SMALLEST**3, LARGEST**3, closed="both"),
        "array-like",
    ],
    "curvature": [StrOptions({"auto", "full", "diag"})],
    "solver": [StrOptions(set(SOLVERS))],
    "max_cycles": [Interval(Integral, 1, None, closed="left")],
    "max_iter": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "normalize": ["boolean"],
    "n_restarts": [Interval(Integral, 1, MAX_FITS, closed="both")],
    "n_jobs": [Integral, None],
    "warm_start": ["boolean"],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}

LAGS = [
    StrOptions({"auto"}),
    Interval(Integral, 0, MAX_LAG, closed="both"),
    "array-like",
    dict,
]

LAGGED_CONSTRAINTS = {
    **MODEL_CONSTRAINTS,
    "input_lags": LAGS,
    "output_lags": LAGS,
    "include_current_input": ["boolean"],
    "output": [StrOptions({"level", "difference"})],
    "focus": [StrOptions({"prediction", "simulation"})],
    "horizon_schedule": [StrOptions({"auto"}), "array-like"],
    "initial_conditions": [StrOptions({"measured", "estimated"})],
    "skip_connection": ["boolean"],
    "n_estimators": [Interval(Integral, 1, MAX_FITS, closed="both")],
    "selection": [StrOptions({"auto", "evidence", "simulation", "validation"})],
    "weighting": [StrOptions({"uniform", "evidence", "validation"})],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "groups": [StrOptions({"auto", *GROUPS}), list, tuple],
    "reg_lambda": [
        StrOptions({"auto"}),
        Interval(Real, 0, LARGEST, closed="both"),
        "array-like",
    ],
}

STATE_SPACE_CONSTRAINTS = {
    "n_states": [Interval(Integral, 1, MAX_STATES, closed="both")],
    "linear_lags": [Interval(Integral, 1, MAX_LAG, closed="both")],
    **{
        name: MODEL_CONSTRAINTS[name]
        for name in (
            "hidden_layer_sizes",
            "reg_lambda",
            "n_restarts",
            "random_state",
            "groups",
            "kappa_variance",
            "kappa_weight",
            "noise",
            "noise_variance",
            "max_cycles",
            "tol",
            "n_jobs",
            "verbose",
        )
    },
    "activation": [StrOptions({"auto", *ACTIVATIONS})],
    "output": LAGGED_CONSTRAINTS["output"],
    "n_estimators": LAGGED_CONSTRAINTS["n_estimators"],
}

# Parameters of the search that every one of its fits takes over as they are.
SHARED_BY_FITS = (
    "noise",
    "focus",
    "hidden_layer_sizes",
    "n_restarts",
    "horizon_schedule",
    "initial_conditions",
    "skip_connection",
    "activation",
    "groups",
    "kappa_variance",
    "kappa_weight",
    "max_cycles",
)

SEARCH_CONSTRAINTS = {
    "lags": [StrOptions({"auto"}), "array-like"],
    "reg_lambdas": [StrOptions({"auto"}), "array-like"],
    "include_current_input": [StrOptions({"auto"}), "boolean"],
    "output": [StrOptions({"auto", "level", "difference"})],
    "checkpoint": [str, os.PathLike, None],
    "max_time": [Interval(Real, 0, None, closed="neither"), None],
    "outliers": [StrOptions({"replace", "keep"})],
    "cv": [Interval(Integral, 2, None, closed="left")],
    "n_estimators": [StrOptions({"auto"}), *LAGGED_CONSTRAINTS["n_estimators"]],
    **{
        name: LAGGED_CONSTRAINTS[name]
        for name in (
            *SHARED_BY_FITS,
            "n_jobs",
            "random_state",
            "verbose",
        )
    },
}

# Kinds of models, as `candidates.Candidate` calls them, the simplest first.
KINDS = ("linear", "network", "states")
DYNAMIC_CONSTRAINTS = {
    "kinds": [StrOptions({"auto", *KINDS}), "array-like"],
    "n_states": [StrOptions({"auto"}), "array-like"],
    "hidden_layer_sizes": [
        StrOptions({"auto"}),
        *LAGGED_CONSTRAINTS["hidden_layer_sizes"],
    ],
    **{
        name: SEARCH_CONSTRAINTS[name]
        for name in (
            *("lags", "reg_lambdas", "cv", "n_estimators", "focus", "noise", "output"),
            *("outliers", "max_cycles", "max_time", "checkpoint"),
            *("n_jobs", "random_state", "verbose"),
        )
    },
}


class FocusDefaults(NamedTuple):
    """What "auto" stands for."""

    groups: tuple
    reg_lambda: float
    selection: str


# A free run asks for a smooth network rather than for one with few weights, and its
# residuals stay correlated over some rows, so that several of them count as one: 3
# would be best for systems with white noise, 20 for the measured tanks.
DEFAULTS = {
    "prediction": FocusDefaults(("row", "column"), 4.0, "simulation"),
    "simulation": FocusDefaults(("layer",), 5.0, "evidence"),
}


def resolve_auto(estimator):
    """Parameters of a lagged regressor, with "auto" replaced by its meaning."""
    parameters = estimator.get_params(deep=False)
    for name, value in DEFAULTS[estimator.focus]._asdict().items():
        if isinstance(parameters[name], str) and parameters[name] == "auto":
            parameters[name] = value
    return parameters


def check_combination(estimator):
    """Refuse parameters that contradict each other."""
    free_run = estimator.focus == "simulation"
    if free_run and not SOLVERS[estimator.solver].for_free_runs:
        raise ValueError(
            f"solver={estimator.solver!r} draws rows in random order, which a free run "
            "does not allow: use solver='lm' or 'lbfgs' with focus='simulation'."
        )
    if estimator.weighting == "validation" and estimator.selection != "validation":
        raise ValueError(
            "weighting='validation' needs the stretches that selection='validation' "
            f"holds out; got selection={estimator.selection!r}."
        )


def learning_options(parameters, n_outputs):
    """`Options` of a fit to so many outputs, from a dict of parameters."""
    hidden = check_hidden_layer_sizes(parameters["hidden_layer_sizes"])
    skip = bool(parameters.get("skip_connection", False) and hidden)
    noise_variance = check_noise_variance(parameters["noise_variance"], n_outputs)
    strengths = check_reg_lambda(parameters["reg_lambda"], len(hidden) + 1, skip)
    return Options(
        hidden_layer_sizes=hidden,
        skip=skip,
        activation=parameters["activation"],
        groups=check_groups(parameters["groups"]),
        likelihood=LIKELIHOODS[parameters["noise"]](noise_variance),
        reg_lambda=strengths,
        kappa_variance=float(parameters["kappa_variance"]),
        kappa_weight=float(parameters["kappa_weight"]),
        reweight=parameters["reweight"],
        curvature=parameters["curvature"],
        solver=parameters["solver"],
        max_cycles=parameters["max_cycles"],
        max_iter=parameters["max_iter"],
        tol=float(parameters["tol"]),
        normalize=parameters["normalize"],
        verbose=int(parameters["verbose"]),
    )


def check_hidden_layer_sizes(hidden_layer_sizes):
    """A tuple of widths."""
    sizes = np.atleast_1d(np.asarray(hidden_layer_sizes))
    integral = sizes.size == 0 or np.issubdtype(sizes.dtype, np.integer)
    if sizes.ndim != 1 or not integral or (sizes.size and sizes.min() < 1):
        raise ValueError(
            "hidden_layer_sizes must be a positive integer or a sequence of positive "
            f"integers, one per hidden layer; got {hidden_layer_sizes!r}."
        )
    return tuple(int(size) for size in sizes)


def check_kinds(kinds):
    """A tuple of distinct `KINDS`."""
    if isinstance(kinds, str) and kinds == "auto":
        return KINDS
    found = tuple(dict.fromkeys(map(str, np.atleast_1d(kinds))))
    if not found or not set(found) <= set(KINDS):
        raise ValueError(
            f"kinds must be 'auto' or hold some of {', '.join(KINDS)}; got {kinds!r}."
        )
    return found


def are_strengths(values):
    """Whether numbers may be strengths of the prior, element by element."""
    return (values == 0.0) | ((values >= SMALLEST) & (values <= LARGEST))


# What the candidates of a search may be: kinds of types, and values.
GRIDS = {
    "lags": (
        "iu",
        lambda lags: (lags >= 1) & (lags <= MAX_LAG),
        f"integers from 1 to {MAX_LAG}",
    ),
    "n_states": (
        "iu",
        lambda numbers: (numbers >= 1) & (numbers <= MAX_STATES),
        f"integers from 1 to {MAX_STATES}",
    ),
    "reg_lambdas": (
        "iuf",
        are_strengths,
        f"numbers that are 0 or between {SMALLEST:.0e} and {LARGEST:.0e}",
    ),
}


def check_grid(values, name):
    """Sorted candidates of a search, each once, or "auto"."""
    if isinstance(values, str):
        return values
    kinds, valid, expected = GRIDS[name]
    try:
        found = np.asarray(values)
    except ValueError:
        # rows of different lengths
        found = np.array(None)
    right = found.ndim == 1 and found.size and found.dtype.kind in kinds
    if not (right and valid(found).all()):
        raise ValueError(
            f"{name} must be 'auto' or a sequence of {expected}, the candidates; got "
            f"{values!r}."
        )
    return np.unique(found.astype(np.float64 if "f" in kinds else int)).tolist()


def check_groups(groups):
    """A tuple of distinct group kinds."""
    kinds = (groups,) if isinstance(groups, str) else tuple(groups)
    unknown = [kind for kind in kinds if kind not in tuple(GROUPS)]
    if unknown or not kinds or len(set(kinds)) < len(kinds):
        raise ValueError(
            f"groups must be one of {tuple(GROUPS)} or a sequence of distinct ones; "
            f"got {groups!r}."
        )
    return kinds


def check_reg_lambda(reg_lambda, n_layers, skip=False):
    """Strengths as an array, one per weight layer and one for the skip connection."""
    n_layers = n_layers + skip
    strengths = _as_numbers(reg_lambda, "reg_lambda", "weight layer")
    if strengths.ndim > 1 or (strengths.ndim == 1 and len(strengths) != n_layers):
        raise ValueError(
            f"reg_lambda must be a number or one number per weight layer ({n_layers} "
            f"here: the hidden layers, the output{', the skip' if skip else ''}); got "
            f"{reg_lambda!r}."
        )
    if not are_strengths(strengths).all():
        raise ValueError(
            "reg_lambda must be finite and not negative: 0, or between "
            f"{SMALLEST:.0e} and {LARGEST:.0e}; got {reg_lambda!r}."
        )
    return np.broadcast_to(strengths, (n_layers,)).copy()


def _as_numbers(values, name, each):
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a number or one number per {each}; got {values!r}."
        ) from error


def check_noise_variance(noise_variance, n_outputs):
    """Noise variances (n_outputs,) in squared units of y, or "auto"."""
    if isinstance(noise_variance, str):
        return noise_variance
    noise = _as_numbers(noise_variance, "noise_variance", "output")
    if noise.ndim > 1 or (noise.ndim == 1 and len(noise) != n_outputs):
        raise ValueError(
            "noise_variance must be 'auto', a number, or one number per output "
            f"({n_outputs} here); got {noise_variance!r}."
        )
    if not np.isfinite(noise).all() or (noise <= 0).any():
        raise ValueError(
            f"noise_variance must be finite and positive; got {noise_variance!r}."
        )
    return np.broadcast_to(noise, (n_outputs,)).copy()


def check_session_lengths(starts, max_lag):
    """Refuse sessions of which not even one has a row that can be predicted."""
    lengths = np.diff(starts)
    longest = int(lengths.max())
    if longest > max_lag:
        return
    if len(lengths) == 1:
        raise ValueError(
            f"X and y must have more rows than the longest lag, {max_lag}; found "
            f"n_samples={longest}. Shorten input_lags and output_lags."
        )
    raise ValueError(
        f"A session at least must be longer than the longest lag, {max_lag}; found "
        f"{len(lengths)} sessions of at most {longest} rows. Shorten input_lags and "
        "output_lags."
    )


def warn_of_short_sessions(starts, max_lag):
    """Say which sessions hold no row that can be predicted, and so are not learned."""
    lengths = np.diff(starts)
    short = np.flatnonzero(lengths <= max_lag)
    if not len(short):
        return
    rows = [f"{starts[k]} to {starts[k + 1] - 1}" for k in short[:_NAMED_SESSIONS]]
    more = ", ..." if len(short) > len(rows) else ""
    warn_caller(
        f"{len(short)} of {len(lengths)} sessions are not longer than the longest lag, "
        f"{max_lag}, and tell nothing of the model: {lengths[short].sum()} of "
        f"{starts[-1]} rows, the rows {', '.join(rows)}{more} counted from 0. Shorten "
        "input_lags and output_lags to learn from them, too.",
        SamplingWarning,
    )
