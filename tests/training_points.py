"""Places on the path of an automatic training and at its end, with likelihoods."""

import numpy as np
from rbm_estimators import toy_data
from rbm_models import random_model, random_states, start_state

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn._persistence import Checkpoint
from skbayesnn.rbm.training import adaptive, automatic_settings, plans, tracking
from skbayesnn.rbm.training.job import Job
from skbayesnn.rbm.training.path import Point, Round, Segment
from skbayesnn.rbm.training.rows import Rows
from skbayesnn.rbm.training.start import start_training
from skbayesnn.rbm.training.training_result import Training
from skbayesnn.rbm.training.trials import Trial

# Differences of likelihoods, in nats.
CLEAR, TINY = 1.0, 1e-3


def settings_of(**parameters):
    """Those of an automatic training of a few rows, with chains."""
    rows, estimator = Rows(toy_data(), 0.5), ContrastiveDivergenceRBM(**parameters)
    settings = automatic_settings.settings_of(estimator, rows)
    return settings._replace(enumerates=False)


def default_settings():
    """Those of a training without parameters, of other rows than `small_job` has."""
    X = np.random.default_rng(1).random((50, 12)) < 0.4
    return automatic_settings.settings_of(ContrastiveDivergenceRBM(), Rows(X, 0))


def job_of(X):
    train, validation = Rows(X[::2], None), Rows(X[1::2], None)
    return Job(train, validation, np.dtype(np.float32), 5, Checkpoint(None, {}, 5))


def small_job():
    """Rows of independent features."""
    rng = np.random.default_rng(0)
    X, others = (rng.random((n, 12)) < 0.4 for n in (200, 60))
    return Job(Rows(X, 0.5), Rows(others, 0.5), np.float32, 0, None)


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


def ended(a_job, rbm, n_updates, validation):
    """The `Outcome` of a training that has ended at a model."""
    state = start_training(rbm, a_job.train, 20, 0)
    path = path_of([n_updates], [validation]) if n_updates else ()
    best = Point(state, path, validation, validation, 1e-3)
    training = Training(state, {"n_updates": np.array([6000])}, 9)
    measured = tracking.Measured(validation, validation, validation, 1e-3, 0.0)
    return adaptive.Outcome(training, best, validation, measured, None)


def trial_of(n_units, score, gain=0.0, **plan):
    """A size that began at -50 nats."""
    best = Point(None, (), score, score, 0.0)
    plan = plans.Plan(
        0.1, **{"n_gibbs_steps": 1, "weight_decay": 0.0, **plan}, n_updates=9
    )
    state = plans.Adapting(best, best, plan, -50.0)
    outcome = adaptive.Outcome(None, best, -50.0, None, state)
    return Trial(f"{n_units} units", n_units, None, outcome, gain)


PLAN = dict(rate=0.1, n_gibbs_steps=1, weight_decay=0.0, n_updates=100)
BEST = point(-30.0, train=-25.0)
WORSE = point(-30.0 - CLEAR, train=-25.0 - CLEAR, n_updates=2500)
OVERFITTED = point(-30.0 - CLEAR, train=-25.0 + CLEAR, n_updates=2500)
