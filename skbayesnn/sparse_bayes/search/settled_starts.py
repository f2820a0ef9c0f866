"""Which starts of a fit ended in the best optimum, or in one that is nearly as good."""

import numpy as np

from .held_out_errors import error_over_record

# Starts whose error over the whole record is so many times that of the best start
# ended in a worse optimum.
SETTLED = 1.5
# Where hardly any start ends in the best optimum, which one does is a matter of chance,
# and so is its error in a new record: the median of a few is safer.
N_SETTLED = 3


def settled(models, n_wanted, data, focus):
    """Fits of one candidate, without those that ended in a clearly worse optimum.

    At most ``n_wanted`` of them stay. Where `N_SETTLED` or more are wanted, at least
    the best `N_SETTLED` stay. The order is that of ``models``: the fit with the least
    error over the record may only be the one that fits its noise best.
    """
    if len(models) < 2:
        return models[:n_wanted]
    errors = np.array([error_over_record(model, data, focus) for model in models])
    limit = SETTLED * errors.min()
    if n_wanted >= N_SETTLED:
        limit = max(limit, np.sort(errors)[:N_SETTLED][-1])
    good = [m for m, error in zip(models, errors, strict=True) if error <= limit]
    return (good or models)[:n_wanted]
