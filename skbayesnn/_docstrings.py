"""Texts of parameters that several estimators share, written once.

A docstring names an entry by its key in double braces, on a line of its own. The
decorator puts the text there, so that ``help()`` shows the whole.
"""

import re
import textwrap

_PLACEHOLDER = re.compile(r"^( *)\{\{(\w+)\}\}$", re.MULTILINE)


def shared_parameters(texts):
    """Fill in the placeholders ``{{name}}`` of a class or function docstring.

    Parameters
    ----------
    texts : dict of str to str
        Entries in the form of numpydoc, from their first line on: name and type, then
        the indented description.

    Returns
    -------
    decorator : callable
        It returns what it was given, with another docstring.
    """

    def fill_in(match):
        indent, name = match.groups()
        return textwrap.indent(textwrap.dedent(texts[name]).strip("\n"), indent)

    def decorate(documented):
        # python -OO removes docstrings
        if documented.__doc__ is not None:
            documented.__doc__ = _PLACEHOLDER.sub(fill_in, documented.__doc__)
        return documented

    return decorate
