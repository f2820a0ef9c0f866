"""What one fit of a search is asked for, and what it gives."""

from typing import NamedTuple

import numpy as np

from ..learning.problem import Start
from ..prediction.ensemble import LaggedNetwork
from ..prediction.hidden_states import StateSpaceNetwork
from .candidates import Candidate


class Settings(NamedTuple):
    """Parameters that all fits take over from the search.

    focus : "simulation" or "prediction", the errors by which candidates are compared
    lags, states : dict of parameters of networks of lags and of hidden states
    input_names : names of the inputs; the lags behind dead times are given by name
    longest_outputs : the longest lag of outputs, even where the lags of inputs are
        longer; see `longest_between_gaps`
    """

    focus: str
    lags: dict
    states: dict
    input_names: tuple = ()
    longest_outputs: float = np.inf


class Task(NamedTuple):
    """One fit of a candidate.

    candidate : what is fitted
    seed : of the start
    fold : that the fit does not see; None for a fit to the whole record
    goes_on_from : fold; the fit to the whole record goes on from the fit that did not
        see it. None for a fit that begins anew.
    """

    candidate: Candidate
    seed: int
    fold: int | None
    goes_on_from: int | None = None

    @property
    def name(self):
        """Name of its stage in a checkpoint."""
        parts = (*self.candidate, *self[1:])
        return " ".join(map(str, parts)).replace(".", ",")


class Score(NamedTuple):
    """What a fit has given that did not see a fold.

    error : in that fold, in standard deviations of the outputs
    network : LaggedNetwork or StateSpaceNetwork, None if the fit failed
    seen : the error on the rows that it was fitted to; 0 for linear models, which have
        one optimum
    start : from which a fit to the whole record can go on; None for networks of lags
    """

    error: float
    network: LaggedNetwork | StateSpaceNetwork | None
    seen: float = 0.0
    start: Start | None = None
