"""The example of an engineer's day, whole."""

import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "engineer.py"


def test_it_is_short_and_public():
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 80
    assert not [line for line in lines if "._" in line or "import _" in line]


@pytest.mark.slow
def test_the_controller_keeps_its_constraints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        # do-mpc warns of features that are not installed, casadi of its next release
        warnings.simplefilter("ignore")
        names = runpy.run_path(str(EXAMPLE))
    run = names["path"]
    assert run["level (V)"].max() <= names["limit"]
    assert run["level (V)"][100:120].min() > names["limit"] - 0.2
    assert np.abs(run["level (V)"] - run["wanted"])[[59, 179]].max() < 0.1
    assert run["pump (V)"].between(1.5 - 1e-6, 4.0 + 1e-6).all()
    assert run["pump (V)"].diff().abs().max() <= 0.3 + 1e-6
    files = {"log.csv", "residuals.png", "engineer.png", "tanks.c", "tanks.onnx"}
    assert {file.name for file in tmp_path.iterdir()} == files
