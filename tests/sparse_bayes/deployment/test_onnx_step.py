"""Models as ONNX, run by onnxruntime."""

import json
import sys

import numpy as np
import pytest
from lagged_models import NAMES, fit, fit_model, new_record
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


@pytest.mark.parametrize("name", NAMES)
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


def test_a_single_network_needs_few_operators():
    """Those that do-mpc reads."""
    nodes = fit_model("difference").to_onnx().graph.node
    known = {"Concat", "MatMul", "Add", "Sub", "Mul", "Tanh"}
    assert {node.op_type for node in nodes} == known


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_outputs", [1, 2])
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
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install skbayesnn\[onnx\]"):
        model.to_onnx()
