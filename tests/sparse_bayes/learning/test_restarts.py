"""Starts of a fit: where they begin, how they end, resume and repeat."""

import itertools
import pickle
import warnings

import numpy as np
import pytest
from fitted_models import (
    replace_fitted,
)
from free_run_cases import FAST, assert_same_fit, fit, in_closed_loop, output_error, rms
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import LinAlgError
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.exceptions import DivergenceWarning
from skbayesnn.sparse_bayes.learning import cycle, restarts
from skbayesnn.sparse_bayes.network import init_network
from skbayesnn.sparse_bayes.records.one_step import OneStepData


def test_a_start_that_cannot_be_scaled_down_is_an_error():
    """Errors that no network makes finite end the search for a start."""
    network = init_network((2, 3, 1), "tanh", np.random.default_rng(0))
    data = OneStepData(np.ones((2, 5)), np.full((1, 5), np.nan), np.ones(1))
    with pytest.raises(ValueError, match="network without weights are not finite"):
        restarts.within_range(network, data)


@pytest.mark.parametrize("n_estimators", [1, 3])
def test_every_start_diverges(n_estimators):
    u, y = in_closed_loop()
    model = SparseBayesNARXRegressor(
        1,
        1,
        **{**FAST, "n_estimators": n_estimators, "n_restarts": 2, "random_state": 0},
    )
    message = "Every start diverged in free run.* that of the horizon (1|8|32)[.]"
    with pytest.warns(ConvergenceWarning, match=message):
        model.fit(u, y)
    assert model.history_["n_diverged_starts"] == max(2, n_estimators)
    for member in getattr(model, "estimators_", []):
        assert member.history_["n_diverged_starts"] == 1
    assert model.history_["horizon"][-1] < np.inf
    # it predicts what can be predicted
    assert model.score(u, y, horizon=1) > 0.95
    mean, std = model.predict(u, y, horizon=2, return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all()


def test_a_free_run_that_cannot_even_start():
    """There is a model without a stage one step ahead, too."""
    u, y = in_closed_loop()
    n_wild = 0
    for seed in range(4):
        options = dict(hidden_layer_sizes=20, activation="relu", random_state=seed)
        model = fit(u, y, 2, 8, horizon_schedule=(None,), reg_lambda=1.0, **options)
        assert np.isfinite(model.predict(u, y)).all()
        assert (model.history_["rmse"] < 100 * y.std()).all()
        # the same start, as it would have been
        network = init_network((11, 20, 1), "relu", first_generator(seed), skip=True)
        wild = pickle.loads(pickle.dumps(model))
        replace_fitted(wild, network=network)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DivergenceWarning)
            n_wild += np.isnan(wild.predict(u, y_init=y[:8])).any()
    assert n_wild


def first_generator(random_state):
    """What draws the initial weights of the first start."""
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    return np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])


def mark_as_diverged(monkeypatch, *numbers):
    """Every fit takes the starts with these numbers for diverged."""
    run, calls = restarts.run_start, itertools.count()

    def marked(*arguments):
        done = run(*arguments)
        return done._replace(diverged=next(calls) in numbers)

    monkeypatch.setattr(restarts, "run_start", marked)


def test_diverged_starts_are_counted_and_left_out(monkeypatch):
    u, y, _ = output_error(150)
    options = dict(n_restarts=3, n_estimators=3)
    everyone = fit(u, y, **options)
    objectives = [m.history_["objective_pruned"][-1] for m in everyone.estimators_]
    assert len(objectives) == 3 and everyone.history_["n_diverged_starts"] == 0
    mark_as_diverged(monkeypatch, 1)
    rest = fit(u, y, **options)
    assert rest.history_["n_diverged_starts"] == 1
    kept = [m.history_["objective_pruned"][-1] for m in rest.estimators_]
    assert len(kept) == 2 and set(kept) < set(objectives)
    assert_allclose(rest.estimator_weights_, [0.5, 0.5])


def fail_in(monkeypatch, which, error):
    """Let the cycles fail whose number is in ``which``."""
    step, calls = cycle.step, itertools.count()

    def failing(*arguments):
        if next(calls) in which:
            raise error("no factor")
        return step(*arguments)

    monkeypatch.setattr(cycle, "step", failing)


# the curvature may lose its precision where a run is nearly unstable
@pytest.mark.parametrize("error", [FloatingPointError, LinAlgError])
@pytest.mark.parametrize("number", [0, 16])
def test_a_start_that_fails_in_a_cycle_has_diverged(monkeypatch, number, error):
    u, y, _ = output_error(150)
    fail_in(monkeypatch, {number}, error)
    model = fit(u, y, n_restarts=2, horizon_schedule=(None,))
    assert model.history_["n_diverged_starts"] == 1


