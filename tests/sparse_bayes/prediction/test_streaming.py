"""Free runs in pieces, from a saved state, and row by row."""

import copy
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from lagged_models import MODELS, TRIED, fit, fit_model, new_record
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import SimulationState, SparseBayesNARXRegressor

N_BEFORE = 6


@pytest.fixture(scope="module", params=TRIED)
def model(request):
    return fit_model(request.param)


@pytest.fixture(scope="module")
def simple():
    return fit()


def test_pieces_are_the_whole(model):
    """Up to rounding, and through pickle."""
    u, y = new_record(model)
    whole = model.predict(u, y_init=y[:N_BEFORE])
    assert np.isfinite(whole).all()
    start = {"y_init": y[:N_BEFORE]}
    pieces = []
    for rows in (slice(0, 20), slice(20, 21), slice(21, 23), slice(23, 60)):
        piece, state = model.predict(u[rows], **start, return_state=True)
        pieces.append(piece)
        start = {"state": pickle.loads(pickle.dumps(state))}
    assert_allclose(np.concatenate(pieces), whole, rtol=1e-12)
    assert_array_equal(
        model.predict(u[23:], state=start["state"]).shape, pieces[3].shape
    )
    lag = model.max_lag_
    assert_array_equal(state.inputs, u[60 - lag :])
    n_estimators = len(getattr(model, "estimators_", [model]))
    assert state.outputs.shape == (n_estimators, lag, model.n_outputs_)
    assert not state.diverged.any()


@pytest.mark.parametrize("start", ["means", "before", "few", "first rows of y"])
def test_state_after_every_kind_of_start(model, start):
    u, y = new_record(model)
    arguments = {
        "means": {},
        "before": {"X_init": u[:N_BEFORE], "y_init": y[:N_BEFORE]},
        "few": {"y_init": y[:1]},
        "first rows of y": {"y": y, "horizon": None},
    }[start]
    whole = model.predict(u, **arguments)
    if start == "first rows of y":
        arguments["y"] = y[:30]
    head, state = model.predict(u[:30], **arguments, return_state=True)
    tail = model.predict(u[30:], state=state)
    assert_allclose(np.concatenate([head, tail]), whole, rtol=1e-12)


def test_a_run_that_begins_behind_a_gap(model):
    """It has the same rows with and without its state."""
    u, y = new_record(model)
    y[1] = np.nan
    whole = model.predict(u, y, horizon=None)
    assert np.isfinite(whole[8:]).all()
    head, state = model.predict(u[:30], y[:30], horizon=None, return_state=True)
    tail = model.predict(u[30:], state=state)
    assert_allclose(np.concatenate([head, tail]), whole, rtol=1e-12)


def test_stream_is_predict(model):
    u, y = new_record(model)
    before = {"X_init": u[:N_BEFORE], "y_init": y[:N_BEFORE]}
    whole = model.predict(u[N_BEFORE:], **before)
    stream = model.stream(**before)
    stepped = [stream.step(row) for row in u[N_BEFORE:30]]
    assert type(stepped[0]) is (float if model._model.single_output else np.ndarray)
    state = stream.state
    rest = stream.run(u[30:])
    together = np.concatenate([stepped, rest])
    assert_allclose(together, whole, rtol=1e-10)
    # the three ways on from there
    _, expected = model.predict(u[N_BEFORE:30], **before, return_state=True)
    for ours, theirs in zip(state, expected, strict=True):
        assert_allclose(ours, theirs, rtol=1e-10)
    stream.state = state
    assert_array_equal(stream.run(u[30:]), rest)
    assert_array_equal(model.stream(state=state).run(u[30:]), rest)
    assert_allclose(model.predict(u[30:], state=state), rest, rtol=1e-10)


def test_stream_from_the_training_means(model):
    u, _ = new_record(model)
    assert_allclose(model.stream().run(u), model.predict(u), rtol=1e-10)


def test_update_steps_ahead_of_measured_outputs(model):
    u, y = new_record(model)
    lag = model.max_lag_
    stream = model.stream(u[:N_BEFORE], y[:N_BEFORE])
    predicted = []
    for row in range(N_BEFORE, 60):
        predicted.append(stream.step(u[row]))
        stream.update(y[row])
    assert_allclose(predicted, model.predict(u, y)[N_BEFORE:], rtol=1e-10)
    if lag:
        measured = np.reshape(y, (60, -1))[60 - lag :]
        for outputs in stream.state.outputs:
            assert_array_equal(outputs, measured)


