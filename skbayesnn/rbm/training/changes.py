"""What a round of updates has gained, by states of the model before and after it.

Two annealings, one of each model, differ by a tenth of a nat by chance, which is more
than most rounds gain. The models are much alike, so states of both, which the chains of
the training give, tell the ratio of their partition functions to a hundredth (Bennett's
acceptance ratio; Desjardins et al., 2011). It says nothing of modes to which the chains
do not come, and its errors add up over the rounds. Annealing finds both, so each
estimate weighs what it says against what the last one and the ratio predict.
"""

from typing import NamedTuple

import numpy as np

from .. import model as rbm_model
from ..likelihood.estimates import acceptance_ratio, acceptances

# Standard errors by which annealing and a prediction differ if one of them is wrong.
_CONTRADICTION = 4.0
# Standard errors of its level by which a point may be corrected later.
_MOST = 3.0
# Fewest chains that tell how far their states scatter.
_FEWEST_CHAINS = 10
# States of a model, at least, and for so many updates of a round one of each chain: the
# fewest and most of these.
_LEAST_STATES, _UPDATES, _OF_CHAIN = 200, 300, (2, 6)


class Estimate(NamedTuple):
    """An estimated log partition function, or a difference of two."""

    value: float
    """nats"""
    error: float
    """its standard error, nats"""

    def contradicts(self, other):
        """Whether chance does not explain how far they differ."""
        error = np.hypot(self.error, other.error)
        return bool(abs(self.value - other.value) > _CONTRADICTION * error)


def larger(one, other):
    """Of two estimates that miss what they do not meet."""
    return one if one.value > other.value else other


def n_states(n_chains, n_updates):
    """States that are to tell what a round of so many updates has changed; 0 if none.

    A multiple of the number of chains.
    """
    if n_chains < _FEWEST_CHAINS:
        return 0
    of_chain = int(np.clip(n_updates // _UPDATES, *_OF_CHAIN))
    return n_chains * max(of_chain, -(-_LEAST_STATES // n_chains))


def log_ratio(before, after, states_before, states_after, n_chains):
    """The `Estimate` of the change of the log partition function.

    Parameters
    ----------
    before, after : RBM
    states_before, states_after : ndarray of shape (n_states, n_features)
        Visible states of each model: of the first chain, of the second, and so forth,
        and again of the first one, some steps later.
    n_chains : int
        The error is that of independent chains, however their own states depend on each
        other.
    """
    forward, reverse = (
        rbm_model.unnormalised_log_probability(after, states)
        - rbm_model.unnormalised_log_probability(before, states)
        for states in (states_before, states_after)
    )
    ratio, _ = acceptance_ratio(forward, -reverse)
    errors = []
    for differences in (forward - ratio, ratio - reverse):
        terms = acceptances(differences).reshape(-1, n_chains).mean(axis=0)
        errors.append(terms.std(ddof=1) / np.sqrt(n_chains))
    return Estimate(float(ratio), float(np.hypot(*errors)))


def reconcile(annealed, predicted):
    """What both say together, and whether they contradict each other.

    Then annealing counts. A prediction holds the modes of the last model that the
    chains had not come to: where the model has lost them, it stays too large for ever.
    """
    if annealed.contradicts(predicted):
        return annealed, True
    variances = np.square([annealed.error, predicted.error])
    if not variances.sum():
        return annealed, False
    # the more certain one has the larger weight
    weight = variances[1] / variances.sum()
    value = predicted.value + weight * (annealed.value - predicted.value)
    error = np.sqrt(weight * variances[0])
    return Estimate(float(value), float(error)), False


def corrected(point, shift):
    """A point of the path with its log partition function corrected by ``shift``.

    What later estimates say of the level holds for earlier ones, too, so that they
    still differ by what the rounds have gained. All corrections together go no further
    than the level is uncertain: ratios that err in one direction, because the chains do
    not follow the model, would carry all points along.
    """
    most = _MOST * point.level_error
    total = point.shift + shift
    change = float(np.clip(total, -most, most) - np.clip(point.shift, -most, most))
    path = (one._replace(validation=one.validation - change) for one in point.path)
    return point._replace(
        path=tuple(path),
        log_likelihood=point.log_likelihood - change,
        validation=point.validation - change,
        log_partition=point.log_partition + change,
        shift=total,
    )


def combined_difference(precise, sharp):
    """Of two estimates of one difference, both together, or the first if they differ.

    The first one is by annealing, the second by the states of chains.
    """
    found, _ = reconcile(precise, sharp)
    return found
