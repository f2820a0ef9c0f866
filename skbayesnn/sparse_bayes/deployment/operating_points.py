"""Operating points: inputs, and the outputs at which a model rests with them."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, root

from ..._warnings import warn_caller
from ...exceptions import ExtrapolationWarning
from ..prediction.bands import excess

# Of residuals in standard deviations of the training record.
ACCURACY = 1e-8
# Inputs over the range of the training record at which an output is looked for.
N_SCANNED = 17


class OperatingPoint(NamedTuple):
    """Where a model rests.

    Parameters
    ----------
    x : ndarray of shape (n_states,)
        The state, in the user's units.
    u : ndarray of shape (n_inputs,)
        The inputs.
    y : ndarray of shape (n_outputs,)
        The outputs.
    """

    x: np.ndarray
    u: np.ndarray
    y: np.ndarray


class Rest(NamedTuple):
    """The equations of rest at constant inputs u and outputs Y of all members.

    error : (n_members * n_outputs,), one step from Y less Y, in the outputs' scales
    by_u, by_y : its derivatives by u and by Y
    """

    error: np.ndarray
    by_u: np.ndarray
    by_y: np.ndarray


def _from_constants(equations):
    """The matrix that makes [x, u] of constants [u, Y]."""
    n_inputs, shape = equations.n_inputs, equations.layout.output_depth.shape
    columns = []
    for unit in np.eye(n_inputs + shape[0] * shape[1]):
        u, Y = unit[:n_inputs], unit[n_inputs:].reshape(shape)
        columns.append(np.concatenate([equations.constant_state(u, Y), u]))
    return np.array(columns).T.reshape(equations.n_states + n_inputs, -1)


def at_rest(equations, u, Y):
    """`Rest` at some constants; Y (n_members, n_values)."""
    T, scale = _from_constants(equations), np.concatenate(equations.y_scales)
    v = np.concatenate([equations.constant_state(u, Y), u])
    error = np.concatenate([step.forward(v) for step in equations.steps]) - Y.ravel()
    J = np.concatenate([step.derivative(v) for step in equations.steps]) @ T
    J[:, len(u) :] -= np.eye(Y.size)
    J /= scale[:, None]
    return Rest(error / scale, J[:, : len(u)], J[:, len(u) :])


def find(equations, u, y, guesses):
    """Constants u and Y at rest, where some entries of u and y are NaN: to be found.

    A model of differences rests at any level, so y holds no NaN for it. Of several
    points a stable one within the range of the training record is preferred.

    Raises
    ------
    ValueError
        If not as many inputs are free as outputs are given, and if no point was found.
    """
    hidden = np.full(equations.n_hidden, np.nan)
    return _find(equations, u, np.concatenate([hidden, y]), guesses)


def settle(equations, u, y, guesses):
    """Values Y (1, n_values) of a network whose levels are such that it says y.

    Its other hidden states are at rest, with the inputs u, by which levels may move.

    Raises
    ------
    ValueError
        If there was no such point.
    """
    n_hidden, scale = equations.n_hidden, equations.y_scales[0]
    levels = np.arange(equations.n_levels)
    outputs = n_hidden + np.arange(equations.n_outputs)

    def function(p):
        rest = at_rest(equations, u, p[None])
        error, by_y = rest.error.copy(), rest.by_y.copy()
        error[levels] = (p[outputs] - y) / scale[outputs]
        by_y[levels] = np.eye(len(p))[outputs] / scale[outputs, None]
        return error, by_y

    best = np.inf
    for _, guess in guesses:
        with np.errstate(all="ignore"):
            found = root(function, guess[0], jac=True, tol=1e-13).x
        error = np.abs(function(found)[0]).max(initial=0.0)
        if error <= ACCURACY:
            return found[None]
        best = min(best, error)
    raise _not_found(best)


def _not_found(error):
    return ValueError(
        "No operating point was found: the best guess still moves by "
        f"{error:.2g} standard deviations of the training record a step. Ask for "
        "values inside the training record's range."
    )


def _find(equations, u, y, guesses):
    """`find` with y (n_values,), those that are hidden first."""
    free = np.isnan(u)
    given = np.isfinite(y)
    n_equations = equations.n_outputs if equations.is_integrating else given.sum()
    if free.sum() != n_equations:
        what = "given outputs (no NaN in y)"
        if equations.is_integrating:
            what = "outputs of an integrating model"
        raise ValueError(
            "An operating point needs as many free inputs (NaN in u) as there are "
            f"{what}; got {free.sum()} and {n_equations}."
        )
    best, found = np.inf, []
    for U, Y, error in _attempts(equations, u, y, free, given, guesses):
        if error <= ACCURACY:
            found.append((U, Y))
            if not free.any() or _is_plausible(equations, U, Y):
                return U, Y
        best = min(best, error)
    if found:
        return found[0]
    raise _not_found(best)


def _attempts(equations, u, y, free, given, guesses):
    """Yield constants u and Y with their errors, from one guess after the other."""
    for u_guess, y_guess in guesses:
        yield _solve(equations, u, y, free, given, u_guess, y_guess)
    if free.sum() == given.sum() == 1 and not equations.is_integrating:
        for u_guess, y_guess in _crossings(equations, u, y, guesses):
            yield _solve(equations, u, y, free, given, u_guess, y_guess)


def _is_plausible(equations, u, Y):
    """Whether a point is stable, and in the range of the training record."""
    bands = equations.bands
    x = equations.constant_state(u, Y)
    poles = np.linalg.eigvals(equations.jacobians(x, u)[0])
    # an integrator rests on its pole
    stable = equations.is_integrating or np.abs(poles).max(initial=0.0) < 1.0
    inside = excess(u[None], bands.low_inputs, bands.high_inputs) == 0.0
    return bool(stable and inside.all())


def _crossings(equations, u, y, guesses):
    """Yield where the static gain over the only free input meets the only output given.

    The median of an ensemble has kinks at which Newton's method may get stuck.
    """
    (k,), (o,) = np.flatnonzero(np.isnan(u)), np.flatnonzero(np.isfinite(y))
    low, high = equations.bands.low_inputs[k], equations.bands.high_inputs[k]
    anywhere, near = np.full(len(y), np.nan), list(guesses)

    def at(value):
        """Inputs, outputs of all members, and how much too high the output is."""
        U = u.copy()
        U[k] = value
        _, Y = _find(equations, U, anywhere, near)
        return U, Y, equations.combined(Y)[o] - y[o]

    before = None
    for value in np.linspace(low, high, N_SCANNED):
        try:
            now = at(value)
            near[:1] = [now[:2]]
            if before is not None and before[2] * now[2] <= 0.0:
                between = brentq(lambda v: at(v)[2], before[0][k], value, disp=False)
                yield at(between)[:2]
            before = now
        except ValueError:  # no rest at this input, or a jump to another branch
            before = None


def _solve(equations, u, y, free, given, u_guess, y_guess):
    """Newton's method with the exact derivatives, from one guess."""
    shape = equations.layout.output_depth.shape
    scale = equations.y_scales[0]
    n_free = int(free.sum())
    # networks on lags are where they are told; of hidden states only levels are
    only_inputs = equations.is_integrating and not equations.n_levels

    def unpack(p):
        U = u.copy()
        U[free] = p[:n_free]
        if only_inputs:
            return U, np.tile(y, (shape[0], 1))
        return U, p[n_free:].reshape(shape)

    def function(p):
        U, Y = unpack(p)
        rest = at_rest(equations, U, Y)
        if only_inputs:
            return rest.error, rest.by_u[:, free]
        picks = equations.picks(Y)
        wanted = ((picks * Y).sum(axis=0) - y)[given] / scale[given]
        by_y = (picks[None] * np.eye(shape[1])[:, None, :]).reshape(shape[1], -1)
        by_y = (by_y / scale[:, None])[given]
        top = np.hstack([rest.by_u[:, free], rest.by_y])
        bottom = np.hstack([np.zeros((len(by_y), n_free)), by_y])
        return np.concatenate([rest.error, wanted]), np.vstack([top, bottom])

    def worst(p):
        error = np.abs(function(p)[0]).max(initial=0.0)
        return np.inf if np.isnan(error) else error

    start = u_guess[free]
    if not only_inputs:
        start = np.concatenate([start, np.asarray(y_guess).ravel()])
    with np.errstate(all="ignore"):
        found = root(function, start, jac=True, tol=1e-13).x
        # a guess at a kink of the median may be left, though it was right
        best = min((found, start), key=worst)
        return *unpack(best), worst(best)


def warn_outside(equations, u):
    """Warn of an operating point beyond the inputs of the training record."""
    bands = equations.bands
    out = excess(u[None], bands.low_inputs, bands.high_inputs)[0] > 0.0
    if out.any():
        k = int(out.argmax())
        warn_caller(
            f"Input {equations.input_names[k]} of the operating point is {u[k]:.4g}, "
            "outside the range of the training record, "
            f"{bands.low_inputs[k]:.4g} to {bands.high_inputs[k]:.4g}.",
            ExtrapolationWarning,
        )
