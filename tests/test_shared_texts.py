"""Shared texts of docstrings: where they are put, and what stays as it was."""

import inspect

import pytest

from skbayesnn._docstrings import shared_parameters

TEXTS = {
    "rate": """
    rate : float, default=0.1
        Step size.

        A second paragraph.
    """,
}


def test_texts_take_the_indentation_of_their_place():
    @shared_parameters(TEXTS)
    def outer():
        """Do something.

        {{rate}}
            {{rate}}
        other : int
            Not {{rate}}, which is inside a line.
        """

    # Python 3.13 takes the common indentation off by itself
    assert inspect.cleandoc(outer.__doc__).splitlines() == [
        "Do something.",
        "",
        "rate : float, default=0.1",
        "    Step size.",
        "",
        "    A second paragraph.",
        "    rate : float, default=0.1",
        "        Step size.",
        "",
        "        A second paragraph.",
        "other : int",
        "    Not {{rate}}, which is inside a line.",
    ]


def test_the_documented_object_stays_the_same():
    class Documented:
        """Documented.

        {{rate}}
        """

    assert shared_parameters(TEXTS)(Documented) is Documented
    assert "Step size." in Documented.__doc__


def test_an_unknown_text_is_an_error():
    def documented():
        """Do something.

        {{unknown}}
        """

    with pytest.raises(KeyError, match="unknown"):
        shared_parameters(TEXTS)(documented)


def test_a_removed_docstring_stays_removed():
    def undocumented():
        pass

    assert shared_parameters(TEXTS)(undocumented).__doc__ is None
