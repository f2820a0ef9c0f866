"""Graphs of ONNX, node by node, from its standard operators."""

import json
from pathlib import Path

import numpy as np

from ._optional import import_extra

# ReduceMin takes its axes as an input from here on.
OPSET, IR_VERSION = 18, 8
DTYPES = ("float32", "float64")


class GraphBuilder:
    """A graph whose numbers are of one type.

    Rows come first in all its tensors, and are as many as the user passes. Constants
    are initializers of two dimensions, which readers with few operators take, too.
    """

    def __init__(self, dtype, caller="to_onnx"):
        if str(dtype) not in DTYPES:
            raise ValueError(f"dtype must be one of {DTYPES}; got {dtype!r}.")
        self._onnx = import_extra("onnx", caller)
        self.dtype = np.dtype(str(dtype))
        self._kind = self._onnx.helper.np_dtype_to_tensor_dtype(self.dtype)
        self._nodes, self._constants = [], []

    def constant(self, values, dtype=None):
        """Name of an array of constants; a vector becomes a row."""
        values = np.atleast_2d(np.asarray(values, dtype=dtype or self.dtype))
        return self._add_constant(values)

    def axes(self, *axes):
        """Name of a list of axes."""
        return self._add_constant(np.array(axes, dtype=np.int64))

    def node(self, operator, *inputs, name=None, **attributes):
        """Add a node; name of its output."""
        name = name or f"{operator.lower()}_{len(self._nodes)}"
        node = self._onnx.helper.make_node(
            operator, list(inputs), [name], name=f"node_{name}", **attributes
        )
        self._nodes.append(node)
        return name

    def cast(self, values, name=None):
        """Turn truth values into numbers."""
        return self.node("Cast", values, name=name, to=self._kind)

    def model(self, name, inputs, outputs, properties=None):
        """The checked model; inputs and outputs are widths by name.

        ``properties`` become metadata, as texts or as JSON.
        """
        helper = self._onnx.helper
        graph = helper.make_graph(
            self._nodes,
            name,
            [self._tensor(*item) for item in inputs.items()],
            [self._tensor(*item) for item in outputs.items()],
            self._constants,
        )
        model = helper.make_model(
            graph,
            producer_name="skbayesnn",
            ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid("", OPSET)],
        )
        texts = {key: json.dumps(value) for key, value in (properties or {}).items()}
        helper.set_model_props(model, texts)
        self._onnx.checker.check_model(model, full_check=True)
        return model

    def _add_constant(self, values):
        name = f"constant_{len(self._constants)}"
        tensor = self._onnx.numpy_helper.from_array(values, name)
        self._constants.append(tensor)
        return name

    def _tensor(self, name, width):
        shape = ["rows", width]
        return self._onnx.helper.make_tensor_value_info(name, self._kind, shape)


def save(model, path):
    """Write a model to a file, if there is a path; returns the model."""
    if path is not None:
        Path(path).write_bytes(model.SerializeToString())
    return model
