r"""How many independent errors tell as much as errors that are alike from row to row.

If :math:`r_j` is the correlation of errors j rows apart, n of them tell as much of
their variance as

.. math:: \nu = \frac{n}{1 + 2 \sum_j r_j^2} , \qquad
   m = \frac{n}{1 + 2 \sum_j r_j}

independent ones, and of their mean as :math:`m` (Bartlett, 1935). The squares count as
far as they exceed those of chance, :math:`1 / n`, which is cautious: of n independent
errors, three quarters are counted. The sum of the correlations ends at the first one
that may be by chance.
"""

import numpy as np
from scipy.signal import correlate

# Standard errors beyond which a correlation is none of chance.
_CHANCE = 2.0


def independent_errors(runs):
    """How many independent errors tell as much of the variance, and of the mean.

    None where no error differs from 0.

    Parameters
    ----------
    runs : list of ndarray of shape (n_rows,)
        Errors of one output in rows one behind the other, NaN where there is none.
    """
    n_errors = sum(np.count_nonzero(~np.isnan(part)) for part in runs)
    covariance = np.zeros(max(map(len, runs), default=0))
    for part in runs:
        if len(part):
            known = np.nan_to_num(part)
            covariance[: len(part)] += correlate(known, known)[len(part) - 1 :]
    if not (len(covariance) and covariance[0] > 0.0):
        return None
    correlation = covariance[1:] / covariance[0]
    squares = np.maximum(correlation**2 - 1.0 / n_errors, 0.0)
    of_chance = correlation < _CHANCE / np.sqrt(n_errors)
    end = of_chance.argmax() if of_chance.any() else len(correlation)
    of_variance = n_errors / (1.0 + 2.0 * squares.sum())
    return of_variance, n_errors / (1.0 + 2.0 * correlation[:end].sum())
