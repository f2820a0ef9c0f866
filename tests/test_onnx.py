"""Pipelines that skl2onnx converts."""

import sys

import numpy as np
import pytest
from grids import first_by_default
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from skbayesnn import ContrastiveDivergenceRBM, SparseBayesMLPRegressor
from skbayesnn.onnx import register_converters


@pytest.fixture
def skl2onnx():
    package = pytest.importorskip("skl2onnx", reason="needs the extra onnx")
    register_converters()
    return package


def data(dtype):
    X = np.random.default_rng(0).normal(size=(80, 6)).astype(dtype)
    return X, (X[:, 0] + X[:, 1] > 0.0).astype(int)


def run(skl2onnx, pipeline, X):
    runtime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    # its ZipMap of probabilities takes single precision only
    options = {"zipmap": False} if hasattr(pipeline, "predict_proba") else None
    model = skl2onnx.to_onnx(pipeline, X[:1], options=options)
    session = runtime.InferenceSession(model.SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: X})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_rbm_before_a_classifier(skl2onnx, dtype):
    X, y = data(dtype)
    rbm = ContrastiveDivergenceRBM(8, max_iter=3, random_state=0)
    pipeline = make_pipeline(MinMaxScaler(), rbm, LogisticRegression()).fit(X, y)
    labels, probabilities = run(skl2onnx, pipeline, X)
    assert_allclose(labels, pipeline.predict(X))
    assert_allclose(probabilities, pipeline.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("dtype", first_by_default(["float32", "float64"]))
def test_a_network_behind_a_scaler(skl2onnx, dtype):
    X, _ = data(dtype)
    y = np.tanh(X[:, 0]) + 0.1 * X[:, 1]
    pipeline = make_pipeline(StandardScaler(), SparseBayesMLPRegressor(random_state=0))
    (found,) = run(skl2onnx, pipeline.fit(X, y), X)
    assert_allclose(found[:, 0], pipeline.predict(X), atol=1e-5)


def test_without_skl2onnx(monkeypatch):
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match="pip install skl2onnx"):
        register_converters()
