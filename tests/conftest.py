import os
from pathlib import Path

import pytest

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