def test_no_start_gets_through_its_first_cycle(monkeypatch):
    u, y, _ = output_error(150)
    fail_in(monkeypatch, range(1000), LinAlgError)
    with pytest.raises(ValueError, match="Every start diverged in its first cycle"):
        fit(u, y, n_restarts=2)


def test_warm_start_on_new_data():
    u, y, _ = output_error(200)
    model = fit(u, y, warm_start=True, max_cycles=60)
    before = model.history_["rmse"][-1]
    coefs = [coef.copy() for coef in model.coefs_]
    new_u, new_y, _ = output_error(200, seed=1)
    cold = rms(new_y - new_y.mean())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(max_cycles=1).fit(new_u, new_y)
    # the last stage alone, from where the other fit ended
    assert_array_equal(model.history_["horizon"], [np.inf])
    assert model.history_["rmse"][0] < 1.5 * before < 0.5 * cold
    change = max(np.abs(a - b).max() for a, b in zip(coefs, model.coefs_, strict=True))
    assert 0 < change < 1.0


@pytest.mark.parametrize(
    "change",
    [
        dict(hidden_layer_sizes=5),
        dict(skip_connection=False),
        dict(groups="row"),
        dict(activation="relu"),
        # as many regressors, but others
        dict(input_lags=1, output_lags=3),
        dict(output_lags=[1, 3]),
    ],
)
def test_warm_start_of_another_model_is_refused(change):
    u, y, _ = output_error(100)
    model = fit(u, y, warm_start=True)
    before = model.predict(u, y)
    with pytest.raises(ValueError, match="warm_start=True.*warm_start=False"):
        model.set_params(**change).fit(u, y)
    assert_array_equal(model.predict(u, y), before)


def test_warm_start_where_the_old_model_diverges():
    """It runs through all stages again, whatever they are."""
    u, y, _ = output_error(200)
    model = fit(u, y, warm_start=True, horizon_schedule=(None,))
    start = model._learned.start
    wild = start.network._replace(theta=5.0 * start.network.theta)
    start = start._replace(network=wild)
    model._learned = model._learned._replace(start=start)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(u, y)
    assert np.isfinite(model.predict(u)).all()


@pytest.mark.parametrize("n_estimators", [1, 2])
@pytest.mark.parametrize("n_cycles", [3, 18])
def test_interrupt_with_warm_start(interrupt_after, n_cycles, n_estimators):
    u, y, _ = output_error(150)
    model = SparseBayesNARXRegressor(
        2, 2, **FAST, n_estimators=n_estimators, warm_start=True, random_state=0
    )
    interrupt_after(n_cycles)
    with pytest.raises(KeyboardInterrupt):
        model.fit(u, y)
    assert len(getattr(model, "estimators_", [model])) == 1
    assert model.n_cycles_ == n_cycles
    assert model.history_["horizon"][-1] < np.inf
    assert np.isfinite(model.predict(u, y)).all()
    assert len(model.lag_relevance_) == 5


def test_interrupt_leaves_the_old_fit(interrupt_after):
    u, y, _ = output_error(150)
    model = fit(u, y, n_estimators=2)
    before, old = model.predict(u, y_init=y[:2]), dict(vars(model))
    interrupt_after(5)
    with pytest.raises(KeyboardInterrupt):
        model.fit(u, y + 1.0)
    assert vars(model) == old
    assert_array_equal(model.predict(u, y_init=y[:2]), before)


@pytest.mark.filterwarnings("ignore:Input x0 is constant")
def test_failure_leaves_the_old_fit():
    u, y, _ = output_error(150)
    model = fit(u, y)
    old = dict(vars(model))
    with pytest.raises(ValueError, match="longest lag"):
        model.fit(u[:2], y[:2])
    assert vars(model) == old


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, dict(initial_conditions="estimated")])
def test_reproducible_for_any_n_jobs(options):
    u, y, _ = output_error(120)
    options = dict(n_estimators=3, max_cycles=5, **options)
    alone = fit(u, y, **options)
    assert_same_fit(alone, fit(u, y, **options))
    together = fit(u, y, n_jobs=2, **options)
    for a, b in zip(alone.estimators_, together.estimators_, strict=True):
        assert_same_fit(a, b)
    assert_array_equal(alone.predict(u), together.predict(u))
    other = fit(u, y, **{**options, "random_state": 1})
    assert np.abs(other.coefs_[0] - alone.coefs_[0]).max() > 0
