"""Steps of a packed model against a slow twin that keeps all rows.

Also run with bounds checks and without the compiler: sizes stay small.
"""

import naive
import numba
import numpy as np
import pytest
from lagged import Recursion
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn.sparse_bayes.kernels import activations
from skbayesnn.sparse_bayes.kernels import packed as stream
from skbayesnn.sparse_bayes.kernels.layers import Layers

CODES = {
    "tanh": activations.TANH,
    "relu": activations.RELU,
    "logistic": activations.LOGISTIC,
}
N_ROWS = 4  # of history, the one to predict included


class Twin:
    """One random network and its whole past, as a list of rows."""

    def __init__(self, rng, n_inputs, n_outputs, pairs, hidden, skip, activation):
        signal, lag = np.reshape(pairs, (-1, 2)).astype(np.int64).T.copy()
        self.sizes = np.array([len(lag), *hidden, n_outputs])
        n_parameters = sum((self.sizes[:-1] + 1) * self.sizes[1:])
        n_parameters += len(lag) * n_outputs * skip
        self.skip = bool(skip)
        self.theta = 0.4 * rng.standard_normal(n_parameters)
        self.activation = activation
        self.recursion = Recursion(
            signal=signal,
            lag=lag,
            x_offset=rng.standard_normal(len(lag)),
            x_scale=rng.uniform(0.5, 1.5, size=len(lag)),
            y_offset=rng.standard_normal(n_outputs),
            y_scale=rng.uniform(0.5, 1.5, size=n_outputs),
            limit=100.0,
        )
        self.diverged = False
        self.rows = [np.full(n_inputs + n_outputs, np.nan)] * N_ROWS

    def packed(self):
        code = CODES[self.activation]
        layers = Layers(self.theta, self.sizes, code, self.skip)
        return stream.Member(layers, *self.recursion[:6])

    def step(self, u):
        recursion = self.recursion
        n_outputs = len(recursion.y_scale)
        self.rows.append(np.concatenate([u, np.full(n_outputs, np.nan)]))
        back = -1 - recursion.lag
        x = np.array(
            [self.rows[b][s] for b, s in zip(back, recursion.signal, strict=True)]
        )
        if self.diverged or not np.isfinite(x).all():
            return
        scaled = (x - recursion.x_offset) / recursion.x_scale
        layers = naive.unflatten(self.theta, self.sizes)
        out = naive.forward(layers, self.activation, scaled[None])[0]
        self.diverged = not (np.abs(out) <= recursion.limit).all()
        if not self.diverged:
            self.rows[-1][len(u) :] = out * recursion.y_scale + recursion.y_offset

    def update(self, y):
        outputs = self.rows[-1][-len(y) :]
        outputs[np.isfinite(y)] = y[np.isfinite(y)]
        self.diverged = self.diverged and not np.isfinite(outputs).all()


def weighted_median(values, weights):
    """By sorting; NaN where those that are there have less than half of the weight."""
    known = np.isfinite(values)
    if weights[known].sum() < 0.5:
        return np.nan
    order = np.argsort(values[known])
    values, weights = values[known][order], weights[known][order]
    share = np.cumsum(weights) / weights.sum()
    low, high = np.argmax(share >= 0.5 - 1e-9), np.argmax(share > 0.5 + 1e-9)
    return 0.5 * (values[low] + values[high])


class NetworkEnsemble:
    """Twins and the packed model of them, stepped side by side."""

    def __init__(self, twins, weights, n_inputs, n_outputs, limit=100.0):
        self.twins, self.weights = twins, np.asarray(weights)
        self.n_inputs, self.n_outputs = n_inputs, n_outputs
        self.memory, self.layout = stream.pack(
            [twin.packed() for twin in twins],
            weights,
            n_inputs,
            n_outputs,
            N_ROWS,
            limit,
        )

    def step(self, u):
        """What the twins expect, and what the kernel gives."""
        for twin in self.twins:
            twin.step(u)
        self.memory[: self.n_inputs] = u
        first = stream.step(self.memory, self.layout)
        given = self.memory[self.n_inputs : self.n_inputs + self.n_outputs].copy()
        assert_array_equal(first, given[0])
        rows = np.array([twin.rows[-1][self.n_inputs :] for twin in self.twins])
        if len(self.twins) == 1:
            return rows[0], given
        expected = [weighted_median(column, self.weights) for column in rows.T]
        return np.array(expected), given

    def update(self, y):
        for twin in self.twins:
            twin.update(y)
        self.memory[self.n_inputs : self.n_inputs + self.n_outputs] = y
        stream.update(self.memory, self.layout)

    def fill(self, rng):
        """Steps with measured outputs, until all windows are complete."""
        for _ in range(N_ROWS):
            self.step(rng.standard_normal(self.n_inputs))
            self.update(rng.standard_normal(self.n_outputs))

    def check_histories(self):
        newest = self.layout[stream.NOW] // (self.n_inputs + self.n_outputs)
        histories = stream.histories(self.memory, self.layout)
        for twin, history in zip(self.twins, histories, strict=True):
            ordered = np.roll(history, -1 - newest, axis=0)
            assert_allclose(ordered, twin.rows[-N_ROWS:], rtol=1e-12, atol=1e-14)
        gone = [twin.diverged for twin in self.twins]
        assert_array_equal(stream.diverged(self.layout), gone)


