import os
from pathlib import Path

import pytest

from skbayesnn.sparse_bayes.learning import cycle

# before anything imports matplotlib
os.environ["MPLBACKEND"] = "Agg"


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


@pytest.fixture(scope="session")
def callbacks():
    """The module of scikit-learn; tests of callbacks are skipped without it."""
    return pytest.importorskip(
        "sklearn.callback", reason="callbacks need scikit-learn 1.9 or later"
    )


@pytest.fixture
def interrupt_after(monkeypatch):
    """A function: Ctrl-C is pressed after this many cycles of a fit.

    Every cycle of every fit is a call of ``cycle.step``, where it comes.
    """
    step = cycle.step

    def schedule(n_cycles):
        calls = iter(range(n_cycles))

        def interrupted_step(*arguments):
            if next(calls, None) is None:
                raise KeyboardInterrupt
            return step(*arguments)

        monkeypatch.setattr(cycle, "step", interrupted_step)

    return schedule
