"""Which model of a training is the best, by precise estimates of their likelihoods.

Estimates during the training scatter, and the best of many errs upwards. So the points
that only chance may tell apart are measured again, by more temperatures.
"""

import numpy as np

from ..learning import contrastive
from . import changes, gains, plans, tracking
from .job import computing
from .model_states import draws_of
from .start import base_of

# Temperatures of a precise estimate per update, and the fewest and most of them.
_MEASURED, _N_BETAS = 0.1, (200, 2000)


def reconsider(settings, job, adapting, number):
    """The `Adapting` at the best of the points that only chance may tell apart."""
    best, plan = adapting.best, adapting.plan
    points = [best]
    for other in adapting.others:
        if other.validation > best.validation - gains.noise(other, best):
            points.append(other)
    if len(points) > 1 and best.error > 0.0:
        measured = measure(settings, job, points, number)
        k = int(np.argmax([one.validation for one in measured]))
        best = measured_point(points[k], measured[k])
    plan = plan._replace(n_updates=plans.last_round(settings, best))
    return adapting._replace(current=best, best=best, plan=plan, others=())


def choose(settings, job, adapting, number):
    """The best point, or the last one if it is better, and its `tracking.Measured`."""
    points = [adapting.best]
    if adapting.plan.cools:
        points.append(adapting.current)
    measured = measure(settings, job, points, number)
    k = int(len(points) > 1 and _is_better(points, measured))
    return measured_point(points[k], measured[k]), measured[k]


def _is_better(points, measured):
    """Whether the second of two points is better than the first one.

    By annealing, and by what has changed between them.
    """
    one, other = measured
    error = float(np.hypot(one.error, other.error))
    precise = changes.Estimate(other.validation - one.validation, error)
    one, other = points
    if other.states is not None:
        sharp = changes.Estimate(other.validation - one.validation, other.error)
        precise = changes.combined_difference(precise, sharp)
    return precise.value > 0.0


def measured_point(point, measured):
    """The point with what a precise estimate tells."""
    shift = point.validation - measured.validation
    return point._replace(
        validation=measured.validation,
        error=measured.error,
        log_partition=point.log_partition + shift,
        level_error=measured.error,
    )


def measure(settings, job, points, number):
    """Precise estimates of points, by temperatures in proportion to their updates."""
    most = max(point.n_updates for point in points)
    n_betas = int(np.clip(most * _MEASURED, *_N_BETAS))
    base = base_of(job.train)
    with computing(settings.n_jobs, settings.learning_rate, settings.limit_blas):
        return [
            tracking.measure(
                contrastive.model(settings.update, point.state), base, job, number,
                n_betas, settings.n_jobs,
                draws=draws_of(settings, job, point.state, number),
            )
            for point in points
        ]  # fmt: skip
