"""Ensembles of lags and of hidden states as C, compiled: streams."""

import numpy as np
import pytest
from compiled_c import CompiledModel, compiler
from mixtures import DIFFERENCES, MIXTURES, mix
from numpy.testing import assert_allclose

from skbayesnn.datasets import make_coupled_drives

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a compiler of C")
KINDS = MIXTURES | {"differences": DIFFERENCES}
QUICK = ("lags and states",)
KINDS_TO_WRITE = [
    pytest.param(kind, marks=[] if kind in QUICK else pytest.mark.slow)
    for kind in KINDS
]


@pytest.fixture(scope="module", params=KINDS_TO_WRITE)
def written(request, tmp_path_factory):
    u, y = make_coupled_drives(120, return_X_y=True, random_state=0)
    if request.param == "numbers of states":
        y = np.column_stack([y, 5.0 - 2.0 * np.roll(y, 2)])
    model = mix(*KINDS[request.param], u, y)
    source = model.to_c(tmp_path_factory.mktemp("c") / "mixture.c")
    return model, source, u, np.reshape(y, (len(y), -1))


def compiled(written, suffix=""):
    _, source, u, Y = written
    return CompiledModel(source, u.shape[1], Y.shape[1], suffix)


def follow(written, inputs, measured, suffix="", **tolerance):
    """Both step through the rows, and are told what is measured, if it is not None."""
    found, stream = compiled(written, suffix), written[0].stream()
    expected = []
    for row, outputs in zip(inputs, measured, strict=True):
        expected.append(np.ravel(stream.step(row)))
        assert_allclose(found.step(row), expected[-1], **tolerance)
        if outputs is not None:
            stream.update(outputs)
            found.update(outputs)
    return np.array(expected)


def test_it_is_the_stream(written):
    _, _, u, Y = written
    measured = [None] * 20 + [*Y[20:100]]
    for row in range(20, 100, 5):
        measured[row] = np.where(np.arange(Y.shape[1]) == row % 2, Y[row], np.nan)
    follow(written, u[:100], measured, rtol=1e-8)


def test_single_precision(written):
    _, _, u, Y = written
    follow(written, u[:60], Y[:60], "f", rtol=5e-3, atol=5e-3)


def test_missing_inputs_and_divergence(written):
    _, _, u, Y = written
    inputs = u[:80].copy()
    inputs[10], inputs[30:33] = np.nan, 1e9
    measured = [None if row < 12 or row == 31 else Y[row] for row in range(80)]
    outputs = follow(written, inputs, measured, rtol=1e-7)
    assert np.isnan(outputs).any() and np.isfinite(outputs[-1]).all()
