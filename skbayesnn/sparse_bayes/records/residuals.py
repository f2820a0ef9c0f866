"""What a fit squares: the interface that both kinds of training data share.

`one_step.OneStepData` holds errors one step ahead, `free_runs.FreeRunData` those along
free runs. The solvers know no more of either than `FitData`.
"""

from typing import Protocol

import numpy as np

# One block of the Jacobian; small enough to stay in the cache between its making and
# the product that consumes it.
BLOCK_BYTES = 4 * 2**20


class FitData(Protocol):
    """Targets of a fit, and how far a network is from them.

    Targets have the shape of ``YT`` (n_outputs, n_samples) or, along free runs, of
    ``Y`` (n_rows, n_outputs). Two kinds of weights multiply each squared error:
    ``weights[o] ** 2``, the precision of the noise of an output up to a common factor,
    and optionally an observation weight for each target.

    n_observations : targets that count
    counts : (n_outputs,) the same for each output
    weights : (n_outputs,)
    observation_weights : array in the shape of the targets, or None for ones
    output_axis : of the targets, along which their outputs are
    sample_weight : how many times each target counts, of a shape that broadcasts to
        that of the targets; None for once
    """

    n_observations: int
    counts: np.ndarray
    weights: np.ndarray
    observation_weights: np.ndarray | None
    output_axis: int
    sample_weight: np.ndarray | None

    def errors_are_linear(self, network):
        """Whether the errors are linear in the weights, and their squares quadratic."""

    def select_inputs(self, places):
        """The data of a network that reads only some of the inputs."""

    def with_observation_weights(self, observation_weights):
        """The data with other observation weights, >= 0; None for ones."""

    def with_weights(self, weights):
        """The data with other ``weights``."""

    def residuals(self, network):
        """Errors times ``weights``, without observation and sample weights.

        In the shape of the targets; NaN where nothing counts, infinite after a
        divergence.
        """

    def squared_errors(self, network):
        """Squared errors of each output times all weights but ``weights``.

        Infinite after a divergence.
        """

    def loss_gradient(self, network):
        """Half the weighted squared error and its gradient by all parameters."""

    def ggn_diag(self, network):
        """``diag(J.T @ J)`` over all parameters, J the weighted Jacobian."""

    def blocks(self, network, in_one):
        """Yield weighted residuals (m,) and Jacobian (n_kept, m), block after block.

        All observations are in one block with ``in_one``. FloatingPointError if a free
        run diverges.
        """


def root_weights(weights, observation_weights):
    """What multiplies residuals and rows of the Jacobian.

    ``weights`` comes in a shape that broadcasts to that of the targets.
    """
    if observation_weights is None:
        return weights
    return weights * np.sqrt(observation_weights)
