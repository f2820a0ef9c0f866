"""Models with hidden states as C, compiled with the system's compiler: streams."""

import numpy as np
import pytest
from compiled_c import CompiledModel, compiler

from skbayesnn import SparseBayesStateSpaceRegressor
from skbayesnn.datasets import make_coupled_drives

pytestmark = [
    pytest.mark.skipif(compiler() is None, reason="needs a compiler of C"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
KINDS = {
    "tanh": {},
    "logistic, two layers": {"activation": "logistic", "hidden_layer_sizes": (3, 2)},
    "relu, ensemble": {"activation": "relu", "n_estimators": 3},
    "linear": {"hidden_layer_sizes": ()},
    "student_t, two outputs": {"noise": "student_t"},
    "pruned away": {"kappa_weight": 1e3},
    "difference": {"output": "difference"},
}
QUICK = ("relu, ensemble", "student_t, two outputs")
KINDS_TO_WRITE = [
    pytest.param(kind, marks=[] if kind in QUICK else pytest.mark.slow)
    for kind in KINDS
]


def records(kind):
    u, y = make_coupled_drives(120, return_X_y=True, random_state=0)
    if "outputs" in kind:
        y = np.column_stack([y, 5.0 - 2.0 * np.roll(y, 2)])
    return u, y


@pytest.fixture(scope="module", params=KINDS_TO_WRITE)
def written(request, tmp_path_factory):
    u, y = records(request.param)
    options = {"hidden_layer_sizes": 4, "n_restarts": 2, "max_cycles": 5}
    options = options | KINDS[request.param]
    model = SparseBayesStateSpaceRegressor(3, random_state=0, **options).fit(u, y)
    source = model.to_c(tmp_path_factory.mktemp("c") / "model.c")
    return model, source, u, np.reshape(y, (len(y), -1))


def compiled(written, suffix=""):
    _, source, u, Y = written
    return CompiledModel(source, u.shape[1], Y.shape[1], suffix)


def test_it_is_the_stream(written):
    model, _, u, Y = written
    filtered, stream = compiled(written), model.stream()
    np.testing.assert_allclose(
        filtered.run(u[:20]), stream.run(u[:20]).reshape(20, -1), rtol=1e-9
    )
    for row in range(20, 100):
        expected = np.ravel(stream.step(u[row]))
        np.testing.assert_allclose(filtered.step(u[row]), expected, rtol=1e-8)
        measured = Y[row].copy()
        if row % 5 == 0:
            measured[: 1 + row % 2] = np.nan
        stream.update(measured)
        filtered.update(measured)


def test_single_precision(written):
    model, _, u, Y = written
    filtered, stream = compiled(written, "f"), model.stream()
    for row in range(60):
        expected, found = np.ravel(stream.step(u[row])), filtered.step(u[row])
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=5e-3, atol=5e-3)
        stream.update(Y[row])
        filtered.update(Y[row])


def test_missing_values_and_divergence(written):
    model, _, u, Y = written
    filtered, stream, inputs = compiled(written), model.stream(), u.copy()
    inputs[10], inputs[30:33] = np.nan, 1e9
    missing = 0
    for row in range(60):
        expected = np.ravel(stream.step(inputs[row]))
        missing += np.isnan(expected).any()
        np.testing.assert_allclose(filtered.step(inputs[row]), expected, rtol=1e-7)
        if row > 11 and row != 31:
            stream.update(Y[row])
            filtered.update(Y[row])
    assert missing > 0


def test_an_update_before_a_step_changes_nothing(written):
    model, _, u, Y = written
    filtered = compiled(written)
    filtered.update(Y[0])
    expected = model.stream().run(u[:5]).reshape(5, -1)
    np.testing.assert_allclose(filtered.run(u[:5]), expected, rtol=1e-9)
