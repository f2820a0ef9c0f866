import gc
import os
from pathlib import Path

# before anything imports NumPy: the workers share the cores, and threads would wait
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from interrupts import interrupt
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from time_limits import limited

from skbayesnn.rbm import scoring
from skbayesnn.rbm.likelihood import row_weights
from skbayesnn.rbm.training import mode_correction
from skbayesnn.sparse_bayes import dynamic_system
from skbayesnn.sparse_bayes.learning import cycle
from skbayesnn.sparse_bayes.prediction import step_noise

# before anything imports matplotlib
os.environ["MPLBACKEND"] = "Agg"

pytest_runtest_setup = pytest_runtest_call = limited
# no doctests are looked for in these: several folders at once have one each
collect_ignore_glob = ["**/conftest.py"]


def pytest_collection_finish():
    """What was collected stays: to look through it for garbage takes a third of a s."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol():
    """Seed what ``random_state=None`` draws from: a test that fails, fails again."""
    check_random_state(None).seed(0)


@pytest.fixture(scope="session")
def data_home():
    """Folder of the benchmark files; tests that need them are skipped without it."""
    folder = os.environ.get("SKBAYESNN_DATA")
    if not folder:
        pytest.skip("needs the benchmark files: set SKBAYESNN_DATA to their folder")
    folder = Path(folder).resolve()
    if not folder.is_dir():
        pytest.fail(f"SKBAYESNN_DATA is set, but {folder} is not a folder")
    return folder


@pytest.fixture(params=["pandas", "polars"])
def frames(request):
    """A library of data frames whose names of columns scikit-learn can read."""
    library = pytest.importorskip(request.param)
    some = library.DataFrame({"a": [0.0, 1.0]})
    if not hasattr(StandardScaler().fit(some), "feature_names_in_"):
        # before 1.9 it asks for an interface that newer polars lacks
        pytest.skip(f"this scikit-learn reads no names from this {request.param}")
    return library


@pytest.fixture(scope="session")
def callbacks():
    """The module of scikit-learn; tests of callbacks are skipped without it."""
    return pytest.importorskip(
        "sklearn.callback", reason="callbacks need scikit-learn 1.9 or later"
    )


@pytest.fixture(scope="module")
def few_weighted_states():
    """What sets the modes of a trained model right sees fewer of its states.

    For tests of something else: with all states it takes longer than a short training.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mode_correction, "_N_STATES", 1000)
        patch.setattr(mode_correction, "_FEW_STATES", 400)
        yield


@pytest.fixture(scope="module")
def quick_states():
    """Networks of hidden states have fewer starts, and tries of their noise.

    For tests of something else; those of `step_noise` and of the network have all.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dynamic_system, "STATES_STARTS", 1)
        patch.setattr(step_noise, "POWERS", step_noise.POWERS[2:8])
        patch.setattr(step_noise, "GOLDEN_STEPS", 2)
        yield


@pytest.fixture
def usual_starts(monkeypatch):
    """More starts than `quick_states` has, where a single one gives too poor a fit."""
    monkeypatch.setattr(dynamic_system, "STATES_STARTS", 4)


@pytest.fixture
def fewer_row_draws(monkeypatch):
    """Estimates by the hidden states of rows draw half as many.

    For tests of what is made of them; test_row_weights.py has them all.
    """
    monkeypatch.setattr(row_weights, "_N_FOLLOWING", 500)
    monkeypatch.setattr(row_weights, "_N_STEPS", 50)
    monkeypatch.setattr(scoring, "_N_ROW_DRAWS", 2000)


@pytest.fixture
def interrupt_after(monkeypatch):
    """A function: Ctrl-C is pressed after this many cycles of a fit.

    Every cycle of every fit is a call of ``cycle.step``, where it comes.
    """
    step = cycle.step
    return lambda n_cycles: interrupt(monkeypatch, cycle, n_cycles, step)
