"""Places on the path of an automatic training, with their likelihoods."""

import numpy as np
from rbm_estimators import toy_data
from rbm_models import random_model, random_states, start_state

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn._persistence import Checkpoint
from skbayesnn.rbm.training import automatic_settings, plans
from skbayesnn.rbm.training.job import Job
from skbayesnn.rbm.training.path import Point, Round, Segment
from skbayesnn.rbm.training.rows import Rows

# Differences of likelihoods, in nats.
CLEAR, TINY = 1.0, 1e-3


def settings_of(**parameters):
    """Those of an automatic training of a few rows, with chains."""
    rows, estimator = Rows(toy_data(), 0.5), ContrastiveDivergenceRBM(**parameters)
    settings = automatic_settings.settings_of(estimator, rows)
    return settings._replace(enumerates=False)


def job_of(X):
    train, validation = Rows(X[::2], None), Rows(X[1::2], None)
    return Job(train, validation, np.dtype(np.float32), 5, Checkpoint(None, {}, 5))


def point(validation, train=-20.0, n_updates=2000, n_rounds=1, error=TINY, n_units=2):
    """A place after rounds with the same likelihood."""
    rbm, _ = random_model(n_units, 3)
    state = start_state(rbm, random_states(4, 3, dtype=np.uint8))
    path = path_of([n_updates // n_rounds] * n_rounds, [validation] * n_rounds)
    return Point(state, path, train, validation, error)


def path_of(n_updates, validations, weight_decay=0.0):
    """Rounds with these updates, and the likelihoods after them."""
    segment = Segment(0, 0.1, 0.1, 1, weight_decay, 1)
    return tuple(
        Round(segment._replace(n_updates=n), value)
        for n, value in zip(n_updates, validations, strict=True)
    )


def adapting(current, best, **plan):
    """A training between two rounds."""
    plan = plans.Plan(**{**PLAN, **plan})
    return plans.Adapting(current, best, plan, first_score=-60.0)


PLAN = dict(rate=0.1, n_gibbs_steps=1, weight_decay=0.0, n_updates=100)
BEST = point(-30.0, train=-25.0)
WORSE = point(-30.0 - CLEAR, train=-25.0 - CLEAR, n_updates=2500)
OVERFITTED = point(-30.0 - CLEAR, train=-25.0 + CLEAR, n_updates=2500)