def test_kinds_of_inputs(simple):
    stream = simple.stream()
    start = stream.state
    predictions = []
    for u in (2.0, np.float64(2), 2, [2], np.array([2.0]), np.array(2, dtype=np.int8)):
        stream.state = start
        predictions.append(stream.step(u))
    assert len(set(predictions)) == 1
    for y in (2.0, np.float64(2), 2, [2], np.array([2.0])):
        stream.update(y)
        assert stream.state.outputs[0, -1, 0] == 2.0
    autoregression = fit(**MODELS["autoregression"]).stream()
    assert np.isfinite(autoregression.step())
    column = fit()
    column._model = column._model._replace(single_output=False)
    assert column.stream().step(1.0).shape == (1,)


def test_an_output_that_was_not_measured_stays_as_predicted():
    model = fit(**MODELS["two by two"])
    stream = model.stream()
    predicted = stream.step([1.0, -1.0])
    stream.update([np.nan, 5.0])
    assert_array_equal(stream.state.outputs[0, -1], [predicted[0], 5.0])


@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.MissingInputWarning")
def test_a_missing_input():
    model = fit(**MODELS["FIR"])
    u, _ = new_record(model)
    u[10] = np.nan
    whole = model.predict(u)
    missing = np.flatnonzero(np.isnan(whole))
    # only the lags that survived reach it
    assert len(missing) and np.isin(missing, [10, 11, 12, 13]).all()
    assert_allclose(model.stream().run(u), whole, rtol=1e-10)
    head, state = model.predict(u[:12], return_state=True)
    tail = model.predict(u[12:], state=state)
    assert_allclose(np.concatenate([head, tail]), whole, rtol=1e-12)


def unstable(**parameters):
    """y(t) = 1.5 y(t-3): a lag that reaches over the row that diverges."""
    y = np.zeros(60)
    y[:3] = 1e-3
    rng = np.random.default_rng(0)
    for t in range(3, 60):
        y[t] = 1.5 * y[t - 3] + 1e-5 * rng.normal()
    options = {"hidden_layer_sizes": (), "output_lags": [3], "reg_lambda": 0.0}
    options = {**options, **parameters}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SparseBayesNARXRegressor(**options).fit(None, y)


def test_what_diverged_stays_so():
    model = unstable()
    rows, y_init = np.empty((60, 0)), np.array([1.0, 2.0, 3.0])
    start = {"X_init": np.empty((3, 0)), "y_init": y_init}
    with pytest.warns(RuntimeWarning, match="predicted rows diverged"):
        whole = model.predict(rows, **start)
    first = int(np.argmax(np.isnan(whole)))
    assert 0 < first < 58 and np.isnan(whole[first:]).all()
    with pytest.warns(RuntimeWarning, match="1 predicted rows diverged"):
        head, state = model.predict(rows[: first + 1], **start, return_state=True)
    assert state.diverged.tolist() == [True]
    with pytest.warns(RuntimeWarning, match=f"{59 - first} predicted rows diverged"):
        tail = model.predict(rows[first + 1 :], state=state)
    assert_allclose(np.concatenate([head, tail]), whole, rtol=1e-12)
    stream = model.stream(y_init=y_init)
    assert_allclose(stream.run(rows), whole, rtol=1e-10)
    assert stream.state.diverged.tolist() == [True]
    # measured outputs bring it back, once the lag of 3 reaches the first of them
    back = []
    for _ in range(4):
        stream.update(1.0)
        back.append(bool(np.isfinite(stream.step())))
    assert back == [False, False, True, True]


