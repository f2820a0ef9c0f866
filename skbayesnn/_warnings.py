"""Warnings that point at the user's own line."""

import os
import sys
import warnings

import joblib
import sklearn

# A warning is about the line that called into one of these folders.
_NOT_THE_CALLER = tuple(
    os.path.dirname(os.path.abspath(file)) + os.sep
    for file in (__file__, sklearn.__file__, joblib.__file__)
)


def warn_caller(message, category):
    """Warn about a line of the user's code, however deep in this package the cause is.

    Methods are wrapped, by scikit-learn as well, and not all equally often: no fixed
    ``stacklevel`` is right for all of them.
    """
    level, frame = 1, sys._getframe()
    # bound: the depth of the stack
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_CALLER):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def called_by_scorer():
    """Whether one of scikit-learn's scorers has asked for a prediction.

    It knows nothing but X. Meta-estimators may stand between.
    """
    frame = sys._getframe(1)
    # bound: the depth of the stack
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_CALLER):
        if frame.f_globals.get("__name__") == "sklearn.metrics._scorer":
            return True
        frame = frame.f_back
    return False
