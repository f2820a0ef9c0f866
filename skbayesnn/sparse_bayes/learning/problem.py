"""What a fit is given: scaled data in stages, a network to begin with, and settings."""

from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ... import _validation as checks
from ..._saved_state import saved_as
from ..._warnings import warn_caller
from ..kernels.activations import ACTIVATIONS
from ..network import Network, count_parameters
from ..records.layout import Stage
from ..records.one_step import OneStepData
from ..records.residuals import FitData
from ..scaling import DIVERGENCE_LIMIT, Scaling
from .cycle import Settings
from .likelihood import Gaussian, StudentT
from .prior import Prior
from .weights import SOLVERS

# With more unknowns a dense solve is far slower than a backward pass, and its matrix
# is no longer small beside the data.
FULL_CURVATURE_LIMIT = 4096
DUAL_BYTES = 2**30
# Standard deviations with which a network learns as it does from scaled data (measured
# on y = sin(2 x) plus noise: beyond, inputs are ignored, or outputs taken for noise).
USUAL_INPUTS = 0.1, 100.0
USUAL_OUTPUTS = 0.01, 20.0
# The same where a warm start keeps the scaling: standard deviations, and how far means
# may be from those of the previous fit (measured on the same function).
RESUMED_OUTPUTS, MAX_MOVED = (0.01, 5.0), 10.0
CONSTANT_OUTPUT = "y is constant: the fitted model predicts this constant."


class Options(NamedTuple):
    """Checked parameters of an estimator, in the user's units.

    hidden_layer_sizes : tuple of int
    groups : tuple of str
    likelihood : see `likelihood`
    reg_lambda : (n_layers,) array, with one number more for the skip connection
    max_iter : int, or "auto" for what suits the solver
    """

    hidden_layer_sizes: tuple
    skip: bool
    activation: str
    groups: tuple
    likelihood: Gaussian | StudentT
    reg_lambda: np.ndarray
    kappa_variance: float
    kappa_weight: float
    reweight: bool
    curvature: str
    solver: str
    max_cycles: int
    max_iter: object
    tol: float
    normalize: bool
    verbose: int


@saved_as("Start")
class Start(NamedTuple):
    """Where a warm start begins: what it keeps of the previous fit."""

    network: Network
    prior: Prior
    noise: float
    likelihood: Gaussian | StudentT
    scaling: Scaling
    groups: tuple


class Problem(NamedTuple):
    """Scaled data and settings: all that a restart needs besides its seed.

    data : of the training rows, one step ahead
    stages : in their order; the errors of the last one are what the fit is about
    sizes : units in each layer, inputs first
    start : where to resume from; None for random weights
    constant_inputs : (n_inputs,) bool
    ranking : data whose squared errors rank the restarts; None for the objective
    one_step : data whose errors one step ahead a model of free runs reports, or None
    starts : draws networks to begin with, as `state_space_problem.StateSpaceStarts`
        does; None for perceptrons with random weights
    n_screening : stages after which only the better starts go on; 0 for none
    begins_anew : whether a fit that may have ended in a poor optimum begins anew, see
        `better_optima`
    reduce : behind the last stage, yields the cycles of smaller networks, as
        `unneeded_units.remove_units` and `state_order.reduce_order` do, or None
    predicts : whether a fit, the problem and its last `cycle.State`, predicts its own
        record from where predictions start; None where these are the starts of the fit
    """

    data: OneStepData
    stages: tuple
    settings: Settings
    scaling: Scaling
    start: Start | None
    groups: tuple
    sizes: tuple
    skip: bool
    activation: str
    constant_inputs: np.ndarray
    constant_output: bool
    max_cycles: int
    verbose: int
    ranking: FitData | None = None
    one_step: OneStepData | None = None
    starts: object = None
    n_screening: int = 0
    begins_anew: bool = False
    reduce: object = None
    predicts: object = None


