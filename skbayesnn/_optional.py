"""Packages that are extras, imported where they are used."""

from importlib import import_module


def import_extra(package, caller):
    """A package, or an ImportError that says how to install it.

    ``caller`` is what needs it.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise ImportError(
            f"{caller} requires {package}: pip install {package}"
        ) from error
