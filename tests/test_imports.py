"""The layers: data flows one way, and every module imports only what lies before it.

The sources are parsed, not imported, so that imports inside functions count as well.
"""

import ast
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "skbayesnn"

# First name below the package -> layer.  A layer imports from itself and from those
# before it.  A new module has to be entered here.
LAYERS = [
    {"_lags"},
    {"kernels"},
    {"solvers"},
    {"_validation"},
    {
        "_posterior",
        "_base",
        "_mlp",
        "_simulation",
        "_records",
        "_draws",
        "_selection",
        "_restarts",
        "_streaming",
        "_narx",
        "_narx_cv",
        "_rows",
        "_checkpoint",
        "_rbm",
        "_contrastive",
        "_frank_wolfe",
        "_residuals",
        "metrics",
        "datasets",
    },
    {"displays"},
    {"__init__"},
]
LEVEL = {name: level for level, layer in enumerate(LAYERS) for name in layer}

KERNELS_MAY_IMPORT = {"math", "numpy", "typing"}
JIT_FILE = "skbayesnn/kernels/_jit.py"
JIT_MAY_IMPORT = KERNELS_MAY_IMPORT | {"functools", "numba"}
PRIVATE_SKLEARN_FILE = "skbayesnn/_validation.py"
ONLY_INSIDE_FUNCTIONS = {"matplotlib", "pandas", "polars", "pooch", "tqdm"}
REFERENCE_FILE = "tests/naive.py"


class Import(NamedTuple):
    """One imported name: its absolute dotted path, and where it is imported."""

    path: tuple
    line: int
    inside_function: bool


class ImportCollector(ast.NodeVisitor):
    """All imports of a module, those by a call with a literal name included."""

    def __init__(self, file):
        module = Path(file).with_suffix("").parts
        self.package = module[:-1]
        self.depth = 0
        self.imports = []

    def _add(self, node, path):
        self.imports.append(Import(tuple(path), node.lineno, self.depth > 0))

    def visit_Import(self, node):
        for alias in node.names:
            self._add(node, alias.name.split("."))

    def visit_ImportFrom(self, node):
        base = [] if node.module is None else node.module.split(".")
        if node.level:
            base = [*self.package[: len(self.package) - node.level + 1], *base]
        for alias in node.names:
            self._add(node, [*base, alias.name])

    def visit_Call(self, node):
        called = getattr(node.func, "id", getattr(node.func, "attr", None))
        if called in {"import_module", "__import__"} and node.args:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                relative = name.value.startswith(".")
                path = name.value.strip(".").split(".")
                self._add(node, [*self.package, *path] if relative else path)
        self.generic_visit(node)

    def _visit_function(self, node):
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _visit_function


def layer_name(path):
    """Name in ``LEVEL`` of a dotted path into the package."""
    # what is not a module in a layer is a name of the package itself
    return path[1] if len(path) > 1 and path[1] in LEVEL else "__init__"


def broken_rules(file, imported):
    """Yield the rules that one import in ``file`` breaks."""
    top = imported.path[0]
    if file == REFERENCE_FILE:
        if top == PACKAGE:
            yield "the references import nothing from the package"
        return

    here = Path(file).with_suffix("").parts[1]
    target = layer_name(imported.path) if top == PACKAGE else None
    if target is not None and LEVEL[target] > LEVEL[here]:
        yield f"{target} lies in a layer after {here}"
    if here == "kernels":
        allowed = JIT_MAY_IMPORT if file == JIT_FILE else KERNELS_MAY_IMPORT
        if top not in allowed and target != "kernels":
            yield f"a kernel imports only {', '.join(sorted(allowed))} and kernels"
    if top == "numba" and file != JIT_FILE:
        yield f"only {JIT_FILE} imports numba"
    if top == "sklearn" and file != PRIVATE_SKLEARN_FILE:
        if any(name[0] == "_" and name[:2] != "__" for name in imported.path):
            yield f"only {PRIVATE_SKLEARN_FILE} imports private scikit-learn names"
    if top in ONLY_INSIDE_FUNCTIONS and not imported.inside_function:
        yield f"{top} is optional: import it inside a function"


def violations(file, source):
    """All offending imports of one file, as readable lines.

    ``file`` is relative to the project, with forward slashes.
    """
    parts = Path(file).with_suffix("").parts
    if parts[0] == PACKAGE and parts[1] not in LEVEL:
        return [f"{file}: {parts[1]} belongs to no layer: enter it in LAYERS"]
    collector = ImportCollector(file)
    collector.visit(ast.parse(source, filename=file))
    return [
        f"{file}:{imported.line}: {'.'.join(imported.path)}: {rule}"
        for imported in collector.imports
        for rule in broken_rules(file, imported)
    ]


