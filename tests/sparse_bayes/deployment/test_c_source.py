"""Models as C: compiled with the system's compiler, compared with streams."""

import subprocess

import numpy as np
import pytest
from compiled_c import FLAGS, CompiledModel, compiler
from lagged_models import TRIED, fit, fit_model, new_record
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.datasets import fetch_cascaded_tanks

N_BEFORE = 6

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a compiler of C")


class Written:
    """A model, and its C."""

    def __init__(self, model, folder):
        self.model = model
        self.source = model.to_c(folder / "model.c")

    def compiled(self, suffix=""):
        n_inputs, n_outputs = self.model.n_features_in_, self.model.n_outputs_
        return CompiledModel(self.source, n_inputs, n_outputs, suffix)


@pytest.fixture(scope="module", params=TRIED)
def written(request, tmp_path_factory):
    return Written(fit_model(request.param), tmp_path_factory.mktemp("c"))


def outputs(y):
    return np.reshape(y, (len(y), -1))


def test_it_is_the_stream_bit_for_bit(written):
    model, compiled = written.model, written.compiled()
    u, y = new_record(model)
    stream = model.stream()
    free = stream.run(u)
    assert np.isfinite(free).all()
    assert_array_equal(compiled.run(u), outputs(free))
    # steps ahead of measured outputs, and a free run from there
    stream = model.stream(u[:N_BEFORE], y[:N_BEFORE])
    compiled = written.compiled()
    for row in range(N_BEFORE):
        compiled.step(u[row])
        compiled.update(y[row])
    for row in range(N_BEFORE, 20):
        assert_array_equal(compiled.step(u[row]), np.ravel(stream.step(u[row])))
        stream.update(y[row])
        compiled.update(y[row])
    assert_array_equal(compiled.run(u[20:]), outputs(stream.run(u[20:])))


def test_single_precision(written):
    u, _ = new_record(written.model)
    expected = outputs(written.model.stream().run(u))
    found = written.compiled("f").run(u)
    assert found.dtype == np.float32
    assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


def test_missing_values_and_divergence(written):
    model, compiled = written.model, written.compiled()
    u, y = new_record(model)
    stream = model.stream()
    u[10] = np.nan
    u[20:25] *= 1e6
    for row in range(60):
        assert_array_equal(compiled.step(u[row]), np.ravel(stream.step(u[row])))
        if row > 30 or row % 7 == 0:
            measured = outputs(y)[row].copy()
            measured[: row % 2] = np.nan
            stream.update(measured)
            compiled.update(measured)


@pytest.mark.parametrize(
    "hidden, activation", [(17, "tanh"), ((9, 6), "logistic"), ((9, 6), "relu")]
)
def test_wide_layers(hidden, activation, tmp_path):
    """Loops that the compilers vectorise, with what is left over of a vector."""
    options = {"kappa_weight": 0.0, "input_lags": 5, "output_lags": 9, "max_cycles": 2}
    model = fit(hidden_layer_sizes=hidden, activation=activation, **options)
    u, y = new_record(model)
    compiled = Written(model, tmp_path).compiled()
    assert_array_equal(compiled.run(u)[:, 0], model.stream().run(u))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("focus", ["prediction", "simulation"])
def test_free_run_of_the_measured_tanks(focus, data_home, tmp_path):
    tanks = fetch_cascaded_tanks(data_home=data_home)
    model = SparseBayesNARXRegressor(10, 10, focus=focus, n_estimators=3)
    model.set_params(random_state=0, max_cycles=30).fit(tanks.data, tanks.target)
    u = tanks.tests.test.data
    written = Written(model, tmp_path)
    expected = model.stream().run(u)
    assert np.isfinite(expected).all()
    assert_array_equal(written.compiled().run(u)[:, 0], expected)
    assert_allclose(written.compiled("f").run(u)[:, 0], expected, atol=5e-3)


@pytest.fixture(scope="module")
def simple(tmp_path_factory):
    return Written(fit(), tmp_path_factory.mktemp("c"))


def test_it_can_be_declared_elsewhere(simple, tmp_path):
    """One file serves as a header, too, and main is the whole program."""
    main = tmp_path / "main.c"
    main.write_text(
        "#include <stdio.h>\n"
        "#define MODEL_DECLARATIONS\n"
        f'#include "{simple.source}"\n'
        "int main(void)\n{\n"
        "    model_state s;\n    double u = 0.5, y;\n"
        "    model_init(&s);\n    model_step(&s, &u, &y);\n"
        '    printf("%.17g", y);\n    return 0;\n}\n'
    )
    program = tmp_path / "main"
    flags = [flag for flag in FLAGS if flag != "-Wconversion"]
    command = [compiler(), *flags, main, simple.source, "-lm", "-o", program]
    subprocess.run(command, check=True)
    printed = subprocess.run([program], check=True, capture_output=True, text=True)
    assert_allclose(float(printed.stdout), simple.model.stream().step(0.5), rtol=1e-13)


def test_nothing_is_allocated_or_called(simple):
    """It calls nothing but fma and memcpy, which compilers have as instructions."""
    simple.compiled()
    library = simple.source.with_suffix(".so")
    command = ["nm", "-u", library]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    names = {line.split()[-1].partition("@")[0] for line in found.stdout.splitlines()}
    # what the linker adds to every library
    names = {name for name in names if not name.startswith(("_ITM", "__"))}
    assert names <= {"fma", "fmaf", "memcpy"}


def test_names(simple, tmp_path):
    text = simple.model.to_c(tmp_path / "any thing.c", name="tanks").read_text()
    assert "void tanks_step(tanks_state *state" in text
    for name in (None, "1st", "größe", "a-b"):
        with pytest.raises(ValueError, match="letters, digits and underscores"):
            simple.model.to_c(tmp_path / "any thing.c", name=name)
