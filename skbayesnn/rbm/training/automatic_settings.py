"""The settings of an automatic training, from an estimator and its rows."""

import numpy as np

from ..learning import exact_ascent
from . import plans
from .row_probabilities import log_probabilities
from .start import independent_model
from .update_settings import update_of

# What an automatic training starts with, where the estimator says "auto": the step size
# of features with this variance or more, and the limit of the change of the log
# probabilities by a step, in nats and as a fraction of their standard deviation over
# the rows under independent features.
_LEARNING_RATE, _USUAL_VARIANCE = 0.2, 0.15
_MAX_CHANGE, _RELATIVE_CHANGE = 1.0, 0.015
# Smaller variances count as this one: a few of thousands of rows say little.
_LEAST_VARIANCE = 1e-3
# Damping of the natural gradient, which such a training follows.
_DAMPING = 0.1


def settings_of(estimator, rows):
    """The settings of an estimator with the parameters of contrastive divergence.

    ``rows`` are those that it is trained on.
    """
    n_steps, rate = estimator.n_gibbs_steps, estimator.learning_rate
    # whoever sets one of them asks for these updates
    is_free = rate == "auto" and n_steps == "auto" and estimator.persistent
    update = update_of(estimator)._replace(jumps=is_free)
    if rate == "auto":
        update = update._replace(max_change=_max_change(rows), damping=_DAMPING)
    return plans.Settings(
        update,
        _learning_rate(rows) if rate == "auto" else float(rate),
        estimator.batch_size,
        estimator.max_updates if may_depend(rows) else 1,
        adapts_gibbs=n_steps == "auto",
        tempers=n_steps == "auto" and estimator.persistent,
        adapts_decay=estimator.weight_decay == "auto",
        enumerates=is_free and _can_list(rows) and may_depend(rows),
        keep_last=estimator.warm_start,
        refit=estimator.refit,
        n_jobs=estimator.n_jobs,
        limit_blas=estimator.binarize is not None,
        verbose=estimator.verbose,
    )


def _can_list(rows):
    """Whether the rows are some of few states."""
    few = exact_ascent.can_list(rows.units, rows.n_features)
    return few and not rows.hold_grey_values()


def may_depend(rows):
    """Whether more than one feature varies; if not, independent ones tell all.

    Training would make constant features more certain forever.
    """
    rates = rows.mean()
    return np.count_nonzero((rates > 0.0) & (rates < 1.0)) > 1


def _learning_rate(rows):
    """The step size, which is larger where features are rare.

    The curvature of the log-likelihood by the weights of a feature is in proportion to
    its variance: with the same step size, rare features would learn nothing for
    thousands of updates. The mean weighs features by their variances, which makes it
    that of the features that diverge first.
    """
    rates = rows.mean()
    if ((rates == 0.0) | (rates == 1.0)).all():
        # of one row, or of equal ones, there is nothing to be learned
        return _LEARNING_RATE
    variances = rows.units.variances(rates)
    variance = np.square(variances).sum() / max(variances.sum(), _LEAST_VARIANCE)
    return _LEARNING_RATE * max(1.0, _USUAL_VARIANCE / max(variance, _LEAST_VARIANCE))


def _max_change(rows):
    """The limit of the change by a step, nats."""
    values = log_probabilities(independent_model(rows), rows)
    return max(_MAX_CHANGE, _RELATIVE_CHANGE * float(values.std()))