def ensemble(
    n_networks=1,
    n_inputs=1,
    n_outputs=1,
    pairs=((0, 0), (0, 2), (1, 1), (1, 3)),
    hidden=(3,),
    skip=False,
    activation="tanh",
    seed=0,
):
    rng = np.random.default_rng(seed)
    twins = [
        # members look back differently
        Twin(rng, n_inputs, n_outputs, pairs[k:] or pairs, hidden, skip, activation)
        for k in range(n_networks)
    ]
    weights = rng.uniform(0.5, 1.0, size=n_networks)
    return NetworkEnsemble(twins, weights / weights.sum(), n_inputs, n_outputs), rng


MODELS = [
    {},
    {"hidden": ()},
    {"hidden": (), "skip": True},
    {"hidden": (4, 2), "skip": True, "activation": "logistic"},
    {"hidden": (9,), "activation": "relu"},
    {"pairs": ((0, 0),)},
    {"pairs": ()},
    {"n_inputs": 0, "pairs": ((0, 1), (0, 3))},
    {"n_inputs": 2, "n_outputs": 2, "pairs": ((1, 0), (3, 1), (2, 3), (0, 2))},
    {"n_networks": 2},
    {"n_networks": 3, "skip": True},
    {
        "n_networks": 4,
        "n_inputs": 2,
        "n_outputs": 2,
        "pairs": ((1, 0), (3, 1), (2, 3), (0, 2)),
    },
]


@pytest.mark.parametrize("options", MODELS)
def test_steps_and_updates_against_the_twin(options):
    model, rng = ensemble(**options)
    model.fill(rng)
    for row in range(13):
        expected, given = model.step(rng.standard_normal(model.n_inputs))
        assert_allclose(given, expected, rtol=1e-12, atol=1e-14)
        assert np.isfinite(given).all()
        if row in (4, 5):
            y = rng.standard_normal(model.n_outputs)
            y[-1] = np.nan
            model.update(y)
        model.check_histories()


@pytest.mark.parametrize("options", MODELS)
def test_run_is_many_steps(options):
    model, rng = ensemble(**options)
    model.fill(rng)
    memory, layout = model.memory.copy(), model.layout.copy()
    X = rng.standard_normal((9, model.n_inputs))
    stepped = [model.step(u)[1] for u in X]
    out = np.empty((9, model.n_outputs))
    stream.run(memory, layout, X, out)
    assert_array_equal(out, stepped)
    assert_array_equal(memory, model.memory)
    assert_array_equal(layout, model.layout)


@pytest.mark.parametrize("n_networks", [1, 3])
@pytest.mark.parametrize("missing", [np.nan, np.inf])
def test_a_missing_input_is_missing_as_long_as_lags_reach_it(n_networks, missing):
    model, rng = ensemble(n_networks, pairs=((0, 0), (0, 3)))
    model.fill(rng)
    seen = []
    for row in range(7):
        u = np.array([missing]) if row == 2 else rng.standard_normal(1)
        expected, given = model.step(u)
        assert_allclose(given, expected, rtol=1e-12, atol=1e-14)
        seen.append(bool(np.isnan(given[0])))
    if n_networks == 1:
        assert seen == [False, False, True, False, False, True, False]
    model.check_histories()


def test_a_network_that_diverged_goes_on_only_after_an_update():
    model, rng = ensemble(pairs=((0, 0), (1, 3)), hidden=())
    model.fill(rng)
    recursion = model.twins[0].recursion
    model.step(np.array([1e6 * recursion.x_scale[0]]))
    for _ in range(3):
        # no lag reaches the row that diverged before the third of these
        expected, given = model.step(np.zeros(1))
        assert np.isnan(given).all() and np.isnan(expected).all()
    model.check_histories()
    for _ in range(4):
        model.update(np.ones(1))
        expected, given = model.step(np.zeros(1))
        assert_allclose(given, expected, rtol=1e-12, atol=1e-14)
    assert np.isfinite(given).all()


@pytest.mark.parametrize("seed", range(20))
def test_median_with_ties_and_lost_members(seed):
    rng = np.random.default_rng(seed)
    model, _ = ensemble(4, pairs=((0, 0),))
    weights = rng.choice([[0.25] * 4, [0.5, 0.2, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])
    values = rng.integers(0, 3, size=4).astype(float)
    values[rng.uniform(size=4) < 0.3] = np.nan
    packed = [twin.packed() for twin in model.twins]
    memory, layout = stream.pack(packed, weights, 1, 1, N_ROWS, 100.0)
    for history, value in zip(stream.histories(memory, layout), values, strict=True):
        history[2, 1] = value
    median = stream._combine(memory, layout, 5)
    assert_array_equal(median, weighted_median(values, weights))


@pytest.fixture(scope="module")
def steps():
    """Steps of a stream, one after another, in compiled code."""

    @numba.njit
    def steps(memory, layout, n_steps):
        for _ in range(n_steps):
            stream.step(memory, layout)
            stream.update(memory, layout)

    return steps


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("n_networks", [1, 3])
def test_steps_allocate_nothing(steps, n_networks):
    from numba.core.runtime import _nrt_python, rtsys

    model, rng = ensemble(n_networks)
    model.fill(rng)
    steps(model.memory, model.layout, 1)
    were_on = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    try:
        stats = [rtsys.get_allocation_stats()]
        for n_steps in (1, 1000):
            steps(model.memory, model.layout, n_steps)
            stats.append(rtsys.get_allocation_stats())
    finally:
        if not were_on:
            _nrt_python.memsys_disable_stats()
    # each call makes a handle of each of its two arguments, and no step makes any
    assert np.diff([one.alloc for one in stats]).tolist() == [2, 2]
    assert np.diff([one.mi_alloc for one in stats]).tolist() == [2, 2]
