"""Affine maps between the user's units and the scaled units of a network."""

from typing import NamedTuple

import numpy as np

from .._saved_state import saved_as

# A scaled output that is this many standard deviations of the training record away
# from its mean has left every range the model could know.
DIVERGENCE_LIMIT = 100.0


@saved_as("Scaling")
class Scaling(NamedTuple):
    """Offsets and scales of regressors and outputs.

    x_offset, x_scale : (n_regressors,)
    y_offset, y_scale : (n_outputs,)
    limit : magnitude of a scaled output from which on it has diverged
    """

    x_offset: np.ndarray
    x_scale: np.ndarray
    y_offset: np.ndarray
    y_scale: np.ndarray
    limit: float = DIVERGENCE_LIMIT
