"""What the rows of data themselves tell of the partition function.

Its sum over all states is at least the sum over those of the data. Annealing from
independent features may never meet a state that many rows share, in which a model can
then gather any probability: by its estimate that state becomes more likely than 1.
"""

import numpy as np
from scipy.special import logsumexp

# Log probabilities that differ by less may be of the same state, rounded differently:
# relative to the largest, and in nats.
_RELATIVE, _LEAST = 1e-6, 1e-3


def log_partition_bound(values, are_states=True):
    """A lower bound of the log partition function.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Unnormalised log probabilities of rows, in nats. Rows may be repeated; without
        any, the bound is -inf.
    are_states : bool, default=True
        Whether the rows are states, rather than probabilities of them: the logarithm is
        convex, so that a row of probabilities is below its likeliest state, but several
        rows may have that in common.

    Returns
    -------
    bound : float
        In nats.
    """
    if not len(values):
        return -np.inf
    values = np.sort(values)[::-1]
    if not are_states:
        return float(values[0])
    # of states whose values are nearly the same, one counts: the sum errs downwards
    tolerance = _LEAST + _RELATIVE * np.abs(values).max()
    is_new = np.concatenate([[True], -np.diff(values) > tolerance])
    return float(logsumexp(values[is_new]) - tolerance)
