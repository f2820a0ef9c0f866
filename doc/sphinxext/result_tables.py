"""Tables of measured results, made from doc/results/*.json when the site is built.

    ```{result-table} measured_systems
    ```

The name is that of a function of ``tables_of_systems``, ``tables_of_states`` or
``tables_of_rbms``. It returns the heading and the rows; cells are text in the Markdown
of the page.
"""

import json
from functools import cache, partial
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

RESULTS = Path(__file__).resolve().parents[1] / "results"


@cache
def load(name):
    """A file of doc/results."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def number(value, digits=3):
    """Significant digits, all of those before the point, thousands apart."""
    if abs(value) == float("inf"):
        return "diverged"
    if abs(value) < 1:
        return f"{value:#.{digits}g}" if value else "0"
    return f"{value:,.{max(0, digits - len(str(int(abs(value)))))}f}"


def spread(values, digits=3, scale=1.0, show=None):
    """Median (least to largest), or the value if all are the same."""
    if show is None or float("-inf") in values:
        show = partial(number, digits=digits)
    ordered = sorted(scale * value for value in values)
    n, half = len(ordered), len(ordered) // 2
    if n % 2:
        median = ordered[half]
    else:
        median = (ordered[half - 1] + ordered[half]) / 2
    texts = [show(v) for v in (median, ordered[0], ordered[-1])]
    return texts[0] if len(set(texts)) == 1 else "{} ({} to {})".format(*texts)


class ResultTable(Directive):
    """The table of the function that the argument names."""

    required_arguments = 1

    def run(self):
        import tables_of_rbms
        import tables_of_states
        import tables_of_systems

        name = self.arguments[0]
        modules = tables_of_systems, tables_of_states, tables_of_rbms
        make = next(getattr(m, name) for m in modules if hasattr(m, name))
        heading, rows = make()
        for line in rows:
            if len(line) != len(heading):
                raise self.error(f"{name}: {line} has not {len(heading)} cells")
        lines = [heading, ["---"] * len(heading), *rows]
        text = ["| " + " | ".join(line) + " |" for line in lines]
        self.state.document.settings.env.note_dependency(str(RESULTS))
        parent = nodes.container(classes=["result-table"])
        self.state.nested_parse(StringList(text, source=name), 0, parent)
        return [parent]


def setup(app):
    app.add_directive("result-table", ResultTable)
    return {"parallel_read_safe": True}
