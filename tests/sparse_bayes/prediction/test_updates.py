"""What a stream of every kind of model is told of the row predicted last."""

import copy
import pickle

import numpy as np
import pytest
from mixtures import MIXTURES, lags, mix, states
from numpy.testing import assert_array_equal

from skbayesnn.datasets import make_coupled_drives

KINDS = ("lags", "states", *MIXTURES)


@pytest.fixture(scope="module")
def data():
    return make_coupled_drives(80, return_X_y=True, random_state=0)


@pytest.fixture(scope="module", params=KINDS)
def model(request, data):
    alone = {"lags": ([lags(2)], [1.0]), "states": ([states(2)], [1.0])}
    return mix(*(alone | MIXTURES)[request.param], *data)


def test_an_update_needs_a_step(model, data):
    u, y = data
    streams = [model.stream(u[:20], y[:20]) for _ in range(3)]
    streams[1].step(u[20])
    streams[1].state = model.stream(u[:20], y[:20]).state
    streams[2].run(u[:0])
    streams[2].state = streams[1].state
    for stream in streams:
        with pytest.raises(ValueError, match="call step first"):
            stream.update(99.0)
        expected = model.stream(u[:20], y[:20]).run(u[20:30])
        assert_array_equal(stream.run(u[20:30]), expected)
        stream.update(y[29])


def test_a_second_update_corrects_the_first(model, data):
    u, y = data
    stream, twin = (model.stream(u[:20], y[:20]) for _ in range(2))
    for t in range(20, 30):
        assert stream.step(u[t]) == twin.step(u[t])
        stream.update(y[t] + 1.0)
        if t % 2:
            stream = pickle.loads(pickle.dumps(copy.deepcopy(stream)))
        stream.update(y[t])
        # nothing new
        stream.update(np.nan)
        twin.update(y[t])
    assert_array_equal(stream.run(u[30:]), twin.run(u[30:]))


def test_outputs_that_arrive_one_by_one(data):
    u, y = data
    Y = np.column_stack([y, np.sqrt(np.abs(y))])
    for network in (lags(2), states(2)):
        model = mix([network], [1.0], u, Y)
        model._model = model._model._replace(single_output=False)
        stream, twin = (model.stream(u[:20], Y[:20]) for _ in range(2))
        for t in range(20, 30):
            assert_array_equal(stream.step(u[t]), twin.step(u[t]))
            stream.update([np.nan, Y[t, 1]])
            stream.update([Y[t, 0], np.nan])
            twin.update(Y[t])
        assert_array_equal(stream.run(u[30:]), twin.run(u[30:]))
