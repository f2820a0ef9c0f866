"""Alternative texts of the small pictures that lead to examples.

Sphinx-Gallery leaves them empty, although the title of the example stands below.
"""

import re

PICTURE = re.compile(
    r"(  \.\. image:: \S+\n    :alt:)"
    r'(\n(?:(?!\.\. image).*\n)*?.*thumbnail-title">)(.*?)<'
)


def describe(text):
    return PICTURE.sub(r"\1 Picture of the example: \3\2\3<", text)


def setup(app):
    def read(app, name, content):
        content[0] = describe(content[0])

    def include(app, path, name, content):
        content[0] = describe(content[0])

    app.connect("source-read", read)
    app.connect("include-read", include)
    return {"parallel_read_safe": True}
