"""Models as ONNX, run by onnxruntime."""

import json
import sys

import numpy as np
import pytest
from grids import first_by_default
from lagged_models import TRIED, fit, fit_model, new_record
from numpy.testing import assert_allclose

from skbayesnn import SparseBayesMLPRegressor

onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
runtime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")


def session(model):
    return runtime.InferenceSession(model.SerializeToString())


def run(model, U, states):
    """Free runs side by side, from states (n_runs, n_states)."""
    step = session(model)
    names = {one.name for one in step.get_inputs()}
    dtype = {"tensor(float)": np.float32, "tensor(double)": np.float64}[
        step.get_inputs()[0].type
    ]
    state, out = np.array(states, dtype=dtype), []
    for u in U:
        rows = np.tile(np.array(u, dtype=dtype), (len(state), 1))
        given = {"state": state, "u": rows}
        results = step.run(None, {key: given[key] for key in given if key in names})
        found = dict(
            zip([one.name for one in step.get_outputs()], results, strict=True)
        )
        state = found.get("state_next", state)
        out.append(found["y"])
    return np.array(out)


@pytest.mark.parametrize("name", TRIED)
def test_it_is_the_model(name):
    model = fit_model(name)
    u, _ = new_record(model)
    space = model.to_state_space()
    starts = np.array([space.initial_state(), space.initial_state() + 0.1])
    expected = [space.simulate(u, start) for start in starts]
    for dtype, tolerance in (("float64", 1e-11), ("float32", 1e-4)):
        found = run(model.to_onnx(dtype=dtype), u, starts)
        assert found.dtype == dtype
        assert_allclose(np.swapaxes(found, 0, 1), expected, atol=tolerance)


def test_the_file_and_its_metadata(tmp_path):
    model = fit_model("two by two")
    path = tmp_path / "model.onnx"
    written = model.to_onnx(path)
    read = onnx.load(path)
    assert read == written
    properties = {one.key: json.loads(one.value) for one in read.metadata_props}
    space = model.to_state_space()
    assert properties["state_names"] == space.state_names
    assert properties["input_names"] == ["x0", "x1"]
    assert_allclose(properties["initial_state"], space.initial_state())
    assert {opset.domain for opset in read.opset_import} == {""}


@pytest.mark.parametrize(
    "name", first_by_default(["ensemble", "ensemble, two by two", "other lags"])
)
def test_the_mean_of_an_ensemble(name):
    """Each network runs on its own outputs, and y is the mean of all."""
    model = fit_model(name)
    u, _ = new_record(model)
    equations = model._equations()
    x, expected = equations.mean_state(), []
    for now in u:
        v = np.concatenate([x, now])
        expected.append(equations.weights @ equations.member_outputs(v))
        x, _ = equations.step(x, now)
    start = model.to_state_space().initial_state()[None]
    found = run(model.to_onnx(dtype="float64", combine="mean"), u, start)
    assert_allclose(found[:, 0], expected, atol=1e-11)
    single = fit_model("default")
    assert single.to_onnx(combine="mean") == single.to_onnx()


# do-mpc tells at its import what else it could do
@pytest.mark.filterwarnings("ignore:The .* feature:UserWarning")
@pytest.mark.parametrize("name", ["difference", "ensemble"])
def test_do_mpc_reads_it(name):
    """The expression of CasADi is the step of the file."""
    import casadi
    from do_mpc.sysid import ONNXConversion

    model = fit_model(name)
    space = model.to_state_space()
    file = model.to_onnx(dtype="float64", combine="mean")
    x, u = casadi.SX.sym("x", 1, space.n_states), casadi.SX.sym("u", 1, 1)
    network = ONNXConversion(file)
    network.convert(state=x, u=u)
    step = casadi.Function("step", [x, u], [network["state_next"], network["y"]])
    state = space.initial_state()
    expected = session(file).run(None, {"state": state[None], "u": [[0.7]]})
    for one, other in zip(step(state, 0.7), expected, strict=True):
        assert_allclose(one.full(), other, atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_outputs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_the_static_network(n_outputs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.column_stack([np.sin(X[:, 0]), X[:, 1]])[:, :n_outputs]
    network = SparseBayesMLPRegressor((4,), random_state=0).fit(X, y)
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-5)):
        (found,) = session(network.to_onnx(dtype=dtype)).run(
            None, {"X": X.astype(dtype)}
        )
        assert_allclose(found, network.predict(X), atol=tolerance)


def test_errors(monkeypatch):
    model = fit()
    with pytest.raises(ValueError, match="dtype must be one of"):
        model.to_onnx(dtype="float16")
    with pytest.raises(ValueError, match="combine must be one of"):
        model.to_onnx(combine="sum")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match="pip install onnx"):
        model.to_onnx()
