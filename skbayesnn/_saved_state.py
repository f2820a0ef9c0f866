"""Saved estimators: the version that wrote them, and what their files hold.

A file names no class of this package but the estimators, as users import them:
``skbayesnn.FrankWolfeRBM``. What else a fitted estimator holds, NamedTuples of arrays
and numbers, is written as dicts, each with the name of its kind, which stays when the
class moves or is renamed. So what loads trusted types alone, such as skops, needs a
list of estimators, and no refactoring changes it.
"""

import sys

from ._warnings import warn_caller
from .exceptions import InconsistentVersionWarning

_VERSION = "_skbayesnn_version"
_KIND = "_skbayesnn_kind"
# NamedTuples of fitted estimators by the names of their kinds
_KINDS = {}
_NAMES = {}


def saved_as(name):
    """Decorate a NamedTuple that fitted estimators hold with a name for files."""

    def register(kind):
        if name in _KINDS:
            raise ValueError(f"{name} names two kinds of saved state")
        _KINDS[name] = kind
        _NAMES[kind] = name
        return kind

    return register


def public(estimator):
    """Decorate a class that files know by the name under which users import it."""
    estimator.__module__ = __package__
    return estimator


class SavedStateMixin:
    """Pickles and copies with the version of this package; others are warned of."""

    def __getstate__(self):
        state = {
            name: _plain(value) if name.startswith("_") else value
            for name, value in super().__getstate__().items()
        }
        return {**state, _VERSION: _current_version()}

    def __setstate__(self, state):
        state = dict(state)
        version = state.pop(_VERSION, "an unknown version")
        current = _current_version()
        if version != current:
            warn_caller(
                f"This {type(self).__name__} was saved by {version} of skbayesnn, and "
                f"is loaded by {current}: what it does may have changed, and it may "
                "lack attributes. Load it with the version that saved it, or fit it "
                "again.",
                InconsistentVersionWarning,
            )
        state = {
            name: _rebuilt(value) if name.startswith("_") else value
            for name, value in state.items()
        }
        super().__setstate__(state)


def _current_version():
    return sys.modules[__package__].__version__


def _plain(value):
    """The same with dicts in place of the NamedTuples of this package."""
    kind = type(value)
    if kind in _NAMES:
        fields = {name: _plain(part) for name, part in value._asdict().items()}
        return {_KIND: _NAMES[kind], **fields}
    if kind is dict:
        return {name: _plain(part) for name, part in value.items()}
    if kind in (list, tuple):
        return kind(map(_plain, value))
    if kind.__module__.partition(".")[0] == __package__ and isinstance(value, tuple):
        raise TypeError(f"{kind.__qualname__} has no name for files: use saved_as")
    return value


def _rebuilt(value):
    """What `_plain` was given."""
    kind = type(value)
    if kind in (list, tuple):
        return kind(map(_rebuilt, value))
    if kind is not dict:
        return value
    parts = {name: _rebuilt(part) for name, part in value.items()}
    if _KIND not in parts:
        return parts
    name = parts.pop(_KIND)
    try:
        return _KINDS[name](**parts)
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"The saved estimator holds {name!r} with {', '.join(parts) or 'nothing'}, "
            f"which {_current_version()} of skbayesnn does not know. Load it with the "
            "version that saved it, or fit it again."
        ) from error
