"""Every public name has a complete docstring, as numpydoc reads it."""

import inspect
from importlib import import_module

import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import ALLOWED_SECTIONS, Validator, validate

from skbayesnn._docstrings import shared_parameters

PUBLIC_MODULES = [
    "skbayesnn",
    "skbayesnn.datasets",
    "skbayesnn.displays",
    "skbayesnn.exceptions",
    "skbayesnn.metrics",
    "skbayesnn.onnx",
]

# Not asked of every docstring: an extended summary (ES01), See Also (SA01), examples
# (EX01, which is asked of classes and functions), a first line of Returns without a
# name (RT02), and the line on which the summary starts (GL01, which releases of
# numpydoc judge differently).
CHECKS = {
    "GL02": "the closing quotes stand below the text",
    "GL03": "no double blank lines",
    "GL05": "no tabs",
    "GL06": "known sections only",
    "GL07": "sections in their order",
    "GL08": "there is a docstring",
    "GL10": "directives end in two colons",
    "SS01": "there is a summary",
    "SS02": "the summary starts with a capital letter",
    "SS03": "the summary ends with a period",
    "SS04": "the summary is not indented",
    "SS05": "the summary is in the imperative",
    "SS06": "the summary fits in one line",
    "PR01": "every parameter of the signature is documented",
    "PR02": "no other parameter is documented",
    "PR03": "parameters in the order of the signature",
    "PR04": "every parameter has a type",
    "PR05": "the type does not end with a period",
    "PR06": "types have their Python names",
    "PR07": "every parameter has a description",
    "PR08": "the description starts with a capital letter",
    "PR09": "the description ends with a period",
    "PR10": "a space before the colon of a parameter",
    "RT01": "what is returned is documented",
    "RT03": "the returned value has a description",
    "RT04": "that description starts with a capital letter",
    "RT05": "that description ends with a period",
    "YD01": "what is yielded is documented",
    "SA02": "See Also descriptions end with a period",
    "SA03": "See Also descriptions start with a capital letter",
    "SA04": "See Also entries have a description",
}


def own_function(attribute):
    """Whether a class attribute is a method or property written in this package."""
    if isinstance(attribute, property):
        attribute = attribute.fget
    function = inspect.unwrap(attribute) if callable(attribute) else attribute
    module = getattr(function, "__module__", None) or ""
    return inspect.isroutine(function) and module.split(".")[0] == "skbayesnn"


def with_methods(path, obj):
    """Yield a public object's path and, if it is a class, those of its methods."""
    yield path
    if inspect.isclass(obj):
        for name in dir(obj):
            # getattr_static would not see through scikit-learn's `available_if`
            if not name.startswith("_") and own_function(getattr(obj, name, None)):
                yield f"{path}.{name}"


def public_paths():
    paths = {}
    for module_name in PUBLIC_MODULES:
        module = import_module(module_name)
        for name in module.__all__:
            obj = getattr(module, name)
            if inspect.isclass(obj) or inspect.isroutine(obj):
                # one exported by two modules is checked once
                paths.setdefault(id(obj), with_methods(f"{module_name}.{name}", obj))
    return [path for group in paths.values() for path in group]


def is_object(path):
    """Whether a path is that of a public class or function, not of a method."""
    return any(path.rpartition(".")[0] == module for module in PUBLIC_MODULES)


def in_order(path):
    """Whether sections have the order of numpydoc, with one exception.

    ``Other Parameters`` follow the ``Parameters``. numpydoc wants them after the
    ``Attributes``, where nobody looks for the rest of a signature.
    """
    titles = Validator(get_doc_object(Validator._load_obj(path))).section_titles
    order = [title for title in ALLOWED_SECTIONS if title != "Other Parameters"]
    order.insert(order.index("Parameters") + 1, "Other Parameters")
    return titles == [title for title in order if title in titles]


def violations(path):
    """What is wrong with a docstring; numpydoc reads ``Other Parameters``, too."""
    found = [
        f"{code}: {message}"
        for code, message in validate(path)["errors"]
        if code in CHECKS and code != "GL07"
    ]
    if not in_order(path):
        found.append("GL07: sections are in the wrong order")
    if "{{" in (Validator._load_obj(path).__doc__ or ""):
        found.append("SHARED: a placeholder of a shared text is left")
    return found


@pytest.mark.parametrize("path", public_paths())
def test_docstring(path):
    found = violations(path)
    assert not found, "\n".join([path, *found])


@pytest.mark.parametrize("path", [p for p in public_paths() if is_object(p)])
def test_object_has_an_example(path):
    codes = {code for code, _ in validate(path)["errors"]}
    assert "EX01" not in codes, f"{path} has no section Examples"


@pytest.mark.parametrize("module_name", PUBLIC_MODULES)
def test_module_is_public(module_name):
    module = import_module(module_name)
    assert (module.__doc__ or "").strip(), f"{module_name} has no docstring"
    assert len(set(module.__all__)) == len(module.__all__)
    missing = [name for name in module.__all__ if not hasattr(module, name)]
    assert not missing, f"{module_name}.__all__ names what does not exist: {missing}"


def incomplete(first, second):
    """Does something.

    Parameters
    ----------
    first : int
        Documented.

    third : int
        Not in the signature.
    """
    return first + second


def test_the_check_can_fail():
    found = violations(f"{__name__}.incomplete")
    assert {message[:4] for message in found} == {"SS05", "PR01", "PR02", "RT01"}


@shared_parameters({"third": "third : float, default=0.0\n    Documented elsewhere."})
def with_other_parameters(first, *, second, third=0.0, fourth=0):
    """Add numbers.

    Parameters
    ----------
    first : int
        Documented.

    Other Parameters
    ----------------
    second : int
        Documented.
    {{third}}
    fourth : int, default=0
        Documented.

    Returns
    -------
    total : float
        The sum.
    """
    return first + second + third + fourth


def with_faulty_other_parameters(first, *, second=0, third=0):
    """Add numbers {{ of a text that nobody filled in.

    Parameters
    ----------
    first : int
        Documented.

    Other Parameters
    ----------------
    third
        No type and no period

    Returns
    -------
    total : int
        The sum.
    """
    return first + second + third


def with_misplaced_other_parameters(first, *, second=0):
    """Add numbers.

    Parameters
    ----------
    first : int
        Documented.

    Returns
    -------
    total : int
        The sum.

    Other Parameters
    ----------------
    second : int, default=0
        Documented.
    """
    return first + second


def test_other_parameters_are_checked():
    assert violations(f"{__name__}.with_other_parameters") == []
    found = violations(f"{__name__}.with_faulty_other_parameters")
    codes = {message.partition(":")[0] for message in found}
    assert codes == {"PR01", "PR04", "PR09", "SHARED"}
    (found,) = violations(f"{__name__}.with_misplaced_other_parameters")
    assert found.startswith("GL07")
