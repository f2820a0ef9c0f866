"""What rows of data say of a log partition function: at least how large it is.

The sum over the states in the rows, or importance sampling from their hidden states
(`likelihood.row_weights`). Where these do not rule out that annealing has missed a part
of the mass, the samples follow the model from the rows to where it has its own modes.
"""

from ..likelihood.bound import log_partition_bound
from ..likelihood.estimates import HALF_WIDTH, summarise, summarise_rounds
from ..likelihood.row_weights import followed_weights, log_row_weights
from ..model import is_standard
from .changes import Estimate, larger

# Draws from the hidden states of rows, and the most rows of which they are: of a short
# estimate, of a precise one, and of each round of samples that follow the model.
_SHORT, _PRECISE, _FOLLOWED = (500, 2000), (4000, 10000), (4000, 2000)


def short(rbm, values, rows, seed):
    """The `Estimate` by few draws.

    ``values`` are pairs of log probabilities and their `Rows`; the hidden states are
    those of ``rows``.
    """
    return _by_rows(rbm, values, rows, _SHORT, seed)


def precise(rbm, values, rows, seed):
    """The same by more draws."""
    return _by_rows(rbm, values, rows, _PRECISE, seed)


def followed(rbm, rows, annealed, known, seed):
    """The `Estimate` that is ``known`` by rows, or by samples that follow the model.

    These are drawn where ``known`` leaves open that ``annealed`` has missed more than
    half a nat.
    """
    missed = _upper(known) - _lower(annealed)
    if missed <= HALF_WIDTH or not is_standard(rbm):
        return known
    n_draws, n_rows = _FOLLOWED
    states = rows.spread(n_rows)
    found = _estimate(summarise_rounds(followed_weights(rbm, states, n_draws, seed)))
    is_better = found.error < known.error or _lower(found) > known.value
    return found if is_better else known


def _by_rows(rbm, values, rows, amount, seed):
    bound = max(log_partition_bound(one, of.are_states) for one, of in values)
    if not is_standard(rbm):
        return Estimate(bound, 0.0)
    n_draws, n_rows = amount
    log_weights = log_row_weights(rbm, rows.spread(n_rows), n_draws, seed)
    found = _estimate(summarise(log_weights, 0.0, 1.0))
    return larger(found, Estimate(bound, 0.0))


def _estimate(result):
    """Of a `LogPartition`, whose interval is three standard errors to both sides."""
    low, high = result.interval
    return Estimate(result.log_partition, (high - low) / 6.0)


def _lower(estimate):
    return estimate.value - 3.0 * estimate.error


def _upper(estimate):
    return estimate.value + 3.0 * estimate.error
