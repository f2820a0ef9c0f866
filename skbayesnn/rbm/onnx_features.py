"""The features of a fitted RBM as a graph of ONNX."""

import numpy as np

from .._onnx_graph import GraphBuilder


def features_model(rbm, binarize, n_features, dtype):
    """The model X -> H, the expected states of the hidden units, of an `RBM`."""
    graph = GraphBuilder(dtype)
    states = "X"
    if binarize is not None:
        above = graph.node("Greater", "X", graph.constant(binarize))
        states = graph.cast(above)
    x = graph.node("MatMul", states, graph.constant(rbm.weights.T))
    x = graph.node("Add", x, graph.constant(rbm.hidden))
    means = graph.node("Sigmoid", x)
    weights = graph.constant(np.broadcast_to(rbm.unit_weights, len(rbm.hidden)))
    graph.node("Mul", means, weights, name="H")
    return graph.model("features", {"X": n_features}, {"H": len(rbm.hidden)})
