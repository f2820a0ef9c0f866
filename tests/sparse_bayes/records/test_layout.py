"""Records as data of a free run: stretches, restarts, and the path in user's units."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn._validation import session_starts
from skbayesnn.sparse_bayes.network import init_network
from skbayesnn.sparse_bayes.records.lags import (
    build_lag_matrix,
    complete_rows,
    make_lags,
)
from skbayesnn.sparse_bayes.records.layout import (
    free_run_data,
    with_horizon,
    with_unknown_start,
)
from skbayesnn.sparse_bayes.scaling import Scaling

NAMES = ["tanh", "relu", "logistic"]


class Record:
    """Random signals, lags with holes, and a network that stays stable on them."""

    def __init__(
        self,
        n_inputs=2,
        n_outputs=1,
        input_lags=(0, 2),
        output_lags=(1, 3),
        sessions=(20,),
        missing_inputs=(),
        missing_outputs=(),
        activation="tanh",
        seed=0,
    ):
        rng = np.random.default_rng(seed)
        n_rows = sum(sessions)
        self.U = rng.standard_normal((n_rows, n_inputs))
        self.Y = rng.standard_normal((n_rows, n_outputs))
        for place in missing_inputs:
            self.U[place] = np.nan
        for place in missing_outputs:
            self.Y[place] = np.nan
        self.lags = make_lags(
            n_inputs, n_outputs, list(input_lags), list(output_lags), False
        )
        self.sessions = np.repeat(np.arange(len(sessions)), sessions)
        self.starts = session_starts(self.sessions, n_rows)
        n_features = len(self.lags.lag)
        self.scaling = Scaling(
            rng.standard_normal(n_features),
            rng.uniform(0.5, 2.0, size=n_features),
            rng.standard_normal(n_outputs),
            rng.uniform(0.5, 2.0, size=n_outputs),
        )
        self.weights = rng.uniform(0.5, 1.5, size=n_outputs)
        network = init_network((n_features, 3, n_outputs), activation, rng, skip=True)
        theta = 0.2 * rng.standard_normal(len(network.theta))
        self.network = network._replace(theta=theta)
        self.n_outputs = n_outputs

    def data(self):
        return free_run_data(
            self.U, self.Y, self.lags, self.starts, self.scaling, self.weights
        )

    @property
    def regressors(self):
        return list(zip(self.lags.signal.tolist(), self.lags.lag.tolist(), strict=True))

    @property
    def model(self):
        layers = naive.unflatten(self.network.theta, self.network.full_sizes)
        activation = NAMES[self.network.activation]
        return naive.Recursion(layers, activation, self.regressors, *self.scaling)

    def stretches(self):
        return naive.stretches(self.U, self.Y, self.regressors, self.sessions)

    def simulate(self, start, stop):
        path, diverged = naive.free_run(self.model, self.U, self.Y, start, stop)
        assert diverged == -1
        return path[start:stop]

    def path(self, data):
        """Of the data, in the user's units."""
        path = data.path(self.network)
        return path * self.scaling.y_scale + self.scaling.y_offset


RECORDS = [
    dict(),
    dict(n_outputs=2),
    dict(n_outputs=2, input_lags=(1,), output_lags=(2, 4), activation="relu"),
    dict(n_inputs=0, output_lags=(1, 2), activation="logistic"),
    # an input may reach further back than every output
    dict(input_lags=(0, 5), output_lags=(1,)),
    dict(input_lags=(0, 5), output_lags=(1,), missing_outputs=[3, 9]),
    dict(output_lags=(), input_lags=(1, 2)),
    dict(output_lags=(), input_lags=(1, 2), missing_outputs=[1, 2, 9]),
    # the second session is too short, the third just long enough
    dict(sessions=(8, 3, 4, 9)),
    dict(missing_inputs=[8]),
    dict(missing_inputs=[(9, 1)], n_outputs=2),
    dict(missing_inputs=[0, 19], missing_outputs=[5]),
    dict(missing_outputs=[10]),
    dict(missing_outputs=[(10, 1), 14], n_outputs=2),
    # nothing can start before the first complete window
    dict(missing_outputs=[1, 4]),
    # after the gap of an input, the next start waits for the outputs
    dict(missing_inputs=[6], missing_outputs=[7, 11]),
    dict(
        n_outputs=2,
        sessions=(15, 12),
        missing_inputs=[(4, 0), 22],
        missing_outputs=[(12, 0), (17, 1), 20],
    ),
]


