"""Check the sizes that keep the package readable; exit code 1 if one is exceeded.

    python .ci/structure.py

A file has at most 500 lines without its docstrings, a function at most 60 in its body,
a compiled kernel at most ten arguments, and no two files of the package share a name.
"""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "skbayesnn"
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_KERNEL_ARGUMENTS = 10
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def docstring_lines(node):
    """Number of lines of a node's docstring."""
    if ast.get_docstring(node) is None:
        return 0
    text = node.body[0]
    return text.end_lineno - text.lineno + 1


def body_lines(function):
    """Lines of a function behind its signature, without its docstring."""
    whole = function.end_lineno - function.body[0].lineno + 1
    return whole - docstring_lines(function)


def is_kernel(function):
    names = [getattr(d, "func", d) for d in function.decorator_list]
    return any(getattr(name, "id", None) == "kernel" for name in names)


def n_arguments(function):
    arguments = function.args
    return len(arguments.posonlyargs + arguments.args + arguments.kwonlyargs)


def too_large(file):
    """Yield what exceeds its size in one file."""
    source = file.read_text(encoding="utf-8")
    tree = ast.parse(source)
    name = file.relative_to(ROOT).as_posix()
    documented = (ast.Module, ast.ClassDef, *FUNCTIONS)
    nodes = [node for node in ast.walk(tree) if isinstance(node, documented)]
    n_lines = len(source.splitlines()) - sum(map(docstring_lines, nodes))
    if n_lines > MAX_FILE_LINES:
        yield f"{name}: {n_lines} lines without docstrings"
    for function in (node for node in nodes if isinstance(node, FUNCTIONS)):
        place = f"{name}:{function.lineno}: {function.name}"
        if body_lines(function) > MAX_FUNCTION_LINES:
            yield f"{place} has {body_lines(function)} lines"
        if is_kernel(function) and n_arguments(function) > MAX_KERNEL_ARGUMENTS:
            yield f"{place} takes {n_arguments(function)} arguments"


def shared_names(files):
    """Yield file names that stand more than once, with or without an underscore."""
    places = {}
    for file in files:
        places.setdefault(file.stem.strip("_"), []).append(file)
    for name, found in places.items():
        if name != "init" and len(found) > 1:
            paths = [file.relative_to(ROOT).as_posix() for file in found]
            yield f"{name} names several files: {', '.join(paths)}"


def main():
    files = sorted(PACKAGE.rglob("*.py"))
    found = [line for file in files for line in too_large(file)]
    found += shared_names(files)
    print(*found, sep="\n")
    print(f"{len(files)} files, {len(found)} beyond their limits")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