def test_layers():
    files = sorted((ROOT / PACKAGE).rglob("*.py"))
    files += [file for file in [ROOT / REFERENCE_FILE] if file.exists()]
    names = [file.relative_to(ROOT).as_posix() for file in files]
    assert JIT_FILE in names, "the package was not found"
    found = [
        line
        for name, file in zip(names, files, strict=True)
        for line in violations(name, file.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(["Imports that break the layers:", *found])


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("_lags.py", "import numpy as np"),
        ("kernels/_jit.py", "import functools\nimport numba"),
        ("kernels/mlp.py", "import math\nfrom typing import NamedTuple"),
        ("kernels/mlp.py", "from ._jit import kernel\nfrom . import prox"),
        ("kernels/mlp.py", "from skbayesnn.kernels import prox"),
        ("kernels/__init__.py", "from .mlp import forward"),
        ("solvers/weights.py", "import scipy\nfrom ..kernels import mlp"),
        ("solvers/weights.py", "from .. import _lags"),
        ("_validation.py", "from sklearn.base import _fit_context"),
        ("_narx.py", "from ._validation import check_sessions"),
        ("_narx.py", "from sklearn import __version__"),
        ("_narx.py", "from skbayesnn._mlp import BayesianMLP"),
        ("_narx.py", "def f():\n    import pandas"),
        ("datasets/__init__.py", "from ._benchmarks import fetch"),
        ("datasets/_tanks.py", "from ..kernels.tanks import simulate_tanks"),
        ("displays.py", "class A:\n    def f(self):\n        import matplotlib"),
        ("__init__.py", "from . import datasets\nfrom .displays import Display"),
    ],
)
def test_allowed(file, source):
    assert violations(f"{PACKAGE}/{file}", source) == []


@pytest.mark.parametrize(
    ("file", "source", "rule"),
    [
        # upwards, in every spelling
        ("_lags.py", "from .kernels import mlp", "after _lags"),
        ("kernels/mlp.py", "from ..solvers import weights", "after kernels"),
        ("kernels/mlp.py", "from .. import solvers", "after kernels"),
        ("kernels/mlp.py", "import skbayesnn.solvers.weights", "after kernels"),
        ("kernels/__init__.py", "from ..solvers import weights", "after kernels"),
        ("solvers/evidence.py", "from skbayesnn import NARX", "after solvers"),
        ("solvers/evidence.py", "from skbayesnn import _narx", "after solvers"),
        ("solvers/evidence.py", "import skbayesnn", "after solvers"),
        ("solvers/evidence.py", "from .._validation import check", "after solvers"),
        ("solvers/a.py", "import_module('skbayesnn._mlp')", "after solvers"),
        ("_validation.py", "from ._mlp import BayesianMLP", "after _validation"),
        ("_narx.py", "def f():\n    from .displays import A", "after _narx"),
        ("displays.py", "from . import __version__", "after displays"),
        # modules nobody has placed
        ("utils.py", "", "belongs to no layer"),
        ("sub/utils.py", "", "belongs to no layer"),
        # kernels
        ("kernels/mlp.py", "import scipy.linalg", "a kernel imports only"),
        ("kernels/mlp.py", "from sklearn.base import clone", "a kernel imports only"),
        ("kernels/mlp.py", "from .._lags import build", "a kernel imports only"),
        ("kernels/mlp.py", "import functools", "a kernel imports only"),
        ("kernels/mlp.py", "from numba import njit", "imports numba"),
        ("solvers/weights.py", "import numba", "imports numba"),
        ("_narx.py", "def f():\n    from numba import njit", "imports numba"),
        # private scikit-learn
        ("_mlp.py", "from sklearn.base import _fit_context", "private scikit-learn"),
        ("_mlp.py", "import sklearn.utils._tags as t", "private scikit-learn"),
        (
            "metrics.py",
            "from sklearn.utils._param_validation import Interval",
            "private scikit-learn",
        ),
        # optional packages
        ("displays.py", "import matplotlib.pyplot as plt", "inside a function"),
        ("displays.py", "class A:\n    import matplotlib", "inside a function"),
        ("_narx.py", "try:\n    import pandas\nexcept ImportError: 0", "optional"),
        ("_narx.py", "from polars import DataFrame", "inside a function"),
        ("datasets/_fetch.py", "import pooch", "inside a function"),
        ("datasets/_fetch.py", "from tqdm import tqdm", "inside a function"),
    ],
)
def test_forbidden(file, source, rule):
    found = violations(f"{PACKAGE}/{file}", source)
    assert any(rule in line for line in found), found


@pytest.mark.parametrize(
    "source",
    [
        "import skbayesnn",
        "from skbayesnn.kernels import mlp",
        "from skbayesnn import a",
    ],
)
def test_forbidden_in_references(source):
    assert violations(REFERENCE_FILE, "import numpy as np") == []
    assert len(violations(REFERENCE_FILE, source)) == 1


def test_every_offence_is_listed_with_its_line():
    source = "import numpy\nimport scipy, numba\n\n\ndef f():\n    import sklearn\n"
    found = violations("skbayesnn/kernels/mlp.py", source)
    assert [line.split(": ")[:2] for line in found] == [
        ["skbayesnn/kernels/mlp.py:2", "scipy"],
        ["skbayesnn/kernels/mlp.py:2", "numba"],
        ["skbayesnn/kernels/mlp.py:2", "numba"],
        ["skbayesnn/kernels/mlp.py:6", "sklearn"],
    ]
