"""Rules of imports that are not about layers; those are contracts in pyproject.toml."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "skbayesnn").rglob("*.py"))
OPTIONAL = (
    "matplotlib",
    "pandas",
    "polars",
    "pooch",
    "tqdm",
    "rich",
    "onnx",
    "onnxruntime",
    "skl2onnx",
    "control",
)


def imported_names(source):
    """Dotted names of all imports, those inside functions included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def private_names(source):
    """Private names of scikit-learn that a file imports."""
    for name in imported_names(source):
        package, *rest = name.split(".")
        if package == "sklearn" and any(
            part[0] == "_" and part[:2] != "__" for part in rest
        ):
            yield name


def test_private_names_of_scikit_learn_stand_in_one_file():
    found = {
        file.relative_to(ROOT).as_posix(): names
        for file in FILES
        if (names := list(private_names(file.read_text(encoding="utf-8"))))
    }
    assert list(found) == ["skbayesnn/_sklearn.py"], found


def test_private_names_are_seen():
    source = "def f():\n    from sklearn.utils._tags import Tags\nimport sklearn._loss"
    assert len(list(private_names(source + "\nfrom sklearn import __version__"))) == 2


def test_optional_packages_are_not_needed_for_the_import():
    blocked = f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL}))"
    modules = "skbayesnn, skbayesnn.datasets, skbayesnn.displays, skbayesnn.metrics"
    modules += ", skbayesnn.onnx"
    code = f"{blocked}; import {modules}"
    subprocess.run([sys.executable, "-c", code], check=True)
