"""How starts are ranked, and the networks of an ensemble weighted."""

import numpy as np
import pytest
from free_run_cases import assert_same_fit, fit, output_error, rms
from grids import each_value_once
from numpy.testing import assert_allclose


def training_error(member, u, y, rows=slice(2, None)):
    return rms((member.predict(u, y_init=y[:2]) - y)[rows])


@pytest.mark.slow
@pytest.mark.parametrize("focus", ["prediction", "simulation"])
@pytest.mark.parametrize("selection", ["evidence", "simulation", "validation"])
def test_selection_orders_the_starts(selection, focus):
    u, y, _ = output_error(150)
    model = fit(
        u, y, focus=focus, n_estimators=4, selection=selection, hidden_layer_sizes=5
    )
    errors = {
        "evidence": [m.history_["objective_pruned"][-1] for m in model.estimators_],
        "simulation": [training_error(m, u, y) for m in model.estimators_],
        "validation": [
            training_error(m, u, y, slice(120, None)) for m in model.estimators_
        ],
    }[selection]
    assert len(set(errors)) > 1
    assert errors == sorted(errors)
    single = fit(
        u, y, focus=focus, n_restarts=4, selection=selection, hidden_layer_sizes=5
    )
    assert_same_fit(single, model.estimators_[0])
    # more starts than networks: the best stay
    fewer = fit(
        u,
        y,
        focus=focus,
        n_estimators=2,
        n_restarts=4,
        selection=selection,
        hidden_layer_sizes=5,
    )
    for a, b in zip(fewer.estimators_, model.estimators_, strict=False):
        assert_same_fit(a, b)


@pytest.mark.parametrize(
    *each_value_once(n_sessions=[1, 3], focus=["prediction", "simulation"])
)
def test_validation_stretches_are_not_seen(focus, n_sessions):
    u, y, _ = output_error(150)
    sessions = np.arange(150) * n_sessions // 150
    length = 150 // n_sessions
    held_out = np.arange(150) % length >= length - np.ceil(0.3 * length)
    options = dict(
        sessions=sessions, focus=focus, selection="validation", validation_fraction=0.3
    )
    one = fit(u, y, **options)
    other = fit(u, np.where(held_out, -y, y), **options)
    assert_same_fit(one, other)
    assert one.noise_variance_ == other.noise_variance_
    seen = fit(u, np.where(np.roll(held_out, -1), -y, y), **options)
    assert np.abs(seen.coefs_[0] - one.coefs_[0]).max() > 0


@pytest.mark.parametrize("focus", ["prediction", "simulation"])
def test_weights_by_evidence(focus):
    """Posterior probabilities at the temperature of the fit."""
    u, y, _ = output_error(150)
    model = fit(
        u, y, n_estimators=3, weighting="evidence", focus=focus, reg_lambda=20.0
    )
    objective = [m.history_["objective_pruned"][-1] for m in model.estimators_]
    odds = np.exp(-0.5 * (np.array(objective) - min(objective)) / 20.0)
    assert_allclose(model.estimator_weights_, odds / odds.sum(), rtol=1e-9)


def assert_least_error(weights, paths, y):
    def error(weights):
        return rms(weights @ paths - y)

    rng = np.random.default_rng(0)
    others = [*np.eye(3), np.full(3, 1 / 3), *rng.dirichlet(np.ones(3), size=50)]
    assert error(weights) <= min(map(error, others)) * (1 + 1e-6)


@pytest.mark.parametrize("shift", [0.0, -1000.0])
def test_weights_by_validation(shift):
    """No mixture of the members errs less on the stretch that none has seen."""
    u, y, _ = output_error(150)
    y = y + shift
    model = fit(
        u,
        y,
        n_estimators=3,
        hidden_layer_sizes=5,
        selection="validation",
        weighting="validation",
    )
    weights = model.estimator_weights_
    assert weights.sum() == pytest.approx(1.0) and (weights >= 0).all()
    paths = [m.predict(u, y_init=y[:2])[120:] for m in model.estimators_]

    assert_least_error(weights, paths, y[120:])


@pytest.mark.parametrize("first", [0, 60])
def test_weights_by_validation_with_gaps(first):
    """Missing values before the stretch do not decide on the weights."""
    u, y, _ = output_error(150)
    options = dict(
        n_estimators=3,
        # far from the end of a fit the members differ, and a mixture helps
        horizon_schedule=(1,),
        max_cycles=1,
        selection="validation",
        weighting="validation",
    )
    y[first : first + 4], u[first + 10] = np.nan, np.nan
    model = fit(u, y, **options)
    start = first + 13
    paths = [
        m.predict(u[start:], y_init=y[start : start + 2])[120 - start :]
        for m in model.estimators_
    ]
    assert model.estimator_weights_.max() < 0.99
    assert_least_error(model.estimator_weights_, paths, y[120:])


def test_nothing_to_weigh_by():
    """No free run reaches a validation stretch: the weights are equal."""
    u, y, _ = output_error(100)
    u[82::3] = np.nan
    model = fit(
        u,
        y,
        n_estimators=2,
        selection="validation",
        weighting="validation",
        validation_fraction=0.1,
    )
    assert_allclose(model.estimator_weights_, [0.5, 0.5])
