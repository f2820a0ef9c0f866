"""The ensemble that a search forms: who is in it, and members of other lags."""

from types import SimpleNamespace

import numpy as np
import pytest
from fitted_models import mark_diverged
from grids import first_by_default
from numpy.testing import assert_allclose, assert_array_equal
from search_cases import (
    STRENGTHS,
    errors_by_stretch,
    estimator,
    quietly,
    record,
    start_seeds,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score

from skbayesnn.metrics import simulation_scorer
from skbayesnn.sparse_bayes.search import (
    runner,
    searched_ensemble,
    settled_starts,
    whole_record,
)
from skbayesnn.sparse_bayes.search.candidates import Candidate


def keep(monkeypatch, *settings):
    """Let the search choose free-run networks of these lags and strengths."""
    chosen = [
        Candidate("network", "simulation", *setting, True) for setting in settings
    ]
    monkeypatch.setattr(searched_ensemble, "close_to_best", lambda table: chosen)


@pytest.mark.parametrize(
    ("n_estimators", "expected"),
    [
        pytest.param(1, [3.0], marks=pytest.mark.slow),
        (3, [3.0, 10.0, 30.0]),
        (4, [3.0, 3.0, 10.0, 30.0]),
        pytest.param(6, [3.0, 3.0, 10.0, 10.0, 30.0, 30.0], marks=pytest.mark.slow),
    ],
)
def test_networks_are_shared_out_to_the_candidates(monkeypatch, n_estimators, expected):
    """The best first, and the same starts for all."""
    keep(monkeypatch, (2, 3.0), (2, 10.0), (2, 30.0))
    monkeypatch.setattr(settled_starts, "SETTLED", np.inf)
    u, y = record(60)
    model = estimator((2,), (3.0, 10.0, 30.0), n_estimators=n_estimators, max_cycles=2)
    quietly(model, u, y)
    assert [member.reg_lambda for member in model.estimators_] == expected
    assert_allclose(model.estimator_weights_, 1.0 / n_estimators)
    seeds = [member.random_state for member in model.estimators_]
    assert len(set(seeds)) == -(-n_estimators // 3)
    assert model.cv_results_["kept"].sum() == min(n_estimators, 3)


def test_starts_that_ended_in_a_worse_optimum_are_left_out(monkeypatch):
    keep(monkeypatch, (2, 3.0), (2, 30.0))
    settled = settled_starts.settled

    def with_errors(models, *arguments):
        errors = [1.0, 1.6, 1.4][: len(models)]
        with monkeypatch.context() as patch:
            patch.setattr(settled_starts, "error_over_record", lambda *_: errors.pop(0))
            return settled(models, *arguments)

    monkeypatch.setattr(whole_record, "settled", with_errors)
    u, y = record(60)
    model = estimator((2,), (3.0, 30.0), n_estimators=3, max_cycles=2)
    quietly(model, u, y)
    assert [m.reg_lambda for m in model.estimators_] == [3.0, 3.0, 30.0]
    assert_allclose(model.estimator_weights_, 1 / 3)
    # of three starts of the first the second is worse; the other has a single start
    seeds = start_seeds(6)
    starts = [m.random_state for m in model.estimators_]
    assert starts == [seeds[0], seeds[2], seeds[0]]


@pytest.mark.parametrize(
    "errors, n_wanted, expected",
    [
        # the best three, where hardly any start has settled
        ([9.0, 1.0, 5.0, 2.0], 3, [1, 2, 3]),
        # all that have settled, in their order
        ([1.0, 1.4, 2.0, 1.2, 1.3], 4, [0, 1, 3, 4]),
        ([1.4, 1.0, 1.2, 1.3], 3, [0, 1, 2]),
        # the median of two would be a mean of the good and the bad
        ([9.0, 1.0, 5.0], 2, [1]),
        ([np.inf, np.inf, np.inf], 2, [0, 1]),
        ([2.0], 1, [0]),
    ],
)
def test_the_best_few_starts_stay(monkeypatch, errors, n_wanted, expected):
    starts, data = list(range(len(errors))), SimpleNamespace(Y=None)
    monkeypatch.setattr(
        settled_starts, "error_over_record", lambda start, *_: errors[start]
    )
    assert settled_starts.settled(starts, n_wanted, data, "simulation") == expected


@pytest.mark.parametrize(
    "n_fits",
    [
        pytest.param(1, marks=pytest.mark.slow),
        2,
        pytest.param(3, marks=pytest.mark.slow),
    ],
)
def test_time_is_over_before_the_last_member(monkeypatch, n_fits):
    """The best comes first, then one of each other candidate."""
    keep(monkeypatch, (2, 3.0), (2, 30.0))

    class Clock(searched_ensemble.Clock):
        n_looks = 0

        def over(self, fraction):
            self.n_looks += fraction == 1.0
            return self.n_looks >= n_fits

    monkeypatch.setattr(searched_ensemble, "Clock", Clock)
    u, y = record(60)
    model = quietly(estimator((2,), n_estimators=4, max_cycles=2), u, y)
    expected = {1: [3.0], 2: [3.0, 30.0], 3: [3.0, 3.0, 30.0]}[n_fits]
    assert [m.reg_lambda for m in model.estimators_] == expected
    weights = {1: [1.0], 2: [0.5, 0.5], 3: [0.25, 0.25, 0.5]}[n_fits]
    assert_allclose(model.estimator_weights_, weights)
    assert np.isfinite(model.predict(u, y)).all()


@pytest.fixture(
    scope="module",
    params=[pytest.param((2, 6), marks=pytest.mark.slow), (6, 2)],
    ids=["short first", "long first"],
)
def mixed(request):
    """An ensemble whose members look back 2 and 6 rows, fitted to gaps, too."""
    first, second = request.param
    u, y = record(120)
    with pytest.MonkeyPatch.context() as patch:
        keep(patch, (first, 3.0), (second, 30.0))
        model = quietly(estimator((2, 6), max_cycles=15), u, y)
    assert sorted(m.max_lag_ for m in model.estimators_) == [2, 6]
    return model


def test_members_with_different_lags(mixed):
    u, y = record(80, seed=1)
    first = mixed.estimators_[0].max_lag_
    assert mixed.max_lag_ == 6
    names = mixed.estimators_[0].get_lagged_feature_names_out()
    assert len(names) == 2 * first + 1
    # a member that lacks a lag counts with zero
    expected_names = [f"x0(t-{k})" for k in range(1, 7)]
    expected_names += [f"y(t-{k})" for k in range(1, 7)]
    assert list(mixed.lag_relevance_) == ["x0(t)", *expected_names]
    for name, relevance in mixed.lag_relevance_.items():
        parts = [m.lag_relevance_.get(name, 0.0) for m in mixed.estimators_]
        square = mixed.estimator_weights_ @ np.square(parts)
        assert relevance == pytest.approx(np.sqrt(square), rel=1e-12)
    sessions = np.repeat([0, 1], 40)
    for arguments in (
        dict(y=y),
        dict(y=y, horizon=3),
        dict(y=y, horizon=None),
        dict(y=y, sessions=sessions),
        dict(y=y, horizon=None, sessions=sessions),
        dict(y_init=y[:6]),
        dict(y_init=y[:9]),
        dict(y_init=y[:9], X_init=u[:9]),
    ):
        mean, std = mixed.predict(u, return_std=True, **arguments)
        assert np.isfinite(mean).all() and np.isfinite(std).all()
        heads = [0, 40] if "sessions" in arguments else [0]
        n_known = len(arguments.get("y_init", y[:6]))
        known = np.zeros(80, dtype=bool)
        for head in heads:
            known[head : head + n_known] = "X_init" not in arguments
        assert_array_equal(mean[known], y[known])
        assert_array_equal(std[known], 0.0)
        if arguments.get("horizon", 1) is None:
            # every member starts where the longest lag allows
            expected = []
            for part in np.split(np.arange(80), heads[1:]):
                init = dict(y_init=y[part][:6])
                runs = [m.predict(u[part], **init) for m in mixed.estimators_]
                expected.append(np.mean(runs, axis=0))
            expected = np.concatenate(expected)
        else:
            runs = [m.predict(u, **arguments) for m in mixed.estimators_]
            expected = np.mean(runs, axis=0)
        assert_allclose(mean[~known], expected[~known], rtol=1e-10)


@pytest.mark.parametrize("horizon", [1, 4, None])
def test_score_with_different_lags(mixed, horizon):
    """Rows that are known to the ensemble do not count."""
    u, y = record(80, seed=1)
    mean = mixed.predict(u, y, horizon=horizon)
    expected = r2_score(y[6:], mean[6:])
    assert mixed.score(u, y, horizon=horizon) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match="y holds no row to score.*max_lag_=6"):
        mixed.score(u[:6], y[:6], horizon=horizon)
    if horizon == 1:
        # nor do those whose window is incomplete for a member
        y[40] = np.nan
        mean = mixed.predict(u, y)
        rows = np.r_[6:40, 47:80]
        expected = r2_score(y[rows], mean[rows])
        assert mixed.score(u, y, horizon=1) == pytest.approx(expected, rel=1e-12)
    rmse = np.sqrt(np.mean((mixed.predict(u, y_init=y[:6]) - y)[6:] ** 2))
    if horizon is None:
        assert simulation_scorer(mixed, u, y) == pytest.approx(-rmse, rel=1e-12)


@pytest.mark.parametrize("n_known", [1, 2, 3, 5])
def test_short_start_with_different_lags(mixed, n_known):
    u, y = record(60, seed=2)
    mean, std = mixed.predict(u, y_init=y[:n_known], return_std=True)
    assert mean.shape == std.shape == (60,)
    assert np.isfinite(mean).all() and (std[n_known:] > 0).all()
    assert_array_equal(mean[:n_known], y[:n_known])
    late = mixed.predict(u, y_init=y[:6])
    # it forgets where it came from
    assert_allclose(mean[40:], late[40:], atol=0.05 * y.std())
    assert np.isfinite(mixed.predict(u)).all()


def test_draws_with_different_lags(mixed):
    u, y = record(30, seed=1)
    draws = mixed.sample_y(u, y_init=y[:6], n_samples=4)
    assert draws.shape == (30, 4) and np.isfinite(draws).all()
    assert_array_equal(draws[:6], np.repeat(y[:6, None], 4, axis=1))


def test_displays_with_different_lags(mixed):
    plt = pytest.importorskip("matplotlib.pyplot")
    from skbayesnn import displays

    u, y = record(80, seed=1)
    simulation = displays.SimulationDisplay.from_estimator(mixed, u, y)
    relevance = displays.LagRelevanceDisplay.from_estimator(mixed)
    assert simulation.figure_.axes and relevance.figure_.axes
    plt.close("all")


def diverge(monkeypatch, *strengths, n_starts=1):
    """Fits with these strengths pass for diverged, from some of their starts."""
    fit_or_score = runner.fit_or_score

    def marked(task, *arguments):
        result = fit_or_score(task, *arguments)
        if task.fold is None and task.candidate.reg_lambda in strengths:
            result.history_["n_diverged_starts"] = np.array(n_starts)
            if n_starts == result.n_restarts:
                mark_diverged(result)
        return result

    monkeypatch.setattr(runner, "fit_or_score", marked)
    keep(monkeypatch, *((2, strength) for strength in STRENGTHS))


@pytest.mark.parametrize("strength", first_by_default(STRENGTHS))
def test_diverged_members_are_left_out(monkeypatch, strength):
    diverge(monkeypatch, strength)
    u, y = record(60)
    model = quietly(estimator((2,), n_estimators=4), u, y)
    assert {m.reg_lambda for m in model.estimators_} == set(STRENGTHS) - {strength}
    assert model.estimator_weights_.sum() == pytest.approx(1.0)
    assert model.reg_lambda_ == model.estimators_[0].reg_lambda


@pytest.mark.slow
def test_members_of_which_one_start_diverged_stay(monkeypatch):
    diverge(monkeypatch, *STRENGTHS)
    u, y = record(60)
    # without a warning
    model = estimator((2,), n_restarts=2, max_cycles=200).fit(u, y)
    assert {m.reg_lambda for m in model.estimators_} == set(STRENGTHS)


@pytest.mark.slow
def test_every_member_diverged(monkeypatch):
    diverge(monkeypatch, *STRENGTHS, n_starts=2)
    u, y = record(60)
    with pytest.warns(ConvergenceWarning, match="Every network of the ensemble"):
        model = estimator((2,), n_restarts=2).fit(u, y)
    assert len(model.estimators_) == 2
    assert np.isfinite(model.predict(u, y)).all()


def test_a_record_that_no_free_run_can_follow():
    """An unstable system in closed loop: the search still ends."""
    rng = np.random.default_rng(0)
    u, y = np.zeros((200, 1)), np.zeros(200)
    for t in range(1, 200):
        y[t] = 1.4 * y[t - 1] + u[t - 1, 0] + 0.1 * rng.standard_normal()
        u[t] = -1.1 * y[t] + rng.standard_normal()
    model = quietly(estimator((1,), hidden_layer_sizes=()), u, y)
    # errors are cut off, so that one fold does not decide
    assert np.nanmax(errors_by_stretch(model.cv_results_)[2:]) == 3.0
    assert np.isfinite(model.predict(u, y)).all()