def test_a_new_fit_and_a_copy_do_not_disturb_a_stream():
    model = fit()
    u, y = new_record(model)
    expected = model.stream().run(u)
    stream = model.stream()
    twin = copy.deepcopy(stream)
    read = pickle.loads(pickle.dumps(stream))
    model.set_params(random_state=3, input_lags=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(u, -5 * y)
    for one in (stream, twin, read):
        assert_array_equal(one.run(u), expected)


def test_state_is_a_copy(simple):
    u, _ = new_record(simple)
    stream = simple.stream()
    state = stream.state
    kept = copy.deepcopy(state)
    stream.run(u)
    simple.predict(u, state=state)
    for array, before in zip(state, kept, strict=True):
        assert_array_equal(array, before)
    state.outputs[:] = 7.0
    assert (stream.state.outputs != 7.0).all()


def test_errors_of_predict(simple):
    u, y = new_record(simple)
    state = simple.stream().state
    with pytest.raises(ValueError, match="sessions"):
        simple.predict(u, state=state, sessions=np.zeros(60))
    with pytest.raises(ValueError, match="sessions"):
        simple.predict(u, return_state=True, sessions=np.zeros(60))
    with pytest.raises(ValueError, match="return_std"):
        simple.predict(u, state=state, return_std=True)
    with pytest.raises(ValueError, match="return_std"):
        simple.predict(u, return_state=True, return_std=True)
    with pytest.raises(ValueError, match="free run"):
        simple.predict(u, y, return_state=True)
    for other in ({"y": y, "horizon": None}, {"y_init": y[:2]}):
        with pytest.raises(ValueError, match="neither y, y_init nor X_init"):
            simple.predict(u, state=state, **other)
    with pytest.raises(ValueError, match="X must not be None"):
        simple.predict(None, state=state)
    with pytest.raises(TypeError, match="SimulationState"):
        simple.predict(u, state=tuple(state))


@pytest.mark.parametrize("field", SimulationState._fields)
def test_a_state_of_another_model(simple, field):
    state = simple.stream().state
    wrong = state._replace(**{field: getattr(state, field)[:0]})
    u, _ = new_record(simple)
    message = f"another model: {field} must have shape"
    with pytest.raises(ValueError, match=message):
        simple.predict(u, state=wrong)
    stream = simple.stream()
    with pytest.raises(ValueError, match=message):
        stream.state = wrong
    with pytest.raises(ValueError, match=message):
        simple.stream(state=wrong)


def test_errors_of_streams(simple):
    u, y = new_record(simple)
    stream = simple.stream()
    with pytest.raises(ValueError, match="pass both"):
        simple.stream(y_init=y)
    with pytest.raises(ValueError, match="pass both"):
        simple.stream(u)
    with pytest.raises(ValueError, match="pass it, or X_init"):
        simple.stream(u, y, state=stream.state)
    with pytest.raises(ValueError, match="at least max_lag_=2"):
        simple.stream(u[:1], y[:1])
    for inputs in (None, [1.0, 2.0], [[1.0]]):
        with pytest.raises((TypeError, ValueError)):
            stream.step(inputs)
    stream.step(1.0)
    with pytest.raises(ValueError, match="y must hold 1 outputs"):
        stream.update([1.0, 2.0])
    with pytest.raises(ValueError, match=r"X must have shape \(n_rows, 1\)"):
        stream.run(u[:, 0])


def named_record():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((60, 2)), columns=["a", "b"])
    p = np.convolve(X["a"] - 3.0 * X["b"], [0.0, 0.5, 0.3])[:60]
    return X, pd.DataFrame({"p": p, "q": p**2})


def test_names_of_signals_are_compared():
    X, y = named_record()
    model = SparseBayesNARXRegressor(2, 2, hidden_layer_sizes=()).fit(X, y)
    stream = stream_of(model, X, y)
    outputs = stream.step(X.iloc[10])
    swapped, row = X[["b", "a"]], y.iloc[10]
    for call, names in (
        (lambda: stream.step(swapped.iloc[11]), "['a', 'b']"),
        (lambda: stream.run(swapped[11:13]), "['a', 'b']"),
        (lambda: stream.update(row[["q", "p"]]), "['p', 'q']"),
    ):
        problem = rf"another order than .* had in fit: expected {re.escape(names)}, got"
        with pytest.raises(ValueError, match=problem):
            call()
    with pytest.raises(ValueError, match="X has other inputs than X had in fit"):
        stream.run(X[11:13].rename(columns={"a": "c"}))
    # what is refused changes nothing
    twin = stream_of(model, X, y)
    assert_array_equal(twin.step(X.iloc[10].to_numpy()), outputs)
    stream.update(row)
    twin.update(row.to_numpy())
    assert_array_equal(stream.run(X[11:13]), twin.run(X[11:13].to_numpy()))


def test_times_of_rows_are_no_inputs():
    X, y = named_record()
    model = SparseBayesNARXRegressor(2, 2, hidden_layer_sizes=()).fit(X, y)
    timed = X.assign(time=np.arange(len(X)))[["a", "time", "b"]]
    expected = stream_of(model, X, y).run(X[9:13])
    assert_array_equal(stream_of(model, X, y).run(timed[9:13]), expected)


def stream_of(model, X, y):
    stream = model.stream(X[:9], y[:9])
    stream.step(X.iloc[9].to_numpy())
    return stream
