"""Loops have bounds, and no test of a fit runs for ever."""

import ast
import functools
import itertools
import signal
import time
from pathlib import Path

import pytest
import time_limits
from time_limits import LIMIT, TookTooLong

import skbayesnn

PACKAGE = Path(skbayesnn.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
# Iterators without an end, which a for loop would follow.
ENDLESS = {"count", "cycle", "repeat"}


@functools.cache
def nodes(source):
    return list(ast.walk(ast.parse(source)))


def unbounded(source):
    """Lines of while loops without a comment on their bound just above."""
    # most files have none, and need not be parsed
    if "while" not in source:
        return
    lines = source.splitlines()
    for node in nodes(source):
        if isinstance(node, ast.While):
            above = itertools.takewhile(
                lambda line: line.strip().startswith("#"),
                reversed(lines[: node.lineno - 1]),
            )
            if not any(line.strip().startswith("# bound: ") for line in above):
                yield node.lineno


def endless(source):
    """Lines with an iterator that has no end."""
    for node in nodes(source):
        if isinstance(node, ast.Call):
            function = node.func
            name = getattr(function, "attr", getattr(function, "id", None))
            owner = getattr(function, "value", ast.Name("itertools"))
            of = getattr(owner, "id", None)
            two = name == "iter" and len(node.args) == 2
            if two or (name in ENDLESS and of == "itertools"):
                yield node.lineno


def places(find):
    return [
        f"{file.relative_to(PACKAGE)}:{line}"
        for file in FILES
        for line in find(file.read_text(encoding="utf-8"))
    ]


def test_every_while_loop_says_what_bounds_it():
    assert places(unbounded) == []


def test_no_loop_follows_an_iterator_without_end():
    assert places(endless) == []


def test_what_is_missing_is_found():
    bare = "while x:\n    pass\n"
    assert list(unbounded(bare)) == [1]
    assert list(unbounded("# long\n" + bare)) == [2]
    assert not list(unbounded("# bound: n,\n# and no more\n" + bare))
    assert list(endless("for k in itertools.count(): pass\nfor k in count(): pass"))
    assert list(endless("for part in iter(read, b''): pass")) == [1]
    assert not list(endless("for k in iter(a): a.count(k)"))


@pytest.mark.skipif(not hasattr(signal, "getitimer"), reason="signals of POSIX")
def test_every_test_has_a_limit():
    left, _ = signal.getitimer(signal.ITIMER_REAL)
    assert 0.0 < left <= LIMIT


def test_a_test_that_takes_longer_fails(request, monkeypatch):
    monkeypatch.setattr(time_limits, "LIMIT", 0.05)
    call = time_limits.limited(request.node)
    next(call)
    with pytest.raises(TookTooLong, match=r"0\.05 s"):
        time.sleep(5.0)
    with pytest.raises(StopIteration):
        call.send(None)
