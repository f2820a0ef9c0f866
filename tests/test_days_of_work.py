"""The examples of a data scientist's and of a researcher's day, whole."""

import runpy
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples"
EXAMPLES = ["data_scientist.py", "researcher.py"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_is_short_and_public(name):
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 80
    assert not [line for line in lines if "._" in line or "import _" in line]


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_it_runs(name, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    told = capsys.readouterr().out
    assert (tmp_path / name.replace(".py", ".png")).exists()
    if name == "researcher.py":
        found = [float(part.split(":")[1].split()[0]) for part in told.splitlines()[:3]]
        # trained, both ways, more likely than scikit-learn's
        assert found[0] > found[2] + 1.0 and found[1] > found[2] + 1.0
        assert np.isfinite(found).all()
    else:
        assert told.count("R2 on the test record 0.99") == 2
