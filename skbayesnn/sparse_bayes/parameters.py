"""Parameters that the regressors share: their ranges, and checks against the data."""

from numbers import Integral, Real

import numpy as np

from .._sklearn import Interval, StrOptions
from .learning.prior import GROUPS
from .network import ACTIVATIONS

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
