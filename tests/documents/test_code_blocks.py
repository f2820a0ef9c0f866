"""Every block of Python in the documents runs, the blocks of a page one after another.

Blocks in another package's words carry the language ``py``: those packages are not
installed here.
"""

import contextlib
import io

import pytest
from documents import PAGES, blocks, name

WITH_CODE = [page for page in PAGES if any(blocks(page, "python"))]


@pytest.mark.parametrize("page", [pytest.param(p, id=name(p)) for p in WITH_CODE])
@pytest.mark.slow
def test_blocks_run(page, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    variables = {"__name__": "__main__"}
    try:
        for line, code in blocks(page, "python"):
            # a traceback then shows the line of the page
            compiled = compile("\n" * (line - 1) + code, str(page), "exec")
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compiled, variables)
    finally:
        pyplot.close("all")


@pytest.mark.parametrize("page", [pytest.param(p, id=name(p)) for p in WITH_CODE])
def test_blocks_compile(page):
    for line, code in blocks(page, "python"):
        compile("\n" * (line - 1) + code, str(page), "exec")