def make_scaling(X, Y, normalize, sample_weight=None):
    """Zero mean and unit variance; or, without ``normalize``, nothing."""
    n_inputs, n_outputs = X.shape[1], Y.shape[1]
    x_scale, y_scale = _spread(X, sample_weight), _spread(Y, sample_weight)
    # outputs first: inputs may be lagged ones
    checks.check_spread(y_scale, "y")
    checks.check_spread(x_scale, "X")
    if not normalize:
        return Scaling(
            np.zeros(n_inputs),
            np.ones(n_inputs),
            np.zeros(n_outputs),
            np.ones(n_outputs),
            _farthest(Y, sample_weight),
        )
    return Scaling(_mean(X, sample_weight), x_scale, _mean(Y, sample_weight), y_scale)


def _warn_of_scales(X, Y, sample_weight):
    """Warn of data that are not in the scaled units of the priors.

    Of outputs first, and alone: inputs may be lagged ones.
    """
    for array, name, usual in ((Y, "y", USUAL_OUTPUTS), (X, "X", USUAL_INPUTS)):
        spread = _spread(array, sample_weight)
        far = np.flatnonzero((spread < usual[0]) | (spread > usual[1]))
        if len(far):
            warn_caller(
                f"{name} has a standard deviation of {spread[far[0]]:.3g} in column "
                f"{far[0]}: normalize=False takes data as they are, and the priors "
                f"expect deviations between {usual[0]} and {usual[1]:.0f}. What is far "
                "from that is not learned. Set normalize=True, or rescale it.",
                UserWarning,
            )
            return


def scaled_data(X, Y, scaling, weights, sample_weight=None):
    """Rows ``X`` (n, n_inputs) and ``Y`` (n, n_outputs) in scaled units."""
    XT = np.ascontiguousarray(((X - scaling.x_offset) / scaling.x_scale).T)
    YT = np.ascontiguousarray(((Y - scaling.y_offset) / scaling.y_scale).T)
    return OneStepData(XT, YT, weights, sample_weight=sample_weight)


def pose(options, X, Y, start=None, sample_weight=None):
    """The problem to map ``X`` (n, n_inputs) to ``Y`` (n, n_outputs), both finite.

    ``sample_weight`` (n,) says how many times each row counts, None for once.
    """
    sizes = (X.shape[1], *options.hidden_layer_sizes, Y.shape[1])
    if start:
        _check_continuation(start, options, sizes)
        scaling = start.scaling
        if options.normalize:
            _warn_of_moved(X, Y, scaling, sample_weight)
    else:
        scaling = make_scaling(X, Y, options.normalize, sample_weight)
        if not options.normalize and options.reg_lambda.any():
            _warn_of_scales(X, Y, sample_weight)
    likelihood, weights = options.likelihood.scaled(scaling.y_scale)
    data = scaled_data(X, Y, scaling, weights, sample_weight)
    constant_output = warn_if_constant(Y)
    return Problem(
        data=data,
        stages=(Stage(data, 1.0),),
        settings=settings_of(options, likelihood, sizes, Y.size),
        scaling=scaling,
        start=start,
        groups=options.groups,
        sizes=sizes,
        skip=options.skip,
        activation=options.activation,
        constant_inputs=is_constant(X),
        constant_output=constant_output,
        max_cycles=options.max_cycles,
        verbose=options.verbose,
    )


def settings_of(options, likelihood, sizes, n_observations):
    """`Settings` of a fit of a network with these layers, from checked `Options`."""
    solver = SOLVERS[options.solver]
    n_parameters = count_parameters(sizes, options.skip)
    return Settings(
        likelihood=likelihood,
        reg_lambda=options.reg_lambda,
        reweight=options.reweight,
        kappa_variance=options.kappa_variance,
        kappa_weight=options.kappa_weight,
        curvature=_choose_curvature(options, n_parameters, n_observations),
        solver=options.solver,
        max_iter=solver.max_iter if options.max_iter == "auto" else options.max_iter,
        tol=options.tol,
    )


