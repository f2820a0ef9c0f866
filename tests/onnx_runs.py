"""Graphs of ONNX, run row by row beside the model that they come from."""

import numpy as np
import pytest
from numpy.testing import assert_allclose


def assert_graph_is_the_model(model, U, x, combine):
    """Its states and outputs from a state x on, for rows U of inputs."""
    runtime = pytest.importorskip("onnxruntime")
    graph = model.to_onnx(dtype="float64", combine=combine)
    session = runtime.InferenceSession(graph.SerializeToString())
    space, equations, state = model.to_state_space(), model._equations(), x[None]
    for row in U:
        feed = {"state": state, "u": row[None]}
        state, out = session.run(["state_next", "y"], feed)
        values = equations.member_outputs(np.append(x, row))
        x, expected = space.step(x, row)
        if combine == "mean":
            expected = (equations.weights @ values)[equations.n_hidden :]
        assert_allclose(out[0], expected, atol=1e-10)
        assert_allclose(state[0], x, atol=1e-10)
