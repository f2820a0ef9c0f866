"""Pipelines as ONNX: this package's estimators for skl2onnx."""

from ._optional import import_extra
from .rbm.contrastive_divergence import ContrastiveDivergenceRBM
from .rbm.frank_wolfe import FrankWolfeRBM
from .sparse_bayes.mlp import SparseBayesMLPRegressor

__all__ = ["register_converters"]

ESTIMATORS = ContrastiveDivergenceRBM, FrankWolfeRBM, SparseBayesMLPRegressor


def register_converters():
    """Register the RBMs and the static network with skl2onnx.

    A pipeline that holds them converts afterwards. A lagged model is no function of the
    rows of X; its step has a file of its own, by its method ``to_onnx``.

    Raises
    ------
    ImportError
        Without skl2onnx: ``pip install skl2onnx``.

    Examples
    --------
    >>> from skbayesnn.onnx import register_converters
    >>> register_converters()  # doctest: +SKIP
    >>> from skl2onnx import to_onnx  # doctest: +SKIP
    >>> model = to_onnx(pipeline, X[:1])  # doctest: +SKIP
    """
    skl2onnx = import_extra("skl2onnx", "register_converters")
    for estimator in ESTIMATORS:
        skl2onnx.update_registered_converter(
            estimator, f"Skbayesnn{estimator.__name__}", _set_shape, _convert
        )


def _set_shape(operator):
    """Type and shape of what an estimator returns."""
    estimator, given = operator.raw_operator, operator.inputs[0]
    is_regressor = isinstance(estimator, SparseBayesMLPRegressor)
    width = estimator.n_outputs_ if is_regressor else estimator.n_components_
    kind = type(given.type) if _dtype(given) == "float64" else _single()
    operator.outputs[0].type = kind([given.get_first_dimension(), width])


def _convert(scope, operator, container):
    """The nodes of an estimator."""
    from skl2onnx.helpers.integration import add_onnx_graph

    model = operator.raw_operator.to_onnx(dtype=_dtype(operator.inputs[0]))
    add_onnx_graph(scope, operator, container, model)


def _dtype(variable):
    from skl2onnx.common.data_types import DoubleTensorType

    return "float64" if isinstance(variable.type, DoubleTensorType) else "float32"


def _single():
    from skl2onnx.common.data_types import FloatTensorType

    return FloatTensorType
