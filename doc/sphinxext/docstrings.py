"""What docstrings may say that reStructuredText would misread.

A name that ends in an underscore, such as n_features_in_, is not a link, and neither is
that of an attribute in the list of attributes, which has no place of its own. A
backslash at the end of a line joins it with the next, in raw docstrings as well.
"""

import re

FITTED_NAME = re.compile(r"(?<![\w`\\:.])(\w*[^\W_])_(?=[\s,.;:)\]]|$)")
ATTRIBUTE = re.compile(r":obj:`(\w+) <[\w.]*>`")
LITERAL = re.compile(r"(``.*?``|`[^`]*`_?)")


def join_lines(app, what, name, obj, options, lines):
    joined = []
    for line in lines:
        if joined and joined[-1].endswith(" \\"):
            joined[-1] = joined[-1][:-1] + line.lstrip()
        else:
            joined.append(line)
    lines[:] = joined


def escape_names(app, what, name, obj, options, lines):
    for k, line in enumerate(lines):
        if line.lstrip().startswith(">>>"):
            continue
        parts = LITERAL.split(ATTRIBUTE.sub(r"**\1**", line))
        # every second part is a literal
        parts[::2] = [FITTED_NAME.sub(r"\1\\_", part) for part in parts[::2]]
        lines[k] = "".join(parts)


def setup(app):
    # numpydoc reads the docstring at 500
    app.connect("autodoc-process-docstring", join_lines, priority=400)
    app.connect("autodoc-process-docstring", escape_names, priority=600)
    return {"parallel_read_safe": True}
