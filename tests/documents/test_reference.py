"""The page of the reference lists every public name."""

import re
from importlib import import_module

import pytest
from documents import ROOT

REFERENCE = (ROOT / "doc" / "api" / "index.rst").read_text(encoding="utf-8")
MODULES = [
    "skbayesnn",
    "skbayesnn.datasets",
    "skbayesnn.displays",
    "skbayesnn.exceptions",
    "skbayesnn.metrics",
    "skbayesnn.onnx",
]


def listed(module):
    """Names below the lines that make a module the current one."""
    parts = re.split(r"^\.\. currentmodule:: (\S+)$", REFERENCE, flags=re.MULTILINE)
    sections = zip(parts[1::2], parts[2::2], strict=True)
    text = "".join(body for name, body in sections if name == module)
    return set(re.findall(r"^   (\w+)$", text, re.MULTILINE))


@pytest.mark.parametrize("module", MODULES)
def test_reference_is_complete(module):
    public = {name for name in import_module(module).__all__ if name[0] != "_"}
    assert listed(module) == public
