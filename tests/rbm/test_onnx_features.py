"""Features of RBMs as ONNX, run by onnxruntime."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM

runtime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")
pytest.importorskip("onnx", reason="needs the extra onnx")


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).uniform(size=(40, 7))


@pytest.mark.parametrize(
    "rbm",
    [
        ContrastiveDivergenceRBM(5, max_iter=3, random_state=0),
        ContrastiveDivergenceRBM(5, max_iter=3, binarize=None, random_state=0),
        FrankWolfeRBM(4, alpha="learn", n_chains=20, random_state=0),
    ],
    ids=["binary", "probabilities", "fractional"],
)
def test_they_are_those_of_transform(rbm, rows, tmp_path):
    rbm.fit(rows)
    for dtype, tolerance in (("float32", 1e-6), ("float64", 1e-12)):
        path = tmp_path / f"{dtype}.onnx"
        rbm.to_onnx(path, dtype=dtype)
        session = runtime.InferenceSession(path)
        (found,) = session.run(None, {"X": rows.astype(dtype)})
        assert found.dtype == dtype
        assert_allclose(found, rbm.transform(rows), atol=tolerance)