def _check_continuation(start, options, sizes):
    """Refuse a warm start that would not be the same model."""
    network = start.network
    before = (network.full_sizes, start.groups, network.skip)
    now = (sizes, options.groups, options.skip)
    if before != now or network.activation != ACTIVATIONS[options.activation]:
        raise ValueError(
            "warm_start=True resumes from the network of the previous fit, with layers "
            f"of {before[0]} units, groups={before[1]}, skip_connection={before[2]}; "
            f"this fit needs {now[0]}, {now[1]}, {now[2]}. Keep hidden_layer_sizes, "
            "activation, groups, skip_connection and the number of inputs and outputs, "
            "or set warm_start=False."
        )


def _warn_of_moved(X, Y, scaling, sample_weight):
    """Warn of data that do not suit the scaling of the previous fit, which is kept."""
    inputs = X, scaling.x_offset, scaling.x_scale, USUAL_INPUTS
    outputs = Y, scaling.y_offset, scaling.y_scale, RESUMED_OUTPUTS
    for name, part in (("regressor", inputs), ("output", outputs)):
        values, offset, scale, (low, high) = part
        moved = np.abs(_mean(values, sample_weight) - offset) / scale
        wider = _spread(values, sample_weight) / scale
        far = (moved > MAX_MOVED) | (wider > high) | (wider < low)
        far &= ~is_constant(values)
        if far.any():
            k = int(far.argmax())
            warn_caller(
                "warm_start=True keeps the scaling of the previous fit, but the mean "
                f"of {name} {k} is {moved[k]:.3g} standard deviations of then away, "
                f"and its standard deviation is {wider[k]:.3g} of them. Such a fit may "
                "end far from a good one: fit anew with warm_start=False.",
                ConvergenceWarning,
            )
            return


def _farthest(Y, sample_weight):
    """Magnitude from which on an output that is not scaled has diverged."""
    far = np.abs(_mean(Y, sample_weight)) + DIVERGENCE_LIMIT * _spread(Y, sample_weight)
    return float(np.max(far))


def _mean(array, sample_weight):
    if sample_weight is None:
        return array.mean(axis=0)
    return sample_weight @ array / sample_weight.sum()


def _spread(array, sample_weight=None):
    """Standard deviations, 1 for constant columns."""
    if sample_weight is None:
        scale = array.std(axis=0)
    else:
        scale = np.sqrt(
            _mean((array - _mean(array, sample_weight)) ** 2, sample_weight)
        )
    scale[is_constant(array)] = 1.0
    return scale


def is_constant(array):
    """Columns that hold one value."""
    return np.ptp(array, axis=0) == 0.0


def _choose_curvature(options, n_parameters, n_observations):
    """Resolve "auto", and refuse what would not fit into memory."""
    curvature = options.curvature
    needs_whole = SOLVERS[options.solver].needs_whole_curvature
    smaller = min(n_parameters, n_observations)
    fits = smaller <= FULL_CURVATURE_LIMIT and (
        n_parameters <= n_observations
        or 8 * n_parameters * n_observations <= DUAL_BYTES
    )
    if not fits and (needs_whole or curvature == "full"):
        what = f"solver='{options.solver}'" if needs_whole else "curvature='full'"
        raise ValueError(
            f"{what} solves for min(n_parameters, n_samples * n_outputs) unknowns at "
            f"once: found min({n_parameters}, {n_observations}), expected at most "
            f"{FULL_CURVATURE_LIMIT} (and a Jacobian of at most {DUAL_BYTES >> 20} "
            "MiB where parameters outnumber samples). Use solver='lbfgs' or 'adam' "
            "with curvature='diag', or a smaller hidden_layer_sizes."
        )
    if curvature == "auto":
        return "full" if fits else "diag"
    return curvature


def warn_if_constant(Y):
    """Whether no output changes; warns if so. Missing values are left out."""
    measured = Y[np.isfinite(Y).all(axis=1)]
    constant = len(measured) > 0 and bool(is_constant(measured).all())
    if constant:
        warn_caller(CONSTANT_OUTPUT, UserWarning)
    return constant
