"""Data frames: names of the outputs, and predictions in the form of the data."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skbayesnn import SparseBayesNARXRegressor, SparseBayesNARXRegressorCV
from skbayesnn.metrics import one_step_scorer, simulation_scorer

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N = 80


def signals():
    rng = np.random.default_rng(0)
    u, y = rng.uniform(-1, 1, size=(N, 1)), np.zeros((N, 2))
    for t in range(1, N):
        y[t] = [0.7, -0.4] * y[t - 1] + [1.0, 20.0] * u[t - 1] + [0.0, 50.0]
    return u, y + [0.01, 0.2] * rng.standard_normal((N, 2))


U, Y = signals()
LINEAR = dict(hidden_layer_sizes=(), max_cycles=5, tol=1.0)


def linear(**lags):
    return SparseBayesNARXRegressor(**lags, **LINEAR)


@pytest.fixture
def framed(frames):
    """The signals as frames, and a model of them."""
    u = frames.DataFrame({"pump": U[:, 0]})
    y = frames.DataFrame({"level": Y[:, 0], "temp": Y[:, 1]})
    model = linear(input_lags=1, output_lags={"level": 1, "temp": [1, 3]})
    return model.fit(u, y), u, y


def test_outputs_have_the_names_of_their_frame(framed):
    model, _, _ = framed
    assert model.output_names_.tolist() == ["level", "temp"]
    names = ["pump(t)", "pump(t-1)", "level(t-1)", "temp(t-1)", "temp(t-3)"]
    assert list(model.lag_relevance_) == names
    assert model.get_lagged_feature_names_out().tolist() == names
    assert list(model.longer_lags_) == ["pump", "level", "temp"]


def test_another_order_of_the_outputs_is_refused(framed):
    model, u, y = framed
    swapped, one = y[["temp", "level"]], y[["level"]]
    problem = r"another order .* expected \['level', 'temp'\], got \['temp', 'level'\]"
    for call in (
        lambda: model.score(u, swapped),
        lambda: model.predict(u, swapped),
        lambda: model.predict(u, y_init=swapped[:5]),
        lambda: model.sample_y(u, swapped, n_samples=1),
        lambda: model.stream(u[:5], swapped[:5]),
        lambda: model.forecast(3, u[:3], X_past=u, y_past=swapped),
        lambda: simulation_scorer(model, u, swapped),
        lambda: one_step_scorer(model, u, swapped),
    ):
        with pytest.raises(ValueError, match=problem):
            call()
    with pytest.raises(ValueError, match="other outputs than y had in fit"):
        model.score(u, one)
    # arrays are taken by their order
    assert model.score(u, y.to_numpy()) == model.score(u, y) > 0.99


def test_a_series_has_a_name(frames):
    y = frames.Series(name="level", **_values(frames, Y[:, 0]))
    model = linear().fit(U, y)
    assert model.output_names_.tolist() == ["level"]
    assert "level(t-1)" in model.lag_relevance_
    assert model.predict(U, y).shape == (N,)
    other = frames.Series(name="temp", **_values(frames, Y[:, 1]))
    with pytest.raises(ValueError, match=r"expected \['level'\], got \['temp'\]"):
        model.score(U, other)


def _values(frames, values):
    return {"data": values} if frames.__name__ == "pandas" else {"values": values}


def test_without_names_nothing_is_remembered():
    model = linear().fit(pd.DataFrame(U, columns=["pump"]), pd.DataFrame(Y))
    assert not hasattr(model, "output_names_")
    assert list(model.longer_lags_) == ["pump", "y0", "y1"]
    # and forgotten by the next fit
    model.fit(U, pd.DataFrame(Y, columns=["level", "temp"]))
    assert hasattr(model, "output_names_")
    assert not hasattr(model.fit(U, Y), "output_names_")


def test_an_output_is_no_input():
    frame = pd.DataFrame({"pump": U[:, 0], "level": Y[:, 0]})
    with pytest.raises(ValueError, match="X and y both have a column 'level'"):
        linear().fit(frame, frame["level"])


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_an_output_without_a_name_is_no_input(n_outputs):
    """Entries of ``lag_relevance_`` would replace one another."""
    name = "y" if n_outputs == 1 else "y1"
    frame = pd.DataFrame({"pump": U[:, 0], name: 2.0 * U[:, 0]})
    with pytest.raises(ValueError, match=f"X has a column '{name}'.* name the outputs"):
        linear().fit(frame, Y[:, :n_outputs])
    names = ["level", "temp"][:n_outputs]
    model = linear().fit(frame, pd.DataFrame(Y[:, :n_outputs], columns=names))
    assert list(model.longer_lags_) == ["pump", name, *names]


def test_an_output_has_not_the_name_of_an_unnamed_input():
    with pytest.raises(ValueError, match="y has a column 'x0'.* pass X as a data"):
        linear().fit(U, pd.Series(Y[:, 0], name="x0"))


def test_members_of_a_searched_ensemble_have_the_names():
    y = pd.Series(Y[:, 0], name="level")
    model = SparseBayesNARXRegressorCV(
        (1,), (3.0,), cv=2, n_estimators=2, hidden_layer_sizes=1, max_cycles=3
    ).fit(pd.DataFrame(U, columns=["pump"]), y)
    # the present input may be left out
    expected = {"pump(t)", "pump(t-1)", "level(t-1)"}
    assert {"pump(t-1)", "level(t-1)"} <= set(model.lag_relevance_) <= expected
    for member in model.estimators_:
        assert set(member.lag_relevance_) <= expected
        assert member.output_names_.tolist() == ["level"]


def test_predictions_are_frames_on_demand(framed):
    model, u, y = framed
    plain, plain_std = model.predict(u, y, return_std=True)
    assert isinstance(plain, np.ndarray)
    for library in ("pandas", "polars"):
        pytest.importorskip(library)
        model.set_output(predict=library).set_output()
        mean, std = clone(model).fit(u, y).predict(u, y, return_std=True)
        for frame, values in ((mean, plain), (std, plain_std)):
            assert type(frame).__module__.startswith(library)
            assert list(frame.columns) == ["level", "temp"]
            assert_array_equal(frame.to_numpy(), values)
    model.set_output(predict="default")
    assert isinstance(model.predict(u, y), np.ndarray)
    with pytest.raises(ValueError, match="'pandas' or 'polars'.* got 'numpy'"):
        model.set_output(predict="numpy")


def test_frames_have_the_times_of_the_inputs(frames):
    times = pd.date_range("2024-05-01", periods=N, freq="2s")
    u = frames.DataFrame({"time": times.to_numpy(), "pump": U[:, 0]})
    model = linear().fit(u, Y[:, 0]).set_output(predict=frames.__name__)
    assert model.sampling_time_ == 2.0
    assert model.feature_names_in_.tolist() == ["pump"]
    frame = model.predict(u)
    assert list(frame.columns) == ["time", "y"]
    assert_array_equal(frame["time"].to_numpy(), times.to_numpy())
    indexed = pd.DataFrame({"pump": U[:, 0]}, index=times)
    model.set_output(predict="pandas")
    assert model.predict(indexed).index.equals(times)
