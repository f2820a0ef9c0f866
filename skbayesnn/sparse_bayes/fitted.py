"""What learning hands over to prediction: a fitted network, as plain data."""

from typing import NamedTuple

import numpy as np

from .._saved_state import saved_as
from .network import Network
from .scaling import Scaling


@saved_as("FittedNetwork")
class FittedNetwork(NamedTuple):
    """Everything that a prediction needs.

    network : Network
        Weights at the posterior mode, in scaled units.
    scaling : Scaling
        From the user's units to those of the network.
    covariance : ndarray of shape (n_kept, n_kept) or (n_kept,)
        Posterior covariance of the kept parameters in the order of ``network.theta``,
        or their variances.
    noise_std : ndarray of shape (n_outputs,)
        Standard deviation of the errors one step ahead, in scaled units.
    free_run_std : ndarray of shape (n_outputs,) or None
        Standard deviation of the errors of a free run, where the network was fitted to
        them. None where they come from feeding back the errors of each step.
    degrees_of_freedom : float
        Of the distribution of these errors, Student's t; infinite for a Gaussian one.
    joint_root : ndarray of shape (n_outputs, n_outputs) or None
        A root R of the correlation R R' that the errors of several outputs in one row
        had in the fit. Draws have it; the likelihood takes outputs as independent.
    """

    network: Network
    scaling: Scaling
    covariance: np.ndarray
    noise_std: np.ndarray
    free_run_std: np.ndarray | None = None
    degrees_of_freedom: float = np.inf
    joint_root: np.ndarray | None = None

    @property
    def squared_std(self):
        """Standard deviation of the errors whose squares the fit has minimised."""
        return self.noise_std if self.free_run_std is None else self.free_run_std