@pytest.mark.parametrize("options", RECORDS, ids=str)
def test_stretches(options):
    record = Record(**options)
    data, can_start = record.data()
    stretches, windows = record.stretches()
    assert stretches
    rows = np.concatenate([np.arange(*stretch) for stretch in stretches])
    lengths = [stop - start for start, stop in stretches]
    assert_array_equal(data.origin, np.repeat(np.cumsum([0, *lengths[:-1]]), lengths))
    assert_array_equal(can_start, windows[rows])
    assert can_start[np.unique(data.origin)].all()
    scaled = (record.Y[rows] - record.scaling.y_offset) / record.scaling.y_scale
    assert_allclose(data.Y, scaled, rtol=1e-14)
    Z = build_lag_matrix(record.U, record.Y, record.lags, rows)
    expected = (Z - record.scaling.x_offset) / record.scaling.x_scale
    assert_allclose(data.X, expected, rtol=1e-14)
    assert not data.given.any() and (data.unknown == -1).all()
    assert data.weights is record.weights
    measured = np.isfinite(record.Y[rows])
    assert data.n_observations == np.count_nonzero(measured)
    assert_array_equal(data.counts, np.count_nonzero(measured, axis=0))


@pytest.mark.parametrize("options", RECORDS, ids=str)
def test_path_is_the_free_run_of_each_stretch(options):
    record = Record(**options)
    data, _ = record.data()
    expected = [record.simulate(*stretch) for stretch in record.stretches()[0]]
    assert_allclose(record.path(data), np.concatenate(expected), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("options", RECORDS, ids=str)
def test_errors_count_where_outputs_are_measured(options):
    record = Record(**options)
    data, _ = record.data()
    squares = np.zeros(record.n_outputs)
    for start, stop in record.stretches()[0]:
        residual = record.simulate(start, stop) - record.Y[start:stop]
        squares += np.nansum((residual / record.scaling.y_scale) ** 2, axis=0)
    assert_allclose(data.squared_errors(record.network), squares, rtol=1e-11)


@pytest.mark.parametrize("options", RECORDS, ids=str)
@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_runs_against_a_target_end_with_its_last_value(options, share):
    record = Record(**options)
    rng = np.random.default_rng(1)
    target = np.where(rng.random(record.Y.shape) < share, record.Y, np.nan)
    data, _ = free_run_data(
        *(record.U, record.Y, record.lags, record.starts, record.scaling),
        record.weights,
        target,
    )
    squares, n_rows = np.zeros(record.n_outputs), 0
    for start, stop in record.stretches()[0]:
        counts = np.flatnonzero(np.isfinite(target[start:stop]).any(axis=1))
        if len(counts):
            n_rows += counts[-1] + 1
            residual = record.simulate(start, stop) - target[start:stop]
            squares += np.nansum((residual / record.scaling.y_scale) ** 2, axis=0)
    assert len(data.Y) == len(data.origin) == n_rows
    assert_allclose(data.squared_errors(record.network), squares, rtol=1e-11)


def test_a_missing_input_ends_the_stretch_and_a_missing_output_does_not():
    """Spelt out once: lags 0 and 2 of the input, 1 and 3 of the output."""
    record = Record(n_inputs=1, missing_inputs=[8], missing_outputs=[5])
    data, can_start = record.data()
    # row 8 and row 10 read the missing input; row 9 reads neither, but follows upon
    # row 8 without an output of its own run, and starts anew from measured ones
    assert_array_equal(data.origin, [*[0] * 5, 5, *[6] * 9])
    rows = [*range(3, 8), 9, *range(11, 20)]
    assert_array_equal(np.flatnonzero(~can_start), [rows.index(r) for r in (6, 7)])
    assert_array_equal(np.isnan(data.Y[:, 0]), np.isin(rows, [5]))


def test_nothing_to_run_through():
    record = Record(sessions=(3, 2))
    data, can_start = record.data()
    assert len(data.X) == len(data.Y) == len(can_start) == data.n_observations == 0


@pytest.mark.parametrize("options", RECORDS, ids=str)
@pytest.mark.parametrize("horizon", [1, 2, 3, 5, 100])
def test_horizon(options, horizon):
    record = Record(**options)
    whole, can_start = record.data()
    data = with_horizon(whole, can_start, horizon)
    expected, origin = [], []
    stretches, windows = record.stretches()
    for start, stop in stretches:
        # a new run after so many rows, as soon as a window is complete
        firsts = [start]
        for row in range(start + 1, stop):
            if row - firsts[-1] >= horizon and windows[row]:
                firsts.append(row)
        for first, end in zip(firsts, [*firsts[1:], stop], strict=True):
            origin += [len(origin)] * (end - first)
            expected.append(record.simulate(first, end))
    assert_array_equal(data.origin, origin)
    assert_allclose(record.path(data), np.concatenate(expected), rtol=1e-11, atol=1e-12)
    # the data that were given stay as they were
    assert_array_equal(whole.origin, record.data()[0].origin)


def test_without_a_horizon_runs_are_whole():
    record = Record(sessions=(9, 8), missing_outputs=[13])
    data, can_start = record.data()
    assert with_horizon(data, can_start, np.inf) is data
    assert_array_equal(with_horizon(data, can_start, 99).origin, data.origin)


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_horizon_one_is_the_one_step_prediction(n_outputs):
    record = Record(n_outputs=n_outputs, sessions=(9, 8), missing_inputs=[12])
    data, can_start = record.data()
    path = record.path(with_horizon(data, can_start, 1))
    rows = complete_rows(record.U, record.Y, record.lags, record.starts)
    Z = build_lag_matrix(record.U, record.Y, record.lags, rows)
    Z = (Z - record.scaling.x_offset) / record.scaling.x_scale
    out = naive.forward(record.model.layers, record.model.activation, Z)
    expected = out * record.scaling.y_scale + record.scaling.y_offset
    assert_allclose(path, expected, rtol=1e-12)


@pytest.mark.parametrize("sessions", [(12,), (7, 4, 9)])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_records_from_unknown_outputs(n_outputs, sessions):
    record = Record(n_outputs=n_outputs, sessions=sessions, missing_outputs=[0, 2])
    before, scaling = record.lags.max_lag, record.scaling
    data, can_start = with_unknown_start(
        record.U, record.Y, record.lags, record.starts, scaling, record.weights
    )
    # any initial outputs will do for a comparison of the paths
    rng = np.random.default_rng(1)
    expected, given, row = [], [], 0
    for start, stop in zip(record.starts[:-1], record.starts[1:], strict=True):
        length = stop - start + before
        unknown = before * n_outputs * len(given) + np.arange(before * n_outputs)
        head = slice(row, row + before)
        assert_array_equal(data.unknown[head], unknown.reshape(before, n_outputs))
        assert data.given[head].all() and np.isnan(data.Y[head]).all()
        # the first guess is what is measured first
        Y = record.Y[start:stop]
        first = [y[np.isfinite(y)][0] for y in Y.T]
        scaled = (np.array(first) - scaling.y_offset) / scaling.y_scale
        assert_allclose(data.initial[head], np.tile(scaled, (before, 1)), rtol=1e-13)
        assert_array_equal(data.origin[row : row + length], np.full(length, row))
        # a restart reads measured outputs alone
        windows = [
            t >= before and np.isfinite(Y[t - before : t]).all()
            for t in range(-before, stop - start)
        ]
        assert_array_equal(can_start[row : row + length], windows)
        initial = rng.standard_normal((before, n_outputs))
        data.initial[head] = (initial - scaling.y_offset) / scaling.y_scale
        U = np.concatenate([record.U[[start] * before], record.U[start:stop]])
        path, diverged = naive.free_run(
            record.model, U, np.concatenate([initial, Y]), before, length
        )
        assert diverged == -1
        expected.append(path)
        given.append(head)
        row += length
    assert len(data.X) == row and data.given.sum() == before * len(given)
    assert data.n_observations == np.count_nonzero(np.isfinite(record.Y))
    path = record.path(data)
    assert_allclose(path, np.concatenate(expected), rtol=1e-11, atol=1e-12)


def test_records_from_unknown_outputs_need_all_inputs():
    record = Record(missing_inputs=[8])
    with pytest.raises(ValueError, match="no missing values"):
        with_unknown_start(
            record.U,
            record.Y,
            record.lags,
            record.starts,
            record.scaling,
            record.weights,
        )
