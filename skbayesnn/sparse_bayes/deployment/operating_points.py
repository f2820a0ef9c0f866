"""Operating points: inputs, and the outputs at which a model rests with them."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, root

from ..._warnings import warn_caller
from ...exceptions import ExtrapolationWarning
from ..prediction.bands import excess, excess_in_gaps

# Of residuals in standard deviations of the training record.
ACCURACY = 1e-8
# Inputs over the range of the training record at which an output is looked for.
N_SCANNED = 17
# Rows of a free run that is given time to settle, and the motion in a row, as a
# fraction of the largest state, at which it has.
N_SETTLING, _SETTLED = 2000, 1e-13


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
    raise _not_found(equations, u, y, f"the best guess still {_moves_by(best)}")


def _not_found(equations, u, y, what):
    """The error that says what happened, and which of the values given are far out.

    y : (n_outputs,), NaN where nothing is asked for, as in u
    """
    bands = equations.bands
    names = [*equations.input_names, *equations.output_names]
    values = np.concatenate([u, y])
    low = np.concatenate([bands.low_inputs, bands.low_outputs])
    high = np.concatenate([bands.high_inputs, bands.high_outputs])
    text = f"No operating point was found: {what}."
    with np.errstate(invalid="ignore"):
        outside = (values < low) | (values > high)
    for k in np.flatnonzero(outside):
        text += (
            f" {names[k]} = {values[k]:.4g} is outside the range of the training "
            f"record, {low[k]:.4g} to {high[k]:.4g}."
        )
    return ValueError(text)


def _moves_by(error):
    if not np.isfinite(error):
        return "moves without bounds"
    return f"moves by {error:.2g} standard deviations of the training record in a row"


def _find(equations, u, y, guesses, settles=True):
    """`find` with y (n_values,), those that are hidden first.

    settles : whether free runs may be tried where inputs alone are given
    """
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
    if settles and not free.any() and not given.any():
        return u, _rest_of_each(equations, u, guesses)
    what = f"the best guess still {_moves_by(best)}"
    raise _not_found(equations, u, y[equations.n_hidden :], what)


def _rest_of_each(equations, u, guesses):
    """Values Y (n_members, n_values) at which each network rests, at inputs u.

    Newton's method for all at once fails with any of them. Where it fails for a network
    alone, the end of a free run is tried, from the first guess.
    """
    n_networks, rests = len(equations.steps), []
    nothing = np.full(equations.ensemble.n_outputs, np.nan)
    masks = np.isnan(u), np.isfinite(nothing)
    for k, member in enumerate(equations.members):
        own, best = [(U, np.asarray(Y)[k : k + 1]) for U, Y in guesses], np.inf
        for guess in _with_free_run(member, u, own):
            _, Y, error = _solve(member, u, nothing, *masks, *guess)
            best = min(best, error)
            if error <= ACCURACY:
                rests.append(Y[0])
                break
        else:
            of = "" if n_networks == 1 else f" of network {k + 1} of {n_networks}"
            what = f"the free run{of} does not settle in {N_SETTLING} rows"
            what += f", and the best guess still {_moves_by(best)}"
            raise _not_found(equations, u, nothing[equations.n_hidden :], what)
    return np.array(rests)


def _with_free_run(member, u, guesses):
    """Yield the guesses of a network, and the end of its free run from the first."""
    yield from guesses
    x = member.constant_state(u, guesses[0][1])
    with np.errstate(all="ignore"):
        for _ in range(N_SETTLING):
            x_before, (x, _) = x, member.step(x, u)
            moved = np.abs(x - x_before).max(initial=0.0)
            if not moved > _SETTLED * np.abs(x).max(initial=0.0):
                break
        yield u, member.member_outputs(np.concatenate([x, u]))


def _attempts(equations, u, y, free, given, guesses):
    """Yield constants u and Y with their errors, from one guess after the other."""
    has_found = False
    for u_guess, y_guess in guesses:
        attempt = _solve(equations, u, y, free, given, u_guess, y_guess)
        has_found |= attempt[-1] <= ACCURACY
        yield attempt
    if not free.sum() == given.sum() == 1 or equations.is_integrating:
        return
    for settles in (False, True):
        # free runs take time: they are the last resort
        if settles and has_found:
            return
        for u_guess, y_guess in _crossings(equations, u, y, guesses, settles):
            attempt = _solve(equations, u, y, free, given, u_guess, y_guess)
            has_found |= attempt[-1] <= ACCURACY
            yield attempt


def _is_plausible(equations, u, Y):
    """Whether a point is stable, and in the range of the training record."""
    bands = equations.bands
    x = equations.constant_state(u, Y)
    poles = np.linalg.eigvals(equations.jacobians(x, u)[0])
    # an integrator rests on its pole
    stable = equations.is_integrating or np.abs(poles).max(initial=0.0) < 1.0
    inside = excess(u[None], bands.low_inputs, bands.high_inputs) == 0.0
    return bool(stable and inside.all())


def _crossings(equations, u, y, guesses, settles):
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
        _, Y = _find(equations, U, anywhere, near, settles)
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
    """Warn of an operating point beyond the inputs of the training record, or in a gap.

    See `bands.gaps_of`.
    """
    bands = equations.bands
    out = excess(u[None], bands.low_inputs, bands.high_inputs)[0] > 0.0
    in_gap = excess_in_gaps(bands, u[None])[0] > 0.0
    if out.any():
        k = int(out.argmax())
        where = (
            "outside the range of the training record, "
            f"{bands.low_inputs[k]:.4g} to {bands.high_inputs[k]:.4g}"
        )
    elif in_gap.any():
        k = int(in_gap.argmax())
        low, high = bands.gaps[k]
        where = f"and the training record has no value between {low:.4g} and {high:.4g}"
    else:
        return
    warn_caller(
        f"Input {equations.input_names[k]} of the operating point is {u[k]:.4g}, "
        f"{where}.",
        ExtrapolationWarning,
    )
