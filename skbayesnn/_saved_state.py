"""Saved estimators tell which version of this package wrote them."""

import sys

from ._warnings import warn_caller
from .exceptions import InconsistentVersionWarning

_VERSION = "_skbayesnn_version"


class SavedStateMixin:
    """Pickles and copies with the version of this package; others are warned of."""

    def __getstate__(self):
        return {**super().__getstate__(), _VERSION: _current_version()}

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
        super().__setstate__(state)


def _current_version():
    return sys.modules[__package__].__version__
