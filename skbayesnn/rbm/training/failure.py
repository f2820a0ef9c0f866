"""A training that has failed: its rows are less likely than by independent features."""

import numpy as np
from scipy.special import logsumexp

from ..._sklearn import on_one_blas_thread
from ..._warnings import warn_caller
from ...exceptions import MixingWarning
from .. import model as rbm_model
from ..likelihood.row_weights import log_row_weights
from .start import normalised_independent_model

# Rows by which both are judged, at least and at most, and draws of their hidden states.
_LEAST_ROWS, _N_ROWS, _N_DRAWS = 50, 500, 500
# What a model may be behind independent features, nats: units of a fit that has hardly
# begun are noise.
_MAX_DIFFERENCE = 1.0


# rounding depends on the threads of BLAS
@on_one_blas_thread
def warn_if_worse(rbm, rows, seed):
    """Warn of a model of these training rows that is worse than independent features.

    The partition function is that by the hidden states of rows, which finds modes that
    chains do not, and is rather too small than too large.
    """
    if (
        not rbm_model.is_standard(rbm)
        or not len(rbm.weights)
        or len(rows) < _LEAST_ROWS
    ):
        return
    states = rows.spread(_N_ROWS)
    log_weights = log_row_weights(rbm, states, _N_DRAWS, seed)
    log_partition = logsumexp(log_weights) - np.log(len(log_weights))
    found = _mean(rbm, states) - log_partition
    independent, log_partition = normalised_independent_model(rows)
    expected = _mean(independent, states) - log_partition
    if found < expected - _MAX_DIFFERENCE:
        warn_caller(
            "The model is worse than independent features: the training rows have a "
            f"mean log-likelihood of at most {found:.2f} nats, and {expected:.2f} by "
            "these. It prefers states that the rows do not have, as where chains do "
            "not move between the modes of the data. Let training decide more, by "
            'max_iter="auto" or n_components="auto" of FrankWolfeRBM, or take smaller '
            "learning rates, or more steps.",
            MixingWarning,
        )


def _mean(rbm, states):
    return float(rbm_model.unnormalised_log_probability(rbm, states).mean())
