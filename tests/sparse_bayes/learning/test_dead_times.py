"""Dead times: where the effect of an input begins, and that none is invented."""

import numpy as np
import pytest

from skbayesnn.sparse_bayes.learning.dead_times import BLOCK, dead_times


def record(times, n_rows=600, seed=0, noise=0.05, outputs=1):
    """Each input acts on each output behind its dead time; None: not at all."""
    rng = np.random.default_rng((n_rows, seed))
    longest = max(time or 0 for time in times) + 1
    U = rng.standard_normal((n_rows + longest, len(times)))
    # a signal that stays for a while
    for t in range(1, len(U)):
        U[t] = 0.7 * U[t - 1] + 0.7 * U[t]
    Y = np.zeros((len(U), outputs))
    for t in range(longest, len(U)):
        effect = sum(
            np.tanh(U[t - 1 - time, k])
            for k, time in enumerate(times)
            if time is not None
        )
        Y[t] = 0.8 * Y[t - 1] + 0.2 * effect
    Y += noise * Y.std() * rng.standard_normal(Y.shape)
    return U[longest:], Y[longest:]


def found(U, Y, starts=None, **options):
    starts = np.array([0, len(Y)]) if starts is None else starts
    return dead_times(U, Y, starts, **options)


def brute_force(u, y, longest):
    """The first place of the one block that is as good as the best, by lstsq."""
    rows = np.arange(longest + BLOCK - 1, len(y))
    own = [y[rows - lag] for lag in range(1, BLOCK + 1)]
    rest = []
    for place in range(longest + 1):
        block = [u[rows - place - k] for k in range(BLOCK)]
        Z = np.column_stack([np.ones(len(rows)), *own, *block])
        weights = np.linalg.lstsq(Z, y[rows])[0]
        rest.append(np.sum((y[rows] - Z @ weights) ** 2))
    behind = len(rows) * np.log(np.array(rest) / min(rest))
    places = np.flatnonzero(behind <= 2.0 * np.log(len(rows) * len(rest)))
    return int(places[0])


@pytest.mark.parametrize("time", [12, 25, 60])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_first_place_that_is_as_good_as_the_best(time, seed):
    U, Y = record([time], seed=seed)
    (one,) = found(U, Y, longest=100)
    assert one == brute_force(U[:, 0], Y[:, 0], 100)
    # the first effect is in the block
    assert one <= time + 1 < one + BLOCK


def test_each_input_has_its_own():
    U, Y = record([None, 30, 0, 12], n_rows=1500, outputs=2)
    none, late, at_once, soon = found(U, Y)
    assert none == at_once == 0
    assert late <= 31 < late + BLOCK and soon <= 13 < soon + BLOCK


def test_units_and_offsets_do_not_matter():
    U, Y = record([30, 0], outputs=2)
    expected = found(U, Y)
    assert found(U * [1e6, 1e-6] + [1e9, 3.0], Y * [1e-5, 1e4] - 7.0) == expected


@pytest.mark.parametrize(
    "times",
    [
        pytest.param([0], marks=pytest.mark.slow),
        [3],
        pytest.param([0, 1], marks=pytest.mark.slow),
        [None],
        [None, 2],
    ],
)
def test_none_is_invented(times):
    invented = [found(*record(times, seed=seed)) for seed in range(20)]
    assert sum(map(bool, invented)) <= 3


def test_sessions_holes_and_short_records():
    U, Y = record([20], n_rows=900)
    Y[::90] = np.nan
    U[450] = np.nan
    (time,) = found(U, Y, starts=np.array([0, 300, 900]))
    assert time <= 21 < time + BLOCK
    # not beyond a quarter of a session, or what is asked for
    assert max(found(U, Y, starts=np.arange(0, 901, 60)), default=0) <= 15
    assert max(found(U, Y, longest=10), default=0) <= 10
    assert found(U, Y, starts=np.arange(0, 901, 20)) == ()
    assert found(U, Y, longest=5) == ()
    assert found(U[:30], Y[:30]) == ()
    assert found(U[:, :0], Y) == ()
    assert found(np.zeros_like(U), Y) == () == found(U, np.zeros_like(Y))
    assert found(np.full_like(U, np.nan), Y) == ()
    assert found(np.full_like(U, 0.1), Y) == () == found(U, np.full_like(Y, 0.3))


def test_many_rows_are_looked_at_in_part():
    U, Y = record([40], n_rows=20_000)
    (time,) = found(U, Y)
    assert time <= 41 < time + BLOCK
