r"""The factor with which bands hold their fraction of the rows, from held-out errors.

Each stretch has a factor with which its bands of 95 % hold 95 % of its rows. The median
of these is that of a typical stretch: the fits whose errors are seen had fewer rows and
cycles than the ensemble whose bands they judge, and in some stretches failed.

No factor makes a band narrower than noise and start ask for (`bands.with_factor`). A
stretch in which they make up nearly the whole band tells of no smaller factor, however
small its errors: there, none would change anything, and in a new record it would take
away what is unknown beside the noise. Of an oscillator whose response jumps, the noise
of the first rows may grow to more than the output itself, while the run that was
measured did not jump.

Errors of a free run are mostly alike from row to row, and then tell as much as fewer
independent ones: of their variance as :math:`\nu`, of their mean as m (see
`independent_errors`). With a variance from :math:`\nu` errors, Student's t takes the
place of the normal distribution. And a disturbance that lasts is a part of what the
fits have learned as the level: its mean over the record is missing in the errors, and
another one is added in a new record. Together, bands become wider by

.. math:: \frac{t_\nu(0.975)}{1.96} \sqrt{\frac{1 + 1/m}{1 - 1/m}} .
"""

import numpy as np
from scipy.stats import t as student_t

from ..learning.independent_errors import independent_errors

# Fraction of the rows that a band is meant to hold where its factor is learned, and the
# number of standard deviations that such a band reaches to both sides.
_LEVEL, _DEVIATIONS = 0.95, 1.959963984540054
# Independent errors that a record is taken to have at least.
_FEWEST = 2.0


def typical_factor(deviations, floors=None):
    """The median of the factors of the stretches; 1 without any deviation.

    That of a stretch is not below the one at which 95 % of its rows would have reached
    their floor.

    Parameters
    ----------
    deviations : list of ndarray of shape (n_rows,)
        Errors over standard deviations, of one output, in the rows of each stretch
        that was held out; NaN where there is none.
    floors : list of ndarray of shape (n_rows,), optional
        The part of the standard deviations in these rows below which no factor makes
        them. By default, they have no floor.
    """
    if floors is None:
        floors = [np.zeros(len(part)) for part in deviations]
    factors = []
    for part, floor in zip(deviations, floors, strict=True):
        known = ~np.isnan(part)
        if known.any():
            by_errors = np.quantile(np.abs(part[known]), _LEVEL) / _DEVIATIONS
            without_effect = np.quantile(floor[known], 1.0 - _LEVEL)
            factors.append(max(by_errors, without_effect))
    return float(np.median(factors)) if factors else 1.0


def widening(deviations):
    """By how much bands become wider because errors are few, or alike.

    Parameters
    ----------
    deviations : list of ndarray of shape (n_rows,)
        As of `typical_factor`. Without an error, by nothing: 1.
    """
    found = independent_errors(deviations)
    if found is None:
        return 1.0
    of_variance, of_mean = found
    quantile = student_t.ppf(0.5 + 0.5 * _LEVEL, max(of_variance, _FEWEST))
    share = 1.0 / max(of_mean, _FEWEST)
    return float(quantile / _DEVIATIONS * np.sqrt((1.0 + share) / (1.0 - share)))
