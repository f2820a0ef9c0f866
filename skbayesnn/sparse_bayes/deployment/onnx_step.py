"""Networks as graphs of ONNX: one step of a lagged model, or a static network."""

import numpy as np

from ..._onnx_graph import GraphBuilder
from ..kernels.activations import RELU, TANH
from ..network import split_layers
from ..prediction.ensemble import ROUNDING

OPERATORS = {TANH: "Tanh", RELU: "Relu"}
# of sums of weights in single precision that should be one half
ROUNDING_SINGLE = 1e-6


COMBINATIONS = ("median", "mean")


def step_model(equations, dtype, combine="median"):
    """The model (state, u) -> (state_next, y) of a `Equations`.

    ``combine`` says how y follows from the networks of an ensemble.
    """
    if combine not in COMBINATIONS:
        raise ValueError(f"combine must be one of {COMBINATIONS}; got {combine!r}.")
    graph = GraphBuilder(dtype)
    # an input of no width could not be fed by all runtimes
    widths = {"state": equations.n_states, "u": equations.n_inputs}
    inputs = {name: width for name, width in widths.items() if width}
    if not inputs:
        raise ValueError("The model reads nothing: it is a constant, and has no graph.")
    v = graph.node("Concat", *inputs, axis=1, name="state_and_u")
    n_networks = len(equations.steps)
    hidden = equations.n_hidden
    name = "y" if n_networks == 1 and not hidden else None
    n_read = equations.n_states + equations.n_inputs
    members = [_member(graph, v, step, n_read, name) for step in equations.steps]
    outputs = members[0]
    if n_networks > 1:
        join = _median if combine == "median" else _mean
        outputs = join(graph, members, equations.weights, None if hidden else "y")
    if hidden:
        n_values = hidden + equations.n_outputs
        seen = graph.constant(_selection(np.arange(hidden, n_values), n_values))
        graph.node("MatMul", outputs, seen, name="y")
    outputs = {"state_next": equations.n_states, "y": equations.n_outputs}
    if equations.n_states:
        joined = graph.node("Concat", v, *members, axis=1, name="all_values")
        n_joined = n_read + n_networks * (hidden + equations.n_outputs)
        shift = graph.constant(_selection(equations.source, n_joined))
        graph.node("MatMul", joined, shift, name="state_next")
    else:
        del outputs["state_next"]
    properties = {
        "state_names": equations.state_names,
        "input_names": equations.input_names,
        "output_names": equations.output_names,
        "initial_state": equations.mean_state().tolist(),
    }
    return graph.model("one_step", inputs, outputs, properties)


def static_model(fitted, n_inputs, dtype):
    """The model X -> y of a `FittedNetwork`."""
    graph = GraphBuilder(dtype)
    used = fitted.network.units[0]
    selection = graph.constant(_selection(used, n_inputs))
    regressors = graph.node("MatMul", "X", selection)
    scaled = _network(graph, fitted, regressors)
    _rescaled(graph, fitted, scaled, "y")
    n_outputs = len(fitted.scaling.y_scale)
    return graph.model("network", {"X": n_inputs}, {"y": n_outputs})


def _selection(places, n_values):
    """The matrix (n_values, n_places) that takes some of a row's values."""
    return np.eye(n_values)[:, places]


def _member(graph, v, step, n_values, name):
    """Outputs of one network from the states and inputs, ``n_values`` in all."""
    fitted = step.fitted
    selection = _selection(step.near, n_values)
    fed = step.far >= 0
    selection[:, fed] -= _selection(step.far[fed], n_values)
    regressors = graph.node("MatMul", v, graph.constant(selection))
    scaled = _network(graph, fitted, regressors)
    if (step.last < 0).all():
        return _rescaled(graph, fitted, scaled, name)
    change = _rescaled(graph, fitted, scaled, None)
    last = graph.node("MatMul", v, graph.constant(_selection(step.last, n_values)))
    return graph.node("Add", change, last, name=name)


def _network(graph, fitted, regressors):
    """Scaled outputs from the regressors that the network reads."""
    network, scaling = fitted.network, fitted.scaling
    used = network.units[0]
    offset = graph.constant(scaling.x_offset[used])
    scale = graph.constant(1.0 / scaling.x_scale[used])
    z = graph.node("Mul", graph.node("Sub", regressors, offset), scale)
    blocks = split_layers(network.theta, network.sizes, network.skip)
    n_layers, h = len(network.sizes) - 1, z
    for layer, (weights, biases) in enumerate(blocks[:n_layers]):
        h = graph.node("MatMul", h, graph.constant(weights))
        h = graph.node("Add", h, graph.constant(biases))
        if layer < n_layers - 1:
            h = graph.node(OPERATORS.get(int(network.activation), "Sigmoid"), h)
    if network.skip:
        direct = graph.node("MatMul", z, graph.constant(blocks[-1][0]))
        h = graph.node("Add", h, direct)
    return h


def _rescaled(graph, fitted, scaled, name):
    """Outputs in the user's units."""
    scaling = fitted.scaling
    product = graph.node("Mul", scaled, graph.constant(scaling.y_scale))
    return graph.node("Add", product, graph.constant(scaling.y_offset), name=name)


def _mean(graph, members, weights, name):
    """Weighted mean over the networks."""
    parts = [
        graph.node("Mul", member, graph.constant(weight))
        for member, weight in zip(members, weights, strict=True)
    ]
    total = parts[0]
    for k, part in enumerate(parts[1:], start=2):
        last = name if k == len(parts) else None
        total = graph.node("Add", total, part, name=last)
    return total


def _median(graph, members, weights, name):
    """Weighted median over the networks, as in `prediction.ensemble`.

    A value is the median if half of the weight is not above it, and where exactly half
    is, the median lies between it and the next.
    """
    rounding = ROUNDING if graph.dtype == np.float64 else ROUNDING_SINGLE
    one = graph.axes(1)
    values = [graph.node("Unsqueeze", member, one) for member in members]
    values = graph.node("Concat", *values, axis=1)
    # [row, k, j, output]: the weight of network j, if its value is not above that of k
    others = graph.node("Unsqueeze", values, one)
    own = graph.node("Unsqueeze", values, graph.axes(2))
    not_above = graph.cast(graph.node("LessOrEqual", others, own))
    of_each = graph.node("Mul", not_above, graph.constant(weights[:, None]))
    below = graph.node("ReduceSum", of_each, graph.axes(2), keepdims=0)
    far = graph.constant(np.finfo(graph.dtype).max)
    ends = []
    for least, operator in (
        (0.5 - rounding, "GreaterOrEqual"),
        (0.5 + rounding, "Greater"),
    ):
        reached = graph.node(operator, below, graph.constant(least))
        candidates = graph.node("Where", reached, values, far)
        ends.append(graph.node("ReduceMin", candidates, one, keepdims=0))
    half = graph.constant(0.5)
    # halves first: the sum of two large values may be beyond all numbers
    low, high = (graph.node("Mul", end, half) for end in ends)
    return graph.node("Add", low, high, name=name)
