r"""Wrong outputs of a record: gross errors, codes, sensors that stick or read far off.

A heavy-tailed likelihood lets a wrong output count little as a target. But it is also a
regressor of the next rows, a part of the target of free runs, and of the errors by
which candidates are compared. So wrong outputs are found before anything is fitted.

Values far beyond all others, such as codes of missing values, are found first, without
a model (`far_values`): one of them among the regressors is enough to make the weights
of the past outputs vanish, and then it leaves no trace. They are missing in what
follows.

A linear ARX model with robust errors (`robust_arx`) has residuals :math:`r`. If the
outputs of a stretch are wrong by :math:`\delta`, its residuals and those of the next
rows, which have it among their regressors, are wrong by :math:`T \delta`, where the
columns of :math:`T` hold :math:`1, -a_1, -a_2, \ldots`, the weights of the past
outputs. A disturbance of the system leaves no such trace: it makes one residual
large. Nor is a row judged whose inputs the fit has hardly seen, such as a pulse. A
stretch is held to be wrong if the residuals :math:`r - T \delta` of the best
:math:`\delta` are so much more probable than :math:`r` that it pays

- for each row, the logarithm of ten times the number of stretches that there are,
  and that of the range of the output over the scale of the errors: each row may be
  wrong, by any value in the range, and in one record of ten that are right, one
  may seem to be;
- nothing more for a row that repeats a wrong value, because a sensor that sticks has no
  other, unless the output saturates there; and where rows repeat a right value, the
  logarithm of ten times the number of stretches, less that of how probable it is that
  so many right rows do so, but not less than that of the number of such runs;
- half of :math:`\log|T^T T|`, what the rows would have told of the next ones.

Where the residual of a wrong row is not known, as beside missing inputs, a disturbance
of one of the next rows looks the same. So for each such row, the largest residual does
not count, and its error is not larger than the range of the output.

Where few outputs in a row are missing, they are interpolated, and the errors of these
values are found along with the others: they pay nothing, and are none.

An output most of whose values repeat the one before, rounded to coarse steps or held
between samples, is left as it is, but for values far off.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky_banded, solveh_banded

from ..records.far_values import far_outputs
from ..records.feedback import inputs_of_controllers
from ..records.lags import complete_rows, make_lags, usual_length
from .robust_arx import (
    fit_robust_arx,
    misfit,
    robust_error_of_function,
    weights_of,
)

# Lags of the linear model; fewer where there would be more regressors than this, or
# less than so many rows for each of them.
N_LAGS, MAX_REGRESSORS, ROWS_PER_REGRESSOR = 10, 200, 10
# Rounds of fit and search. Where more than this fraction of the rows is found in the
# last one, they are no exception, and none of them is held to be wrong.
N_ROUNDS, MOST = 3, 0.25
# Wrong rows that are expected in a right record: a search that finds one does harm.
RARITY = 0.1
# Residuals of so many scales are looked at; and how many starts and ends of a stretch
# are tried.
TRIGGER, N_STARTS, N_ENDS = 4.0, 4, 8
# Longest stretch, as a fraction of the record and in rows at least; and that of a
# stretch which repeats one value, as a fraction.
LONGEST, LEAST_LONGEST, LONGEST_REPEATED = 0.05, 20, 0.2
# Steps of the search for the sizes of errors; longest stretch of which it is asked
# whether rows within it are right; and errors that are none, in standard deviations.
N_STEPS, LONGEST_TO_SPLIT, PLAUSIBLE = 4, 200, 4.0
# Rows that are looked through at a time.
PIECE = 1000
# Missing outputs in a row that are interpolated.
SHORT_GAP = 5
# Quantiles beyond which a repeated value may be that of a saturated output, as long as
# gross errors are not known.
EDGES = 0.02, 0.98
# Added to a diagonal, as multiples of its largest element: what keeps a matrix regular,
# and what fixes the errors of right rows at 0.
RIDGE, FIXED = 1e-9, 1e12


class Screened(NamedTuple):
    """A record without its wrong outputs.

    Y : (n_rows, n_outputs), the outputs; in place of a wrong one the value that fits
        best between its neighbours
    outliers : (n_rows, n_outputs) bool, the wrong ones
    doubtful : (n_rows, n_outputs) bool, those of them whose place is taken by values
        less certain than those one step ahead
    """

    Y: np.ndarray
    outliers: np.ndarray
    doubtful: np.ndarray

    @property
    def certain(self):
        """The outputs (n_rows, n_outputs), NaN where they are doubtful."""
        return np.where(self.doubtful, np.nan, self.Y)


class Stretch(NamedTuple):
    """Rows from ``first`` to before ``stop``, some of whose outputs are wrong.

    wrong : (stop - first,) bool
    sizes : (stop - first,) of their errors, 0 of right ones
    std : (stop - first,) of these sizes; None for long stretches
    residuals : of the rows from ``first`` on that the errors reach
    gain : of the logarithm of the probability, less what the stretch pays
    """

    first: int
    stop: int
    wrong: np.ndarray
    sizes: np.ndarray
    std: np.ndarray | None
    residuals: np.ndarray
    gain: float


def screen_outputs(U, Y, starts):
    """`Screened` outputs of a record, see the top of the file.

    Parameters
    ----------
    U, Y : (n_rows, n_inputs) and (n_rows, n_outputs), NaN where missing
    starts : (n_sessions + 1,) first rows of the sessions, and n_rows
    """
    far = far_outputs(U, Y, starts)
    given, Y = Y, np.where(far, np.nan, Y)
    none = np.zeros(Y.shape, dtype=bool)
    found = Screened(Y, none, none)
    lags = _lags_of_model(U, Y, starts)
    for number in range(N_ROUNDS if lags else 0):
        seen = found.certain if number else None
        each = [_screen_output(U, Y, seen, starts, o, lags) for o in range(Y.shape[1])]
        before, found = found, Screened(*map(np.column_stack, zip(*each, strict=True)))
        if (found.outliers == before.outliers).all():
            break
    exceptions = found.outliers & (found.outliers.mean(axis=0) <= MOST)
    kept = np.where(exceptions, found.Y, Y)
    found = Screened(kept, exceptions, exceptions & found.doubtful)
    return _with_far_rows(U, found, far, given, starts, lags) if far.any() else found


def _with_far_rows(U, found, far, given, starts, lags):
    """The `Screened` outputs, with those that are ``far`` off, which it lacks."""
    Y, doubtful = np.where(far, given, found.Y), found.doubtful | far
    filled = _without_short_gaps(found.Y, starts)
    for output in np.flatnonzero(far.any(axis=0)):
        y, rows = found.Y[:, output], np.flatnonzero(far[:, output])
        known = np.flatnonzero(np.isfinite(y))
        Y[rows, output] = np.interp(rows, known, y[known])
        missing = ~np.isfinite(y) & np.isfinite(filled[:, output])
        rows = rows[missing[rows]]
        if not len(rows) or not lags:
            continue
        record = found.Y, filled
        model = fit_robust_arx(U, record, found.certain, starts, output, lags)
        if model is None or model.scale == 0.0:
            continue
        sizes, std = _errors_of_missing(missing, model, starts)
        Y[rows, output] = filled[rows, output] - model.scale * sizes[rows]
        doubtful[rows, output] = std[rows] > 1.0
    return Screened(Y, found.outliers | far, doubtful)


def _errors_of_missing(missing, model, starts):
    """Sizes and deviations (n_rows,), in scales, of the errors of interpolated rows."""
    sizes, std = np.zeros(len(missing)), np.full(len(missing), np.inf)
    rows, reach = np.flatnonzero(missing), len(model.feedback)
    ends = np.asarray(starts)[np.searchsorted(starts, rows, side="right")]
    # what is out of reach of each other is solved for alone
    apart = (np.diff(rows) > reach) | (np.diff(ends) > 0)
    for group in np.split(np.arange(len(rows)), np.flatnonzero(apart) + 1):
        first, stop = rows[group[0]], rows[group[-1]] + 1
        reached = model.residuals[first : min(stop + reach, ends[group[0]])]
        known, free = np.isfinite(reached), missing[first:stop]
        errors = np.where(known, reached / model.scale, 0.0)
        found, deviations, _ = _sizes(errors, known, free, model.feedback)
        sizes[first:stop] = found
        if deviations is not None:
            std[first:stop] = deviations
    return sizes, std


def _lags_of_model(U, Y, starts):
    """The `Lags` of the linear model; None where no number of them leaves rows enough.

    The input of a controller in the same row tells the output exactly, as long as its
    set point rests: with it, the model would be that of the controller, and wherever
    the set point moves, outputs would seem to be wrong.
    """
    n_lags = _number_of_lags(U, Y, starts)
    if not n_lags:
        return None
    lags = make_lags(U.shape[1], Y.shape[1], n_lags, n_lags, True)
    # of changes, the equation is the same for every set point
    changes = _changes(U, starts), _changes(Y, starts)
    answers = inputs_of_controllers(*changes, starts, robust_error_of_function)
    answers = np.append(answers, np.zeros(Y.shape[1], dtype=bool))
    kept = (lags.lag > 0) | ~answers[lags.signal]
    return lags._replace(signal=lags.signal[kept], lag=lags.lag[kept])


def _changes(signals, starts):
    """From row to row, NaN in the first rows of sessions."""
    changes = np.diff(signals, axis=0, prepend=np.nan)
    changes[starts[:-1][np.diff(starts) > 0]] = np.nan
    return changes


def _number_of_lags(U, Y, starts):
    """Lags of the linear model; 0 where no number of them leaves rows enough."""
    n_signals = U.shape[1] + Y.shape[1]
    most = min(MAX_REGRESSORS, len(Y) // ROWS_PER_REGRESSOR)
    usual = usual_length(starts)
    n_lags = max(0, min(N_LAGS, most // n_signals - 1, usual // 4))
    is_complete = np.isfinite(Y).all()
    # beside missing outputs, shorter windows are complete more often
    # bound: N_LAGS
    while n_lags and not is_complete:
        lags = make_lags(U.shape[1], Y.shape[1], n_lags, n_lags, True)
        n_rows = len(complete_rows(U, Y, lags, starts))
        if n_rows >= ROWS_PER_REGRESSOR * n_signals * (n_lags + 1):
            break
        n_lags -= 1
    return n_lags


def _screen_output(U, Y, seen, starts, output, lags):
    """One column of the fields of `Screened`.

    ``seen`` is the record as the last round left it, None in the first one.
    """
    # the errors of other outputs are not those of this one
    measured = Y
    if seen is not None:
        measured = seen.copy()
        measured[:, output] = Y[:, output]
    filled = _without_short_gaps(measured, starts)
    missing = ~np.isfinite(Y[:, output]) & np.isfinite(filled[:, output])
    model = fit_robust_arx(U, (measured, filled), seen, starts, output, lags)
    y = Y[:, output].copy()
    outliers, doubtful = np.zeros((2, len(y)), dtype=bool)
    if model is None or model.scale == 0.0 or _is_held(y):
        return y, outliers, doubtful
    saturated = _saturated(y, None if seen is None else seen[:, output], model.scale)
    prices = _prices(y, model.scale, _repeats(y, saturated))
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        session = slice(start, stop)
        # what is not judged is as if it were taken
        taken = ~model.is_judged[session]
        repeats = _repeats(y[session], saturated[session])
        signal = _signal(repeats, missing[session], model, session)
        for stretch in _search(signal, model.scale, prices, taken):
            rows = start + np.arange(stretch.first, stretch.stop)[stretch.wrong]
            outliers[rows] = True
            y[rows] -= stretch.sizes[stretch.wrong]
            doubtful[rows] = stretch.std is None or stretch.std.max() > model.scale
    return y, outliers, doubtful


def _is_held(y):
    """Whether most values repeat the one before.

    They are rounded to coarse steps, or held between samples of a laboratory. Each new
    value is a surprise then, and none is wrong.
    """
    known = np.isfinite(y[1:] + y[:-1])
    return 2 * np.count_nonzero(y[1:] == y[:-1]) > np.count_nonzero(known)


class Prices(NamedTuple):
    """What a stretch pays, and how long it may be.

    of_row : of each row that does not repeat the one before
    of_run : of rows that repeat the one before, which is right; at least
    of_place : of such rows where no right ones repeat
    of_repeat : of each of them in ``of_place``, what right ones would pay to repeat
    range : of the output in scales, which no error exceeds
    longest, longest_repeated : rows
    """

    of_row: float
    of_run: float
    of_place: float
    of_repeat: float
    range: float
    longest: int
    longest_repeated: int


def _prices(y, scale, repeats):
    n_rows = len(y)
    longest = max(LEAST_LONGEST, int(LONGEST * n_rows))
    low, high = np.nanquantile(y, [0.005, 0.995])
    of_value = np.log(max(1.0, (high - low) / (np.sqrt(2.0 * np.pi) * scale)))
    repeats = np.append(repeats, False)
    # of two repeats at least
    n_runs = np.count_nonzero(repeats[:-2] & repeats[1:-1] & ~repeats[2:])
    of_place = float(np.log(n_rows * longest / RARITY))
    of_repeat = -float(np.log(max(1, np.count_nonzero(repeats)) / n_rows))
    of_run = float(np.log1p(n_runs))
    width = float(np.nanmax(y) - np.nanmin(y)) / scale
    repeated = max(longest, int(LONGEST_REPEATED * n_rows))
    of_row = of_place + float(of_value)
    return Prices(of_row, of_run, of_place, of_repeat, width, longest, repeated)


def _without_short_gaps(Y, starts):
    """The outputs, interpolated where few of them are missing in a row."""
    filled = Y.copy()
    for first, stop in zip(starts[:-1], starts[1:], strict=True):
        for y in filled[first:stop].T:
            rows = np.flatnonzero(np.isfinite(y))
            steps = np.diff(rows)
            for k in np.flatnonzero((steps > 1) & (steps <= SHORT_GAP + 1)):
                ends = rows[k : k + 2]
                inner = np.arange(ends[0] + 1, ends[1])
                y[inner] = np.interp(inner, ends, y[ends])
    return filled


def _signal(repeats, missing, model, session):
    """The `Signal` of a session, with the best values in place of ``missing`` ones."""
    residuals = model.residuals[session] / model.scale
    known = np.isfinite(residuals)
    if missing.any():
        sizes, *_ = _sizes(
            np.where(known, residuals, 0.0), known, missing, model.feedback
        )
        residuals -= _trace_of(sizes, model.feedback)[: len(residuals)]
    different = np.flatnonzero(~repeats)
    return Signal(residuals, repeats, different, missing, model.feedback, {})


def _trace_of(sizes, feedback):
    """What errors of such sizes do to the residuals of their rows and the next ones."""
    return np.convolve(sizes, np.append(1.0, -feedback))


def _search(signal, scale, prices, taken):
    """Yield the wrong `Stretch` es of a session, from its first row to its last.

    None holds a row that is ``taken`` (n_rows,), which is updated.
    """
    residuals, row = signal.residuals, 0
    # bound: every pass takes rows that were not taken, or goes on to a later row
    while row < len(residuals):
        large = np.flatnonzero(np.abs(residuals[row : row + PIECE]) > TRIGGER)
        if not len(large):
            row += PIECE
            continue
        row += int(large[0])
        best = _best_at(row, taken, signal, prices)
        if best is None:
            row += 1
            continue
        best = _without_right_rows(best, signal, prices)
        reached = slice(best.first, best.first + len(best.residuals))
        signal.residuals[reached] = best.residuals
        signal.evaluated.clear()
        taken[best.first : best.stop] |= best.wrong
        yield best._replace(
            sizes=best.sizes * scale,
            std=None if best.std is None else best.std * scale,
        )


class Signal(NamedTuple):
    """One output of a session.

    residuals : (n_rows,) in scales, NaN where there is none; changed by the search
    repeats : (n_rows,) bool, whether the value is that of the row before
    different : the other rows
    missing : (n_rows,) bool, whether the value is interpolated
    feedback : (n_lags,) weights of the past values
    evaluated : whole stretches by their first and last rows, for these residuals;
        large residuals next to each other ask for the same
    """

    residuals: np.ndarray
    repeats: np.ndarray
    different: np.ndarray
    missing: np.ndarray
    feedback: np.ndarray
    evaluated: dict


def _repeats(y, saturated):
    """Rows whose value is that of the row before, as of a sensor that sticks.

    Not where the output is ``saturated`` (n_rows,).
    """
    repeats = np.zeros(len(y), dtype=bool)
    repeats[1:] = (y[1:] == y[:-1]) & ~saturated[1:]
    return repeats


def _saturated(y, seen, scale):
    """Rows (n_rows,) bool where an output may be saturated: at an end of its range.

    ``seen`` is the output as the last round left it. An end that it does not approach
    is that of a sensor that reads far off. The last round may have taken a saturated
    output for a sensor that sticks, or not yet found one that reads far off: both the
    ends of all values and of those that it held to be right are looked at.
    """
    if seen is None:
        # gross errors are not known yet
        low, high = np.nanquantile(y, EDGES)
        return (y <= low) | (y >= high)
    saturated = np.zeros(len(y), dtype=bool)
    for sign in (-1.0, 1.0):
        for end in {np.nanmax(sign * y), np.nanmax(sign * seen)}:
            if _is_approached(end, sign * y, sign * seen, scale):
                saturated |= sign * y == end
    return saturated


def _is_approached(end, y, seen, scale):
    """Whether an output comes up to an ``end`` step by step, or at the pace it had."""
    others = seen[np.isfinite(seen) & (seen != end)]
    tolerance = TRIGGER * scale
    if np.abs(others - end).min(initial=np.inf) <= tolerance:
        return True
    entries = 2 + np.flatnonzero((y[2:] == end) & (y[1:-1] != end))
    before = seen[entries - 1]
    at_that_pace = before + (before - seen[entries - 2])
    return bool((at_that_pace >= end - tolerance).any())


def _best_at(row, taken, signal, prices):
    """The `Stretch` that explains a large residual and those near it best, or None.

    A disturbance before a wrong row is not explained by it: what a stretch from a later
    large residual on explains as well, to the same end, is left to that.
    """
    near = np.abs(signal.residuals[row : row + len(signal.feedback)]) > TRIGGER
    rows = row + np.flatnonzero(near)[:N_STARTS]
    pairs = {p for r in rows for p in _candidates(int(r), taken, signal, prices)}
    found = [_whole(first, stop, signal, prices) for first, stop in sorted(pairs)]
    found = [stretch for stretch in found if stretch.gain > 0.0]
    for stretch in sorted(found, key=lambda stretch: -stretch.gain):
        inner = signal.residuals[stretch.first + 1 : stretch.stop]
        later = stretch.first + 1 + np.flatnonzero(np.abs(inner) > TRIGGER)
        if stretch.first < row or not any(
            _whole(int(first), stretch.stop, signal, prices).gain >= stretch.gain
            for first in later[:N_ENDS]
        ):
            return stretch
    return None


def _candidates(row, taken, signal, prices):
    """First and last rows of stretches that may explain a large residual.

    Those from it to another one; those that repeat one value around it or, where a
    sensor sticks that hardly had to move, up to it; and rows before it whose residual
    is not known, as at the start of a session. None holds a row that was taken.
    """
    part = np.abs(signal.residuals[row + 1 : row + 1 + prices.longest])
    others = row + 1 + np.flatnonzero(part > TRIGGER)
    ends = {row + 1, *others[:N_ENDS].tolist(), *others[-2:].tolist()}
    found = {(row, stop) for stop in ends}
    different = signal.different
    place = int(np.searchsorted(different, row, side="right"))
    begin, end = different[place - 1], len(signal.repeats)
    if place < len(different):
        end = different[place]
    # the value that is repeated may be a right one
    found |= {(int(begin) + 1, int(end)), (row, int(end))}
    if place > 1 and begin == row:
        found.add((int(different[place - 2]) + 1, row))
    before = np.arange(max(0, row - len(signal.feedback)), row)
    unknown = before[np.isnan(signal.residuals[before])]
    found |= {(int(k), stop) for k in unknown for stop in (int(k) + 1, row)}
    return [pair for pair in found if _may_be_wrong(*pair, taken, signal, prices)]


def _may_be_wrong(first, stop, taken, signal, prices):
    """Whether a stretch is neither too long nor taken."""
    # the first of equal values may be a right one
    repeated = signal.repeats[first + 1 : stop].all()
    longest = prices.longest_repeated if repeated else prices.longest
    return first < stop <= first + longest and not taken[first:stop].any()


def _whole(first, stop, signal, prices):
    """The `Stretch` from ``first`` to before ``stop``, all of whose rows are wrong.

    But for those that are missing.
    """
    rows = first, stop
    if rows not in signal.evaluated:
        wrong = ~signal.missing[first:stop]
        signal.evaluated[rows] = _evaluate(first, stop, signal, prices, wrong)
    return signal.evaluated[rows]


def _evaluate(first, stop, signal, prices, wrong):
    """The `Stretch` of some rows from ``first`` to before ``stop``."""
    n_rows = stop - first
    price = _price_of(wrong, signal.repeats[first:stop], prices)
    # the values that were interpolated in reach may be others, too
    missing = signal.missing[first : stop + len(signal.feedback)]
    n_free = int(np.flatnonzero(missing)[-1]) + 1 if missing[n_rows:].any() else n_rows
    free = missing[:n_free].copy()
    free[:n_rows] |= wrong
    reached = signal.residuals[first : first + n_free + len(signal.feedback)]
    known = np.isfinite(reached)
    evidence = misfit(reached[known])
    # where the residual of a wrong row is not known, a disturbance explains the largest
    # one that it reaches as well
    unknown = np.flatnonzero(wrong & ~known[:n_rows])
    before = np.sort(evidence)[: max(0, len(evidence) - len(unknown))].sum()
    if before <= price or not wrong.any():
        nothing, gain = np.zeros(n_rows), min(0.0, float(before - price))
        return Stretch(first, stop, wrong, nothing, None, reached, gain)
    sizes, std, log_determinant = _sizes(
        np.where(known, reached, 0.0), known, free, signal.feedback
    )
    left = reached - _trace_of(sizes, signal.feedback)[: len(reached)]
    gain = before - misfit(left[known]).sum() - price - 0.5 * log_determinant
    if (np.abs(sizes[unknown]) > prices.range).any():
        gain = -np.inf
    std = None if std is None else std[:n_rows]
    return Stretch(first, stop, wrong, sizes[:n_rows], std, left, float(gain))


def _price_of(wrong, repeats, prices):
    """What the ``wrong`` rows of a stretch pay."""
    price = prices.of_row * np.count_nonzero(wrong & ~repeats)
    stuck = np.flatnonzero(np.diff(wrong, prepend=False) & wrong & repeats)
    for first in stuck:
        others = np.flatnonzero(~(wrong & repeats)[first:])
        n_repeats = int(others[0]) if len(others) else len(wrong) - first
        price += max(prices.of_run, prices.of_place - prices.of_repeat * n_repeats)
    return price


def _sizes(residuals, known, wrong, feedback):
    """Errors of the wrong rows that explain residuals, by robust least squares.

    Returns
    -------
    sizes, std : (n_rows,) in scales, 0 of right rows; std is None for long stretches
    log_determinant : of the matrix of the normal equations, not negative
    """
    trace = np.append(1.0, -feedback)
    n_rows, n_reached = len(wrong), len(residuals)
    weights, target = np.zeros((2, n_rows + len(feedback)))
    target[:n_reached] = residuals
    weights[:n_reached] = known
    log_determinant = None
    for _ in range(N_STEPS):
        normal = _normal_matrix(weights, trace, wrong)
        if log_determinant is None:
            pivots = cholesky_banded(normal, lower=True)[0]
            log_determinant = 2.0 * float(np.log(pivots[wrong]).sum())
        products = np.correlate(weights * target, trace, "valid")
        sizes = solveh_banded(normal, np.where(wrong, products, 0.0), lower=True)
        left = target - _trace_of(sizes, feedback)
        weights[:n_reached] = np.where(known, weights_of(left[:n_reached]), 0.0)
    std = None
    if n_rows <= LONGEST_TO_SPLIT:
        inverse = solveh_banded(normal, np.eye(n_rows), lower=True)
        std = np.sqrt(np.diag(inverse))
    return sizes, std, max(0.0, log_determinant)


def _normal_matrix(weights, trace, wrong):
    """``T.T @ diag(weights) @ T`` in the lower form of SciPy's banded matrices."""
    n_rows = len(wrong)
    n_bands = min(len(trace), n_rows)
    normal = np.zeros((n_bands, n_rows))
    for band in range(n_bands):
        products = trace[: len(trace) - band] * trace[band:]
        values = np.correlate(weights[band:], products, "valid")
        normal[band, : n_rows - band] = values[: n_rows - band]
    size = max(1.0, normal[0].max())
    # outputs between missing ones may leave no trace
    normal[0] += RIDGE * size
    # right rows have no error
    normal[0, ~wrong] += FIXED * size
    return normal


def _without_right_rows(stretch, signal, prices):
    """The stretch without the rows whose errors are not told from none, if that pays.

    A stretch between two gross errors explains both, and whatever lies between them.
    """
    if stretch.std is None:
        return stretch
    repeats = signal.repeats[stretch.first : stretch.stop]
    wrong = np.abs(stretch.sizes) > PLAUSIBLE * stretch.std
    wrong = stretch.wrong & (wrong | repeats)
    if not wrong.any() or (wrong == stretch.wrong).all():
        return stretch
    fewer = _evaluate(stretch.first, stretch.stop, signal, prices, wrong)
    if fewer.gain < stretch.gain:
        return stretch
    return _without_right_rows(fewer, signal, prices)
