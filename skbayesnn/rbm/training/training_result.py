"""What a training gives back, and what a fit makes of it."""

from typing import NamedTuple

from sklearn.exceptions import ConvergenceWarning

from ..._warnings import warn_caller
from ...exceptions import MixingWarning
from ..learning import contrastive, growth

_NOT_LEARNED = (
    "Nothing was learned: by no model that was tried, the validation rows are more "
    "likely than by independent features, and these are the model. Its units have no "
    "weights, and its features are the same for all rows. {}, or the rows are too few "
    "to tell how they depend on each other."
)
_INDEPENDENT = "Either the features are independent"
_ENDED = (
    "{} has ended the training at its start, where likelihoods hardly "
    "change: increase it. If that does not help, the features are independent"
)


class Training(NamedTuple):
    """What every training gives back: by epochs, by growth or by rounds."""

    state: contrastive.State | growth.State | None
    """of the solver; None for a model that was not trained here"""
    history: dict
    """columns by name, one entry per epoch, step or round"""
    n_iter: int
    """number of entries"""
    interrupted: bool = False
    """whether Ctrl-C ended it, after a model that can be used"""
    stopped: bool = False
    """whether a callback ended it"""


class Result(NamedTuple):
    """The result of a fit: a training, and what is to be said of it."""

    training: Training
    """its state holds the model"""
    warning: str | None
    """a text, if the model is in doubt"""
    decisions: dict
    """fitted attributes: what was chosen"""
    learned: bool = True
    """whether the model is more than independent features"""
    ended_by: str | None = None
    """"max_updates=..." or "max_time", if a training that has learned nothing had no
    time to do so"""

    def warn(self):
        """Say it, at the end of a fit."""
        if self.warning is not None:
            warn_caller(self.warning, MixingWarning)
        elif not self.learned:
            cause = _INDEPENDENT
            if self.ended_by is not None:
                cause = _ENDED.format(self.ended_by)
            warn_caller(_NOT_LEARNED.format(cause), ConvergenceWarning)
